//! What happens to a text before it is cut into pieces.

pub(crate) mod charsmap;
pub(crate) mod rewritten;
pub(crate) mod unigram;
pub(crate) mod wordpiece;
