//! Merging by counting: a run of one symbol becomes a run of half as many.
//!
//! A run of n symbols that merge in pairs becomes a run of n / 2 other symbols, with one left over at the end if n is
//! odd. All pairs of a run merge in one step, unless the merged symbols may merge again first. Then pairs merge one by
//! one, but from the left and without a queue. A megabyte of spaces takes milliseconds, most of it spent comparing
//! bytes.
//!
//! O(log n) steps for trained byte-pair vocabularies, and never more than n. The order of merges is that of
//! [`super::Merging`]. Deviations: none.

use std::ops::Range;

use super::SymbolSpan;
use super::symbol::{Merge, NO_MERGE, NO_RANK, NO_SYMBOL, Symbol};
use crate::work::interrupt::Ticker;

/// Shorter pieces, in bytes, are not worth counting.
const MIN_LEN: usize = 16;
/// In practice, counting leaves fewer runs.
const MAX_RUNS: usize = 64;

/// A symbol that repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    symbol: Symbol,
    count: usize,
    /// Bytes per symbol.
    width: usize,
}

/// The merged symbols of a piece that repeats one character, perhaps after one other ASCII character. `None` for any
/// other piece, and if counting is not enough.
///
/// `char` returns the symbol that the character at a byte starts as, or [`NO_SYMBOL`], and its length.
/// `merge` looks up two adjacent symbols.
#[inline]
pub(crate) fn merge_piece(
    piece: &[u8],
    char: impl Fn(usize) -> (Symbol, usize),
    merge: impl FnMut(Symbol, Symbol) -> Merge,
) -> Option<impl Iterator<Item = SymbolSpan>> {
    if piece.len() < MIN_LEN {
        return None;
    }
    let first = usize::from(piece[0] < 0x80 && piece[0] != piece[1]);
    let (symbol, width) = char(first);
    let count = (piece.len() - first) / width;
    if count * width + first != piece.len() || piece[first + width..] != piece[first..piece.len() - width] {
        return None;
    }

    let single = if first > 0 { Some(Run { symbol: char(0).0, count: 1, width: 1 }) } else { None };
    let runs: Vec<Run> = single.into_iter().chain([Run { symbol, count, width }]).collect();
    if runs.iter().any(|run| run.symbol == NO_SYMBOL) {
        return None;
    }
    let mut end = 0;
    let repeated = merge_runs(runs, merge)?.into_iter().flat_map(|run| std::iter::repeat_n(run, run.count));
    Some(repeated.map(move |Run { symbol, width, .. }| {
        end += width as u32;
        SymbolSpan { symbol, start: end - width as u32, end }
    }))
}

/// Merges runs. Neighbouring runs have different symbols.
fn merge_runs(mut runs: Vec<Run>, mut merge: impl FnMut(Symbol, Symbol) -> Merge) -> Option<Vec<Run>> {
    let mut ticker = Ticker::default();
    while let Some((Merge { rank, symbol }, at, next)) = lowest(&runs, &mut merge) {
        ticker.tick();
        let run = runs[at];
        if at == next && run.count >= 4 {
            let before = at.checked_sub(1).map(|before| (runs[before].symbol, symbol));
            let mut among = [(symbol, symbol), (symbol, run.symbol)].into_iter().chain(before);
            if among.any(|(left, right)| merge(left, right).rank <= rank) {
                merge_from_left(&mut runs, at, Merge { rank, symbol }, &mut merge);
            } else {
                // None of the merged symbols merges before the last pair of the run does.
                replace(&mut runs, at..at + 1, [run.merged(symbol, run.count / 2), run.times(run.count % 2)]);
            }
        } else if at == next {
            replace(&mut runs, at..at + 1, [run.merged(symbol, 1), run.times(run.count - 2)]);
        } else {
            let right = runs[next];
            let both = Run { symbol, count: 1, width: run.width + right.width };
            replace(&mut runs, at..next + 1, [run.times(run.count - 1), both, right.times(right.count - 1)]);
        }
        if runs.len() > MAX_RUNS {
            return None;
        }
    }
    Some(runs)
}

/// Merges most pairs of a run one by one from the left, if a merged symbol may merge again before the next pair does.
///
/// All pairs to the left of the run have higher ranks than its own pairs. So after each merge only the pairs of the
/// merged symbol with its neighbours can have lower or equal ranks, and these are merged first. The last symbol of the
/// run stays, so what comes after it does not matter.
fn merge_from_left(runs: &mut Vec<Run>, at: usize, pair: Merge, mut merge: impl FnMut(Symbol, Symbol) -> Merge) {
    let after = runs.split_off(at + 1);
    let Some(mut rest) = runs.pop() else { return };
    let lower = |merge: Merge| merge.rank <= pair.rank;
    let mut ticker = Ticker::default();
    'pairs: while rest.count >= 3 && runs.len() <= MAX_RUNS {
        ticker.tick();
        push(runs, rest.merged(pair.symbol, 1));
        rest.count -= 2;
        while let Some(last) = pop(runs) {
            let with_next = merge(last.symbol, rest.symbol);
            let with_last = runs.last().map_or(NO_MERGE, |before| merge(before.symbol, last.symbol));
            if lower(with_last) && with_last.rank <= with_next.rank {
                let width = pop(runs).map_or(0, |before| before.width) + last.width;
                push(runs, Run { symbol: with_last.symbol, count: 1, width });
            } else if lower(with_next) && rest.count >= 2 {
                push(runs, Run { symbol: with_next.symbol, count: 1, width: last.width + rest.width });
                rest.count -= 1;
            } else {
                push(runs, last);
                if lower(with_next) {
                    break 'pairs;
                }
                break;
            }
        }
    }
    [rest].into_iter().chain(after).for_each(|run| push(runs, run));
}

impl Run {
    fn times(self, count: usize) -> Self {
        Self { count, ..self }
    }

    /// Pairs of this run, merged.
    fn merged(self, symbol: Symbol, count: usize) -> Self {
        Self { symbol, count, width: 2 * self.width }
    }
}

/// Appends a run, or extends the last one if it has the same symbol.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        _ if run.count == 0 => {}
        Some(last) if (last.symbol, last.width) == (run.symbol, run.width) => last.count += run.count,
        _ => runs.push(run),
    }
}

/// Removes the last symbol, as a run of one.
fn pop(runs: &mut Vec<Run>) -> Option<Run> {
    let last = runs.last_mut()?;
    let symbol = last.times(1);
    last.count -= 1;
    if last.count == 0 {
        runs.pop();
    }
    Some(symbol)
}

/// Replaces some runs by others.
fn replace<const N: usize>(runs: &mut Vec<Run>, range: Range<usize>, by: [Run; N]) {
    let after = runs.split_off(range.end);
    runs.truncate(range.start);
    by.into_iter().chain(after).for_each(|run| push(runs, run));
}

/// The lowest merge, if any pair merges, with the runs of its two symbols, which may be the same one.
fn lowest(runs: &[Run], mut merge: impl FnMut(Symbol, Symbol) -> Merge) -> Option<(Merge, usize, usize)> {
    let within = |at: usize| (runs[at].count >= 2).then_some((at, at));
    let across = |at: usize| (at + 1 < runs.len()).then_some((at, at + 1));
    let pairs = (0..runs.len()).flat_map(|at| [within(at), across(at)]).flatten();
    let merges = pairs.map(|(at, next)| (merge(runs[at].symbol, runs[next].symbol), at, next));
    merges.min_by_key(|(merge, ..)| merge.rank).filter(|(merge, ..)| merge.rank != NO_RANK)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Merge, NO_MERGE, NO_RANK, NO_SYMBOL, Run, Symbol, merge_piece, merge_runs};
    use crate::encode::model::merging::Merging;

    /// How many symbols there are in the tests.
    const SYMBOLS: usize = 7;

    /// The merged symbols of some pairs; the other list has the rank of each pair.
    fn table() -> impl Strategy<Value = (Vec<Option<Symbol>>, Vec<u32>)> {
        let merged = prop::option::weighted(0.5, 0..SYMBOLS as Symbol);
        let num_pairs = SYMBOLS * SYMBOLS;
        let distinct = Just((0..num_pairs as u32).collect::<Vec<_>>()).prop_shuffle();
        // Ranks that come from scores may be equal.
        let few = prop::collection::vec(0..3_u32, num_pairs);
        (prop::collection::vec(merged, num_pairs), prop_oneof![2 => distinct, 1 => few])
    }

    fn runs(counts: &[(Symbol, usize)]) -> Vec<Run> {
        let mut runs: Vec<Run> = counts.iter().map(|&(symbol, count)| Run { symbol, count, width: 1 }).collect();
        runs.dedup_by_key(|run| run.symbol);
        runs
    }

    fn symbols(runs: &[Run]) -> Vec<Symbol> {
        runs.iter().flat_map(|run| std::iter::repeat_n(run.symbol, run.count)).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn runs_merge_as_symbols_do(
            (merged, ranks) in table(),
            is_trained in any::<bool>(),
            counts in prop::collection::vec((0..3 as Symbol, 1..40_usize), 1..4),
        ) {
            let merge = |left: Symbol, right: Symbol| {
                let at = left as usize * SYMBOLS + right as usize;
                // Training makes a new symbol each time, which merges at higher ranks.
                let rank = if is_trained { left.max(right) * 100 + ranks[at] } else { ranks[at] };
                let symbol = merged[at].map(|symbol| if is_trained { left.max(right) + 1 } else { symbol });
                let symbol = symbol.filter(|&symbol| (symbol as usize) < SYMBOLS);
                symbol.map_or(NO_MERGE, |symbol| Merge { rank, symbol })
            };
            let runs = runs(&counts);
            let single = symbols(&runs);
            if let Some(found) = merge_runs(runs, merge) {
                prop_assert_eq!(symbols(&found), Merging::default().run_symbols(&single, merge));
            }
        }
    }

    /// Symbol k stands for 2ᵏ of symbol 0; the last one for 64.
    fn doubled(left: Symbol, right: Symbol) -> Merge {
        if left == right && left < 6 { Merge { rank: left, symbol: left + 1 } } else { NO_MERGE }
    }

    #[test]
    fn long_runs_take_few_steps() {
        for count in (1..300).chain([1 << 30, (1 << 40) + 77]) {
            let runs = runs(&[(0, count)]);
            let found = merge_runs(runs.clone(), doubled).expect("trained");
            assert_eq!(found.iter().map(|run| run.count * run.width).sum::<usize>(), count);
            if count < 300 {
                assert_eq!(symbols(&found), Merging::default().run_symbols(&symbols(&runs), doubled));
            }
        }
    }

    #[test]
    fn a_piece_is_one_character_repeated() {
        let runs = |piece: &str| {
            let char = |at: usize| match piece.as_bytes()[at] {
                b'?' => (NO_SYMBOL, 1),
                byte @ 0..0x80 => (if byte == b' ' { 9 } else { 0 }, 1),
                _ => (0, 2),
            };
            let merged = merge_piece(piece.as_bytes(), char, doubled)?;
            Some(merged.map(|span| (span.symbol, span.start, span.end)).collect::<Vec<_>>())
        };
        assert_eq!(runs(&"a".repeat(18)), Some(vec![(4, 0, 16), (1, 16, 18)]));
        assert_eq!(runs(&(" ".to_owned() + &"é".repeat(8))), Some(vec![(9, 0, 1), (3, 1, 17)]));
        for other in ["a".repeat(15), "ab".repeat(9), "a".repeat(16) + "b", "?".repeat(16), "é".repeat(9) + "a"] {
            assert_eq!(runs(&other), None, "{other}");
        }
    }

    #[test]
    fn no_rank_ends_it() {
        let alone = |_, _| Merge { rank: NO_RANK, symbol: 0 };
        assert_eq!(merge_runs(runs(&[(0, 20)]), alone), Some(runs(&[(0, 20)])));
    }
}
