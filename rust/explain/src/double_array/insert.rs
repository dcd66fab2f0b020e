//! Insertion into a double array, and look-up.
//!
//! 1. A word is followed as far as its nodes exist.
//! 2. If the cell of the next child is free, the child goes there. The first child of a node chooses its BASE: the
//!    lowest for which the cell is free.
//! 3. If the cell belongs to another node, the parent with fewer children gets a new BASE and its children move; the
//!    other's BASE stays.
//!
//! Source: Aoe (1989), without tails. Complexity: O(cells · children) to find a BASE.

use super::super::Result;
use super::super::bytes::Bytes;
use super::super::limit::Limit;
use super::{Cell, Code, Insertion, InsertionStep, LookupStep, Move, Relocation};

/// The root, and the number of the end mark.
const ROOT: usize = 1;
const END: usize = 1;

/// A double array of words.
#[derive(Debug)]
pub(super) struct DoubleArray {
    /// Cell 0 is not used.
    slots: Vec<Cell>,
    /// The bytes of the words, in order; the first one's number follows the end mark's.
    bytes: Vec<u8>,
}

impl DoubleArray {
    /// An empty array for the bytes that occur in `words`.
    pub(super) fn new(words: &[&[u8]]) -> Self {
        let mut bytes = words.concat();
        bytes.sort_unstable();
        bytes.dedup();
        Self { slots: vec![Cell::free(0), Cell { text: Some(Bytes::default()), ..Cell::free(ROOT) }], bytes }
    }

    /// The numbers of the end mark and of all bytes.
    pub(super) fn codes(&self) -> Vec<Code> {
        (END..=END + self.bytes.len()).map(|code| Code { byte: self.byte(code), code }).collect()
    }

    /// All cells from the root to the last one in use.
    pub(super) fn cells(&self) -> Vec<Cell> {
        let len = self.slots.iter().rposition(|slot| slot.text.is_some()).map_or(ROOT, |last| last + 1);
        self.slots[ROOT..len].to_vec()
    }

    /// Inserts a word.
    pub(super) fn insert(&mut self, word: usize, text: &[u8], limit: &mut Limit) -> Result<Insertion> {
        let mut steps = Vec::new();
        let mut node = ROOT;
        for byte in text.iter().copied().map(Some).chain([None]) {
            let step = self.step(node, byte, limit)?;
            node = step.child;
            steps.push(step);
        }
        if self.slots[node].base == 0 {
            self.slots[node].base = -1 - word as i64;
        }
        let cells = self.cells();
        cells.iter().try_for_each(|cell| limit.step(cell.text.as_ref().map_or(0, |text| text.0.len())))?;
        Ok(Insertion { word, steps, cells })
    }

    /// Goes from a node to its child for a byte, creating the child if it does not exist.
    fn step(&mut self, mut node: usize, byte: Option<u8>, limit: &mut Limit) -> Result<InsertionStep> {
        limit.step(0)?;
        // Every byte of the words has a number.
        let code = self.code(byte).unwrap_or(END);
        let mut new_base = None;
        if self.slots[node].base == 0 {
            let base = self.free_base(&[code], limit)?;
            self.slots[node].base = base as i64;
            new_base = Some(base);
        }
        let cell = self.base(node) + code;
        let check = self.slots.get(cell).map_or(0, |slot| slot.check);
        let outcome = match check {
            _ if check == node => "followed",
            0 => "placed",
            _ => "conflict",
        };
        let at = node;
        let mut relocation = None;
        if outcome == "conflict" {
            let mut own = self.children(node);
            own.push(code);
            let others = self.children(check);
            let (moved, fitted) = if own.len() < others.len() { (node, &own) } else { (check, &others) };
            let to_base = self.free_base(fitted, limit)?;
            let from_base = self.base(moved);
            let moves = self.relocate(moved, to_base);
            // The node itself may have moved.
            node = moves.iter().find(|step| step.from == node).map_or(node, |step| step.to);
            let num_own = own.len();
            let num_others = others.len();
            relocation = Some(Relocation { num_own, num_others, node: moved, from_base, to_base, moves });
        }
        let child = self.base(node) + code;
        if outcome != "followed" {
            let mut text = self.slots[node].text.clone().unwrap_or_default();
            text.0.extend(byte);
            limit.step(text.0.len())?;
            *self.slot(child) = Cell { check: node, text: Some(text), ..Cell::free(child) };
        }
        Ok(InsertionStep { node: at, byte, code, new_base, cell, check, outcome, relocation, child })
    }

    /// Moves the children of a node to a BASE that has a free cell for each.
    fn relocate(&mut self, node: usize, to_base: usize) -> Vec<Move> {
        let from_base = self.base(node);
        let mut moves = Vec::new();
        for code in self.children(node) {
            let from = from_base + code;
            let to = to_base + code;
            let children = Vec::from_iter(self.children(from).iter().map(|code| self.base(from) + code));
            for &child in &children {
                self.slot(child).check = to;
            }
            let cell = std::mem::replace(self.slot(from), Cell::free(from));
            moves.push(Move { byte: self.byte(code), from, to, base: cell.base, children });
            *self.slot(to) = Cell { index: to, ..cell };
        }
        self.slots[node].base = to_base as i64;
        moves
    }

    /// The lowest BASE with a free cell for each number.
    fn free_base(&self, codes: &[usize], limit: &mut Limit) -> Result<usize> {
        let mut base = 1;
        while codes.iter().any(|code| self.slots.get(base + code).is_some_and(|slot| slot.check != 0)) {
            limit.step(0)?;
            base += 1;
        }
        Ok(base)
    }

    /// Looks a text up. Returns the value if it is a word.
    pub(super) fn look_up(&self, text: &[u8], limit: &mut Limit) -> Result<(Vec<LookupStep>, Option<usize>)> {
        let mut steps = Vec::new();
        let mut node = ROOT;
        for byte in text.iter().copied().map(Some).chain([None]) {
            limit.step(0)?;
            let code = self.code(byte);
            let base = self.slots[node].base;
            let cell = code.filter(|_| base > 0).map(|code| self.base(node) + code);
            let check = cell.and_then(|cell| self.slots.get(cell)).map(|slot| slot.check);
            let matched = check == Some(node);
            steps.push(LookupStep { node, byte, code, base, cell, check, matched });
            match cell {
                Some(cell) if matched => node = cell,
                _ => return Ok((steps, None)),
            }
        }
        Ok((steps, Some((-1 - self.slots[node].base) as usize)))
    }

    /// The numbers that lead from a node to its children.
    fn children(&self, node: usize) -> Vec<usize> {
        let is_child = |code: &usize| self.slots.get(self.base(node) + code).is_some_and(|slot| slot.check == node);
        if self.slots[node].base <= 0 {
            return Vec::new();
        }
        (END..=END + self.bytes.len()).filter(is_child).collect()
    }

    /// BASE of a node that has children.
    fn base(&self, node: usize) -> usize {
        self.slots[node].base as usize
    }

    fn slot(&mut self, cell: usize) -> &mut Cell {
        self.slots.extend((self.slots.len()..=cell).map(Cell::free));
        &mut self.slots[cell]
    }

    fn code(&self, byte: Option<u8>) -> Option<usize> {
        match byte {
            Some(byte) => self.bytes.binary_search(&byte).ok().map(|at| END + 1 + at),
            None => Some(END),
        }
    }

    fn byte(&self, code: usize) -> Option<u8> {
        code.checked_sub(END + 1).map(|at| self.bytes[at])
    }
}
