//! Builds the tables of byte-pair encoding over bytes from a vocabulary.
//!
//! One pass over the texts of all tokens builds the tables that need no merge rules, on another thread while the rules
//! are read. O(total length of the texts and the rules).

use super::byte_tables::ByteTables;
use super::whole_chars::{CharUses, WholeChars};
use super::whole_tokens::WholeTokens;
use crate::encode::model::adjacency::JunctionsBuilder;
use crate::encode::model::merging::ranks::MergeRanks;
use crate::encode::model::merging::sure_pairs::{Edges, SurePairs};
use crate::encode::model::merging::symbol::Symbol;
use crate::error::VocabularyError;
use crate::token::NULL_TOKEN;
use crate::vocabulary::spelling::byte_level;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::threads::join;

impl ByteTables {
    /// Builds all tables.
    ///
    /// # Errors
    /// As [`MergeRanks::new`].
    pub(super) fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let read_rules = || MergeRanks::new(vocabulary, definition.merges);
        let (ranks, mut texts) = join(read_rules, || TextTables::new(vocabulary));
        let (ranks, rows) = ranks?;
        for (text, symbol) in ranks.others() {
            texts.add(text, symbol);
        }

        let TextTables { whole_tokens, junctions, uses, edges, .. } = texts;
        let bytes: [Symbol; 256] = std::array::from_fn(|byte| {
            let (text, len) = byte_level::spell(byte as u8);
            ranks.symbol(vocabulary, &text[..len])
        });
        let pairs = SurePairs::new(&rows, &bytes, edges);
        Ok(Self {
            whole_chars: WholeChars::new(&ranks, &bytes, &pairs, &uses),
            bytes,
            pairs,
            whole_tokens,
            junctions: junctions.finish(),
            spelled_bytes: std::array::from_fn(|byte| vocabulary.id(&[byte as u8]).unwrap_or(NULL_TOKEN)),
            ranks,
        })
    }
}

/// What the texts of symbols say.
struct TextTables {
    whole_tokens: Option<WholeTokens>,
    junctions: JunctionsBuilder,
    uses: CharUses,
    /// By symbol.
    edges: Vec<Edges>,
    /// The bytes that the text added last spells.
    spelled: Vec<u8>,
}

impl TextTables {
    fn new(vocabulary: &Vocabulary) -> Self {
        let len = vocabulary.len();
        let mut whole_tokens = vocabulary.settings().ignore_merges.then(|| WholeTokens::with_capacity(len));
        let mut tables = Self {
            whole_tokens: None,
            junctions: JunctionsBuilder::new(false),
            uses: CharUses::default(),
            edges: Vec::with_capacity(len),
            spelled: Vec::new(),
        };
        for (text, symbol) in vocabulary.keys().iter().zip(0..) {
            tables.add(text, symbol);
            if let Some(whole_tokens) = &mut whole_tokens {
                whole_tokens.push(&mut tables.spelled);
            }
        }
        tables.whole_tokens = whole_tokens.map(WholeTokens::finish);
        tables
    }

    /// Adds a symbol. A text that spells no bytes occurs in no piece.
    fn add(&mut self, text: &[u8], symbol: Symbol) {
        self.spelled.clear();
        if byte_level::unspell_all(text, &mut self.spelled) {
            self.junctions.add_bytes(&self.spelled);
            self.uses.add(&self.spelled, symbol);
        }
        self.edges.resize(self.edges.len().max(symbol as usize + 1), Edges::default());
        self.edges[symbol as usize] = Edges::of(&self.spelled);
    }
}
