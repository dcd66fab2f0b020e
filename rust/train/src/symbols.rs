//! The symbols of a training run: their concatenated texts, and how many cells of the words each covers.

use std::collections::HashMap;

/// A symbol's number: characters or bytes first, in the order that breaks ties, then merges as they are made.
pub(super) type Symbol = u32;

/// All symbols so far.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// The texts, concatenated.
    bytes: Vec<u8>,
    /// Where each text ends in `bytes`.
    ends: Vec<usize>,
    /// How many cells each covers. A merge covers those of both sides.
    cells: Vec<u32>,
    /// The first symbol with each text.
    by_text: HashMap<Box<[u8]>, Symbol>,
}

impl Symbols {
    /// Adds a symbol of one cell. Its text must be new.
    pub(super) fn add(&mut self, text: &[u8]) -> Symbol {
        self.bytes.extend_from_slice(text);
        self.push(1)
    }

    /// Adds the merge of two symbols.
    pub(super) fn join(&mut self, left: Symbol, right: Symbol) -> Symbol {
        let cells = self.cells(left) + self.cells(right);
        for side in [left, right] {
            let range = self.range(side);
            self.bytes.extend_from_within(range);
        }
        self.push(cells as u32)
    }

    /// Makes every symbol cover one cell, for words spelled in symbols.
    pub(super) fn flatten(&mut self) {
        self.cells.fill(1);
    }

    fn push(&mut self, cells: u32) -> Symbol {
        let symbol = self.ends.len() as Symbol;
        self.ends.push(self.bytes.len());
        self.cells.push(cells);
        let text = self.text(symbol).into();
        self.by_text.entry(text).or_insert(symbol);
        symbol
    }

    /// The number of symbols.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// How many cells a symbol covers.
    #[inline]
    pub(super) fn cells(&self, symbol: Symbol) -> usize {
        self.cells[symbol as usize] as usize
    }

    /// A symbol's text.
    #[inline]
    pub(super) fn text(&self, symbol: Symbol) -> &[u8] {
        &self.bytes[self.range(symbol)]
    }

    /// The bytes of both texts, joined.
    pub(super) fn joined_bytes(&self, (left, right): (Symbol, Symbol)) -> impl Iterator<Item = u8> + '_ {
        self.text(left).iter().chain(self.text(right)).copied()
    }

    /// The symbol with a text.
    pub(super) fn find(&self, text: &[u8]) -> Option<Symbol> {
        self.by_text.get(text).copied()
    }

    /// The symbol whose text is the two texts joined.
    pub(super) fn find_joined(&self, left: Symbol, right: Symbol) -> Option<Symbol> {
        self.find(&[self.text(left), self.text(right)].concat())
    }

    fn range(&self, symbol: Symbol) -> std::ops::Range<usize> {
        let at = symbol as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[at]
    }
}
