//! The tokenizer class that `ggtok.Tokenizer` extends.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ggtok_core::{Count, DecodeOptions, Definition, EncodeOptions, Scratch, SpecialIds, TokenId};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::arguments::{TextArgument, text, token_id, token_ids};
use crate::errors::{batch_error, encode_error, index_error, vocabulary_error};
use crate::ints::with_lists;
use crate::scratch::with_scratch;
use crate::strings::StringArray;

/// Texts of more bytes than this are worth giving the GIL away for.
const SHORT: usize = 512;
/// Ids that there is room for before a text is encoded: those of a short one.
const ROOM: usize = 64;

/// Numbers tokenizers, so that threads can tell their scratch spaces apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Flat ids and offsets.
type FlatBatch<'py> = (Bound<'py, PyArray1<TokenId>>, Bound<'py, PyArray1<i64>>);

/// A vocabulary and its algorithm.
#[pyclass(frozen, subclass, module = "ggtok._ggtok")]
pub struct Tokenizer {
    core: ggtok_core::Tokenizer,
    number: u64,
    /// Scratch spaces for the threads of batches.
    pool: Mutex<Vec<Scratch>>,
}

impl Tokenizer {
    /// Encodes one text into any sink, without the GIL where that pays.
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
        let mut work = || with_scratch(self.number, |scratch| self.core.encode_into(text, options, scratch, sink));
        let result = if text.as_bytes().len() <= SHORT { work() } else { py.detach(work) };
        result.map_err(encode_error)
    }

    fn decode_to_bytes(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyAny>,
        remove_special: bool,
        unparse_special: bool,
    ) -> PyResult<Vec<u8>> {
        let ids = token_ids(ids, self.core.vocabulary().len())?;
        let options = DecodeOptions { remove_special, unparse_special };
        let work = || self.core.decode(&ids, options);
        let result = if ids.len() <= SHORT { work() } else { py.detach(work) };
        result.map_err(index_error)
    }
}

#[pymethods]
impl Tokenizer {
    #[new]
    #[pyo3(signature = (model, *, pre, tokens, scores, int_scores, token_types, merges, charsmap, vocab_size, special,
                        flags, name, architecture))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        model: &str,
        pre: Option<&str>,
        tokens: Option<PyRef<'_, StringArray>>,
        scores: Option<&[u8]>,
        int_scores: bool,
        token_types: Option<&[u8]>,
        merges: Option<PyRef<'_, StringArray>>,
        charsmap: Option<&[u8]>,
        vocab_size: Option<u32>,
        special: &Bound<'_, PyDict>,
        flags: &Bound<'_, PyDict>,
        name: &str,
        architecture: &str,
    ) -> PyResult<Self> {
        let words = |bytes: &[u8]| bytes.as_chunks::<4>().0.to_vec();
        let scores: Option<Vec<f32>> = scores.map(|scores| {
            let score = |word| if int_scores { i32::from_le_bytes(word) as f32 } else { f32::from_le_bytes(word) };
            words(scores).into_iter().map(score).collect()
        });
        let token_types: Option<Vec<i32>> =
            token_types.map(|types| words(types).into_iter().map(i32::from_le_bytes).collect());
        let id = |key: &str| -> PyResult<Option<u32>> { special.get_item(key)?.map(|id| id.extract()).transpose() };
        let flag =
            |key: &str| -> PyResult<Option<bool>> { flags.get_item(key)?.map(|flag| flag.extract()).transpose() };
        let definition = Definition {
            model,
            pre,
            tokens: tokens.as_ref().map(|tokens| tokens.view()),
            scores: scores.as_deref(),
            token_types: token_types.as_deref(),
            merges: merges.as_ref().map(|merges| merges.view()),
            charsmap,
            vocab_size,
            special: SpecialIds {
                bos: id("bos")?,
                eos: id("eos")?,
                eot: id("eot")?,
                eom: id("eom")?,
                unk: id("unk")?,
                sep: id("sep")?,
                pad: id("pad")?,
                mask: id("mask")?,
                fim_pre: id("fim_pre")?,
                fim_suf: id("fim_suf")?,
                fim_mid: id("fim_mid")?,
                fim_pad: id("fim_pad")?,
                fim_rep: id("fim_rep")?,
                fim_sep: id("fim_sep")?,
                prefix: id("prefix")?,
                suffix: id("suffix")?,
                middle: id("middle")?,
            },
            add_bos: flag("add_bos")?,
            add_eos: flag("add_eos")?,
            add_sep: flag("add_sep")?,
            add_space_prefix: flag("add_space_prefix")?,
            remove_extra_whitespaces: flag("remove_extra_whitespaces")?,
            lowercase: flag("lowercase")?,
            strip_accents: flag("strip_accents")?,
            name,
            architecture,
        };
        let core = py.detach(|| ggtok_core::Tokenizer::new(&definition)).map_err(vocabulary_error)?;
        Ok(Self { core, number: NEXT.fetch_add(1, Ordering::Relaxed), pool: Mutex::default() })
    }

    /// The token ids of a text, as a list.
    #[pyo3(signature = (text, *, add_special = true, parse_special = false))]
    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = EncodeOptions { add_special, parse_special };
        with_lists(|lists| {
            self.encode_into(py, text, options, &mut lists.ids)?;
            lists.list(py)
        })
    }

    /// The token ids of a text, as an int32 array.
    #[pyo3(signature = (text, *, add_special = true, parse_special = false))]
    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<Bound<'py, PyArray1<TokenId>>> {
        let mut ids = Vec::with_capacity(ROOM);
        self.encode_into(py, text, EncodeOptions { add_special, parse_special }, &mut ids)?;
        Ok(PyArray1::from_vec(py, ids))
    }

    /// How many tokens a text has.
    #[pyo3(signature = (text, *, add_special = true, parse_special = false))]
    fn count(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyAny>,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<usize> {
        let mut count = Count::default();
        self.encode_into(py, text, EncodeOptions { add_special, parse_special }, &mut count)?;
        Ok(count.0)
    }

    /// The flat ids (int32) and offsets (int64) of several texts.
    fn _encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        threads: usize,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<FlatBatch<'py>> {
        if texts.is_instance_of::<PyString>() || texts.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err("texts must be a sequence of texts, not one text"));
        }
        let objects: Vec<Bound<'py, PyAny>> = texts.try_iter()?.collect::<PyResult<_>>()?;
        let arguments: Vec<TextArgument<'_>> = objects.iter().map(text).collect::<PyResult<_>>()?;
        let texts: Vec<_> = arguments.iter().map(TextArgument::text).collect();
        let options = EncodeOptions { add_special, parse_special };
        let batch = py.detach(|| self.core.encode_batch(&texts, options, threads, &self.pool)).map_err(batch_error)?;
        Ok((PyArray1::from_vec(py, batch.ids), PyArray1::from_vec(py, batch.offsets)))
    }

    /// The text of token ids. Bytes that are not UTF-8 are handled as `errors` says, as in `bytes.decode`.
    #[pyo3(signature = (ids, *, remove_special = false, unparse_special = false, errors = "replace"))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        remove_special: bool,
        unparse_special: bool,
        errors: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        let bytes = self.decode_to_bytes(py, ids, remove_special, unparse_special)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(PyString::new(py, text)),
            Err(_) => {
                let text = PyBytes::new(py, &bytes).call_method1(intern!(py, "decode"), ("utf-8", errors))?;
                Ok(text.cast_into::<PyString>()?)
            }
        }
    }

    /// The text of token ids, as bytes.
    #[pyo3(signature = (ids, *, remove_special = false, unparse_special = false))]
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        remove_special: bool,
        unparse_special: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.decode_to_bytes(py, ids, remove_special, unparse_special)?))
    }

    /// The bytes of one token; none for control and unknown tokens unless `special`.
    #[pyo3(signature = (id, *, special = true))]
    fn piece<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>, special: bool) -> PyResult<Bound<'py, PyBytes>> {
        let id = token_id(id, self.core.vocabulary().len())?;
        self.core.piece(id, special).map(|piece| PyBytes::new(py, piece)).map_err(index_error)
    }

    /// What was put right while loading, one sentence each.
    #[getter]
    fn repairs(&self) -> Vec<&str> {
        self.core.vocabulary().repairs().iter().map(String::as_str).collect()
    }

    /// Memory that the tokenizer holds, in bytes, without scratch spaces.
    #[getter]
    fn heap_bytes(&self) -> usize {
        self.core.heap_bytes()
    }

    fn _size(&self) -> usize {
        self.core.vocabulary().len()
    }

    /// Text, score and attribute bits of a token.
    fn _token(&self, id: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, f32, u16)> {
        let vocabulary = self.core.vocabulary();
        let id = token_id(id, vocabulary.len())?;
        self.core.check_id(id).map_err(index_error)?;
        Ok((vocabulary.text(id).to_vec(), vocabulary.score(id), vocabulary.attributes(id).bits()))
    }

    /// The id of a token text.
    fn _token_id(&self, text: &[u8]) -> Option<TokenId> {
        self.core.vocabulary().id(text)
    }

    /// Kind, model and pre-tokenizer by name.
    fn _kind(&self) -> (&'static str, &'static str, Option<&'static str>) {
        let vocabulary = self.core.vocabulary();
        (vocabulary.kind().name(), vocabulary.model(), vocabulary.pre().map(|pre| pre.name))
    }

    /// Special token ids by name.
    fn _special<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let special = self.core.vocabulary().special();
        let all = PyDict::new(py);
        for (name, id) in [
            ("bos", special.bos),
            ("eos", special.eos),
            ("eot", special.eot),
            ("eom", special.eom),
            ("unk", special.unk),
            ("sep", special.sep),
            ("nl", special.nl),
            ("pad", special.pad),
            ("mask", special.mask),
            ("fim_pre", special.fim_pre),
            ("fim_suf", special.fim_suf),
            ("fim_mid", special.fim_mid),
            ("fim_pad", special.fim_pad),
            ("fim_rep", special.fim_rep),
            ("fim_sep", special.fim_sep),
        ] {
            all.set_item(name, id)?;
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
}
