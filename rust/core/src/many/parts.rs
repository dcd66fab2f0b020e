//! A text in parts. Each part says whether control tokens written in it are tokens.
//!
//! The parts are joined and encoded as one text: words, merges and user-defined tokens cross their borders. Only the
//! search for control and unknown tokens is limited to the parts that allow it. Consecutive parts that allow it count
//! as one.
//!
//! O(total length of the parts), plus encoding the text.

use std::borrow::Borrow;
use std::ops::Range;

use crate::encode::sink::{Sink, Spans};
use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::token::TokenId;
use crate::tokenizer::{AsText, EncodeOptions, MAX_TEXT, Text, Tokenizer};
use crate::vocabulary::Vocabulary;
use crate::work::memory::{self, append_text, push};

/// A text in parts.
///
/// # Examples
/// ```
/// use ggtok_core::vocab::{Definition, StringIndex};
/// use ggtok_core::{EncodeOptions, Parts, Tokenizer};
///
/// let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "<", "s", ">", "/"])?;
/// let types = [2, 3, 3, 1, 1, 1, 1];
/// let definition =
///     Definition { model: "llama", tokens: Some(index.view(&data)), token_types: Some(&types), ..Default::default() };
/// let tokenizer = Tokenizer::new(&Definition { add_space_prefix: Some(false), ..definition })?;
///
/// let mut parts = Parts::default();
/// parts.push("<s>", true);
/// parts.push("</s>", false);
/// let options = EncodeOptions::default().add_special(false);
/// assert_eq!(tokenizer.encoder().parts(&parts, options)?, [1, 3, 6, 4, 5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// All parts joined; empty if they are too long for one call or for the memory.
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
    pub fn push(&mut self, text: impl AsText, parse_special: bool) {
        let text = text.as_text();
        let bytes = text.as_bytes();
        let start = self.len;
        self.len = start.saturating_add(bytes.len());
        self.has_bytes |= matches!(text, Text::Bytes(_));
        let is_lost = self.bytes.len() < start;
        if is_lost || self.len > MAX_TEXT || memory::catch(|| append_text(&mut self.bytes, bytes)).is_err() {
            // It cannot be encoded, so it need not be kept.
            self.bytes = Vec::new();
            return;
        }
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
    /// - [`EncodeError::TextTooLong`]: they are too long for one call.
    /// - [`EncodeError::OutOfMemory`]: there was not enough memory for all of them.
    pub fn text(&self) -> Result<Text<'_>, EncodeError> {
        if self.len > MAX_TEXT {
            return Err(EncodeError::TextTooLong { len: self.len });
        }
        if self.bytes.len() < self.len {
            return Err(EncodeError::OutOfMemory);
        }
        Ok(match std::str::from_utf8(&self.bytes) {
            Ok(text) if !self.has_bytes => Text::Str(text),
            _ => Text::Bytes(&self.bytes),
        })
    }

    /// Checks that each control token is inside a range that allows it.
    fn check_control(&self, vocabulary: &Vocabulary, spans: &Spans) -> Result<(), EncodeError> {
        let mut allowed = self.allowed.iter().peekable();
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

impl<T: Borrow<Tokenizer>> Encoder<T> {
    /// The tokens of a text in parts: those of the whole text, with control tokens only where a part allows them.
    /// `options.parse_special` is ignored.
    ///
    /// # Errors
    /// As [`Encoder::encode`], for all parts together; and [`EncodeError::Control`], for vocabularies that find control
    /// tokens in any text, as ordinary tokens: RWKV, PLaMo-2 and some of SPM and Unigram.
    pub fn parts(&mut self, parts: &Parts, options: EncodeOptions) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Vec::new();
        self.parts_into(parts, options, &mut ids)?;
        Ok(ids)
    }

    /// Appends the tokens of a text in parts to a sink. Spans are byte ranges in the joined text.
    ///
    /// # Errors
    /// As [`Encoder::parts`]. The sink may then hold some tokens of the text.
    pub fn parts_into<S: Sink>(
        &mut self,
        parts: &Parts,
        options: EncodeOptions,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        self.work(|tokenizer, scratch| {
            let text = parts.text()?;
            let options = EncodeOptions { parse_special: !parts.allowed.is_empty(), ..options };
            // One range that covers everything needs no special treatment.
            if matches!(&parts.allowed[..], [range] if range.len() == parts.len) {
                return tokenizer.encode_within(text, None, options, scratch, sink);
            }
            let allowed = Some(&parts.allowed[..]).filter(|_| options.parse_special);
            let mut spans = Spans::with_room_for(parts.len);
            tokenizer.encode_within(text, allowed, options, scratch, &mut spans)?;
            parts.check_control(tokenizer.vocabulary(), &spans)?;
            sink.push_spanned(&spans.ids, spans.spans.into_iter());
            Ok(())
        })
    }

    /// The tokens of two texts that are encoded as one, `context` and the `continuation` after it, and how many of them
    /// belong to the context. One that reaches over the border belongs to the continuation; so do EOS and SEP.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode_pair(
        &mut self,
        context: impl AsText,
        continuation: impl AsText,
        options: EncodeOptions,
    ) -> Result<(Vec<TokenId>, usize), EncodeError> {
        let mut both = Parts::default();
        both.push(&context, false);
        both.push(continuation, false);
        let tokens = self.encode_with_spans(both.text()?, options)?;
        let border = context.as_text().as_bytes().len();
        // A token without text at the border, such as the space before a word, belongs to what follows.
        let num_before = tokens.spans.partition_point(|span| span.end <= border && span.start < border);
        let added = self.tokenizer().borrow().added_tokens(options.add_special)?;
        let has_bos = !options.continues && added.0.is_some();
        Ok((tokens.ids, num_before.max(has_bos.into())))
    }
}
