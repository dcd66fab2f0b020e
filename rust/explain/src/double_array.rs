//! Builds a double array of a few words step by step, walks it, and packs it as the XCDA of a character map.
//!
//! A trie in two arrays, BASE and CHECK. A node is a cell; its child for a character with the number `code` is the cell
//! BASE + `code`, if CHECK of that cell names the node. A word ends with an end mark, whose cell has the word's value.
//!
//! Source: Aoe, "An Efficient Digital Search Algorithm by Using a Double-Array Structure" (1989), without his array of
//! tails; for the packed form see `pack.rs`.
//! Complexity: a look-up is linear in its length; an insertion may try all cells and move all nodes.

mod insert;
mod pack;

use std::collections::BTreeMap;

use serde::Serialize;

use super::limit::Limit;
use super::trace::XcdaStep;
use super::xcda::Xcda;
use super::{Bytes, ExplainError, Result};
use insert::DoubleArray;

/// How a double array of a few words is built, walked and packed.
///
/// A cell, node or unit is named by its position in its array. The value of a word is its position in `words`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoubleArrayTrace {
    /// The version of this schema. It increases if a field is removed or changes its meaning.
    pub schema: u32,
    /// The words, in the order in which they are inserted.
    pub words: Vec<Bytes>,
    /// The words by their first byte: what is left after the first step of a walk.
    pub by_first_byte: Vec<FirstByte>,
    /// The numbers of the bytes in the words, and of the end mark.
    pub codes: Vec<Code>,
    /// One per word.
    pub insertions: Vec<Insertion>,
    /// The array after the last insertion.
    pub cells: Vec<Cell>,
    /// The packed form.
    pub xcda: PackedXcda,
    /// One per query.
    pub lookups: Vec<Lookup>,
}

/// The words that start with a byte.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FirstByte {
    /// The byte.
    pub byte: u8,
    /// The words.
    pub words: Vec<usize>,
}

/// The number that a byte has in a double array.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Code {
    /// The byte; none for the end mark.
    pub byte: Option<u8>,
    /// Its number, from 1.
    pub code: usize,
}

/// A cell of a double array.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// Its position; the root is cell 1.
    pub index: usize,
    /// BASE, from which the cells of its children are counted; -1 - v at the end of the word with the value v; 0 for
    /// none.
    pub base: i64,
    /// CHECK: its parent; 0 for the root and for free cells.
    pub check: usize,
    /// The bytes on the way to it; none for a free cell.
    pub text: Option<Bytes>,
}

impl Cell {
    fn free(index: usize) -> Self {
        Self { index, base: 0, check: 0, text: None }
    }
}

/// The insertion of a word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Insertion {
    /// The word.
    pub word: usize,
    /// One step per byte, and one for the end mark.
    pub steps: Vec<InsertionStep>,
    /// The array after it.
    pub cells: Vec<Cell>,
}

/// A step of an insertion: from a node to its child for one byte.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InsertionStep {
    /// The node.
    pub node: usize,
    /// The byte; none for the end mark.
    pub byte: Option<u8>,
    /// Its number.
    pub code: usize,
    /// BASE of the node, if this is its first child and sets it.
    pub new_base: Option<usize>,
    /// BASE of the node and the number.
    pub cell: usize,
    /// CHECK of that cell before.
    pub check: usize,
    /// `followed` (CHECK names the node: the child exists), `placed` (the cell was free) or `conflict` (it belongs to
    /// another node).
    pub outcome: &'static str,
    /// What moved because of a conflict.
    pub relocation: Option<Relocation>,
    /// The cell of the child afterwards.
    pub child: usize,
}

/// Children of a node that move, so that two nodes no longer want the same cell.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relocation {
    /// How many children the node of the step has, with the new one.
    pub num_own: usize,
    /// How many children the owner of the cell's parent has. The node with fewer children moves them.
    pub num_others: usize,
    /// The node whose children move.
    pub node: usize,
    /// Its BASE before.
    pub from_base: usize,
    /// Its BASE afterwards: the lowest with a free cell for each child.
    pub to_base: usize,
    /// The children.
    pub moves: Vec<Move>,
}

/// A node that moves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Move {
    /// The byte that leads to it; none for the end mark.
    pub byte: Option<u8>,
    /// Its cell before.
    pub from: usize,
    /// Its cell after.
    pub to: usize,
    /// Its BASE, which moves with it.
    pub base: i64,
    /// Its own children: their CHECK names the new cell.
    pub children: Vec<usize>,
}

/// Words as an XCDA: children are found by exclusive or, and a node is one unit of 32 bits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackedXcda {
    /// The length of the array: whole blocks of 256 units, so that no walk leaves it.
    pub num_units: usize,
    /// The units in use; the others are 0.
    pub units: Vec<PackedUnit>,
}

/// A unit of an XCDA, and what its bits say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PackedUnit {
    /// Its position; the root is unit 0.
    pub index: usize,
    /// The bytes on the way to it.
    pub text: Bytes,
    /// What it is: `root`, `node` or `value`.
    pub role: &'static str,
    /// All 32 bits.
    pub unit: u32,
    /// Bits 10 to 30, BASE: the position of the children is the node's position XOR this. Shifted left by eight bits if
    /// `is_wide`. None in a value.
    pub base: Option<u32>,
    /// Bit 9: whether BASE is shifted. None in a value.
    pub is_wide: Option<bool>,
    /// Bit 8, LEAF: whether a word ends at the node. None in a value.
    pub leaf: Option<bool>,
    /// Bits 0 to 7 and 31, LCHECK: the byte that leads to the node. None in a value.
    pub lcheck: Option<u32>,
    /// Bits 0 to 30 of a value, which bit 31 marks. None in a node.
    pub value: Option<u32>,
}

/// A text that is looked up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lookup {
    /// The text.
    pub text: Bytes,
    /// The walk through BASE and CHECK.
    pub steps: Vec<LookupStep>,
    /// The value of the word; none if the text is not a word. The last step says why.
    pub value: Option<usize>,
    /// The walk through the XCDA.
    pub xcda: Vec<XcdaStep>,
    /// The longest word that the text starts with, as found by the walk through the XCDA.
    pub longest_prefix: Option<usize>,
}

/// A step of a look-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LookupStep {
    /// The node.
    pub node: usize,
    /// The byte; none for the end mark.
    pub byte: Option<u8>,
    /// Its number; none if no word has the byte.
    pub code: Option<usize>,
    /// BASE of the node.
    pub base: i64,
    /// BASE and the number.
    pub cell: Option<usize>,
    /// CHECK of that cell; none beyond the end of the array.
    pub check: Option<usize>,
    /// Whether CHECK names the node. If not, the walk ends.
    pub matched: bool,
}

impl DoubleArrayTrace {
    /// Builds the double array of `words` one by one, packs it, and looks up `queries` in both forms. Inserting a word
    /// again changes nothing.
    ///
    /// # Errors
    /// [`ExplainError`]:
    /// - a word is empty or has a zero byte;
    /// - the trace would have more than a million steps.
    ///
    /// # Examples
    /// ```
    /// use ggtok_explain::double_array::DoubleArrayTrace;
    ///
    /// let trace = DoubleArrayTrace::new(&["un", "uni", "que"], &["uni", "union", "qu"])?;
    /// assert_eq!(trace.lookups[0].value, Some(1));
    /// assert_eq!((trace.lookups[1].value, trace.lookups[1].longest_prefix), (None, Some(1)));
    /// assert_eq!(trace.lookups[2].value, None);
    /// # Ok::<(), ggtok_explain::ExplainError>(())
    /// ```
    pub fn new<T: AsRef<[u8]>>(words: &[T], queries: &[T]) -> Result<Self> {
        let words = Vec::from_iter(words.iter().map(AsRef::as_ref));
        let mut by_first_byte: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
        for (word, text) in words.iter().enumerate() {
            if text.is_empty() {
                return Err(ExplainError::EmptyWord { word });
            }
            if let Some(offset) = text.iter().position(|&byte| byte == 0) {
                return Err(ExplainError::ZeroByte { word, offset });
            }
            by_first_byte.entry(text[0]).or_default().push(word);
        }

        let mut limit = Limit::default();
        let mut array = DoubleArray::new(&words);
        let mut insertions = Vec::new();
        for (word, text) in words.iter().enumerate() {
            insertions.push(array.insert(word, text, &mut limit)?);
        }
        let (xcda, units) = pack::pack(&words, &mut limit)?;
        let view = Xcda::of_units(&units, &[]);
        let mut lookups = Vec::new();
        for text in queries.iter().map(AsRef::as_ref) {
            let (steps, value) = array.look_up(text, &mut limit)?;
            let mut walk = Vec::new();
            let longest_prefix = view.walk(text, &mut walk, &mut limit)?.map(|(_, value)| value);
            lookups.push(Lookup { text: Bytes::from(text), steps, value, xcda: walk, longest_prefix });
        }

        Ok(Self {
            schema: 1,
            words: words.iter().map(|word| Bytes::from(*word)).collect(),
            by_first_byte: by_first_byte.into_iter().map(|(byte, words)| FirstByte { byte, words }).collect(),
            codes: array.codes(),
            insertions,
            cells: array.cells(),
            xcda,
            lookups,
        })
    }
}

#[cfg(test)]
mod tests;
