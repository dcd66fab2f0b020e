//! The streaming decoder: ids are pushed in, and text comes out.

use std::sync::Arc;

use ggtok_core::stream::{StopStrings, StreamDecodeOptions, StreamDecoder as CoreDecoder};
use ggtok_core::{DecodeOptions, TokenId, Tokenizer};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString, PyTuple, PyType};

use crate::arguments::{items, text, token_id, token_ids};
use crate::bytes::bytes_of;
use crate::errors::{Raise, invalid, type_error};
use crate::run::{check_signals, quick, run};

#[doc = doc!(StreamDecoder)]
#[pyclass(module = "ggtok._ggtok")]
#[derive(Clone)]
pub struct StreamDecoder {
    /// `None` after `flush`.
    decoder: Option<CoreDecoder<Arc<Tokenizer>>>,
    /// The number of tokens in the vocabulary.
    size: usize,
    is_text: bool,
    /// The stop strings as they were given, and the index of the one that had been found by `flush`.
    stop: Arc<Py<PyTuple>>,
    stopped: Option<usize>,
    /// The buffer of `push`.
    out: Vec<u8>,
}

impl StreamDecoder {
    pub(crate) fn new(
        py: Python<'_>,
        core: Arc<Tokenizer>,
        stop: Option<&Bound<'_, PyAny>>,
        decode: DecodeOptions,
        is_text: bool,
    ) -> PyResult<Self> {
        let stop = stop_strings(py, stop, is_text)?;
        let size = core.vocabulary().len();
        let mut bytes = Vec::with_capacity(stop.len());
        for string in &stop {
            bytes.push(text(&string)?.text().as_bytes().to_vec());
        }
        let total = bytes.iter().map(Vec::len).sum();
        let prepared = run(py, total, || StopStrings::new(bytes))?;
        let options = StreamDecodeOptions::default().decode(decode).text(is_text).stop(Arc::new(prepared));
        let decoder = Some(CoreDecoder::new(core, options));
        Ok(Self { decoder, size, is_text, stop: Arc::new(stop.unbind()), stopped: None, out: Vec::new() })
    }

    fn decoder(&mut self) -> PyResult<&mut CoreDecoder<Arc<Tokenizer>>> {
        self.decoder.as_mut().ok_or_else(|| invalid("the stream has ended: flush() was called".to_owned()))
    }

    /// A result of the kind that this decoder returns.
    #[inline]
    fn result<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if self.is_text { Ok(PyString::from_bytes(py, bytes)?.into_any()) } else { Ok(bytes_of(py, bytes)?.into_any()) }
    }

    /// Decodes many ids, on a copy, so that an error leaves nothing half done.
    fn push_all<'py>(&mut self, py: Python<'py>, ids: &[TokenId]) -> PyResult<Bound<'py, PyAny>> {
        let mut decoder = self.decoder()?.clone();
        let (decoder, out) = run(py, ids.len(), || {
            let mut out = Vec::new();
            decoder.push(ids, &mut out).map(|()| (decoder, out))
        })?;
        let result = self.result(py, &out)?;
        self.decoder = Some(decoder);
        Ok(result)
    }
}

#[pymethods]
impl StreamDecoder {
    #[doc = doc!(StreamDecoder.push)]
    fn push<'py>(&mut self, ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = ids.py();
        if !ids.is_instance_of::<PyInt>() && ids.hasattr(intern!(py, "__iter__"))? {
            let ids = token_ids(ids, self.size)?;
            return self.push_all(py, &ids);
        }
        let id = token_id(ids, self.size)?;
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        let decoder = self.decoder()?;
        quick(|| decoder.push(&[id], &mut out))?.map_err(Raise::raise)?;
        let result = self.result(py, &out);
        self.out = out;
        result
    }

    #[doc = doc!(StreamDecoder.flush)]
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut out = Vec::new();
        if let Some(decoder) = self.decoder.take() {
            self.stopped = quick(|| decoder.finish(&mut out))?.map_err(Raise::raise)?;
        }
        self.result(py, &out)
    }

    #[doc = doc!(StreamDecoder.prime)]
    fn prime(&mut self, prompt_ids: &Bound<'_, PyAny>) -> PyResult<()> {
        let ids = token_ids(prompt_ids, self.size)?;
        let mut decoder = self.decoder()?.clone();
        let decoder = run(prompt_ids.py(), ids.len(), || decoder.prime(&ids).map(|()| decoder))?;
        self.decoder = Some(decoder);
        Ok(())
    }

    #[doc = doc!(StreamDecoder.copy)]
    fn copy(&self) -> Self {
        self.clone()
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    #[doc = doc!(StreamDecoder.stopped)]
    #[getter]
    fn stopped<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let index = self.decoder.as_ref().map_or(self.stopped, CoreDecoder::stopped);
        index.map(|index| self.stop.bind(py).get_item(index)).transpose()
    }

    #[classmethod]
    fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = cls.py();
        py.import(intern!(py, "types"))?.getattr(intern!(py, "GenericAlias"))?.call1((cls, item))
    }
}

/// The stop strings as a tuple; one string by itself is one stop string.
fn stop_strings<'py>(
    py: Python<'py>,
    stop: Option<&Bound<'py, PyAny>>,
    is_text: bool,
) -> PyResult<Bound<'py, PyTuple>> {
    let Some(stop) = stop else { return Ok(PyTuple::empty(py)) };
    let is_string =
        |object: &Bound<'_, PyAny>| object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
    let expected = "stop must be an iterable of strings";
    let strings = if is_string(stop) { vec![stop.clone()] } else { items(stop, expected)? };
    for (index, string) in strings.iter().enumerate() {
        check_signals(py, index)?;
        if !string.is_instance_of::<PyString>() && (is_text || !is_string(string)) {
            let expected = if is_text { "str" } else { "str or bytes" };
            let found = string.get_type().name()?;
            return Err(type_error(format!("stop string {index} must be {expected}, not {found}")));
        }
    }
    PyTuple::new(py, strings)
}
