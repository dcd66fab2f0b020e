//! Questions about a vocabulary or a text that take a pass over all of it.

mod check;
mod needed;
#[cfg(feature = "segmentation")]
mod words;

pub use check::{unreachable_tokens, unused_merges};
pub use needed::{matched, needed};
#[cfg(feature = "segmentation")]
pub use words::{count_words, words};
