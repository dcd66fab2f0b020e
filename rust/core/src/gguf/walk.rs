//! A cursor over the metadata of a GGUF file: one value after the other, nothing skipped unchecked.
//!
//! Source: the GGUF specification (`docs/gguf.md` of ggml) and llama.cpp's `ggml/src/gguf.cpp`
//! (`gguf_init_from_reader`) for what is refused. Time: O(1) per number, O(n) per array of n strings.
//!
//! Deviations: (1) big-endian files are read on every machine. (2) Arrays of arrays are read, up to 32 levels.
//! (3) Metadata is at most 4 GiB, as much as the 32-bit starts of a `StringIndex` address.

use super::error::GgufError;
use super::metadata::{Array, Type, Value};
use crate::vocabulary::escaped_name;
use crate::vocabulary::strings::{StringIndex, StringsError};

/// llama.cpp's `GGUF_MAX_STRING_LENGTH` and `GGUF_MAX_ARRAY_ELEMENTS`.
const MAX_STRING_LEN: u64 = 1 << 30;
const MAX_ARRAY_LEN: u64 = 1 << 30;
/// Arrays inside arrays: far more than any file needs, and no strain on the stack.
const MAX_NESTING: usize = 32;
/// The most bytes that a `StringIndex` can address.
pub(super) const MAX_BYTES: usize = u32::MAX as usize - 8;

type Result<T> = std::result::Result<T, GgufError>;

/// Where a walk through the metadata has come to.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    /// The file as far as it can be read.
    data: &'a [u8],
    /// The length of the file.
    total: usize,
    pub(super) at: usize,
    pub(super) is_big_endian: bool,
    /// The key whose entry is being read.
    pub(super) key: Option<&'a [u8]>,
    /// The end of the bytes that were missing, after an error because the file ends too early.
    pub(super) missing: Option<usize>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let data = &bytes[..bytes.len().min(MAX_BYTES)];
        Self { data, total: bytes.len(), at: 0, is_big_endian: false, key: None, missing: None }
    }

    pub(super) fn error(&self, problem: &str, at: usize, expected: String, found: impl ToString) -> GgufError {
        GgufError {
            problem: problem.to_owned(),
            key: self.key.map(|key| escaped_name(key).into_owned()),
            offset: Some(at),
            expected,
            found: Some(found.to_string()),
        }
    }

    pub(super) fn left(&self) -> usize {
        self.total - self.at
    }

    /// Checks that `size` bytes follow.
    fn need(&mut self, size: u64, what: &str) -> Result<()> {
        let end = self.at as u64 + size;
        if end <= self.data.len() as u64 {
            return Ok(());
        }
        if end > MAX_BYTES as u64 && end <= self.total as u64 {
            let expected = format!("at most {MAX_BYTES} bytes");
            return Err(self.error("the metadata is too large", self.at, expected, format!("{end} bytes")));
        }
        Err(self.ends_inside(size, what))
    }

    fn ends_inside(&mut self, size: u64, what: &str) -> GgufError {
        self.missing = usize::try_from(self.at as u64 + size).ok();
        let problem = format!("the file ends inside {what}");
        self.error(&problem, self.at, format!("{size} bytes"), format!("{} bytes", self.left()))
    }

    /// The next `N` bytes in little-endian order.
    pub(super) fn number<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let Some(&(mut bytes)) = self.data[self.at..].first_chunk::<N>() else {
            return Err(self.ends_inside(N as u64, what));
        };
        self.at += N;
        if self.is_big_endian {
            bytes.reverse();
        }
        Ok(bytes)
    }

    /// A 64-bit count of something.
    pub(super) fn count(&mut self, what: &str) -> Result<u64> {
        self.number(what).map(u64::from_le_bytes)
    }

    /// A string after its length.
    pub(super) fn string(&mut self, what: &str) -> Result<&'a [u8]> {
        let start = self.at;
        let len = self.count(&format!("the length of {what}"))?;
        if len > MAX_STRING_LEN {
            let expected = format!("at most {MAX_STRING_LEN} bytes");
            return Err(self.error(&format!("{what} is too long"), start, expected, len));
        }
        self.need(len, what)?;
        let start = self.at;
        self.at += len as usize;
        Ok(&self.data[start..self.at])
    }

    pub(super) fn kind(&mut self, what: &str) -> Result<Type> {
        let number = i32::from_le_bytes(self.number(what)?);
        Type::from_number(number).ok_or_else(|| {
            self.error(&format!("{what} is unknown"), self.at - 4, format!("0 to {}", Type::LAST), number)
        })
    }

    /// A value of a type.
    pub(super) fn value(&mut self, kind: Type) -> Result<Value<'a>> {
        let what = "a value";
        Ok(match kind {
            Type::Uint8 => Value::Uint8(u8::from_le_bytes(self.number(what)?)),
            Type::Int8 => Value::Int8(i8::from_le_bytes(self.number(what)?)),
            Type::Uint16 => Value::Uint16(u16::from_le_bytes(self.number(what)?)),
            Type::Int16 => Value::Int16(i16::from_le_bytes(self.number(what)?)),
            Type::Uint32 => Value::Uint32(u32::from_le_bytes(self.number(what)?)),
            Type::Int32 => Value::Int32(i32::from_le_bytes(self.number(what)?)),
            Type::Float32 => Value::Float32(f32::from_le_bytes(self.number(what)?)),
            Type::Bool => Value::Bool(self.number::<1>(what)? != [0]),
            Type::String => Value::String(self.string("a string")?),
            Type::Array => Value::Array(self.array(0)?),
            Type::Uint64 => Value::Uint64(u64::from_le_bytes(self.number(what)?)),
            Type::Int64 => Value::Int64(i64::from_le_bytes(self.number(what)?)),
            Type::Float64 => Value::Float64(f64::from_le_bytes(self.number(what)?)),
        })
    }

    /// An array: its element type, its length and its elements, which are checked and not copied.
    fn array(&mut self, nesting: usize) -> Result<Array<'a>> {
        if nesting == MAX_NESTING {
            let expected = format!("at most {MAX_NESTING} levels");
            return Err(self.error("arrays are nested too deeply", self.at, expected, "more"));
        }
        let kind = self.kind("the element type of an array")?;
        let count = self.count("the length of an array")?;
        if count > MAX_ARRAY_LEN {
            let expected = format!("at most {MAX_ARRAY_LEN} elements");
            return Err(self.error("the array is too long", self.at - 8, expected, count));
        }
        let size = count * kind.least_size();
        self.need(size, "an array")?;
        let (start, len) = (self.at, count as usize);
        let mut strings = None;
        match kind {
            Type::String => strings = Some(self.strings(len)?),
            Type::Array => {
                for _ in 0..len {
                    self.array(nesting + 1)?;
                }
            }
            _ => self.at += size as usize,
        }
        let (data, is_big_endian) = (self.data, self.is_big_endian);
        Ok(Array { kind, len, data, elements: start..self.at, is_big_endian, strings })
    }

    fn strings(&mut self, count: usize) -> Result<StringIndex> {
        let found = StringIndex::length_prefixed(self.data, self.at, count, self.is_big_endian);
        let index = found.map_err(|error| match error {
            StringsError::Truncated { index, offset, needed, .. } => {
                self.at = offset;
                self.ends_inside(needed, &format!("string {index} of an array"))
            }
            StringsError::TooLong { index, offset, len } => {
                let expected = format!("at most {MAX_STRING_LEN} bytes");
                self.error(&format!("string {index} is too long"), offset, expected, len)
            }
            StringsError::TooLarge { len } => {
                let expected = format!("at most {MAX_BYTES} bytes");
                self.error("the metadata is too large", self.at, expected, len)
            }
        })?;
        self.at = index.end();
        Ok(index)
    }
}
