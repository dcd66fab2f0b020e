//! A tokenizer from the bytes of a GGUF file.
//!
//! [`Tokenizer::from_file`](crate::Tokenizer::from_file) is all that most callers need. [`Metadata`] reads single keys,
//! and can replace values before it opens a tokenizer, as llama.cpp's `--override-kv` does. Only the metadata at the
//! start of a file is read: the bytes may end there ([`read_header`] loads just enough) or be a memory map of the whole
//! model.
//!
//! Nothing in a file is trusted: every count and length is checked against the remaining bytes before anything of that
//! size is allocated. The error for a damaged file says which key, where, what was expected and what was found.

#[cfg(feature = "gguf")]
mod definition;
mod error;
#[cfg(feature = "gguf")]
mod header;
#[cfg(feature = "gguf")]
mod metadata;
#[cfg(feature = "gguf")]
mod open;
#[cfg_attr(not(feature = "gguf"), allow(dead_code))]
mod value;
#[cfg(feature = "gguf")]
mod walk;

pub use error::{Expected, Field, GgufError, LoadError, Problem};
#[cfg(feature = "gguf")]
pub use header::read_header;
#[cfg(feature = "gguf")]
pub use metadata::{Layout, Metadata};
pub use value::{Array, Override, Type, Value};
