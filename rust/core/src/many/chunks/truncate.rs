//! Truncates a text to a budget of tokens: its start, its end, or both are kept.
//!
//! The number of tokens grows with the text, but not monotonically: one more character can complete a token. So the
//! search starts a little beyond where the budget ends in the whole text, moves back one code point at a time, and
//! encodes what is kept each time. If that takes too long, it becomes a binary search.
//!
//! O(n) for n kept bytes, times the characters of about two tokens.

use std::ops::Range;

use super::{BudgetError, Measure, Segmentable};
use crate::encode::scratch::Scratch;
use crate::tokenizer::{EncodeOptions, Text, Tokenizer};
use crate::work::interrupt;

/// How far beyond the budget the search starts, in tokens and code points.
const TOKENS_BEYOND: usize = 2;
const CODE_POINTS_BEYOND: usize = 64;
/// How many single steps precede the binary search.
const SINGLE_STEPS: usize = 2 * CODE_POINTS_BEYOND;

/// Which side of a text is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truncation {
    /// The start is kept.
    Right,
    /// The end is kept.
    Left,
    /// The start is kept up to half of the budget, and then as much of the end as fits.
    Middle,
}

impl Tokenizer {
    /// The longest text with at most `max_tokens` tokens, including added ones: `text[..start]` followed by
    /// `text[end..]` for the returned range `start..end`, which is empty if the whole text fits.
    ///
    /// # Errors
    /// [`BudgetError`]: the text cannot be encoded, or the budget is 0 or less than the number of added tokens.
    pub fn truncate(
        &self,
        text: &Segmentable<'_>,
        max_tokens: usize,
        side: Truncation,
        options: EncodeOptions,
        scratch: &mut Scratch,
    ) -> Result<Range<usize>, BudgetError> {
        let mut measure = Measure::new(self, text, max_tokens, 0, options, scratch)?;
        let len = measure.len();
        if measure.num_added + measure.spans.len() <= max_tokens {
            return Ok(len..len);
        }

        let room = max_tokens - measure.num_added;
        match side {
            Truncation::Right => Ok(measure.longest_start(room)?..len),
            Truncation::Left => Ok(0..measure.longest_end(0, room)?),
            Truncation::Middle => {
                let share = room.div_ceil(2);
                let start = measure.longest_start(share)?;
                Ok(start..measure.longest_end(start, room - share)?.max(start))
            }
        }
    }
}

impl Measure<'_, '_> {
    /// The end of the longest start of the text with this many tokens.
    fn longest_start(&mut self, num_tokens: usize) -> Result<usize, BudgetError> {
        let budget = self.num_added + num_tokens;
        let at = self.token_end(num_tokens);
        let mut from = at;
        let beyond = self.token_end(num_tokens + TOKENS_BEYOND);
        for _ in 0..CODE_POINTS_BEYOND {
            from = if from < beyond { self.next(from) } else { from };
        }
        self.search(from, 0, |measure, at| Ok(measure.count(0..at)? <= budget))
    }

    /// The start of the longest end of the text that fits after `text[..start]`, about `num_tokens` long.
    fn longest_end(&mut self, start: usize, num_tokens: usize) -> Result<usize, BudgetError> {
        let (len, max_tokens, num) = (self.len(), self.max_tokens, self.spans.len());
        let mut from = self.token_end(num - num_tokens).max(start);
        let beyond = self.token_end(num.saturating_sub(num_tokens + TOKENS_BEYOND)).max(start);
        for _ in 0..CODE_POINTS_BEYOND {
            from = if from > beyond { self.previous(from) } else { from };
        }
        self.search(from, len, |measure, at| Ok(measure.count_joined(start, at)? <= max_tokens))
    }

    /// The first place from `from` to `to` that fits; `to` always fits.
    fn search(
        &mut self,
        mut from: usize,
        to: usize,
        mut fits: impl FnMut(&mut Self, usize) -> Result<bool, BudgetError>,
    ) -> Result<usize, BudgetError> {
        for _ in 0..SINGLE_STEPS {
            interrupt::check();
            if from == to || fits(self, from)? {
                return Ok(from);
            }
            from = if from < to { self.next(from) } else { self.previous(from) };
        }
        // `from` is not known to fit; `fitting` is.
        let mut fitting = to;
        loop {
            interrupt::check();
            let middle = self.floor(usize::midpoint(from, fitting));
            if middle == from || middle == fitting {
                return Ok(if from != fitting && fits(self, from)? { from } else { fitting });
            }
            *(if fits(self, middle)? { &mut fitting } else { &mut from }) = middle;
        }
    }

    /// The number of tokens of `text[..start]` and `text[end..]` joined.
    fn count_joined(&mut self, start: usize, end: usize) -> Result<usize, BudgetError> {
        if start == 0 || end == self.len() {
            return Ok(self.count(if start == 0 { end..self.len() } else { 0..start })?);
        }
        let joined = [&self.text.bytes[..start], &self.text.bytes[end..]].concat();
        let text = match std::str::from_utf8(&joined) {
            Ok(text) if self.text.is_utf8 => Text::Str(text),
            _ => Text::Bytes(&joined),
        };
        Ok(self.count_text(text, self.options)?)
    }

    fn next(&self, at: usize) -> usize {
        at + self.text.segmented[at..].chars().next().map_or(0, char::len_utf8)
    }

    fn previous(&self, at: usize) -> usize {
        self.floor(at.saturating_sub(1))
    }
}
