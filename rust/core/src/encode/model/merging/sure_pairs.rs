//! A table of all pairs of bytes: how each pair merges, and whether it surely merges before everything else.
//!
//! Two adjacent bytes are sure to merge, and may do so before anything is looked up, if their rank is lower than that
//! of
//! 1. every merge that could take the first byte away: the text that it makes ends with the byte before and the first
//!    byte;
//! 2. every merge that could take the second byte away: its text starts with the second byte and the byte after;
//! 3. every merge that extends the merged pair: its text is longer, and starts or ends with the pair.
//!
//! The first two depend on the bytes around the pair; the third is checked once. Nearly half of the merges in English
//! words are sure.
//!
//! A table of all pairs, 16 bytes each; O(1) per pair. `bpe::whole_chars` does the same for characters.

use super::symbol::{Merge, NO_MERGE, NO_RANK, Symbol};
use crate::work::memory::filled;

/// Added to the merged symbol of a pair that is never sure. All symbols are lower.
const UNSURE: Symbol = 1 << 31;

/// How far the pairs of one first byte are from those of the next. With 256 pairs, 4 KiB, the pairs of all lower-case
/// letters would share an eighth of the first cache.
const ROW: usize = 256 + 32;

/// Two adjacent bytes.
#[derive(Debug, Clone, Copy)]
struct Pair {
    /// The merge of the two; [`UNSURE`] is added to its symbol if condition 3 does not hold.
    merge: Merge,
    /// The lowest rank of a merge whose text ends with the pair.
    before: u32,
    /// The lowest rank of a merge whose text starts with the pair.
    after: u32,
}

/// Past either end of a piece.
const NO_PAIR: Pair = Pair { merge: NO_MERGE, before: NO_RANK, after: NO_RANK };

impl Pair {
    #[inline(always)]
    fn merge(self) -> Merge {
        Merge { rank: self.merge.rank, symbol: self.merge.symbol & !UNSURE }
    }

    /// The symbol of both together, if they are sure to merge. Each of the other two pairs shares a byte with this one.
    #[inline(always)]
    fn sure(self, before: Self, after: Self) -> Option<Symbol> {
        let Merge { rank, symbol } = self.merge;
        (rank < before.before && rank < after.after && symbol < UNSURE).then_some(symbol)
    }
}

/// All pairs of bytes.
#[derive(Debug)]
pub(crate) struct SurePairs(Vec<Pair>);

heap_bytes!(Pair; SurePairs: 0);

impl SurePairs {
    /// The merge of two bytes.
    #[inline]
    pub(crate) fn get(&self, first: u8, second: u8) -> Merge {
        self.0[place(first, second)].merge()
    }

    /// Starts a walk along the pairs of a piece.
    #[inline(always)]
    pub(crate) fn walk<'a>(&'a self, piece: &'a [u8]) -> PairWalk<'a> {
        let mut walk = PairWalk { pairs: self, piece, before: NO_PAIR, here: NO_PAIR };
        walk.here = walk.pair(0);
        walk
    }
}

/// A walk along the pairs of a piece, from one ASCII character to the next.
#[derive(Debug)]
pub(crate) struct PairWalk<'a> {
    pairs: &'a SurePairs,
    piece: &'a [u8],
    /// The pair that ends with the current byte, and the one that starts with it.
    before: Pair,
    here: Pair,
}

impl PairWalk<'_> {
    #[inline(always)]
    fn pair(&self, at: usize) -> Pair {
        match (self.piece.get(at), self.piece.get(at + 1)) {
            (Some(&first), Some(&second)) => self.pairs.0[place(first, second)],
            _ => NO_PAIR,
        }
    }

    /// The symbol of the ASCII character at `at`, which is the current byte, together with the next byte, if they are
    /// sure to merge. Moves past both, or else past the first one.
    #[inline(always)]
    pub(crate) fn next_sure(&mut self, at: usize) -> Option<Symbol> {
        let next = self.pair(at + 1);
        let both = self.here.sure(self.before, next).filter(|_| self.piece[at + 1] < 0x80);
        (self.before, self.here) = if both.is_some() { (next, self.pair(at + 2)) } else { (self.here, next) };
        both
    }

    /// The merge of the byte before and the current one.
    #[inline(always)]
    pub(crate) fn merge_before(&self) -> Merge {
        self.before.merge()
    }

    /// Moves to `at`, past a character that is not ASCII.
    #[inline(always)]
    pub(crate) fn skip_to(&mut self, at: usize) {
        if self.piece.get(at).is_some_and(u8::is_ascii) {
            (self.before, self.here) = (self.pair(at - 1), self.pair(at));
        }
    }
}

/// The ends of a text of two bytes or more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    first: [u8; 2],
    last: [u8; 2],
    is_pair: bool,
}

impl Ends {
    /// `None` for a shorter text.
    #[inline]
    pub(crate) fn of(text: &[u8]) -> Option<Self> {
        Some(Self { first: *text.first_chunk()?, last: *text.last_chunk()?, is_pair: text.len() == 2 })
    }

    /// Both bytes, if the text has two.
    pub(crate) fn pair(self) -> Option<[u8; 2]> {
        self.is_pair.then_some(self.first)
    }
}

/// Collects [`SurePairs`] from the texts that merges make.
#[derive(Debug)]
pub(crate) struct SurePairsBuilder {
    pairs: Vec<Pair>,
    /// For each pair, the lowest rank of a merge whose text is longer and starts or ends with the pair.
    further: Vec<u32>,
}

impl SurePairsBuilder {
    /// No merges.
    pub(crate) fn new() -> Self {
        Self { pairs: filled(256 * ROW, NO_PAIR), further: filled(256 * ROW, NO_RANK) }
    }

    /// Adds a merge, given the ends of the text that it makes. If several merges make the same pair, the lowest rank
    /// wins.
    pub(crate) fn add(&mut self, ends: Ends, merge: Merge) {
        let [start, end] = [ends.first, ends.last].map(|[first, second]| place(first, second));
        self.pairs[start].after = self.pairs[start].after.min(merge.rank);
        self.pairs[end].before = self.pairs[end].before.min(merge.rank);
        if !ends.is_pair {
            self.further[start] = self.further[start].min(merge.rank);
            self.further[end] = self.further[end].min(merge.rank);
        } else if merge.rank < self.pairs[start].merge.rank {
            self.pairs[start].merge = merge;
        }
    }

    /// Makes every pair next to this character unsure. O(1).
    pub(crate) fn add_unknown(&mut self, char: &[u8]) {
        let (Some(&first), Some(&last)) = (char.first(), char.last()) else { return };
        for byte in 0..=u8::MAX {
            self.pairs[place(byte, first)].after = 0;
            self.pairs[place(last, byte)].before = 0;
        }
    }

    /// The finished table, in which only pairs with a rank below `limit` can be sure. O(2¹⁶).
    pub(crate) fn finish(mut self, limit: u32) -> SurePairs {
        for (pair, further) in self.pairs.iter_mut().zip(self.further) {
            if pair.merge.rank >= further.min(limit) {
                pair.merge.symbol |= UNSURE;
            }
        }
        SurePairs(self.pairs)
    }
}

fn place(first: u8, second: u8) -> usize {
    usize::from(first) * ROW + usize::from(second)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Ends, Merge, SurePairsBuilder, Symbol};
    use crate::encode::model::merging::Merging;
    use crate::encode::model::merging::ranks::{MergeRanks, Row};
    use crate::encode::model::merging::symbol::NO_SYMBOL;

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

    /// Some merge rules in any order, each of two texts that make a third: a rule may use a text before another rule
    /// makes it.
    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let texts = texts();
        let symbol = |text: &[u8]| texts.iter().position(|other| other == text).expect("short") as Symbol;
        let splits = texts.iter().flat_map(|text| (1..text.len()).map(move |at| (&text[..at], &text[at..])));
        let rows: Vec<Row> = splits.map(|(left, right)| [left, right, &[left, right].concat()].map(symbol)).collect();
        let few = 1..rows.len() / 2;
        (prop::sample::subsequence(rows, few).prop_shuffle(), 0..20_usize).prop_map(|(mut rows, at)| {
            // A rule whose merged text is not a symbol.
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
            let bytes: [Symbol; 256] = std::array::from_fn(|byte| {
                BYTES.iter().position(|&known| usize::from(known) == byte).map_or(NO_SYMBOL, |at| at as Symbol)
            });
            let mut pairs = SurePairsBuilder::new();
            for (&[_, _, symbol], rank) in rows.iter().zip(0..).filter(|(row, _)| row[2] != NO_SYMBOL) {
                pairs.add(Ends::of(&texts[symbol as usize]).expect("two bytes"), Merge { rank, symbol });
            }
            let pairs = pairs.finish(24);
            let mut merging = Merging::default();
            let mut run = |symbols: &[Symbol]| merging.run_symbols(symbols, |left, right| ranks.get(left, right));
            for piece in pieces {
                let mut symbols: Vec<Symbol> = Vec::new();
                let mut push = |symbol, merge: Option<Merge>| {
                    if let Some(merge) = merge {
                        assert_eq!(ranks.get(symbols[symbols.len() - 1], symbol).rank, merge.rank);
                    }
                    symbols.push(symbol);
                };
                let mut at = 0;
                let mut known = None;
                let mut walk = pairs.walk(&piece);
                while let Some(&byte) = piece.get(at) {
                    if byte >= 0x80 {
                        push(bytes[usize::from(byte)], known.take());
                        at += 1;
                        walk.skip_to(at);
                    } else if let Some(both) = walk.next_sure(at) {
                        push(both, None);
                        (at, known) = (at + 2, None);
                    } else {
                        push(bytes[usize::from(byte)], known);
                        (at, known) = (at + 1, Some(walk.merge_before()));
                    }
                }
                let single: Vec<Symbol> = piece.iter().map(|&byte| bytes[usize::from(byte)]).collect();
                prop_assert_eq!(run(&symbols), run(&single));
            }
        }
    }
}
