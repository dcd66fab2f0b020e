//! A vocabulary: token texts, scores, attributes, special tokens and settings, as llama.cpp has them after loading.
//!
//! Texts are stored end to end in one array; a hash table maps a text to its id. `declare` reads what a file says,
//! `repairs` applies the loader's rules, and from then on a vocabulary is immutable.

mod attributes;
mod declare;
pub(crate) mod defaults;
mod definition;
pub(crate) mod families;
mod hash_order;
pub(crate) mod repairs;
mod slots;
pub(crate) mod spelling;
pub(crate) mod strings;
mod texts;

pub use attributes::Attributes;
pub use declare::{DNA_MARKER, c_string, split_rule};
pub use definition::{Definition, FLAGS, Flag, escaped_name};
pub use repairs::Repair;
pub(crate) use repairs::newline;
pub use slots::{Given, SLOTS, Slot, SpecialIds, SpecialTokens};
pub(crate) use texts::Texts;

use std::collections::HashMap;

use crate::error::VocabularyError;
use crate::lookup::hash::Seed;
use crate::lookup::index::{Index, LOOKUPS_AT_ONCE};
use crate::lookup::key::Key;
use crate::token::TokenId;
use crate::vocabulary::families::PreTokenizer;
use crate::work::heap::HeapBytes;
use defaults::ModelRow;
use spelling::byte_text;

/// The algorithm of a vocabulary. llama.cpp calls WordPiece WPM, and Unigram UGM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No vocabulary: tokens without texts.
    None,
    /// SentencePiece BPE: merges by score.
    Spm,
    /// Byte-pair encoding: merges by rank.
    Bpe,
    /// WordPiece.
    WordPiece,
    /// SentencePiece Unigram.
    Unigram,
    /// RWKV: greedy longest match.
    Rwkv,
    /// PLaMo-2.
    Plamo2,
    /// llama.cpp's test vocabulary.
    Test,
}

impl Kind {
    /// The name in lower case: `spm`, `bpe`, `wordpiece`, `unigram`, `rwkv`, `plamo2`, `test` or `none`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Spm => "spm",
            Self::Bpe => "bpe",
            Self::WordPiece => "wordpiece",
            Self::Unigram => "unigram",
            Self::Rwkv => "rwkv",
            Self::Plamo2 => "plamo2",
            Self::Test => "test",
        }
    }
}

/// The most tokens that are listed of a vocabulary without texts. Any number takes a few bytes in a file.
const MAX_LISTED: usize = 1 << 20;

/// Flags that steer encoding and decoding, by llama.cpp's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// BOS is added before the text.
    pub add_bos: bool,
    /// EOS is added after the text.
    pub add_eos: bool,
    /// Not used: llama.cpp's tokenizer never reads it either (WordPiece always adds SEP).
    pub add_sep: bool,
    /// A space is added before the text (SPM, Unigram) and removed when decoding.
    pub add_space_prefix: bool,
    /// A word that is a token is not merged (BPE).
    pub ignore_merges: bool,
    /// Decoding removes spaces before punctuation and some contractions.
    pub clean_spaces: bool,
    /// A run of spaces becomes one (Unigram).
    pub remove_extra_whitespaces: bool,
    /// Spaces are written `▁`.
    pub escape_whitespaces: bool,
    /// Text is lowercased (WordPiece, whitespace BPE).
    pub lowercase: bool,
    /// Accents are removed (WordPiece).
    pub strip_accents: bool,
}

impl Settings {
    /// All flags with their names.
    pub fn flags(&self) -> [(&'static str, bool); 10] {
        [
            ("add_bos", self.add_bos),
            ("add_eos", self.add_eos),
            ("add_sep", self.add_sep),
            ("add_space_prefix", self.add_space_prefix),
            ("ignore_merges", self.ignore_merges),
            ("clean_spaces", self.clean_spaces),
            ("remove_extra_whitespaces", self.remove_extra_whitespaces),
            ("escape_whitespaces", self.escape_whitespaces),
            ("lowercase", self.lowercase),
            ("strip_accents", self.strip_accents),
        ]
    }
}

/// Token texts, scores, attributes, special tokens and settings.
#[derive(Debug)]
pub struct Vocabulary {
    row: &'static ModelRow,
    pre: Option<&'static PreTokenizer>,
    size: usize,
    texts: Texts,
    /// The texts by which tokens are looked up, if they differ from what tokens decode to (hybrid DNA).
    keys: Option<Texts>,
    index: Index,
    seed: Seed,
    scores: Vec<f32>,
    attributes: Vec<Attributes>,
    /// The original attributes of tokens whose attributes were repaired.
    declared: HashMap<TokenId, Attributes>,
    special: SpecialTokens,
    settings: Settings,
    eog: Vec<TokenId>,
    special_order: Vec<TokenId>,
    charsmap: Vec<u8>,
    max_token_len: usize,
    repairs: Vec<Repair>,
}

heap_bytes!(Vocabulary: texts, keys, index, scores, attributes, declared, eog, special_order, charsmap, repairs);

impl Vocabulary {
    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.size
    }

    /// The number of tokens, for a list of them all.
    ///
    /// # Errors
    /// [`VocabularyError::Unlisted`]: the vocabulary has no texts, and more than 1,048,576 tokens.
    pub fn list_len(&self) -> Result<usize, VocabularyError> {
        let count = self.size;
        let is_listed = count <= MAX_LISTED.max(self.texts.len());
        is_listed.then_some(count).ok_or(VocabularyError::Unlisted { count })
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// The algorithm.
    pub fn kind(&self) -> Kind {
        self.row.kind
    }

    /// The algorithm by its name in the file (`tokenizer.ggml.model`).
    pub fn model(&self) -> &'static str {
        self.row.name
    }

    /// The pre-tokenizer of a byte-pair vocabulary.
    pub fn pre(&self) -> Option<&'static PreTokenizer> {
        self.pre
    }

    /// A token's text as in the file (`[EMPTY_<id>]` for an empty one); empty for an id that does not exist.
    #[inline]
    pub fn text(&self, id: TokenId) -> &[u8] {
        self.texts.get(id as usize)
    }

    /// A token's score; 0 if the file has none or the id does not exist.
    pub fn score(&self, id: TokenId) -> f32 {
        self.scores.get(id as usize).copied().unwrap_or_default()
    }

    /// A token's attributes; none for an id that does not exist.
    #[inline]
    pub fn attributes(&self, id: TokenId) -> Attributes {
        self.attributes.get(id as usize).copied().unwrap_or_default()
    }

    /// A token's attributes before the vocabulary was repaired: llama.cpp builds some tables from them.
    pub fn declared_attributes(&self, id: TokenId) -> Attributes {
        self.declared.get(&id).copied().unwrap_or_else(|| self.attributes(id))
    }

    /// The id of a text. O(length) expected.
    #[inline]
    pub fn id(&self, text: &[u8]) -> Option<TokenId> {
        let keys = self.keys();
        self.index.find(self.seed.hash(text), |id| keys.get(id) == text).map(|id| id as TokenId)
    }

    /// Calls `found` with the position and id of each of several short texts that is a token, given the keys of the
    /// texts, of which some may be null, and of all tokens. The look-ups overlap, which is faster than one by one.
    #[inline]
    pub(crate) fn find_all(
        &self,
        texts: &[Key; LOOKUPS_AT_ONCE],
        tokens: &[Key],
        mut found: impl FnMut(usize, TokenId),
    ) {
        let is_text = |id: usize, text: Key| tokens.get(id).is_some_and(|token| token.is(text));
        let mut likely = [0; LOOKUPS_AT_ONCE];
        for (likely, text) in likely.iter_mut().zip(texts) {
            *likely = self.index.likely(text.hash(self.seed));
        }
        for (at, (&id, &text)) in likely.iter().zip(texts).enumerate() {
            let id = Some(id).filter(|&id| is_text(id, text));
            if let Some(id) = id.or_else(|| self.index.find(text.hash(self.seed), |id| is_text(id, text))) {
                found(at, id as TokenId);
            }
        }
    }

    /// The token of a byte in an SPM or Unigram vocabulary: `<0xXX>`, or else the byte itself.
    pub fn byte_token(&self, byte: u8) -> Option<TokenId> {
        self.id(&byte_text(byte)).or_else(|| self.id(&[byte]))
    }

    /// Special tokens.
    pub fn special(&self) -> &SpecialTokens {
        &self.special
    }

    /// Flags.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tokens that end generation, in ascending order.
    pub fn eog(&self) -> &[TokenId] {
        &self.eog
    }

    /// The special tokens, in the order in which a text is searched for them.
    pub fn special_order(&self) -> &[TokenId] {
        &self.special_order
    }

    /// The precompiled character map of a Unigram vocabulary; empty if there is none.
    pub fn charsmap(&self) -> &[u8] {
        &self.charsmap
    }

    /// The longest token text in bytes.
    pub fn max_token_len(&self) -> usize {
        self.max_token_len
    }

    /// What was repaired at load.
    pub fn repairs(&self) -> &[Repair] {
        &self.repairs
    }

    /// Everything that distinguishes this vocabulary from others, as bytes: equal vocabularies have equal bytes.
    ///
    /// They depend on the version of this crate, so they are for comparing inside one process.
    pub fn canonical_bytes(&self) -> Vec<u8> {
        let Self { row, pre, size, special, settings, eog, .. } = self;
        let pre = pre.map(|pre| pre.name);
        let mut bytes = format!("{:?}", (row.kind, row.name, pre, size, special, settings, eog)).into_bytes();
        let mut add = |data: &[u8]| {
            bytes.extend_from_slice(&(data.len() as u64).to_le_bytes());
            bytes.extend_from_slice(data);
        };
        self.texts.iter().chain(self.keys().iter()).for_each(&mut add);
        add(&self.charsmap);
        let scores: Vec<u8> = self.scores.iter().flat_map(|score| score.to_le_bytes()).collect();
        add(&scores);
        let attributes: Vec<u8> =
            self.attributes.iter().flat_map(|attributes| attributes.bits().to_le_bytes()).collect();
        add(&attributes);
        bytes
    }

    /// Memory held outside the value itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        HeapBytes::heap_bytes(self)
    }

    /// The texts of all tokens.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// The texts by which tokens are looked up.
    pub(crate) fn keys(&self) -> &Texts {
        self.keys.as_ref().unwrap_or(&self.texts)
    }

    pub(crate) fn set_newline(&mut self, id: Option<TokenId>) {
        self.special.nl = id;
    }
}
