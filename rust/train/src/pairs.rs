//! Finds all pairs of neighbouring symbols before the first merge: how often each occurs, and where.
//!
//! Each thread counts the pairs of some words in its own table. Then every pair gets a range of one array for its
//! places, which is filled in order. O(cells), with one look-up of a pair for each.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use ggtok_core::internals::Seed;
use ggtok_core::internals::interrupt;

use super::symbols::Symbol;
use super::work::work;

/// A symbol with the word it belongs to. A symbol of several cells is in the first and the last one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// The symbol, or [`BREAK`], or [`INSIDE`].
    pub(super) symbol: Symbol,
    /// The index of the word, whose count is the cell's weight.
    pub(super) word: u32,
}

/// Marks a cell between two words. There is one before the first word and one after the last.
pub(super) const BREAK: Symbol = u32::MAX;
/// Marks a cell inside a merged symbol.
pub(super) const INSIDE: Symbol = u32::MAX - 1;

/// A pair that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) left: Symbol,
    pub(super) right: Symbol,
    /// How often it occurs, or more.
    pub(super) count: u64,
    /// The `count` at which the pair was merged, if it was.
    pub(super) merged: u64,
    /// The priority of its queue entry; 0 if it has none.
    pub(super) priority: u64,
    /// The range of its places in the array.
    pub(super) start: usize,
    pub(super) len: usize,
}

/// Hashes a pair of symbols packed into one number.
#[derive(Default)]
struct PairHasher(u64);

impl Hasher for PairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = Seed::default().hash(bytes);
    }

    fn write_u64(&mut self, pair: u64) {
        self.0 = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// The pairs of a stretch of cells, each with its count and number of places.
type Table = HashMap<u64, (u64, usize), BuildHasherDefault<PairHasher>>;

fn key(left: Symbol, right: Symbol) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// Calls `found` with the place, left and right symbol of every pair that starts in `range`.
fn each_pair(cells: &[Cell], range: std::ops::Range<usize>, mut found: impl FnMut(usize, u64)) {
    for at in interrupt::ticking(range) {
        let left = cells[at].symbol;
        let right = cells[at + 1].symbol;
        if left != BREAK && right != BREAK {
            found(at, key(left, right));
        }
    }
}

/// Counts the pairs that `allows` accepts and returns them, ordered by their symbols, with the array of their places.
pub(super) fn count_pairs(
    cells: &[Cell],
    weights: &[u64],
    threads: usize,
    allows: impl Fn(Symbol, Symbol) -> bool + Sync,
) -> (Vec<Pair>, Vec<u32>) {
    const RUN: usize = 1 << 18;
    let last = cells.len().saturating_sub(1);
    let tables = work(threads, last, RUN, Table::default, |table, run| {
        each_pair(cells, run, |at, pair| {
            let entry = table.entry(pair).or_default();
            *entry = (entry.0 + weights[cells[at].word as usize], entry.1 + 1);
        });
    });
    let mut tables = tables.into_iter();
    let mut all = tables.next().unwrap_or_default();
    for (pair, (count, len)) in interrupt::ticking(tables.flatten()) {
        let entry = all.entry(pair).or_default();
        *entry = (entry.0 + count, entry.1 + len);
    }

    let mut pairs: Vec<Pair> = Vec::with_capacity(all.len());
    for (&pair, &(count, len)) in interrupt::ticking(&all) {
        let left = (pair >> 32) as u32;
        let right = pair as u32;
        if allows(left, right) {
            pairs.push(Pair { left, right, count, merged: 0, priority: 0, start: 0, len });
        }
    }
    interrupt::sort_unstable_by(&mut pairs, |a, b| (a.left, a.right).cmp(&(b.left, b.right)));
    let mut end = 0;
    // From here on, the table holds the position for a pair's next place.
    all.values_mut().for_each(|entry| entry.1 = usize::MAX);
    for pair in interrupt::ticking(&mut pairs) {
        pair.start = end;
        end += pair.len;
        all.insert(key(pair.left, pair.right), (0, pair.start));
    }
    let mut places = vec![0; end];
    each_pair(cells, 0..last, |at, pair| {
        if let Some((_, next)) = all.get_mut(&pair).filter(|(_, next)| *next != usize::MAX) {
            places[*next] = at as u32;
            *next += 1;
        }
    });
    (pairs, places)
}
