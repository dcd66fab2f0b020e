//! Fills the table of merge ranks, one stretch of slots at a time.
//!
//! A random access to memory costs as much as encoding a word, so a stretch is small enough for L2. The rows are sorted
//! by stretch (a counting sort), and the position of every row in a stretch is found by counting before any is stored,
//! so that no slot is probed twice. Two threads each fill half of the stretches. O(rows).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use super::{BITS_PER_SLOT, FREE, MergeRanks, RANKS_PER_BASE, Row, place_of_bit};
use crate::encode::model::merging::symbol::{MAX_RANKS, NO_SYMBOL, Symbol};
use crate::error::VocabularyError;
use crate::work::threads::join;

/// Slots per stretch, a power of two: 128 KiB.
const STRETCH: usize = 1 << 14;
/// More rows than ever hash to one home slot by chance. A file may repeat a rule many times; only the first one is
/// kept.
const MAX_AT_HOME: usize = 32;

/// Consecutive stretches of the table.
struct Stretches<'a> {
    /// Where the rows of each stretch start among all rows in slot form, and where the last stretch ends.
    bounds: &'a [usize],
    slots: &'a mut [u64],
    present: &'a mut [u64],
}

impl MergeRanks {
    /// Fills the table.
    pub(super) fn fill(&mut self, rows: &[Row]) -> Result<(), VocabularyError> {
        // No symbol has all bits set, so no merge looks like a free slot.
        self.symbol_bits = bits(self.num_tokens + self.others.len() + 1);
        self.rank_bits = bits(rows.len());
        if rows.len() >= MAX_RANKS || 2 * self.symbol_bits + self.rank_bits > u64::BITS {
            return Err(VocabularyError::TooLarge { what: "merges" });
        }
        let lowest = |rows: &[Row]| rows.iter().map(|row| row[2]).min().unwrap_or_default();
        self.merged = rows.iter().map(|row| row[2]).collect();
        self.bases = rows.chunks(RANKS_PER_BASE).map(lowest).collect();
        // At least a third of the slots stay free.
        let num_slots = (rows.len() + rows.len() / 2).next_power_of_two().max(16);
        (self.slots, self.present) = self.filled(rows, num_slots);
        Ok(())
    }

    fn filled(&self, rows: &[Row], num_slots: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut slots, mut present) = (vec![FREE; num_slots], vec![0; num_slots * BITS_PER_SLOT / 64]);
        let mask = num_slots - 1;
        let (merges, bounds) = self.by_stretch(rows, mask);
        let middle = num_slots / STRETCH / 2;
        let (slots_before, slots_after) = slots.split_at_mut(middle * STRETCH);
        let (present_before, present_after) = present.split_at_mut(middle * STRETCH * BITS_PER_SLOT / 64);
        let mut first = Stretches { bounds: &bounds[..=middle], slots: slots_before, present: present_before };
        let second = Stretches { bounds: &bounds[middle..], slots: slots_after, present: present_after };

        let second = Mutex::new(second);
        let lock = || second.lock().unwrap_or_else(PoisonError::into_inner);
        let (left_over, of_second) =
            join(|| self.fill_stretches(&merges, mask, &mut first), || self.fill_stretches(&merges, mask, &mut lock()));

        for merge in left_over.into_iter().chain(of_second) {
            let home = self.hash(merge) as usize & mask;
            let free = (home..).map(|at| at & mask).find(|&at| slots[at] == FREE);
            free.into_iter().for_each(|at| slots[at] = merge);
        }
        (slots, present)
    }

    /// Rows in slot form, sorted by stretch and then by rank; and where each stretch starts and the last one ends.
    fn by_stretch(&self, rows: &[Row], mask: usize) -> (Vec<u64>, Vec<usize>) {
        let known = || rows.iter().zip(0_u64..).filter(|(row, _)| row[2] != NO_SYMBOL);
        let stretch = |row: &Row| (self.seed.hash_pair(row[0], row[1]) as usize & mask) / STRETCH;
        let mut bounds = vec![0; mask / STRETCH + 3];
        for (row, _) in known() {
            bounds[stretch(row) + 2] += 1;
        }
        for at in 2..bounds.len() {
            bounds[at] += bounds[at - 1];
        }

        let mut merges = vec![FREE; rows.len()];
        for (row, rank) in known() {
            let next = &mut bounds[stretch(row) + 1];
            let distance = u64::from(row[2] - self.bases[rank as usize / RANKS_PER_BASE]).min(self.max_distance());
            let ranked = self.pair(row[0], row[1]) << self.rank_bits | rank;
            merges[*next] = !(ranked << self.distance_bits() | distance);
            *next += 1;
        }
        bounds.pop();
        (merges, bounds)
    }

    /// Fills stretches, and returns the merges that find no room before the end of the last one.
    fn fill_stretches(&self, merges: &[u64], mask: usize, stretches: &mut Stretches<'_>) -> Vec<u64> {
        let mut left_over = Vec::new();
        let mut places = vec![0; STRETCH.min(stretches.slots.len())];
        let mut free = 0;
        let count = |merges: &[u64], places: &mut [usize]| {
            places.fill(0);
            merges.iter().for_each(|&merge| places[self.hash(merge) as usize & mask & (STRETCH - 1)] += 1);
        };
        for (stretch, bounds) in stretches.bounds.windows(2).enumerate() {
            let start = stretch * STRETCH;
            let mut merges = Cow::Borrowed(&merges[bounds[0]..bounds[1]]);
            count(&merges, &mut places);
            if places.iter().any(|&count| count > MAX_AT_HOME) {
                let mut pairs = HashSet::new();
                merges.to_mut().retain(|&merge| pairs.insert(self.pair_of(!merge)));
                count(&merges, &mut places);
            }

            // Turns the number of merges at each home slot into the position of the first one: its home, or after the
            // merges before it.
            for (place, home) in places.iter_mut().zip(start..) {
                free = home.max(free);
                free += std::mem::replace(place, free);
            }
            for &merge in &*merges {
                let hash = self.hash(merge);
                let home = hash as usize & mask & (STRETCH - 1);
                let bit = place_of_bit(start + home, hash);
                stretches.present[bit / 64] |= 1 << (bit % 64);
                match stretches.slots.get_mut(places[home]) {
                    Some(slot) => *slot = merge,
                    None => left_over.push(merge),
                }
                places[home] += 1;
            }
        }
        left_over
    }

    /// The hash of the pair in a slot.
    fn hash(&self, slot: u64) -> u64 {
        let pair = self.pair_of(!slot);
        self.seed.hash_pair((pair >> self.symbol_bits) as Symbol, (pair & ((1 << self.symbol_bits) - 1)) as Symbol)
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
