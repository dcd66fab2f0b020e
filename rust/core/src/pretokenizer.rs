//! Pre-tokenizers cut a text into pieces. No merge crosses the boundary between two pieces.
//!
//! [`families`] is the table: names, flags and patterns. [`splitter`] applies a family's patterns in one of two ways.
//! The general way runs all of them in one pass over the text: each pattern is parsed (`automaton/pattern`), its sets
//! of characters are reduced to a small alphabet (`automaton/alphabet`), and it is compiled to an [`automaton`];
//! [`joint`] runs the automata of a family together and caches what they do in a table. The fast way finds boundaries
//! 64 bytes at a time: [`blocks`] for every list of patterns that has a [`shape`], and [`lines`]. [`digits`] handles
//! three cases of llama.cpp's code that no pattern describes. [`settled`] says how far the pieces of an unfinished text
//! are settled.

mod automaton;
mod blocks;
mod digits;
mod families;
mod joint;
mod lines;
mod settled;
mod shape;
mod splitter;

pub(crate) use families::LINES;
pub use families::{FAMILIES, Family, PRE_TOKENIZERS, PreTokenizer};
pub use joint::Learned;
pub(crate) use settled::SettledPieces;
pub use splitter::Splitter;
