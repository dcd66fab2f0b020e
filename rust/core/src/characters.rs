//! Spans in characters instead of bytes.
//!
//! A byte that does not continue a UTF-8 sequence starts a character, so the number of a character is its place in bytes
//! less the continuation bytes before it. Spans ascend, so a cursor that counts these walks over the text once. Up to
//! the next byte that is not ASCII there is nothing to count, and where there is, eight bytes are counted at once.
//! O(length of the text + number of spans).

use crate::interrupt::Ticker;
use crate::sink::Spans;

/// Bytes that are looked at together.
const WORD: usize = size_of::<u64>();
/// The highest bit of each byte.
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

impl Spans {
    /// Changes byte ranges of `text` into ranges of its characters. A token that is part of a character has the range of
    /// the whole character.
    ///
    /// `text` is the one that was encoded. It must be UTF-8, or come from a string that was encoded with its lone
    /// surrogates: otherwise nothing says what its characters are, and any byte but 0x80 to 0xBF starts one.
    ///
    /// # Examples
    /// ```
    /// use ggtok_core::Spans;
    ///
    /// let mut spans = Spans { ids: vec![7, 8, 9], spans: vec![0..1, 1..2, 2..4] };
    /// spans.count_characters("éab".as_bytes());
    /// assert_eq!(spans.spans, [0..1, 0..1, 1..3]);
    /// ```
    pub fn count_characters(&mut self, text: &[u8]) {
        let (mut starts, mut ends) = (Cursor::start(text), Cursor::start(text));
        if ends.next == text.len() {
            return;
        }
        let mut ticker = Ticker::default();
        for span in &mut self.spans {
            ticker.tick();
            // Most tokens start where the one before ends, and many are ASCII.
            if ends.at <= span.start && span.end <= ends.next && span.start < ends.next {
                ends.at = span.end;
                *span = span.start - ends.num_continuations..span.end - ends.num_continuations;
                continue;
            }
            if ends.at <= span.start {
                ends.advance(text, span.start);
                starts = ends;
            } else {
                starts.advance(text, span.start);
            }
            let start = starts.at - starts.num_continuations - usize::from(starts.is_in_character(text));
            ends.advance(text, span.end);
            *span = start..ends.at - ends.num_continuations;
        }
    }
}

/// A place in a text.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    at: usize,
    /// How many bytes before it continue a character.
    num_continuations: usize,
    /// Where the next byte is that is not ASCII.
    next: usize,
}

impl Cursor {
    fn start(text: &[u8]) -> Self {
        Self { at: 0, num_continuations: 0, next: find_non_ascii(text, 0) }
    }

    /// Moves on to `to`.
    #[inline(always)]
    fn advance(&mut self, text: &[u8], to: usize) {
        if to > self.next || to < self.at {
            self.count(text, to);
        }
        self.at = to;
    }

    #[inline(never)]
    fn count(&mut self, text: &[u8], to: usize) {
        if to < self.at {
            // Spans that descend are not ours, but must not go wrong.
            *self = Self::start(text);
        }
        let to = to.min(text.len());
        self.num_continuations += count_continuations(text, self.next.min(to), to);
        self.next = find_non_ascii(text, to);
    }

    /// Whether the byte here continues a character.
    #[inline(always)]
    fn is_in_character(&self, text: &[u8]) -> bool {
        self.at == self.next && text.get(self.at).is_some_and(|&byte| byte & 0xC0 == 0x80)
    }
}

/// The place of the first byte from `at` on that is not ASCII, or the length of the text.
#[inline(always)]
fn find_non_ascii(text: &[u8], mut at: usize) -> usize {
    while let Some(&word) = text.get(at..).and_then(|rest| rest.first_chunk()) {
        let others = u64::from_le_bytes(word) & HIGH_BITS;
        if others != 0 {
            return at + others.trailing_zeros() as usize / 8;
        }
        at += WORD;
    }
    text.get(at..).and_then(|rest| rest.iter().position(|byte| !byte.is_ascii())).map_or(text.len(), |found| at + found)
}

/// How many bytes of `text[at..to]` continue a character.
#[inline(always)]
fn count_continuations(text: &[u8], mut at: usize, to: usize) -> usize {
    let mut count = 0;
    while at < to {
        let mut word = [0; WORD];
        match text[at..].first_chunk() {
            Some(whole) => word = *whole,
            None => word[..text.len() - at].copy_from_slice(&text[at..]),
        }
        let word = u64::from_le_bytes(word) & u64::MAX >> (8 * WORD.saturating_sub(to - at));
        // The highest bit is set and the next one is not.
        let continuations = (word & !(word << 1) & HIGH_BITS) >> 7;
        count += (continuations.wrapping_mul(HIGH_BITS >> 7) >> 56) as usize;
        at += WORD;
    }
    count
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Spans;

    proptest! {
        #[test]
        fn characters_are_those_that_bytes_belong_to(
            text in "([aé中\u{1F600}]|a{9}){0,30}",
            cuts in prop::collection::vec((0..90_usize, 0..12_usize), 0..20),
        ) {
            let len = text.len();
            let mut bounds: Vec<(usize, usize)> = cuts.iter().map(|&(at, len)| (at, at + len)).collect();
            bounds.sort_unstable();
            let mut spans = Spans::default();
            let mut last = 0;
            for (start, end) in bounds {
                // Ends never decrease either.
                last = last.max(end.min(len));
                spans.ids.push(0);
                spans.spans.push(start.min(last)..last);
            }
            let bytes = spans.spans.clone();
            spans.count_characters(text.as_bytes());
            let number = |at: usize| text.char_indices().filter(|&(start, _)| start < at).count();
            for (span, bytes) in spans.spans.iter().zip(bytes) {
                let floor = (0..=bytes.start).rev().find(|&at| text.is_char_boundary(at)).expect("a start");
                let ceil = (bytes.end..=len).find(|&at| text.is_char_boundary(at)).expect("an end");
                prop_assert_eq!(span.clone(), number(floor)..number(ceil));
            }
        }
    }

    #[test]
    fn surrogates_are_characters() {
        let text = b"\xED\xA0\x80\xED\xB0\x80a";
        let mut spans = Spans { ids: vec![0; 3], spans: vec![0..3, 3..4, 4..7] };
        spans.count_characters(text);
        assert_eq!(spans.spans, [0..1, 1..2, 1..3]);
    }
}
