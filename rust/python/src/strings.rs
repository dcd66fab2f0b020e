//! Arrays of strings inside a GGUF file, without a Python object for each string.

use ggtok_core::{StringIndex, Strings, StringsError};
use pyo3::exceptions::{PyEOFError, PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

/// The strings of one GGUF array, as positions in the bytes of the file.
#[pyclass(frozen, sequence, module = "ggtok._ggtok")]
pub struct StringArray {
    data: PyBackedBytes,
    index: StringIndex,
}

impl StringArray {
    /// The strings as the core takes them.
    pub fn view(&self) -> Strings<'_> {
        self.index.view(&self.data)
    }
}

#[pymethods]
impl StringArray {
    /// Byte offset behind the array.
    #[getter]
    fn end(&self) -> usize {
        self.index.end()
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<&[u8]> {
        let from_front = if index < 0 { index.checked_add_unsigned(self.index.len()) } else { Some(index) };
        from_front
            .and_then(|index| self.view().get(usize::try_from(index).ok()?))
            .ok_or_else(|| PyIndexError::new_err("string array index out of range"))
    }

    /// All strings as bytes objects.
    fn tolist(&self) -> Vec<&[u8]> {
        self.view().iter().collect()
    }
}

/// Finds the `count` strings of the GGUF array whose first length is at `data[offset]`.
///
/// Raises `EOFError(index, offset, needed, left)` if `data` ends too early: string `index` needs `needed` bytes at
/// `offset`, and `left` are there. Raises `OverflowError(index, offset, length)` if a string is longer than llama.cpp
/// allows, or `data` is larger than 4 GiB.
#[pyfunction]
pub fn string_array(data: PyBackedBytes, offset: usize, count: usize, big_endian: bool) -> PyResult<StringArray> {
    match StringIndex::length_prefixed(&data, offset, count, big_endian) {
        Ok(index) => Ok(StringArray { data, index }),
        Err(StringsError::Truncated { index, offset, needed, left }) => {
            Err(PyEOFError::new_err((index, offset, needed, left)))
        }
        Err(StringsError::TooLong { index, offset, len }) => Err(PyOverflowError::new_err((index, offset, len))),
        Err(_) => Err(PyOverflowError::new_err((0, offset, data.len()))),
    }
}
