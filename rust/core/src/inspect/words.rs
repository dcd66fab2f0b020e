//! The words of a text by the rules of Unicode's Annex 29: anything between two word boundaries with a letter or
//! digit in it. A Han character is a word, and so is an English word with its apostrophe. Time: O(n).

use unicode_segmentation::UnicodeSegmentation;

use crate::work::interrupt;

/// The words of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    interrupt::ticking(text.unicode_words())
}

/// The number of words of a text.
///
/// # Examples
/// ```
/// assert_eq!(ggtok_core::inspect::count_words("What isn't LoRA?"), 3);
/// assert_eq!(ggtok_core::inspect::count_words("你好"), 2);
/// ```
pub fn count_words(text: &str) -> usize {
    words(text).count()
}
