//! Columns of texts: utf8, large_utf8, string_view, binary, large_binary, binary_view, null, and dictionaries of these.
//!
//! The texts stay where they are, in the memory of the column. Offsets, views and indices are checked before they are
//! used. Only the size of the text memory of a type with offsets is not known to the interface: it is assumed to be
//! what the last offset says.
//!
//! Time: O(rows).

use pyo3::exceptions::{PyImportError, PyMemoryError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use super::ffi::{ArrowArray, Schema, Stream, Struct};
use crate::errors::{invalid, type_error};
use crate::run::check_signals;

/// The longest text inside a view itself.
const MAX_INLINE: usize = 12;

/// A text; `None` for a null.
type NullableText<'a> = Option<&'a [u8]>;

/// A column of texts, in one or more parts.
pub(crate) struct Column {
    schema: Schema,
    parts: Vec<ArrowArray>,
}

impl Column {
    /// The column of an object that has the PyCapsule interface; `None` for any other object.
    ///
    /// # Errors
    /// The column holds something other than texts, or what the object raises.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        let column = if let Some(pair) = call(object, intern!(py, "__arrow_c_array__"))? {
            let pair = pair.cast_into::<PyTuple>()?;
            Self { schema: Schema::take(&pair.get_item(0)?)?, parts: vec![ArrowArray::take(&pair.get_item(1)?)?] }
        } else if let Some(stream) = call(object, intern!(py, "__arrow_c_stream__"))? {
            Self::read(py, Stream::take(&stream)?)?
        } else {
            return Ok(None);
        };
        let format = column.schema.dictionary().unwrap_or(&column.schema).format();
        if !matches!(format, b"n" | b"u" | b"z" | b"U" | b"Z" | b"vu" | b"vz") {
            return Err(wrong_type(format));
        }
        Ok(Some(column))
    }

    /// Reads a stream to its end. Its functions may need the GIL on other threads, so they are called without it.
    fn read(py: Python<'_>, mut stream: Stream) -> PyResult<Self> {
        let failed = |message: String| invalid(format!("the Arrow stream of the texts failed: {message}"));
        let schema = py.detach(|| stream.schema()).map_err(failed)?;
        let mut parts = Vec::new();
        while let Some(part) = py.detach(|| stream.next()).map_err(failed)? {
            py.check_signals()?;
            parts.push(part);
        }
        Ok(Self { schema, parts })
    }

    /// Passes on the bytes of every row, `None` for a null, and reports the null rows to `nulls`.
    ///
    /// # Errors
    /// The column is damaged; the first such row is named.
    pub(crate) fn pass_on<'a>(
        &'a self,
        py: Python<'_>,
        nulls: &mut Vec<bool>,
        mut take: impl FnMut(NullableText<'a>),
    ) -> PyResult<()> {
        let mut rows = RowSink { nulls, take: &mut take };
        for part in &self.parts {
            let Some(texts) = self.schema.dictionary() else {
                append(py, self.schema.format(), part, &mut rows)?;
                continue;
            };
            let dictionary = part.dictionary().ok_or_else(|| damaged(rows.len(), "it has no dictionary"))?;
            let mut entries = Vec::new();
            let mut take = |entry| entries.push(entry);
            append(py, texts.format(), dictionary, &mut RowSink { nulls: &mut Vec::new(), take: &mut take })?;
            append_indexed(py, self.schema.format(), part, &entries, &mut rows)?;
        }
        Ok(())
    }
}

/// The rows that were read so far.
struct RowSink<'a, 'r> {
    /// Which of them are null.
    nulls: &'r mut Vec<bool>,
    take: &'r mut dyn FnMut(NullableText<'a>),
}

impl RowSink<'_, '_> {
    fn len(&self) -> usize {
        self.nulls.len()
    }
}

/// What a method returns; `None` if the object has no such method, or lacks a package that it needs. Then the object is
/// iterated, as any other is.
fn call<'py>(object: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
    // Looked up in the class, as Python looks up its own protocols.
    if !object.get_type().hasattr(name)? {
        return Ok(None);
    }
    match object.call_method0(name) {
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        result => result.map(Some),
    }
}

/// The rows of an array.
struct Frame<'a> {
    array: &'a ArrowArray,
    len: usize,
    offset: usize,
    /// A bit for each row that is not null, if there are nulls.
    validity: Option<&'a [u8]>,
}

impl<'a> Frame<'a> {
    fn new(array: &'a ArrowArray, has_validity: bool, first_row: usize) -> PyResult<Self> {
        let not_negative =
            |number: i64| usize::try_from(number).map_err(|_| damaged(first_row, "a length is negative"));
        let len = not_negative(array.len)?;
        let offset = not_negative(array.offset)?;
        let Some(end) = len.checked_add(offset).filter(|&end| end < isize::MAX as usize) else {
            return Err(damaged(first_row, "its length is beyond memory"));
        };
        // SAFETY: the first buffer of a type with validity has a bit for each row up to the end.
        let bits = || unsafe { array.buffer(0, end.div_ceil(8), 1) }.filter(|bits| !bits.is_empty());
        Ok(Self { array, len, offset, validity: if has_validity { bits() } else { None } })
    }

    fn end(&self) -> usize {
        self.offset + self.len
    }

    /// Appends the texts at all places from the offset to the end, or says what is wrong with the first damaged one.
    fn append(
        &self,
        py: Python<'_>,
        rows: &mut RowSink<'a, '_>,
        text: impl Fn(usize) -> Result<NullableText<'a>, &'static str>,
    ) -> PyResult<()> {
        (rows.nulls.try_reserve(self.len))
            .map_err(|_| PyMemoryError::new_err(format!("a column of {} rows does not fit into memory", self.len)))?;
        let first_row = rows.len();
        for (index, place) in (self.offset..self.end()).enumerate() {
            check_signals(py, index)?;
            let is_null = self.validity.is_some_and(|bits| bits[place / 8] >> (place % 8) & 1 == 0);
            let row = if is_null { None } else { text(place).map_err(|what| damaged(first_row + index, what))? };
            rows.nulls.push(row.is_none());
            (rows.take)(row);
        }
        Ok(())
    }
}

/// Appends the texts of an array.
fn append<'a>(py: Python<'_>, format: &[u8], array: &'a ArrowArray, rows: &mut RowSink<'a, '_>) -> PyResult<()> {
    let frame = Frame::new(array, format != b"n", rows.len())?;
    match format {
        _ if frame.len == 0 => Ok(()),
        b"n" => frame.append(py, rows, |_| Ok(None)),
        b"u" | b"z" => append_between(py, &frame, b'i', rows),
        b"U" | b"Z" => append_between(py, &frame, b'l', rows),
        b"vu" | b"vz" => append_viewed(py, &frame, rows),
        _ => Err(wrong_type(format)),
    }
}

/// Texts in one buffer, between offsets of a type of integers. There is at least one.
fn append_between<'a>(py: Python<'_>, frame: &Frame<'a>, offset: u8, rows: &mut RowSink<'a, '_>) -> PyResult<()> {
    let first_row = rows.len();
    // SAFETY: the second buffer has one offset more than there are rows up to the end.
    let offsets = unsafe { integers(frame.array, 1, frame.end() + 1, offset) };
    let offsets = offsets.ok_or_else(|| damaged(first_row, "it has no offsets"))?;
    let last = first_row + frame.len - 1;
    let size = offsets(frame.end()).ok_or_else(|| damaged(last, "its offsets descend"))?;
    // SAFETY: the third buffer reaches up to the last offset.
    let texts = unsafe { frame.array.buffer(2, size, 1) }.ok_or_else(|| damaged(first_row, "it has no text"))?;
    frame.append(py, rows, |place| {
        let span = offsets(place).zip(offsets(place + 1));
        let text = span.and_then(|(start, end)| texts.get(start..end));
        text.map(Some).ok_or("its offsets descend")
    })
}

/// Texts in views: a length of 4 bytes, then up to 12 bytes of text, or 4 bytes of it, the number of a buffer and an
/// offset.
fn append_viewed<'a>(py: Python<'_>, frame: &Frame<'a>, rows: &mut RowSink<'a, '_>) -> PyResult<()> {
    let array = frame.array;
    let first_row = rows.len();
    // SAFETY: the second buffer has one view for each row up to the end.
    let views = unsafe { array.buffer(1, frame.end(), 16) };
    let views = views.ok_or_else(|| damaged(first_row, "it has no views"))?.as_chunks::<16>().0;
    // Validity, views, text buffers, and their sizes.
    let num_texts = array.num_buffers().saturating_sub(3);
    // SAFETY: the last buffer has the size of each text buffer.
    let sizes = unsafe { integers(array, num_texts + 2, num_texts, b'l') };
    let sizes = sizes.ok_or_else(|| damaged(first_row, "it has no sizes of buffers"))?;
    let mut buffers = Vec::with_capacity(num_texts);
    for index in 0..num_texts {
        // SAFETY: the array says that the buffer has this size.
        let buffer = sizes(index).and_then(|size| unsafe { array.buffer(index + 2, size, 1) });
        buffers.push(buffer.ok_or_else(|| damaged(first_row, "a text buffer is missing"))?);
    }

    frame.append(py, rows, |place| {
        let text = || {
            let view = views.get(place)?;
            let [len, _, buffer, start] = std::array::from_fn(|index| integer(b'i', view, index));
            let len = len?;
            if len <= MAX_INLINE {
                return view.get(4..4 + len);
            }
            buffers.get(buffer?)?.get(start?..start?.checked_add(len)?)
        };
        text().map(Some).ok_or("its view is outside the text")
    })
}

/// Texts that are given as indices into a dictionary.
fn append_indexed<'a>(
    py: Python<'_>,
    format: &[u8],
    array: &'a ArrowArray,
    entries: &[NullableText<'a>],
    rows: &mut RowSink<'a, '_>,
) -> PyResult<()> {
    let &[index @ (b'c' | b'C' | b's' | b'S' | b'i' | b'I' | b'l' | b'L')] = format else {
        return Err(wrong_type(format));
    };
    let frame = Frame::new(array, true, rows.len())?;
    // SAFETY: the second buffer has one index for each row up to the end.
    let indices = unsafe { integers(array, 1, frame.end(), index) };
    let indices = indices.ok_or_else(|| damaged(rows.len(), "it has no indices"))?;
    frame.append(py, rows, |place| {
        let entry = indices(place).and_then(|entry| entries.get(entry));
        entry.copied().ok_or("its index is outside the dictionary")
    })
}

/// The first `len` integers of a buffer, of the type that a format names; `None` if the buffer is missing and `len` is
/// not 0. Each by its index: `None` if it is negative, or is not there.
///
/// # Safety
/// As [`ArrowArray::buffer`].
unsafe fn integers(
    array: &ArrowArray,
    index: usize,
    len: usize,
    format: u8,
) -> Option<impl Fn(usize) -> Option<usize>> {
    let width = match format {
        b'c' | b'C' => 1,
        b's' | b'S' => 2,
        b'i' | b'I' => 4,
        _ => 8,
    };
    // SAFETY: as the caller promises.
    let bytes = unsafe { array.buffer(index, len, width) }?;
    Some(move |index| integer(format, bytes, index))
}

#[inline]
fn integer(format: u8, bytes: &[u8], index: usize) -> Option<usize> {
    fn item<const N: usize>(bytes: &[u8], index: usize) -> Option<[u8; N]> {
        bytes.as_chunks().0.get(index).copied()
    }
    match format {
        b'c' => i8::from_ne_bytes(item(bytes, index)?).try_into().ok(),
        b'C' => Some(u8::from_ne_bytes(item(bytes, index)?).into()),
        b's' => i16::from_ne_bytes(item(bytes, index)?).try_into().ok(),
        b'S' => Some(u16::from_ne_bytes(item(bytes, index)?).into()),
        b'i' => i32::from_ne_bytes(item(bytes, index)?).try_into().ok(),
        b'I' => u32::from_ne_bytes(item(bytes, index)?).try_into().ok(),
        b'l' => i64::from_ne_bytes(item(bytes, index)?).try_into().ok(),
        _ => u64::from_ne_bytes(item(bytes, index)?).try_into().ok(),
    }
}

/// The column is not what its type says.
fn damaged(row: usize, what: &str) -> PyErr {
    invalid(format!("text {row}: the Arrow column is damaged: {what}"))
}

/// The column holds something other than texts.
fn wrong_type(format: &[u8]) -> PyErr {
    let name = match format {
        b"b" => "booleans",
        b"c" | b"C" | b"s" | b"S" | b"i" | b"I" | b"l" | b"L" => "integers",
        b"e" | b"f" | b"g" => "floats",
        b"+s" => "structs or the columns of a table: choose one column",
        b"+l" | b"+L" | b"+vl" | b"+vL" => "lists: token ids are decoded with decode_batch()",
        b"+r" => "runs: decode them first",
        [b'w', ..] => "binary of one width",
        [b't', ..] => "dates or times",
        _ => "values",
    };
    let format = String::from_utf8_lossy(format);
    type_error(format!("an Arrow column of texts must hold strings or binary, not {name} (format {format:?})"))
}
