//! numpy arrays: made and read in one place, and only when numpy is known to be installed.
//!
//! The `numpy` crate fetches numpy's C API when it first makes an array, and panics if that fails: numpy may not be
//! installed, or Ctrl-C may arrive during its import. [`Arrays::ready`] does the same first, with errors instead.
//!
//! It imports numpy on a separate thread, which signals do not interrupt. An interrupted import could not be repeated
//! in the same process: "cannot load module more than once". `KeyboardInterrupt` is raised right after the import.

use std::thread;

use ggtok_core::TokenId;
use numpy::{Element, PyArray1};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyImportError, PyModuleNotFoundError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::bytes::with_capacity;
use crate::errors::python;
use crate::run::quick;

static READY: PyOnceLock<()> = PyOnceLock::new();

/// Proof that numpy is there.
#[derive(Clone, Copy)]
pub(crate) struct Arrays<'py>(Python<'py>);

impl<'py> Arrays<'py> {
    /// Imports numpy. To be called before any work whose result becomes an array.
    #[inline]
    pub(crate) fn ready(py: Python<'py>) -> PyResult<Self> {
        READY.get_or_try_init(py, || prepare(py)).map(|()| Self(py))
    }

    /// An array that takes over the memory of `values`.
    #[inline]
    pub(crate) fn array<T: Element>(self, values: Vec<T>) -> PyResult<Bound<'py, PyArray1<T>>> {
        quick(|| PyArray1::from_vec(self.0, values))
    }
}

#[pyfunction]
pub fn import_numpy(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    Arrays::ready(py)?;
    py.import(intern!(py, "numpy"))
}

/// The items of an int32 array with one dimension; `None` for anything else.
pub(crate) fn int32(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<TokenId>>> {
    let Ok(array) = PyBuffer::<TokenId>::get(object) else { return Ok(None) };
    // Another byte order has a sign before the letter.
    if array.dimensions() != 1 || array.format().count_bytes() != 1 {
        return Ok(None);
    }
    let mut ids = with_capacity(array.item_count())?;
    ids.resize(array.item_count(), 0);
    array.copy_to_slice(object.py(), &mut ids)?;
    Ok(Some(ids))
}

#[cold]
fn prepare(py: Python<'_>) -> PyResult<()> {
    // Imported, or being imported.
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    if !modules.contains(intern!(py, "numpy"))? {
        let import =
            || Python::attach(|py| py.import(intern!(py, "numpy")).map(|_| ()).map_err(|error| missing(py, error)));
        // If no thread can be started, it is imported below.
        let thread = || thread::scope(|scope| thread::Builder::new().spawn_scoped(scope, import).ok()?.join().ok());
        py.detach(thread).transpose()?;
        py.check_signals()?;
    }
    // After this no Python code runs any more: what is left reads a capsule, and cannot be interrupted.
    numpy::get_array_module(py).map_err(|error| missing(py, error))?;
    Arrays(py).array(Vec::<TokenId>::new())?;
    Ok(())
}

/// An error of an import, with what to do about it.
fn missing(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyImportError>(py) {
        return error;
    }
    let is_absent = error.is_instance_of::<PyModuleNotFoundError>(py);
    let problem = if is_absent { "is not installed: pip install numpy" } else { "cannot be imported" };
    let raised = python::DependencyError::new_err(format!("arrays need numpy, which {problem}"));
    raised.set_cause(py, Some(error));
    raised
}
