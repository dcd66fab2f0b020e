//! A rewritten text, with the span of the input that each of its bytes stands for.
//!
//! Every step that changes a text before it is tokenized (repairing UTF-8, escaping spaces, replacing characters,
//! stripping accents) writes a [`Rewritten`], and [`Traced`] maps the spans of tokens back through it. Origins are kept
//! only if spans are needed: 8 bytes per byte of text.

use std::borrow::Cow;
use std::ops::Range;

use crate::encode::sink::Sink;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::work::interrupt::{self, Ticker};
use crate::work::memory::{self, reserve};

/// A space that is not escaped, in a text in which other spaces will be: two bytes that canonical UTF-8 never has.
pub(crate) const RAW_SPACE: &[u8] = b"\xC0\xA0";

/// A rewritten text.
#[derive(Debug, Default)]
pub struct Rewritten<'a> {
    /// Its bytes.
    pub text: Cow<'a, [u8]>,
    /// The start and end of each byte's origin; empty if nothing changed or spans are not needed. A text is shorter
    /// than 2³¹ bytes.
    origins: Vec<(u32, u32)>,
    keeps_origins: bool,
    /// Where the original text starts in the whole input.
    start: usize,
}

impl<'a> Rewritten<'a> {
    /// A text that stays as it is.
    pub fn unchanged(text: &'a [u8], start: usize) -> Self {
        Self { text: Cow::Borrowed(text), start, ..Self::default() }
    }

    /// An empty text, to be pushed to.
    pub fn empty(start: usize, keeps_origins: bool) -> Self {
        Self { text: Cow::Owned(Vec::new()), keeps_origins, start, ..Self::default() }
    }

    /// A text to be pushed to, without origins.
    pub(crate) fn owned(text: Vec<u8>) -> Self {
        Self { text: Cow::Owned(text), ..Self::default() }
    }

    /// `text` as llama.cpp re-encodes it when it works on code points: UTF-8 in its shortest form.
    ///
    /// Source: llama.cpp `src/unicode.cpp`, `unicode_cpts_from_utf8` followed by `unicode_cpt_to_utf8`. An invalid byte
    /// becomes U+FFFD, an overlong form becomes the shortest, and a surrogate is unchanged. Valid UTF-8 is not copied.
    ///
    /// Deviations: (1) a code point beyond U+10FFFF, on which llama.cpp aborts, becomes U+FFFD.
    pub(crate) fn canonical(text: &'a [u8], start: usize, is_utf8: bool, keeps_origins: bool) -> Self {
        Self::canonical_except(text, start, is_utf8, keeps_origins, |_, _| None)
    }

    /// As [`Rewritten::canonical`], with exceptions: what a character becomes, given its code point and its bytes.
    pub(crate) fn canonical_except(
        text: &'a [u8],
        start: usize,
        is_utf8: bool,
        keeps_origins: bool,
        exception: impl Fn(u32, &'a [u8]) -> Option<&'a [u8]>,
    ) -> Self {
        if is_utf8 || utf8::is_valid(text) {
            return Self::unchanged(text, start);
        }
        let mut canonical = Self::empty(start, keeps_origins);
        for (code_point, range) in interrupt::ticking(utf8::code_points(text)) {
            let exception = exception(code_point, &text[range.clone()]);
            canonical.push_char(exception.unwrap_or(utf8::encode(code_point, &mut [0; 4])), range);
        }
        canonical
    }

    /// `text` with its spaces escaped, and one more space in front if `is_prefixed`.
    pub fn escaped(text: &[u8], start: usize, is_prefixed: bool, keeps_origins: bool) -> Self {
        let mut escaped = Self::empty(start, keeps_origins);
        if is_prefixed {
            escaped.push(ESCAPED_SPACE, 0..0);
        }
        let mut from = 0;
        let mut ticker = Ticker::default();
        for space in memchr::memchr_iter(b' ', text) {
            ticker.tick();
            escaped.push_kept(&text[from..space], from);
            escaped.push(ESCAPED_SPACE, space..space + 1);
            from = space + 1;
        }
        escaped.push_kept(&text[from..], from);
        escaped
    }

    /// Empties the text, but keeps its memory.
    pub(crate) fn reset(&mut self, start: usize, keeps_origins: bool) {
        self.text.to_mut().clear();
        self.origins.clear();
        (self.start, self.keeps_origins) = (start, keeps_origins);
    }

    /// Appends bytes that stand for `origin` as a whole.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], origin: Range<usize>) {
        self.append(bytes);
        if self.keeps_origins {
            let origin = (origin.start as u32, origin.end as u32);
            self.origins.extend(std::iter::repeat_n(origin, bytes.len()));
        }
    }

    /// Appends a code point that stands for `origin` as a whole.
    #[inline]
    pub fn push_code_point(&mut self, code_point: u32, origin: Range<usize>) {
        let mut buffer = [0; 4];
        let len = utf8::encode(code_point, &mut buffer).len();
        // Copying all four bytes is cheaper than copying the exact number.
        let text = self.append(&buffer);
        text.truncate(text.len() + len - buffer.len());
        if self.keeps_origins {
            let origin = (origin.start as u32, origin.end as u32);
            self.origins.extend(std::iter::repeat_n(origin, len));
        }
    }

    /// Appends bytes that stand one for one for the bytes of the original text at `at`.
    #[inline]
    pub fn push_kept(&mut self, bytes: &[u8], at: usize) {
        self.append(bytes);
        if self.keeps_origins {
            self.origins.extend((at..at + bytes.len()).map(|at| (at as u32, at as u32 + 1)));
        }
    }

    /// Appends bytes, after making room for them and their origins.
    #[inline(always)]
    fn append(&mut self, bytes: &[u8]) -> &mut Vec<u8> {
        if self.keeps_origins {
            reserve(&mut self.origins, bytes.len());
        }
        let text = self.text.to_mut();
        memory::append(text, bytes);
        text
    }

    /// Appends a character that stands for `origin`: byte for byte if its length has not changed.
    #[inline]
    pub fn push_char(&mut self, bytes: &[u8], origin: Range<usize>) {
        if bytes.len() == origin.len() { self.push_kept(bytes, origin.start) } else { self.push(bytes, origin) }
    }

    /// A part of the text.
    pub(crate) fn part(&self, range: Range<usize>) -> Rewritten<'_> {
        let origins = self.origins.get(range.clone()).unwrap_or_default().to_vec();
        Rewritten { text: Cow::Borrowed(&self.text[range]), origins, ..*self }
    }

    /// The span of the whole input that a range of this text comes from.
    pub fn span(&self, range: Range<usize>) -> Range<usize> {
        let range = match (self.origins.get(range.start), self.origins.get(range.end.wrapping_sub(1))) {
            (Some(first), Some(last)) => first.0 as usize..last.1 as usize,
            _ => range,
        };
        range.start + self.start..range.end + self.start
    }
}

/// A sink for tokens of a rewritten text. Maps their spans back to the whole input.
pub(crate) struct Traced<'a, S> {
    pub sink: &'a mut S,
    pub text: &'a Rewritten<'a>,
}

impl<S: Sink> Sink for Traced<'_, S> {
    const SPANS: bool = S::SPANS;
    const WORDS: bool = S::WORDS;

    #[inline(always)]
    fn begin_word(&mut self) {
        self.sink.begin_word();
    }

    #[inline(always)]
    fn push(&mut self, id: TokenId, span: Range<usize>) {
        self.sink.push(id, if S::SPANS { self.text.span(span) } else { span });
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
    fn only_an_overlong_space_is_raw() {
        let text = b"a \xC0\xA0\xE0\x80\xA0\xF0\x80\x80\xA0\xC1\x81";
        assert_eq!(&Rewritten::canonical(text, 0, false, false).text[..], b"a    A");
        let raw = Rewritten::canonical_except(text, 0, false, true, |code_point, bytes| {
            (code_point == u32::from(b' ') && bytes.len() > 1).then_some(super::RAW_SPACE)
        });
        assert_eq!(&raw.text[..], b"a \xC0\xA0\xC0\xA0\xC0\xA0A");
        assert_eq!(raw.span(6..8), 7..11);
    }

    #[test]
    fn canonical_text_has_shortest_forms_and_knows_their_origin() {
        let text = b"a\xFF\xC1\x81\xED\xA0\x80\xF4\x90\x80\x80z";
        let canonical = Rewritten::canonical(text, 0, false, true);
        assert_eq!(&canonical.text[..], b"a\xEF\xBF\xBDA\xED\xA0\x80\xEF\xBF\xBDz");
        assert_eq!(canonical.span(0..1), 0..1);
        assert_eq!(canonical.span(2..4), 1..2);
        assert_eq!(canonical.span(4..5), 2..4);
        assert_eq!(canonical.span(5..6), 4..5);
        assert_eq!(canonical.span(8..12), 7..12);
    }

    #[test]
    fn valid_text_is_not_copied() {
        let canonical = Rewritten::canonical("é".as_bytes(), 10, false, true);
        assert!(matches!(canonical.text, Cow::Borrowed(_)));
        assert_eq!(canonical.span(1..2), 11..12);
    }

    #[test]
    fn an_added_space_has_no_bytes_of_the_input() {
        let escaped = Rewritten::escaped(b"a b", 10, true, true);
        assert_eq!(&escaped.text[..], "▁a▁b".as_bytes());
        let spans = [0..4, 0..3, 4..8, 4..7].map(|range| escaped.span(range));
        assert_eq!(spans, [10..11, 10..10, 11..13, 11..12]);
    }
}
