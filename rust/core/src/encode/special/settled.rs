//! How far the partition of an unfinished text is settled.
//!
//! If no occurrence of any special text crosses a position, the two sides can be searched independently: every search
//! finds the same occurrences as in the whole text. A token that removes whitespace must not reach across the position
//! either, so if the vocabulary has such tokens, neither side may be whitespace. An occurrence that the text so far
//! does not complete counts as crossing every position after its start.
//!
//! The longest special text bounds the length of an occurrence, so only the end of the text is searched, twice as much
//! each time until there is such a position.
//!
//! Complexity: O(n) for n bytes from the last such position to the end. With long special texts, which are not walked
//! to their ends, a position within the longest one's length of the end counts as incomplete.

use super::{Specials, is_space};
use crate::lookup::trie::backward::SHORT;
use crate::work::interrupt::Ticker;

impl Specials {
    /// The last position in `text` at which the partition is settled: the part before it does not depend on what
    /// follows, and the part after it does not depend on what comes before.
    pub(crate) fn settled(&self, text: &[u8]) -> usize {
        if self.order.is_empty() {
            return text.len();
        }
        let mut len = self.max_len * 2;
        loop {
            let start = text.len().saturating_sub(len);
            let settled = self.settled_after(text, start);
            if settled > 0 || start == 0 {
                return settled;
            }
            len *= 2;
        }
    }

    /// The same, if that position is certain from the occurrences that start at `start` or later; otherwise 0. These
    /// include all that the text may complete.
    fn settled_after(&self, text: &[u8], start: usize) -> usize {
        let strips = self.order.iter().any(|special| special.strips_before || special.strips_after);
        let last_place = |from: usize, to: usize| {
            let is_free = |at: usize| !strips || at < text.len() && !is_space(text[at - 1]) && !is_space(text[at]);
            (from.max(1)..=to).rev().find(|&at| is_free(at))
        };

        // No occurrence found so far, or before `start`, extends beyond `reach`.
        let mut reach = if start > 0 { start + self.max_len - 1 } else { 0 };
        let mut settled = 0;
        let mut ticker = Ticker::default();
        let mut starts = self.long.as_ref().filter(|_| text.len() > SHORT).map(|long| long.starts(text));
        for (at, &byte) in text.iter().enumerate().skip(start) {
            if !self.is_first[usize::from(byte)] {
                continue;
            }
            ticker.tick();
            settled = if reach <= at { last_place(reach, at).unwrap_or(settled) } else { settled };
            let rest = &text[at..];
            let (may_continue, longest) = match &mut starts {
                None => (self.trie.longest_walk(rest) == rest.len(), self.trie.longest_match(rest)),
                Some(starts) => (starts.may_continue(at), starts.longest(at)),
            };
            if may_continue {
                return settled;
            }
            reach = reach.max(at + longest.map_or(0, |(len, _)| len));
        }
        last_place(reach, text.len()).unwrap_or(settled)
    }
}
