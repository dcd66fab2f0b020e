//! The keys and values of a GGUF file.
//!
//! Source: llama.cpp's `ggml/src/gguf.cpp` (`gguf_init_from_reader`) for the header, and its `llama-model-loader.cpp`
//! (`get_key`, `get_arr`) for typed access and overrides. O(number of keys and strings); arrays stay where they are.
//!
//! Deviations: (1) the list of tensors after the metadata is not read, so it may be cut or missing.

use std::collections::HashMap;

use super::error::{Expected, Field, GgufError, Problem};
use super::value::{Array, Override, Span, Type, Value};
use super::walk::Walk;
use crate::vocabulary::strings::StringIndex;
use crate::vocabulary::{c_string, escaped_name};
use crate::work::interrupt;
use crate::work::memory::{self, copied, push, with_room};

/// The minimum size of a key with its value in bytes: the length of the key, one byte of it, its type, one byte of a
/// value.
const LEAST_ENTRY: u64 = 8 + 1 + 4 + 1;

/// A key and its value.
#[derive(Debug)]
struct Entry {
    key: Span,
    kind: Type,
    value: Span,
    /// The strings of an array of strings.
    strings: Option<StringIndex>,
}

impl Entry {
    fn value<'a>(&'a self, data: &'a [u8], is_big_endian: bool) -> Option<Value<'a>> {
        let strings = self.strings.as_ref().map(|index| index.view(data));
        Value::read(self.kind, &data[self.value.clone()], is_big_endian, strings)
    }
}

/// Where the keys and values of a file are.
#[derive(Debug)]
pub struct Layout {
    is_big_endian: bool,
    version: u32,
    num_tensors: u64,
    size: usize,
    /// In the order of the file.
    entries: Vec<Entry>,
    /// The index of each key's entry.
    places: HashMap<Box<[u8]>, usize>,
    /// The first key that is empty or occurs twice.
    flaw: Option<GgufError>,
}

impl Layout {
    /// Finds the metadata in the first bytes of a file of `total` bytes, or `usize::MAX` if its length is unknown.
    ///
    /// # Errors
    /// [`GgufError`] if the bytes are not GGUF of version 2 or 3, end too early, or contradict themselves, or if memory
    /// runs out. If more bytes may help, it says how many are [`needed`](GgufError::needed).
    pub fn find(bytes: &[u8], total: usize) -> Result<Self, GgufError> {
        let mut layout = Self::find_flawed(bytes, total)?;
        layout.flaw.take().map_or(Ok(layout), Err)
    }

    /// As [`Layout::find`], for a file that is to be mended: a key may be empty, and of a key that occurs several times
    /// the last value is taken.
    ///
    /// # Errors
    /// As [`Layout::find`], except for such keys.
    pub fn find_flawed(bytes: &[u8], total: usize) -> Result<Self, GgufError> {
        memory::catch(|| Self::read_all(Walk::new(bytes, total.max(bytes.len()))))?
    }

    fn read_all(mut walk: Walk<'_>) -> Result<Self, GgufError> {
        let magic = walk.number::<4>(Field::Magic)?;
        if magic != *b"GGUF" {
            return Err(walk.error(Problem::Magic(magic), 0));
        }
        let mut version = u32::from_le_bytes(walk.number(Field::Version)?);
        if version & 0xFFFF == 0 {
            (walk.is_big_endian, version) = (true, version.swap_bytes());
        }
        if !(2..=3).contains(&version) {
            return Err(walk.error(Problem::Version(version), 4));
        }
        let num_tensors = walk.count(Field::NumTensors)?;
        if (num_tensors as i64) < 0 {
            return Err(walk.error(Problem::NegativeTensors(num_tensors as i64), 8));
        }
        let count = walk.count(Field::NumKeys)?;
        let size = count.saturating_mul(LEAST_ENTRY);
        if size > walk.left() as u64 {
            let problem = Problem::TooManyKeys { keys: count, left: walk.left() };
            return Err(GgufError { offset: Some(16), ..walk.missing(problem, size) });
        }
        let is_big_endian = walk.is_big_endian;
        let entries = Vec::new();
        let places = HashMap::new();
        let mut layout = Self { is_big_endian, version, num_tensors, size: 0, entries, places, flaw: None };
        for _ in 0..count {
            interrupt::check();
            layout.add_entry(&mut walk)?;
        }
        layout.size = walk.at;
        Ok(layout)
    }

    fn add_entry(&mut self, walk: &mut Walk<'_>) -> Result<(), GgufError> {
        walk.key = None;
        let start = walk.at;
        let key = walk.string(Field::Key, Field::KeyLength)?;
        let name = &walk.data[key.clone()];
        walk.key = Some(name);
        if name.is_empty() {
            self.flaw.get_or_insert(walk.error(Problem::EmptyKey, start));
        }
        let kind = walk.kind(Field::ValueType)?;
        let offset = walk.at;
        let strings = walk.value(kind)?;
        let entry = Entry { key, kind, value: offset..walk.at, strings };
        if let Some(first) = with_room(&mut self.places).insert(copied(name).into(), self.entries.len()) {
            let problem = Problem::KeyTwice { first: self.entries[first].value.start };
            self.flaw.get_or_insert(walk.error(problem, start));
        }
        if name == b"general.alignment" {
            let problem = match entry.value(walk.data, walk.is_big_endian) {
                Some(Value::Uint32(alignment)) if alignment.is_power_of_two() => None,
                Some(Value::Uint32(alignment)) => Some(Problem::Alignment(alignment)),
                value => value.map(|value| wrong_type(&value, Expected::Value(Type::Uint32))),
            };
            if let Some(problem) = problem {
                return Err(walk.error(problem, offset));
            }
        }
        push(&mut self.entries, entry);
        Ok(())
    }

    /// The metadata, given the bytes in which it was found, or longer ones.
    ///
    /// # Panics
    /// If there are fewer than [`Layout::size`] bytes.
    pub fn over<D: AsRef<[u8]>>(self, data: D) -> Metadata<D> {
        assert!(data.as_ref().len() >= self.size, "the metadata has {} bytes", self.size);
        Metadata { data, layout: self, overrides: HashMap::new() }
    }

    /// Bytes from the start of the file to the end of the last value.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether numbers are big-endian.
    pub fn is_big_endian(&self) -> bool {
        self.is_big_endian
    }

    /// The version of the format: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The number of tensors after the metadata.
    pub fn num_tensors(&self) -> u64 {
        self.num_tensors
    }
}

/// The problem that another type is expected.
fn wrong_type(value: &Value<'_>, expected: Expected) -> Problem {
    let element = if let Value::Array(array) = value { Some(array.kind()) } else { None };
    Problem::WrongType { expected, found: (value.kind(), element) }
}

/// The keys and values of a GGUF file, with overrides.
///
/// # Examples
/// ```no_run
/// use ggtok_core::gguf::{Metadata, Override, Value, read_header};
///
/// let header = read_header(std::fs::File::open("model.gguf")?)?;
/// let mut metadata = Metadata::read(header)?;
/// if let Some(Value::String(template)) = metadata.get("tokenizer.chat_template") {
///     println!("{}", String::from_utf8_lossy(template));
/// }
/// metadata.set("tokenizer.ggml.add_bos_token", Override::Bool(false));
/// let tokenizer = metadata.tokenizer()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Metadata<D> {
    data: D,
    layout: Layout,
    overrides: HashMap<Box<[u8]>, Override>,
}

impl<D: AsRef<[u8]>> Metadata<D> {
    /// Reads the metadata at the start of a file.
    ///
    /// # Errors
    /// As [`Layout::find`].
    pub fn read(data: D) -> Result<Self, GgufError> {
        Ok(Layout::find(data.as_ref(), data.as_ref().len())?.over(data))
    }

    /// Where its parts are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bytes of the file.
    pub fn data(&self) -> &D {
        &self.data
    }

    /// Memory held outside the value itself, in bytes: the file's, and the positions of its strings.
    pub fn heap_bytes(&self) -> usize {
        let strings = self.layout.entries.iter().filter_map(|entry| entry.strings.as_ref());
        self.data.as_ref().len() + strings.map(StringIndex::heap_bytes).sum::<usize>()
    }

    /// All keys and values, in the order of the file.
    pub fn entries(&self) -> impl Iterator<Item = (&[u8], Value<'_>)> {
        let data = self.data.as_ref();
        let Layout { entries, is_big_endian, .. } = &self.layout;
        entries.iter().filter_map(|entry| Some((&data[entry.key.clone()], entry.value(data, *is_big_endian)?)))
    }

    /// The value that the file has for a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value<'_>> {
        self.entry(key.as_ref())?.value(self.data.as_ref(), self.layout.is_big_endian)
    }

    /// A key and its value as in the file.
    pub fn raw(&self, key: impl AsRef<[u8]>) -> Option<&[u8]> {
        let place = *self.layout.places.get(key.as_ref())?;
        let start = |entry: &Entry| entry.key.start - 8;
        let end = self.layout.entries.get(place + 1).map_or(self.layout.size, start);
        self.data.as_ref().get(start(&self.layout.entries[place])..end)
    }

    fn entry(&self, key: &[u8]) -> Option<&Entry> {
        self.layout.places.get(key).map(|&place| &self.layout.entries[place])
    }

    /// Replaces or adds a value, as llama.cpp's `--override-kv` does. A value of a type that the tokenizer does not
    /// read is ignored, and so is one for an array.
    pub fn set(&mut self, key: impl AsRef<[u8]>, value: Override) {
        self.overrides.insert(key.as_ref().into(), value);
    }

    /// A string up to its first NUL, as llama.cpp reads it.
    pub(super) fn string(&self, key: &str) -> Result<Option<&[u8]>, GgufError> {
        if let Some(Override::String(text)) = self.overrides.get(key.as_bytes()) {
            return Ok(Some(c_string(text)));
        }
        let text = |value| if let Value::String(text) = value { Some(c_string(text)) } else { None };
        self.read_as(key, Expected::Value(Type::String), text)
    }

    /// A 32-bit number. An override out of range is converted as in C.
    pub(super) fn number(&self, key: impl AsRef<[u8]>) -> Result<Option<u32>, GgufError> {
        if let Some(Override::Int(number)) = self.overrides.get(key.as_ref()) {
            return Ok(Some(*number as u32));
        }
        let number = |value| if let Value::Uint32(number) = value { Some(number) } else { None };
        self.read_as(key, Expected::Value(Type::Uint32), number)
    }

    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, GgufError> {
        if let Some(Override::Bool(flag)) = self.overrides.get(key.as_bytes()) {
            return Ok(Some(*flag));
        }
        let flag = |value| if let Value::Bool(flag) = value { Some(flag) } else { None };
        self.read_as(key, Expected::Value(Type::Bool), flag)
    }

    /// An array whose elements have one of some types.
    pub(super) fn array(&self, key: &str, kinds: &'static [Type]) -> Result<Option<Array<'_>>, GgufError> {
        self.read_as(key, Expected::Array(kinds), |value| match value {
            Value::Array(array) if kinds.contains(&array.kind()) => Some(array),
            _ => None,
        })
    }

    /// The value of a key, if there is one, converted by `read`.
    fn read_as<'a, T>(
        &'a self,
        key: impl AsRef<[u8]>,
        expected: Expected,
        read: impl FnOnce(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key.as_ref()) else { return Ok(None) };
        let problem = wrong_type(&value, expected);
        read(value).map(Some).ok_or_else(|| self.error(problem, key))
    }

    /// An error about a key.
    pub(super) fn error(&self, problem: Problem, key: impl AsRef<[u8]>) -> GgufError {
        let offset = self.entry(key.as_ref()).map(|entry| entry.value.start);
        GgufError { problem, key: Some(escaped_name(key.as_ref()).into_owned()), offset, needed: None }
    }
}
