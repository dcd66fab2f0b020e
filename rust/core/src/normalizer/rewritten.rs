//! A text that was changed before it is tokenized, and where each of its bytes came from.

use std::borrow::Cow;
use std::ops::Range;

use crate::sink::{Sink, TokenId};
use crate::unicode::utf8;
use crate::vocabulary::spelling::ESCAPED_SPACE;

/// A changed text with its origins, which are kept only where spans are asked for.
#[derive(Debug)]
pub(crate) struct Rewritten<'a> {
    pub text: Cow<'a, [u8]>,
    /// For each byte of a changed text the place of its origin: start and length. Empty where nothing changed.
    origins: Vec<(u32, u8)>,
    keep_origins: bool,
    /// Where the original text begins in the whole input.
    start: usize,
}

impl<'a> Rewritten<'a> {
    /// An empty text, to be filled by [`Rewritten::push`].
    pub(crate) fn empty(start: usize, keep_origins: bool) -> Self {
        Self { text: Cow::Owned(Vec::new()), origins: Vec::new(), keep_origins, start }
    }

    /// `text` as llama.cpp re-encodes it where it works on code points: UTF-8 in its shortest form.
    ///
    /// Source: llama.cpp `src/unicode.cpp`, `unicode_cpts_from_utf8` followed by `unicode_cpt_to_utf8`. An invalid byte
    /// becomes U+FFFD, an overlong form becomes short, a surrogate stays as it is. Valid UTF-8 is not copied.
    ///
    /// Deviations: (1) a code point beyond U+10FFFF, on which llama.cpp aborts, becomes U+FFFD.
    pub(crate) fn canonical(text: &'a [u8], start: usize, is_utf8: bool, keep_origins: bool) -> Self {
        if is_utf8 || std::str::from_utf8(text).is_ok() {
            return Self { text: Cow::Borrowed(text), origins: Vec::new(), keep_origins, start };
        }
        let mut canonical = Self::empty(start, keep_origins);
        let (mut at, mut buffer) = (0, [0; 4]);
        while at < text.len() {
            let (code_point, len) = utf8::decode_lossy(text, at);
            canonical.push(utf8::encode(code_point, &mut buffer), at, len);
            at += len;
        }
        canonical
    }

    /// `text` with its spaces escaped, after one that comes from no byte where `is_prefixed` says so.
    pub(crate) fn escaped(text: &[u8], start: usize, is_prefixed: bool, keep_origins: bool) -> Self {
        let mut escaped = Self::empty(start, keep_origins);
        if is_prefixed {
            escaped.push(ESCAPED_SPACE, 0, 0);
        }
        let mut from = 0;
        for space in memchr::memchr_iter(b' ', text) {
            escaped.push_kept(&text[from..space], from);
            escaped.push(ESCAPED_SPACE, space, 1);
            from = space + 1;
        }
        escaped.push_kept(&text[from..], from);
        escaped
    }

    /// Makes the text empty again, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.text.to_mut().clear();
        self.origins.clear();
    }

    /// Appends what `len` bytes of the original text at `at` became.
    pub(crate) fn push(&mut self, bytes: &[u8], at: usize, len: usize) {
        self.text.to_mut().extend_from_slice(bytes);
        if self.keep_origins {
            // What keeps its length keeps the place of each byte.
            let origin = |byte| if bytes.len() == len { (at + byte, 1) } else { (at, len) };
            self.origins.extend((0..bytes.len()).map(origin).map(|(at, len)| (at as u32, len as u8)));
        }
    }

    /// Appends a stretch of the original text that stays as it is.
    pub(crate) fn push_kept(&mut self, bytes: &[u8], at: usize) {
        self.text.to_mut().extend_from_slice(bytes);
        if self.keep_origins {
            self.origins.extend((at..at + bytes.len()).map(|at| (at as u32, 1)));
        }
    }

    /// The range of the whole input that a range of this text came from.
    pub(crate) fn origin(&self, range: Range<usize>) -> Range<usize> {
        let range = match (self.origins.get(range.start), self.origins.get(range.end.wrapping_sub(1))) {
            (Some(&(first, _)), Some(&(last, len))) => first as usize..last as usize + usize::from(len),
            _ => range,
        };
        range.start + self.start..range.end + self.start
    }
}

/// Hands tokens on with their spans led back to the whole input.
pub(crate) struct Traced<'a, S> {
    pub sink: &'a mut S,
    pub text: &'a Rewritten<'a>,
}

impl<S: Sink> Sink for Traced<'_, S> {
    const SPANS: bool = S::SPANS;

    #[inline(always)]
    fn push(&mut self, id: TokenId, span: Range<usize>) {
        self.sink.push(id, if S::SPANS { self.text.origin(span) } else { span });
    }

    #[inline(always)]
    fn push_all(&mut self, ids: &[TokenId]) {
        self.sink.push_all(ids);
    }
}

#[cfg(test)]
mod tests {
    use super::Rewritten;
    use std::borrow::Cow;

    #[test]
    fn bytes_become_shortest_forms_and_know_their_origin() {
        let text = b"a\xFF\xC1\x81\xED\xA0\x80\xF4\x90\x80\x80z";
        let canonical = Rewritten::canonical(text, 0, false, true);
        assert_eq!(&canonical.text[..], b"a\xEF\xBF\xBDA\xED\xA0\x80\xEF\xBF\xBDz");
        assert_eq!(canonical.origin(0..1), 0..1);
        assert_eq!(canonical.origin(2..4), 1..2);
        assert_eq!(canonical.origin(4..5), 2..4);
        assert_eq!(canonical.origin(5..6), 4..5);
        assert_eq!(canonical.origin(8..12), 7..12);
    }

    #[test]
    fn valid_text_is_not_copied() {
        let canonical = Rewritten::canonical("é".as_bytes(), 10, false, true);
        assert!(matches!(canonical.text, Cow::Borrowed(_)));
        assert_eq!(canonical.origin(1..2), 11..12);
    }
}
