//! From a byte string to its number: a hash, a short word as two numbers, and an open-addressing index.

pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod key;
