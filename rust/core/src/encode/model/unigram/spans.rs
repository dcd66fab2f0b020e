//! The spans of a segment's tokens: in the input, or through the text that the segment was normalized to.
//!
//! A segment of the input is its own normal form, except for the space before it, which stands for all whitespace since
//! the word before. So the spans of its tokens follow from their lengths. Spans in a normalized text are mapped to
//! the input by the text's origins. O(1) per token.

use std::ops::Range;

use super::Joined;
use crate::encode::normalizer::rewritten::Rewritten;
use crate::vocabulary::spelling::ESCAPED_SPACE;

/// State for the spans of one text.
#[derive(Debug, Default)]
pub(super) struct SpanTracker {
    /// Where the text starts in the whole input.
    offset: usize,
    /// The end of the latest word in the whole input: the space before the next word starts here.
    pub(super) covered: usize,
    pub(super) joined: Joined,
}

impl SpanTracker {
    pub(super) fn new(offset: usize) -> Self {
        Self { offset, covered: offset, joined: Joined::default() }
    }

    /// The position of the next segment.
    #[inline(always)]
    pub(super) fn place<'s>(
        &mut self,
        source: SourceText<'s>,
        start: usize,
        end: usize,
        is_after_space: bool,
    ) -> SegmentPlace<'s> {
        let covered = self.covered;
        let space_len = if is_after_space { ESCAPED_SPACE.len() } else { 0 };
        if source.normalized.is_some() {
            let SourceText { normalized, is_after_space: has_first_space, .. } = source;
            return SegmentPlace { start: start - space_len, covered, has_first_space, space_len, normalized };
        }
        self.covered = self.offset + end;
        SegmentPlace { start: self.offset + start, covered, has_first_space: false, space_len, normalized: None }
    }
}

/// The text that segments are cut from.
#[derive(Clone, Copy)]
pub(super) struct SourceText<'a> {
    pub(super) text: &'a [u8],
    /// Where the text comes from, if it is not the input.
    normalized: Option<&'a Rewritten<'a>>,
    /// Whether a normalized text starts with a space that also stands for those before it in the input.
    is_after_space: bool,
}

impl<'a> SourceText<'a> {
    pub(super) fn input(text: &'a [u8]) -> Self {
        Self { text, normalized: None, is_after_space: false }
    }

    pub(super) fn normalized(normalized: &'a Rewritten<'_>, is_after_space: bool) -> Self {
        Self { text: &normalized.text, normalized: Some(normalized), is_after_space }
    }
}

/// The position of a segment: in the whole input, or in a normalized text with the space before it.
#[derive(Clone, Copy)]
pub(super) struct SegmentPlace<'a> {
    start: usize,
    /// The end of the words before it in the whole input: where its space starts.
    covered: usize,
    /// Whether its space is the first one of a normalized text, and so starts there too.
    has_first_space: bool,
    /// The length of the escaped space before it.
    pub(super) space_len: usize,
    normalized: Option<&'a Rewritten<'a>>,
}

impl SegmentPlace<'_> {
    /// The span in the whole input of a range of the segment, which starts with its space.
    #[inline(always)]
    pub(super) fn span(&self, from: usize, to: usize) -> Range<usize> {
        match self.normalized {
            None => {
                let start = if from < self.space_len { self.covered } else { self.start + from - self.space_len };
                start..self.start + to.saturating_sub(self.space_len)
            }
            Some(normalized) => {
                let from = self.start + from;
                let to = self.start + to;
                let span = normalized.span(from..to);
                if from == 0 && self.has_first_space { self.covered..span.end } else { span }
            }
        }
    }
}
