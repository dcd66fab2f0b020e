//! Merges several short words side by side, one step of each at a time.
//!
//! The next merge of a word is not known until the ranks of its new pairs are read, from tables that do not fit in L2.
//! So every word takes one step and begins its look-ups before the first look-up is completed: the reads from memory
//! overlap.
//!
//! O(n²) for each word of n symbols, at most [`MAX_SYMBOLS`]. The order of merges is that of [`super::Merging`].
//! Deviations: none.

use super::ranks::{MergeRanks, RankProbe};
use super::symbol::{MAX_RANKS, Merge, NO_RANK, NO_SYMBOL, Symbol};

/// The most symbols in a word.
pub(crate) const MAX_SYMBOLS: usize = 16;
/// The most words at a time.
pub(crate) const MAX_WORDS: usize = 16;

/// Bits of a position in a word, which shares a number with a rank.
const PLACE_BITS: u32 = MAX_SYMBOLS.trailing_zeros();
const _: () = assert!(MAX_RANKS <= 1 << (u32::BITS - PLACE_BITS));
/// The most look-ups at a time: those of the first step.
const MAX_PENDING: usize = MAX_WORDS * MAX_SYMBOLS;
/// In [`Lane::ranks`]: the symbol does not merge with the next one.
const NONE: u32 = u32::MAX;
/// A word.
#[derive(Debug, Clone, Copy)]
struct Lane {
    /// How many symbols it started with.
    len: usize,
    symbols: [Symbol; MAX_SYMBOLS],
    /// For each symbol, the rank of its merge with the next one, with its own position in the low bits; or [`NONE`].
    ranks: [u32; MAX_SYMBOLS],
    /// The symbols that these merges make.
    merged: [Symbol; MAX_SYMBOLS],
    /// Neighbours; a position past the last symbol means that there is none.
    before: [u8; MAX_SYMBOLS],
    after: [u8; MAX_SYMBOLS],
}

/// A look-up of two symbols that may merge.
#[derive(Debug, Clone, Copy, Default)]
struct PendingPair {
    probe: RankProbe,
    lane: u8,
    /// The position of the left symbol.
    at: u8,
}

/// Words that merge side by side.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: [Lane; MAX_WORDS],
    /// How many are in use.
    len: usize,
    pending: PendingPairs,
}

/// The look-ups under way.
#[derive(Debug)]
struct PendingPairs {
    pairs: [PendingPair; MAX_PENDING],
    len: usize,
}

impl PendingPairs {
    /// Begins the look-up of the symbol at a position and the next symbol. A pair that cannot merge is overwritten by
    /// the next pair.
    #[inline(always)]
    fn begin(&mut self, ranks: &MergeRanks, lane: usize, at: usize, left: Symbol, right: Symbol) {
        let probe = ranks.probe(left, right);
        self.pairs[self.len % MAX_PENDING] = PendingPair { probe, lane: lane as u8, at: at as u8 };
        self.len += usize::from(probe.is_present);
    }
}

impl Default for Lanes {
    fn default() -> Self {
        let symbols = [NO_SYMBOL; MAX_SYMBOLS];
        let ranks = [NONE; MAX_SYMBOLS];
        let [before, after] = [[0; MAX_SYMBOLS]; 2];
        let lane = Lane { len: 0, symbols, ranks, merged: symbols, before, after };
        let pending = PendingPairs { pairs: [PendingPair::default(); MAX_PENDING], len: 0 };
        Self { lanes: [lane; MAX_WORDS], len: 0, pending }
    }
}

impl Lane {
    #[inline(always)]
    fn set(&mut self, at: usize, Merge { rank, symbol }: Merge) {
        let rank = if rank == NO_RANK { NONE } else { rank << PLACE_BITS | at as u32 };
        (self.ranks[at % MAX_SYMBOLS], self.merged[at % MAX_SYMBOLS]) = (rank, symbol);
    }

    /// The position of the symbol that merges next, if one does.
    #[inline(always)]
    fn lowest(&self) -> Option<usize> {
        let fours = self.ranks.as_chunks::<4>().0.iter().take(self.len.div_ceil(4));
        let lowest = fours.fold(NONE, |low, four| low.min(four[0].min(four[1])).min(four[2].min(four[3])));
        (lowest != NONE).then_some(lowest as usize % MAX_SYMBOLS)
    }
}

impl Lanes {
    /// Starts a word.
    #[inline(always)]
    pub(crate) fn start(&mut self) {
        let lane = &mut self.lanes[self.len % MAX_WORDS];
        (lane.len, lane.ranks) = (0, [NONE; MAX_SYMBOLS]);
        lane.before = std::array::from_fn(|at| (at as u8).wrapping_sub(1));
        lane.after = std::array::from_fn(|at| at as u8 + 1);
    }

    /// Adds a symbol to the word, which has room for [`MAX_SYMBOLS`]; `merge` is the merge of the symbol before and
    /// this one, if it is known without a look-up.
    #[inline(always)]
    pub(crate) fn push(&mut self, ranks: &MergeRanks, symbol: Symbol, merge: Option<Merge>) {
        let number = self.len % MAX_WORDS;
        let lane = &mut self.lanes[number];
        let at = lane.len;
        lane.symbols[at % MAX_SYMBOLS] = symbol;
        lane.len = at + 1;
        if at == 0 {
            return;
        }
        match merge {
            Some(merge) => lane.set(at - 1, merge),
            None => self.pending.begin(ranks, number, at - 1, lane.symbols[(at - 1) % MAX_SYMBOLS], symbol),
        }
    }

    /// Ends the word. Returns whether the lanes are full.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> bool {
        self.len += 1;
        self.len == MAX_WORDS
    }

    /// Merges all words.
    pub(crate) fn run(&mut self, ranks: &MergeRanks) {
        let Self { lanes, len, pending } = self;
        let mut active: [u8; MAX_WORDS] = std::array::from_fn(|lane| lane as u8);
        let mut num_active = (*len).min(MAX_WORDS);
        while num_active > 0 {
            for &PendingPair { probe, lane, at } in &pending.pairs[..pending.len.min(MAX_PENDING)] {
                lanes[usize::from(lane) % MAX_WORDS].set(usize::from(at), ranks.complete(probe));
            }
            pending.len = 0;

            let mut num_merged = 0;
            for which in 0..num_active {
                let number = usize::from(active[which % MAX_WORDS]) % MAX_WORDS;
                let lane = &mut lanes[number];
                let Some(at) = lane.lowest() else { continue };
                active[num_merged % MAX_WORDS] = number as u8;
                num_merged += 1;

                let gone = usize::from(lane.after[at]) % MAX_SYMBOLS;
                let merged = lane.merged[at];
                let left = usize::from(lane.before[at]);
                let right = usize::from(lane.after[gone]);
                lane.symbols[at] = merged;
                lane.after[at] = right as u8;
                (lane.ranks[at], lane.ranks[gone]) = (NONE, NONE);
                if right < lane.len {
                    lane.before[right % MAX_SYMBOLS] = at as u8;
                    pending.begin(ranks, number, at, merged, lane.symbols[right % MAX_SYMBOLS]);
                }
                if left < lane.len {
                    lane.ranks[left % MAX_SYMBOLS] = NONE;
                    pending.begin(ranks, number, left, lane.symbols[left % MAX_SYMBOLS], merged);
                }
            }
            num_active = num_merged;
        }
    }

    /// The symbols that are left of a word.
    #[inline(always)]
    pub(crate) fn symbols(&self, number: usize) -> impl Iterator<Item = Symbol> {
        let lane = &self.lanes[number % MAX_WORDS];
        let mut at = 0;
        std::iter::from_fn(move || {
            let symbol = (at < lane.len).then(|| lane.symbols[at % MAX_SYMBOLS])?;
            at = usize::from(lane.after[at % MAX_SYMBOLS]);
            Some(symbol)
        })
    }

    /// Removes all words.
    pub(crate) fn clear(&mut self) {
        (self.len, self.pending.len) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Lanes, MAX_SYMBOLS, MAX_WORDS, MergeRanks, NO_SYMBOL, Symbol};
    use crate::encode::model::merging::Merging;
    use crate::encode::model::merging::ranks::Row;

    /// How many symbols there are in the tests.
    const SYMBOLS: Symbol = 8;

    /// Merge rules for some pairs.
    fn merges() -> impl Strategy<Value = Vec<Row>> {
        let row = |at: usize| {
            let left = at as Symbol / SYMBOLS;
            let right = at as Symbol % SYMBOLS;
            prop::option::weighted(0.6, 0..SYMBOLS).prop_map(move |merged| [left, right, merged.unwrap_or(NO_SYMBOL)])
        };
        (0..SYMBOLS as usize * SYMBOLS as usize).map(row).collect::<Vec<_>>().prop_shuffle()
    }

    /// A batch of words of every length.
    fn words() -> impl Strategy<Value = Vec<Vec<Symbol>>> {
        let word = prop_oneof![
            prop::collection::vec(0..SYMBOLS, 1..=MAX_SYMBOLS),
            (0..SYMBOLS, 1..=MAX_SYMBOLS).prop_map(|(symbol, len)| vec![symbol; len]),
        ];
        prop::collection::vec(word, 0..=MAX_WORDS)
    }

    proptest! {
        #[test]
        fn words_merge_as_they_do_alone(rows in merges(), batches in prop::collection::vec(words(), 1..4)) {
            let table = MergeRanks::of_rows(SYMBOLS as usize, &rows).expect("few");
            // The same scratch space for all batches, as in real use.
            let mut lanes = Lanes::default();
            let mut merging = Merging::default();
            for words in batches {
                lanes.clear();
                for (number, word) in words.iter().enumerate() {
                    lanes.start();
                    for (at, &symbol) in word.iter().enumerate() {
                        // Every other pair is known.
                        let known = (at % 2 == 1).then(|| table.get(word[at - 1], symbol));
                        lanes.push(&table, symbol, known);
                    }
                    let is_full = lanes.end();
                    prop_assert_eq!(is_full, number + 1 == MAX_WORDS);
                }
                lanes.run(&table);
                for (number, word) in words.iter().enumerate() {
                    let alone = merging.run_symbols(word, |left, right| table.get(left, right));
                    prop_assert_eq!(lanes.symbols(number).collect::<Vec<_>>(), alone);
                }
            }
        }
    }
}
