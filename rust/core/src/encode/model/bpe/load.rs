//! Builds the tables of byte-pair encoding over bytes from a vocabulary.
//!
//! One pass over the texts of all tokens builds the tables that need no merge rules, on another thread while the rules
//! are read. O(total length of the texts and the rules).

use super::byte_tables::ByteTables;
use super::whole_chars::{CharUses, WholeChars};
use super::whole_tokens::WholeTokens;
use crate::encode::model::merging::ranks::{MergeRanks, Row};
use crate::encode::model::merging::sure_pairs::{Ends, SurePairs, SurePairsBuilder};
use crate::encode::model::merging::symbol::{Merge, NO_SYMBOL, Symbol};
use crate::encode::model::merging::symbol_tokens::SymbolTokens;
use crate::encode::model::segmenter::SegmenterBuilder;
use crate::error::VocabularyError;
use crate::lookup::key::Key;
use crate::vocabulary::spelling::byte_level;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::memory::{fill, filled};
use crate::work::threads::join;

/// Only pairs of lower rank count as sure, so that most rules of higher rank can be skipped.
const MAX_SURE_RANK: u32 = 1 << 15;

impl ByteTables {
    /// Builds all tables.
    ///
    /// # Errors
    /// As [`MergeRanks::new`].
    pub(super) fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let read_rules = || MergeRanks::new(vocabulary, definition.merges);
        let (ranks, mut texts) = join(read_rules, || TextTables::new(vocabulary));
        let (ranks, rows) = ranks?;
        fill(&mut texts.ends, vocabulary.len() + ranks.others().len(), None);
        for (text, symbol) in ranks.others() {
            texts.add(text, symbol, &mut Vec::new());
        }

        let TextTables { whole_tokens, segmenter, uses, ends, .. } = texts;
        let bytes: [Symbol; 256] = std::array::from_fn(|byte| {
            let (text, len) = byte_level::spell(byte as u8);
            ranks.symbol(vocabulary, &text[..len])
        });
        let pairs = sure_pairs(&rows, &bytes, &ends);
        Ok(Self {
            whole_chars: WholeChars::new(&ranks, &bytes, &pairs, &uses),
            bytes,
            pairs,
            whole_tokens,
            segmenter: segmenter.finish(),
            tokens: SymbolTokens::new(vocabulary, |byte| {
                let (text, len) = byte_level::spell(byte);
                [0, 1, 2].map(|at| text[..len].get(at).and_then(|&byte| vocabulary.id(&[byte])))
            }),
            ranks,
        })
    }
}

/// The tables that are built from the texts of symbols.
struct TextTables {
    whole_tokens: Option<WholeTokens>,
    segmenter: SegmenterBuilder,
    uses: CharUses,
    /// Indexed by symbol.
    ends: Vec<Option<Ends>>,
}

impl TextTables {
    fn new(vocabulary: &Vocabulary) -> Self {
        let texts = vocabulary.keys();
        let len = vocabulary.len();
        let mut whole_tokens = vocabulary.settings().ignore_merges.then(|| WholeTokens::with_capacity(len));
        let mut tables = Self {
            whole_tokens: None,
            segmenter: SegmenterBuilder::new(false),
            uses: CharUses::default(),
            ends: filled(len, None),
        };
        let mut spelled = Vec::new();
        for id in 0..len {
            // Most texts are short and of ASCII, and in one piece they are faster than byte by byte.
            if let Some(key) = texts.key(id).and_then(Key::unspelled) {
                let spelled = &key.bytes()[..key.word_len()];
                tables.segmenter.add_ascii(spelled);
                tables.ends[id] = Ends::of(spelled);
                whole_tokens.iter_mut().for_each(|tokens| tokens.set(id, spelled, Some(key)));
            } else {
                tables.add(texts.get(id), id as Symbol, &mut spelled);
                let key = Key::new(&spelled, 0, spelled.len());
                whole_tokens.iter_mut().for_each(|tokens| tokens.set(id, &spelled, key));
            }
        }
        tables.whole_tokens = whole_tokens.map(WholeTokens::finish);
        tables
    }

    /// Adds a symbol, and replaces `spelled` with the bytes that it spells. A text that spells none occurs in no piece.
    fn add(&mut self, text: &[u8], symbol: Symbol, spelled: &mut Vec<u8>) {
        spelled.clear();
        byte_level::unspell_all(text, spelled);
        if spelled.is_ascii() {
            self.segmenter.add_ascii(spelled);
        } else {
            self.segmenter.add_bytes(spelled);
            self.uses.add(spelled, symbol);
        }
        self.ends[symbol as usize] = Ends::of(spelled);
    }
}

/// Reads merge rules in order of rank, given the ends of the bytes that each symbol spells. O(rules + 2¹⁶).
fn sure_pairs(rows: &[Row], bytes: &[Symbol; 256], ends: &[Option<Ends>]) -> SurePairs {
    let last_byte = bytes.iter().filter(|&&symbol| symbol != NO_SYMBOL).max().copied().unwrap_or_default();
    let mut pairs = SurePairsBuilder::new();
    for (&[left, right, symbol], rank) in rows.iter().zip(0..) {
        if rank >= MAX_SURE_RANK && left.max(right) > last_byte {
            continue;
        }
        let Some(ends) = ends.get(symbol as usize).copied().flatten() else { continue };
        // A rule with an empty side may make two bytes too, but it never applies in a piece.
        if ends.pair().is_none_or(|pair| pair.map(|byte| bytes[usize::from(byte)]) == [left, right]) {
            pairs.add(ends, Merge { rank, symbol });
        }
    }
    pairs.finish(MAX_SURE_RANK)
}
