//! Buffers as large as a text, made so that memory that is not enough is a `MemoryError`.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An empty vector with room for `capacity` items.
pub(crate) fn with_capacity<T>(capacity: usize) -> PyResult<Vec<T>> {
    let mut vector = Vec::new();
    try_reserve(&mut vector, capacity)?;
    Ok(vector)
}

/// Makes room for `additional` items more.
pub(crate) fn try_reserve<T>(vector: &mut Vec<T>, additional: usize) -> PyResult<()> {
    vector.try_reserve(additional).map_err(|error| PyMemoryError::new_err(error.to_string()))
}

/// Bytes of Python.
pub(crate) fn bytes_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, bytes.len(), |new| {
        new.copy_from_slice(bytes);
        Ok(())
    })
}

/// Numbers as bytes of Python, each little endian.
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
