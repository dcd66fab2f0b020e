//! What a tokenizer does beyond one text at a time: many texts, long texts, texts in parts, texts that are still growing.

pub(crate) mod batch;
pub(crate) mod chunks;
pub(crate) mod parts;
pub(crate) mod stream;
