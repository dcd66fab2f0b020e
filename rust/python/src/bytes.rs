//! Buffers as large as a text. Running out of memory is a `MemoryError`.

use pyo3::exceptions::{PyMemoryError, PyUnicodeDecodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

/// An empty vector with room for `capacity` items.
pub(crate) fn with_capacity<T>(capacity: usize) -> PyResult<Vec<T>> {
    let mut vector = Vec::new();
    try_reserve(&mut vector, capacity)?;
    Ok(vector)
}

/// Makes room for `additional` more items.
pub(crate) fn try_reserve<T>(vector: &mut Vec<T>, additional: usize) -> PyResult<()> {
    vector.try_reserve(additional).map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// A Python `str`. The error handler `errors` decides about bytes that are not UTF-8.
pub(crate) fn str_of<'py>(py: Python<'py>, bytes: &[u8], errors: &str) -> PyResult<Bound<'py, PyString>> {
    match PyString::from_bytes(py, bytes) {
        Err(error) if error.is_instance_of::<PyUnicodeDecodeError>(py) => {
            let text = bytes_of(py, bytes)?.call_method1(intern!(py, "decode"), ("utf-8", errors))?;
            Ok(text.cast_into::<PyString>()?)
        }
        text => text,
    }
}

/// A Python `bytes`.
pub(crate) fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |new| {
        new.copy_from_slice(bytes);
        Ok(())
    })
}

/// Numbers as a Python `bytes`, each little endian.
pub(crate) fn little_endian<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    numbers: &[T],
    bytes: fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, numbers.len() * N, |new| {
        for (place, &number) in new.as_chunks_mut::<N>().0.iter_mut().zip(numbers) {
            *place = bytes(number);
        }
        Ok(())
    })
}
