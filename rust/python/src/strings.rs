//! Arrays of strings inside a GGUF file, without a Python object for each string.

use ggtok_core::{StringIndex, Strings};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::run::run;

/// The strings of one GGUF array, as positions in the bytes of the file.
#[pyclass(frozen, sequence, module = "ggtok._ggtok")]
pub struct StringArray {
    data: PyBackedBytes,
    index: StringIndex,
}

impl StringArray {
    /// The strings for the core.
    pub fn view(&self) -> Strings<'_> {
        self.index.view(&self.data)
    }
}

#[pymethods]
impl StringArray {
    /// The byte offset of the array's end.
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

/// Finds the `count` strings of a GGUF array whose first length is at `data[offset]`.
///
/// Raises `EOFError(index, offset, needed, left)` if `data` ends too early: string `index` needs `needed` bytes at
/// `offset`, and `left` are there. Raises `OverflowError(index, offset, length)` if a string is longer than llama.cpp
/// allows, or `data` is larger than 4 GiB (then with `index` and `offset` 0).
#[pyfunction]
pub fn string_array(
    py: Python<'_>,
    data: PyBackedBytes,
    offset: usize,
    count: usize,
    big_endian: bool,
) -> PyResult<StringArray> {
    let index = run(py, 0, || StringIndex::length_prefixed(&data, offset, count, big_endian))?;
    Ok(StringArray { data, index })
}
