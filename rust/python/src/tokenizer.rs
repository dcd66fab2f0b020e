//! The tokenizer class that `ggtok.Tokenizer` extends.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use ggtok_core::{Count, DecodeOptions, Definition, EncodeOptions, SLOTS, Scratch, SpecialIds, TokenId};
use numpy::PyArray1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::arguments::{self, text, token_id, token_ids};
use crate::arrays::Arrays;
use crate::ints::with_lists;
use crate::run::{quick, run, run_long};
use crate::scratch::with_scratch;
use crate::strings::StringArray;

/// The capacity that an array of ids starts with: enough for a short text.
const ROOM: usize = 64;

/// Numbers tokenizers, so that threads can tell their scratch spaces apart.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A vocabulary and its algorithm: the base class of `ggtok.Tokenizer`, which says how to make one.
#[pyclass(frozen, subclass, module = "ggtok._ggtok")]
pub struct Tokenizer {
    pub(crate) core: ggtok_core::Tokenizer,
    number: u64,
    /// Scratch spaces for the threads of batches.
    pub(crate) pool: Mutex<Vec<Scratch>>,
}

impl Tokenizer {
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
        run(py, text.as_bytes().len(), || {
            with_scratch(self.number, |scratch| self.core.encode_into(text, options, scratch, sink))
        })
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
        run(py, ids.len(), || self.core.decode(&ids, options))
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
        model: &[u8],
        pre: Option<&[u8]>,
        tokens: Option<PyRef<'_, StringArray>>,
        scores: Option<&[u8]>,
        int_scores: bool,
        token_types: Option<&[u8]>,
        merges: Option<PyRef<'_, StringArray>>,
        charsmap: Option<&[u8]>,
        vocab_size: Option<u32>,
        special: &Bound<'_, PyDict>,
        flags: &Bound<'_, PyDict>,
        name: &[u8],
        architecture: &[u8],
    ) -> PyResult<Self> {
        let words = |bytes: &[u8]| bytes.as_chunks::<4>().0.to_vec();
        let scores: Option<Vec<f32>> = scores.map(|scores| {
            let score = |word| if int_scores { i32::from_le_bytes(word) as f32 } else { f32::from_le_bytes(word) };
            words(scores).into_iter().map(score).collect()
        });
        let token_types: Option<Vec<i32>> =
            token_types.map(|types| words(types).into_iter().map(i32::from_le_bytes).collect());
        let mut special_ids = SpecialIds::default();
        for given in SLOTS.iter().flat_map(|slot| slot.given) {
            *(given.id_mut)(&mut special_ids) = special.get_item(given.name)?.map(|id| id.extract()).transpose()?;
        }
        let flag =
            |key: &str| -> PyResult<Option<bool>> { flags.get_item(key)?.map(|flag| flag.extract()).transpose() };

        let (model, pre) = (arguments::name(model), pre.map(arguments::name));
        let (name, architecture) = (arguments::name(name), arguments::name(architecture));
        let definition = Definition {
            model: &model,
            pre: pre.as_deref(),
            tokens: tokens.as_ref().map(|tokens| tokens.view()),
            scores: scores.as_deref(),
            token_types: token_types.as_deref(),
            merges: merges.as_ref().map(|merges| merges.view()),
            charsmap,
            vocab_size,
            special: special_ids,
            add_bos: flag("add_bos")?,
            add_eos: flag("add_eos")?,
            add_sep: flag("add_sep")?,
            add_space_prefix: flag("add_space_prefix")?,
            remove_extra_whitespaces: flag("remove_extra_whitespaces")?,
            lowercase: flag("lowercase")?,
            strip_accents: flag("strip_accents")?,
            name: &name,
            architecture: &architecture,
        };
        let core = run_long(py, || ggtok_core::Tokenizer::new(&definition))?;
        Ok(Self { core, number: NEXT.fetch_add(1, Ordering::Relaxed), pool: Mutex::default() })
    }

    /// Encodes a text to a list of token ids.
    ///
    /// Args:
    ///     text: A `str`, or bytes: `bytes`, `bytearray`, `memoryview`, or another buffer with one dimension of
    ///         single bytes, such as a uint8 array. Bytes that are not UTF-8 are read as llama.cpp reads them. A lone
    ///         surrogate in a `str` is read as the three bytes that `surrogatepass` encodes it to.
    ///     add_special: Add BOS, EOS and SEP where the vocabulary says so.
    ///     parse_special: Read control tokens written in the text, such as `<|im_end|>`, as tokens. Keep it off for
    ///         text from users. User-defined tokens are always read.
    ///
    /// Returns:
    ///     The ids, each at least 0 and less than `len(vocab)`; -1 for unknown text where a vocabulary has no unknown
    ///     token.
    ///
    /// Raises:
    ///     TypeError: `text` is of another type.
    ///     VocabularyError: The file has no vocabulary, or a token must be added that it does not have.
    ///     GgtokError: The text is 2 GiB or longer.
    ///
    /// The GIL is released for texts of more than 512 bytes. Ctrl-C stops a long text.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.encode("What is LoRA?")
    /// [9713, 5981, 6266, 78, 9612, 30]
    /// >>> tok.encode(b"<|im_end|>", parse_special=True)
    /// [12993]
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

    /// Encodes a text to an array of token ids, without a Python int for each.
    ///
    /// Takes the arguments of `encode` and raises what it does, and `DependencyError` where numpy is not installed.
    ///
    /// Returns:
    ///     A numpy array of dtype int32 and shape `(number of tokens,)`.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("bpe").encode_array("What is LoRA?")
    /// array([9713, 5981, 6266,   78, 9612,   30], dtype=int32)
    #[pyo3(signature = (text, *, add_special = true, parse_special = false))]
    fn encode_array<'py>(
        &self,
        py: Python<'py>,
        text: &Bound<'py, PyAny>,
        add_special: bool,
        parse_special: bool,
    ) -> PyResult<Bound<'py, PyArray1<TokenId>>> {
        let arrays = Arrays::ready(py)?;
        let mut ids = Vec::with_capacity(ROOM);
        self.encode_into(py, text, EncodeOptions { add_special, parse_special }, &mut ids)?;
        arrays.array(ids)
    }

    /// Counts the tokens of a text: the length of what `encode` returns, without making the ids.
    ///
    /// Takes the arguments of `encode` and raises what it does.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("bpe").count("What is LoRA?")
    /// 6
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

    /// Decodes token ids to text, as llama.cpp's `llama_detokenize` does.
    ///
    /// Args:
    ///     ids: An iterable of integers, or an array of integers with one dimension; int32 is the fastest.
    ///     remove_special: Remove BOS and EOS where `encode` adds them.
    ///     unparse_special: Write control and unknown tokens as their text. They are left out otherwise.
    ///     errors: What to do with bytes that are not UTF-8, as in `bytes.decode`. Tokens may end inside a character.
    ///
    /// Raises:
    ///     TypeError: An id is not an integer.
    ///     TokenIndexError: An id is not in the vocabulary.
    ///     UnicodeDecodeError: The bytes are not UTF-8 and `errors` is "strict".
    ///     LookupError: Python knows no error handler of the name `errors`.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.decode([9713, 5981, 6266, 78, 9612, 30])
    /// 'What is LoRA?'
    /// >>> tok.decode([9713, 12993]), tok.decode([9713, 12993], unparse_special=True)
    /// ('What', 'What<|im_end|>')
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

    /// Decodes token ids to bytes, which need not be UTF-8.
    ///
    /// Takes the arguments of `decode` except `errors`, and raises `TypeError` and `TokenIndexError` as it does.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.decode_bytes(tok.encode("\u00e9"))
    /// b'\xc3\xa9'
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

    /// The bytes of one token, as llama.cpp's `llama_token_to_piece` returns them.
    ///
    /// Args:
    ///     id: The token.
    ///     special: Return the text of a control or unknown token. Otherwise such a token has no bytes.
    ///
    /// Raises:
    ///     TypeError: `id` is not an integer.
    ///     TokenIndexError: `id` is not in the vocabulary.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.piece(5981), tok.piece(12993), tok.piece(12993, special=False)
    /// (b' is', b'<|im_end|>', b'')
    #[pyo3(signature = (id, *, special = true))]
    fn piece<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>, special: bool) -> PyResult<Bound<'py, PyBytes>> {
        let id = token_id(id, self.core.vocabulary().len())?;
        let piece = run(py, 0, || self.core.piece(id, special))?;
        Ok(PyBytes::new(py, piece))
    }

    /// What was repaired at load, as llama.cpp repairs it, one sentence each.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("spm").repairs
    /// []
    #[getter]
    fn repairs(&self) -> Vec<&str> {
        self.core.vocabulary().repairs().iter().map(String::as_str).collect()
    }

    /// The memory that the tokenizer holds, in bytes, without its scratch spaces and caches.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("spm").heap_bytes > 100_000
    /// True
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
