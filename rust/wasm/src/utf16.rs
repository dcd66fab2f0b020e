//! Converts spans from bytes to UTF-16 code units, in which JavaScript counts.
//!
//! A byte that starts a character counts as one unit, or as two if four bytes encode the character. Time: O(length of
//! the spans, and of the text between each span and the next).

use ggtok_core::Spans;

/// The string of some bytes, with U+FFFD for what is not UTF-8. Converts ranges of the bytes to ranges of its code
/// units, as [`count_units`] does.
#[cfg(feature = "full")]
pub fn convert(bytes: &[u8], ranges: &mut Vec<std::ops::Range<usize>>) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let mut spans = Spans { ids: Vec::new(), spans: std::mem::take(ranges) };
        count_units(&mut spans, bytes);
        *ranges = spans.spans;
        return text.to_owned();
    }
    // For each byte, the units before and after the character that it belongs to.
    let (mut around, mut text) = (Vec::with_capacity(bytes.len()), String::new());
    let mut before = 0;
    for chunk in bytes.utf8_chunks() {
        let replaced = Some((char::REPLACEMENT_CHARACTER, chunk.invalid().len())).filter(|(_, len)| *len > 0);
        for (char, len) in chunk.valid().chars().map(|char| (char, char.len_utf8())).chain(replaced) {
            let after = before + char.len_utf16();
            around.extend(std::iter::repeat_n((before, after), len));
            text.push(char);
            before = after;
        }
    }
    for range in ranges {
        let start = around.get(range.start).map_or(before, |around| around.0);
        let end = if range.start == range.end { start } else { around[range.end - 1].1 };
        *range = start..end;
    }
    text
}

/// Converts byte ranges of `text` to ranges of UTF-16 code units. A token that is part of a character gets the range of
/// the whole character.
///
/// The text should be UTF-8, possibly with lone surrogates; in other bytes, every byte except 0x80 to 0xBF starts a
/// character.
pub fn count_units(spans: &mut Spans, text: &[u8]) {
    if text.is_ascii() {
        return;
    }
    let mut place = UnitCounter { text, at: 0, before: 0 };
    for span in &mut spans.spans {
        let mut start = span.start.min(text.len());
        // Back to the first byte of a character; an encoded one has at most four.
        for _ in 0..3 {
            start -= usize::from(start > 0 && text.get(start).is_some_and(|&byte| units(byte) == 0));
        }
        *span = place.move_to(start)..place.move_to(span.end);
    }
}

/// A place in a text, and the units of the characters that start before it.
struct UnitCounter<'a> {
    text: &'a [u8],
    at: usize,
    before: usize,
}

impl UnitCounter<'_> {
    /// Moves to another place, usually one nearby, and returns the units before it.
    fn move_to(&mut self, to: usize) -> usize {
        let to = to.min(self.text.len());
        let sum = |bytes: &[u8]| bytes.iter().map(|&byte| units(byte)).sum::<usize>();
        match to >= self.at {
            true => self.before += sum(&self.text[self.at..to]),
            false => self.before -= sum(&self.text[to..self.at]),
        }
        self.at = to;
        self.before
    }
}

/// The units of the character that a byte starts.
fn units(byte: u8) -> usize {
    match byte {
        0x80..=0xBF => 0,
        0xF0.. => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use ggtok_core::Spans;

    use super::{convert, count_units};

    fn counted(text: &[u8], spans: &[std::ops::Range<usize>]) -> Vec<std::ops::Range<usize>> {
        let mut spans = Spans { ids: vec![0; spans.len()], spans: spans.to_vec() };
        count_units(&mut spans, text);
        spans.spans
    }

    #[test]
    fn spans_are_those_of_a_string_in_javascript() {
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

    #[test]
    fn what_is_not_utf_8_counts_as_it_is_shown() {
        let mut ranges = vec![0..1, 1..3, 3..5, 5..6, 6..10, 10..10];
        let text = convert(b"a\xE2\x82\x80\xFFb\xF0\x9F\x98\x80", &mut ranges);
        assert_eq!(text, "a\u{2080}\u{FFFD}b😀");
        assert_eq!(ranges, [0..1, 1..2, 1..3, 3..4, 4..6, 6..6]);
        let mut ranges = vec![0..2, 2..3];
        assert_eq!(convert("é€".as_bytes(), &mut ranges), "é€");
        assert_eq!(ranges, [0..1, 1..2]);
    }
}
