//! How far the partition of an unfinished text is certain.
//!
//! At a place that no occurrence of any special text crosses, what is left of it and what is right of it are searched
//! independently: each search, longest text first, finds the same occurrences on both sides as in the whole. White
//! space that a token removes must not reach the place either, so where a vocabulary has such tokens, neither side of
//! it is white space. An occurrence that the known text does not complete counts as crossing every place after its
//! start.
//!
//! Complexity: O(n) steps and one walk through the trie for each byte that starts a special text.

use super::{Specials, is_space};
use crate::interrupt::Ticker;

impl Specials {
    /// The last place of `text` up to which its partition is the same whatever follows, and after which it does not
    /// depend on what is before.
    pub(crate) fn settled(&self, text: &[u8]) -> usize {
        if self.order.is_empty() {
            return text.len();
        }
        let strips = self.order.iter().any(|special| special.strips_before || special.strips_after);
        let last_place = |from: usize, to: usize| {
            let is_free = |at: usize| !strips || at < text.len() && !is_space(text[at - 1]) && !is_space(text[at]);
            (from.max(1)..=to).rev().find(|&at| is_free(at))
        };

        // No occurrence that starts before a place from `reach` on, and is known so far, crosses it.
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
