//! How far the partition of an unfinished text is settled.
//!
//! If no occurrence of any special text crosses a place, the two sides can be searched independently: every search
//! finds the same occurrences as in the whole text. A token that removes whitespace must not reach across the place
//! either, so if the vocabulary has such tokens, neither side may be whitespace. An occurrence that the text so far
//! does not complete counts as crossing every place after its start.
//!
//! Complexity: O(n) steps and one walk through the trie for each byte that starts a special text.

use super::{Specials, is_space};
use crate::work::interrupt::Ticker;

impl Specials {
    /// The last place in `text` at which the partition is settled: the part before it does not depend on what follows,
    /// and the part after it does not depend on what comes before.
    pub(crate) fn settled(&self, text: &[u8]) -> usize {
        if self.order.is_empty() {
            return text.len();
        }
        let strips = self.order.iter().any(|special| special.strips_before || special.strips_after);
        let last_place = |from: usize, to: usize| {
            let is_free = |at: usize| !strips || at < text.len() && !is_space(text[at - 1]) && !is_space(text[at]);
            (from.max(1)..=to).rev().find(|&at| is_free(at))
        };

        // No occurrence found so far that starts before `reach` extends beyond it.
        let (mut settled, mut reach, mut ticker) = (0, 0, Ticker::default());
        for (at, &byte) in text.iter().enumerate() {
            if !self.is_first[usize::from(byte)] {
                continue;
            }
            ticker.tick();
            settled = if reach <= at { last_place(reach, at).unwrap_or(settled) } else { settled };
            if self.trie.longest_walk(&text[at..]) == text.len() - at {
                return settled;
            }
            if let Some((len, _)) = self.trie.longest_match(&text[at..]) {
                reach = reach.max(at + len);
            }
        }
        last_place(reach, text.len()).unwrap_or(settled)
    }
}
