//! Normalizers: how a text is rewritten before its tokens are found.

pub(crate) mod charsmap;
pub(crate) mod rewritten;
pub(crate) mod unigram;
pub(crate) mod wordpiece;
