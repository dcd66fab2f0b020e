//! Normalizers rewrite a text before it is tokenized.

pub(crate) mod charsmap;
pub(crate) mod rewritten;
pub(crate) mod unigram;
pub(crate) mod wordpiece;
