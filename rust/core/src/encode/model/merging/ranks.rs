//! Merge ranks by pairs of symbols: open addressing with 8 bytes per slot, and a bit table that rejects most pairs.
//!
//! llama.cpp looks a merge rule up by the texts of its two parts. Here equal texts are equal symbols, so a pair of
//! numbers identifies the same rule: tokens keep their ids, and texts that only occur in merge rules are numbered after
//! them. The tables do not fit in L2, so the cost of a look-up is the number of cache lines that it reads: one for the
//! bits and, for the few pairs that pass, one for the slot, which also holds the symbol that the merge makes.
//!
//! [`read`] turns merge rules into symbols; [`fill`] fills the table. A look-up is O(1) expected. Deviations: none.

mod fill;
mod read;

use std::collections::HashMap;

use super::symbol::{MAX_RANKS, Merge, NO_MERGE, NO_RANK, NO_SYMBOL, Symbol};
use crate::error::VocabularyError;
use crate::lookup::hash::Seed;
use crate::lookup::prefetch::prefetch;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::strings::Strings;
use crate::work::large_vec::LargeVec;
use crate::work::memory::filled;

/// Bits in [`MergeRanks::present`] for each slot.
const BITS_PER_SLOT: usize = 4;
/// Ranks that share a base.
const RANKS_PER_BASE: usize = 128;
/// A slot without a merge: the highest pair, which no two symbols make.
const FREE: u64 = u64::MAX;

/// The left, right and merged symbols of a merge rule; [`NO_SYMBOL`] if a text is not a token, or the rule has no
/// space.
pub(crate) type Row = [Symbol; 3];

/// The merge rules of a vocabulary.
#[derive(Debug, Default)]
pub(crate) struct MergeRanks {
    seed: Seed,
    /// From the highest bit down: the left symbol, the right symbol, the rank, and the distance of the merged symbol
    /// from the base of its rank.
    slots: LargeVec<u64>,
    /// Bits of a symbol in a slot.
    symbol_bits: u32,
    /// Bits of a rank in a slot.
    rank_bits: u32,
    /// The merged symbol of each rank, for distances that do not fit in a slot.
    merged: Vec<Symbol>,
    /// The lowest merged symbol of each [`RANKS_PER_BASE`] ranks. Merge rules make tokens nearly in order, so distances
    /// are small.
    bases: Vec<Symbol>,
    /// One bit for each merge rule, placed by hash, near the place of its slot.
    present: LargeVec<u64>,
    /// The symbols that are not tokens, numbered after the tokens.
    others: HashMap<Box<[u8]>, Symbol>,
    num_tokens: usize,
}

heap_bytes!(MergeRanks: slots, merged, bases, present, others);

/// A look-up under way: its bit has been read, its slot has not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RankProbe {
    left: Symbol,
    right: Symbol,
    slot: u32,
    /// Whether the slot is worth reading: most pairs do not merge.
    pub(crate) is_present: bool,
}

impl MergeRanks {
    /// Reads merge rules, each `left right`; if several have the same pair, the first one wins. Returns their symbols
    /// too, in order of rank. As in llama.cpp, a rule without a space never applies.
    ///
    /// # Errors
    /// [`VocabularyError::TooLarge`] if the symbols and rank of a slot do not fit in 64 bits.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        merges: Option<Strings<'_>>,
    ) -> Result<(Self, LargeVec<Row>), VocabularyError> {
        if merges.as_ref().map_or(0, Strings::len) >= MAX_RANKS {
            return Err(VocabularyError::TooLarge { what: "merges" });
        }
        let mut ranks = Self { num_tokens: vocabulary.len(), ..Self::default() };
        let rows = merges.map_or_else(LargeVec::default, |merges| ranks.read(vocabulary, merges));
        ranks.fill(&rows)?;
        Ok((ranks, rows))
    }

    /// The merge of two adjacent symbols. Not inlined, so that the cache in front of it is.
    #[inline(never)]
    pub(crate) fn get(&self, left: Symbol, right: Symbol) -> Merge {
        self.complete(self.probe(left, right))
    }

    /// Begins a look-up. It has no branch, so look-ups can begin while others wait for memory.
    #[inline(always)]
    pub(crate) fn probe(&self, left: Symbol, right: Symbol) -> RankProbe {
        let hash = self.seed.hash_pair(left, right);
        let slot = hash as usize & (self.slots.len() - 1);
        let bit = place_of_bit(slot, hash);
        let is_present = self.present[bit / 64] >> (bit % 64) & 1 != 0;
        prefetch(&self.slots, if is_present { slot } else { 0 });
        RankProbe { left, right, slot: slot as u32, is_present }
    }

    /// Completes a look-up, with the same result as [`MergeRanks::get`].
    #[inline(always)]
    pub(crate) fn complete(&self, probe: RankProbe) -> Merge {
        let RankProbe { left, right, slot, is_present } = probe;
        if !is_present || u64::from(left | right) >> self.symbol_bits != 0 {
            return NO_MERGE;
        }
        let pair = self.pair(left, right);
        let mut at = slot as usize;
        loop {
            let slot = self.slots[at];
            if self.pair_of(slot) == pair {
                let rank = slot >> self.distance_bits() & ((1 << self.rank_bits) - 1);
                let rank = rank as usize;
                let distance = slot & self.max_distance();
                let is_near = distance != self.max_distance();
                let symbol =
                    if is_near { self.bases[rank / RANKS_PER_BASE] + distance as Symbol } else { self.merged[rank] };
                return Merge { rank: rank as u32, symbol };
            }
            if slot == FREE {
                return NO_MERGE;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Two symbols as one number.
    #[inline]
    fn pair(&self, left: Symbol, right: Symbol) -> u64 {
        u64::from(left) << self.symbol_bits | u64::from(right)
    }

    /// The pair in a slot.
    #[inline]
    fn pair_of(&self, slot: u64) -> u64 {
        slot >> (u64::BITS - 2 * self.symbol_bits)
    }

    /// Bits of a distance in a slot: whatever the symbols and the rank leave.
    #[inline]
    fn distance_bits(&self) -> u32 {
        u64::BITS - 2 * self.symbol_bits - self.rank_bits
    }

    /// Stands for every distance that does not fit.
    #[inline]
    fn max_distance(&self) -> u64 {
        (1 << self.distance_bits()) - 1
    }

    /// The symbol of a text, or [`NO_SYMBOL`].
    pub(crate) fn symbol(&self, vocabulary: &Vocabulary, text: &[u8]) -> Symbol {
        match vocabulary.id(text) {
            Some(id) => id as Symbol,
            None => self.others.get(text).copied().unwrap_or(NO_SYMBOL),
        }
    }

    /// Whether a symbol is a token.
    #[inline]
    pub(crate) fn is_token(&self, symbol: Symbol) -> bool {
        (symbol as usize) < self.num_tokens
    }

    /// The symbols that are not tokens, with their texts.
    pub(crate) fn others(&self) -> impl ExactSizeIterator<Item = (&[u8], Symbol)> {
        self.others.iter().map(|(text, &symbol)| (&text[..], symbol))
    }

    /// For each symbol, the lowest rank of a rule that makes it, or [`NO_RANK`].
    pub(crate) fn first_ranks(&self) -> Vec<u32> {
        let mut ranks = filled(self.num_tokens + self.others.len(), NO_RANK);
        for (rank, &symbol) in self.merged.iter().enumerate().rev() {
            if let Some(first) = ranks.get_mut(symbol as usize) {
                *first = rank as u32;
            }
        }
        ranks
    }
}

/// The bit of a pair with this hash, whose slot is at `at` or after it.
#[inline]
fn place_of_bit(at: usize, hash: u64) -> usize {
    at * BITS_PER_SLOT + (hash >> 32) as usize % BITS_PER_SLOT
}

#[cfg(test)]
mod tests {
    use super::{MergeRanks, NO_SYMBOL, Row};
    use crate::encode::model::merging::symbol::NO_RANK;
    use crate::error::VocabularyError;
    use crate::vocabulary::strings::{StringIndex, Strings};
    use crate::vocabulary::{Definition, Vocabulary};

    impl MergeRanks {
        /// Merge rules of these symbols, all of them tokens.
        pub(crate) fn of_rows(num_tokens: usize, rows: &[Row]) -> Result<Self, VocabularyError> {
            let mut ranks = Self { num_tokens, ..Self::default() };
            ranks.fill(rows)?;
            Ok(ranks)
        }
    }

    /// Calls `check` with these tokens and merge rules.
    pub(super) fn with(
        tokens: &[&str],
        merges: &[&str],
        check: impl Fn(&Vocabulary, &MergeRanks),
    ) -> Result<(), VocabularyError> {
        let index = |texts: &[&str]| StringIndex::concatenate(texts).unwrap_or_default();
        let (tokens, token_index) = index(tokens);
        let (merges, merge_index) = index(merges);
        let tokens: Strings<'_> = token_index.view(&tokens);
        let definition =
            Definition { model: "gpt2", pre: Some("gpt-2"), tokens: Some(tokens), ..Definition::default() };
        let definition = Definition { merges: Some(merge_index.view(&merges)), ..definition };
        let vocabulary = Vocabulary::declare(&definition)?;
        check(&vocabulary, &MergeRanks::new(&vocabulary, definition.merges)?.0);
        Ok(())
    }

    #[test]
    fn pairs_have_the_rank_of_their_rule() -> Result<(), VocabularyError> {
        with(&["a", "b", "ab", "abb"], &["a b", "ab b", "b b"], |_, ranks| {
            let found = [(0, 1), (2, 1), (1, 1)].map(|(left, right)| ranks.get(left, right));
            assert_eq!(found.map(|merge| (merge.rank, merge.symbol)), [(0, 2), (1, 3), (2, 4)]);
            assert_eq!([(1, 0), (NO_SYMBOL, NO_SYMBOL)].map(|(l, r)| ranks.get(l, r).rank), [NO_RANK; 2]);
        })
    }

    #[test]
    fn of_equal_rules_the_first_one_wins() -> Result<(), VocabularyError> {
        with(&["a", "b"], &["b a", "a b", "a b", "b a"], |_, ranks| {
            assert_eq!((ranks.get(0, 1).rank, ranks.get(1, 0).rank), (1, 0));
        })
    }
}
