//! Merging the symbols of one piece, lowest rank first, leftmost first among equals.
//!
//! The pairs of few symbols are searched for the lowest rank; those of many wait in a queue. Both give the order of
//! llama.cpp's priority queues (`src/llama-vocab.cpp`, `llm_bigram_bpe` and, with scores as ranks, `llm_bigram_spm`).
//! O(n²) up to [`FEW`] symbols, O(n log n) beyond, and O(n) for a run of one symbol, whose pairs have few ranks.
//! Deviations: none.

pub(crate) mod lanes;
pub(crate) mod pair_memo;
mod queue;
pub(crate) mod ranks;
pub(crate) mod runs;
pub(crate) mod sure_pairs;
pub(crate) mod symbol;

use queue::Queue;
use symbol::{NO_RANK, NO_SYMBOL, Symbol};

/// Up to this many symbols a search beats a queue.
const FEW: usize = 48;
/// In links: nothing there.
const NONE: u32 = u32::MAX;

/// A symbol of the piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub symbol: Symbol,
    /// Byte offset in the piece where the part begins.
    pub start: u32,
    /// Byte offset where it ends.
    pub end: u32,
}

/// What two symbols give. Neighbours that merge one after the other are mostly the same two as the last ones.
#[derive(Debug, Clone, Copy, Default)]
struct Memo {
    symbols: Option<(Symbol, Symbol)>,
    given: (u32, Symbol),
}

impl Memo {
    #[inline]
    fn get(&mut self, left: &Part, right: &Part, pair: impl FnOnce(&Part, &Part) -> (u32, Symbol)) -> (u32, Symbol) {
        let symbols = Some((left.symbol, right.symbol));
        if self.symbols != symbols || left.symbol == NO_SYMBOL || right.symbol == NO_SYMBOL {
            *self = Self { symbols, given: pair(left, right) };
        }
        self.given
    }
}

/// For each of few parts rank and symbol of it together with the next, and its neighbours: beyond the last part where
/// there is none.
#[derive(Debug)]
struct Few {
    ranks: [u32; FEW],
    merges: [Symbol; FEW],
    before: [u8; FEW],
    after: [u8; FEW],
}

impl Default for Few {
    fn default() -> Self {
        Self { ranks: [NO_RANK; FEW], merges: [NO_SYMBOL; FEW], before: [0; FEW], after: [0; FEW] }
    }
}

/// Scratch space for merging.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    parts: Vec<Part>,
    few: Few,
    queue: Queue,
    /// Neighbours of each part among many; apart, because one is read soon after the other was written.
    before: Vec<u32>,
    after: Vec<u32>,
    /// For each part among many rank and symbol of it together with the next; [`NO_RANK`] where it has gone.
    pairs: Vec<(u32, Symbol)>,
}

impl Merging {
    pub(crate) fn clear(&mut self) {
        self.parts.clear();
    }

    /// Adds the next symbol of the piece.
    #[inline]
    pub(crate) fn push(&mut self, symbol: Symbol, start: usize, end: usize) {
        self.parts.push(Part { symbol, start: start as u32, end: end as u32 });
    }

    /// Merges as long as any pair can, and gives what is left. `pair` tells the rank of two adjacent parts (or
    /// [`NO_RANK`]) and the symbol of both together. It tells the same for the same two symbols, unless one of them is
    /// [`NO_SYMBOL`].
    pub(crate) fn run(&mut self, pair: impl FnMut(&Part, &Part) -> (u32, Symbol)) -> &[Part] {
        if self.parts.len() <= FEW {
            self.run_few(pair);
        } else {
            self.run_many(pair);
        }
        &self.parts
    }

    /// What some symbols merge to.
    #[cfg(test)]
    pub(crate) fn run_symbols(
        &mut self,
        symbols: &[Symbol],
        mut pair: impl FnMut(Symbol, Symbol) -> (u32, Symbol),
    ) -> Vec<Symbol> {
        self.clear();
        symbols.iter().enumerate().for_each(|(at, &symbol)| self.push(symbol, at, at + 1));
        self.run(|left, right| pair(left.symbol, right.symbol)).iter().map(|part| part.symbol).collect()
    }

    fn run_few(&mut self, mut pair: impl FnMut(&Part, &Part) -> (u32, Symbol)) {
        let Self { parts, few, .. } = self;
        let parts = &mut parts[..];
        let Few { ranks, merges, before, after } = few;
        let count = parts.len().min(FEW);
        for at in 0..count {
            let next = parts.get(at + 1).map(|next| pair(&parts[at], next));
            (ranks[at], merges[at]) = next.unwrap_or((NO_RANK, NO_SYMBOL));
            (before[at], after[at]) = ((at as u8).wrapping_sub(1), at as u8 + 1);
        }
        let mut left_over = count;
        loop {
            let (mut lowest, mut at) = (NO_RANK, 0);
            for (place, &rank) in ranks[..count].iter().enumerate() {
                (lowest, at) = if rank < lowest { (rank, place) } else { (lowest, at) };
            }
            if lowest == NO_RANK {
                break;
            }
            let gone = usize::from(after[at]);
            parts[at].symbol = merges[at];
            parts[at].end = parts[gone].end;
            parts[gone].end = parts[gone].start;
            (ranks[at], ranks[gone]) = (NO_RANK, NO_RANK);
            left_over -= 1;
            let (left, right) = (usize::from(before[at]), usize::from(after[gone]));
            after[at] = right as u8;
            if right < count {
                before[right] = at as u8;
                (ranks[at], merges[at]) = pair(&parts[at], &parts[right]);
            }
            if left < count {
                (ranks[left], merges[left]) = pair(&parts[left], &parts[at]);
            }
        }
        if left_over < count {
            self.parts.retain(|part| part.end > part.start);
        }
    }

    fn run_many(&mut self, mut pair: impl FnMut(&Part, &Part) -> (u32, Symbol)) {
        let Self { parts, queue, before, after, pairs, .. } = self;
        let count = parts.len() as u32;
        queue.clear();
        before.clear();
        before.extend((0..count).map(|at| at.wrapping_sub(1)));
        after.clear();
        after.extend((1..count).chain([NONE]));
        pairs.clear();
        let (mut with_next, mut with_last) = (Memo::default(), Memo::default());
        for (two, at) in parts.windows(2).zip(0..) {
            let made = with_next.get(&two[0], &two[1], &mut pair);
            pairs.push(made);
            queue.push(made.0, at);
        }
        pairs.push((NO_RANK, NO_SYMBOL));
        while let Some((rank, at)) = queue.pop() {
            let place = at as usize;
            if pairs[place].0 != rank {
                continue;
            }
            let gone = after[place] as usize;
            let (left, right) = (before[place], after[gone]);
            after[place] = right;
            parts[place].symbol = pairs[place].1;
            parts[place].end = parts[gone].end;
            pairs[gone].0 = NO_RANK;
            pairs[place].0 = NO_RANK;
            if right != NONE {
                before[right as usize] = at;
                pairs[place] = with_next.get(&parts[place], &parts[right as usize], &mut pair);
                queue.push(pairs[place].0, at);
            }
            if left != NONE {
                pairs[left as usize] = with_last.get(&parts[left as usize], &parts[place], &mut pair);
                queue.push(pairs[left as usize].0, left);
            }
        }
        let (mut at, mut kept) = (0, 0);
        while let Some(&part) = parts.get(at as usize) {
            parts[kept] = part;
            at = after[at as usize];
            kept += 1;
        }
        parts.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::{Merging, NO_RANK, NO_SYMBOL, Symbol};

    /// How many symbols there are in the tests.
    const SYMBOLS: usize = 8;

    /// Rank and result for each pair of symbols.
    type Table = Vec<Option<(u32, Symbol)>>;

    fn look_up(table: &Table, left: Symbol, right: Symbol) -> (u32, Symbol) {
        table[left as usize * SYMBOLS + right as usize].unwrap_or((NO_RANK, NO_SYMBOL))
    }

    /// Looks all pairs through before every merge.
    fn naive(table: &Table, mut parts: Vec<(Symbol, usize, usize)>) -> Vec<(Symbol, usize, usize)> {
        loop {
            let ranked = parts.windows(2).enumerate().map(|(at, pair)| (look_up(table, pair[0].0, pair[1].0), at));
            let Some(((_, merged), at)) =
                ranked.filter(|((rank, _), _)| *rank != NO_RANK).min_by_key(|&((rank, _), at)| (rank, at))
            else {
                return parts;
            };
            let (_, _, end) = parts.remove(at + 1);
            parts[at] = (merged, parts[at].1, end);
        }
    }

    fn run(merging: &mut Merging, table: &Table, parts: &[(Symbol, usize, usize)]) -> Vec<(Symbol, usize, usize)> {
        merging.clear();
        parts.iter().for_each(|&(symbol, start, end)| merging.push(symbol, start, end));
        let merged = merging.run(|left, right| look_up(table, left.symbol, right.symbol));
        merged.iter().map(|part| (part.symbol, part.start as usize, part.end as usize)).collect()
    }

    /// Symbols with their widths as parts of a piece.
    fn parts(symbols: &[(Symbol, usize)]) -> Vec<(Symbol, usize, usize)> {
        let mut end = 0;
        let part = |&(symbol, width): &(Symbol, usize)| {
            end += width;
            (symbol, end - width, end)
        };
        symbols.iter().map(part).collect()
    }

    proptest! {
        #[test]
        fn merges_are_those_of_a_search_before_each(
            // Ranks are few, so that many pairs are equal and the leftmost has to be found.
            table in prop::collection::vec(prop::option::of((0..12_u32, 0..SYMBOLS as Symbol)), SYMBOLS * SYMBOLS),
            texts in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec((0..SYMBOLS as Symbol, 1..4_usize), 0..70),
                    prop::collection::vec((0..3 as Symbol, 1..2_usize), 0..200),
                    (prop::collection::vec((0..SYMBOLS as Symbol, 1..2_usize), 1..5), 0..60_usize)
                        .prop_map(|(unit, times)| unit.repeat(times)),
                ],
                1..6,
            ),
        ) {
            // One scratch space for all of them, as in use.
            let mut merging = Merging::default();
            for text in texts {
                let parts = parts(&text);
                prop_assert_eq!(run(&mut merging, &table, &parts), naive(&table, parts));
            }
        }
    }

    #[test]
    fn runs_of_every_length_pair_up_from_the_left() {
        // 0 and 0 make 1, 1 and 1 make 2, 2 and 2 make 3: a run of n is n / 8 threes and what n % 8 leaves.
        let mut table: Table = vec![None; SYMBOLS * SYMBOLS];
        (0..3).for_each(|symbol| table[symbol * (SYMBOLS + 1)] = Some((symbol as u32, symbol as Symbol + 1)));
        let mut merging = Merging::default();
        for len in 0..300_usize {
            let symbols: Vec<Symbol> =
                run(&mut merging, &table, &parts(&vec![(0, 1); len])).iter().map(|part| part.0).collect();
            let rest = [(4, 2), (2, 1), (1, 0)].into_iter().filter(|(bit, _)| len & bit != 0).map(|(_, symbol)| symbol);
            assert_eq!(symbols, [3].repeat(len / 8).into_iter().chain(rest).collect::<Vec<_>>(), "length {len}");
        }
    }

    #[test]
    fn long_pieces_take_no_quadratic_time() {
        // Two symbols that merge into themselves make the longest chains: the whole run becomes one.
        let mut table: Table = vec![None; SYMBOLS * SYMBOLS];
        table[0] = Some((0, 0));
        let began = Instant::now();
        let merged = run(&mut Merging::default(), &table, &parts(&[(0, 1); 300_000]));
        assert_eq!(merged, [(0, 0, 300_000)]);
        assert!(began.elapsed().as_secs() < 5);
    }
}
