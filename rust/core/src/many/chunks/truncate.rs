//! Truncates a text to a budget of tokens: its start, its end, or both are kept.
//!
//! The number of tokens grows with the text, but not monotonically: one more character can complete a token. So the
//! search starts a little beyond where the budget ends in the whole text, moves back one code point at a time, and
//! encodes what is kept each time. If that takes too long, it becomes a binary search.
//!
//! Only the ends of a long text are read: at the start as far as a stream is certain of the tokens, and at the end as
//! far as the tokens that count are the same when half as much is read, and some token before them is certain. The
//! whole text is read if neither happens.
//!
//! O(n) for n kept bytes, times the characters of about two tokens, if a text has a settled place every so often.

use std::borrow::{Borrow, Cow};
use std::ops::Range;

use super::{Measure, Segmentable, joined};
use crate::encode::sink::{Count, Spans};
use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::many::stream::encoder::StreamEncoder;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, Text, Tokenizer};
use crate::work::interrupt;

/// How far beyond the budget the search starts, in tokens and code points.
const TOKENS_BEYOND: usize = 2;
const CODE_POINTS_BEYOND: usize = 64;
/// How many single steps precede the binary search.
const SINGLE_STEPS: usize = 2 * CODE_POINTS_BEYOND;

/// How much of each end of a text is read at first, in bytes (or characters) per token of the budget, and at least.
const BYTES_PER_TOKEN: usize = 8;
const LEAST_READ: usize = 1 << 12;
/// How many bytes of an end a stream takes before its tokens are counted.
const BYTES_AT_ONCE: usize = 1 << 8;

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

impl<T: Borrow<Tokenizer>> Encoder<T> {
    /// The longest text with at most `max_tokens` tokens, including added ones: `text[..start]` followed by
    /// `text[end..]` for the returned range `start..end`, which is empty if the whole text fits.
    ///
    /// # Errors
    /// [`EncodeError`]: the text cannot be encoded, or the budget is 0 or less than the number of added tokens.
    pub fn truncate(
        &mut self,
        text: &Segmentable<'_>,
        max_tokens: usize,
        side: Truncation,
        options: EncodeOptions,
    ) -> Result<Range<usize>, EncodeError> {
        text.check()?;
        let len = text.bytes.len();
        for read in Ends::lens(len, max_tokens) {
            let ends = Ends { head: text.slice(0, read), tail: text.slice(len - read, len), is_whole: read == len };
            if let Some((start, end)) = self.truncate_ends(&ends, max_tokens, side, options)? {
                return Ok(start..len - (ends.tail.bytes.len() - end));
            }
        }
        Ok(len..len)
    }

    /// Appends the tokens of what [`Encoder::truncate`] leaves of a text. A text that is read as a whole anyway is
    /// encoded first: most fit. The budget must hold the added tokens.
    pub(crate) fn encode_truncated(
        &mut self,
        text: Text<'_>,
        (max_tokens, side): (usize, Truncation),
        options: EncodeOptions,
        ids: &mut Vec<TokenId>,
    ) -> Result<(), EncodeError> {
        let bytes = text.as_bytes();
        let before = ids.len();
        if Ends::lens(bytes.len(), max_tokens).next() == Some(bytes.len()) {
            self.encode_into(text, options, ids)?;
            if ids.len() - before <= max_tokens {
                return Ok(());
            }
            ids.truncate(before);
        }
        let text = Segmentable::of_bytes(bytes);
        let removed = match self.truncate(&text, max_tokens, side, options) {
            Ok(removed) => removed,
            Err(EncodeError::Budget { .. } | EncodeError::Character { .. }) => 0..bytes.len(),
            Err(error) => return Err(error),
        };
        let kept = joined(&bytes[..removed.start], &bytes[removed.end..]);
        self.encode_into(&kept, options, ids)
    }

    /// As [`Encoder::truncate`], given only the ends of a text: how much of the head is kept, and where the rest
    /// starts in the tail. `None` if that cannot be known without more of the text.
    ///
    /// # Errors
    /// As [`Encoder::truncate`].
    pub fn truncate_ends(
        &mut self,
        ends: &Ends<'_>,
        max_tokens: usize,
        side: Truncation,
        options: EncodeOptions,
    ) -> Result<Option<(usize, usize)>, EncodeError> {
        self.work(|tokenizer, scratch| {
            let Ends { head, tail, is_whole } = ends;
            let mut start = 0;
            let end = tail.bytes.len();
            let mut room = 0;
            if side != Truncation::Left {
                let mut measure = Measure::new(tokenizer, head, (max_tokens, 0), b"", options, scratch)?;
                room = max_tokens - measure.num_added;
                if *is_whole && measure.spans.len() <= room {
                    return Ok(Some((end, end)));
                }
                // A stream always starts a text, so it says nothing about one that continues another.
                let are_certain = *is_whole
                    || !options.continues && measure.are_certain(room + TOKENS_BEYOND + 1, 0..head.bytes.len())?;
                if !are_certain {
                    return Ok(None);
                }
                let share = if side == Truncation::Middle { room.div_ceil(2) } else { room };
                start = measure.longest_prefix(share)?;
                room -= share;
            }
            if side == Truncation::Right {
                return Ok(Some((start, end)));
            }
            let mut measure = Measure::new(tokenizer, tail, (max_tokens, 0), b"", options, scratch)?;
            if side == Truncation::Left {
                room = max_tokens - measure.num_added;
                if *is_whole && measure.spans.len() <= room {
                    return Ok(Some((end, end)));
                }
            }
            if !is_whole && !measure.ends_alike(max_tokens + TOKENS_BEYOND + 1)? {
                return Ok(None);
            }
            let low = if *is_whole { start } else { 0 };
            Ok(Some((start, measure.longest_end(&head.slice(0, start), low, room)?)))
        })
    }
}

/// The ends of a text that is cut.
#[derive(Debug, Clone)]
pub struct Ends<'a> {
    /// How the text starts.
    pub head: Segmentable<'a>,
    /// How it ends.
    pub tail: Segmentable<'a>,
    /// Whether both are the whole text. If not, they do not overlap.
    pub is_whole: bool,
}

impl Ends<'_> {
    /// How much of both ends of a text to read: a few times what `max_tokens` tokens take, then more each time, and at
    /// last all `len` of it.
    pub fn lens(len: usize, max_tokens: usize) -> impl Iterator<Item = usize> {
        let first = max_tokens.saturating_mul(BYTES_PER_TOKEN).saturating_add(LEAST_READ);
        let lens = std::iter::successors(Some(first), |read| read.checked_mul(4));
        lens.take_while(move |&read| read < len / 4).chain([len])
    }
}

impl Segmentable<'_> {
    /// The text from one place to another, or from the starts of the code points there.
    fn slice(&self, start: usize, end: usize) -> Segmentable<'_> {
        let [start, end] = [start, end].map(|at| utf8::floor(self.segmented.as_bytes(), at));
        let segmented = Cow::Borrowed(&self.segmented[start..end]);
        Segmentable { bytes: &self.bytes[start..end], is_utf8: self.is_utf8, segmented }
    }
}

impl Measure<'_, '_> {
    /// Whether at least `number` tokens at the start of a part stay the same, whatever text follows. The last one that
    /// a stream returns may still grow.
    fn are_certain(&mut self, number: usize, part: Range<usize>) -> Result<bool, EncodeError> {
        let plain = EncodeOptions { add_special: false, continues: false, ..self.options };
        let mut stream = StreamEncoder::new(self.tokenizer, plain)?;
        let mut count = Count::default();
        for piece in self.text.bytes[part].chunks(BYTES_AT_ONCE) {
            stream.push(piece, &mut count)?;
            if count.0 > number {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether the last `number` tokens are the same if only half of the text is read, so that earlier text makes no
    /// difference. A token before them must be certain too: the end of a long word that is unknown as a whole looks
    /// like several tokens, however much of it is read.
    fn ends_alike(&mut self, number: usize) -> Result<bool, EncodeError> {
        let mut half = Spans::default();
        let middle = self.floor(self.len() / 2);
        let plain = EncodeOptions { add_special: false, ..self.options };
        self.tokenizer.encode_within(self.text.text(middle..self.len()), None, plain, self.scratch, &mut half)?;
        let Some(before) = half.spans.len().checked_sub(number + 1) else { return Ok(false) };
        let mut ends = self.spans.iter().rev().zip(half.spans.iter().rev()).take(number);
        Ok(ends.all(|(in_all, in_half)| in_all.end == middle + in_half.end)
            && self.are_certain(1, middle..middle + half.spans[before].end)?)
    }

    /// The end of the longest start of the text with this many tokens.
    fn longest_prefix(&mut self, num_tokens: usize) -> Result<usize, EncodeError> {
        let budget = self.num_added + num_tokens;
        let at = self.token_end(num_tokens);
        let mut from = at;
        let beyond = self.token_end(num_tokens + TOKENS_BEYOND);
        for _ in 0..CODE_POINTS_BEYOND {
            from = if from < beyond { self.next(from) } else { from };
        }
        self.search(from, 0, |measure, at| Ok(measure.count(0..at)? <= budget))
    }

    /// The start of the longest end of the text that fits after `before` and starts at `low` or later, about
    /// `num_tokens` long.
    fn longest_end(&mut self, before: &Segmentable<'_>, low: usize, num_tokens: usize) -> Result<usize, EncodeError> {
        let num = self.spans.len();
        let mut from = self.token_end(num - num_tokens).max(low);
        let beyond = self.token_end(num.saturating_sub(num_tokens + TOKENS_BEYOND)).max(low);
        for _ in 0..CODE_POINTS_BEYOND {
            from = if from > beyond { self.previous(from) } else { from };
        }
        self.search(from, self.len(), |measure, at| {
            Ok(measure.count_joined(before.bytes, at..measure.len())? <= measure.max_tokens)
        })
    }

    /// The first place from `from` to `to` that fits; `to` always fits.
    fn search(
        &mut self,
        mut from: usize,
        to: usize,
        mut fits: impl FnMut(&mut Self, usize) -> Result<bool, EncodeError>,
    ) -> Result<usize, EncodeError> {
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
}
