//! Spans in characters instead of bytes.
//!
//! A byte that does not continue a UTF-8 sequence starts a character. Spans ascend, so two cursors walk over the text
//! once: one for starts and one for ends. O(length of the text + number of spans); a text of ASCII stays as it is.

use std::ops::Range;

use crate::interrupt::Ticker;
use crate::sink::Spans;

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
        if text.is_ascii() {
            return;
        }
        let (mut starts, mut ends) = (Cursor::default(), Cursor::default());
        let mut ticker = Ticker::default();
        for span in &mut self.spans {
            ticker.tick();
            // Most tokens start where the one before ends.
            if ends.at <= span.start {
                starts = ends;
            }
            let start = starts.first_character(text, span.start);
            if ends.at < starts.at {
                ends = starts;
            }
            *span = start..ends.characters_before(text, span.end);
        }
    }
}

/// A place in a text, and how many characters start before it.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    at: usize,
    num_started: usize,
}

impl Cursor {
    /// Moves on to `end`, and returns how many characters start before it.
    #[inline]
    fn characters_before(&mut self, text: &[u8], end: usize) -> usize {
        if end < self.at {
            // Spans that descend are not ours, but must not go wrong.
            *self = Self::default();
        }
        let range: Range<usize> = self.at..end.min(text.len());
        self.num_started += text.get(range).unwrap_or_default().iter().filter(|&&byte| !is_continuation(byte)).count();
        self.at = end;
        self.num_started
    }

    /// Moves on to `start`, and returns the number of the character there.
    #[inline]
    fn first_character(&mut self, text: &[u8], start: usize) -> usize {
        let before = self.characters_before(text, start);
        before.saturating_sub(usize::from(text.get(start).is_some_and(|&byte| is_continuation(byte))))
    }
}

#[inline]
fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Spans, is_continuation};

    proptest! {
        #[test]
        fn characters_are_those_that_bytes_belong_to(
            text in "[aé中\u{1F600}]{0,30}",
            cuts in prop::collection::vec((0..60_usize, 0..4_usize), 0..20),
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
        assert!(is_continuation(text[1]));
        let mut spans = Spans { ids: vec![0; 3], spans: vec![0..3, 3..4, 4..7] };
        spans.count_characters(text);
        assert_eq!(spans.spans, [0..1, 1..2, 1..3]);
    }
}
