//! Pre-tokenizers: a text is cut into pieces, and no merge crosses the boundary between two of them.
//!
//! [`families`] is the table: names, flags and patterns. [`splitter`] applies a family's patterns in sequence, each in
//! one of two ways. The general way is an [`automaton`]: a pattern is parsed (`automaton/pattern`), its sets of
//! characters are reduced to a small alphabet (`automaton/alphabet`), and a table is compiled that matches in one pass.
//! The fast way finds boundaries 64 bytes at a time: [`blocks`] for every pattern that has a [`shape`], [`neighbours`]
//! and [`lines`] for simpler ones. [`digits`] is for three patterns that llama.cpp has code for and no pattern
//! describes.

mod automaton;
mod blocks;
mod digits;
mod families;
mod joint;
mod lines;
mod neighbours;
#[cfg(test)]
mod oracle;
mod shape;
mod splitter;

pub use families::{FAMILIES, Family, PRE_TOKENIZERS, PreTokenizer};
pub(crate) use joint::Learned;
pub(crate) use splitter::Splitter;
