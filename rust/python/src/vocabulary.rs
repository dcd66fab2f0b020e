//! What a vocabulary holds: its kind, settings and tokens, one or all at once, and problems with its merges.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use ggtok_core::TokenId;
use ggtok_core::vocab::{Repair, SLOTS};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList};

use crate::arguments::token_id;
use crate::errors::Raise;
use crate::run::{check_signals, list, quick, run, run_long};
use crate::tokenizer::Tokenizer;

#[pyfunction]
pub fn core_of(py: Python<'_>, tokenizer: &Tokenizer) -> Tokenizer {
    let Tokenizer { core, metadata, .. } = tokenizer;
    Tokenizer { core: Arc::clone(core), metadata: metadata.clone_ref(py), explainer: OnceLock::new() }
}

#[pyfunction]
pub fn vocab_size(tokenizer: &Tokenizer) -> usize {
    tokenizer.core.vocabulary().len()
}

#[pyfunction]
pub fn list_size(tokenizer: &Tokenizer) -> PyResult<usize> {
    tokenizer.core.vocabulary().list_len().map_err(Raise::raise)
}

#[pyfunction]
pub fn kind(tokenizer: &Tokenizer) -> (&'static str, &'static str, Option<&'static str>) {
    let vocabulary = tokenizer.core.vocabulary();
    (vocabulary.kind().name(), vocabulary.model(), vocabulary.pre().map(|pre| pre.name))
}

#[pyfunction]
pub fn special_ids<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyDict>> {
    let special = tokenizer.core.vocabulary().special();
    SLOTS.iter().map(|slot| (slot.name, (slot.id)(special))).into_py_dict(py)
}

#[pyfunction]
pub fn eog_ids(tokenizer: &Tokenizer) -> Vec<TokenId> {
    tokenizer.core.vocabulary().eog().to_vec()
}

#[pyfunction]
pub fn repaired_ids(tokenizer: &Tokenizer) -> Vec<(&'static str, Option<&'static str>, TokenId)> {
    let row = |repair: &Repair| match *repair {
        Repair::DefaultOutOfRange { name, id } => Some(("default", Some(name), id)),
        Repair::FoundByText { name, id, .. } => Some(("role", Some(name), id)),
        Repair::Control { id, .. } | Repair::UserDefined { id, .. } => Some(("marked", None, id)),
        Repair::NotEnd { id, .. } => Some(("not end", None, id)),
        _ => None,
    };
    tokenizer.core.vocabulary().repairs().iter().filter_map(row).collect()
}

#[pyfunction]
pub fn settings<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyDict>> {
    tokenizer.core.vocabulary().settings().flags().into_py_dict(py)
}

#[pyfunction]
pub fn canonical_bytes<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = quick(|| tokenizer.core.vocabulary().canonical_bytes())?;
    Ok(PyBytes::new(py, &bytes))
}

#[pyfunction]
pub fn token<'py>(tokenizer: &Tokenizer, id: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyBytes>, f32, u16)> {
    let vocabulary = tokenizer.core.vocabulary();
    let py = id.py();
    let id = token_id(id, vocabulary.len())?;
    Ok((PyBytes::new(py, vocabulary.text(id)), vocabulary.score(id), vocabulary.attributes(id).bits()))
}

#[pyfunction]
pub fn id_of_text(tokenizer: &Tokenizer, text: &[u8]) -> PyResult<Option<TokenId>> {
    quick(|| tokenizer.core.vocabulary().id(text))
}

#[pyfunction]
pub fn pieces<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    // Asking for the first piece makes all of them, so it goes through `run`.
    if tokenizer.core.vocabulary().is_empty() {
        return Ok(PyList::empty(py));
    }
    run(py, 0, || tokenizer.core.piece(0, true).map(drop))?;
    each(py, tokenizer, |id| tokenizer.core.piece(id, true).unwrap_or_default())
}

#[pyfunction]
pub fn texts<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    let vocabulary = tokenizer.core.vocabulary();
    each(py, tokenizer, |id| vocabulary.text(id))
}

fn each<'py, 'a>(
    py: Python<'py>,
    tokenizer: &'a Tokenizer,
    bytes: impl Fn(TokenId) -> &'a [u8],
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for id in 0..list_size(tokenizer)? {
        check_signals(py, id)?;
        list.append(PyBytes::new(py, bytes(id as TokenId)))?;
    }
    Ok(list)
}

#[pyfunction]
pub fn scores<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyBytes>> {
    let vocabulary = tokenizer.core.vocabulary();
    let scores = (0..list_size(tokenizer)?).map(|id| vocabulary.score(id as TokenId));
    Ok(PyBytes::new(py, &scores.flat_map(f32::to_ne_bytes).collect::<Vec<u8>>()))
}

#[pyfunction]
pub fn attributes<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    let vocabulary = tokenizer.core.vocabulary();
    list(py, (0..list_size(tokenizer)?).map(|id| vocabulary.attributes(id as TokenId).bits()))
}

#[pyfunction]
pub fn charsmap<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> Bound<'py, PyBytes> {
    PyBytes::new(py, tokenizer.core.vocabulary().charsmap())
}

#[pyfunction]
pub fn id_of_piece(tokenizer: &Tokenizer, piece: &[u8]) -> PyResult<Option<TokenId>> {
    list_size(tokenizer)?;
    quick(|| tokenizer.core.id_of_piece(piece))?.map_err(Raise::raise)
}

#[pyfunction]
pub fn ids_with_prefix(tokenizer: &Tokenizer, prefix: &[u8]) -> PyResult<Vec<TokenId>> {
    list_size(tokenizer)?;
    quick(|| tokenizer.core.ids_with_prefix(prefix).map(<[_]>::to_vec))?.map_err(Raise::raise)
}

#[pyfunction]
pub fn merges(tokenizer: &Tokenizer) -> Vec<&[u8]> {
    tokenizer.merges().map_or_else(Vec::new, |merges| merges.iter().collect())
}

#[pyfunction]
pub fn unreachable_tokens(py: Python<'_>, tokenizer: &Tokenizer) -> PyResult<Vec<TokenId>> {
    let vocabulary = tokenizer.core.vocabulary();
    let merges = tokenizer.merges();
    run_long(py, || Ok::<_, Infallible>(ggtok_core::inspect::unreachable_tokens(vocabulary, merges)))
}

#[pyfunction]
pub fn unused_merges(py: Python<'_>, tokenizer: &Tokenizer) -> PyResult<Vec<usize>> {
    let Some(merges) = tokenizer.merges() else { return Ok(Vec::new()) };
    let vocabulary = tokenizer.core.vocabulary();
    run_long(py, || Ok::<_, Infallible>(ggtok_core::inspect::unused_merges(vocabulary, merges)))
}
