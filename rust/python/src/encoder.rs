//! The streaming encoder: text is pushed in, and ids come out.

use std::sync::Arc;

use ggtok_core::stream::StreamEncoder as CoreEncoder;
use ggtok_core::{Count, EncodeOptions, Sink, Tokenizer};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arguments::text;
use crate::errors::{Raise, invalid};
use crate::ints::with_lists;
use crate::run::run;

#[doc = doc!(StreamEncoder)]
#[pyclass(module = "ggtok._ggtok")]
pub struct StreamEncoder {
    /// `None` after the end, and during a call.
    encoder: Option<CoreEncoder<Arc<Tokenizer>>>,
}

impl StreamEncoder {
    pub(crate) fn new(core: Arc<Tokenizer>, options: EncodeOptions) -> PyResult<Self> {
        let encoder = CoreEncoder::new(core, options).map_err(Raise::raise)?;
        Ok(Self { encoder: Some(encoder) })
    }

    fn push_into<S: Sink + Send>(&mut self, object: &Bound<'_, PyAny>, sink: &mut S) -> PyResult<()> {
        let argument = text(object)?;
        let bytes = argument.text().as_bytes();
        let ended = "the stream has ended: flush() was called, or an earlier call failed";
        let mut encoder = self.encoder.take().ok_or_else(|| invalid(ended.to_owned()))?;
        let encoder =
            run(object.py(), bytes.len() + encoder.num_waiting(), || encoder.push(bytes, sink).map(|()| encoder))?;
        self.encoder = Some(encoder);
        Ok(())
    }

    fn flush_into<S: Sink + Send>(&mut self, py: Python<'_>, sink: &mut S) -> PyResult<()> {
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        run(py, encoder.num_waiting(), || encoder.finish(sink))
    }
}

#[pymethods]
impl StreamEncoder {
    #[doc = doc!(StreamEncoder.push)]
    fn push<'py>(&mut self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        with_lists(|lists| {
            self.push_into(text, &mut lists.ids)?;
            lists.list(text.py())
        })
    }

    #[doc = doc!(StreamEncoder.flush)]
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        with_lists(|lists| {
            self.flush_into(py, &mut lists.ids)?;
            lists.list(py)
        })
    }

    #[doc = doc!(StreamEncoder.push_count)]
    fn push_count(&mut self, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut count = Count::default();
        self.push_into(text, &mut count)?;
        Ok(count.0)
    }

    #[doc = doc!(StreamEncoder.flush_count)]
    fn flush_count(&mut self, py: Python<'_>) -> PyResult<usize> {
        let mut count = Count::default();
        self.flush_into(py, &mut count)?;
        Ok(count.0)
    }

    #[doc = doc!(StreamEncoder.num_waiting)]
    #[getter]
    fn num_waiting(&self) -> usize {
        self.encoder.as_ref().map_or(0, CoreEncoder::num_waiting)
    }
}
