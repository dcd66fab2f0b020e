//! Fills the table of merge ranks, a group of rules at a time, so that their reads from memory overlap. O(rows).

use super::{BITS_PER_SLOT, FREE, MergeRanks, RANKS_PER_BASE, Row, place_of_bit};
use crate::encode::model::merging::symbol::{MAX_RANKS, NO_SYMBOL, Symbol};
use crate::error::VocabularyError;
use crate::lookup::index::LOOKUPS_AT_ONCE;
use crate::lookup::prefetch::prefetch;
use crate::work::large_vec::LargeVec;
use crate::work::memory::collect;

impl MergeRanks {
    /// Fills the table. Of equal pairs the first one stays.
    pub(super) fn fill(&mut self, rows: &[Row]) -> Result<(), VocabularyError> {
        // No symbol has all bits set, so no pair looks like a free slot's.
        self.symbol_bits = bits(self.num_tokens + self.others.len() + 1);
        self.rank_bits = bits(rows.len());
        if rows.len() >= MAX_RANKS || 2 * self.symbol_bits + self.rank_bits > u64::BITS {
            return Err(VocabularyError::TooLarge { what: "merges" });
        }
        // At least a third of the slots stay free.
        let num_slots = (rows.len() + rows.len() / 2).next_power_of_two().max(16);
        let mask = num_slots - 1;
        let mut slots = LargeVec::filled(num_slots, FREE);
        let mut present = LargeVec::filled(num_slots * BITS_PER_SLOT / 64, 0);
        self.merged = collect(rows.iter().map(|row| row[2]));
        let lowest = |merged: &[Symbol]| merged.iter().copied().min().unwrap_or_default();
        self.bases = collect(self.merged.chunks(RANKS_PER_BASE).map(lowest));
        for (rows, first) in rows.chunks(LOOKUPS_AT_ONCE).zip((0..).step_by(LOOKUPS_AT_ONCE)) {
            let mut hashes = [0; LOOKUPS_AT_ONCE];
            for (hash, row) in hashes.iter_mut().zip(rows) {
                *hash = self.seed.hash_pair(row[0], row[1]);
                prefetch(&slots, *hash as usize & mask);
            }
            for ((row, hash), rank) in rows.iter().zip(hashes).zip(first..).filter(|((row, _), _)| row[2] != NO_SYMBOL)
            {
                let mut at = hash as usize & mask;
                let bit = place_of_bit(at, hash);
                present[bit / 64] |= 1 << (bit % 64);
                let pair = self.pair(row[0], row[1]);
                while slots[at] != FREE && self.pair_of(slots[at]) != pair {
                    at = (at + 1) & mask;
                }
                if slots[at] == FREE {
                    let distance = u64::from(row[2] - self.bases[rank / RANKS_PER_BASE]).min(self.max_distance());
                    slots[at] = (pair << self.rank_bits | rank as u64) << self.distance_bits() | distance;
                }
            }
        }
        (self.slots, self.present) = (slots, present);
        Ok(())
    }
}

/// The bits that numbers below `count` need, at least one.
fn bits(count: usize) -> u32 {
    count.next_power_of_two().trailing_zeros().max(1)
}

#[cfg(test)]
mod tests {
    use super::{FREE, MergeRanks, Row};
    use crate::encode::model::merging::ranks::tests::with;
    use crate::encode::model::merging::symbol::{Merge, NO_MERGE, NO_RANK};
    use crate::error::VocabularyError;

    #[test]
    fn many_merges_are_all_found() -> Result<(), VocabularyError> {
        let tokens: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
        let pairs = (0..40_000).map(|number| (number % 200, number / 200)).filter(|(left, right)| left != right);
        let merges: Vec<String> = pairs.clone().map(|(left, right)| format!("{left:03} {right:03}")).collect();
        let [tokens, mut merges] = [&tokens, &merges].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
        // The first rule for a pair wins.
        merges.extend_from_within(..1000);
        with(&tokens, &merges, |_, ranks| {
            for (rank, (left, right)) in (0..).zip(pairs.clone()) {
                assert_eq!(ranks.get(left, right).rank, rank);
            }
            assert!((0..200).all(|symbol| ranks.get(symbol, symbol).rank == NO_RANK));
        })
    }

    #[test]
    fn merged_symbols_are_known_at_any_distance() -> Result<(), VocabularyError> {
        // Nearly in order, as training makes them, and some far away. 17 bits per symbol and 16 per rank leave 14.
        let rows: Vec<Row> = (0..60_000)
            .map(|at| [at, at % 7 + 1, if at % 50 == 0 { 119_000 + at / 60 } else { 1000 + at + at % 3 }])
            .collect();
        let ranks = MergeRanks::of_rows(120_000, &rows)?;
        assert!(ranks.max_distance() < 1 << 14);
        for (&[left, right, symbol], rank) in rows.iter().zip(0..) {
            assert_eq!(ranks.get(left, right), Merge { rank, symbol });
            assert_eq!(ranks.get(left, right + 1), NO_MERGE);
        }
        Ok(())
    }

    #[test]
    fn a_rule_may_repeat_very_often() -> Result<(), VocabularyError> {
        let merges: Vec<&str> = ["a b", "b a"].repeat(200_000);
        with(&["a", "b"], &[&merges[..], &["a a"]].concat(), |_, ranks| {
            assert_eq!(
                [(0, 1), (1, 0), (0, 0), (1, 1)].map(|(left, right)| ranks.get(left, right).rank),
                [0, 1, 400_000, NO_RANK]
            );
            assert_eq!(ranks.slots.iter().filter(|&&slot| slot != FREE).count(), 3);
        })
    }
}
