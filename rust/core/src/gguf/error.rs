//! Why a file cannot be opened.

use std::fmt;

use super::value::{MAX_ARRAY_LEN, MAX_BYTES, MAX_NESTING, MAX_STRING_LEN, Type};
use crate::error::VocabularyError;

/// A file is not GGUF or is damaged, or a key has the wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GgufError {
    /// What is wrong.
    pub problem: Problem,
    /// The key whose entry is wrong. Bytes that are not UTF-8 are written `\xff`.
    pub key: Option<String>,
    /// Where, in bytes from the start of the file.
    pub offset: Option<usize>,
    /// The minimum number of bytes of the file needed to continue, if the file may have that many.
    pub needed: Option<usize>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
#[rustfmt::skip]
pub enum Problem {
    /// The file does not start with `GGUF`.
    Magic([u8; 4]),
    /// A version other than 2 and 3.
    Version(u32),
    NegativeTensors(i64),
    /// The keys cannot fit in the remaining bytes.
    TooManyKeys { keys: u64, left: usize },
    /// The file ends inside one of its fields.
    Ends { field: Field, size: u64, left: usize },
    /// The metadata has more than 4 GiB.
    TooLarge { size: u64 },
    EmptyKey,
    /// A key whose first value is at byte `first`.
    KeyTwice { first: usize },
    UnknownType { field: Field, number: i32 },
    StringTooLong { field: Field, len: u64 },
    ArrayTooLong { len: u64 },
    NestedTooDeeply,
    /// An alignment that is not a power of two.
    Alignment(u32),
    /// `found` is the type of the value, and of its elements if it is an array.
    WrongType { expected: Expected, found: (Type, Option<Type>) },
    /// There is no `tokenizer.ggml.model`.
    NoTokenizer,
}

/// A field of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Field {
    Magic,
    Version,
    NumTensors,
    NumKeys,
    Key,
    KeyLength,
    ValueType,
    Value,
    String,
    StringLength,
    Array,
    ElementType,
    ArrayLength,
    /// A string of an array, by its index.
    Element(usize),
}

/// The type that a key should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// A single value.
    Value(Type),
    /// An array with elements of one of some types.
    Array(&'static [Type]),
}

impl GgufError {
    /// What a valid file has there.
    pub fn expected(&self) -> String {
        match self.problem {
            Problem::Magic(_) => "b'GGUF'".to_owned(),
            Problem::Version(_) => "2 or 3".to_owned(),
            Problem::NegativeTensors(_) => "0 or more".to_owned(),
            Problem::TooManyKeys { keys, .. } => format!("{keys} keys"),
            Problem::Ends { size, .. } => format!("{size} bytes"),
            Problem::TooLarge { .. } => format!("at most {MAX_BYTES} bytes"),
            Problem::EmptyKey => "at least 1 byte".to_owned(),
            Problem::KeyTwice { .. } => "each key once".to_owned(),
            Problem::UnknownType { .. } => format!("0 to {}", Type::LAST),
            Problem::StringTooLong { .. } => format!("at most {MAX_STRING_LEN} bytes"),
            Problem::ArrayTooLong { .. } => format!("at most {MAX_ARRAY_LEN} elements"),
            Problem::NestedTooDeeply => format!("at most {MAX_NESTING} levels"),
            Problem::Alignment(_) => "a power of two".to_owned(),
            Problem::WrongType { expected: Expected::Value(kind), .. } => kind.name().to_owned(),
            Problem::WrongType { expected: Expected::Array(kinds), .. } => {
                format!("array of {}", kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or "))
            }
            Problem::NoTokenizer => "a key of this name".to_owned(),
        }
    }

    /// What this file has there.
    pub fn found(&self) -> Option<String> {
        Some(match self.problem {
            Problem::Magic(bytes) => format!("b'{}'", bytes.escape_ascii()),
            Problem::Version(number) | Problem::Alignment(number) => number.to_string(),
            Problem::NegativeTensors(number) => number.to_string(),
            Problem::TooManyKeys { left, .. } | Problem::Ends { left, .. } => format!("{left} bytes"),
            Problem::TooLarge { size } => format!("{size} bytes"),
            Problem::EmptyKey => "0 bytes".to_owned(),
            Problem::KeyTwice { first } => format!("the first value at byte {first}"),
            Problem::UnknownType { number, .. } => number.to_string(),
            Problem::StringTooLong { len, .. } | Problem::ArrayTooLong { len } => len.to_string(),
            Problem::NestedTooDeeply => "more".to_owned(),
            Problem::WrongType { found: (_, Some(element)), .. } => format!("array of {}", element.name()),
            Problem::WrongType { found: (kind, None), .. } => kind.name().to_owned(),
            Problem::NoTokenizer => return None,
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic(_) => f.write_str("this is not a GGUF file"),
            Self::Version(_) => f.write_str("the GGUF version is not supported"),
            Self::NegativeTensors(_) => f.write_str("the number of tensors is negative"),
            Self::TooManyKeys { .. } => f.write_str("the file is too short for its keys"),
            Self::Ends { field, .. } => write!(f, "the file ends inside {field}"),
            Self::TooLarge { .. } => f.write_str("the metadata is too large"),
            Self::EmptyKey => f.write_str("a key is empty"),
            Self::KeyTwice { .. } => f.write_str("a key occurs twice"),
            Self::UnknownType { field, .. } => write!(f, "{field} is unknown"),
            Self::StringTooLong { field, .. } => write!(f, "{field} is too long"),
            Self::ArrayTooLong { .. } => f.write_str("the array is too long"),
            Self::NestedTooDeeply => f.write_str("arrays are nested too deeply"),
            Self::Alignment(_) => f.write_str("the alignment is wrong"),
            Self::WrongType { .. } => f.write_str("the value has a wrong type"),
            Self::NoTokenizer => f.write_str("the file names no tokenizer"),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Magic => "the magic bytes",
            Self::Version => "the version",
            Self::NumTensors => "the number of tensors",
            Self::NumKeys => "the number of keys",
            Self::Key => "a key",
            Self::KeyLength => "the length of a key",
            Self::ValueType => "the value type",
            Self::Value => "a value",
            Self::String => "a string",
            Self::StringLength => "the length of a string",
            Self::Array => "an array",
            Self::ElementType => "the element type of an array",
            Self::ArrayLength => "the length of an array",
            Self::Element(index) => return write!(f, "string {index} of an array"),
        })
    }
}

impl fmt::Display for GgufError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)?;
        match (&self.key, self.offset) {
            (Some(key), Some(offset)) => write!(f, " (key {key:?}, byte {offset})")?,
            (Some(key), None) => write!(f, " (key {key:?})")?,
            (None, Some(offset)) => write!(f, " (byte {offset})")?,
            (None, None) => {}
        }
        write!(f, ": expected {}", self.expected())?;
        self.found().map_or(Ok(()), |found| write!(f, ", found {found}"))
    }
}

impl std::error::Error for GgufError {}

/// Why a tokenizer cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is not valid.
    Gguf(GgufError),
    /// The file is valid, but its vocabulary cannot be used.
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
