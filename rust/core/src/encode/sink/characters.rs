//! Converts spans from bytes to characters.
//!
//! A byte that does not continue a UTF-8 sequence starts a character. Eight bytes are one number, in which these bytes
//! are counted together. In a stretch of ASCII nothing is counted: every position in it has as many bytes more than
//! characters before it. Time: O(length of the spans, and of the text between each span and the next).

use std::ops::Range;

use crate::encode::sink::Spans;
use crate::work::interrupt;

/// How many spans are converted between two checks for an interrupt.
const SPANS_AT_ONCE: usize = 1 << 12;
/// Bytes that are counted together.
const WORD: usize = size_of::<u64>();
/// The lowest and the highest bit of each byte.
const LOW_BITS: u64 = u64::from_le_bytes([1; WORD]);
const HIGH_BITS: u64 = LOW_BITS << 7;

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
    /// spans.to_characters("éab".as_bytes());
    /// assert_eq!(spans.spans, [0..1, 0..1, 1..3]);
    /// ```
    pub fn to_characters(&mut self, text: &[u8]) {
        if text.is_ascii() {
            return;
        }
        let mut place = CharacterCounter::default();
        // A stretch of ASCII, and how many bytes more than characters are before any position in it.
        let mut ascii = 0..0;
        let mut excess = 0;
        for spans in self.spans.chunks_mut(SPANS_AT_ONCE) {
            interrupt::check();
            let mut spans = spans.iter_mut();
            // Spans within the stretch have a loop of their own, whose variables fit in registers.
            while let Some(span) = spans.find_map(|span| {
                if !(ascii.contains(&span.start) && span.end <= ascii.end) {
                    return Some(span);
                }
                *span = span.start - excess..span.end - excess;
                None
            }) {
                if !ascii.contains(&span.start) {
                    let start = place.advance(text, span.start);
                    let word = word_at(text, span.start);
                    if word & HIGH_BITS != 0 {
                        let firsts = firsts(word);
                        let len = span.end.wrapping_sub(span.start);
                        let end = if (1..=WORD).contains(&len) {
                            start + sum(firsts << (8 * (WORD - len)))
                        } else {
                            place.advance(text, span.end)
                        };
                        place = CharacterCounter { at: span.end.min(text.len()), num_before: end };
                        let is_inside = firsts & 1 == 0 && start > 0 && span.start < text.len();
                        *span = start - usize::from(is_inside)..end;
                        continue;
                    }
                    let len = ascii_len(&text[span.start..]);
                    (ascii, excess) = (span.start..span.start + len, span.start - start);
                    place = CharacterCounter { at: ascii.end, num_before: ascii.end - excess };
                }
                let end = if span.end <= ascii.end { span.end - excess } else { place.advance(text, span.end) };
                *span = span.start - excess..end;
            }
        }
    }

    /// Converts byte ranges of `text` to ranges of UTF-16 code units, otherwise as [`Spans::to_characters`].
    pub fn to_utf16(&mut self, text: &[u8]) {
        self.to_characters(text);
        // The numbers of the characters that have two units.
        let firsts = text.iter().filter(|&byte| byte & 0xC0 != 0x80).enumerate();
        let pairs: Vec<usize> = firsts.filter(|&(_, &byte)| byte >= 0xF0).map(|(number, _)| number).collect();
        if !pairs.is_empty() {
            let units = |place: usize| place + pairs.partition_point(|&number| number < place);
            self.spans.iter_mut().for_each(|span| *span = units(span.start)..units(span.end));
        }
    }
}

/// A position in a text, and the number of characters that start before it.
#[derive(Debug, Clone, Copy, Default)]
struct CharacterCounter {
    at: usize,
    num_before: usize,
}

impl CharacterCounter {
    /// Moves to another position, usually one nearby, and returns how many characters start before that.
    #[inline(always)]
    fn advance(&mut self, text: &[u8], to: usize) -> usize {
        let to = to.min(text.len());
        if to >= self.at {
            self.num_before += num_firsts(text, self.at..to)
        } else {
            self.num_before -= num_firsts(text, to..self.at)
        }
        self.at = to;
        self.num_before
    }
}

/// The number of bytes in a range that start a character.
#[inline(always)]
fn num_firsts(text: &[u8], Range { start: mut at, end }: Range<usize>) -> usize {
    let mut num = 0;
    while at < end {
        let len = (end - at).min(WORD);
        num += sum(firsts(word_at(text, at)) << (8 * (WORD - len)));
        at += len;
    }
    num
}

/// The word at byte `at`. Bytes beyond the text are not ASCII, and start no character.
#[inline(always)]
fn word_at(text: &[u8], at: usize) -> u64 {
    let rest = text.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => rest.iter().rev().fold(HIGH_BITS, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// One for each byte of a word that starts a character, zero for each other byte.
#[inline(always)]
fn firsts(word: u64) -> u64 {
    // A continuation byte has its highest bit set and the next one clear.
    (!word | word << 1) >> 7 & LOW_BITS
}

/// The sum of the bytes of a word, which is below 256.
#[inline(always)]
fn sum(word: u64) -> usize {
    (word.wrapping_mul(LOW_BITS) >> (8 * (WORD - 1))) as usize
}

/// The number of ASCII characters at the start of a text, in whole words.
#[inline(always)]
fn ascii_len(text: &[u8]) -> usize {
    let is_ascii = |word: &&[u8; WORD]| u64::from_le_bytes(**word) & HIGH_BITS == 0;
    text.as_chunks().0.iter().take_while(is_ascii).count() * WORD
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
            spans.to_characters(text.as_bytes());
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
        spans.to_characters(text);
        assert_eq!(spans.spans, [0..1, 1..2, 1..3]);
    }

    #[test]
    fn units_are_those_of_a_string_in_javascript() {
        let counted = |text: &[u8], spans: &[std::ops::Range<usize>]| {
            let mut spans = Spans { ids: vec![0; spans.len()], spans: spans.to_vec() };
            spans.to_utf16(text);
            spans.spans
        };
        let text = "aé中😀b".repeat(3);
        let units = |range: &str| range.encode_utf16().count();
        for start in 0..=text.len() {
            for end in start..=text.len() {
                let whole = (0..=start).rev().find(|&at| text.is_char_boundary(at)).expect("a start");
                let after = (end..=text.len()).find(|&at| text.is_char_boundary(at)).expect("an end");
                let expected = units(&text[..whole])..units(&text[..after]);
                assert_eq!(counted(text.as_bytes(), std::slice::from_ref(&(start..end))), [expected], "{start}..{end}");
            }
        }
        assert_eq!(counted("😀é".as_bytes(), &[4..6, 0..4, 0..0, 6..6]), [2..3, 0..2, 0..0, 3..3]);
        assert_eq!(counted(b"\xED\xA0\x80\xED\xB0\x80a", &[0..3, 3..4, 4..7]), [0..1, 1..2, 1..3]);
    }
}
