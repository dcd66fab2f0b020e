//! Text to ids. A text is cut at its special tokens, then each fragment goes through a normalizer or a pre-tokenizer
//! and the algorithm, whose ids go to a sink. All of them use a scratch space.

pub(crate) mod model;
pub(crate) mod normalizer;
pub(crate) mod pretokenizer;
pub(crate) mod scratch;
pub(crate) mod sink;
pub(crate) mod special;
