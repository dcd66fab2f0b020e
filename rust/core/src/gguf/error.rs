//! Why a tokenizer cannot be loaded.

use std::path::PathBuf;
use std::{fmt, io};

use super::value::{MAX_ARRAY_LEN, MAX_BYTES, MAX_NESTING, MAX_STRING_LEN, Type};
use crate::error::{OutOfMemory, VocabularyError, errors, from, messages};

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
    /// There is not enough memory for the positions of the keys and values.
    OutOfMemory,
}

messages! {
    /// A field of a file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(missing_docs)]
    #[non_exhaustive]
    pub enum Field {
        Magic => "the magic bytes";
        Version => "the version";
        NumTensors => "the number of tensors";
        NumKeys => "the number of keys";
        Key => "a key";
        KeyLength => "the length of a key";
        ValueType => "the value type";
        Value => "a value";
        String => "a string";
        StringLength => "the length of a string";
        Array => "an array";
        ElementType => "the element type of an array";
        ArrayLength => "the length of an array";
        Element(index: usize) => "string {index} of an array";
    }
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
        self.problem.described().1
    }

    /// What this file has there.
    pub fn found(&self) -> Option<String> {
        self.problem.described().2
    }
}

impl Problem {
    /// What is wrong, what a valid file has there, and what this file has.
    fn described(&self) -> (String, String, Option<String>) {
        fn row(what: &str, expected: impl ToString, found: impl ToString) -> (String, String, Option<String>) {
            (what.to_owned(), expected.to_string(), Some(found.to_string()))
        }
        let at_most = |limit: u64, what: &str| format!("at most {limit} {what}");
        match *self {
            Self::Magic(magic) => row("this is not a GGUF file", "b'GGUF'", format!("b'{}'", magic.escape_ascii())),
            Self::Version(number) => row("the GGUF version is not supported", "2 or 3", number),
            Self::NegativeTensors(number) => row("the number of tensors is negative", "0 or more", number),
            Self::TooManyKeys { keys, left } => {
                row("the file is too short for its keys", format!("{keys} keys"), format!("{left} bytes"))
            }
            Self::Ends { field, size, left } => {
                row(&format!("the file ends inside {field}"), format!("{size} bytes"), format!("{left} bytes"))
            }
            Self::TooLarge { size } => {
                row("the metadata is too large", at_most(MAX_BYTES as u64, "bytes"), format!("{size} bytes"))
            }
            Self::EmptyKey => row("a key is empty", "at least 1 byte", "0 bytes"),
            Self::KeyTwice { first } => {
                row("a key occurs twice", "each key once", format!("the first value at byte {first}"))
            }
            Self::UnknownType { field, number } => {
                row(&format!("{field} is unknown"), format!("0 to {}", Type::LAST), number)
            }
            Self::StringTooLong { field, len } => {
                row(&format!("{field} is too long"), at_most(MAX_STRING_LEN, "bytes"), len)
            }
            Self::ArrayTooLong { len } => row("the array is too long", at_most(MAX_ARRAY_LEN, "elements"), len),
            Self::NestedTooDeeply => row("arrays are nested too deeply", at_most(MAX_NESTING as u64, "levels"), "more"),
            Self::Alignment(number) => row("the alignment is wrong", "a power of two", number),
            Self::WrongType { expected, found: (kind, element) } => {
                let array = |kinds: &[Type]| {
                    format!("array of {}", kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(" or "))
                };
                let expected = match expected {
                    Expected::Value(kind) => kind.name().to_owned(),
                    Expected::Array(kinds) => array(kinds),
                };
                let found = element.map_or_else(|| kind.name().to_owned(), |element| array(&[element]));
                row("the value has a wrong type", expected, found)
            }
            Self::NoTokenizer => ("the file names no tokenizer".to_owned(), "a key of this name".to_owned(), None),
            Self::OutOfMemory => ("out of memory".to_owned(), "enough for the keys and values".to_owned(), None),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described().0)
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

errors! {
    /// Why a tokenizer cannot be loaded.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum LoadError {
        /// The file cannot be read: the kind and the message of the system's error.
        Read(kind: io::ErrorKind, message: String) => "{message}";
        /// The file is not GGUF or is damaged, or names no tokenizer.
        Gguf(error: GgufError) => "{error}";
        /// The file is valid, but its vocabulary cannot be used.
        Vocabulary(error: VocabularyError) => "{error}";
        /// Any of these, with the path of the file.
        File(path: PathBuf, error: Box<LoadError>) => "{}: {error}", path.display();
    }
}

impl From<io::Error> for LoadError {
    fn from(error: io::Error) -> Self {
        Self::Read(error.kind(), error.to_string())
    }
}

impl From<OutOfMemory> for GgufError {
    fn from(_: OutOfMemory) -> Self {
        Self { problem: Problem::OutOfMemory, key: None, offset: None, needed: None }
    }
}

from!(LoadError: GgufError => Gguf, VocabularyError => Vocabulary, OutOfMemory => Vocabulary);
