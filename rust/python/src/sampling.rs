//! Other ways to cut a text than that of `encode`, and two tokenizers' tokens side by side.

use std::hash::{BuildHasher, RandomState};

use ggtok_core::{AlignError, Sampler, TokenId, align as align_ids};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arguments::{self, encode_options, token_ids};
use crate::errors::{Raise, invalid};
use crate::ints::with_lists;
use crate::run::run;
use crate::tokenizer::Tokenizer;

impl Raise for AlignError {
    fn raise(self) -> PyErr {
        match self {
            Self::Decode { is_second, error } => (usize::from(is_second), error).raise(),
            Self::OutOfMemory => ggtok_core::DecodeError::OutOfMemory.raise(),
            _ => invalid(self.to_string()),
        }
    }
}

/// What is random, and how much: exactly one of both is given. A missing seed is a random one.
type Setting = (Option<f64>, Option<f64>, Option<u64>);

#[pyfunction]
pub(crate) fn sample<'py>(
    tokenizer: &Bound<'py, Tokenizer>,
    text: &Bound<'py, PyAny>,
    setting: Setting,
    add_special: bool,
    parse_special: bool,
    continues: bool,
) -> PyResult<Bound<'py, PyList>> {
    let py = text.py();
    let argument = arguments::text(text)?;
    let text = argument.text();
    let options = encode_options(add_special, parse_special, continues);
    let (alpha, dropout, seed) = setting;
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0));
    let sampler =
        alpha.map_or_else(|| Sampler::dropout(dropout.unwrap_or_default(), seed), |alpha| Sampler::path(alpha, seed));
    let mut sampler = sampler.map_err(Raise::raise)?;
    with_lists(|lists| {
        lists.ids =
            tokenizer.get().work(py, text.as_bytes().len(), |encoder| encoder.sample(text, options, &mut sampler))?;
        lists.list(py)
    })
}

#[pyfunction]
pub(crate) fn n_best(
    tokenizer: &Bound<'_, Tokenizer>,
    text: &Bound<'_, PyAny>,
    n: usize,
    add_special: bool,
    parse_special: bool,
    continues: bool,
) -> PyResult<Vec<(Vec<TokenId>, f64)>> {
    let options = encode_options(add_special, parse_special, continues);
    tokenizer.get().work_on_text(text, |encoder, text| encoder.n_best(text, n, options))
}

/// A pair of ranges, each as its start and end.
type Ranges = ((usize, usize), (usize, usize));

#[doc = doc!(align)]
#[pyfunction]
pub(crate) fn align(
    ids_a: &Bound<'_, PyAny>,
    tok_a: &Bound<'_, Tokenizer>,
    ids_b: &Bound<'_, PyAny>,
    tok_b: &Bound<'_, Tokenizer>,
) -> PyResult<Vec<Ranges>> {
    let ids = |ids, tokenizer: &Tokenizer| token_ids(ids, tokenizer.core.vocabulary().len());
    let a = tok_a.get();
    let b = tok_b.get();
    let py = ids_a.py();
    let ids_a = ids(ids_a, a)?;
    let ids_b = ids(ids_b, b)?;
    let pairs = run(py, ids_a.len() + ids_b.len(), || align_ids((&a.core, &ids_a), (&b.core, &ids_b)))?;
    Ok(pairs.into_iter().map(|(a, b)| ((a.start, a.end), (b.start, b.end))).collect())
}
