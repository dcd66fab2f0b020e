//! Inspects vocabularies and texts: searches over all tokens or all words of a text.

pub(crate) mod check;
pub(crate) mod words;
