//! The class of encoders that text is pushed into.

use std::sync::Arc;

use ggtok_core::{Count, EncodeOptions, Sink, StreamEncoder as CoreEncoder, Tokenizer};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::arguments::text;
use crate::errors::Raise;
use crate::ints::with_lists;
use crate::run::run;
use crate::scratch::{Owner, with_scratch};

/// Turns text into ids as it arrives. Made by `Tokenizer.encoder`.
///
/// All ids that it returns, put together, are those of the whole text, however it is cut. What may still change waits:
/// the end of a word or line, what may become a special token, and up to as much again, but at least 64 bytes, before
/// it is looked at once more. So memory is bounded by the longest stretch without a certain place, such as a word, and
/// time is linear however small the parts are. The text may be of any length.
///
/// An encoder is for one thread at a time: a call during another one raises `RuntimeError`. After a call that was
/// interrupted it cannot be used any more.
#[pyclass(module = "ggtok._ggtok")]
pub struct StreamEncoder {
    /// `None` after the end, and during a call.
    encoder: Option<CoreEncoder<Arc<Tokenizer>>>,
    /// The tokenizer, for its scratch space.
    owner: Arc<Owner>,
}

impl StreamEncoder {
    pub(crate) fn new(core: Arc<Tokenizer>, owner: Arc<Owner>, options: EncodeOptions) -> PyResult<Self> {
        let encoder = CoreEncoder::new(core, options).map_err(Raise::raise)?;
        Ok(Self { encoder: Some(encoder), owner })
    }

    fn push_into<S: Sink + Send>(&mut self, object: &Bound<'_, PyAny>, sink: &mut S) -> PyResult<()> {
        let argument = text(object)?;
        let (bytes, owner) = (argument.text().as_bytes(), Arc::clone(&self.owner));
        let ended = "the stream has ended: flush() was called, or an earlier call failed";
        let mut encoder = self.encoder.take().ok_or_else(|| PyValueError::new_err(ended))?;
        let encoder = run(object.py(), bytes.len() + encoder.num_waiting(), || {
            with_scratch(&owner, |scratch| encoder.push(bytes, scratch, sink).map(|()| encoder))
        })?;
        self.encoder = Some(encoder);
        Ok(())
    }

    fn flush_into<S: Sink + Send>(&mut self, py: Python<'_>, sink: &mut S) -> PyResult<()> {
        let owner = Arc::clone(&self.owner);
        let Some(encoder) = self.encoder.take() else { return Ok(()) };
        run(py, encoder.num_waiting(), || with_scratch(&owner, |scratch| encoder.finish(scratch, sink)))
    }
}

#[pymethods]
impl StreamEncoder {
    /// Takes more of the text and returns the ids that are certain.
    ///
    /// Args:
    ///     text: A `str` or bytes, as `encode` takes them. Bytes may be cut inside a character.
    ///
    /// Raises:
    ///     TypeError: `text` has the wrong type.
    ///     ValueError: `flush` was called before.
    ///     GgtokError: 2 GiB in a row are undecided.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> encoder = tok.encoder()
    /// >>> ids = [encoder.push("What is Lo"), encoder.push("RA?"), encoder.flush()]
    /// >>> ids
    /// [[9713, 5981], [], [6266, 78, 9612, 30]]
    /// >>> sum(ids, []) == tok.encode("What is LoRA?")
    /// True
    fn push<'py>(&mut self, text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        with_lists(|lists| {
            self.push_into(text, &mut lists.ids)?;
            lists.list(text.py())
        })
    }

    /// Ends the text and returns the ids of what was waiting.
    ///
    /// Then no more text can be pushed. A second call returns nothing.
    ///
    /// >>> import ggtok
    /// >>> encoder = ggtok.Tokenizer.builtin("spm").encoder()
    /// >>> encoder.flush()
    /// [1]
    fn flush<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        with_lists(|lists| {
            self.flush_into(py, &mut lists.ids)?;
            lists.list(py)
        })
    }

    /// The length of what `push` would return, without making the ids.
    ///
    /// >>> import ggtok
    /// >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
    /// >>> encoder.push_count("What is Lo") + encoder.push_count("RA?") + encoder.flush_count()
    /// 6
    fn push_count(&mut self, text: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut count = Count::default();
        self.push_into(text, &mut count)?;
        Ok(count.0)
    }

    /// The length of what `flush` would return, without making the ids.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("spm").encoder().flush_count()
    /// 1
    fn flush_count(&mut self, py: Python<'_>) -> PyResult<usize> {
        let mut count = Count::default();
        self.flush_into(py, &mut count)?;
        Ok(count.0)
    }

    /// How many bytes wait for more text.
    ///
    /// >>> import ggtok
    /// >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
    /// >>> encoder.push("What is Lo"), encoder.num_waiting
    /// ([9713, 5981], 3)
    #[getter]
    fn num_waiting(&self) -> usize {
        self.encoder.as_ref().map_or(0, CoreEncoder::num_waiting)
    }
}
