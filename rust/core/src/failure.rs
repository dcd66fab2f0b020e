//! One error for all stages: loading a tokenizer, encoding a text, decoding ids.

use crate::error::{DecodeError, EncodeError, VocabularyError, errors, from};
use crate::gguf::{GgufError, LoadError};

errors! {
    /// What can go wrong, from a file to a text: every other error of these stages converts into this one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Error {
        /// A tokenizer cannot be loaded.
        Load(error: LoadError) => "{error}";
        /// A text cannot be encoded.
        Encode(error: EncodeError) => "{error}";
        /// Ids cannot be decoded.
        Decode(error: DecodeError) => "{error}";
    }
}

from!(Error: LoadError => Load, GgufError => Load, VocabularyError => Load, EncodeError => Encode, DecodeError => Decode);
