//! One error for all stages: loading a tokenizer, encoding a text, decoding ids.

use std::fmt;

use crate::error::{DecodeError, EncodeError, VocabularyError, from};
use crate::gguf::{GgufError, LoadError};

/// What can go wrong, from a file to a text: every other error of these stages converts into this one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A tokenizer cannot be loaded.
    Load(LoadError),
    /// A text cannot be encoded.
    Encode(EncodeError),
    /// Ids cannot be decoded.
    Decode(DecodeError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(error) => error.fmt(f),
            Self::Encode(error) => error.fmt(f),
            Self::Decode(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

from!(Error: LoadError => Load, GgufError => Load, VocabularyError => Load, EncodeError => Encode, DecodeError => Decode);
