//! The tokenizer class that `ggtok.Tokenizer` extends.

use std::sync::{Arc, OnceLock};

use ggtok_core::explain::Explainer;
use ggtok_core::{
    Count, DecodeOptions, EncodeError, EncodeOptions, SLOTS, Scratch, ScratchPool, Spans, Strings, TokenId,
};
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

/// A vocabulary and its algorithm: the base class of `ggtok.Tokenizer`, which says how to make one.
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

    /// Encodes a text to a list of token ids.
    ///
    /// Args:
    ///     text: A `str`, or bytes: `bytes`, `bytearray`, `memoryview`, or another buffer with one dimension of
    ///         single bytes, such as a uint8 array. Bytes that are not UTF-8 are read as llama.cpp reads them. A lone
    ///         surrogate in a `str` is read as the three bytes that `surrogatepass` encodes it to.
    ///     add_special: Add BOS, EOS and SEP where the vocabulary says so.
    ///     parse_special: Read control tokens written in the text, such as `<|im_end|>`, as tokens. Keep it off for
    ///         text from users. User-defined tokens are always read.
    ///     continues: The text continues an earlier one: no BOS is added, and nothing is put before its first
    ///         characters. SPM and Unigram put no space there, WordPiece reads letters at the start as the rest of a
    ///         word, and PLaMo-2 keeps a byte order mark. EOS and SEP follow `add_special` as always.
    ///
    /// Returns:
    ///     The ids, each at least 0 and less than `len(vocab)`; -1 for unknown text where a vocabulary has no unknown
    ///     token.
    ///
    /// Raises:
    ///     TypeError: `text` has the wrong type.
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
    /// >>> spm = ggtok.Tokenizer.builtin("spm")
    /// >>> spm.encode("form", add_special=False), spm.encode("form", continues=True)
    /// ([945], [780])
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

    /// Counts the tokens of a text: the length of what `encode` returns, without making the ids.
    ///
    /// Takes the arguments of `encode` and raises what it does.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("bpe").count("What is LoRA?")
    /// 6
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

    /// Encodes a text to token ids, each with the span of the text that it comes from.
    ///
    /// Takes the arguments of `encode` and raises what it does.
    ///
    /// Args:
    ///     text: As in `encode`.
    ///     unit: What spans count: `"char"` (as `text[start:end]` of a `str` does) or `"byte"` (bytes of UTF-8, or of
    ///         a text that is bytes). With `"char"`, bytes count as the `str` that they decode to.
    ///     add_special: As in `encode`.
    ///     parse_special: As in `encode`.
    ///     continues: As in `encode`.
    ///
    /// Returns:
    ///     The ids that `encode` returns, and for each its half-open span in the original text: what was lowercased,
    ///     stripped of accents, replaced or escaped is traced back. Starts never decrease, nor do ends, and all are
    ///     inside the text. BOS, EOS and SEP have an empty span at their place, and so has a space that was put before
    ///     the text. Tokens that are bytes of one character each have the span of their byte, or that of the whole
    ///     character with `"char"`. Whitespace that becomes one space is in the span of that space. What the
    ///     vocabulary drops (whitespace between words of WordPiece, or beside a special token) is in no span.
    ///
    /// Raises:
    ///     GgtokError: `unit` is another; or it is `"char"` and `text` is bytes that are not UTF-8, which have no
    ///         characters. It is a `ValueError`.
    ///
    /// Most spans follow from the lengths of tokens, so this takes little longer than `encode_array`. O(length) space.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("wordpiece")
    /// >>> text = "Caf\u00e9 \u00c9COLE"
    /// >>> ids, spans = tok.encode_with_offsets(text).tolist()
    /// >>> [(tok.piece(id), text[start:end]) for id, (start, end) in zip(ids, spans)] == [
    /// ...     (b"[CLS]", ""), (b" ca", "Ca"), (b"fe", "f\u00e9"), (b" ec", "\u00c9C"), (b"ole", "OLE"), (b"[SEP]", "")
    /// ... ]
    /// True
    /// >>> tok.encode_with_offsets(text, unit="byte", add_special=False).tolist()[1]
    /// [(0, 2), (2, 5), (6, 9), (9, 12)]
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

    /// Encodes a text in parts, each of which says whether control tokens written in it are read.
    ///
    /// Args:
    ///     parts: An iterable of pairs `(text, parse_special)`: a text as `encode` takes it, and a bool. It is read to
    ///         its end first.
    ///     add_special: As in `encode`.
    ///     continues: As in `encode`.
    ///
    /// Returns:
    ///     The ids of all parts put together. A control token is only read where all of it is in parts that allow it:
    ///     parts that follow each other and allow it count as one. User-defined tokens are read everywhere, and
    ///     words go on across the borders of parts. So the ids equal those of `encode` with `parse_special` for the
    ///     whole text, wherever the other parts, and their borders, have no text of a control token.
    ///
    /// Raises:
    ///     TypeError: A part is not a pair, or its items are of other types: "part 3: ...".
    ///     VocabularyError, GgtokError: As `encode`, for all parts together.
    ///
    /// Exceptions of the iterable pass through.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.encode_parts([("hi", False), ("<|im_end|>", True)])
    /// [6876, 12993]
    /// >>> tok.encode_parts([("hi<|im_end|>", False), ("<|im_end|>", True)])
    /// [6876, 27, 91, 5953, 62, 6094, 91, 29, 12993]
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

    /// Counts the tokens of a text in parts: the length of what `encode_parts` returns.
    ///
    /// Takes the arguments of `encode_parts` and raises what it does.
    ///
    /// >>> import ggtok
    /// >>> ggtok.Tokenizer.builtin("bpe").count_parts([("hi", False), ("<|im_end|>", True)])
    /// 2
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

    /// Encodes a text in parts to token ids with spans, which count from the start of the first part.
    ///
    /// Takes the arguments of `encode_parts` and raises what it does. `unit`, the result and its errors are as in
    /// `encode_with_offsets` for all parts put together; the error of bytes that are not UTF-8 names the part.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.encode_parts_with_offsets([("hi", False), ("<|im_end|>", True)]).tolist()
    /// ([6876, 12993], [(0, 2), (2, 12)])
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

    /// An encoder for a text that arrives in parts, or is too long for memory.
    ///
    /// All ids that it returns, put together, are what `encode` returns for the whole text, however it is cut.
    ///
    /// Args:
    ///     add_special: As in `encode`. BOS comes with the first ids, EOS with the last.
    ///     parse_special: As in `encode`.
    ///
    /// Raises:
    ///     VocabularyError: As in `encode`.
    ///
    /// >>> import ggtok
    /// >>> encoder = ggtok.Tokenizer.builtin("bpe").encoder()
    /// >>> encoder.push("What is Lo"), encoder.push("RA?"), encoder.flush()
    /// ([9713, 5981], [], [6266, 78, 9612, 30])
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

    /// Decodes token ids to text: their pieces, joined, without the space that `encode` puts in front of some texts.
    ///
    /// Code and prose come back as they were. `docs/how/detokenizing.md` lists the vocabularies that change texts when
    /// they are encoded.
    ///
    /// Args:
    ///     ids: An iterable of integers, or an array of integers with one dimension; int32 is the fastest.
    ///     remove_special: Remove BOS and EOS where `encode` adds them.
    ///     unparse_special: Write control and unknown tokens as their text. They are left out otherwise.
    ///     clean_spaces: Return exactly what llama.cpp's `llama_detokenize` does. It removes the spaces before `.`,
    ///         `,`, `!`, `?` and English contractions if the vocabulary asks for it (`vocab.clean_spaces`), and keeps
    ///         the space that `encode` puts after BOS.
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

    /// Decodes token ids to bytes, which need not be UTF-8.
    ///
    /// Takes the arguments of `decode` except `errors`, and raises `TypeError` and `TokenIndexError` as it does.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> tok.decode_bytes(tok.encode("\u00e9"))
    /// b'\xc3\xa9'
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

    /// A decoder for ids that arrive one by one, as a model generates them.
    ///
    /// All that it returns, put together, is what `decode` returns for all ids, however they are cut.
    ///
    /// Args:
    ///     stop: A string that ends the text, or an iterable of such strings: `str`, or also bytes if `text` is false.
    ///         The text ends before the first of them.
    ///     remove_special: As in `decode`.
    ///     unparse_special: As in `decode`.
    ///     clean_spaces: As in `decode`. Spaces that may still go are held back.
    ///     text: Return `str`, with U+FFFD for bytes that are not UTF-8. Otherwise return bytes, as `decode_bytes`
    ///         does.
    ///
    /// Raises:
    ///     TypeError: A stop string has the wrong type.
    ///     ValueError: A stop string is empty.
    ///
    /// >>> import ggtok
    /// >>> tok = ggtok.Tokenizer.builtin("bpe")
    /// >>> decoder = tok.decoder(stop=["?", " Hmm"])
    /// >>> [decoder.push(id) for id in tok.encode("What is LoRA? And")]
    /// ['What', ' is', ' L', 'o', 'RA', '', '']
    /// >>> decoder.flush(), decoder.stopped
    /// ('', '?')
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
