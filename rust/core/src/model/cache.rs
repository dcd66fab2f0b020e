//! Caches from words to ids, one per scratch space, and queues that look several words up together.

pub(super) mod queue;
pub(crate) mod words;
