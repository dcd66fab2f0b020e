//! Text to ids: the calls that encode, and the [`Encoder`], which owns the memory that they write to.
//!
//! A call that unwinds, because it was interrupted or there was not enough memory, may leave that memory incomplete. So
//! it is replaced, and the encoder stays usable.

use std::borrow::Borrow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::encode::scratch::Scratch;
use crate::encode::sink::{Count, Sink, Spans};
use crate::error::EncodeError;
use crate::token::TokenId;
use crate::tokenizer::{AsText, EncodeOptions, Tokenizer};
use crate::work::memory;

/// Encodes one text after the other with one tokenizer. Buffers and the cache of words stay from call to call, so a
/// thread that encodes many texts has an encoder.
///
/// It borrows the tokenizer ([`Tokenizer::encoder`]) or shares it ([`Encoder::new`] with an `Arc`). Its cache takes at
/// most 64 MiB, beside those that the tokenizer keeps for its own calls.
///
/// # Examples
/// ```
/// # use ggtok_core::vocab::{Definition, StringIndex};
/// # use ggtok_core::{EncodeOptions, Tokenizer};
/// # let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "▁", "a", "▁a"])?;
/// # let definition = Definition { model: "llama", tokens: Some(index.view(&data)), ..Definition::default() };
/// # let tokenizer = Tokenizer::new(&definition)?;
/// let mut encoder = tokenizer.encoder();
/// for line in ["a a", "aa"] {
///     assert_eq!(encoder.encode(line)?.len(), encoder.count(line)?);
/// }
/// let plain = EncodeOptions::default().add_special(false);
/// assert_eq!(encoder.encode_with("a", plain)?, [5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The tokenizer outlives the encoder:
/// ```compile_fail,E0505
/// # use ggtok_core::Tokenizer;
/// fn encode_after_drop(tokenizer: Tokenizer) {
///     let mut encoder = tokenizer.encoder();
///     drop(tokenizer);
///     encoder.encode("a").unwrap();
/// }
/// ```
#[derive(Debug)]
pub struct Encoder<T> {
    tokenizer: T,
    scratch: Box<Scratch>,
}

impl<T: Borrow<Tokenizer>> Encoder<T> {
    /// An encoder with an empty cache.
    pub fn new(tokenizer: T) -> Self {
        Self { tokenizer, scratch: Box::new(Scratch::with_cache_limit(Scratch::DEFAULT_CACHE_LIMIT)) }
    }

    /// What refers to the tokenizer.
    pub fn tokenizer(&self) -> &T {
        &self.tokenizer
    }

    /// The tokens of a text, as [`Tokenizer::encode`].
    ///
    /// # Errors
    /// [`EncodeError`]: the file has no vocabulary, a token that must be added is missing, the text is too long, or
    /// memory runs out.
    pub fn encode(&mut self, text: impl AsText) -> Result<Vec<TokenId>, EncodeError> {
        self.encode_with(text, EncodeOptions::default())
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode_with(&mut self, text: impl AsText, options: EncodeOptions) -> Result<Vec<TokenId>, EncodeError> {
        self.collect(text, options)
    }

    /// How many tokens a text has.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn count(&mut self, text: impl AsText) -> Result<usize, EncodeError> {
        self.count_with(text, EncodeOptions::default())
    }

    /// How many tokens a text has.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn count_with(&mut self, text: impl AsText, options: EncodeOptions) -> Result<usize, EncodeError> {
        self.collect(text, options).map(|Count(count)| count)
    }

    /// The tokens of a text with their byte ranges. Added tokens have empty ranges.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode_with_spans(&mut self, text: impl AsText, options: EncodeOptions) -> Result<Spans, EncodeError> {
        self.collect(text, options)
    }

    /// Appends the tokens of a text to a sink.
    ///
    /// # Errors
    /// As [`Encoder::encode`]. The sink may then hold some tokens of the text.
    pub fn encode_into<S: Sink>(
        &mut self,
        text: impl AsText,
        options: EncodeOptions,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        self.work(|tokenizer, scratch| tokenizer.encode_within(text.as_text(), None, options, scratch, sink))
    }

    fn collect<S: Sink + Default>(&mut self, text: impl AsText, options: EncodeOptions) -> Result<S, EncodeError> {
        let mut sink = S::default();
        self.encode_into(text, options, &mut sink)?;
        Ok(sink)
    }

    /// Does work with the scratch space.
    #[inline]
    pub(crate) fn work<R>(
        &mut self,
        work: impl FnOnce(&Tokenizer, &mut Scratch) -> Result<R, EncodeError>,
    ) -> Result<R, EncodeError> {
        let Self { tokenizer, scratch } = self;
        let tokenizer = (*tokenizer).borrow();
        catch_unwind(AssertUnwindSafe(|| work(tokenizer, scratch))).unwrap_or_else(|payload| {
            **scratch = Scratch::with_cache_limit(scratch.model.cache_limit);
            Err(memory::caught(payload).into())
        })
    }
}

impl Tokenizer {
    /// An encoder that borrows this tokenizer.
    pub fn encoder(&self) -> Encoder<&Self> {
        Encoder::new(self)
    }

    /// Calls `work` with one of the encoders that the tokenizer keeps, whose caches are warm from earlier calls. No
    /// other call uses it meanwhile; unwinding drops it.
    #[inline]
    pub fn with_encoder<R>(&self, work: impl FnOnce(&mut Encoder<&Self>) -> R) -> R {
        self.pool().with(|scratch| {
            let mut encoder = Encoder { tokenizer: self, scratch };
            let result = work(&mut encoder);
            (result, encoder.scratch)
        })
    }

    /// The tokens of a text, with BOS and EOS if the vocabulary asks for them. Special tokens written in the text are
    /// read as text. Calls of one thread share a cache.
    ///
    /// # Errors
    /// [`EncodeError`]: the file has no vocabulary, a token that must be added is missing, the text is too long, or
    /// memory runs out.
    pub fn encode(&self, text: impl AsText) -> Result<Vec<TokenId>, EncodeError> {
        self.with_encoder(|encoder| encoder.encode(text))
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_with(&self, text: impl AsText, options: EncodeOptions) -> Result<Vec<TokenId>, EncodeError> {
        self.with_encoder(|encoder| encoder.encode_with(text, options))
    }

    /// How many tokens [`Tokenizer::encode`] returns.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn count(&self, text: impl AsText) -> Result<usize, EncodeError> {
        self.with_encoder(|encoder| encoder.count(text))
    }
}
