//! Columns of texts: utf8, large_utf8, string_view, binary, large_binary, binary_view, null, and dictionaries of these.
//!
//! The texts stay where they are, in the memory of the column. Offsets, views and indices are checked before they are
//! used; only the size of the text memory of a type with offsets is not known to the interface, so it is believed.
//!
//! Time: O(rows).

use pyo3::exceptions::{PyImportError, PyMemoryError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::ffi::{ARRAY, Array, SCHEMA, STREAM, Schema, Stream, take};
use crate::errors::arrow_error;
use crate::run::check_signals;

/// The longest text inside a view itself.
const MAX_INLINE: usize = 12;

/// A column of texts, in one or more parts.
pub(crate) struct Column {
    schema: Schema,
    parts: Vec<Array>,
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
            Self { schema: take(&pair.get_item(0)?, SCHEMA)?, parts: vec![take(&pair.get_item(1)?, ARRAY)?] }
        } else if let Some(stream) = call(object, intern!(py, "__arrow_c_stream__"))? {
            Self::read(py, take(&stream, STREAM)?)?
        } else {
            return Ok(None);
        };
        let texts = column.schema.dictionary().unwrap_or(&column.schema);
        if Layout::of(texts.format()).is_none() {
            return Err(wrong_type(texts.format()));
        }
        Ok(Some(column))
    }

    /// Reads a stream to its end. Its functions may need the GIL on other threads, so they are called without it.
    fn read(py: Python<'_>, mut stream: Stream) -> PyResult<Self> {
        let failed = |message: String| arrow_error(format!("the Arrow stream of the texts failed: {message}"));
        let schema = py.detach(|| stream.schema()).map_err(failed)?;
        let mut parts = Vec::new();
        while let Some(part) = py.detach(|| stream.next()).map_err(failed)? {
            py.check_signals()?;
            parts.push(part);
        }
        Ok(Self { schema, parts })
    }

    /// The bytes of every row; `None` for a null.
    ///
    /// # Errors
    /// The column is damaged; the first such row is named.
    pub(crate) fn rows(&self, py: Python<'_>) -> PyResult<Vec<Option<&[u8]>>> {
        let mut rows = Vec::new();
        for part in &self.parts {
            match self.schema.dictionary() {
                None => append(py, self.schema.format(), part, &mut rows)?,
                Some(texts) => {
                    let mut entries = Vec::new();
                    let dictionary = part.dictionary().ok_or_else(|| damaged(rows.len(), "it has no dictionary"))?;
                    append(py, texts.format(), dictionary, &mut entries)?;
                    append_indexed(py, self.schema.format(), part, &entries, &mut rows)?;
                }
            }
        }
        Ok(rows)
    }
}

/// What a method returns; `None` where the object has no such method, or it needs a package that is not there: then
/// the object is iterated, as any other is.
fn call<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, pyo3::types::PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    // Looked up in the class, as Python looks up its own protocols.
    if !object.get_type().hasattr(name)? {
        return Ok(None);
    }
    match object.call_method0(name) {
        Err(error) if error.is_instance_of::<PyImportError>(object.py()) => Ok(None),
        result => result.map(Some),
    }
}

/// How texts are laid out.
#[derive(Clone, Copy)]
enum Layout {
    /// Every row is null.
    Null,
    /// 32-bit offsets into one buffer.
    Offsets,
    /// 64-bit offsets into one buffer.
    LargeOffsets,
    /// Short texts inside views of 16 bytes, long ones in any number of buffers.
    Views,
}

impl Layout {
    fn of(format: &[u8]) -> Option<Self> {
        match format {
            b"n" => Some(Self::Null),
            b"u" | b"z" => Some(Self::Offsets),
            b"U" | b"Z" => Some(Self::LargeOffsets),
            b"vu" | b"vz" => Some(Self::Views),
            _ => None,
        }
    }
}

/// The rows of an array: which they are, and which are null.
struct Frame<'a> {
    len: usize,
    offset: usize,
    validity: Option<&'a [[u8; 1]]>,
}

impl<'a> Frame<'a> {
    fn of(array: &'a Array, has_validity: bool, row: usize) -> PyResult<Self> {
        let not_negative = |number: i64| usize::try_from(number).map_err(|_| damaged(row, "a length is negative"));
        let (len, offset) = (not_negative(array.len)?, not_negative(array.offset)?);
        let Some(end) = len.checked_add(offset).filter(|&end| end < isize::MAX as usize) else {
            return Err(damaged(row, "its length is beyond memory"));
        };
        let validity = if has_validity {
            // SAFETY: the first buffer of these types has a bit for each row up to `end`.
            unsafe { array.buffer(0, end.div_ceil(8)) }.filter(|bits| !bits.is_empty())
        } else {
            None
        };
        Ok(Self { len, offset, validity })
    }

    fn end(&self) -> usize {
        self.offset + self.len
    }

    fn is_null(&self, index: usize) -> bool {
        let at = self.offset + index;
        self.validity.is_some_and(|bits| bits[at / 8][0] >> (at % 8) & 1 == 0)
    }

    /// Makes room for the rows.
    fn reserve<T>(&self, rows: &mut Vec<T>) -> PyResult<()> {
        rows.try_reserve(self.len)
            .map_err(|_| PyMemoryError::new_err(format!("a column of {} rows does not fit into memory", self.len)))
    }
}

/// Appends the texts of an array.
fn append<'a>(py: Python<'_>, format: &[u8], array: &'a Array, rows: &mut Vec<Option<&'a [u8]>>) -> PyResult<()> {
    let layout = Layout::of(format).ok_or_else(|| wrong_type(format))?;
    let frame = Frame::of(array, !matches!(layout, Layout::Null), rows.len())?;
    frame.reserve(rows)?;
    match layout {
        Layout::Null => {
            rows.extend((0..frame.len).map(|_| None));
            Ok(())
        }
        Layout::Offsets => append_between::<4>(py, &frame, array, |offset| i32::from_ne_bytes(offset).into(), rows),
        Layout::LargeOffsets => append_between::<8>(py, &frame, array, i64::from_ne_bytes, rows),
        Layout::Views => append_viewed(py, &frame, array, rows),
    }
}

/// Texts between offsets of `N` bytes.
fn append_between<'a, const N: usize>(
    py: Python<'_>,
    frame: &Frame<'a>,
    array: &'a Array,
    number: impl Fn([u8; N]) -> i64,
    rows: &mut Vec<Option<&'a [u8]>>,
) -> PyResult<()> {
    if frame.len == 0 {
        return Ok(());
    }
    let first_row = rows.len();
    // SAFETY: the second buffer has one offset more than there are rows up to the end.
    let offsets = unsafe { array.buffer::<N>(1, frame.end() + 1) };
    let offsets = &offsets.ok_or_else(|| damaged(first_row, "it has no offsets"))?[frame.offset..];
    let ascending = |pair: &[[u8; N]]| {
        let (start, end) = (number(pair[0]), number(pair[1]));
        usize::try_from(start).ok().zip(usize::try_from(end).ok()).filter(|(start, end)| start <= end)
    };
    let mut last = 0;
    for (index, pair) in offsets.windows(2).enumerate() {
        check_signals(py, index)?;
        let (_, end) = ascending(pair).ok_or_else(|| damaged(first_row + index, "its offsets descend"))?;
        last = end;
    }

    // SAFETY: the third buffer reaches up to the last offset.
    let bytes =
        unsafe { array.buffer::<1>(2, last) }.ok_or_else(|| damaged(first_row, "it has no text"))?.as_flattened();
    for (index, pair) in offsets.windows(2).enumerate() {
        check_signals(py, index)?;
        let text = ascending(pair).and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default();
        rows.push((!frame.is_null(index)).then_some(text));
    }
    Ok(())
}

/// Texts in views: a length of 4 bytes, then up to 12 bytes of text, or 4 bytes of it, the number of a buffer and an
/// offset.
fn append_viewed<'a>(
    py: Python<'_>,
    frame: &Frame<'a>,
    array: &'a Array,
    rows: &mut Vec<Option<&'a [u8]>>,
) -> PyResult<()> {
    let first_row = rows.len();
    // SAFETY: the second buffer has one view for each row up to the end.
    let views = unsafe { array.buffer::<16>(1, frame.end()) };
    let views = views.ok_or_else(|| damaged(first_row, "it has no views"))?;
    // Validity, views, text buffers, and their sizes.
    let num_texts = array.num_buffers().saturating_sub(3);
    // SAFETY: the last buffer has the size of each text buffer.
    let sizes = unsafe { array.buffer::<8>(num_texts + 2, num_texts) };
    let sizes = sizes.ok_or_else(|| damaged(first_row, "it has no sizes of buffers"))?;
    let mut buffers = Vec::with_capacity(num_texts);
    for (index, &size) in sizes.iter().enumerate() {
        let size = usize::try_from(i64::from_ne_bytes(size)).ok();
        // SAFETY: the array says that the buffer has this size.
        let buffer = size.and_then(|size| unsafe { array.buffer::<1>(index + 2, size) });
        buffers.push(buffer.ok_or_else(|| damaged(first_row, "a text buffer is missing"))?.as_flattened());
    }

    for (index, view) in views[frame.offset.min(views.len())..].iter().enumerate() {
        check_signals(py, index)?;
        if frame.is_null(index) {
            rows.push(None);
            continue;
        }
        let number = |at: usize| {
            let number: [u8; 4] = std::array::from_fn(|byte| view[at + byte]);
            usize::try_from(i32::from_ne_bytes(number)).ok()
        };
        let text = || {
            let len = number(0)?;
            if len <= MAX_INLINE {
                return view.get(4..4 + len);
            }
            let (buffer, start) = (number(8)?, number(12)?);
            buffers.get(buffer)?.get(start..start.checked_add(len)?)
        };
        rows.push(Some(text().ok_or_else(|| damaged(first_row + index, "its view is outside the text"))?));
    }
    Ok(())
}

/// Texts that are given as indices into a dictionary.
fn append_indexed<'a>(
    py: Python<'_>,
    format: &[u8],
    array: &'a Array,
    entries: &[Option<&'a [u8]>],
    rows: &mut Vec<Option<&'a [u8]>>,
) -> PyResult<()> {
    let frame = Frame::of(array, true, rows.len())?;
    frame.reserve(rows)?;
    match format {
        b"c" => look_up::<1>(py, &frame, array, |index| i8::from_ne_bytes(index).into(), entries, rows),
        b"C" => look_up::<1>(py, &frame, array, |index| u8::from_ne_bytes(index).into(), entries, rows),
        b"s" => look_up::<2>(py, &frame, array, |index| i16::from_ne_bytes(index).into(), entries, rows),
        b"S" => look_up::<2>(py, &frame, array, |index| u16::from_ne_bytes(index).into(), entries, rows),
        b"i" => look_up::<4>(py, &frame, array, |index| i32::from_ne_bytes(index).into(), entries, rows),
        b"I" => look_up::<4>(py, &frame, array, |index| u32::from_ne_bytes(index).into(), entries, rows),
        b"l" => look_up::<8>(py, &frame, array, i64::from_ne_bytes, entries, rows),
        // One beyond all 63-bit numbers is negative, so it is no index either.
        b"L" => look_up::<8>(py, &frame, array, i64::from_ne_bytes, entries, rows),
        _ => Err(wrong_type(format)),
    }
}

fn look_up<'a, const N: usize>(
    py: Python<'_>,
    frame: &Frame<'a>,
    array: &'a Array,
    number: impl Fn([u8; N]) -> i64,
    entries: &[Option<&'a [u8]>],
    rows: &mut Vec<Option<&'a [u8]>>,
) -> PyResult<()> {
    let first_row = rows.len();
    // SAFETY: the second buffer has one index for each row up to the end.
    let indices = unsafe { array.buffer::<N>(1, frame.end()) };
    let indices = indices.ok_or_else(|| damaged(first_row, "it has no indices"))?;
    for (index, &entry) in indices[frame.offset.min(indices.len())..].iter().enumerate() {
        check_signals(py, index)?;
        let entry = if frame.is_null(index) {
            None
        } else {
            let entry = usize::try_from(number(entry)).ok().and_then(|entry| entries.get(entry));
            *entry.ok_or_else(|| damaged(first_row + index, "its index is outside the dictionary"))?
        };
        rows.push(entry);
    }
    Ok(())
}

/// The column is not what its type says.
fn damaged(row: usize, what: &str) -> PyErr {
    arrow_error(format!("text {row}: the Arrow column is damaged: {what}"))
}

/// The column holds something else than texts.
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
    PyTypeError::new_err(format!(
        "an Arrow column of texts must hold strings or binary, not {name} (format {format:?})"
    ))
}
