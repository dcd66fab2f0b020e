//! Converts spans from bytes to characters.
//!
//! A byte that does not continue a UTF-8 sequence starts a character. A cursor keeps these bytes of a block as a mask,
//! so a position in the block costs one population count. Spans ascend, so the cursor walks over the text once.
//! O(length of the text + number of spans).

use crate::encode::sink::Spans;
use crate::text::scan::{BLOCK, gather};
use crate::work::interrupt::Ticker;

impl Spans {
    /// Converts byte ranges of `text` to character ranges. A token that is part of a character gets the range of the
    /// whole character.
    ///
    /// `text` is the text that was encoded. It should be UTF-8, possibly with lone surrogates; in other bytes, every
    /// byte except 0x80 to 0xBF counts as the start of a character.
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
        if text.is_ascii() {
            return;
        }
        let (mut starts, mut ends) = (Cursor::new(text), Cursor::new(text));
        // The end of the previous span in bytes and characters.
        let mut last = (0, 0);
        let mut ticker = Ticker::default();
        for span in &mut self.spans {
            ticker.tick();
            // Most tokens start where the previous one ends.
            let before = if span.start == last.0 { last.1 } else { starts.characters_before(span.start) };
            let is_inside = text.get(span.start).is_some_and(|&byte| byte & 0xC0 == 0x80);
            last = (span.end, ends.characters_before(span.end));
            *span = before - usize::from(is_inside && before > 0)..last.1;
        }
    }
}

/// Walks through a text in blocks of 64 bytes.
#[derive(Debug)]
struct Cursor<'a> {
    text: &'a [u8],
    /// Where the block starts.
    start: usize,
    /// A mask of the bytes that start a character, and how many characters start before the block.
    firsts: u64,
    num_before: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self { text, start: 0, firsts: firsts(text, 0), num_before: 0 }
    }

    /// How many characters start before `at`. O(1) if it is in the same block as the last one.
    #[inline(always)]
    fn characters_before(&mut self, at: usize) -> usize {
        if at.wrapping_sub(self.start) >= BLOCK {
            self.advance(at);
        }
        let len = at - self.start;
        // Counting bits takes longer than a branch that is usually predicted right.
        let num_firsts =
            if self.firsts == u64::MAX { len } else { (self.firsts & !(u64::MAX << len)).count_ones() as usize };
        self.num_before + num_firsts
    }

    /// Moves to the block that contains `at`.
    #[inline(never)]
    fn advance(&mut self, at: usize) {
        if at < self.start {
            // Spans from an encoder never descend, but a caller's may, and the result must still be right.
            *self = Self::new(self.text);
        }
        while at - self.start >= BLOCK {
            self.num_before += self.firsts.count_ones() as usize;
            self.start += BLOCK;
            self.firsts = firsts(self.text, self.start);
        }
    }
}

/// The bytes of the block at `start` that start a character, one bit each.
#[inline(always)]
fn firsts(text: &[u8], start: usize) -> u64 {
    let rest = text.get(start..).unwrap_or_default();
    let mut buffer = [0x80; BLOCK];
    let block = match rest.first_chunk::<BLOCK>() {
        Some(block) => block,
        None => {
            buffer[..rest.len()].copy_from_slice(rest);
            &buffer
        }
    };
    // A continuation byte has its highest bit set and the next one clear.
    gather(block, |eight| (!eight | eight << 1) >> 7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Spans;

    proptest! {
        #[test]
        fn characters_are_those_that_bytes_belong_to(
            text in "([aé中\u{1F600}]|a{9}){0,60}",
            cuts in prop::collection::vec((0..300_usize, 0..90_usize), 0..20),
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
