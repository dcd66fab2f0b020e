//! The tokenizer class that `ggtok.Tokenizer` extends.

use std::sync::{Arc, OnceLock};

use ggtok_core::{
    Count, DecodeOptions, EncodeError, EncodeOptions, SLOTS, Scratch, ScratchPool, Spans, Strings, TokenId,
};
use ggtok_explain::Explainer;
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::arguments::{self, text, token_id, token_ids};
use crate::arrays::Arrays;
use crate::bytes::bytes_of;
use crate::chunks::{self, Cuttable, split_options};
use crate::decoder::StreamDecoder;
use crate::encoder::StreamEncoder;
use crate::encoding::{Encoding, Unit};
use crate::errors::invalid;
use crate::ints::with_lists;
use crate::metadata::Metadata;
use crate::parts::{self, not_utf8};
use crate::run::{quick, run, run_long};
use crate::scratch::{Owner, cache_limit, with_scratch};

/// The capacity that an array of ids starts with: enough for a short text.
const ROOM: usize = 64;

#[doc = doc!(Tokenizer)]
#[pyclass(frozen, subclass, module = "ggtok._ggtok")]
pub struct Tokenizer {
    /// Shared with its streams.
    pub(crate) core: Arc<ggtok_core::Tokenizer>,
    metadata: Py<Metadata>,
    owner: Arc<Owner>,
    /// Scratch spaces for the threads of batches.
    pool: ScratchPool,
    /// Made for the first trace.
    pub(crate) explainer: OnceLock<Arc<Explainer>>,
}

impl Tokenizer {
    /// The scratch spaces for a batch.
    pub(crate) fn pool(&self) -> &ScratchPool {
        self.pool.set_cache_limit(cache_limit());
        &self.pool
    }

    /// The merges of a byte-pair vocabulary.
    pub(crate) fn merges(&self) -> Option<Strings<'_>> {
        self.metadata.get().merges(self.core.vocabulary().kind())
    }

    /// Encodes one text into a sink.
    #[inline]
    fn encode_into<S: ggtok_core::Sink + Send>(
        &self,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        options: EncodeOptions,
        sink: &mut S,
    ) -> PyResult<()> {
        let argument = text(object)?;
        let text = argument.text();
        self.work_into(py, text.as_bytes().len(), sink, |scratch, sink| {
            self.core.encode_into(text, options, scratch, sink)
        })
    }

    /// Runs work of the core on `size` bytes with this thread's scratch space.
    #[inline]
    fn work_into<S: Send>(
        &self,
        py: Python<'_>,
        size: usize,
        sink: &mut S,
        work: impl FnOnce(&mut Scratch, &mut S) -> Result<(), EncodeError> + Send,
    ) -> PyResult<()> {
        run(py, size, || with_scratch(&self.owner, |scratch| work(scratch, sink)))
    }

    fn decode_to_bytes(&self, py: Python<'_>, ids: &Bound<'_, PyAny>, options: DecodeOptions) -> PyResult<Vec<u8>> {
        let ids = token_ids(ids, self.core.vocabulary().len())?;
        run(py, ids.len(), || self.core.decode(&ids, options))
    }
}

#[pymethods]
impl Tokenizer {
    #[new]
    fn new(py: Python<'_>, metadata: Py<Metadata>) -> PyResult<Self> {
        let file = metadata.get();
        let core = run_long(py, || file.core.tokenizer())?;
        Ok(Self {
            core: Arc::new(core),
            metadata,
            owner: Arc::default(),
            pool: ScratchPool::default(),
            explainer: OnceLock::new(),
        })
    }

    #[doc = doc!(Tokenizer.encode)]
    #[pyo3(signature = (text, *, add_special = true, parse_special = false, continues = false))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = EncodeOptions { add_special, parse_special, continues };
        with_lists(|lists| {
            self.encode_into(py, text, options, &mut lists.ids)?;
            lists.list(py)
        })
    }

    #[doc = doc!(Tokenizer.encode_array)]
    #[pyo3(signature = (text, *, add_special = true, parse_special = false, continues = false))]
    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<Bound<'py, PyArray1<TokenId>>> {
        let arrays = Arrays::ready(py)?;
        let mut ids = Vec::with_capacity(ROOM);
        self.encode_into(py, text, EncodeOptions { add_special, parse_special, continues }, &mut ids)?;
        arrays.array(ids)
    }

    #[doc = doc!(Tokenizer.count)]
    #[pyo3(signature = (text, *, add_special = true, parse_special = false, continues = false))]
    fn count(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        add_special: bool,
        parse_special: bool,
        continues: bool,
    ) -> PyResult<usize> {
        let mut count = Count::default();
        self.encode_into(py, text, EncodeOptions { add_special, parse_special, continues }, &mut count)?;
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
        if unit == Unit::Char
            && let Some(Err(error)) = argument.bytes().map(std::str::from_utf8)
        {
            return Err(invalid(not_utf8(error.valid_up_to())));
        }
        let text = argument.text();
        let mut spans = Spans::with_room_for(text.as_bytes().len());
        let options = EncodeOptions { add_special, parse_special, continues };
        self.work_into(py, text.as_bytes().len(), &mut spans, |scratch, spans| {
            self.core.encode_into(text, options, scratch, spans)?;
            unit.apply(text, spans);
            Ok(())
        })?;
        Ok(Encoding::new_from(spans))
    }

    #[doc = doc!(Tokenizer.encode_parts)]
    #[pyo3(signature = (parts, *, add_special = true, continues = false))]
    fn encode_parts<'py>(
        &self,
        py: Python<'py>,
        parts: &Bound<'py, PyAny>,
        add_special: bool,
        continues: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let parts = parts::parts(parts, Unit::Byte)?;
        let options = EncodeOptions { add_special, parse_special: false, continues };
        with_lists(|lists| {
            self.work_into(py, parts.len(), &mut lists.ids, |scratch, ids| {
                self.core.encode_parts_into(&parts, options, scratch, ids)
            })?;
            lists.list(py)
        })
    }

    #[doc = doc!(Tokenizer.count_parts)]
    #[pyo3(signature = (parts, *, add_special = true, continues = false))]
    fn count_parts(
        &self,
        py: Python<'_>,
        parts: &Bound<'_, PyAny>,
        add_special: bool,
        continues: bool,
    ) -> PyResult<usize> {
        let parts = parts::parts(parts, Unit::Byte)?;
        let options = EncodeOptions { add_special, parse_special: false, continues };
        let mut count = Count::default();
        self.work_into(py, parts.len(), &mut count, |scratch, count| {
            self.core.encode_parts_into(&parts, options, scratch, count)
        })?;
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
        let options = EncodeOptions { add_special, parse_special: false, continues };
        let mut spans = Spans::with_room_for(parts.len());
        self.work_into(py, parts.len(), &mut spans, |scratch, spans| {
            self.core.encode_parts_into(&parts, options, scratch, spans)?;
            unit.apply(parts.text()?, spans);
            Ok(())
        })?;
        Ok(Encoding::new_from(spans))
    }

    #[doc = doc!(Tokenizer.encoder)]
    #[pyo3(signature = (*, add_special = true, parse_special = false))]
    fn encoder(&self, add_special: bool, parse_special: bool) -> PyResult<StreamEncoder> {
        let options = EncodeOptions { add_special, parse_special, ..EncodeOptions::default() };
        StreamEncoder::new(Arc::clone(&self.core), Arc::clone(&self.owner), options)
    }

    /// The chunks of a text: where each starts and ends, in characters, and its number of tokens.
    #[allow(clippy::too_many_arguments)]
    fn _split(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        max_tokens: usize,
        overlap: usize,
        boundaries: &Bound<'_, PyList>,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<Vec<(usize, usize, usize)>> {
        let text = Cuttable::new(text)?;
        let split = split_options(max_tokens, overlap, boundaries)?;
        let options = EncodeOptions { add_special, parse_special, ..EncodeOptions::default() };
        let chunks = run(py, text.len(), || {
            with_scratch(&self.owner, |scratch| match text.text() {
                Some(text) => self.core.split(&text, &split, options, scratch),
                None => Ok(Vec::new()),
            })
        })?;
        let ranges = text.characters(chunks.iter().map(|chunk| chunk.start..chunk.end));
        Ok(ranges.into_iter().zip(&chunks).map(|(range, chunk)| (range.start, range.end, chunk.count)).collect())
    }

    /// What `truncate` removes: where it starts and ends, in characters.
    fn _truncate(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        max_tokens: usize,
        side: &str,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<(usize, usize)> {
        let text = Cuttable::new(text)?;
        let side = chunks::side(side)?;
        let options = EncodeOptions { add_special, parse_special, ..EncodeOptions::default() };
        let removed = run(py, text.len(), || {
            with_scratch(&self.owner, |scratch| match text.text() {
                Some(text) => self.core.truncate(&text, max_tokens, side, options, scratch),
                None => Ok(0..0),
            })
        })?;
        let removed = text.characters([removed].into_iter());
        Ok(removed.first().map_or((0, 0), |range| (range.start, range.end)))
    }

    #[doc = doc!(Tokenizer.decode)]
    #[pyo3(signature = (ids, *, remove_special = false, unparse_special = false, clean_spaces = false,
                        errors = "replace"))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool,
        errors: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        let bytes = self.decode_to_bytes(py, ids, DecodeOptions { remove_special, unparse_special, clean_spaces })?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => PyString::from_bytes(py, text.as_bytes()),
            Err(_) => {
                let text = bytes_of(py, &bytes)?.call_method1(intern!(py, "decode"), ("utf-8", errors))?;
                Ok(text.cast_into::<PyString>()?)
            }
        }
    }

    #[doc = doc!(Tokenizer.decode_bytes)]
    #[pyo3(signature = (ids, *, remove_special = false, unparse_special = false, clean_spaces = false))]
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        remove_special: bool,
        unparse_special: bool,
        clean_spaces: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let options = DecodeOptions { remove_special, unparse_special, clean_spaces };
        bytes_of(py, &self.decode_to_bytes(py, ids, options)?)
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
        let decode = DecodeOptions { remove_special, unparse_special, clean_spaces };
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
        quick(|| self.core.heap_bytes())
    }

    fn _size(&self) -> usize {
        self.core.vocabulary().len()
    }

    /// Text, score and attribute bits of a token.
    fn _token<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyBytes>, f32, u16)> {
        let vocabulary = self.core.vocabulary();
        let id = token_id(id, vocabulary.len())?;
        run(py, 0, || self.core.check_id(id))?;
        Ok((PyBytes::new(py, vocabulary.text(id)), vocabulary.score(id), vocabulary.attributes(id).bits()))
    }

    /// The id of a token text.
    fn _token_id(&self, text: &[u8]) -> PyResult<Option<TokenId>> {
        quick(|| self.core.vocabulary().id(text))
    }

    /// Kind, model and pre-tokenizer by name.
    fn _kind(&self) -> (&'static str, &'static str, Option<&'static str>) {
        let vocabulary = self.core.vocabulary();
        (vocabulary.kind().name(), vocabulary.model(), vocabulary.pre().map(|pre| pre.name))
    }

    /// Special token ids by slot.
    fn _special<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let special = self.core.vocabulary().special();
        let all = PyDict::new(py);
        for slot in SLOTS {
            all.set_item(slot.name, (slot.id)(special))?;
        }
        Ok(all)
    }

    /// Flags by name.
    fn _settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.core.vocabulary().settings();
        let all = PyDict::new(py);
        for (name, value) in [
            ("add_bos", settings.add_bos),
            ("add_eos", settings.add_eos),
            ("add_sep", settings.add_sep),
            ("add_space_prefix", settings.add_space_prefix),
            ("ignore_merges", settings.ignore_merges),
            ("clean_spaces", settings.clean_spaces),
            ("remove_extra_whitespaces", settings.remove_extra_whitespaces),
            ("escape_whitespaces", settings.escape_whitespaces),
            ("lowercase", settings.lowercase),
            ("strip_accents", settings.strip_accents),
        ] {
            all.set_item(name, value)?;
        }
        Ok(all)
    }

    /// The ids that end generation.
    fn _eog(&self) -> Vec<TokenId> {
        self.core.vocabulary().eog().to_vec()
    }

    /// All that distinguishes the vocabulary from another, except the merges.
    fn _canonical_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = quick(|| self.core.vocabulary().canonical_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }
}
