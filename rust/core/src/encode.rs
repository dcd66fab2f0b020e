//! Text to ids, in the order in which a text passes: special tokens, then for each fragment a normalizer or a
//! pre-tokenizer, then the algorithm, whose ids go to a sink. All of them work in a scratch space.

pub(crate) mod model;
pub(crate) mod normalizer;
pub(crate) mod pretokenizer;
pub(crate) mod scratch;
pub(crate) mod sink;
pub(crate) mod special;
