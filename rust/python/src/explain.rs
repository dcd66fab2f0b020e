//! Traces: every step of an algorithm as JSON, which the Python layer turns into classes.

use std::collections::HashSet;
use std::sync::Arc;

use ggtok_explain::double_array::DoubleArrayTrace;
use ggtok_explain::trace::Trace;
use ggtok_explain::{ExplainError, Explainer};
use pyo3::prelude::*;

use crate::arguments::{self, encode_options, text, texts};
use crate::errors::{Raise, invalid};
use crate::run::run_long;
use crate::tokenizer::Tokenizer;

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct RawTrace {
    explainer: Arc<Explainer>,
    trace: Trace,
}

#[pyfunction]
pub fn explain(
    py: Python<'_>,
    tokenizer: &Tokenizer,
    argument: &Bound<'_, PyAny>,
    add_special: bool,
    parse_special: bool,
    continues: bool,
) -> PyResult<RawTrace> {
    let argument = text(argument)?;
    let merges = tokenizer.merges();
    let (explainer, trace) = run_long(py, || {
        let new = || Arc::new(Explainer::new(Arc::clone(&tokenizer.core), merges));
        let explainer = tokenizer.explainer.get_or_init(new);
        let trace = explainer.explain(argument.text(), encode_options(add_special, parse_special, continues))?;
        Ok::<_, ExplainError>((Arc::clone(explainer), trace))
    })?;
    Ok(RawTrace { explainer, trace })
}

#[pymethods]
impl RawTrace {
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        run_long(py, || serde_json::to_string(&self.trace))
    }

    fn story(&self, py: Python<'_>, told: HashSet<usize>) -> PyResult<String> {
        run_long(py, || serde_json::to_string(&self.trace.story(&|id| told.contains(&id))))
    }

    fn page(&self, py: Python<'_>) -> PyResult<String> {
        run_long(py, || serde_json::to_string(&self.trace.page()))
    }

    fn why(&self, py: Python<'_>, start: usize, end: usize) -> PyResult<String> {
        let why = run_long(py, || self.explainer.why(&self.trace, start..end))?;
        serde_json::to_string(&why).map_err(Raise::raise)
    }
}

#[pyfunction]
pub fn explain_trie(py: Python<'_>, words: &Bound<'_, PyAny>, queries: &Bound<'_, PyAny>) -> PyResult<String> {
    let words = arguments::objects(words)?;
    let queries = arguments::objects(queries)?;
    let bytes = |objects| texts(objects).map(|text| Ok(text?.text().as_bytes().to_vec())).collect::<PyResult<Vec<_>>>();
    let words = bytes(&words)?;
    let queries = bytes(&queries)?;
    let trie = run_long(py, || DoubleArrayTrace::new(&words, &queries))?;
    run_long(py, || serde_json::to_string(&trie))
}

#[pyfunction]
pub fn face(data: &[u8]) -> String {
    ggtok_explain::story::face(data)
}

#[pyfunction]
pub fn regex_matches(py: Python<'_>, regex: &str, text: &str) -> PyResult<Option<Vec<(usize, usize)>>> {
    run_long(py, || Ok::<_, ExplainError>(ggtok_explain::regex_matches(regex, text)))
}

impl Raise for ExplainError {
    fn raise(self) -> PyErr {
        match self {
            Self::Encode(error) => error.raise(),
            _ => invalid(self.to_string()),
        }
    }
}
