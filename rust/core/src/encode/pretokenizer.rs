//! Pre-tokenizers cut a text into pieces. No merge crosses the boundary between two pieces.
//!
//! [`splitter`] applies the patterns of a family (a row of `vocabulary/families.rs`) in one of two ways. The general
//! way runs all of them in one pass over the text: each pattern is parsed (`automaton/pattern`), its sets of characters
//! are reduced to a small alphabet (`automaton/alphabet`), and it is compiled to an [`automaton`]; [`joint`] runs the
//! automata of a family together, and caches their transitions in a table. The fast way finds boundaries 64 bytes at a
//! time: [`blocks`] for every list of patterns that has a [`shape`], [`lines`], and [`numbers`], which also has the
//! groups of digits in llama.cpp's code that no pattern describes. [`settled`] says how far the pieces of an unfinished
//! text are settled.

mod automaton;
mod blocks;
mod joint;
mod lines;
mod numbers;
mod settled;
mod shape;
mod splitter;

pub use joint::Learned;
pub(crate) use settled::SettledPieces;
pub use splitter::Splitter;
