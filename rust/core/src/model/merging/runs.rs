//! Merging runs of one symbol by counting.
//!
//! A run of n symbols that merge in pairs is a run of n / 2 other symbols, with one left over at the end. As long as what
//! that makes does not merge at a lower rank, all pairs of a run may merge in one step. O(log n) steps for trained
//! vocabularies, and never more than n; the order of merges is that of [`super::Merging`]. Deviations: none.

use super::symbol::{NO_RANK, Symbol};

/// More runs than counting leaves in practice.
const MOST_RUNS: usize = 64;

/// The same symbol some times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub symbol: Symbol,
    pub count: usize,
    /// Bytes of one.
    pub width: usize,
}

/// What some runs merge to, neighbours having different symbols, with `pair` as in [`super::Merging::run`]; nothing where
/// that takes more than counting.
pub(crate) fn merge(mut runs: Vec<Run>, pair: impl Fn(Symbol, Symbol) -> (u32, Symbol)) -> Option<Vec<Run>> {
    while let Some((rank, merged, at, next)) = lowest(&runs, &pair) {
        let run = runs[at];
        if at == next {
            let before = at.checked_sub(1).map(|before| (runs[before].symbol, merged));
            let among = [(merged, merged), (merged, run.symbol)].into_iter().chain(before);
            // The first merge of several must not make anything that merges before the last one.
            if run.count >= 4 && among.map(|(left, right)| pair(left, right).0).any(|other| other <= rank) {
                return None;
            }
            runs[at].count %= 2;
            runs.insert(at, Run { symbol: merged, count: run.count / 2, width: 2 * run.width });
        } else {
            runs[at].count -= 1;
            runs[next].count -= 1;
            runs.insert(next, Run { symbol: merged, count: 1, width: run.width + runs[next].width });
        }
        runs.retain(|run| run.count > 0);
        runs.dedup_by(|next, run| {
            let is_same = next.symbol == run.symbol;
            run.count += if is_same { next.count } else { 0 };
            is_same
        });
        if runs.len() > MOST_RUNS {
            return None;
        }
    }
    Some(runs)
}

/// The pair that merges next, if one does: rank and symbol of both together, and the runs of both, which may be the same.
fn lowest(runs: &[Run], pair: impl Fn(Symbol, Symbol) -> (u32, Symbol)) -> Option<(u32, Symbol, usize, usize)> {
    let within = |at: usize| (runs[at].count >= 2).then_some((at, at));
    let across = |at: usize| (at + 1 < runs.len()).then_some((at, at + 1));
    let pairs = (0..runs.len()).flat_map(|at| [within(at), across(at)]).flatten();
    let ranked = pairs.map(|(at, next)| (pair(runs[at].symbol, runs[next].symbol), at, next));
    let ((rank, merged), at, next) = ranked.min_by_key(|&((rank, _), ..)| rank)?;
    (rank != NO_RANK).then_some((rank, merged, at, next))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{NO_RANK, Run, Symbol, merge};
    use crate::model::merging::Merging;

    /// How many symbols there are in the tests.
    const SYMBOLS: usize = 7;

    /// For some pairs of symbols the symbol of both; the rank of a pair is its place in the other list.
    fn table() -> impl Strategy<Value = (Vec<Option<Symbol>>, Vec<u32>)> {
        // Symbols mostly merge to the next one, as in a vocabulary.
        let merged = prop::option::weighted(0.5, 0..SYMBOLS as Symbol);
        let ranks = Just((0..(SYMBOLS * SYMBOLS) as u32).collect::<Vec<_>>()).prop_shuffle();
        (prop::collection::vec(merged, SYMBOLS * SYMBOLS), ranks)
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
            let pair = |left: Symbol, right: Symbol| {
                let at = left as usize * SYMBOLS + right as usize;
                // What training makes is a symbol of its own, which merges at higher ranks.
                let rank = if is_trained { left.max(right) * 100 + ranks[at] } else { ranks[at] };
                let symbol = merged[at].map(|symbol| if is_trained { left.max(right) + 1 } else { symbol });
                symbol.filter(|&symbol| (symbol as usize) < SYMBOLS).map_or((NO_RANK, 0), |symbol| (rank, symbol))
            };
            let runs = runs(&counts);
            let single = symbols(&runs);
            if let Some(found) = merge(runs, pair) {
                prop_assert_eq!(symbols(&found), Merging::default().run_symbols(&single, pair));
            }
        }
    }

    #[test]
    fn long_runs_take_few_steps() {
        // Symbol k is 2ᵏ of the first; the last has 64.
        let pair =
            |left: Symbol, right: Symbol| if left == right && left < 6 { (left, left + 1) } else { (NO_RANK, 0) };
        for count in (1..300).chain([1 << 30, (1 << 40) + 77]) {
            let runs = runs(&[(0, count)]);
            let found = merge(runs.clone(), pair).expect("trained");
            assert_eq!(found.iter().map(|run| run.count * run.width).sum::<usize>(), count);
            if count < 300 {
                assert_eq!(symbols(&found), Merging::default().run_symbols(&symbols(&runs), pair));
            }
        }
    }
}
