//! What two bytes side by side merge to, and which of them surely do.
//!
//! A pair of bytes surely merges if its rank is below that of every merge that could take one of the two away: merges
//! of any text that ends with the byte before, and of any text that begins with the byte after. Such a pair may as well
//! merge before everything else, if no merge takes it further at a lower rank than its own (see [`WholeChars`], where
//! the same is done for characters). Nearly half of the merges of English words are told like this, without a look-up.
//!
//! [`WholeChars`]: super::whole_chars::WholeChars

use std::ops::Range;

use super::ranks::Row;
use super::symbol::{NO_RANK, NO_SYMBOL, Symbol};

/// What has to be known of a symbol.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Edges {
    first: u8,
    last: u8,
    /// It is the symbol of the first byte.
    is_byte: bool,
    /// A merge takes it further, and none before has made it.
    is_early: bool,
    is_made: bool,
}

impl Edges {
    /// Those of a symbol that spells these bytes; any for one that spells none, which is nowhere in a piece.
    pub(crate) fn of(spelled: &[u8]) -> Self {
        let [first, last] = [spelled.first(), spelled.last()].map(|byte| byte.copied().unwrap_or_default());
        Self { first, last, ..Self::default() }
    }
}

/// Two bytes side by side.
#[derive(Debug, Clone, Copy)]
struct BytePair {
    rank: u32,
    /// Both together; with [`UNSURE`] if a merge takes that further at a rank that is not higher.
    merged: Symbol,
    /// The lowest rank of a merge of any text that ends with the first byte, and the second byte.
    before: u32,
    /// The lowest rank of a merge of the first byte, and any text that begins with the second byte.
    after: u32,
}

/// Beside a symbol, which is lower.
const UNSURE: Symbol = 1 << 31;
/// Of the merges only pairs of lower ranks count as sure, so that all others can be passed over: they are most of them.
/// Tests have few merges.
const SURE: u32 = if cfg!(test) { 24 } else { 1 << 15 };

/// Beyond the end of a piece, or before it begins.
const NONE: BytePair = BytePair { rank: NO_RANK, merged: NO_SYMBOL, before: NO_RANK, after: NO_RANK };

impl BytePair {
    /// Rank and symbol of both together.
    #[inline(always)]
    fn merge(self) -> (u32, Symbol) {
        (self.rank, self.merged & !UNSURE)
    }

    /// The symbol of both together, if they surely merge between these pairs, each of which shares a byte with this one.
    #[inline(always)]
    fn sure(self, before: Self, after: Self) -> Option<Symbol> {
        (self.rank < before.before && self.rank < after.after && self.merged < UNSURE).then_some(self.merged)
    }
}

/// All pairs of bytes.
#[derive(Debug)]
pub(crate) struct BytePairs(Vec<BytePair>);

impl BytePairs {
    /// Reads the merges in order of rank; `edges` are those of each symbol. O(merges + 2¹⁶).
    pub(crate) fn new(rows: &[Row], symbols: &[Symbol; 256], mut edges: Vec<Edges>) -> Self {
        let mut pairs = vec![NONE; 1 << 16];
        for (&symbol, byte) in symbols.iter().zip(0..=u8::MAX) {
            if let Some(edges) = edges.get_mut(symbol as usize) {
                *edges = Edges { first: byte, last: byte, is_byte: true, ..Edges::default() };
            }
        }
        let last_byte = symbols.iter().filter(|&&symbol| symbol != NO_SYMBOL).max().copied().unwrap_or_default();
        for (&row, rank) in rows.iter().zip(0..).filter(|(row, _)| row[2] != NO_SYMBOL) {
            if rank >= SURE && row[0].max(row[1]) > last_byte {
                continue;
            }
            let [left, right, merged] = row.map(|symbol| symbol as usize);
            for part in [left, right] {
                edges[part].is_early |= !edges[part].is_made;
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
            if left.is_byte && right.is_byte && pair.rank == NO_RANK {
                (pair.rank, pair.merged) = (rank, row[2]);
            }
        }
        for pair in &mut pairs {
            if pair.rank >= SURE || edges.get(pair.merged as usize).is_some_and(|edges| edges.is_early) {
                pair.merged |= UNSURE;
            }
        }
        Self(pairs)
    }

    /// Rank and symbol of two bytes together, as [`Merges::get`](crate::model::merging::ranks::Merges::get).
    #[inline]
    pub(crate) fn get(&self, first: u8, second: u8) -> (u32, Symbol) {
        self.0[place(first, second)].merge()
    }

    /// Hands on the symbols of a piece in which all pairs of ASCII have merged that surely do, each with what the one before
    /// and it are together, if that is known. `char` gives the symbol that any other character begins as, or
    /// nothing if it begins as bytes, and how many these are. Byte ranges come with the symbols.
    #[inline(always)]
    pub(crate) fn symbols(
        &self,
        piece: &[u8],
        bytes: &[Symbol; 256],
        char: impl Fn(usize) -> (Option<Symbol>, usize),
        mut push: impl FnMut(Symbol, Range<usize>, Option<(u32, Symbol)>),
    ) {
        let pair = |at: usize| match (piece.get(at), piece.get(at + 1)) {
            (Some(&first), Some(&second)) => self.0[place(first, second)],
            _ => NONE,
        };
        let (mut at, mut before, mut here, mut known) = (0, NONE, pair(0), None);
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
        self.0.capacity() * size_of::<BytePair>()
    }
}

/// Pairs while they are collected from tokens, where two texts merge if both together are one. Pairs of bytes merge if
/// both are ASCII.
#[derive(Debug)]
pub(crate) struct TokenPairs {
    pairs: Vec<BytePair>,
    /// By pair the lowest rank of a longer token that it begins or ends.
    further: Vec<u32>,
}

impl Default for TokenPairs {
    fn default() -> Self {
        Self { pairs: vec![NONE; 1 << 16], further: vec![NO_RANK; 1 << 16] }
    }
}

impl TokenPairs {
    /// Lets no pair be sure that stands before or behind a character. O(1).
    pub(crate) fn add_unknown(&mut self, char: &[u8]) {
        let (Some(&first), Some(&last)) = (char.first(), char.last()) else { return };
        for byte in 0..=u8::MAX {
            self.pairs[place(byte, first)].after = 0;
            self.pairs[place(last, byte)].before = 0;
        }
    }

    /// Adds a token; `symbol` is what its text merges to.
    pub(crate) fn add(&mut self, text: &[u8], rank: u32, symbol: Symbol) {
        let (Some(&[first, second]), Some(&[last_but_one, last])) = (text.first_chunk(), text.last_chunk()) else {
            return;
        };
        let (begin, end) = (place(first, second), place(last_but_one, last));
        self.pairs[begin].after = self.pairs[begin].after.min(rank);
        self.pairs[end].before = self.pairs[end].before.min(rank);
        if text.len() > 2 {
            self.further[begin] = self.further[begin].min(rank);
            self.further[end] = self.further[end].min(rank);
        } else if text.is_ascii() {
            (self.pairs[begin].rank, self.pairs[begin].merged) = (rank, symbol);
        }
    }

    /// The pairs as a table. O(2¹⁶).
    pub(crate) fn finish(mut self) -> BytePairs {
        for (pair, further) in self.pairs.iter_mut().zip(self.further) {
            if pair.rank >= further {
                pair.merged |= UNSURE;
            }
        }
        BytePairs(self.pairs)
    }
}

fn place(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BytePairs, Edges, NO_SYMBOL, Row, Symbol};
    use crate::model::merging::Merging;
    use crate::model::merging::ranks::Merges;

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

    /// Some merges, each of any two texts that make a third, in any order: taking a text further may come before making it.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let texts = texts();
        let symbol = |text: &[u8]| texts.iter().position(|other| other == text).expect("short") as Symbol;
        let splits = texts.iter().flat_map(|text| (1..text.len()).map(move |at| (&text[..at], &text[at..])));
        let rows: Vec<Row> = splits.map(|(left, right)| [left, right, &[left, right].concat()].map(symbol)).collect();
        let few = 1..rows.len() / 2;
        (prop::sample::subsequence(rows, few).prop_shuffle(), 0..20_usize).prop_map(|(mut rows, at)| {
            // What is no merge has no symbol.
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
            let merges = Merges::of_rows(texts.len(), &rows).expect("few");
            let bytes = std::array::from_fn(|byte| {
                BYTES.iter().position(|&known| usize::from(known) == byte).map_or(NO_SYMBOL, |at| at as Symbol)
            });
            let edges = texts.iter().map(|text| Edges::of(text)).collect();
            let pairs = BytePairs::new(&rows, &bytes, edges);
            let mut merging = Merging::default();
            let mut run = |symbols: &[Symbol]| merging.run_symbols(symbols, |left, right| merges.get(left, right));
            for piece in pieces {
                let mut symbols: Vec<Symbol> = Vec::new();
                pairs.symbols(&piece, &bytes, |_| (None, 1), |symbol, _, pair| {
                    if let Some(pair) = pair {
                        assert_eq!(merges.get(symbols[symbols.len() - 1], symbol).0, pair.0);
                    }
                    symbols.push(symbol);
                });
                let single: Vec<Symbol> = piece.iter().map(|&byte| bytes[usize::from(byte)]).collect();
                prop_assert_eq!(run(&symbols), run(&single));
            }
        }
    }
}
