//! Merging the symbols of one piece: lowest rank first, leftmost first among equal ranks.
//!
//! With few symbols, all pairs are searched for the lowest rank; with many, pairs wait in a binary heap. Both merge in
//! the order of llama.cpp's priority queues (`src/llama-vocab.cpp`, `llm_bigram_bpe` and, with scores as ranks,
//! `llm_bigram_spm`). [`lanes`] merges several short words side by side; [`runs`] counts instead of merging if one
//! character repeats.
//!
//! Time: O(n²) up to [`FEW`] symbols, O(n log n) for more. Space: O(n). Deviations: none.

pub(super) mod lanes;
pub(crate) mod pair_memo;
pub(crate) mod ranks;
pub(super) mod runs;
pub(super) mod sure_pairs;
pub(crate) mod symbol;
pub(super) mod symbol_tokens;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use crate::work::interrupt::{self, Ticker};
use crate::work::memory::{extend, push, push_to_heap, reserve};
use symbol::{Merge, NO_MERGE, NO_RANK, Symbol};

/// Up to this many symbols, a search beats a heap.
const FEW: usize = 48;
/// In `before` and `after`: no neighbour.
const NONE: u32 = u32::MAX;

/// A symbol and the byte range of the piece that it spans.
#[derive(Debug, Clone, Copy)]
pub(super) struct SymbolSpan {
    pub symbol: Symbol,
    pub start: u32,
    pub end: u32,
}

impl SymbolSpan {
    #[inline]
    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// What becomes of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is made, unless it is stale.
    Take,
    /// It waits until one is taken.
    Delay,
    /// It is not made, unless one of its two symbols changes.
    Drop,
}

/// For each of a few symbols, its merge with the next one, and its two neighbours. A neighbour past the last symbol
/// means that there is none.
#[derive(Debug)]
struct Few {
    ranks: [u32; FEW],
    merged: [Symbol; FEW],
    before: [u8; FEW],
    after: [u8; FEW],
}

impl Default for Few {
    fn default() -> Self {
        Self { ranks: [NO_RANK; FEW], merged: [0; FEW], before: [0; FEW], after: [0; FEW] }
    }
}

/// Scratch space for merging.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    symbols: Vec<SymbolSpan>,
    few: Few,
    /// The rank (high half) and position (low half) of each pair that may merge. An entry is stale once the rank at its
    /// position has changed.
    heap: BinaryHeap<Reverse<u64>>,
    /// The neighbours of each of many symbols.
    before: Vec<u32>,
    after: Vec<u32>,
    /// The merge of each of many symbols with the next one; [`NO_MERGE`] if the symbol is gone.
    merges: Vec<Merge>,
}

impl Merging {
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
        reserve(&mut self.symbols, 4096);
    }

    /// Adds the next symbol of the piece.
    #[inline]
    pub(super) fn push(&mut self, symbol: Symbol, start: usize, end: usize) {
        self.symbols.push(SymbolSpan { symbol, start: start as u32, end: end as u32 });
        if self.symbols.len().is_multiple_of(4096) {
            interrupt::check();
            reserve(&mut self.symbols, 4096);
        }
    }

    /// Replaces the symbols by those of a piece. `char` returns the symbol at a byte and its length.
    pub(super) fn fill(&mut self, piece: &[u8], char: impl Fn(usize) -> (Symbol, usize)) {
        self.clear();
        let mut at = 0;
        while at < piece.len() {
            let (symbol, len) = char(at);
            self.push(symbol, at, at + len);
            at += len;
        }
    }

    /// Merges until no pair can, and returns the symbols that are left. `merge` looks up two adjacent symbols. If
    /// `decide` is given, it says which merges are made.
    pub(super) fn run(
        &mut self,
        merge: impl FnMut(&SymbolSpan, &SymbolSpan) -> Merge,
        decide: Option<impl FnMut(Option<Merge>) -> Decision>,
    ) -> &[SymbolSpan] {
        if let Some(decide) = decide {
            return self.run_deciding(merge, decide);
        }
        if self.symbols.len() <= FEW {
            self.run_few(merge);
            return &self.symbols;
        }
        self.run_deciding(merge, |_| Decision::Take)
    }

    fn run_few(&mut self, mut merge: impl FnMut(&SymbolSpan, &SymbolSpan) -> Merge) {
        let symbols = &mut self.symbols[..];
        let Few { ranks, merged, before, after } = &mut self.few;
        let len = symbols.len().min(FEW);
        for at in 0..len {
            let next = symbols.get(at + 1).map_or(NO_MERGE, |next| merge(&symbols[at], next));
            (ranks[at], merged[at]) = (next.rank, next.symbol);
            (before[at], after[at]) = ((at as u8).wrapping_sub(1), at as u8 + 1);
        }

        let mut num_left = len;
        loop {
            let mut lowest = NO_RANK;
            let mut at = 0;
            for (place, &rank) in ranks[..len].iter().enumerate() {
                (lowest, at) = if rank < lowest { (rank, place) } else { (lowest, at) };
            }
            if lowest == NO_RANK {
                break;
            }

            let gone = usize::from(after[at]);
            symbols[at].symbol = merged[at];
            symbols[at].end = symbols[gone].end;
            symbols[gone].end = symbols[gone].start;
            (ranks[at], ranks[gone]) = (NO_RANK, NO_RANK);
            num_left -= 1;

            let left = usize::from(before[at]);
            let right = usize::from(after[gone]);
            after[at] = right as u8;
            if right < len {
                before[right] = at as u8;
                let next = merge(&symbols[at], &symbols[right]);
                (ranks[at], merged[at]) = (next.rank, next.symbol);
            }
            if left < len {
                let next = merge(&symbols[left], &symbols[at]);
                (ranks[left], merged[left]) = (next.rank, next.symbol);
            }
        }

        if num_left < len {
            self.symbols.retain(|symbol| symbol.end > symbol.start);
        }
    }

    /// The same, if `decide` says which merges are made: it is given the next one, or `None` for a stale entry.
    #[inline(never)]
    pub(super) fn run_deciding(
        &mut self,
        mut merge: impl FnMut(&SymbolSpan, &SymbolSpan) -> Merge,
        mut decide: impl FnMut(Option<Merge>) -> Decision,
    ) -> &[SymbolSpan] {
        let Self { symbols, heap, before, after, merges, .. } = self;
        let len = symbols.len() as u32;
        before.clear();
        extend(before, (0..len).map(|at| at.wrapping_sub(1)));
        after.clear();
        extend(after, 1..len);
        push(after, NONE);
        merges.clear();
        extend(merges, symbols.windows(2).map(|pair| merge(&pair[0], &pair[1])));
        push(merges, NO_MERGE);
        let mut entries = std::mem::take(heap).into_vec();
        entries.clear();
        for (merge, at) in merges.iter().zip(0..).filter(|(merge, _)| merge.rank != NO_RANK) {
            push(&mut entries, entry(merge.rank, at));
        }
        *heap = entries.into();

        let mut delayed = Vec::new();
        let mut ticker = Ticker::default();
        while let Some(next) = heap.pop() {
            ticker.tick();
            let at = next.0 as u32;
            let place = at as usize;
            let is_stale = merges[place].rank != (next.0 >> 32) as u32;
            let decision = decide((!is_stale).then_some(merges[place]));
            match decision {
                Decision::Take => delayed.drain(..).for_each(|delayed| push_to_heap(heap, delayed)),
                Decision::Delay => push(&mut delayed, next),
                Decision::Drop => merges[place] = NO_MERGE,
            }
            if is_stale || decision != Decision::Take {
                continue;
            }
            let gone = after[place] as usize;
            let left = before[place];
            let right = after[gone];
            after[place] = right;
            symbols[place].symbol = merges[place].symbol;
            symbols[place].end = symbols[gone].end;
            (merges[gone], merges[place]) = (NO_MERGE, NO_MERGE);

            if right != NONE {
                before[right as usize] = at;
                merges[place] = merge(&symbols[place], &symbols[right as usize]);
                push_entry(heap, merges[place].rank, at);
            }
            if left != NONE {
                merges[left as usize] = merge(&symbols[left as usize], &symbols[place]);
                push_entry(heap, merges[left as usize].rank, left);
            }
        }

        let mut at = 0;
        let mut num_kept = 0;
        while let Some(&symbol) = symbols.get(at as usize) {
            symbols[num_kept] = symbol;
            at = after[at as usize];
            num_kept += 1;
        }
        symbols.truncate(num_kept);
        symbols
    }
}

fn entry(rank: u32, at: u32) -> Reverse<u64> {
    Reverse(u64::from(rank) << 32 | u64::from(at))
}

#[inline]
fn push_entry(heap: &mut BinaryHeap<Reverse<u64>>, rank: u32, at: u32) {
    if rank != NO_RANK {
        push_to_heap(heap, entry(rank, at));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Decision, Merge, Merging, NO_MERGE, NO_RANK, Symbol};

    const TAKE_ALL: Option<fn(Option<Merge>) -> Decision> = None;

    impl Merging {
        /// Merges symbols of one byte each.
        pub(in crate::encode::model) fn run_symbols(
            &mut self,
            symbols: &[Symbol],
            mut merge: impl FnMut(Symbol, Symbol) -> Merge,
        ) -> Vec<Symbol> {
            self.clear();
            symbols.iter().enumerate().for_each(|(at, &symbol)| self.push(symbol, at, at + 1));
            self.run(|left, right| merge(left.symbol, right.symbol), TAKE_ALL).iter().map(|span| span.symbol).collect()
        }
    }

    /// How many symbols there are in the tests.
    const SYMBOLS: usize = 8;

    /// The merge of each pair of symbols.
    type Table = Vec<Option<(u32, Symbol)>>;
    /// A symbol with the start and end of its span.
    type Span = (Symbol, usize, usize);

    fn look_up(table: &Table, left: Symbol, right: Symbol) -> Merge {
        let merge = table[left as usize * SYMBOLS + right as usize];
        merge.map_or(NO_MERGE, |(rank, symbol)| Merge { rank, symbol })
    }

    /// Looks at all pairs before every merge.
    fn naive(table: &Table, mut spans: Vec<Span>) -> Vec<Span> {
        loop {
            let merges = spans.windows(2).map(|pair| look_up(table, pair[0].0, pair[1].0)).enumerate();
            let lowest = merges.filter(|(_, merge)| merge.rank != NO_RANK).min_by_key(|&(at, merge)| (merge.rank, at));
            let Some((at, merge)) = lowest else { return spans };
            let (_, _, end) = spans.remove(at + 1);
            spans[at] = (merge.symbol, spans[at].1, end);
        }
    }

    /// Merges, and counts the look-ups.
    fn run(merging: &mut Merging, table: &Table, spans: &[Span]) -> (Vec<Span>, usize) {
        merging.clear();
        spans.iter().for_each(|&(symbol, start, end)| merging.push(symbol, start, end));
        let mut num_look_ups = 0;
        let merged = merging.run(
            |left, right| {
                num_look_ups += 1;
                look_up(table, left.symbol, right.symbol)
            },
            TAKE_ALL,
        );
        (merged.iter().map(|span| (span.symbol, span.start as usize, span.end as usize)).collect(), num_look_ups)
    }

    /// Symbols with their widths, end to end.
    fn spans(symbols: &[(Symbol, usize)]) -> Vec<Span> {
        let mut end = 0;
        let span = |&(symbol, width): &(Symbol, usize)| {
            end += width;
            (symbol, end - width, end)
        };
        symbols.iter().map(span).collect()
    }

    proptest! {
        #[test]
        fn merges_are_those_of_a_search_before_each(
            // Few ranks, so that many pairs are tied and the leftmost has to be found.
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
            // One scratch space for all of them, as in real use.
            let mut merging = Merging::default();
            for text in texts {
                let spans = spans(&text);
                prop_assert_eq!(run(&mut merging, &table, &spans).0, naive(&table, spans));
            }
        }
    }

    #[test]
    fn runs_of_every_length_pair_up_from_the_left() {
        // 0 and 0 make 1, 1 and 1 make 2, 2 and 2 make 3: a run of n becomes n / 8 threes, and the bits of n % 8 give
        // the rest.
        let mut table: Table = vec![None; SYMBOLS * SYMBOLS];
        (0..3).for_each(|symbol| table[symbol * (SYMBOLS + 1)] = Some((symbol as u32, symbol as Symbol + 1)));
        let mut merging = Merging::default();
        for len in 0..300_usize {
            let merged = run(&mut merging, &table, &spans(&vec![(0, 1); len])).0;
            let rest = [(4, 2), (2, 1), (1, 0)].into_iter().filter(|(bit, _)| len & bit != 0).map(|(_, symbol)| symbol);
            let expected: Vec<Symbol> = [3].repeat(len / 8).into_iter().chain(rest).collect();
            assert_eq!(merged.iter().map(|span| span.0).collect::<Vec<_>>(), expected, "length {len}");
        }
    }

    #[test]
    fn long_pieces_take_few_look_ups() {
        // A symbol that merges into itself makes the longest chain: the whole run becomes one.
        let mut table: Table = vec![None; SYMBOLS * SYMBOLS];
        table[0] = Some((0, 0));
        for len in [30, 300, 300_000] {
            let (merged, num_look_ups) = run(&mut Merging::default(), &table, &spans(&vec![(0, 1); len]));
            assert_eq!(merged, [(0, 0, len)]);
            // One for each pair, and at most two after each merge.
            assert!(num_look_ups < 3 * len, "{num_look_ups} for {len} symbols");
        }
    }
}
