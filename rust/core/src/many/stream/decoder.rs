//! Ids back to text, token by token. Each id goes through these stages once, and nothing is decoded again:
//!
//! 1. Ids: BOS at the start and EOS at the end are removed if requested. An EOS is held back until another id follows.
//! 2. Bytes: the piece of the token. The first one after BOS loses the space that encoding added.
//! 3. [`Spaces`]: with `clean_spaces`, spaces that may still be removed are held back.
//! 4. [`Utf8Decoder`]: an incomplete character is held back. A decoder of bytes skips this stage.
//! 5. [`Search`]: anything that may become a stop string is held back.
//!
//! The whole output, including the flush, is what [`Tokenizer::decode`] returns for all ids, up to the first stop
//! string.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::detokenize`, part by part. Time: O(ids + length of the
//! output). Space: the bytes held back.
//!
//! Deviations: those of the detokenizer. -1 is an invalid id even if the vocabulary has no BOS.

use std::borrow::Borrow;
use std::sync::Arc;

use super::characters::{REPLACEMENT, Utf8Decoder};
use super::stop::{Search, StopStrings};
use crate::decode::spaces::Spaces;
use crate::decode::{DecodeOptions, is_removed_eos, opening};
use crate::error::DecodeError;
use crate::token::TokenId;
use crate::tokenizer::Tokenizer;
use crate::work::interrupt;
use crate::work::memory::{self, append};

/// What a [`StreamDecoder`] outputs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StreamDecodeOptions {
    /// What the text contains.
    pub decode: DecodeOptions,
    /// Output complete characters, with U+FFFD for invalid bytes, so that the output is valid UTF-8. Otherwise bytes
    /// are output as they are.
    pub is_text: bool,
    /// Strings that end the output, searched for in the output.
    pub stop: Arc<StopStrings>,
}

setters!(StreamDecodeOptions: decode(decode: DecodeOptions), text(is_text: bool), stop(stop: Arc<StopStrings>));

/// Decodes ids as they arrive. Cloning one is cheap: it holds little more than the bytes held back.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use ggtok_core::stream::{StopStrings, StreamDecodeOptions, StreamDecoder};
/// use ggtok_core::vocab::{Definition, StringIndex};
/// use ggtok_core::Tokenizer;
///
/// let tokens = ["<unk>", "<s>", "</s>", "▁a", "<0xC3>", "<0xA9>", "▁en", "d"];
/// let (data, index) = StringIndex::concatenate(&tokens)?;
/// let types = [2, 3, 3, 1, 6, 6, 1, 1];
/// let definition = Definition {
///     model: "llama",
///     tokens: Some(index.view(&data)),
///     token_types: Some(&types),
///     ..Definition::default()
/// };
/// let tokenizer = Tokenizer::new(&definition)?;
///
/// let stop = Arc::new(StopStrings::new([" end"])?);
/// let options = StreamDecodeOptions::default().text(true).stop(stop);
/// let mut decoder = StreamDecoder::new(&tokenizer, options);
/// let mut text = Vec::new();
/// decoder.push(&[3, 4], &mut text)?;
/// assert_eq!(text, b"a");
/// decoder.push(&[5, 6], &mut text)?;
/// assert_eq!((text.as_slice(), decoder.stopped()), ("aé".as_bytes(), None));
/// decoder.push(&[7], &mut text)?;
/// assert_eq!(decoder.finish(&mut text)?, Some(0));
/// assert_eq!(text, "aé".as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StreamDecoder<T> {
    tokenizer: T,
    options: StreamDecodeOptions,
    is_at_start: bool,
    /// The next piece loses the space that encoding may have added.
    drops_space: bool,
    /// The EOS just pushed, if it may have to be removed.
    held_eos: Option<TokenId>,
    /// `None` if spaces are not cleaned up.
    spaces: Option<Spaces>,
    utf8: Utf8Decoder,
    search: Search,
    /// Whether an id after the prompt was pushed.
    has_begun: bool,
}

impl<T: Borrow<Tokenizer>> StreamDecoder<T> {
    /// A decoder at the start of a text.
    pub fn new(tokenizer: T, options: StreamDecodeOptions) -> Self {
        let cleans = options.decode.clean_spaces && tokenizer.borrow().vocabulary().settings().clean_spaces;
        Self {
            tokenizer,
            options,
            is_at_start: true,
            drops_space: false,
            held_eos: None,
            spaces: cleans.then(Spaces::default),
            utf8: Utf8Decoder::default(),
            search: Search::default(),
            has_begun: false,
        }
    }

    /// Takes ids that come before those to decode. They are not output, but what follows is decoded as a continuation:
    /// its first space stays, unless the prompt is BOS alone, and no BOS is removed.
    ///
    /// If the prompt ends inside a character, the bytes that complete it are not UTF-8 by themselves: a decoder of
    /// bytes outputs them as they are, one of text replaces them. Stop strings do not begin in the prompt.
    ///
    /// # Errors
    /// - [`DecodeError::UnknownId`]: an id is not in the vocabulary. None was taken.
    /// - [`DecodeError::LatePrompt`]: ids were pushed before.
    pub fn prime(&mut self, ids: &[TokenId]) -> Result<(), DecodeError> {
        if self.has_begun {
            return Err(DecodeError::LatePrompt);
        }
        self.take_all::<true>(ids, &mut Vec::new())
    }

    /// Takes ids and appends the settled part of their text. After a stop string nothing more is output.
    ///
    /// # Errors
    /// [`DecodeError::UnknownId`]: an id is not in the vocabulary. None was taken.
    #[inline]
    pub fn push(&mut self, ids: &[TokenId], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.take_all::<false>(ids, out)
    }

    /// Ends the text: appends what was held back, and returns the index of the stop string that ended it.
    ///
    /// # Errors
    /// [`DecodeError::OutOfMemory`].
    pub fn finish(self, out: &mut Vec<u8>) -> Result<Option<usize>, DecodeError> {
        Ok(memory::catch(|| self.flush(out))?)
    }

    fn flush(mut self, out: &mut Vec<u8>) -> Option<usize> {
        let mut rest = Vec::new();
        if let Some(spaces) = &mut self.spaces {
            let mut bytes = Vec::new();
            spaces.flush(&mut bytes);
            if self.options.is_text {
                self.utf8.push(&bytes, &mut rest);
            } else {
                rest = bytes;
            }
        }
        self.utf8.flush(&mut rest);
        self.search.push(&self.options.stop, &rest, out);
        self.search.flush(out);
        self.search.stopped()
    }

    /// The index of the stop string that has ended the output.
    #[inline]
    pub fn stopped(&self) -> Option<usize> {
        self.search.stopped()
    }

    #[inline]
    fn take_all<const IS_PROMPT: bool>(&mut self, ids: &[TokenId], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        ids.iter().try_for_each(|&id| self.tokenizer.borrow().check_id(id))?;
        let work = || {
            if !IS_PROMPT && !self.has_begun {
                self.begin();
            }
            interrupt::ticking(ids).for_each(|&id| self.take::<IS_PROMPT>(id, out));
        };
        Ok(memory::catch(work)?)
    }

    /// Ends the prompt. An EOS at its end is not the end of the text, so from here on it is kept.
    #[cold]
    fn begin(&mut self) {
        self.has_begun = true;
        if let Some(eos) = self.held_eos.take() {
            self.spell::<true>(eos, &mut Vec::new());
        }
    }

    /// The first stage.
    #[inline]
    fn take<const IS_PROMPT: bool>(&mut self, id: TokenId, out: &mut Vec<u8>) {
        let tokenizer = self.tokenizer.borrow();
        let vocabulary = tokenizer.vocabulary();
        let options = self.options.decode;
        if self.is_at_start {
            self.is_at_start = false;
            // All ids have been checked.
            let (skips_first, drops_space) = opening(vocabulary, tokenizer.pieces(), options, id).unwrap_or_default();
            self.drops_space = drops_space;
            if skips_first {
                return;
            }
        }
        let is_eos = is_removed_eos(vocabulary, options, id);
        if let Some(eos) = self.held_eos.take() {
            self.spell::<IS_PROMPT>(eos, out);
        }
        if is_eos {
            self.held_eos = Some(id);
        } else {
            self.spell::<IS_PROMPT>(id, out);
        }
    }

    /// The stages after the first.
    #[inline]
    fn spell<const IS_PROMPT: bool>(&mut self, id: TokenId, out: &mut Vec<u8>) {
        let pieces = self.tokenizer.borrow().pieces();
        // All ids have been checked.
        let mut bytes = pieces.piece(id, self.options.decode.unparse_special).unwrap_or_default();
        if self.drops_space {
            self.drops_space = false;
            bytes = bytes.strip_prefix(b" ").unwrap_or(bytes);
        }

        let mut cleaned = Vec::new();
        if let Some(spaces) = &mut self.spaces {
            spaces.push(bytes, IS_PROMPT, &mut cleaned);
            bytes = &cleaned;
        } else if IS_PROMPT {
            return;
        }

        if self.options.stop.is_empty() {
            if self.options.is_text {
                self.utf8.push(bytes, out);
            } else {
                append(out, bytes);
            }
            return;
        }
        let mut characters = Vec::new();
        if self.options.is_text {
            self.utf8.push(bytes, &mut characters);
            bytes = &characters;
        }
        self.search.push(&self.options.stop, bytes, out);
        let held = self.utf8.held();
        if !held.is_empty() {
            self.search.expect(&self.options.stop, [held, REPLACEMENT], out);
        }
    }
}
