//! Inspects vocabularies and texts where Python would be too slow.

pub(crate) mod check;
pub(crate) mod words;
