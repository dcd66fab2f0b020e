//! UTF-8 as llama.cpp reads and writes it: a lead byte and the right number of continuation bytes make a code point.
//!
//! Nothing else is checked, so overlong forms, surrogates and numbers up to 0x1FFFFF decode.
//!
//! Source: llama.cpp, `src/unicode.cpp`: `unicode_len_utf8`, `unicode_cpt_from_utf8`, `unicode_cpts_from_utf8`,
//! `unicode_cpt_to_utf8`. Complexity: constant time per code point.
//!
//! Deviations:
//! 1. [`decode_lossy`] returns U+FFFD for a code point beyond U+10FFFF, and [`encode`] writes U+FFFD for it: llama.cpp
//!    keeps the number, and aborts when it writes it.

use crate::work::interrupt::Ticker;

/// U+FFFD, which replaces bytes that cannot be decoded.
pub const REPLACEMENT: u32 = 0xFFFD;

/// The length of the longest character in bytes.
pub(crate) const MAX_LEN: usize = 4;

const LAST_CODE_POINT: u32 = 0x10FFFF;

/// Whether a text is what Unicode calls UTF-8. O(length), and outside of ASCII many times as fast as `std`.
pub(crate) fn is_valid(text: &[u8]) -> bool {
    simdutf8::basic::from_utf8(text).is_ok()
}

/// The length of a sequence by its first byte alone: 1 for a continuation byte, 4 for 0xF8 to 0xFF.
#[inline]
pub fn sequence_len(lead: u8) -> usize {
    const BY_HIGH_HALF: [u8; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4];
    BY_HIGH_HALF[usize::from(lead >> 4)].into()
}

/// The code point that starts at byte `at` and its length in bytes; `None` if the bytes are malformed or cut off, or if
/// `at` is the end.
#[inline]
pub fn decode(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let (&lead, rest) = text.get(at..)?.split_first()?;
    match lead {
        0x00..=0x7F => Some((lead.into(), 1)),
        0xC0..=0xDF => Some((append(u32::from(lead) & 0x1F, rest.first_chunk::<1>()?)?, 2)),
        0xE0..=0xEF => Some((append(u32::from(lead) & 0x0F, rest.first_chunk::<2>()?)?, 3)),
        0xF0..=0xF7 => Some((append(u32::from(lead) & 0x07, rest.first_chunk::<3>()?)?, 4)),
        _ => None,
    }
}

/// The code point at byte `at` of text that is known to be UTF-8, and its length in bytes; `None` at the end.
#[inline(always)]
pub fn decode_valid(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let rest = text.get(at..)?;
    let Some(&[first, second, third, fourth]) = rest.first_chunk() else { return decode(rest, 0) };
    let [first, second, third, fourth] = [first, second, third, fourth].map(u32::from);
    Some(match first {
        0x00..=0x7F => (first, 1),
        0x80..=0xDF => ((first & 0x1F) << 6 | second & 0x3F, 2),
        0xE0..=0xEF => ((first & 0x0F) << 12 | (second & 0x3F) << 6 | third & 0x3F, 3),
        _ => ((first & 0x07) << 18 | (second & 0x3F) << 12 | (third & 0x3F) << 6 | fourth & 0x3F, 4),
    })
}

/// Appends six bits per continuation byte; `None` if a byte is not one.
#[inline]
fn append<const N: usize>(lead_bits: u32, continuation: &[u8; N]) -> Option<u32> {
    continuation.iter().try_fold(lead_bits, |code_point, &byte| {
        (byte & 0xC0 == 0x80).then_some(code_point << 6 | u32::from(byte & 0x3F))
    })
}

/// Like [`decode`], but returns U+FFFD of length 1 for a byte that does not start a code point, and of length 4 for a
/// code point beyond U+10FFFF.
#[inline]
pub fn decode_lossy(text: &[u8], at: usize) -> (u32, usize) {
    match decode(text, at) {
        Some((code_point, len)) if code_point <= LAST_CODE_POINT => (code_point, len),
        Some((_, len)) => (REPLACEMENT, len),
        None => (REPLACEMENT, 1),
    }
}

/// The code points of a text as [`decode_lossy`] reads them, each with its range of bytes.
pub fn code_points(text: &[u8]) -> impl Iterator<Item = (u32, std::ops::Range<usize>)> {
    let mut end = 0;
    std::iter::from_fn(move || {
        let start = end;
        (start < text.len()).then(|| {
            let (code_point, len) = decode_lossy(text, start);
            end += len;
            (code_point, start..end)
        })
    })
}

/// Writes a code point, or a surrogate; U+FFFD for a number beyond U+10FFFF.
#[inline]
pub fn encode(code_point: u32, out: &mut [u8; 4]) -> &[u8] {
    let six_bits = |shift: u32| 0x80 | (code_point >> shift & 0x3F) as u8;
    let (bytes, len) = match code_point {
        0x00..=0x7F => ([code_point as u8, 0, 0, 0], 1),
        0x80..=0x7FF => ([0xC0 | (code_point >> 6) as u8, six_bits(0), 0, 0], 2),
        0x800..=0xFFFF => ([0xE0 | (code_point >> 12) as u8, six_bits(6), six_bits(0), 0], 3),
        0x10000..=LAST_CODE_POINT => ([0xF0 | (code_point >> 18) as u8, six_bits(12), six_bits(6), six_bits(0)], 4),
        _ => return encode(REPLACEMENT, out),
    };
    *out = bytes;
    &out[..len]
}

/// The length of a text without a final sequence that more bytes may complete.
pub fn complete_len(text: &[u8]) -> usize {
    for (back, &byte) in (1..4).zip(text.iter().rev()) {
        if byte & 0xC0 != 0x80 {
            return if sequence_len(byte) > back { text.len() - back } else { text.len() };
        }
    }
    text.len()
}

/// The stretches of a text that are valid UTF-8, and in which characters start at the same positions even if an invalid
/// lead byte before them swallows bytes. With `is_utf8`, all characters but the last are known to be valid.
pub(crate) fn sure_stretches(text: &[u8], is_utf8: bool) -> Vec<std::ops::Range<usize>> {
    if is_utf8 {
        return std::iter::once(0..complete_len(text)).collect();
    }
    let mut stretches = Vec::new();
    let mut at = 0;
    for chunk in text.utf8_chunks() {
        let end = at + chunk.valid().len();
        // An earlier sequence has at most four bytes, so it ends here or inside the character at this position.
        let mut start = if at == 0 { 0 } else { at + 3 };
        while start < end && !is_boundary(text, start) {
            start += 1;
        }
        if start < end {
            stretches.push(start..end);
        }
        at = end + chunk.invalid().len();
    }
    stretches
}

/// The end of the last character of `text` that `decode` accepts; 0 if there is none. `decode` takes a position in the
/// text, and also returns the length of the character there, which is that of [`decode_lossy`].
pub(crate) fn last_end(text: &[u8], decode: impl Fn(usize) -> (bool, usize)) -> usize {
    let mut end = complete_len(text);
    let mut ticker = Ticker::default();
    while end > 0 {
        // A character starts here, whatever is before it.
        let start = floor(text, end - 1);
        let mut at = start;
        let mut last = 0;
        while at < end {
            ticker.tick();
            let (is_accepted, len) = decode(at);
            at += len;
            last = if is_accepted { at } else { last };
        }
        if last > 0 {
            return last;
        }
        end = start;
    }
    0
}

/// The start of the character at byte `at`, or the end of the text if that is earlier.
pub fn floor(text: &[u8], at: usize) -> usize {
    let mut start = at.min(text.len());
    while start > 0 && !is_boundary(text, start) {
        start -= 1;
    }
    start
}

/// Whether a character of valid UTF-8 starts at byte `at`, or the text ends there.
#[inline]
pub fn is_boundary(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)
}

#[cfg(test)]
mod tests {
    use super::{REPLACEMENT, decode, decode_lossy, decode_valid, encode, sequence_len};
    use proptest::prelude::*;

    /// The rule in terms of bit strings: a lead of n ones and a zero, then n - 1 bytes that start with 10.
    fn naive(text: &[u8]) -> Option<(u32, usize)> {
        let bits: Vec<String> = text.iter().map(|byte| format!("{byte:08b}")).collect();
        let len = match bits.first()?.find('0')? {
            0 => return Some((text[0].into(), 1)),
            ones @ 2..=4 => ones,
            _ => return None,
        };
        let mut code_point = bits[0][len..].to_owned();
        for byte in bits.get(1..len)? {
            code_point.push_str(byte.strip_prefix("10")?);
        }
        Some((u32::from_str_radix(&code_point, 2).ok()?, len))
    }

    fn check(text: &[u8]) {
        let expected = naive(text);
        assert_eq!(decode(text, 0), expected, "{text:02x?}");
        assert_eq!(decode(&[b"!", text].concat(), 1), expected, "{text:02x?}");
        let lossy = match expected {
            Some((0x110000.., len)) => (REPLACEMENT, len),
            Some(found) => found,
            None => (REPLACEMENT, 1),
        };
        assert_eq!(decode_lossy(text, 0), lossy, "{text:02x?}");
        if let Ok(valid) = std::str::from_utf8(text) {
            for rest in ["", "abc", "\u{10FFFF}"] {
                let text = [valid, rest].concat();
                assert_eq!(decode_valid(text.as_bytes(), 0), decode(text.as_bytes(), 0), "{text:?}");
            }
        }
        if let Some((_, len)) = expected {
            assert_eq!(sequence_len(text[0]), len, "{text:02x?}");
        }
    }

    #[test]
    fn every_sequence_of_one_and_two_bytes() {
        for first in 0..=255 {
            check(&[first]);
            for second in 0..=255 {
                check(&[first, second]);
            }
        }
    }

    proptest! {
        #[test]
        fn any_character(character: char) {
            check(character.to_string().as_bytes());
        }

        #[test]
        fn sequences_of_any_bytes(text in prop::collection::vec(any::<u8>(), 0..6)) {
            check(&text);
        }

        #[test]
        fn sequences_that_start_like_long_ones(lead in 0xE0u8.., rest in prop::collection::vec(0x7Eu8..=0xC1, 1..5)) {
            check(&[&[lead], &rest[..]].concat());
        }
    }

    #[test]
    fn the_end_is_no_code_point() {
        assert_eq!(decode(b"", 0), None);
        assert_eq!(decode(b"a", 1), None);
        assert_eq!(decode(b"a", usize::MAX), None);
    }

    #[test]
    fn every_code_point_encodes_and_decodes() {
        let mut buffer = [0; 4];
        for code_point in 0..0x110000 {
            let bytes = encode(code_point, &mut buffer);
            if let Some(char) = char::from_u32(code_point) {
                assert_eq!(bytes, char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            assert_eq!(decode(bytes, 0), Some((code_point, bytes.len())));
        }
        assert_eq!(encode(0x110000, &mut buffer), "\u{FFFD}".as_bytes());
        assert_eq!(encode(u32::MAX, &mut buffer), "\u{FFFD}".as_bytes());
    }

    #[test]
    fn the_length_follows_from_the_lead_byte() {
        let lens = [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4];
        for lead in 0..=255u8 {
            assert_eq!(sequence_len(lead), lens[usize::from(lead >> 4)]);
        }
    }
}
