//! The loop shared by all merging trainers: the best pair of neighbouring symbols becomes a symbol, over and over.
//!
//! 1. Words are one flat array of cells. A symbol of several cells is stored in the first and the last one, so both
//!    neighbours of a symbol are one load away, and a merge writes two cells and moves nothing.
//! 2. Each pair has a list of the places where it was found. A place is not removed when a merge takes one of its
//!    symbols; it is checked when it is used.
//! 3. A queue holds the pairs by a priority that may be too high but never too low. The first pair is recounted from
//!    its places. If it is still first, it is merged; otherwise it goes back. So a pair is only counted when it
//!    matters.
//! 4. The neighbours of the merged places form the new pairs. They are sorted, which groups them without a hash table.
//!
//! [`Rules`] holds what differs between vocabularies: which pairs may merge, priorities, ties, and whether equal texts
//! are one symbol.
//!
//! Source: Sennrich et al. 2016 (byte pair encoding); huggingface/tokenizers `bpe/trainer.rs` and sentencepiece
//! `bpe_model_trainer.cc` for what the rules reproduce. Time: O(n log n) for n cells in practice; a pair's places are
//! recounted each time it comes first. Space: 8 bytes per cell, at most 4 per place, and two places per merge of two
//! cells.

use std::cmp::{Ordering, Reverse};
use std::ops::ControlFlow;

use ggtok_core::internals::interrupt::{self, Ticker};

use super::pairs::{BREAK, Cell, INSIDE, Pair, count_pairs};
use super::queue::Queue;
use super::symbols::{Symbol, Symbols};
use super::words::Words;
use super::{Phase, Progress, Result, TrainError};

/// Above this many places, look-ups are faster than sorting.
const MANY: usize = 1 << 18;

/// How a kind of vocabulary merges.
pub(super) trait Rules: Sync {
    /// Whether a merge whose text equals a symbol's becomes that symbol. Otherwise the pair does not merge.
    const BY_TEXT: bool;
    /// Whether [`Rules::priority`] depends on how often each side occurs.
    const BY_PARTS: bool = false;

    /// Whether a pair may become a symbol.
    fn allows(&self, symbols: &Symbols, left: Symbol, right: Symbol) -> bool;

    /// The priority of a pair, highest first; 0 for never. For the same sides it grows with the count.
    fn priority(&self, count: u64, _sides: [u64; 2]) -> u64 {
        count
    }

    /// Breaks ties between pairs of the same priority, lowest first.
    fn tie(&self, _symbols: &Symbols, left: Symbol, right: Symbol) -> u64 {
        u64::from(left) << 32 | u64::from(right)
    }

    /// Breaks ties that remain.
    fn compare(&self, _symbols: &Symbols, one: (Symbol, Symbol), other: (Symbol, Symbol)) -> Ordering {
        one.cmp(&other)
    }

    /// A new symbol was made, from a pair that occurred `_count` times.
    fn joined(&mut self, _left: Symbol, _right: Symbol, _count: u64) {}
}

/// An entry of the queue.
#[derive(Debug, Clone, Copy)]
struct QueuedPair {
    priority: u64,
    tie: u64,
    pair: u32,
}

/// The words of a corpus, and everything known about them.
pub(super) struct Merger<R> {
    pub(super) rules: R,
    pub(super) symbols: Symbols,
    cells: Vec<Cell>,
    /// How often each word occurs.
    weights: Vec<u64>,
    /// The places of all pairs.
    places: Vec<u32>,
    pairs: Vec<Pair>,
    queue: Queue<QueuedPair>,
    /// The pairs that each symbol is a side of, if the rules need them.
    touching: Vec<Vec<u32>>,
    /// How often each symbol occurs, if the rules need it.
    totals: Vec<u64>,
    least_count: u64,
    /// The sides of each merge, in order.
    pub(super) merges: Vec<(Symbol, Symbol)>,
}

/// Words as cells: symbols, one per cell, with breaks between; and the count of each word.
#[derive(Debug)]
pub(super) struct Cells(Vec<Cell>, Vec<u64>, Ticker);

impl Default for Cells {
    fn default() -> Self {
        Self(vec![Cell { symbol: BREAK, word: 0 }], Vec::new(), Ticker::default())
    }
}

impl Cells {
    /// Words as `encode` spells them. It is called with several words at a time.
    pub(super) fn of(words: &Words, encode: impl Fn(&[&[u8]]) -> Result<Vec<Vec<Symbol>>>) -> Result<Self> {
        const BATCH: usize = 1 << 12;
        let mut cells = Self::default();
        let (texts, counts): (Vec<&[u8]>, Vec<u64>) = words.iter().unzip();
        for (texts, counts) in texts.chunks(BATCH).zip(counts.chunks(BATCH)) {
            for (word, &count) in encode(texts)?.into_iter().zip(counts) {
                cells.push(word.into_iter().map(Some), count)?;
            }
        }
        Ok(cells)
    }

    /// How often all symbols occur together.
    pub(super) fn num_occurrences(&self) -> u64 {
        self.0.iter().filter(|cell| cell.symbol != BREAK).map(|cell| self.1[cell.word as usize]).sum()
    }

    /// Adds a word by its symbols. `None` stands for something without a symbol: nothing merges across it.
    pub(super) fn push(&mut self, word: impl Iterator<Item = Option<Symbol>>, count: u64) -> Result<()> {
        let Self(cells, weights, ticker) = self;
        cells.extend(word.chain([None]).map(|symbol| {
            ticker.tick();
            Cell { symbol: symbol.unwrap_or(BREAK), word: weights.len() as u32 }
        }));
        weights.push(count);
        // Places are 32-bit numbers.
        if cells.len() > INSIDE as usize { Err(TrainError::TooLarge { symbols: cells.len() }) } else { Ok(()) }
    }
}

impl<R: Rules> Merger<R> {
    /// Prepares words for merging. Pairs that occur less than `least_count` times are not merged.
    pub(super) fn new(
        rules: R,
        symbols: Symbols,
        Cells(cells, weights, _): Cells,
        least_count: u64,
        threads: usize,
    ) -> Self {
        let (counted, places) =
            count_pairs(&cells, &weights, threads, |left, right| rules.allows(&symbols, left, right));
        let num_lists = if R::BY_TEXT || R::BY_PARTS { symbols.len() } else { 0 };
        let mut totals = vec![0; if R::BY_PARTS { symbols.len() } else { 0 }];
        if R::BY_PARTS {
            for cell in interrupt::ticking(&cells).filter(|cell| cell.symbol != BREAK) {
                totals[cell.symbol as usize] += weights[cell.word as usize];
            }
        }
        let mut merger = Self {
            rules,
            symbols,
            cells,
            weights,
            places,
            pairs: Vec::new(),
            queue: Queue::default(),
            touching: vec![Vec::new(); num_lists],
            totals,
            least_count: least_count.max(1),
            merges: Vec::new(),
        };
        interrupt::ticking(counted).for_each(|pair| merger.add(pair));
        merger
    }

    /// Merges until there are `num_symbols` symbols or nothing is left to merge.
    pub(super) fn run(&mut self, num_symbols: usize, progress: &mut Progress<'_>) -> Result<()> {
        let first = self.symbols.len();
        let mut places = Vec::new();
        while self.symbols.len() < num_symbols {
            interrupt::check();
            let done = self.symbols.len() - first;
            if progress(Phase::Merging, done as u64, (num_symbols - first) as u64) == ControlFlow::Break(()) {
                return Err(TrainError::Stopped);
            }
            let Some(pair) = self.best() else { break };
            self.merge(pair, &mut places);
        }
        Ok(())
    }

    /// Adds a pair with its places.
    fn add(&mut self, pair: Pair) {
        let Pair { left, right, .. } = pair;
        let index = self.pairs.len() as u32;
        self.pairs.push(pair);
        if !self.touching.is_empty() {
            self.touching[left as usize].push(index);
            if left != right {
                self.touching[right as usize].push(index);
            }
        }
        self.enqueue(index);
    }

    /// Puts a pair into the queue with its current priority.
    fn enqueue(&mut self, index: u32) {
        let Pair { left, right, count, .. } = self.pairs[index as usize];
        let sides = if R::BY_PARTS { [left, right].map(|side| self.totals[side as usize]) } else { [0; 2] };
        let priority = if count < self.least_count { 0 } else { self.rules.priority(count, sides) };
        if std::mem::replace(&mut self.pairs[index as usize].priority, priority) != priority && priority != 0 {
            let tie = self.rules.tie(&self.symbols, left, right);
            let before = before(&self.rules, &self.symbols, &self.pairs);
            self.queue.push(QueuedPair { priority, tie, pair: index }, before);
        }
    }

    /// Takes the pair to merge next out of the queue.
    fn best(&mut self) -> Option<u32> {
        let mut ticker = Ticker::default();
        loop {
            ticker.tick();
            let entry = self.queue.pop(before(&self.rules, &self.symbols, &self.pairs))?;
            let pair = self.pairs[entry.pair as usize];
            if entry.priority != pair.priority {
                continue;
            }
            let count = pair.merged + self.recount(entry.pair);
            if count == pair.count {
                self.pairs[entry.pair as usize].priority = 0;
                return Some(entry.pair);
            }
            self.pairs[entry.pair as usize].count = count;
            self.pairs[entry.pair as usize].priority = 0;
            self.enqueue(entry.pair);
        }
    }

    /// Drops the places where a pair no longer is, and counts the others.
    fn recount(&mut self, index: u32) -> u64 {
        let Pair { left, right, start, len, .. } = self.pairs[index as usize];
        let left_cells = self.symbols.cells(left);
        let places = &mut self.places[start..start + len];
        let mut kept = 0;
        let mut count = 0;
        for from in interrupt::ticking(0..len) {
            let at = places[from] as usize;
            if self.cells[at].symbol == left && self.cells[at + left_cells].symbol == right {
                count += self.weights[self.cells[at].word as usize];
                places[kept] = at as u32;
                kept += 1;
            }
        }
        self.pairs[index as usize].len = kept;
        count
    }

    /// Merges a pair everywhere.
    fn merge(&mut self, index: u32, found: &mut Vec<u64>) {
        let Pair { left, right, count, start, len, .. } = self.pairs[index as usize];
        let pair = &mut self.pairs[index as usize];
        (pair.merged, pair.len) = (count, 0);
        let existing = self.symbols.find_joined(left, right);
        // In words spelled in tokens, equal texts may have different numbers of cells, but a symbol has only one
        // number.
        let cells = self.symbols.cells(left) + self.symbols.cells(right);
        if existing.is_some_and(|existing| !R::BY_TEXT || self.symbols.cells(existing) != cells) {
            return;
        }
        let joined = existing.unwrap_or_else(|| {
            self.rules.joined(left, right, count);
            self.symbols.join(left, right)
        });
        self.merges.push((left, right));
        if existing.is_none() && !self.touching.is_empty() {
            self.touching.push(Vec::new());
        }
        if existing.is_none() && R::BY_PARTS {
            self.totals.push(0);
        }

        // If both symbols are the same, a place may overlap the previous one, which has merged.
        let left_cells = self.symbols.cells(left);
        let mut kept = start;
        let mut weight = 0;
        for from in interrupt::ticking(start..start + len) {
            let at = self.places[from] as usize;
            if self.cells[at].symbol != left || self.cells[at + left_cells].symbol != right {
                continue;
            }
            self.cells[at + left_cells].symbol = INSIDE;
            self.cells[at].symbol = joined;
            self.cells[at + cells - 1].symbol = joined;
            weight += self.weights[self.cells[at].word as usize];
            self.places[kept] = at as u32;
            kept += 1;
        }

        if R::BY_PARTS {
            self.totals[joined as usize] += weight;
            self.totals[left as usize] -= weight;
            self.totals[right as usize] -= weight;
        }

        // The pairs with the symbol before, then those with the symbol after, including the new symbol twice in a row.
        for is_right in [false, true] {
            found.clear();
            for &at in interrupt::ticking(&self.places[start..kept]) {
                let before = self.cells[at as usize - 1].symbol;
                let after = self.cells[at as usize + cells].symbol;
                if is_right && after != BREAK {
                    found.push(u64::from(after) << 32 | u64::from(at));
                } else if !is_right && before != BREAK && before != joined {
                    let start = at as usize - self.symbols.cells(before);
                    found.push(u64::from(before) << 32 | start as u64);
                }
            }
            if found.len() < MANY {
                found.sort_unstable();
            } else {
                interrupt::sort_unstable_by(found, u64::cmp);
            }
            for group in found.chunk_by(|one, other| one >> 32 == other >> 32) {
                let other = (group[0] >> 32) as Symbol;
                let (left, right) = if is_right { (joined, other) } else { (other, joined) };
                if self.rules.allows(&self.symbols, left, right) {
                    self.add_group(left, right, group, existing.is_some());
                }
            }
        }
        if R::BY_PARTS {
            [left, right, joined].into_iter().for_each(|side| self.enqueue_touching(side));
        }
    }

    /// Adds a pair whose places are the lower halves of `group`.
    fn add_group(&mut self, left: Symbol, right: Symbol, group: &[u64], may_exist: bool) {
        let places = || group.iter().map(|&place| place as u32);
        let weight = |at: u32| self.weights[self.cells[at as usize].word as usize];
        let count = interrupt::ticking(places()).map(weight).sum();
        let start = self.places.len();
        let known = if may_exist { self.find(left, right) } else { None };
        if let Some(index) = known {
            // The pair's old places first, then the new ones.
            let old = self.pairs[index as usize];
            self.places.extend_from_within(old.start..old.start + old.len);
            self.places.extend(places());
            let pair = &mut self.pairs[index as usize];
            (pair.start, pair.len, pair.count) = (start, old.len + group.len(), old.count + count);
            self.enqueue(index);
        } else {
            self.places.extend(places());
            self.add(Pair { left, right, count, merged: 0, priority: 0, start, len: group.len() });
        }
    }

    /// The pair of two symbols, if it was found before.
    fn find(&self, left: Symbol, right: Symbol) -> Option<u32> {
        let lists = [left, right].map(|side| &self.touching[side as usize]);
        let shorter = if lists[0].len() < lists[1].len() { lists[0] } else { lists[1] };
        let is_pair = |pair: &Pair| (pair.left, pair.right) == (left, right);
        shorter.iter().copied().find(|&index| is_pair(&self.pairs[index as usize]))
    }

    /// Puts the pairs of a symbol into the queue again, because its count has changed.
    fn enqueue_touching(&mut self, side: Symbol) {
        for at in interrupt::ticking(0..self.touching[side as usize].len()) {
            let index = self.touching[side as usize][at];
            if self.pairs[index as usize].len > 0 {
                self.enqueue(index);
            }
        }
    }
}

/// The order of the queue.
fn before<R: Rules>(rules: &R, symbols: &Symbols, pairs: &[Pair]) -> impl Fn(&QueuedPair, &QueuedPair) -> bool {
    move |one, other| {
        let key = |entry: &QueuedPair| (Reverse(entry.priority), entry.tie);
        let sides = |entry: &QueuedPair| {
            let pair = &pairs[entry.pair as usize];
            (pair.left, pair.right)
        };
        let order = key(one).cmp(&key(other));
        order.then_with(|| rules.compare(symbols, sides(one), sides(other))).is_lt()
    }
}
