//! Every step of every algorithm, made visible: the reference implementations that a reader of this crate begins with.
//!
//! `Explainer::explain` encodes a text in the textbook way (queues, lattices, longest matches, one look-up at a time)
//! and keeps every step in a [`Trace`](trace::Trace). Its ids are those of [`Tokenizer::encode`](crate::Tokenizer::encode), which
//! takes none of these steps itself: the two share the vocabulary and nothing else. One file per algorithm.

pub mod bytes;
pub mod trace;
