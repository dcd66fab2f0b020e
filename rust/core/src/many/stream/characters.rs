//! Decodes UTF-8 part by part: invalid bytes become U+FFFD, and an incomplete character at the end is held back.
//!
//! Each maximal prefix of an unfinished character becomes one U+FFFD, as in Python's `bytes.decode(errors="replace")`
//! and in `String::from_utf8_lossy`. Time: O(bytes), however they are cut.

use std::str::from_utf8;

use crate::work::memory::append;

/// U+FFFD in UTF-8.
pub(super) const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();

/// The incomplete character at the end of the input so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Utf8Decoder {
    /// Its bytes so far, at most three.
    held: Vec<u8>,
}

impl Utf8Decoder {
    /// Takes more bytes and appends the complete characters.
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        if self.held.is_empty() && from_utf8(bytes).is_ok() {
            append(out, bytes);
        } else {
            self.join(bytes, out);
        }
    }

    /// Takes bytes that need not be UTF-8 by themselves.
    fn join(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let held = &mut self.held;
        append(held, bytes);
        let mut at = 0;
        let end = loop {
            let Err(error) = from_utf8(&held[at..]) else { break held.len() };
            let end = at + error.valid_up_to();
            let Some(len) = error.error_len() else { break end };
            append(out, &held[at..end]);
            append(out, REPLACEMENT);
            at = end + len;
        };
        append(out, &held[at..end]);
        held.drain(..end);
    }

    /// The bytes so far of an incomplete character at the end.
    #[inline]
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Ends the text: an incomplete character becomes one U+FFFD.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.held.is_empty() {
            append(out, REPLACEMENT);
            self.held.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Utf8Decoder;

    proptest! {
        #[test]
        fn parts_are_decoded_as_the_whole(
            parts in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..4),
                    prop::collection::vec(prop::sample::select(&b"a\x80\xA0\xC3\xE2\x82\xAC\xED\xF0\x9F\x98\xF4\x90"[..]), 0..6),
                    "[a\u{E9}\u{4E2D}\u{1F600}]{0,3}".prop_map(String::into_bytes),
                ],
                0..12,
            ),
        ) {
            let mut decoder = Utf8Decoder::default();
            let mut out = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                decoder.push(part, &mut out);
                // Only the incomplete character is held back.
                let so_far = parts[..=index].concat();
                let held = std::str::from_utf8(&so_far[so_far.len() - decoder.held().len()..]);
                prop_assert!(decoder.held().is_empty() || held.is_err_and(|error| error.error_len().is_none()));
                let known = String::from_utf8_lossy(&so_far[..so_far.len() - decoder.held().len()]).into_owned();
                prop_assert_eq!(&out, known.as_bytes());
            }
            decoder.flush(&mut out);
            let whole = parts.concat();
            prop_assert_eq!(String::from_utf8(out).expect("characters"), String::from_utf8_lossy(&whole));
        }
    }
}
