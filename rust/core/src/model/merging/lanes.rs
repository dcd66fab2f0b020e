//! Several short words that merge side by side.
//!
//! What the ranks of new pairs are has to be read before the next merge of a word is known, from tables that the near
//! caches do not hold. So every word takes one step, all its look-ups begin, and only then does the first one end: the
//! reads of memory overlap. O(n²) for each word of n symbols, which are few. The order of merges is that of
//! [`super::Merging`]. Deviations: none.

use super::ranks::{Merges, Probe};
use super::symbol::{NO_RANK, NO_SYMBOL, RANKS, Symbol};

/// The most symbols that a word can have.
pub(crate) const MOST: usize = 16;
/// The most words that merge together.
pub(crate) const LANES: usize = 16;

const _: () = assert!(RANKS <= 1 << (u32::BITS - PLACE_BITS), "a rank and a place fit into 32 bits");
/// Bits of a place in a word, in the same number as a rank.
const PLACE_BITS: u32 = MOST.trailing_zeros();
/// The most look-ups that wait together: those of the first step.
const MOST_PENDING: usize = LANES * MOST;
/// Beside a symbol that does not merge with the next one.
const NONE: u32 = u32::MAX;
/// The neighbours of each symbol, as long as nothing has merged.
const BEFORE: [u8; MOST] = neighbours(-1);
const AFTER: [u8; MOST] = neighbours(1);

const fn neighbours(distance: i8) -> [u8; MOST] {
    let (mut places, mut at) = ([0; MOST], 0);
    while at < MOST {
        places[at] = (at as i8 + distance) as u8;
        at += 1;
    }
    places
}

/// A word.
#[derive(Debug, Clone, Copy)]
struct Lane {
    /// How many symbols it began with.
    len: usize,
    symbols: [Symbol; MOST],
    /// For each symbol the rank of it together with the next, and its place in the low bits; or [`NONE`].
    ranks: [u32; MOST],
    /// What both together are.
    merged: [Symbol; MOST],
    /// Neighbours: beyond the last symbol where there is none.
    before: [u8; MOST],
    after: [u8; MOST],
}

/// Two symbols that may merge.
#[derive(Debug, Clone, Copy, Default)]
struct Pending {
    probe: Probe,
    lane: u8,
    /// The place of the left one.
    at: u8,
}

/// Words that merge together.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: [Lane; LANES],
    /// How many there are.
    len: usize,
    waiting: Waiting,
}

/// Look-ups that have begun.
#[derive(Debug)]
struct Waiting {
    pending: [Pending; MOST_PENDING],
    count: usize,
}

impl Waiting {
    /// Begins to look up the symbol at a place and the next, and keeps that if they may merge.
    #[inline(always)]
    fn begin(&mut self, merges: &Merges, lane: usize, at: usize, left: Symbol, right: Symbol) {
        let probe = merges.probe(left, right);
        self.pending[self.count % MOST_PENDING] = Pending { probe, lane: lane as u8, at: at as u8 };
        self.count += usize::from(probe.may_merge());
    }
}

impl Default for Lanes {
    fn default() -> Self {
        let (symbols, none) = ([NO_SYMBOL; MOST], [NONE; MOST]);
        let lane = Lane { len: 0, symbols, ranks: none, merged: symbols, before: BEFORE, after: AFTER };
        let waiting = Waiting { pending: [Pending::default(); MOST_PENDING], count: 0 };
        Self { lanes: [lane; LANES], len: 0, waiting }
    }
}

impl Lane {
    #[inline(always)]
    fn set(&mut self, at: usize, (rank, merged): (u32, Symbol)) {
        let rank = if rank == NO_RANK { NONE } else { rank << PLACE_BITS | at as u32 };
        (self.ranks[at % MOST], self.merged[at % MOST]) = (rank, merged);
    }

    /// The place of the symbol that merges next, if one does.
    #[inline(always)]
    fn lowest(&self) -> Option<usize> {
        let fours = self.ranks.as_chunks::<4>().0.iter().take(self.len.div_ceil(4));
        let lowest = fours.fold(NONE, |low, four| low.min(four[0].min(four[1])).min(four[2].min(four[3])));
        (lowest != NONE).then_some(lowest as usize % MOST)
    }
}

impl Lanes {
    /// Begins a word.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        let lane = &mut self.lanes[self.len % LANES];
        (lane.len, lane.ranks, lane.before, lane.after) = (0, [NONE; MOST], BEFORE, AFTER);
    }

    /// Adds a symbol to the word, which can have [`MOST`]; `pair` is rank and symbol of the one before and this one, if
    /// that is known without a look-up.
    #[inline(always)]
    pub(crate) fn push(&mut self, merges: &Merges, symbol: Symbol, pair: Option<(u32, Symbol)>) {
        let number = self.len % LANES;
        let lane = &mut self.lanes[number];
        let at = lane.len;
        lane.symbols[at % MOST] = symbol;
        lane.len = at + 1;
        if at == 0 {
            return;
        }
        if let Some(pair) = pair {
            return lane.set(at - 1, pair);
        }
        self.waiting.begin(merges, number, at - 1, lane.symbols[(at - 1) % MOST], symbol);
    }

    /// Ends the word; tells whether there is no room for another one.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> bool {
        self.len += 1;
        self.len == LANES
    }

    /// Merges all words.
    pub(crate) fn run(&mut self, merges: &Merges) {
        let Self { lanes, len, waiting } = self;
        let (mut active, mut len): ([u8; LANES], _) = (std::array::from_fn(|lane| lane as u8), (*len).min(LANES));
        while len > 0 {
            for &Pending { probe, lane, at } in &waiting.pending[..waiting.count.min(MOST_PENDING)] {
                lanes[usize::from(lane) % LANES].set(usize::from(at), merges.complete(probe));
            }
            waiting.count = 0;
            let mut still = 0;
            for which in 0..len {
                let number = active[which % LANES];
                let number = usize::from(number) % LANES;
                let lane = &mut lanes[number];
                let Some(at) = lane.lowest() else { continue };
                active[still % LANES] = number as u8;
                still += 1;
                let (gone, merged) = (usize::from(lane.after[at]) % MOST, lane.merged[at]);
                let (left, right) = (usize::from(lane.before[at]), usize::from(lane.after[gone]));
                lane.symbols[at] = merged;
                lane.after[at] = right as u8;
                (lane.ranks[at], lane.ranks[gone]) = (NONE, NONE);
                if right < lane.len {
                    lane.before[right % MOST] = at as u8;
                    waiting.begin(merges, number, at, merged, lane.symbols[right % MOST]);
                }
                if left < lane.len {
                    lane.ranks[left % MOST] = NONE;
                    waiting.begin(merges, number, left, lane.symbols[left % MOST], merged);
                }
            }
            len = still;
        }
    }

    /// The symbols that are left of a word.
    #[inline(always)]
    pub(crate) fn symbols(&self, number: usize) -> impl Iterator<Item = Symbol> {
        let lane = &self.lanes[number % LANES];
        let mut at = 0;
        std::iter::from_fn(move || {
            let symbol = (at < lane.len).then(|| lane.symbols[at % MOST])?;
            at = usize::from(lane.after[at % MOST]);
            Some(symbol)
        })
    }

    /// Forgets all words.
    pub(crate) fn clear(&mut self) {
        (self.len, self.waiting.count) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LANES, Lanes, MOST, Merges, NO_SYMBOL, Symbol};
    use crate::model::merging::Merging;
    use crate::model::merging::ranks::Row;

    /// How many symbols there are in the tests.
    const SYMBOLS: Symbol = 8;

    /// Merges for some of all pairs.
    fn merges() -> impl Strategy<Value = Vec<Row>> {
        let row = |at: usize| {
            let (left, right) = (at as Symbol / SYMBOLS, at as Symbol % SYMBOLS);
            prop::option::weighted(0.6, 0..SYMBOLS).prop_map(move |merged| [left, right, merged.unwrap_or(NO_SYMBOL)])
        };
        (0..SYMBOLS as usize * SYMBOLS as usize).map(row).collect::<Vec<_>>().prop_shuffle()
    }

    /// A batch of words of every length.
    fn words() -> impl Strategy<Value = Vec<Vec<Symbol>>> {
        let word = prop_oneof![
            prop::collection::vec(0..SYMBOLS, 1..=MOST),
            (0..SYMBOLS, 1..=MOST).prop_map(|(symbol, len)| vec![symbol; len]),
        ];
        prop::collection::vec(word, 0..=LANES)
    }

    proptest! {
        #[test]
        fn words_merge_as_they_do_alone(rows in merges(), batches in prop::collection::vec(words(), 1..4)) {
            let table = Merges::of_rows(SYMBOLS as usize, &rows).expect("few");
            // One of both for all batches, as in use.
            let (mut lanes, mut merging) = (Lanes::default(), Merging::default());
            for words in batches {
                lanes.clear();
                for (number, word) in words.iter().enumerate() {
                    lanes.begin();
                    for (at, &symbol) in word.iter().enumerate() {
                        // Every other pair is known.
                        let known = (at % 2 == 1).then(|| table.get(word[at - 1], symbol));
                        lanes.push(&table, symbol, known);
                    }
                    let is_full = lanes.end();
                    prop_assert_eq!(is_full, number + 1 == LANES);
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
