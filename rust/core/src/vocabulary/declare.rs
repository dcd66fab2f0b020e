//! A vocabulary as its file declares it, before the loader's repairs: lists checked, texts indexed, defaults filled in.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::load`, up to the set-up of the algorithm.
//! O(total length of the texts).
//!
//! Deviations: (1) duplicate texts, on which llama.cpp aborts, are a typed error; (2) so are more tokens than there are
//! 32-bit ids.

use std::collections::HashMap;

use super::repairs::{Repair, declared};
use super::{Attributes, Definition, Kind, Texts, Vocabulary, defaults};
use crate::error::{CharsmapDamage, VocabularyError};
use crate::lookup::hash::Seed;
use crate::lookup::index::{Index, LOOKUPS_AT_ONCE};
use crate::token::TokenId;
use crate::vocabulary::families::PreTokenizer;
use crate::work::memory::{collect, copied, filled, push};

/// The suffix that keeps a hybrid DNA vocabulary's k-mers apart from equal words. It is not part of the token's text.
pub const DNA_MARKER: &[u8] = "\u{E000}".as_bytes();

impl Vocabulary {
    /// Reads a definition as far as llama.cpp does before it sets up the algorithm: attributes are as declared, special
    /// tokens and settings are the model's defaults.
    ///
    /// # Errors
    /// [`VocabularyError`]: unknown names, missing or short lists, duplicate tokens, sizes beyond 32 bits.
    pub(crate) fn declare(definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let row = defaults::model(definition.model)?;
        let mut repairs = Vec::new();
        let kind = row.kind;
        let pre = match kind {
            Kind::Bpe => Some(PreTokenizer::select(row.name, definition.pre, &mut repairs)?),
            _ => None,
        };
        let (special, mut settings) = defaults::defaults(row, pre);
        settings.add_space_prefix = definition.add_space_prefix.unwrap_or(settings.add_space_prefix);
        settings.remove_extra_whitespaces = definition.remove_extra_whitespaces.unwrap_or_default();
        if kind == Kind::Bpe && definition.merges.is_none() && pre.is_none_or(|pre| pre.needs_merges()) {
            return Err(VocabularyError::MissingMerges);
        }
        let size = match (kind, definition.tokens) {
            (Kind::None, _) => definition.vocab_size.unwrap_or_default() as usize,
            (_, Some(tokens)) => tokens.len(),
            (_, None) => return Err(VocabularyError::MissingTokens),
        };
        if size > i32::MAX as usize {
            return Err(VocabularyError::TooManyTokens { count: size });
        }
        if kind == Kind::Unigram && definition.charsmap.is_some_and(<[u8]>::is_empty) {
            return Err(VocabularyError::Charsmap { offset: 0, damage: CharsmapDamage::Empty });
        }
        let mut vocabulary = Self {
            row,
            pre,
            size,
            texts: Texts::default(),
            keys: None,
            index: Index::default(),
            seed: Seed::default(),
            scores: Vec::new(),
            attributes: Vec::new(),
            declared: HashMap::new(),
            special,
            settings,
            eog: Vec::new(),
            special_order: Vec::new(),
            charsmap: copied(definition.charsmap.filter(|_| kind == Kind::Unigram).unwrap_or_default()),
            max_token_len: 0,
            repairs,
        };
        if kind != Kind::None {
            vocabulary.read_scores_and_types(definition)?;
            vocabulary.read_texts(definition)?;
            if row.name == defaults::HYBRID_DNA {
                vocabulary.erase_dna_markers()?;
            }
        }
        Ok(vocabulary)
    }

    fn read_scores_and_types(&mut self, definition: &Definition<'_>) -> Result<(), VocabularyError> {
        let tokens = self.size;
        if let Some(scores) = definition.scores {
            let short = VocabularyError::TooShort { what: "scores", len: scores.len(), tokens };
            self.scores = copied(scores.get(..tokens).ok_or(short)?);
        }
        self.attributes = match definition.token_types {
            Some(types) => {
                let short = VocabularyError::TooShort { what: "token types", len: types.len(), tokens };
                collect(types.get(..tokens).ok_or(short)?.iter().map(|&token_type| declared(token_type)))
            }
            None => filled(tokens, Attributes::NORMAL),
        };
        Ok(())
    }

    fn read_texts(&mut self, definition: &Definition<'_>) -> Result<(), VocabularyError> {
        let Some(tokens) = definition.tokens else { return Err(VocabularyError::MissingTokens) };
        let bytes = tokens.iter().map(<[u8]>::len).sum();
        self.texts = Texts::with_capacity(tokens.len(), bytes);
        for text in tokens.iter() {
            self.texts.push(text)?;
        }
        // One search through all texts is faster than one search per text.
        if self.texts.contains(0) || tokens.iter().any(<[u8]>::is_empty) {
            self.texts = Texts::with_capacity(tokens.len(), bytes);
            for (id, text) in tokens.iter().map(c_string).enumerate() {
                if text.is_empty() {
                    self.texts.push(format!("[EMPTY_{id}]").as_bytes())?;
                    push(&mut self.repairs, Repair::Empty { id: id as TokenId });
                } else {
                    self.texts.push(text)?;
                }
            }
        }
        self.max_token_len = self.texts.iter().map(<[u8]>::len).max().unwrap_or_default();
        self.index = Index::with_capacity(tokens.len());
        let Self { texts, seed, index, .. } = self;
        for first in (0..texts.len()).step_by(LOOKUPS_AT_ONCE) {
            let mut hashes = [0; LOOKUPS_AT_ONCE];
            for (hash, id) in hashes.iter_mut().zip(first..texts.len()) {
                *hash = texts.key(id).map_or_else(|| seed.hash(texts.get(id)), |key| key.hash(*seed));
            }
            index.prefetch(&hashes);
            for (&hash, id) in hashes.iter().zip(first..texts.len()) {
                if let Some(first) = index.find_or_insert(hash, id, |other| texts.get(other) == texts.get(id)) {
                    let is_cut = tokens.get(first) != tokens.get(id);
                    let text = texts.get(id).to_vec();
                    let first = first as TokenId;
                    return Err(VocabularyError::DuplicateToken { text, first, second: id as TokenId, is_cut });
                }
            }
        }
        Ok(())
    }

    /// Removes the marker from the k-mers, which are the tokens after `<oov>`.
    fn erase_dna_markers(&mut self) -> Result<(), VocabularyError> {
        let Some(oov) = self.id(b"<oov>") else { return Ok(()) };
        let mut shown = Texts::with_capacity(self.size, 0);
        for (id, text) in self.texts.iter().enumerate() {
            let bare = text.strip_suffix(DNA_MARKER).filter(|bare| id > oov as usize && !bare.is_empty());
            shown.push(bare.unwrap_or(text))?;
        }
        self.keys = Some(std::mem::replace(&mut self.texts, shown));
        Ok(())
    }
}

/// A string read as a C string, as llama.cpp reads some: up to the first NUL byte.
pub fn c_string(text: &[u8]) -> &[u8] {
    memchr::memchr(0, text).map_or(text, |end| &text[..end])
}

/// The two texts of a merge rule, which ends at a NUL byte, as C strings do. The space between them is not its first
/// byte.
pub fn split_rule(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let merge = c_string(merge);
    let space = memchr::memchr(b' ', merge.get(1..)?)? + 1;
    Some((&merge[..space], &merge[space + 1..]))
}
