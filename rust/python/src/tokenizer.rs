//! The tokenizer class that `ggtok.Tokenizer` extends.

use std::sync::{Arc, OnceLock};

use ggtok_core::gguf::Value;
use ggtok_core::vocab::{Kind, Strings};
use ggtok_core::{Count, DecodeOptions, EncodeError, EncodeOptions, Encoder, Parts, Sink, Spans, Text, TokenId};
use ggtok_explain::Explainer;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::arguments::{self, decode_options, encode_options, token_id, token_ids};
use crate::arrays::Arrays;
use crate::bytes::{bytes_of, str_of};
use crate::decoder::StreamDecoder;
use crate::encoder::StreamEncoder;
use crate::encoding::{Encoding, Unit, WordNumbers};
use crate::errors::{Raise, invalid};
use crate::ints::with_lists;
use crate::metadata::Metadata;
use crate::parts::{self, not_utf8};
use crate::run::{quick, run, run_long};
use crate::scratch;

/// The capacity that an array of ids starts with: enough for a short text.
const ROOM: usize = 64;

#[doc = doc!(Tokenizer)]
#[pyclass(frozen, subclass, module = "ggtok._ggtok")]
pub struct Tokenizer {
    /// Shared with its streams.
    pub(crate) core: Arc<ggtok_core::Tokenizer>,
    pub(crate) metadata: Py<Metadata>,
    /// Made on first use, by a trace.
    pub(crate) explainer: OnceLock<Arc<Explainer>>,
}

impl Tokenizer {
    /// The merges of a byte-pair vocabulary.
    pub(crate) fn merges(&self) -> Option<Strings<'_>> {
        match self.metadata.get().core.get("tokenizer.ggml.merges") {
            Some(Value::Array(array)) if self.core.vocabulary().kind() == Kind::Bpe => array.strings(),
            _ => None,
        }
    }

    /// Runs work of the core on `size` bytes with an encoder.
    #[inline]
    pub(crate) fn work<T: Send, E: Raise + Send>(
        &self,
        py: Python<'_>,
        size: usize,
        work: impl FnOnce(&mut Encoder<&ggtok_core::Tokenizer>) -> Result<T, E> + Send,
    ) -> PyResult<T> {
        run(py, size, || self.core.with_encoder(work))
    }

    /// Runs work of the core on a text with an encoder.
    #[inline]
    pub(crate) fn work_on_text<T: Send, E: Raise + Send>(
        &self,
        text: &Bound<'_, PyAny>,
        work: impl FnOnce(&mut Encoder<&ggtok_core::Tokenizer>, Text<'_>) -> Result<T, E> + Send,
    ) -> PyResult<T> {
        let argument = arguments::text(text)?;
        let core_text = argument.text();
        self.work(text.py(), core_text.as_bytes().len(), |encoder| work(encoder, core_text))
    }

    /// Encodes one text into a sink.
    #[inline]
    fn encode_into(
        &self,
        text: &Bound<'_, PyAny>,
        options: EncodeOptions,
        sink: &mut (impl Sink + Send),
    ) -> PyResult<()> {
        self.work_on_text(text, |encoder, text| encoder.encode_into(text, options, sink))
    }

    /// Encodes a text in parts into a sink.
    fn encode_parts_into(
        &self,
        parts: &Bound<'_, PyAny>,
        options: EncodeOptions,
        sink: &mut (impl Sink + Send),
    ) -> PyResult<()> {
        let py = parts.py();
        let parts = parts::parts(parts, Unit::Byte)?;
        self.work(py, parts.len(), |encoder| encoder.parts_into(&parts, options, sink))
    }

    fn decode_to_bytes(&self, ids: &Bound<'_, PyAny>, options: DecodeOptions) -> PyResult<Vec<u8>> {
        let py = ids.py();
        let ids = token_ids(ids, self.core.vocabulary().len())?;
        run(py, ids.len(), || self.core.decode_with(&ids, options))
    }
}

#[pymethods]
impl Tokenizer {
    #[new]
    fn new(py: Python<'_>, metadata: Py<Metadata>) -> PyResult<Self> {
        let file = metadata.get();
        let core = Arc::new(run_long(py, || file.core.tokenizer())?);
        scratch::register(&core);
        Ok(Self { core, metadata, explainer: OnceLock::new() })
    }

    #[doc = doc!(Tokenizer.encode)]
    #[pyo3(signature = (text, *, add_special = true, parse_special = false, continues = false))]
    fn encode<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = encode_options(add_special, parse_special, continues);
        with_lists(|lists| {
            self.encode_into(text, options, &mut lists.ids)?;
            lists.list(text.py())
        })
    }

    #[doc = doc!(Tokenizer.encode_array)]
    #[pyo3(signature = (text, *, add_special = true, parse_special = false, continues = false))]
    fn encode_array<'py>(
        &self,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<Bound<'py, PyArray1<TokenId>>> {
        let arrays = Arrays::ready(text.py())?;
        let mut ids = Vec::with_capacity(ROOM);
        self.encode_into(text, encode_options(add_special, parse_special, continues), &mut ids)?;
        arrays.array(ids)
    }

    #[doc = doc!(Tokenizer.count)]
    #[pyo3(signature = (text, *, add_special = true, parse_special = false, continues = false))]
    fn count(
        &self,
        text: &Bound<'_, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<usize> {
        let mut count = Count::default();
        self.encode_into(text, encode_options(add_special, parse_special, continues), &mut count)?;
        Ok(count.0)
    }

    #[doc = doc!(Tokenizer.encode_with_offsets)]
    #[pyo3(
        signature = (text, *, unit = Unit::Char, add_special = true, parse_special = false, continues = false),
        text_signature = "($self, text, *, unit='char', add_special=True, parse_special=False, continues=False)"
    )]
    fn encode_with_offsets(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        unit: Unit,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<Encoding> {
        let argument = arguments::text(text)?;
        if unit != Unit::Byte
            && let Some(Err(error)) = argument.bytes().map(std::str::from_utf8)
        {
            return Err(invalid(not_utf8(error.valid_up_to())));
        }
        let text = argument.text();
        let mut spans = Spans::with_room_for(text.as_bytes().len());
        let options = encode_options(add_special, parse_special, continues);
        let mut parts = Parts::default();
        self.work(py, text.as_bytes().len(), |encoder| {
            encoder.encode_into(text, options, &mut spans)?;
            unit.apply(text, &mut spans);
            parts.push(text, parse_special);
            Ok::<_, EncodeError>(())
        })?;
        Ok(Encoding::new_from(spans, WordNumbers::Of(Arc::clone(&self.core), parts, options)))
    }

    #[doc = doc!(Tokenizer.encode_parts)]
    #[pyo3(signature = (parts, *, add_special = true, continues = false))]
    fn encode_parts<'py>(
        &self,
        parts: &Bound<'py, PyAny>,
        add_special: bool,
        continues: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = encode_options(add_special, false, continues);
        with_lists(|lists| {
            self.encode_parts_into(parts, options, &mut lists.ids)?;
            lists.list(parts.py())
        })
    }

    #[doc = doc!(Tokenizer.count_parts)]
    #[pyo3(signature = (parts, *, add_special = true, continues = false))]
    fn count_parts(&self, parts: &Bound<'_, PyAny>, add_special: bool, continues: bool) -> PyResult<usize> {
        let mut count = Count::default();
        self.encode_parts_into(parts, encode_options(add_special, false, continues), &mut count)?;
        Ok(count.0)
    }

    #[doc = doc!(Tokenizer.encode_parts_with_offsets)]
    #[pyo3(
        signature = (parts, *, unit = Unit::Char, add_special = true, continues = false),
        text_signature = "($self, parts, *, unit='char', add_special=True, continues=False)"
    )]
    fn encode_parts_with_offsets(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        unit: Unit,
        add_special: bool,
        continues: bool,
    ) -> PyResult<Encoding> {
        let parts = parts::parts(parts, unit)?;
        let options = encode_options(add_special, false, continues);
        let mut spans = Spans::with_room_for(parts.len());
        self.work(py, parts.len(), |encoder| {
            encoder.parts_into(&parts, options, &mut spans)?;
            unit.apply(parts.text()?, &mut spans);
            Ok::<_, EncodeError>(())
        })?;
        Ok(Encoding::new_from(spans, WordNumbers::Of(Arc::clone(&self.core), parts, options)))
    }

    #[doc = doc!(Tokenizer.encode_pair)]
    #[pyo3(signature = (context, continuation, *, add_special = true, parse_special = false, continues = false))]
    fn encode_pair(
        &self,
        py: Python<'_>,
        context: &Bound<'_, PyAny>,
        continuation: &Bound<'_, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<(Vec<TokenId>, Vec<TokenId>)> {
        let context = arguments::text(context)?;
        let continuation = arguments::text(continuation)?;
        let context = context.text();
        let continuation = continuation.text();
        let options = encode_options(add_special, parse_special, continues);
        let size = context.as_bytes().len() + continuation.as_bytes().len();
        let (mut ids, num_before) =
            self.work(py, size, |encoder| encoder.encode_pair(context, continuation, options))?;
        let rest = ids.split_off(num_before);
        Ok((ids, rest))
    }

    #[doc = doc!(Tokenizer.encoder)]
    #[pyo3(signature = (*, add_special = true, parse_special = false))]
    fn encoder(&self, add_special: bool, parse_special: bool) -> PyResult<StreamEncoder> {
        let options = encode_options(add_special, parse_special, false);
        StreamEncoder::new(Arc::clone(&self.core), options)
    }

    #[doc = doc!(Tokenizer.decode)]
    #[pyo3(signature = (ids, *, remove_special = false, unparse_special = false, clean_spaces = false,
                        errors = "replace"))]
    fn decode<'py>(
        &self,
        ids: &Bound<'py, PyAny>,
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool,
        errors: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        let bytes = self.decode_to_bytes(ids, decode_options(remove_special, unparse_special, clean_spaces))?;
        str_of(ids.py(), &bytes, errors)
    }

    #[doc = doc!(Tokenizer.decode_bytes)]
    #[pyo3(signature = (ids, *, remove_special = false, unparse_special = false, clean_spaces = false))]
    fn decode_bytes<'py>(
        &self,
        ids: &Bound<'py, PyAny>,
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = decode_options(remove_special, unparse_special, clean_spaces);
        bytes_of(ids.py(), &self.decode_to_bytes(ids, options)?)
    }

    #[doc = doc!(Tokenizer.decoder)]
    #[pyo3(
        signature = (*, stop = None, remove_special = false, unparse_special = false, clean_spaces = false, text = true),
        text_signature = "($self, *, stop=(), remove_special=False, unparse_special=False, clean_spaces=False, text=True)"
    )]
    fn decoder(
        &self,
        py: Python<'_>,
        stop: Option<&Bound<'_, PyAny>>,
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool,
        text: bool,
    ) -> PyResult<StreamDecoder> {
        let decode = decode_options(remove_special, unparse_special, clean_spaces);
        StreamDecoder::new(py, Arc::clone(&self.core), stop, decode, text)
    }

    #[doc = doc!(Tokenizer.piece)]
    #[pyo3(signature = (id, *, special = true))]
    fn piece<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>, special: bool) -> PyResult<Bound<'py, PyBytes>> {
        let id = token_id(id, self.core.vocabulary().len())?;
        let piece = run(py, 0, || self.core.piece(id, special))?;
        Ok(PyBytes::new(py, piece))
    }

    #[doc = doc!(Tokenizer.repairs)]
    #[getter]
    fn repairs(&self) -> Vec<String> {
        self.core.vocabulary().repairs().iter().map(ToString::to_string).collect()
    }

    #[doc = doc!(Tokenizer.heap_bytes)]
    #[getter]
    fn heap_bytes(&self) -> PyResult<usize> {
        quick(|| self.core.heap_bytes() + self.metadata.get().core.heap_bytes())
    }

    #[doc = doc!(Tokenizer.cache_bytes)]
    #[getter]
    fn cache_bytes(&self) -> usize {
        self.core.cache_bytes()
    }

    #[doc = doc!(Tokenizer.clear_cache)]
    fn clear_cache(&self) {
        self.core.clear_cache();
    }
}
