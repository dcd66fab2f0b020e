//! A hash index from byte strings to numbers: the hash, keys of short words, and the open-addressing table.

pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod key;
pub(crate) mod prefetch;
