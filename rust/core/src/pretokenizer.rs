//! Pre-tokenizers: a text is cut into pieces, and no merge crosses the boundary between two of them.
//!
//! [`families`] is the table: names, flags and patterns. [`splitter`] applies a family's patterns in one of two ways.
//! The general way is a pass over the text with all of them at once: each pattern is parsed (`automaton/pattern`), its
//! sets of characters are reduced to a small alphabet (`automaton/alphabet`) and it is compiled to an [`automaton`];
//! [`joint`] runs the automata of a family together and remembers in a table what they do. The fast way finds boundaries
//! 64 bytes at a time: [`blocks`] for every list of patterns that has a [`shape`], and [`lines`]. [`digits`] is for
//! three patterns that llama.cpp has code for and no pattern describes.
//! [`settled`] says how far the pieces of a text that goes on are certain.

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
