//! Why a file cannot be opened.

use std::fmt;

use crate::error::VocabularyError;

/// A file is not GGUF or is damaged, or a key has a wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GgufError {
    /// What is wrong.
    pub problem: String,
    /// The key in whose entry it is wrong.
    pub key: Option<String>,
    /// Where, in bytes from the start of the file.
    pub offset: Option<usize>,
    /// What a sound file has there.
    pub expected: String,
    /// What this one has.
    pub found: Option<String>,
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        match (&self.key, self.offset) {
            (Some(key), Some(offset)) => write!(f, " (key {key:?}, byte {offset})")?,
            (Some(key), None) => write!(f, " (key {key:?})")?,
            (None, Some(offset)) => write!(f, " (byte {offset})")?,
            (None, None) => {}
        }
        write!(f, ": expected {}", self.expected)?;
        self.found.as_ref().map_or(Ok(()), |found| write!(f, ", found {found}"))
    }
}

impl std::error::Error for GgufError {}

/// Why a tokenizer cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is not sound.
    Gguf(GgufError),
    /// The file is sound, but its vocabulary cannot be used.
    Vocabulary(VocabularyError),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gguf(error) => error.fmt(f),
            Self::Vocabulary(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<GgufError> for OpenError {
    fn from(error: GgufError) -> Self {
        Self::Gguf(error)
    }
}

impl From<VocabularyError> for OpenError {
    fn from(error: VocabularyError) -> Self {
        Self::Vocabulary(error)
    }
}
