//! Bytes that know who wrote each of them.
//!
//! A [`Text`] is cut into *runs*: stretches with one [`Origin`]. Every operation of the template language carries the
//! origins along, so that what a caller wrote never passes for text of the template.
//!
//! A run also knows whether a *part* begins with it. Parts are what llama.cpp's strings consist of (`jinja::string`):
//! concatenation appends parts, and `capitalize` and `title` work on each part by itself, which shows in the text.
//!
//! Source: `common/jinja/string.cpp` of llama.cpp. Deviations: 1. An origin says which message a byte belongs to,
//! and not only whether the caller wrote it. 2. Origins survive `split`, `join`, `replace` and `tojson`, where llama.cpp's
//! flag gets lost. 3. There are no empty parts.
//!
//! Time: each operation takes O(bytes + runs) of what it reads and writes.

use std::fmt;
use std::ops::Range;

/// Who wrote a byte: the template or the caller, and for which message.
///
/// Bits 0 to 27: one more than the number of a message, or 0 if there is none. It is the message that the caller's
/// string is in, or, for text of the template, that in whose turn of a loop it was written. Bit 28: the caller's, of the
/// content of the message. Bit 29: a media marker, whose number takes the place of that of a message. Bit 30: written
/// inside `{% generation %}`. Bit 31: the caller's.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Origin(u32);

const NUMBER: u32 = (1 << 28) - 1;
const CONTENT: u32 = 1 << 28;
const MARKER: u32 = 1 << 29;
const GENERATED: u32 = 1 << 30;
const CALLER: u32 = 1 << 31;

impl Origin {
    /// The template, outside all loops over messages.
    pub const TEMPLATE: Self = Self(0);
    /// The caller, outside of messages.
    pub const CALLER: Self = Self(CALLER);

    /// The caller, in this message.
    pub fn caller(message: usize) -> Self {
        Self(CALLER | Self::turn(message).0)
    }

    /// The caller, in the content of this message.
    pub(crate) fn content(message: usize) -> Self {
        Self(CONTENT | Self::caller(message).0)
    }

    /// The caller, whose marker of an image, a sound or a film has this number.
    pub(crate) fn marker(number: usize) -> Self {
        Self(MARKER | Self::caller(number).0)
    }

    /// The template, in the turn of a loop whose variable is this message.
    pub fn turn(message: usize) -> Self {
        Self((message + 1).min(NUMBER as usize) as u32)
    }

    /// Whether a caller wrote it.
    pub fn is_caller(self) -> bool {
        self.0 & CALLER != 0
    }

    /// Whether it is from the content of a message of the caller's.
    pub fn is_content(self) -> bool {
        self.0 & CONTENT != 0
    }

    /// The number of a media marker.
    pub(crate) fn number_of_marker(self) -> Option<usize> {
        if self.0 & MARKER != 0 { ((self.0 & NUMBER) as usize).checked_sub(1) } else { None }
    }

    /// The message that it belongs to: the one with the caller's string, or in whose turn the template wrote it.
    pub fn message(self) -> Option<usize> {
        if self.0 & MARKER == 0 { ((self.0 & NUMBER) as usize).checked_sub(1) } else { None }
    }

    /// The message with the caller's string.
    pub(crate) fn message_of_caller(self) -> Option<usize> {
        self.message().filter(|_| self.is_caller())
    }

    /// Whether it was written inside `{% generation %}`.
    pub fn is_generated(self) -> bool {
        self.0 & GENERATED != 0
    }

    /// The same, inside `{% generation %}`.
    pub(crate) fn generated(self) -> Self {
        Self(self.0 | GENERATED)
    }
}

/// The memory that a run takes, for budgets.
pub(crate) const RUN_BYTES: usize = size_of::<(u32, Origin, bool)>();

/// A string of bytes, each with its origin. At most 4 GiB.
#[derive(Clone, Default, Debug)]
pub struct Text {
    bytes: Vec<u8>,
    /// The origin of the first run.
    first: Origin,
    /// Where each further run starts, ascending and all in `1..bytes.len()`, its origin, and whether a part begins with it.
    rest: Vec<(u32, Origin, bool)>,
}

impl Text {
    /// A text with one origin.
    pub fn new(bytes: impl Into<Vec<u8>>, origin: Origin) -> Self {
        Self { bytes: bytes.into(), first: origin, rest: Vec::new() }
    }

    /// A text that the template wrote.
    pub fn template(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(bytes, Origin::TEMPLATE)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, without the origins.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The memory that it takes, for budgets.
    pub(crate) fn num_bytes(&self) -> usize {
        self.len() + RUN_BYTES * (1 + self.rest.len())
    }

    /// The origin of the first byte.
    pub fn first_origin(&self) -> Origin {
        self.first
    }

    /// The origin of the last byte.
    pub fn last_origin(&self) -> Origin {
        self.rest.last().map_or(self.first, |run| run.1)
    }

    /// The origin of the byte at `at`, or of the last one if there are fewer. O(log(runs)).
    pub fn origin_at(&self, at: usize) -> Origin {
        let next = self.rest.partition_point(|run| run.0 as usize <= at);
        next.checked_sub(1).map_or(self.first, |last| self.rest[last].1)
    }

    /// The runs: bytes and their origin, in order. None is empty. Neighbours may have the same origin.
    pub fn runs(&self) -> impl Iterator<Item = (Range<usize>, Origin)> + '_ {
        self.runs_in(0..self.len())
    }

    /// The runs of a range, cut at its ends.
    pub(crate) fn runs_in(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, Origin)> + '_ {
        self.parted_runs(range).map(|(range, origin, _)| (range, origin))
    }

    /// The run of the byte at `at`, if there is one. O(log(runs)).
    pub(crate) fn run_at(&self, at: usize) -> Option<(Range<usize>, Origin)> {
        let next = self.rest.partition_point(|run| run.0 as usize <= at);
        let start = next.checked_sub(1).map_or(0, |last| self.rest[last].0 as usize);
        let end = self.rest.get(next).map_or(self.len(), |run| run.0 as usize);
        (at < end).then(|| (start..end, self.origin_at(at)))
    }

    /// For each of `count` numbers, from the first to the last byte of the runs that have it.
    pub(crate) fn hulls(
        &self,
        count: usize,
        number: impl Fn(&Range<usize>, Origin) -> Option<usize>,
    ) -> Vec<Option<Range<usize>>> {
        let mut hulls: Vec<Option<Range<usize>>> = vec![None; count];
        for (run, origin) in self.runs() {
            if let Some(hull) = number(&run, origin).and_then(|number| hulls.get_mut(number)) {
                hull.get_or_insert(run.clone()).end = run.end;
            }
        }
        hulls
    }

    /// The longest stretches whose origins have the same key, with that key.
    pub fn stretches<K: PartialEq>(&self, key: impl Fn(Origin) -> K) -> Vec<(Range<usize>, K)> {
        let mut stretches: Vec<(Range<usize>, K)> = Vec::new();
        for (run, origin) in self.runs() {
            let key = key(origin);
            match stretches.last_mut() {
                Some((last, last_key)) if *last_key == key => last.end = run.end,
                _ => stretches.push((run, key)),
            }
        }
        stretches
    }

    /// The same, and whether a part begins with each. The first one does.
    fn parted_runs(&self, range: Range<usize>) -> impl Iterator<Item = (Range<usize>, Origin, bool)> + '_ {
        let mut next = self.rest.partition_point(|run| run.0 as usize <= range.start);
        let mut run = (range.start, next.checked_sub(1).map_or(self.first, |last| self.rest[last].1), true);
        std::iter::from_fn(move || {
            let (start, origin, begins_part) = run;
            run = self.rest.get(next).map_or((range.end, origin, false), |run| (run.0 as usize, run.1, run.2));
            next += 1;
            let end = run.0.min(range.end);
            (start < end).then_some((start..end, origin, begins_part))
        })
    }

    /// The parts, as ranges of bytes.
    pub(crate) fn parts(&self) -> Vec<Range<usize>> {
        let mut starts = vec![0];
        starts.extend(self.rest.iter().filter(|run| run.2).map(|run| run.0 as usize));
        let ends = starts.iter().skip(1).copied().chain([self.bytes.len()]);
        starts.iter().zip(ends).map(|(&start, end)| start..end).collect()
    }

    /// The origin of what is read from this text: that of its first caller's byte, or else the template.
    pub(crate) fn main_origin(&self) -> Origin {
        self.runs().map(|run| run.1).find(|origin| origin.is_caller()).unwrap_or(Origin::TEMPLATE)
    }

    /// Appends bytes as a part.
    pub fn push(&mut self, bytes: &[u8], origin: Origin) {
        self.push_run(bytes, origin, true);
    }

    /// Appends bytes to the last part.
    pub fn extend(&mut self, bytes: &[u8], origin: Origin) {
        self.push_run(bytes, origin, false);
    }

    fn push_run(&mut self, bytes: &[u8], origin: Origin, begins_part: bool) {
        if bytes.is_empty() {
            return;
        }
        if self.bytes.is_empty() {
            self.first = origin;
            self.rest.clear();
        } else if begins_part || self.last_origin() != origin {
            self.rest.push((self.bytes.len() as u32, origin, begins_part));
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends all parts of another text.
    pub fn append(&mut self, other: &Self) {
        self.append_as(other, |origin| origin);
    }

    /// Appends all parts of another text with other origins.
    pub(crate) fn append_as(&mut self, other: &Self, change: impl Fn(Origin) -> Origin) {
        for (run, origin, begins_part) in other.parted_runs(0..other.len()) {
            self.push_run(&other.bytes[run], change(origin), begins_part);
        }
    }

    /// Appends the bytes of another text to the last part.
    pub fn extend_with(&mut self, other: &Self) {
        self.extend_with_range(other, 0..other.len());
    }

    /// Appends the bytes of a range of another text to the last part.
    pub fn extend_with_range(&mut self, other: &Self, range: Range<usize>) {
        for (run, origin) in other.runs_in(range) {
            self.push_run(&other.bytes[run], origin, false);
        }
    }

    /// Appends the bytes of another text as a string of JSON to the last part. The quotes have the origin `near`. In
    /// ASCII, what is not UTF-8 is replaced byte by byte.
    pub(crate) fn extend_quoted(&mut self, other: &Self, near: Origin, is_ascii: bool) {
        self.extend(b"\"", near);
        let mut copied = 0;
        for (at, &byte) in other.bytes.iter().enumerate() {
            let code: String;
            let mut len = 1;
            let escape = match byte {
                b'"' => "\\\"",
                b'\\' => "\\\\",
                b'\n' => "\\n",
                b'\r' => "\\r",
                b'\t' => "\\t",
                0x08 => "\\b",
                0x0C => "\\f",
                0..0x20 | 0x80.. if byte.is_ascii() || is_ascii && at >= copied => {
                    let chunk = other.bytes[at..other.len().min(at + 4)].utf8_chunks().next();
                    let char = chunk.and_then(|chunk| chunk.valid().chars().next());
                    len = char.map_or(1, char::len_utf8);
                    let char = char.unwrap_or(char::REPLACEMENT_CHARACTER);
                    code = char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect();
                    &code
                }
                _ => continue,
            };
            self.extend_with_range(other, copied..at);
            self.extend(escape.as_bytes(), other.origin_at(at));
            copied = at + len;
        }
        self.extend_with_range(other, copied..other.len());
        self.extend(b"\"", near);
    }

    /// Says who wrote all of it, as one part.
    pub(crate) fn set_origin(&mut self, origin: Origin) {
        self.first = origin;
        self.rest.clear();
    }

    /// Cuts everything off after `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.rest.truncate(self.rest.partition_point(|run| (run.0 as usize) < len));
    }

    /// The bytes of a range, with their origins and parts.
    pub fn slice(&self, range: Range<usize>) -> Self {
        let runs = self.parted_runs(range.clone()).skip(1);
        let rest = runs.map(|(run, origin, part)| ((run.start - range.start) as u32, origin, part)).collect();
        Self { first: self.origin_at(range.start), rest, bytes: self.bytes[range].to_vec() }
    }

    /// In another case, which leaves each byte where it is.
    pub(crate) fn with_case(&self, change: fn(&[u8]) -> Vec<u8>) -> Self {
        Self { bytes: change(&self.bytes), first: self.first, rest: self.rest.clone() }
    }

    /// In lower case, except for the first letter of each part, or of each of its words.
    pub(crate) fn capitalize(&self, each_word: bool) -> Self {
        let mut text = self.with_case(<[u8]>::to_ascii_lowercase);
        for part in self.parts() {
            let mut begins = true;
            for byte in &mut text.bytes[part] {
                if each_word && is_space(*byte) {
                    begins = true;
                } else if std::mem::take(&mut begins) {
                    byte.make_ascii_uppercase();
                }
            }
        }
        text
    }

    /// Without bytes of a kind at the ends that are asked for.
    pub fn strip(&self, left: bool, right: bool, is_stripped: impl Fn(u8) -> bool) -> Self {
        let keeps = |byte: &u8| !is_stripped(*byte);
        let end = if right { self.bytes.iter().rposition(keeps).map_or(0, |last| last + 1) } else { self.len() };
        let start = if left { self.bytes[..end].iter().position(keeps).unwrap_or(end) } else { 0 };
        self.slice(start..end)
    }
}

impl From<&'static str> for Text {
    /// A text that the template wrote.
    fn from(text: &'static str) -> Self {
        Self::template(text)
    }
}

impl fmt::Display for Text {
    /// The bytes, with U+FFFD where they are not UTF-8.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.bytes))
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Text {
    /// Whether the bytes are equal.
    fn eq(&self, other: &T) -> bool {
        *self.bytes == *other.as_ref()
    }
}

impl Eq for Text {}

/// What C calls white space.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// How many bytes at the start of two texts are equal.
pub(crate) fn num_shared(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed() -> Text {
        let mut text = Text::template("ab");
        text.push(b"CD", Origin::caller(7));
        text.extend(b"ef", Origin::TEMPLATE);
        text
    }

    fn runs(text: &Text) -> Vec<(&str, Option<usize>)> {
        let bytes = text.as_bytes();
        text.runs().map(|(run, origin)| (std::str::from_utf8(&bytes[run]).unwrap(), origin.message())).collect()
    }

    #[test]
    fn slices_keep_origins() {
        let text = mixed();
        assert_eq!(runs(&text), [("ab", None), ("CD", Some(7)), ("ef", None)]);
        assert_eq!(runs(&text.slice(1..3)), [("b", None), ("C", Some(7))]);
        assert_eq!(runs(&text.slice(2..4)), [("CD", Some(7))]);
        assert_eq!(runs(&text.slice(5..5)), []);
        let mut head = text.clone();
        let tail = text.slice(3..6);
        head.truncate(3);
        assert_eq!(
            (runs(&head), runs(&tail)),
            (vec![("ab", None), ("C", Some(7))], vec![("D", Some(7)), ("ef", None)])
        );
    }

    #[test]
    fn appended_parts_are_capitalized_by_themselves() {
        let mut text = Text::template("one ");
        text.append(&Text::template("two three"));
        assert_eq!(text.capitalize(false), "One Two three");
        assert_eq!(mixed().capitalize(true), "AbCdef");
        let mut merged = Text::default();
        merged.extend_with(&text);
        assert_eq!(merged.capitalize(false), "One two three");
        assert_eq!(runs(&merged), [("one two three", None)]);
    }

    #[test]
    fn strips_across_runs() {
        let mut text = Text::template(" \n");
        text.push(b" x y ", Origin::caller(1));
        text.push(b"\t ", Origin::TEMPLATE);
        assert_eq!(runs(&text.strip(true, true, is_space)), [("x y", Some(1))]);
        assert_eq!(text.strip(true, false, is_space), "x y \t ");
        assert_eq!(text.strip(true, true, |byte| b" \n\txy".contains(&byte)), "");
    }

    #[test]
    fn a_cut_text_can_grow_again() {
        let mut text = mixed();
        text.truncate(2);
        text.push(b"x", Origin::caller(1));
        assert_eq!(runs(&text), [("ab", None), ("x", Some(1))]);
        text.truncate(0);
        text.append(&mixed());
        assert_eq!(runs(&text), runs(&mixed()));
    }
}
