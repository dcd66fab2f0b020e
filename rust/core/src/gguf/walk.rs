//! A cursor over the metadata of a GGUF file: value by value, with every byte checked.
//!
//! Source: the GGUF specification (`docs/gguf.md` of ggml) and llama.cpp's `ggml/src/gguf.cpp`
//! (`gguf_init_from_reader`) for what is rejected. Time: O(1) per number, O(n) per array of n strings.
//!
//! Deviations: (1) big-endian files are read on every machine. (2) Arrays of arrays are read, up to 32 levels. (3)
//! Metadata is at most 4 GiB, which is what the 32-bit starts of a `StringIndex` can address.

use super::error::{Field, GgufError, Problem};
use super::value::{MAX_ARRAY_LEN, MAX_BYTES, MAX_NESTING, MAX_STRING_LEN, Span, Type, number};
use crate::vocabulary::escaped_name;
use crate::vocabulary::strings::StringIndex;

type Result<T> = std::result::Result<T, GgufError>;

/// The position of a walk through the metadata.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    /// The file as far as it can be read.
    pub(super) data: &'a [u8],
    /// The length of the file.
    total: usize,
    pub(super) at: usize,
    pub(super) is_big_endian: bool,
    /// The key whose entry is being read.
    pub(super) key: Option<&'a [u8]>,
}

impl<'a> Walk<'a> {
    /// A walk over the first bytes of a file of `total` bytes.
    pub(super) fn new(bytes: &'a [u8], total: usize) -> Self {
        let data = &bytes[..bytes.len().min(MAX_BYTES)];
        Self { data, total, at: 0, is_big_endian: false, key: None }
    }

    pub(super) fn error(&self, problem: Problem, at: usize) -> GgufError {
        let key = self.key.map(|key| escaped_name(key).into_owned());
        GgufError { problem, key, offset: Some(at), needed: None }
    }

    /// The bytes of the file that are left.
    pub(super) fn left(&self) -> usize {
        self.total - self.at
    }

    /// The error that the next `size` bytes are missing.
    pub(super) fn missing(&self, problem: Problem, size: u64) -> GgufError {
        let end = usize::try_from(size).ok().and_then(|size| self.at.checked_add(size));
        let needed = end.filter(|&end| end <= self.total && end <= MAX_BYTES);
        GgufError { needed, ..self.error(problem, self.at) }
    }

    /// Checks that `size` bytes follow.
    fn need(&self, size: u64, field: Field) -> Result<()> {
        let fits = self.at as u64 + size <= self.data.len() as u64;
        if fits { Ok(()) } else { Err(self.ends_inside(size, field)) }
    }

    /// The error that the file, or the part of it that can be read, ends inside a field of this size.
    fn ends_inside(&self, size: u64, field: Field) -> GgufError {
        let end = self.at as u64 + size;
        if end > MAX_BYTES as u64 && end <= self.total as u64 {
            return self.error(Problem::TooLarge { size: end }, self.at);
        }
        self.missing(Problem::Ends { field, size, left: self.left() }, size)
    }

    /// The next `N` bytes in little-endian order.
    pub(super) fn number<const N: usize>(&mut self, field: Field) -> Result<[u8; N]> {
        let number = number(&self.data[self.at..], self.is_big_endian);
        let number = number.ok_or_else(|| self.ends_inside(N as u64, field))?;
        self.at += N;
        Ok(number)
    }

    /// A 64-bit count of something.
    pub(super) fn count(&mut self, field: Field) -> Result<u64> {
        self.number(field).map(u64::from_le_bytes)
    }

    /// A string after its length.
    pub(super) fn string(&mut self, field: Field, length: Field) -> Result<Span> {
        let start = self.at;
        let len = self.count(length)?;
        if len > MAX_STRING_LEN {
            return Err(self.error(Problem::StringTooLong { field, len }, start));
        }
        self.need(len, field)?;
        let start = self.at;
        self.at += len as usize;
        Ok(start..self.at)
    }

    pub(super) fn kind(&mut self, field: Field) -> Result<Type> {
        let number = i32::from_le_bytes(self.number(field)?);
        Type::from_number(number).ok_or_else(|| self.error(Problem::UnknownType { field, number }, self.at - 4))
    }

    /// Passes over a value of a type. Returns where the strings of an array of strings are.
    pub(super) fn value(&mut self, kind: Type) -> Result<Option<StringIndex>> {
        match kind {
            Type::String => self.string(Field::String, Field::StringLength).map(|_| None),
            Type::Array => self.array(0),
            _ => {
                self.need(kind.least_size(), Field::Value)?;
                self.at += kind.least_size() as usize;
                Ok(None)
            }
        }
    }

    /// The same for an array: its element type, its length and its elements.
    fn array(&mut self, nesting: usize) -> Result<Option<StringIndex>> {
        if nesting == MAX_NESTING {
            return Err(self.error(Problem::NestedTooDeeply, self.at));
        }
        let kind = self.kind(Field::ElementType)?;
        let count = self.count(Field::ArrayLength)?;
        if count > MAX_ARRAY_LEN {
            return Err(self.error(Problem::ArrayTooLong { len: count }, self.at - 8));
        }
        let size = count * kind.least_size();
        self.need(size, Field::Array)?;
        match kind {
            Type::String => return self.strings(count as usize).map(Some),
            Type::Array => {
                for _ in 0..count {
                    self.array(nesting + 1)?;
                }
            }
            _ => self.at += size as usize,
        }
        Ok(None)
    }

    fn strings(&mut self, count: usize) -> Result<StringIndex> {
        let Some(index) = StringIndex::length_prefixed(self.data, self.at, count, self.is_big_endian) else {
            // Read one by one, the strings say which of them is too long or cut off.
            let error = (0..count).map(Field::Element).find_map(|field| self.string(field, field).err());
            return Err(error.unwrap_or_else(|| self.ends_inside(0, Field::Array)));
        };
        self.at = index.end();
        Ok(index)
    }
}
