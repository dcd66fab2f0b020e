//! What texts use: their words, their tokens, and what a vocabulary needs for them.

use std::collections::HashMap;
use std::convert::Infallible;

use ggtok_core::inspect::{matched, needed, words};
use ggtok_core::vocab::Kind;
use ggtok_core::{NULL_TOKEN, TokenId};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::arguments::{self, encode_options, token_ids};
use crate::batch::encode_batch;
use crate::run::{run, run_long};
use crate::tokenizer::Tokenizer;

#[pyfunction]
pub(crate) fn word_counts<'a>(py: Python<'_>, text: &'a Bound<'_, PyString>) -> PyResult<HashMap<&'a str, usize>> {
    let text = text.to_str()?;
    run(py, text.len(), || {
        let mut counts = HashMap::new();
        words(text).for_each(|word| *counts.entry(word).or_default() += 1);
        Ok::<_, Infallible>(counts)
    })
}

#[pyfunction]
pub(crate) fn used_tokens(
    tokenizer: &Tokenizer,
    texts: &Bound<'_, PyList>,
    threads: usize,
    parse_special: bool,
) -> PyResult<Vec<TokenId>> {
    let py = texts.py();
    let vocabulary = tokenizer.core.vocabulary();
    let side = PyString::intern(py, "right");
    let batch = encode_batch(tokenizer, texts, threads, None, &side, false, parse_special, false, None)?;
    let unknown = vocabulary.special().unk.unwrap_or(NULL_TOKEN);
    let mut used = vec![false; vocabulary.len()];
    let mut mark = |ids: &[TokenId]| {
        ids.iter().for_each(|&id| used.get_mut(id as usize).into_iter().for_each(|used| *used = true));
    };
    for (row, text) in batch.rows()?.iter().zip(texts) {
        mark(row);
        if vocabulary.kind() == Kind::WordPiece && row.contains(&unknown) {
            let argument = arguments::text(&text)?;
            let text = argument.text();
            let options = encode_options(false, parse_special, false);
            let found =
                tokenizer.work(py, text.as_bytes().len(), |encoder| encoder.encode_with_spans(text, options))?;
            let spans = found.ids.iter().zip(found.spans).filter(|&(&id, _)| id == unknown);
            spans.for_each(|(_, word)| mark(&matched(&tokenizer.core, &text.as_bytes()[word])));
        }
    }
    Ok((0..).zip(&used).filter(|(_, used)| **used).map(|(id, _)| id).collect())
}

#[pyfunction]
pub(crate) fn needed_for(tokenizer: &Tokenizer, used: &Bound<'_, PyAny>) -> PyResult<(Vec<TokenId>, Vec<u32>)> {
    let ids = token_ids(used, tokenizer.core.vocabulary().len())?;
    run_long(used.py(), || Ok::<_, Infallible>(needed(&tokenizer.core, &ids)))
}
