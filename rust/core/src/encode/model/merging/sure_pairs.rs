//! A table of all pairs of bytes: how each pair merges, and whether it surely merges before everything else.
//!
//! A pair of bytes surely merges if its rank is below that of every rule that could take one of the two away: rules
//! whose left part ends with the byte before and whose right part is the first byte, and rules whose left part is the
//! second byte and whose right part starts with the byte after. Such a pair may merge before everything else, unless a
//! rule of no higher rank takes it further. Nearly half of the merges of English words are found this way, without a
//! look-up.
//!
//! A table of 2¹⁶ pairs, 16 bytes each; O(1) per pair. `bpe::whole_chars` does the same for characters.

use std::ops::Range;

use super::ranks::Row;
use super::symbol::{Merge, NO_MERGE, NO_RANK, NO_SYMBOL, Symbol};

/// Added to the merged symbol of a pair that is not sure. Symbols are lower.
const UNSURE: Symbol = 1 << 31;
/// Only pairs of lower ranks count as sure, so that the rules of higher ranks, which are most, can be skipped. Tests
/// have few rules.
const MAX_SURE_RANK: u32 = if cfg!(test) { 24 } else { 1 << 15 };

/// Two adjacent bytes.
#[derive(Debug, Clone, Copy)]
struct Pair {
    /// Of both together; the symbol is [`UNSURE`] if a rule of no higher rank takes it further.
    merge: Merge,
    /// The lowest rank of a rule that merges any text that ends with the first byte, and the second byte.
    before: u32,
    /// The lowest rank of a rule that merges the first byte, and any text that starts with the second byte.
    after: u32,
}

/// Past either end of a piece.
const NO_PAIR: Pair = Pair { merge: NO_MERGE, before: NO_RANK, after: NO_RANK };

impl Pair {
    #[inline(always)]
    fn merge(self) -> Merge {
        Merge { rank: self.merge.rank, symbol: self.merge.symbol & !UNSURE }
    }

    /// The symbol of both together, if they surely merge between two pairs that share a byte with this one each.
    #[inline(always)]
    fn sure(self, before: Self, after: Self) -> Option<Symbol> {
        let Merge { rank, symbol } = self.merge;
        (rank < before.before && rank < after.after && symbol < UNSURE).then_some(symbol)
    }
}

/// All pairs of bytes.
#[derive(Debug)]
pub(crate) struct SurePairs(Vec<Pair>);

/// The ends of a symbol's text, and how rules use the symbol.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Edges {
    first: u8,
    last: u8,
    /// It is the symbol of the first byte.
    is_byte: bool,
    /// A rule takes it further, and no rule of a lower rank makes it.
    is_early: bool,
    is_made: bool,
}

impl Edges {
    /// Those of a symbol that spells these bytes; any for one that spells none, which occurs in no piece.
    pub(crate) fn of(spelled: &[u8]) -> Self {
        let [first, last] = [spelled.first(), spelled.last()].map(|byte| byte.copied().unwrap_or_default());
        Self { first, last, ..Self::default() }
    }
}

impl SurePairs {
    /// Reads merge rules in order of rank, given the edges of each symbol. O(rules + 2¹⁶).
    pub(crate) fn new(rows: &[Row], bytes: &[Symbol; 256], mut edges: Vec<Edges>) -> Self {
        let mut pairs = vec![NO_PAIR; 1 << 16];
        for (&symbol, byte) in bytes.iter().zip(0..=u8::MAX) {
            if let Some(edges) = edges.get_mut(symbol as usize) {
                *edges = Edges { first: byte, last: byte, is_byte: true, ..Edges::default() };
            }
        }

        let last_byte = bytes.iter().filter(|&&symbol| symbol != NO_SYMBOL).max().copied().unwrap_or_default();
        for (&row, rank) in rows.iter().zip(0..).filter(|(row, _)| row[2] != NO_SYMBOL) {
            if rank >= MAX_SURE_RANK && row[0].max(row[1]) > last_byte {
                continue;
            }
            let [left, right, merged] = row.map(|symbol| symbol as usize);
            for side in [left, right] {
                edges[side].is_early |= !edges[side].is_made;
            }
            edges[merged].is_made = true;
            let (left, right) = (edges[left], edges[right]);
            let pair = &mut pairs[place(left.last, right.first)];
            if right.is_byte {
                pair.before = pair.before.min(rank);
            }
            if left.is_byte {
                pair.after = pair.after.min(rank);
            }
            if left.is_byte && right.is_byte && pair.merge.rank == NO_RANK {
                pair.merge = Merge { rank, symbol: row[2] };
            }
        }

        for Pair { merge, .. } in &mut pairs {
            if merge.rank >= MAX_SURE_RANK || edges.get(merge.symbol as usize).is_some_and(|edges| edges.is_early) {
                merge.symbol |= UNSURE;
            }
        }
        Self(pairs)
    }

    /// The merge of two bytes, as [`MergeRanks::get`](super::ranks::MergeRanks::get) has it.
    #[inline]
    pub(crate) fn get(&self, first: u8, second: u8) -> Merge {
        self.0[place(first, second)].merge()
    }

    /// Pushes the symbols of a piece with their byte ranges, after merging every pair of ASCII that surely merges; and
    /// with each the merge of it and the symbol before, where that is known without a look-up.
    ///
    /// `bytes` has the symbols of ASCII, and those of all bytes where some characters start as bytes. `char` returns
    /// the symbol that any other character starts as, or `None` if it starts as bytes, and its length.
    #[inline(always)]
    pub(crate) fn symbols(
        &self,
        piece: &[u8],
        bytes: &[Symbol; 256],
        char: impl Fn(usize) -> (Option<Symbol>, usize),
        mut push: impl FnMut(Symbol, Range<usize>, Option<Merge>),
    ) {
        let pair = |at: usize| match (piece.get(at), piece.get(at + 1)) {
            (Some(&first), Some(&second)) => self.0[place(first, second)],
            _ => NO_PAIR,
        };
        let (mut at, mut before, mut here, mut known) = (0, NO_PAIR, pair(0), None);
        while let Some(&byte) = piece.get(at) {
            if byte >= 0x80 {
                let (whole, len) = char(at);
                if let Some(whole) = whole {
                    push(whole, at..at + len, None);
                    known = None;
                } else {
                    for at in at..at + len {
                        push(bytes[usize::from(piece[at])], at..at + 1, known);
                        known = Some(pair(at).merge());
                    }
                }
                at += len;
                if piece.get(at).is_some_and(u8::is_ascii) {
                    (before, here) = (pair(at - 1), pair(at));
                }
                continue;
            }

            let next = pair(at + 1);
            if let Some(both) = here.sure(before, next).filter(|_| piece[at + 1] < 0x80) {
                push(both, at..at + 2, None);
                known = None;
                at += 2;
                (before, here) = (next, pair(at));
            } else {
                push(bytes[usize::from(byte)], at..at + 1, known);
                known = Some(here.merge());
                at += 1;
                (before, here) = (here, next);
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Pair>()
    }
}

/// Collects pairs from tokens, for vocabularies in which two texts merge if both together are a token (SPM). Only pairs
/// of ASCII merge.
#[derive(Debug)]
pub(crate) struct TokenPairs {
    pairs: Vec<Pair>,
    /// By pair the lowest rank of a longer token that starts or ends with it.
    further: Vec<u32>,
}

impl Default for TokenPairs {
    fn default() -> Self {
        Self { pairs: vec![NO_PAIR; 1 << 16], further: vec![NO_RANK; 1 << 16] }
    }
}

impl TokenPairs {
    /// Makes no pair sure that is next to this character. O(1).
    pub(crate) fn add_unknown(&mut self, char: &[u8]) {
        let (Some(&first), Some(&last)) = (char.first(), char.last()) else { return };
        for byte in 0..=u8::MAX {
            self.pairs[place(byte, first)].after = 0;
            self.pairs[place(last, byte)].before = 0;
        }
    }

    /// Adds a token.
    pub(crate) fn add(&mut self, text: &[u8], merge: Merge) {
        let (Some(&[first, second]), Some(&[last_but_one, last])) = (text.first_chunk(), text.last_chunk()) else {
            return;
        };
        let (start, end) = (place(first, second), place(last_but_one, last));
        self.pairs[start].after = self.pairs[start].after.min(merge.rank);
        self.pairs[end].before = self.pairs[end].before.min(merge.rank);
        if text.len() > 2 {
            self.further[start] = self.further[start].min(merge.rank);
            self.further[end] = self.further[end].min(merge.rank);
        } else if text.is_ascii() {
            self.pairs[start].merge = merge;
        }
    }

    /// The pairs as a table. O(2¹⁶).
    pub(crate) fn finish(mut self) -> SurePairs {
        for (pair, further) in self.pairs.iter_mut().zip(self.further) {
            if pair.merge.rank >= further {
                pair.merge.symbol |= UNSURE;
            }
        }
        SurePairs(self.pairs)
    }
}

fn place(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Edges, NO_SYMBOL, Row, SurePairs, Symbol};
    use crate::encode::model::merging::Merging;
    use crate::encode::model::merging::ranks::MergeRanks;

    /// All texts of up to three of these bytes are symbols.
    const BYTES: &[u8] = b"abc\xE1";

    fn texts() -> Vec<Vec<u8>> {
        let mut texts = vec![Vec::new()];
        for from in 0.. {
            let Some(text) = texts.get(from).filter(|text: &&Vec<u8>| text.len() < 3).cloned() else { break };
            texts.extend(BYTES.iter().map(|&byte| [&text[..], &[byte]].concat()));
        }
        texts.split_off(1)
    }

    /// Some merge rules, each of two texts that make a third, in any order: a text may be taken further before it is
    /// made.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let texts = texts();
        let symbol = |text: &[u8]| texts.iter().position(|other| other == text).expect("short") as Symbol;
        let splits = texts.iter().flat_map(|text| (1..text.len()).map(move |at| (&text[..at], &text[at..])));
        let rows: Vec<Row> = splits.map(|(left, right)| [left, right, &[left, right].concat()].map(symbol)).collect();
        let few = 1..rows.len() / 2;
        (prop::sample::subsequence(rows, few).prop_shuffle(), 0..20_usize).prop_map(|(mut rows, at)| {
            // A rule that makes no symbol.
            if let Some(row) = rows.get_mut(at) {
                *row = [0, 0, NO_SYMBOL];
            }
            rows
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_surely_merges_may_do_so_first(
            rows in rows(),
            pieces in prop::collection::vec(prop::collection::vec(prop::sample::select(BYTES), 1..15), 1..20),
        ) {
            let texts = texts();
            let ranks = MergeRanks::of_rows(texts.len(), &rows).expect("few");
            let bytes = std::array::from_fn(|byte| {
                BYTES.iter().position(|&known| usize::from(known) == byte).map_or(NO_SYMBOL, |at| at as Symbol)
            });
            let edges = texts.iter().map(|text| Edges::of(text)).collect();
            let pairs = SurePairs::new(&rows, &bytes, edges);
            let mut merging = Merging::default();
            let mut run = |symbols: &[Symbol]| merging.run_symbols(symbols, |left, right| ranks.get(left, right));
            for piece in pieces {
                let mut symbols: Vec<Symbol> = Vec::new();
                pairs.symbols(&piece, &bytes, |_| (None, 1), |symbol, _, merge| {
                    if let Some(merge) = merge {
                        assert_eq!(ranks.get(symbols[symbols.len() - 1], symbol).rank, merge.rank);
                    }
                    symbols.push(symbol);
                });
                let single: Vec<Symbol> = piece.iter().map(|&byte| bytes[usize::from(byte)]).collect();
                prop_assert_eq!(run(&symbols), run(&single));
            }
        }
    }
}
