//! Look-ups: tries, and a hash index from byte strings to numbers.

pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod prefetch;
pub mod trie;
