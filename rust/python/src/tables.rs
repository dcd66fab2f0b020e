//! The tables of the core, for the Python layer, the documentation and the script that watches llama.cpp.

use ggtok_core::tables;
use ggtok_core::vocab::{FAMILIES, FLAGS, PRE_TOKENIZERS, SLOTS};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

#[pyfunction]
pub fn pretokenizers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for row in PRE_TOKENIZERS {
        let flags = PyDict::new(py);
        flags.set_item("family", row.family.name)?;
        flags.set_item("clean_spaces", row.clean_spaces)?;
        flags.set_item("ignore_merges", row.ignore_merges)?;
        flags.set_item("add_bos", row.add_bos)?;
        flags.set_item("add_sep", row.add_sep)?;
        flags.set_item("escape_whitespaces", row.escape_whitespaces)?;
        flags.set_item("lowercase", row.lowercase)?;
        flags.set_item("has_bos", row.has_bos)?;
        all.set_item(row.name, flags)?;
    }
    Ok(all)
}

#[pyfunction]
pub fn families(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for family in FAMILIES {
        let row = PyDict::new(py);
        row.set_item("patterns", family.patterns)?;
        row.set_item("byte_encode", family.byte_encode)?;
        all.set_item(family.name, row)?;
    }
    Ok(all)
}

#[pyfunction]
pub fn special_keys(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    SLOTS.iter().flat_map(|slot| slot.given).map(|given| (given.name, given.key)).into_py_dict(py)
}

#[pyfunction]
pub fn flag_keys(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    FLAGS.iter().map(|flag| (flag.name, flag.key)).into_py_dict(py)
}

#[pyfunction]
pub fn loader_texts(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    tables::loader_texts().into_py_dict(py)
}

#[pyfunction]
pub fn models(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    tables::models().map(|(name, kind)| (name, kind.name())).into_py_dict(py)
}
