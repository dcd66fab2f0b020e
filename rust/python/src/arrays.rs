//! numpy arrays, made in one place and only after numpy is known to be there.
//!
//! The `numpy` crate fetches numpy's C API when it first makes an array, and panics where that fails: numpy may not be
//! installed, or Ctrl-C may arrive during its import. [`Arrays::ready`] does the same first, with errors instead.

use ggtok_core::TokenId;
use numpy::{Element, PyArray1};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors::no_numpy;
use crate::run::quick;

static READY: PyOnceLock<()> = PyOnceLock::new();

/// The proof that numpy is there.
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

#[cold]
fn prepare(py: Python<'_>) -> PyResult<()> {
    // Everything that runs Python code, and so everything that signal handlers can interrupt.
    numpy::get_array_module(py).map_err(|error| {
        if !error.is_instance_of::<PyImportError>(py) {
            return error;
        }
        let raised = no_numpy();
        raised.set_cause(py, Some(error));
        raised
    })?;
    // What is left reads a capsule.
    Arrays(py).array(Vec::<TokenId>::new())?;
    Ok(())
}
