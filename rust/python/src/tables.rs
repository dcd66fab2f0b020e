//! The tables of the core, for the Python layer, documentation and the watch on llama.cpp.

use ggtok_core::{FAMILIES, FLAGS, PRE_TOKENIZERS, SLOTS, tables};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `tokenizer.ggml.pre` by name: its family and flags.
#[pyfunction]
pub fn pretokenizers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for row in PRE_TOKENIZERS {
        let flags = PyDict::new(py);
        flags.set_item("family", row.family)?;
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

/// Pattern families by name: their patterns and whether they spell bytes.
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

/// The keys that give the ids of special tokens, without `tokenizer.ggml.` at their start, by name.
#[pyfunction]
pub fn special_keys(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for given in SLOTS.iter().flat_map(|slot| slot.given) {
        all.set_item(given.name, given.key)?;
    }
    Ok(all)
}

/// The keys that set flags, without `tokenizer.ggml.` at their start, by the name of the flag.
#[pyfunction]
pub fn flag_keys(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for flag in FLAGS {
        all.set_item(flag.name, flag.key)?;
    }
    Ok(all)
}

/// The texts that the loader finds special tokens by, per slot.
#[pyfunction]
pub fn loader_texts(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (slot, texts) in tables::loader_texts() {
        all.set_item(slot, texts)?;
    }
    Ok(all)
}

/// `tokenizer.ggml.model` by name: the kind of vocabulary.
#[pyfunction]
pub fn models(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for (name, kind) in tables::models() {
        all.set_item(name, kind.name())?;
    }
    Ok(all)
}
