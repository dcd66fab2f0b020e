//! Why a tokenizer cannot be loaded.

use std::path::PathBuf;
use std::{fmt, io};

use super::value::{MAX_ARRAY_LEN, MAX_BYTES, MAX_NESTING, MAX_STRING_LEN, Type};
use crate::error::{OutOfMemory, VocabularyError, errors, from, messages};

/// The number of the last type.
const LAST_TYPE: i32 = Type::LAST;

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

/// Defines the problems as a table: what is wrong, what a valid file has there, and what this file has, if anything.
macro_rules! problems {
    ($($(#[$doc:meta])* $problem:ident
        $(($held:ident: $held_kind:ty))? $({ $($field:ident: $kind:ty),+ })?
        => $wrong:literal, $valid:literal $(, $this:literal $(, $value:expr)?)?;)+
    ) => {
        /// What is wrong with a file.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub enum Problem {
            $($(#[$doc])* $problem $(($held_kind))? $({ $($field: $kind),+ })?,)+
        }

        impl Problem {
            /// What is wrong, what a valid file has there, and what this file has.
            fn described(&self) -> (String, String, Option<String>) {
                match *self {
                    $(Self::$problem $(($held))? $({ $($field),+ })? => {
                        let this = [$(format!($this $(, $value)?))?];
                        (format!($wrong), format!($valid), this.into_iter().next())
                    })+
                }
            }
        }
    };
}

problems! {
    /// The file does not start with `GGUF`.
    Magic(magic: [u8; 4]) => "this is not a GGUF file", "b'GGUF'", "b'{}'", magic.escape_ascii();
    /// A version other than 2 and 3.
    Version(number: u32) => "the GGUF version is not supported", "2 or 3", "{number}";
    NegativeTensors(number: i64) => "the number of tensors is negative", "0 or more", "{number}";
    /// The keys cannot fit in the remaining bytes.
    TooManyKeys { keys: u64, left: usize } =>
        "the file is too short for its keys", "{keys} keys", "{left} bytes";
    /// The file ends inside one of its fields.
    Ends { field: Field, size: u64, left: usize } => "the file ends inside {field}", "{size} bytes", "{left} bytes";
    /// The metadata has more than 4 GiB.
    TooLarge { size: u64 } => "the metadata is too large", "at most {MAX_BYTES} bytes", "{size} bytes";
    EmptyKey => "a key is empty", "at least 1 byte", "0 bytes";
    /// A key whose first value is at byte `first`.
    KeyTwice { first: usize } => "a key occurs twice", "each key once", "the first value at byte {first}";
    UnknownType { field: Field, number: i32 } => "{field} is unknown", "0 to {LAST_TYPE}", "{number}";
    StringTooLong { field: Field, len: u64 } => "{field} is too long", "at most {MAX_STRING_LEN} bytes", "{len}";
    ArrayTooLong { len: u64 } => "the array is too long", "at most {MAX_ARRAY_LEN} elements", "{len}";
    NestedTooDeeply => "arrays are nested too deeply", "at most {MAX_NESTING} levels", "more";
    /// An alignment that is not a power of two.
    Alignment(number: u32) => "the alignment is wrong", "a power of two", "{number}";
    /// `found` is the type of the value, and of its elements if it is an array.
    WrongType { expected: Expected, found: (Type, Option<Type>) } =>
        "the value has a wrong type", "{expected}", "{}", type_name(found);
    /// There is no `tokenizer.ggml.model`.
    NoTokenizer => "the file names no tokenizer", "a key of this name";
    /// There is not enough memory for the positions of the keys and values.
    OutOfMemory => "out of memory", "enough for the keys and values";
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

/// The name of a type, or of an array with elements of a type.
fn type_name((kind, element): (Type, Option<Type>)) -> String {
    element.map_or_else(|| kind.name().to_owned(), |element| format!("{} of {}", kind.name(), element.name()))
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(kind) => f.write_str(kind.name()),
            Self::Array(kinds) => {
                let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
                write!(f, "array of {}", names.join(" or "))
            }
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
