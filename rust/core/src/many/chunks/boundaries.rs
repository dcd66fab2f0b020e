//! Finds boundaries of a text: paragraphs, lines, sentences, words and characters.
//!
//! Sentences, words and characters (extended grapheme clusters) follow Unicode Standard Annex #29, as implemented by
//! the crate `unicode-segmentation`. A cut goes after the whitespace between two units, so the next unit starts with
//! its first character. A search looks only at a window of the text, so it takes O(window).
//!
//! Markdown and Python depend on the whole text: a [`Structure`] has their boundaries.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::unicode::utf8::floor;

/// The kinds of boundaries, coarsest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Boundary {
    /// At positions that the caller has found: the list of this number.
    Listed(usize),
    /// Before a heading of Markdown. No chunk ends inside a fenced block that fits.
    Markdown,
    /// Before a top-level block of Python. No chunk ends inside a string or brackets that fit.
    Python,
    /// After a blank line.
    Paragraph,
    /// After a newline.
    Line,
    /// Before a sentence.
    Sentence,
    /// Before a word.
    Word,
    /// Between two user-perceived characters.
    Character,
}

/// What reading a whole text finds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Structure {
    /// The positions before headings or blocks, ascending.
    pub boundaries: Vec<usize>,
    /// What should not be cut, in any order; ranges may contain others.
    pub wholes: Vec<Range<usize>>,
}

/// How far text around a window can affect its boundaries, in bytes.
const AROUND: usize = 256;
/// The longest stretch to search for a word, and the first one for a character, in bytes.
const LOCAL: usize = 1024;

impl Boundary {
    /// All kinds with their names, coarsest first.
    pub const ALL: [(&'static str, Self); 7] = [
        ("markdown", Self::Markdown),
        ("python", Self::Python),
        ("paragraph", Self::Paragraph),
        ("line", Self::Line),
        ("sentence", Self::Sentence),
        ("word", Self::Word),
        ("character", Self::Character),
    ];

    /// The last boundary of a kind that needs only the text around it: after `low` and not after `high`; both are code
    /// point boundaries of `text`.
    pub(super) fn last(self, text: &str, low: usize, high: usize) -> Option<usize> {
        let mut len = if self <= Self::Sentence { high - low } else { LOCAL };
        loop {
            let from = floor(text.as_bytes(), high.saturating_sub(len)).max(low);
            let last = self.between(text, from, high).last();
            if last.is_some() || self != Self::Character || from == low {
                return last;
            }
            len *= 2;
        }
    }

    /// The first boundary after `low` and not after `high`.
    pub(super) fn first(self, text: &str, low: usize, high: usize) -> Option<usize> {
        let high = if self == Self::Word { floor(text.as_bytes(), low + LOCAL).min(high) } else { high };
        self.between(text, low, high).next()
    }

    /// All boundaries after `low` and not after `high`.
    pub(super) fn between(self, text: &str, low: usize, high: usize) -> Box<dyn Iterator<Item = usize> + '_> {
        if self <= Self::Line {
            let ends = memchr::memchr_iter(b'\n', &text.as_bytes()[low..high]).map(move |at| low + at + 1);
            return Box::new(ends.filter(move |&at| self == Self::Line || is_paragraph(text, at)));
        }
        // A line starts a unit of every kind.
        let before = floor(text.as_bytes(), low.saturating_sub(AROUND));
        let start = memchr::memrchr(b'\n', &text.as_bytes()[before..low]).map_or(before, |at| before + at + 1);
        let window = &text[start..floor(text.as_bytes(), high + AROUND)];
        let units: Box<dyn Iterator<Item = (usize, &str)>> = match self {
            Self::Sentence => Box::new(window.split_sentence_bound_indices()),
            Self::Word => Box::new(window.split_word_bound_indices()),
            _ => Box::new(window.grapheme_indices(true)),
        };
        let is_start = move |&(at, unit): &(usize, &str)| match self {
            _ if start + at <= low => false,
            Self::Character => true,
            // Punctuation belongs to the word before it.
            Self::Word if !window[..at].ends_with(char::is_whitespace) => unit.starts_with(char::is_alphanumeric),
            _ => !unit.starts_with(char::is_whitespace),
        };
        Box::new(units.filter(is_start).map(move |(at, _)| start + at).take_while(move |&at| at <= high))
    }
}

/// Whether a position after a newline follows a blank line and does not precede another one.
fn is_paragraph(text: &str, at: usize) -> bool {
    let is_blank = |byte: &&u8| !matches!(byte, b' ' | b'\t' | b'\r');
    let (before, after) = text.as_bytes().split_at(at);
    let newline_before = before[..at - 1].iter().rev().take(LOCAL).find(is_blank) == Some(&b'\n');
    newline_before && after.iter().take(LOCAL).find(is_blank) != Some(&b'\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Boundary;

    const TEXT: &str =
        "Title\n\nOne sentence. Another, longer one!\r\n  \r\nA line\nand its next. \u{1F1E9}\u{1F1EA}e\u{301}";

    fn all(boundary: Boundary) -> Vec<&'static str> {
        let mut units = Vec::new();
        let mut start = 0;
        while let Some(end) = boundary.first(TEXT, start, TEXT.len()) {
            units.push(&TEXT[start..end]);
            start = end;
        }
        units.push(&TEXT[start..]);
        units
    }

    #[test]
    fn units_are_what_a_reader_expects() {
        let flag = "\u{1F1E9}\u{1F1EA}e\u{301}";
        let second = "One sentence. Another, longer one!\r\n  \r\n";
        let third = format!("A line\nand its next. {flag}");
        assert_eq!(all(Boundary::Paragraph), ["Title\n\n", second, &third]);
        let lines = ["Title\n", "\n", "One sentence. Another, longer one!\r\n", "  \r\n", "A line\n"];
        assert_eq!(all(Boundary::Line)[..5], lines);
        assert!(all(Boundary::Sentence).contains(&"One sentence. "));
        assert_eq!(all(Boundary::Word)[1..5], ["One ", "sentence. ", "Another, ", "longer "]);
        assert!(all(Boundary::Character).ends_with(&["\u{1F1E9}\u{1F1EA}", "e\u{301}"]));
    }

    proptest! {
        #[test]
        fn boundaries_lie_in_the_range_on_code_points(
            text in "([a-z]{1,9}[ .,!\n\r\t]{0,3}|é|中|\u{1F1E9}|\u{301}|\u{1F600}|\n\n){0,60}",
            places in any::<(usize, usize)>(),
        ) {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let one = starts[places.0 % starts.len()];
            let other = starts[places.1 % starts.len()];
            let low = one.min(other);
            let high = one.max(other);
            for (name, boundary) in Boundary::ALL {
                let first = boundary.first(&text, low, high);
                let last = boundary.last(&text, low, high);
                for at in [first, last].into_iter().flatten() {
                    prop_assert!(low < at && at <= high && text.is_char_boundary(at), "{}", name);
                }
                prop_assert!(first <= last, "{}", name);
            }
        }
    }
}
