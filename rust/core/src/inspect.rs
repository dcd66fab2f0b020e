//! Questions about vocabularies and texts that would be slow to answer in Python.

pub(crate) mod check;
pub(crate) mod words;
