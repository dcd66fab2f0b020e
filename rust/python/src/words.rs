//! Words of a text.

use ggtok_core::inspect::count_words as core_count_words;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::run::run;

#[doc = doc!(count_words)]
#[pyfunction]
pub fn count_words(py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<usize> {
    let text = text.to_str()?;
    run(py, text.len(), || Ok::<_, std::convert::Infallible>(core_count_words(text)))
}
