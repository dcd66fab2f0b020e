//! A vocabulary with its algorithm: text to tokens and back.
//!
//! Encoding cuts the special tokens out of the text, has the model encode each fragment between them, and adds BOS, EOS
//! and SEP. Calls write to a [`Scratch`]; nothing else of the tokenizer changes.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::tokenize`. Deviations: (1) if a token must be added and
//! the vocabulary has none, llama.cpp aborts; here it is [`EncodeError::MissingSpecial`].

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use crate::decode::{DecodeOptions, PieceOrder, TokenPieces, detokenize};
use crate::encode::model::any::AnyModel;
use crate::encode::model::lengths::Lengths;
use crate::encode::model::{Fragment, ModelScratch, Task};
use crate::encode::scratch::LazyScratch;
use crate::encode::scratch::Scratch;
use crate::encode::scratch::pool::ScratchPool;
use crate::encode::sink::Sink;
use crate::encode::special::{Item, Specials};
use crate::error::{DecodeError, EncodeError, VocabularyError};
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::{Definition, Kind, Vocabulary, newline};
use crate::work::heap::HeapBytes;
use crate::work::interrupt::{self, once};
use crate::work::memory;

/// The longest text of one call, in bytes: llama.cpp's lengths are 32-bit integers.
pub(crate) const MAX_TEXT: usize = i32::MAX as usize;
/// After a longer text (in bytes), the buffers that have grown with it are freed.
const LONG_TEXT: usize = 1 << 24;
/// With so many tokens or more, a tokenizer begins with a table for its cache, of 1 or 2 MiB. A first long text would
/// wait for new memory, and for the table to grow; but the table takes a quarter of a millisecond, which is much where
/// a file is loaded in one or two.
const MANY_TOKENS: usize = 1 << 14;
/// How many fragments and special tokens are processed between two checks for an interrupt. Within a fragment, the
/// model checks.
const ITEMS_AT_ONCE: usize = 64;

/// How a text is encoded. The default adds special tokens and parses none, which is safe for text from users.
///
/// # Examples
/// ```
/// use ggtok_core::EncodeOptions;
///
/// let options = EncodeOptions::default().add_special(false).parse_special(true);
/// assert!(!options.add_special && options.parse_special && !options.continues);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EncodeOptions {
    /// Add BOS, EOS and SEP as the vocabulary says.
    pub add_special: bool,
    /// Read control tokens written in the text as tokens.
    pub parse_special: bool,
    /// The text continues an earlier one: no BOS is added, and nothing goes before its first characters. SPM and
    /// Unigram add no space; WordPiece reads letters at the start as the rest of a word; PLaMo-2 keeps a byte order
    /// mark. Nothing changes after the first special token in the text.
    pub continues: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl EncodeOptions {
    /// The default.
    pub const fn new() -> Self {
        Self { add_special: true, parse_special: false, continues: false }
    }
}

setters!(EncodeOptions: @const add_special(add_special: bool), @const parse_special(parse_special: bool),
    @const continues(continues: bool));

/// A text to encode. A text known to be UTF-8 is not checked again.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// Valid UTF-8.
    Str(&'a str),
    /// Any bytes.
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    /// The bytes.
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Str(text) => text.as_bytes(),
            Self::Bytes(text) => text,
        }
    }
}

/// What can be encoded: strings, bytes, and references to them.
pub trait AsText {
    /// The text.
    fn as_text(&self) -> Text<'_>;
}

macro_rules! as_text {
    ($($kind:ty => $variant:ident),+) => {
        $(impl AsText for $kind {
            fn as_text(&self) -> Text<'_> {
                Text::$variant(self)
            }
        })+
    };
}

as_text!(str => Str, String => Str, [u8] => Bytes, Vec<u8> => Bytes);

impl<const N: usize> AsText for [u8; N] {
    fn as_text(&self) -> Text<'_> {
        Text::Bytes(self)
    }
}

impl<B: AsText + ToOwned + ?Sized> AsText for Cow<'_, B> {
    fn as_text(&self) -> Text<'_> {
        self.as_ref().as_text()
    }
}

impl AsText for Text<'_> {
    fn as_text(&self) -> Text<'_> {
        *self
    }
}

impl<B: AsText + ?Sized> AsText for &B {
    fn as_text(&self) -> Text<'_> {
        (**self).as_text()
    }
}

/// A vocabulary with its algorithm. Immutable, except that it keeps the caches of its calls: threads share it.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Vocabulary,
    model: AnyModel,
    /// The special tokens searched for without and with `parse_special`.
    specials: [Specials; 2],
    /// Built on the first decode, or at load if building can fail.
    pieces: OnceLock<TokenPieces>,
    /// Built on the first call that needs spans.
    lengths: OnceLock<Option<Lengths>>,
    /// Built on the first look-up by piece.
    piece_order: OnceLock<PieceOrder>,
    scratch: ScratchPool,
}

impl Tokenizer {
    /// The default limit for the memory of a tokenizer's caches, in bytes: 256 MiB. One call uses at most a quarter.
    pub const DEFAULT_CACHE_LIMIT: usize = ScratchPool::DEFAULT_LIMIT;

    /// Builds a tokenizer from what a file declares.
    ///
    /// # Errors
    /// [`VocabularyError`]: the vocabulary is unknown, incomplete or damaged, or memory runs out.
    pub fn new(definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        memory::catch(|| Self::build(definition))?
    }

    fn build(definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let mut vocabulary = Vocabulary::declare(definition)?;
        interrupt::check();
        let mut model = AnyModel::new(&vocabulary, definition)?;
        interrupt::check();
        // llama.cpp tokenizes a newline before it repairs the vocabulary, so with the defaults of the model.
        let mut encoded: Vec<TokenId> = Vec::new();
        let fragment = Fragment { text: b"\n", start: 0, after_special: true, continues: false, is_utf8: true };
        let mut scratch = LazyScratch::new(0);
        model.encode(Task { vocabulary: &vocabulary, fragment, scratch: scratch.get(), sink: &mut encoded });
        vocabulary.set_newline(newline(&vocabulary, encoded.first().copied())?);
        vocabulary.repair(definition)?;
        model.apply_repairs(&vocabulary);
        let specials = [Specials::new(&vocabulary, false)?, Specials::new(&vocabulary, true)?];
        let is_sure = TokenPieces::are_sure(&vocabulary);
        let pieces = if is_sure { OnceLock::new() } else { TokenPieces::new(&vocabulary)?.into() };
        // The first call would make a scratch space. It is made here, by encoding something with the repaired vocabulary.
        let mut first = Scratch::with_cache_limit(Scratch::DEFAULT_CACHE_LIMIT);
        model.encode(Task { vocabulary: &vocabulary, fragment, scratch: first.model.get(), sink: &mut encoded });
        if let Some(cache) = first.model.cache().filter(|_| model.has_cache() && vocabulary.len() >= MANY_TOKENS) {
            cache.reserve(vocabulary.len() / 4);
        }
        let (lengths, piece_order) = Default::default();
        Ok(Self { vocabulary, model, specials, pieces, lengths, piece_order, scratch: ScratchPool::with_space(first) })
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The bytes that each token decodes to. Unwinds if there is not enough memory for them.
    pub(crate) fn pieces(&self) -> &TokenPieces {
        // If building can fail, they were built at load.
        once(&self.pieces, || TokenPieces::new(&self.vocabulary).unwrap_or_default())
    }

    /// Pushes the tokens of a text. If `allowed` is given, control tokens are read only inside those ranges.
    pub(crate) fn encode_within<S: Sink>(
        &self,
        text: Text<'_>,
        allowed: Option<&[Range<usize>]>,
        options: EncodeOptions,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        let is_utf8 = matches!(text, Text::Str(_));
        let text = text.as_bytes();
        if text.len() > MAX_TEXT {
            return Err(EncodeError::TextTooLong { len: text.len() });
        }
        let added = self.added_tokens(options.add_special)?;
        if let Some(id) = added.0.filter(|_| !options.continues) {
            sink.push(id, 0..0);
        }
        let Scratch { special, ids, model: model_scratch } = scratch;
        let model_scratch = model_scratch.get();
        let specials = self.specials(options.parse_special);
        let mut after_special = true;
        let mut continues = options.continues;
        for (index, item) in specials.partition(text, allowed, special).iter().enumerate() {
            if index % ITEMS_AT_ONCE == ITEMS_AT_ONCE - 1 {
                interrupt::check();
            }
            sink.begin_word();
            match *item {
                Item::Text(start, end) => {
                    // If a special token's text is half a character, the other half remains.
                    let is_utf8 = is_utf8 && utf8::is_boundary(text, start) && utf8::is_boundary(text, end);
                    let fragment = Fragment { text: &text[start..end], start, after_special, continues, is_utf8 };
                    let is_separate = !S::SPANS || S::WORDS || model_scratch.sampler.is_some();
                    if is_separate || !self.encode_tiled(fragment, model_scratch, ids, sink) {
                        let vocabulary = &self.vocabulary;
                        self.model.encode(Task { vocabulary, fragment, scratch: model_scratch, sink });
                    }
                    after_special = false;
                }
                Item::Token(id, start, end) => {
                    sink.push(id, start..end);
                    after_special = true;
                }
            }
            continues = false;
        }
        if let Some(id) = added.1 {
            sink.push(id, text.len()..text.len());
        }
        if text.len() > LONG_TEXT {
            scratch.release_buffers();
        }
        Ok(())
    }

    /// Pushes the tokens of a fragment with spans computed from their lengths. Returns false if that is not possible.
    fn encode_tiled<S: Sink>(
        &self,
        mut fragment: Fragment<'_>,
        scratch: &mut ModelScratch,
        ids: &mut Vec<TokenId>,
        sink: &mut S,
    ) -> bool {
        let Some(lengths) = once(&self.lengths, || self.model.lengths(&self.vocabulary)) else { return false };
        fragment.is_utf8 = fragment.is_utf8 || utf8::is_valid(fragment.text);
        if !fragment.is_utf8 {
            return false;
        }
        ids.clear();
        self.model.encode(Task { vocabulary: &self.vocabulary, fragment, scratch, sink: ids });
        lengths.push_all(ids, fragment, self.model.first_start(&self.vocabulary, fragment), sink)
    }

    /// The algorithm.
    pub(crate) fn model(&self) -> &AnyModel {
        &self.model
    }

    /// The special tokens to search for.
    pub(crate) fn specials(&self, parse_special: bool) -> &Specials {
        &self.specials[usize::from(parse_special)]
    }

    /// The tokens to add before and after a text, if `add_special` is set.
    ///
    /// # Errors
    /// [`EncodeError`]: the file has no vocabulary, or a token that must be added is missing.
    pub fn added_tokens(&self, add_special: bool) -> Result<(Option<TokenId>, Option<TokenId>), EncodeError> {
        let special = self.vocabulary.special();
        let settings = self.vocabulary.settings();
        let need = |wanted: bool, id: Option<TokenId>, what: &'static str| match id {
            _ if !wanted => Ok(None),
            Some(id) => Ok(Some(id)),
            None => Err(EncodeError::MissingSpecial { what }),
        };
        match self.vocabulary.kind() {
            Kind::None => Err(EncodeError::NoVocabulary),
            _ if !add_special => Ok((None, None)),
            Kind::Spm | Kind::Bpe | Kind::Unigram | Kind::Plamo2 => {
                Ok((need(settings.add_bos, special.bos, "BOS")?, need(settings.add_eos, special.eos, "EOS")?))
            }
            // WordPiece always adds both, whatever the flags say.
            Kind::WordPiece => Ok((need(true, special.bos, "BOS")?, need(true, special.sep, "SEP")?)),
            Kind::Rwkv | Kind::Test => Ok((None, None)),
        }
    }

    /// The text of tokens.
    ///
    /// # Errors
    /// [`DecodeError`]: the vocabulary does not have one of the ids, the text is not UTF-8
    /// ([`Tokenizer::decode_bytes`] returns it all the same), or there is not enough memory.
    pub fn decode(&self, ids: &[TokenId]) -> Result<String, DecodeError> {
        String::from_utf8(self.decode_bytes(ids)?)
            .map_err(|error| DecodeError::NotUtf8 { at: error.utf8_error().valid_up_to() })
    }

    /// The text of tokens, as bytes.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_bytes(&self, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
        self.decode_with(ids, DecodeOptions::default())
    }

    /// The text of tokens, as bytes.
    ///
    /// # Errors
    /// As [`Tokenizer::decode`].
    pub fn decode_with(&self, ids: &[TokenId], options: DecodeOptions) -> Result<Vec<u8>, DecodeError> {
        let mut text = Vec::new();
        memory::catch(|| detokenize(&self.vocabulary, self.pieces(), ids, options, &mut text))??;
        Ok(text)
    }

    /// The bytes of one token: empty for control and unknown tokens unless `special` is set.
    ///
    /// # Errors
    /// - [`DecodeError::UnknownId`] for an id that the vocabulary does not have.
    /// - [`DecodeError::OutOfMemory`]: there is not enough memory for the pieces of all tokens, which the first call
    ///   makes.
    pub fn piece(&self, id: TokenId, special: bool) -> Result<&[u8], DecodeError> {
        memory::catch(|| self.pieces())?.piece(id, special)
    }

    /// The lowest id whose piece is exactly `piece`, special tokens included. O(n log n) for n tokens the first time,
    /// then O(log n) comparisons.
    /// `None` too if [`Vocabulary::list_len`] is an error.
    ///
    /// # Errors
    /// [`DecodeError::OutOfMemory`].
    pub fn id_of_piece(&self, piece: &[u8]) -> Result<Option<TokenId>, DecodeError> {
        Ok(memory::catch(|| self.piece_order().find(self.pieces(), piece))?)
    }

    /// The ids of all tokens whose pieces, special tokens included, start with `prefix`: in the order of the pieces,
    /// and equal pieces by id. As fast as [`Tokenizer::id_of_piece`].
    ///
    /// # Errors
    /// [`DecodeError::OutOfMemory`].
    pub fn ids_with_prefix(&self, prefix: &[u8]) -> Result<&[TokenId], DecodeError> {
        Ok(memory::catch(|| self.piece_order().with_prefix(self.pieces(), prefix))?)
    }

    fn piece_order(&self) -> &PieceOrder {
        once(&self.piece_order, || PieceOrder::new(self.pieces(), self.vocabulary.list_len().unwrap_or_default()))
    }

    /// Checks that the vocabulary has a token with this id.
    ///
    /// # Errors
    /// [`DecodeError::UnknownId`] if it has none.
    pub fn check_id(&self, id: TokenId) -> Result<(), DecodeError> {
        let size = self.vocabulary.len();
        if usize::try_from(id).is_ok_and(|id| id < size) {
            Ok(())
        } else {
            Err(DecodeError::UnknownId { id: id.into(), size })
        }
    }

    /// The scratch spaces of its calls.
    pub(crate) fn pool(&self) -> &ScratchPool {
        &self.scratch
    }

    /// Sets how much memory the caches of all threads together may take, in bytes. They share it evenly, and those that
    /// are larger are emptied: at once, or after the call that uses them.
    pub fn set_cache_limit(&self, bytes: usize) {
        self.scratch.set_limit(bytes);
    }

    /// Frees all scratch spaces: at once, or after the call that uses them.
    pub fn clear_cache(&self) {
        self.scratch.clear();
    }

    /// The memory of the caches that no call is using, in bytes.
    pub fn cache_bytes(&self) -> usize {
        self.scratch.cache_bytes()
    }

    /// Memory held outside the value itself, in bytes, without scratch spaces.
    pub fn heap_bytes(&self) -> usize {
        let Self { vocabulary, model, specials: [plain, parsed], pieces, lengths, piece_order, .. } = self;
        let parts: [&dyn HeapBytes; 7] = [vocabulary, model, plain, parsed, pieces, lengths, piece_order];
        parts.map(HeapBytes::heap_bytes).into_iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::{EncodeOptions, Tokenizer};
    use crate::error::{EncodeError, VocabularyError};
    use crate::vocabulary::strings::StringIndex;
    use crate::vocabulary::{Definition, SpecialIds};
    use crate::work::interrupt::{Interrupted, interruptible};

    fn tokenizer(model: &str, tokens: &[&str], definition: Definition<'_>) -> Result<Tokenizer, VocabularyError> {
        let (data, index) = StringIndex::concatenate(tokens).unwrap_or_default();
        Tokenizer::new(&Definition { model, tokens: Some(index.view(&data)), ..definition })
    }

    #[test]
    fn a_token_that_cannot_be_added_is_an_error() -> Result<(), VocabularyError> {
        let special = SpecialIds { unk: Some(0), ..SpecialIds::default() };
        let tokenizer = tokenizer("bert", &["[UNK]", "a"], Definition { special, ..Definition::default() })?;
        let missing = tokenizer.encode("a");
        assert!(matches!(missing, Err(EncodeError::MissingSpecial { .. })), "{missing:?}");
        let plain = EncodeOptions { add_special: false, ..EncodeOptions::default() };
        assert!(tokenizer.encode_with("a", plain).is_ok());
        Ok(())
    }

    #[test]
    fn a_text_of_many_special_tokens_can_be_stopped() -> Result<(), VocabularyError> {
        let definition = Definition { token_types: Some(&[2, 3, 3, 1]), ..Definition::default() };
        let tokenizer = tokenizer("llama", &["<unk>", "<s>", "</s>", "a"], definition)?;
        let (text, options) =
            ("<s>".repeat(1000), EncodeOptions { add_special: false, parse_special: true, ..EncodeOptions::default() });
        let encode = || tokenizer.encoder().count_with(&text, options);
        let asked = Rc::new(Cell::new(0));
        let stop_at = |last| {
            let asked = Rc::clone(&asked);
            asked.set(0);
            move || asked.replace(asked.get() + 1) == last
        };
        assert_eq!(interruptible(stop_at(10), encode), Err(Interrupted));
        assert_eq!(asked.get(), 11);
        assert_eq!(interruptible(stop_at(1000), encode), Ok(Ok(1000)));
        Ok(())
    }
}
