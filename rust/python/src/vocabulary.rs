//! A vocabulary as a whole: all pieces, texts, scores and attributes at once, look-ups by piece, and problems.

use ggtok_core::TokenId;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::run::{check_signals, quick, run, run_long};
use crate::tokenizer::Tokenizer;

#[doc = doc!(pieces)]
#[pyfunction]
pub fn pieces<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> PyResult<Bound<'py, PyList>> {
    // The first piece is asked for with a guard, since all pieces are made then.
    if tokenizer.core.vocabulary().is_empty() {
        return Ok(PyList::empty(py));
    }
    run(py, 0, || tokenizer.core.piece(0, true).map(drop))?;
    each(py, tokenizer, |id| tokenizer.core.piece(id, true).unwrap_or_default())
}

#[doc = doc!(texts)]
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
    for id in 0..tokenizer.core.vocabulary().len() {
        check_signals(py, id)?;
        list.append(PyBytes::new(py, bytes(id as TokenId)))?;
    }
    Ok(list)
}

#[doc = doc!(scores)]
#[pyfunction]
pub fn scores<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> Bound<'py, PyBytes> {
    let vocabulary = tokenizer.core.vocabulary();
    let bytes: Vec<u8> = (0..vocabulary.len()).flat_map(|id| vocabulary.score(id as TokenId).to_ne_bytes()).collect();
    PyBytes::new(py, &bytes)
}

#[doc = doc!(attributes)]
#[pyfunction]
pub fn attributes<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> Bound<'py, PyBytes> {
    let vocabulary = tokenizer.core.vocabulary();
    let bytes: Vec<u8> =
        (0..vocabulary.len()).flat_map(|id| vocabulary.attributes(id as TokenId).bits().to_ne_bytes()).collect();
    PyBytes::new(py, &bytes)
}

#[doc = doc!(charsmap)]
#[pyfunction]
pub fn charsmap<'py>(py: Python<'py>, tokenizer: &Tokenizer) -> Bound<'py, PyBytes> {
    PyBytes::new(py, tokenizer.core.vocabulary().charsmap())
}

#[doc = doc!(id_of_piece)]
#[pyfunction]
pub fn id_of_piece(tokenizer: &Tokenizer, piece: &[u8]) -> PyResult<Option<TokenId>> {
    quick(|| tokenizer.core.id_of_piece(piece))
}

#[doc = doc!(ids_with_prefix)]
#[pyfunction]
pub fn ids_with_prefix(tokenizer: &Tokenizer, prefix: &[u8]) -> PyResult<Vec<TokenId>> {
    quick(|| tokenizer.core.ids_with_prefix(prefix).to_vec())
}

#[doc = doc!(merges)]
#[pyfunction]
pub fn merges(tokenizer: &Tokenizer) -> Vec<&[u8]> {
    tokenizer.merges().map_or_else(Vec::new, |merges| merges.iter().collect())
}

#[doc = doc!(unreachable_tokens)]
#[pyfunction]
pub fn unreachable_tokens(py: Python<'_>, tokenizer: &Tokenizer) -> PyResult<Vec<TokenId>> {
    let (vocabulary, merges) = (tokenizer.core.vocabulary(), tokenizer.merges());
    run_long(py, || Ok::<_, std::convert::Infallible>(ggtok_core::unreachable_tokens(vocabulary, merges)))
}

#[doc = doc!(unused_merges)]
#[pyfunction]
pub fn unused_merges(py: Python<'_>, tokenizer: &Tokenizer) -> PyResult<Vec<usize>> {
    let (vocabulary, merges) = (tokenizer.core.vocabulary(), tokenizer.merges());
    let unused = || merges.map_or_else(Vec::new, |merges| ggtok_core::unused_merges(vocabulary, merges));
    run_long(py, || Ok::<_, std::convert::Infallible>(unused()))
}
