//! The keys and values of a GGUF file.
//!
//! Source: llama.cpp's `ggml/src/gguf.cpp` (`gguf_init_from_reader`) for the header, and its `llama-model-loader.cpp`
//! (`get_key`, `get_arr`) for typed access. O(number of keys and strings); arrays stay where they are.
//!
//! Deviations: (1) the list of tensors after the metadata is not read, so it may be cut or missing. (2) A value that
//! replaces one of the file must have the type that is asked for; llama.cpp ignores one that has another.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::ops::Range;

use super::error::GgufError;
use super::walk::Walk;
use crate::interrupt;
use crate::vocabulary::strings::{StringIndex, Strings};
use crate::vocabulary::{c_string, escaped_name};

/// The least bytes of a key with its value: the length of the key, one byte of it, its type, one byte of a value.
const LEAST_ENTRY: u64 = 8 + 1 + 4 + 1;

macro_rules! types {
    ($($number:literal $name:ident $shown:literal $size:literal)*) => {
        /// The type of a value, numbered as in the file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub enum Type {
            $($name = $number,)*
        }

        impl Type {
            pub(super) const LAST: i32 = [$($number),*].len() as i32 - 1;

            pub(super) fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The name in lower case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $shown,)*
                }
            }

            /// The least bytes of a value: all of a number, the length of an empty string or array.
            pub(super) const fn least_size(self) -> u64 {
                match self {
                    $(Self::$name => $size,)*
                }
            }
        }
    };
}

types! {
    0 Uint8 "uint8" 1
    1 Int8 "int8" 1
    2 Uint16 "uint16" 2
    3 Int16 "int16" 2
    4 Uint32 "uint32" 4
    5 Int32 "int32" 4
    6 Float32 "float32" 4
    7 Bool "bool" 1
    8 String "string" 8
    9 Array "array" 12
    10 Uint64 "uint64" 8
    11 Int64 "int64" 8
    12 Float64 "float64" 8
}

/// A value of a key.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Value<'a> {
    Uint8(u8),
    Int8(i8),
    Uint16(u16),
    Int16(i16),
    Uint32(u32),
    Int32(i32),
    Float32(f32),
    Bool(bool),
    /// Mostly UTF-8, but no file has to keep to that.
    String(&'a [u8]),
    Array(Array<'a>),
    Uint64(u64),
    Int64(i64),
    Float64(f64),
}

impl Value<'_> {
    /// Its type.
    pub const fn kind(&self) -> Type {
        match self {
            Self::Uint8(_) => Type::Uint8,
            Self::Int8(_) => Type::Int8,
            Self::Uint16(_) => Type::Uint16,
            Self::Int16(_) => Type::Int16,
            Self::Uint32(_) => Type::Uint32,
            Self::Int32(_) => Type::Int32,
            Self::Float32(_) => Type::Float32,
            Self::Bool(_) => Type::Bool,
            Self::String(_) => Type::String,
            Self::Array(_) => Type::Array,
            Self::Uint64(_) => Type::Uint64,
            Self::Int64(_) => Type::Int64,
            Self::Float64(_) => Type::Float64,
        }
    }

    /// The type as errors show it.
    fn shown(&self) -> String {
        match self {
            Self::Array(array) => format!("array of {}", array.kind.name()),
            _ => self.kind().name().to_owned(),
        }
    }
}

/// An array: where its elements are in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Array<'a> {
    pub(super) kind: Type,
    pub(super) len: usize,
    /// The file.
    pub(super) data: &'a [u8],
    /// The place of the elements in it.
    pub(super) elements: Range<usize>,
    pub(super) is_big_endian: bool,
    /// For an array of strings.
    pub(super) strings: Option<StringIndex>,
}

impl Array<'_> {
    /// The type of the elements.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of an array of strings.
    pub fn strings(&self) -> Option<Strings<'_>> {
        self.strings.as_ref().map(|index| index.view(self.data))
    }

    /// The elements as in the file, in its byte order.
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.elements.clone()]
    }

    /// The elements of four bytes each, in little-endian order.
    pub(super) fn words(&self) -> impl Iterator<Item = [u8; 4]> {
        let is_big_endian = self.is_big_endian;
        self.bytes().as_chunks::<4>().0.iter().map(move |&(mut word)| {
            if is_big_endian {
                word.reverse();
            }
            word
        })
    }
}

/// A value, and its byte offset if the file has it.
#[derive(Debug)]
struct Entry<'a> {
    value: Value<'a>,
    offset: Option<usize>,
}

/// The keys and values of a GGUF file.
///
/// # Examples
/// ```no_run
/// use ggtok_core::gguf::{Metadata, Value, read_header};
///
/// let header = read_header(std::fs::File::open("model.gguf")?)?;
/// let mut metadata = Metadata::read(&header)?;
/// if let Some(Value::String(template)) = metadata.get("tokenizer.chat_template") {
///     println!("{}", String::from_utf8_lossy(template));
/// }
/// metadata.set("tokenizer.ggml.add_bos_token", Value::Bool(false));
/// let tokenizer = metadata.tokenizer()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Metadata<'a> {
    entries: HashMap<&'a [u8], Entry<'a>>,
    size: usize,
}

impl<'a> Metadata<'a> {
    /// Reads the metadata at the start of a file.
    ///
    /// # Errors
    /// [`GgufError`] if the bytes are not GGUF of version 2 or 3, end too early, or contradict themselves.
    pub fn read(bytes: &'a [u8]) -> Result<Self, GgufError> {
        Self::walk(&mut Walk::new(bytes))
    }

    pub(super) fn walk(walk: &mut Walk<'a>) -> Result<Self, GgufError> {
        let magic = walk.number::<4>("the magic bytes")?;
        if magic != *b"GGUF" {
            let found = format!("b'{}'", magic.escape_ascii());
            return Err(walk.error("this is not a GGUF file", 0, "b'GGUF'".into(), found));
        }
        let mut version = u32::from_le_bytes(walk.number("the version")?);
        if version & 0xFFFF == 0 {
            (walk.is_big_endian, version) = (true, version.swap_bytes());
        }
        if !(2..=3).contains(&version) {
            return Err(walk.error("the GGUF version is not supported", 4, "2 or 3".into(), version));
        }
        let num_tensors = walk.count("the number of tensors")? as i64;
        if num_tensors < 0 {
            return Err(walk.error("the number of tensors is negative", 8, "0 or more".into(), num_tensors));
        }
        let count = walk.count("the number of keys")?;
        if count.saturating_mul(LEAST_ENTRY) > walk.left() as u64 {
            let found = format!("{} bytes", walk.left());
            walk.missing =
                walk.at.checked_add(usize::try_from(count.saturating_mul(LEAST_ENTRY)).unwrap_or(usize::MAX));
            return Err(walk.error("the file is too short for its keys", 16, format!("{count} keys"), found));
        }
        let mut entries = HashMap::new();
        for _ in 0..count {
            interrupt::check();
            Self::walk_entry(walk, &mut entries)?;
        }
        let metadata = Self { entries, size: walk.at };
        walk.key = None;
        if let Some(alignment) = metadata.number("general.alignment")?
            && alignment.count_ones() != 1
        {
            let error = metadata.error("the alignment is wrong", "general.alignment", "a power of two".into());
            return Err(GgufError { found: Some(alignment.to_string()), ..error });
        }
        Ok(metadata)
    }

    fn walk_entry(walk: &mut Walk<'a>, entries: &mut HashMap<&'a [u8], Entry<'a>>) -> Result<(), GgufError> {
        walk.key = None;
        let start = walk.at;
        let key = walk.string("a key")?;
        walk.key = Some(key);
        if key.is_empty() {
            return Err(walk.error("a key is empty", start, "at least 1 byte".into(), "0 bytes"));
        }
        let kind = walk.kind("the value type")?;
        let offset = Some(walk.at);
        let value = walk.value(kind)?;
        match entries.entry(key) {
            Slot::Vacant(slot) => drop(slot.insert(Entry { value, offset })),
            Slot::Occupied(first) => {
                let found = format!("the first value at byte {}", first.get().offset.unwrap_or_default());
                return Err(walk.error("a key occurs twice", start, "each key once".into(), found));
            }
        }
        Ok(())
    }

    /// Bytes from the start of the file to the end of the last value.
    pub fn size(&self) -> usize {
        self.size
    }

    /// All keys, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &'a [u8]> {
        self.entries.keys().copied()
    }

    /// The value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&Value<'a>> {
        self.entries.get(key.as_ref()).map(|entry| &entry.value)
    }

    /// Replaces or adds a value, as llama.cpp's `--override-kv` does.
    pub fn set(&mut self, key: &'a str, value: Value<'a>) {
        self.entries.insert(key.as_bytes(), Entry { value, offset: None });
    }

    /// A string up to its first NUL, as llama.cpp reads it.
    pub(super) fn string(&self, key: &str) -> Result<Option<&'a [u8]>, GgufError> {
        self.read_as(key, "string", |value| match *value {
            Value::String(text) => Some(c_string(text)),
            _ => None,
        })
    }

    /// A 32-bit number.
    pub(super) fn number(&self, key: impl AsRef<[u8]>) -> Result<Option<u32>, GgufError> {
        self.read_as(key, "uint32", |value| if let Value::Uint32(number) = *value { Some(number) } else { None })
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, GgufError> {
        self.read_as(key, "bool", |value| if let Value::Bool(flag) = *value { Some(flag) } else { None })
    }

    /// An array whose elements have one of some types.
    pub(super) fn array(&self, key: &str, kinds: &[Type]) -> Result<Option<&Array<'a>>, GgufError> {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        self.read_as(key, &format!("array of {}", names.join(" or ")), |value| match value {
            Value::Array(array) if kinds.contains(&array.kind) => Some(array),
            _ => None,
        })
    }

    /// The value of a key if there is one, as what `read` makes of it.
    fn read_as<'b, T>(
        &'b self,
        key: impl AsRef<[u8]>,
        expected: &str,
        read: impl FnOnce(&'b Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(&key) else { return Ok(None) };
        let wrong = || {
            let error = self.error("the value has a wrong type", &key, expected.to_owned());
            GgufError { found: Some(value.shown()), ..error }
        };
        read(value).map(Some).ok_or_else(wrong)
    }

    /// An error about a key.
    pub(super) fn error(&self, problem: &str, key: impl AsRef<[u8]>, expected: String) -> GgufError {
        GgufError {
            problem: problem.to_owned(),
            key: Some(escaped_name(key.as_ref()).into_owned()),
            offset: self.entries.get(key.as_ref()).and_then(|entry| entry.offset),
            expected,
            found: None,
        }
    }
}
