//! Words of a text, counted by the rules of Unicode's Annex 29: what stands between two word boundaries and has a letter
//! or digit. A Han character is a word, and so is an English word with its apostrophe. Time: O(n).

use unicode_segmentation::UnicodeSegmentation;

use crate::interrupt::Ticker;

/// The number of words of a text.
///
/// # Examples
/// ```
/// assert_eq!(ggtok_core::count_words("What isn't LoRA?"), 3);
/// assert_eq!(ggtok_core::count_words("你好"), 2);
/// ```
pub fn count_words(text: &str) -> usize {
    let mut ticker = Ticker::default();
    text.unicode_words().inspect(|_| ticker.tick()).count()
}
