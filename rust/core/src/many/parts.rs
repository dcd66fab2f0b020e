//! A text in parts. Each part says whether control tokens written in it are tokens.
//!
//! The parts are joined and encoded as one text: words, merges and user-defined tokens cross their borders. Only the
//! search for control and unknown tokens is limited to the parts that allow it. Consecutive parts that allow it count
//! as one.
//!
//! O(total length of the parts), plus encoding the text.

use std::ops::Range;

use crate::encode::scratch::Scratch;
use crate::encode::sink::{Count, Sink, Spans};
use crate::error::EncodeError;
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, MAX_TEXT, Text, Tokenizer};
use crate::work::memory::{append_text, push};

/// A text in parts.
///
/// # Examples
/// ```
/// use ggtok_core::{Definition, EncodeOptions, Parts, StringIndex, Tokenizer};
///
/// let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "<", "s", ">", "/"])?;
/// let types = [2, 3, 3, 1, 1, 1, 1];
/// let definition =
///     Definition { model: "llama", tokens: Some(index.view(&data)), token_types: Some(&types), ..Default::default() };
/// let tokenizer = Tokenizer::new(&Definition { add_space_prefix: Some(false), ..definition })?;
///
/// let mut parts = Parts::default();
/// parts.push("<s>".into(), true);
/// parts.push("</s>".into(), false);
/// let options = EncodeOptions { add_special: false, ..EncodeOptions::default() };
/// assert_eq!(tokenizer.encode_parts(&parts, options)?, [1, 3, 6, 4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// All parts joined; empty if they are too long for one call.
    bytes: Vec<u8>,
    /// The total length of the parts.
    len: usize,
    /// Where control tokens are parsed: ascending ranges that are not empty and do not touch.
    pub(super) allowed: Vec<Range<usize>>,
    /// Whether a part may not be UTF-8.
    has_bytes: bool,
}

impl Parts {
    /// Appends a part. `parse_special` says whether control tokens written in it are read as tokens.
    pub fn push(&mut self, text: Text<'_>, parse_special: bool) {
        let bytes = text.as_bytes();
        let start = self.len;
        self.len = start.saturating_add(bytes.len());
        self.has_bytes |= matches!(text, Text::Bytes(_));
        if self.len > MAX_TEXT {
            // It cannot be encoded, so it need not be kept.
            self.bytes = Vec::new();
            return;
        }
        append_text(&mut self.bytes, bytes);
        if parse_special && !bytes.is_empty() {
            match self.allowed.last_mut().filter(|last| last.end == start) {
                Some(last) => last.end = self.len,
                None => push(&mut self.allowed, start..self.len),
            }
        }
    }

    /// The total length of the parts in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all parts are empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All parts joined.
    ///
    /// # Errors
    /// [`EncodeError::TextTooLong`]: they are too long for one call.
    pub fn text(&self) -> Result<Text<'_>, EncodeError> {
        if self.len > MAX_TEXT {
            return Err(EncodeError::TextTooLong { len: self.len });
        }
        Ok(match std::str::from_utf8(&self.bytes) {
            Ok(text) if !self.has_bytes => Text::Str(text),
            _ => Text::Bytes(&self.bytes),
        })
    }
}

impl Tokenizer {
    /// The tokens of a text in parts: those of the whole text, with control tokens only where a part allows them.
    /// `options.parse_special` is ignored.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`], for all parts together; and [`EncodeError::Control`], for vocabularies that find control
    /// tokens in any text, as ordinary tokens: RWKV, PLaMo-2 and some of SPM and Unigram.
    pub fn encode_parts(&self, parts: &Parts, options: EncodeOptions) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Vec::new();
        self.encode_parts_into(parts, options, &mut Scratch::default(), &mut ids)?;
        Ok(ids)
    }

    /// How many tokens a text in parts has.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_parts`].
    pub fn count_parts(&self, parts: &Parts, options: EncodeOptions) -> Result<usize, EncodeError> {
        let mut count = Count::default();
        self.encode_parts_into(parts, options, &mut Scratch::default(), &mut count)?;
        Ok(count.0)
    }

    /// The tokens of a text in parts, with their byte ranges in the joined text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_parts`].
    pub fn encode_parts_with_spans(&self, parts: &Parts, options: EncodeOptions) -> Result<Spans, EncodeError> {
        let mut spans = Spans::default();
        self.encode_parts_into(parts, options, &mut Scratch::default(), &mut spans)?;
        Ok(spans)
    }

    /// Appends the tokens of a text in parts to a sink, as [`Tokenizer::encode_into`] does for a text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode_parts`].
    pub fn encode_parts_into<S: Sink>(
        &self,
        parts: &Parts,
        options: EncodeOptions,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        let text = parts.text()?;
        let options = EncodeOptions { parse_special: !parts.allowed.is_empty(), ..options };
        // One range that covers everything needs no special treatment.
        let is_whole = matches!(&parts.allowed[..], [range] if range.len() == parts.len);
        if is_whole {
            return self.encode_within(text, None, options, scratch, sink);
        }
        let allowed = Some(&parts.allowed[..]).filter(|_| options.parse_special);
        let mut spans = Spans::with_room_for(parts.len);
        self.encode_within(text, allowed, options, scratch, &mut spans)?;
        self.check_control(parts, &spans)?;
        sink.push_spanned(&spans.ids, spans.spans.into_iter());
        Ok(())
    }

    /// The tokens of two texts that are encoded as one, `context` and the `continuation` after it, and how many of them
    /// belong to the context. One that reaches over the border belongs to the continuation; so do EOS and SEP.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_pair(
        &self,
        context: Text<'_>,
        continuation: Text<'_>,
        options: EncodeOptions,
        scratch: &mut Scratch,
    ) -> Result<(Vec<TokenId>, usize), EncodeError> {
        let mut both = Parts::default();
        both.push(context, false);
        both.push(continuation, false);
        let mut tokens = Spans::with_room_for(both.len);
        self.encode_into(both.text()?, options, scratch, &mut tokens)?;
        let border = context.as_bytes().len();
        // A token without text at the border, such as the space before a word, belongs to what follows.
        let num_before = tokens.spans.partition_point(|span| span.end <= border && span.start < border);
        let has_bos = !options.continues && self.added_if(options.add_special)?.0.is_some();
        Ok((tokens.ids, num_before.max(has_bos.into())))
    }

    /// Checks that each control token is inside a range that allows it.
    fn check_control(&self, parts: &Parts, spans: &Spans) -> Result<(), EncodeError> {
        let (vocabulary, mut allowed) = (self.vocabulary(), parts.allowed.iter().peekable());
        for (&id, span) in spans.ids.iter().zip(&spans.spans) {
            if span.is_empty() || !vocabulary.attributes(id).is_control() || Some(id) == vocabulary.special().unk {
                continue;
            }
            while allowed.next_if(|range| range.end < span.end).is_some() {}
            if allowed.peek().is_none_or(|range| range.start > span.start) {
                return Err(EncodeError::Control { id, at: span.start });
            }
        }
        Ok(())
    }
}
