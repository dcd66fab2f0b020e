//! Beyond one text at a time: many texts, long texts, texts in parts, and texts that are still growing.

pub(crate) mod align;
pub(crate) mod batch;
#[cfg(feature = "segmentation")]
pub(crate) mod chunks;
pub(crate) mod parts;
pub(crate) mod stream;
mod words;
