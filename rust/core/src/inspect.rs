//! Questions about a vocabulary or a text that take a pass over all of it.

mod check;
#[cfg(feature = "segmentation")]
mod words;

pub use check::{unreachable_tokens, unused_merges};
#[cfg(feature = "segmentation")]
pub use words::count_words;
