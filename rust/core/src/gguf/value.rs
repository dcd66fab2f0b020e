//! The types and values of a GGUF file, and how large they may be.

use std::ops::Range;

use crate::vocabulary::strings::Strings;

/// llama.cpp's `GGUF_MAX_STRING_LENGTH` and `GGUF_MAX_ARRAY_ELEMENTS`.
pub(super) const MAX_STRING_LEN: u64 = 1 << 30;
pub(super) const MAX_ARRAY_LEN: u64 = 1 << 30;
/// The maximum nesting of arrays: far more than any file needs, and harmless to the stack.
pub(super) const MAX_NESTING: usize = 32;
/// The most bytes that a `StringIndex` can address.
pub(super) const MAX_BYTES: usize = u32::MAX as usize - 8;

/// Bytes of a file.
pub(super) type Span = Range<usize>;

macro_rules! types {
    ($($number:literal $name:ident($held:ty) $shown:literal $size:literal)*) => {
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

            /// The minimum size of a value in bytes: a number, or the length of an empty string or array.
            pub(super) const fn least_size(self) -> u64 {
                match self {
                    $(Self::$name => $size,)*
                }
            }
        }

        /// A value of a key. A string is usually UTF-8, but not necessarily.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs)]
        #[non_exhaustive]
        pub enum Value<'a> {
            $($name($held),)*
        }

        impl Value<'_> {
            /// Its type.
            pub const fn kind(&self) -> Type {
                match self {
                    $(Self::$name(_) => Type::$name,)*
                }
            }
        }
    };
}

types! {
    0 Uint8(u8) "uint8" 1
    1 Int8(i8) "int8" 1
    2 Uint16(u16) "uint16" 2
    3 Int16(i16) "int16" 2
    4 Uint32(u32) "uint32" 4
    5 Int32(i32) "int32" 4
    6 Float32(f32) "float32" 4
    7 Bool(bool) "bool" 1
    8 String(&'a [u8]) "string" 8
    9 Array(Array<'a>) "array" 12
    10 Uint64(u64) "uint64" 8
    11 Int64(i64) "int64" 8
    12 Float64(f64) "float64" 8
}

impl<'a> Value<'a> {
    /// The value of a type in its bytes, and the strings of an array of strings; `None` if it has fewer bytes.
    pub(super) fn read(kind: Type, bytes: &'a [u8], is_big_endian: bool, strings: Option<Strings<'a>>) -> Option<Self> {
        Some(match kind {
            Type::Uint8 => Self::Uint8(u8::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Int8 => Self::Int8(i8::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Uint16 => Self::Uint16(u16::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Int16 => Self::Int16(i16::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Uint32 => Self::Uint32(u32::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Int32 => Self::Int32(i32::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Float32 => Self::Float32(f32::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Bool => Self::Bool(bytes.first()? != &0),
            Type::String => Self::String(bytes.get(8..)?),
            Type::Array => {
                let (header, bytes) = bytes.split_at_checked(12)?;
                let kind = Type::from_number(i32::from_le_bytes(number(header, is_big_endian)?))?;
                let len = u64::from_le_bytes(number(&header[4..], is_big_endian)?) as usize;
                Self::Array(Array { kind, len, bytes, is_big_endian, strings })
            }
            Type::Uint64 => Self::Uint64(u64::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Int64 => Self::Int64(i64::from_le_bytes(number(bytes, is_big_endian)?)),
            Type::Float64 => Self::Float64(f64::from_le_bytes(number(bytes, is_big_endian)?)),
        })
    }
}

/// The first `N` of these bytes in little-endian order.
pub(super) fn number<const N: usize>(bytes: &[u8], is_big_endian: bool) -> Option<[u8; N]> {
    let mut number = *bytes.first_chunk()?;
    if is_big_endian {
        number.reverse();
    }
    Some(number)
}

/// An array: where its elements are in the file.
#[derive(Debug, Clone)]
pub struct Array<'a> {
    kind: Type,
    len: usize,
    bytes: &'a [u8],
    is_big_endian: bool,
    /// The strings, in an array of strings.
    strings: Option<Strings<'a>>,
}

impl<'a> Array<'a> {
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
    pub fn strings(&self) -> Option<Strings<'a>> {
        self.strings
    }

    /// The elements as in the file, in its byte order.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements of `N` bytes each, in little-endian order.
    pub fn numbers<const N: usize>(&self) -> impl Iterator<Item = [u8; N]> + use<'a, N> {
        let is_big_endian = self.is_big_endian;
        self.bytes.as_chunks::<N>().0.iter().filter_map(move |bytes| number(bytes, is_big_endian))
    }
}

impl PartialEq for Array<'_> {
    fn eq(&self, other: &Self) -> bool {
        let parts = |array: &Self| (array.kind, array.len, array.is_big_endian);
        parts(self) == parts(other) && self.bytes == other.bytes
    }
}

/// A value that replaces one of a file, in the types of llama.cpp's `--override-kv`.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)]
pub enum Override {
    Int(i64),
    Float(f64),
    Bool(bool),
    String(Box<[u8]>),
}
