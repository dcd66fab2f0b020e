//! A vocabulary with its algorithm: text to tokens and back.
//!
//! Encoding cuts the special tokens out of the text, has the model encode each fragment between them, and adds BOS, EOS
//! and SEP. Calls write to a [`Scratch`]; nothing else of the tokenizer changes.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::tokenize`. Deviations: (1) if a token must be added and
//! the vocabulary has none, llama.cpp aborts; here it is [`EncodeError::MissingSpecial`].

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::decode::{DecodeOptions, PieceOrder, TokenPieces, detokenize};
use crate::encode::model::Fragment;
use crate::encode::model::any::{AnyModel, AnyScratch};
use crate::encode::model::lengths::Lengths;
use crate::encode::scratch::Scratch;
use crate::encode::scratch::pool::ScratchPool;
use crate::encode::sink::{Count, Sink, Spans};
use crate::encode::special::{Item, Specials};
use crate::error::{EncodeError, TokenIndexError, VocabularyError};
use crate::text::unicode::utf8::is_boundary;
use crate::token::TokenId;
use crate::vocabulary::{Definition, Kind, Vocabulary, newline};
use crate::work::interrupt::{self, once};

/// The longest text of one call, in bytes: llama.cpp's lengths are 32-bit integers.
pub(crate) const MAX_TEXT: usize = i32::MAX as usize;
/// After a longer text (in bytes), the buffers that have grown with it are freed.
const LONG_TEXT: usize = 1 << 24;
/// How many fragments and special tokens are processed between two checks for an interrupt. Within a fragment, the
/// model checks.
const ITEMS_AT_ONCE: usize = 64;

/// How a text is encoded. The default adds special tokens and parses none, which is safe for text from users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
        Self { add_special: true, parse_special: false, continues: false }
    }
}

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

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Str(text)
    }
}

impl<'a> From<&'a [u8]> for Text<'a> {
    fn from(text: &'a [u8]) -> Self {
        Self::Bytes(text)
    }
}

/// A vocabulary with its algorithm. Immutable, except that it keeps the caches of its calls: threads share it.
#[derive(Debug)]
pub struct Tokenizer {
    /// Its number among all tokenizers of the process.
    number: u64,
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
    /// [`VocabularyError`]: the vocabulary is unknown, incomplete or damaged.
    pub fn new(definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut vocabulary = Vocabulary::declare(definition)?;
        interrupt::check();
        let mut model = AnyModel::new(&vocabulary, definition)?;
        interrupt::check();
        // llama.cpp tokenizes a newline before it repairs the vocabulary, so with the defaults of the model.
        let mut encoded: Vec<TokenId> = Vec::new();
        let fragment = Fragment { text: b"\n", start: 0, after_special: true, continues: false, is_utf8: true };
        model.encode(&vocabulary, fragment, &mut model.scratch(), &mut encoded);
        vocabulary.set_newline(newline(&vocabulary, encoded.first().copied())?);
        vocabulary.repair(definition)?;
        model.apply_repairs(&vocabulary);
        let specials = [Specials::new(&vocabulary, false)?, Specials::new(&vocabulary, true)?];
        let pieces = OnceLock::new();
        if !TokenPieces::are_sure(&vocabulary) {
            let made = TokenPieces::new(&vocabulary)?;
            pieces.get_or_init(|| made);
        }
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let (lengths, piece_order, scratch) = (OnceLock::new(), OnceLock::new(), ScratchPool::default());
        Ok(Self { number, vocabulary, model, specials, pieces, lengths, piece_order, scratch })
    }

    /// A number that no other tokenizer of this process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The bytes that each token decodes to.
    pub(crate) fn pieces(&self) -> &TokenPieces {
        // If building can fail, they were built at load.
        once(&self.pieces, || TokenPieces::new(&self.vocabulary).unwrap_or_default())
    }

    /// The tokens of a text.
    ///
    /// # Errors
    /// [`EncodeError`]: the file has no vocabulary, a token that must be added is missing, or the text is too long.
    pub fn encode<'a>(&self, text: impl Into<Text<'a>>, options: EncodeOptions) -> Result<Vec<TokenId>, EncodeError> {
        let mut ids = Vec::new();
        self.encode_into(text.into(), options, &mut Scratch::default(), &mut ids)?;
        Ok(ids)
    }

    /// How many tokens a text has.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn count<'a>(&self, text: impl Into<Text<'a>>, options: EncodeOptions) -> Result<usize, EncodeError> {
        let mut count = Count::default();
        self.encode_into(text.into(), options, &mut Scratch::default(), &mut count)?;
        Ok(count.0)
    }

    /// The tokens of a text with their byte ranges. Added tokens have empty ranges.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn encode_with_spans<'a>(
        &self,
        text: impl Into<Text<'a>>,
        options: EncodeOptions,
    ) -> Result<Spans, EncodeError> {
        let mut spans = Spans::default();
        self.encode_into(text.into(), options, &mut Scratch::default(), &mut spans)?;
        Ok(spans)
    }

    /// Appends the tokens of a text to a sink. Reuses the scratch space of earlier calls.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]. The sink may then hold some tokens of the text.
    pub fn encode_into<S: Sink>(
        &self,
        text: Text<'_>,
        options: EncodeOptions,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        self.encode_within(text, None, options, scratch, sink)
    }

    /// As [`Tokenizer::encode_into`], but if `allowed` is given, parses control tokens only inside those ranges.
    pub(crate) fn encode_within<S: Sink>(
        &self,
        text: Text<'_>,
        allowed: Option<&[Range<usize>]>,
        options: EncodeOptions,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> Result<(), EncodeError> {
        let (text, is_utf8) = (text.as_bytes(), matches!(text, Text::Str(_)));
        if text.len() > MAX_TEXT {
            return Err(EncodeError::TextTooLong { len: text.len() });
        }
        let added = self.added_if(options.add_special)?;
        if let Some(id) = added.0.filter(|_| !options.continues) {
            sink.push(id, 0..0);
        }
        let (special, ids, model_scratch) = scratch.of(self.number, &self.model);
        let specials = self.specials(options.parse_special);
        let (mut after_special, mut continues) = (true, options.continues);
        for (index, item) in specials.partition(text, allowed, special).iter().enumerate() {
            if index % ITEMS_AT_ONCE == ITEMS_AT_ONCE - 1 {
                interrupt::check();
            }
            sink.begin_word();
            match *item {
                Item::Text(start, end) => {
                    // If a special token's text is half a character, the other half remains.
                    let is_utf8 = is_utf8 && is_boundary(text, start) && is_boundary(text, end);
                    let fragment = Fragment { text: &text[start..end], start, after_special, continues, is_utf8 };
                    if !S::SPANS || S::WORDS || !self.encode_tiled(fragment, model_scratch, ids, sink) {
                        self.model.encode(&self.vocabulary, fragment, model_scratch, sink);
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
        scratch: &mut AnyScratch,
        ids: &mut Vec<TokenId>,
        sink: &mut S,
    ) -> bool {
        let Some(lengths) = once(&self.lengths, || self.model.lengths(&self.vocabulary)) else { return false };
        fragment.is_utf8 = fragment.is_utf8 || std::str::from_utf8(fragment.text).is_ok();
        if !fragment.is_utf8 {
            return false;
        }
        ids.clear();
        self.model.encode(&self.vocabulary, fragment, scratch, ids);
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
    pub fn added_if(&self, add_special: bool) -> Result<(Option<TokenId>, Option<TokenId>), EncodeError> {
        match self.vocabulary.kind() {
            Kind::None => Err(EncodeError::NoVocabulary),
            _ if add_special => self.added(),
            _ => Ok((None, None)),
        }
    }

    /// The tokens to add before and after a text.
    fn added(&self) -> Result<(Option<TokenId>, Option<TokenId>), EncodeError> {
        let (special, settings) = (self.vocabulary.special(), self.vocabulary.settings());
        let need = |wanted: bool, id: Option<TokenId>, what: &'static str| match id {
            _ if !wanted => Ok(None),
            Some(id) => Ok(Some(id)),
            None => Err(EncodeError::MissingSpecial { what }),
        };
        match self.vocabulary.kind() {
            Kind::Spm | Kind::Bpe | Kind::Unigram | Kind::Plamo2 => {
                Ok((need(settings.add_bos, special.bos, "BOS")?, need(settings.add_eos, special.eos, "EOS")?))
            }
            // WordPiece always adds both, whatever the flags say.
            Kind::WordPiece => Ok((need(true, special.bos, "BOS")?, need(true, special.sep, "SEP")?)),
            Kind::Rwkv | Kind::Test | Kind::None => Ok((None, None)),
        }
    }

    /// The text of tokens, as bytes.
    ///
    /// # Errors
    /// [`TokenIndexError`] for an id that the vocabulary does not have.
    pub fn decode(&self, ids: &[TokenId], options: DecodeOptions) -> Result<Vec<u8>, TokenIndexError> {
        detokenize(&self.vocabulary, self.pieces(), ids, options)
    }

    /// The bytes of one token: empty for control and unknown tokens unless `special` is set.
    ///
    /// # Errors
    /// [`TokenIndexError`] for an id that the vocabulary does not have.
    pub fn piece(&self, id: TokenId, special: bool) -> Result<&[u8], TokenIndexError> {
        self.pieces().piece(id, special)
    }

    /// The lowest id whose piece is exactly `piece`, special tokens included. O(n log n) for n tokens the first time,
    /// then O(log n) comparisons.
    /// `None` too if [`Vocabulary::list_len`] is an error.
    pub fn id_of_piece(&self, piece: &[u8]) -> Option<TokenId> {
        self.piece_order().find(self.pieces(), piece)
    }

    /// The ids of all tokens whose pieces, special tokens included, start with `prefix`: in the order of the pieces,
    /// and equal pieces by id. As fast as [`Tokenizer::id_of_piece`].
    pub fn ids_with_prefix(&self, prefix: &[u8]) -> &[TokenId] {
        self.piece_order().with_prefix(self.pieces(), prefix)
    }

    fn piece_order(&self) -> &PieceOrder {
        once(&self.piece_order, || PieceOrder::new(self.pieces(), self.vocabulary.list_len().unwrap_or_default()))
    }

    /// Checks that the vocabulary has a token with this id.
    ///
    /// # Errors
    /// [`TokenIndexError`] if it has none.
    pub fn check_id(&self, id: TokenId) -> Result<(), TokenIndexError> {
        let size = self.vocabulary.len();
        if usize::try_from(id).is_ok_and(|id| id < size) {
            Ok(())
        } else {
            Err(TokenIndexError { id: id.into(), size })
        }
    }

    /// Calls `work` with one of the tokenizer's scratch spaces, whose caches are warm from earlier calls. No other call
    /// uses it meanwhile; unwinding drops it.
    #[inline]
    pub fn with_scratch<T>(&self, work: impl FnOnce(&mut Scratch) -> T) -> T {
        self.scratch.with(work)
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
        self.vocabulary.heap_bytes()
            + self.model.heap_bytes()
            + self.specials.iter().map(Specials::heap_bytes).sum::<usize>()
            + self.pieces.get().map_or(0, TokenPieces::heap_bytes)
            + self.lengths.get().and_then(Option::as_ref).map_or(0, Lengths::heap_bytes)
            + self.piece_order.get().map_or(0, PieceOrder::heap_bytes)
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
        let missing = tokenizer.encode("a", EncodeOptions::default());
        assert!(matches!(missing, Err(EncodeError::MissingSpecial { .. })), "{missing:?}");
        let plain = EncodeOptions { add_special: false, ..EncodeOptions::default() };
        assert!(tokenizer.encode("a", plain).is_ok());
        Ok(())
    }

    #[test]
    fn a_text_of_many_special_tokens_can_be_stopped() -> Result<(), VocabularyError> {
        let definition = Definition { token_types: Some(&[2, 3, 3, 1]), ..Definition::default() };
        let tokenizer = tokenizer("llama", &["<unk>", "<s>", "</s>", "a"], definition)?;
        let (text, options) =
            ("<s>".repeat(1000), EncodeOptions { add_special: false, parse_special: true, ..EncodeOptions::default() });
        let encode = || tokenizer.count(&*text, options);
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
