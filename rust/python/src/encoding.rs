//! The tokens of a text with their offsets, as Python sees them.
//!
//! The numbers stay in Rust's memory, and numpy arrays are read-only views of it. Only the arrays need numpy.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ggtok_core::{EncodeOptions, Parts, Spans, Text, TokenId, Tokenizer};
use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arguments::one_of;
use crate::bytes::little_endian;
use crate::errors::invalid;
use crate::ints::with_lists;
use crate::memory::{Buffer, Memory};
use crate::run::{list, run};

/// How many offsets are made between two checks for signals.
const PART: usize = 1 << 15;
/// How many tokens the repr shows.
const SHOWN: usize = 3;

/// How pickle makes an encoding: a function and its arguments.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>));

/// What offsets count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Char,
    Byte,
    Utf16,
}

impl Unit {
    /// Converts byte ranges of a text to this unit.
    pub(crate) fn apply(self, text: Text<'_>, spans: &mut Spans) {
        match self {
            Self::Char => spans.to_characters(text.as_bytes()),
            Self::Utf16 => spans.to_utf16(text.as_bytes()),
            Self::Byte => (),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Unit {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        one_of("unit must be", &name, &[("char", Self::Char), ("byte", Self::Byte), ("utf16", Self::Utf16)])
    }
}

#[doc = doc!(Encoding)]
#[pyclass(frozen, module = "ggtok")]
pub struct Encoding {
    ids: Arc<Vec<TokenId>>,
    /// The start and end of each token.
    offsets: Arc<Vec<i64>>,
    words: WordNumbers,
}

/// For each token the number of its word, or -1; or what they follow from.
pub(crate) enum WordNumbers {
    Known(Vec<i32>),
    Of(Arc<Tokenizer>, Parts, EncodeOptions),
}

impl Encoding {
    pub(crate) fn new_from(spans: Spans, words: WordNumbers) -> Self {
        // Reuses the memory of the spans.
        let offsets = spans.spans.into_iter().map(|span| [span.start as i64, span.end as i64]).collect::<Vec<_>>();
        Self { ids: Arc::new(spans.ids), offsets: Arc::new(offsets.into_flattened()), words }
    }

    fn words(&self, py: Python<'_>) -> PyResult<Cow<'_, [i32]>> {
        match &self.words {
            WordNumbers::Known(words) => Ok(Cow::Borrowed(words)),
            WordNumbers::Of(core, text, options) => {
                let words = || core.with_encoder(|encoder| encoder.words(text, *options));
                run(py, text.len(), words).map(Cow::Owned)
            }
        }
    }

    /// The ids and offsets of some tokens: of those that there are.
    pub(crate) fn slice(&self, tokens: Range<usize>) -> (&[TokenId], &[[i64; 2]]) {
        let end = tokens.end.min(self.ids.len());
        let tokens = tokens.start.min(end)..end;
        (&self.ids[tokens.clone()], &self.offsets.as_chunks().0[tokens])
    }
}

#[pymethods]
impl Encoding {
    #[doc = doc!(Encoding.ids)]
    #[getter]
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Buffer::whole(Memory::Int32(Arc::clone(&self.ids))).into_numpy(py)
    }

    #[doc = doc!(Encoding.offsets)]
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Buffer::new(Memory::Int64(Arc::clone(&self.offsets)), 0, &[self.ids.len(), 2]).into_numpy(py)
    }

    #[doc = doc!(Encoding.tolist)]
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>)> {
        let ids = with_lists(|lists| {
            lists.ids.extend_from_slice(&self.ids);
            lists.list(py)
        })?;
        let offsets = PyList::empty(py);
        for part in self.offsets.as_chunks().0.chunks(PART) {
            py.check_signals()?;
            let part = list(py, part.iter().map(|&[start, end]| (start, end)))?;
            offsets.set_slice(offsets.len(), offsets.len(), part.as_any())?;
        }
        Ok((ids, offsets))
    }

    #[doc = doc!(Encoding.tokens_of)]
    fn tokens_of(&self, start: &Bound<'_, PyAny>, end: &Bound<'_, PyAny>) -> PyResult<(usize, usize)> {
        let start = place("start", start)?;
        let end = place("end", end)?;
        if start > end {
            return Err(invalid(format!("start is {start}, after end, which is {end}")));
        }
        let offsets: &[[i64; 2]] = self.offsets.as_chunks().0;
        let first = offsets.partition_point(|offset| offset[1] <= start);
        Ok((first, offsets.partition_point(|offset| offset[0] < end).max(first)))
    }

    #[doc = doc!(Encoding.word_ids)]
    fn word_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list(py, self.words(py)?.iter().map(|&word| (word >= 0).then_some(word)))
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.ids == other.ids && self.offsets == other.offsets
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Pickled<'py>> {
        let ids = little_endian(py, &self.ids, TokenId::to_le_bytes)?;
        let offsets = little_endian(py, &self.offsets, i64::to_le_bytes)?;
        let words = little_endian(py, &self.words(py)?, i32::to_le_bytes)?;
        let unpickled = py.import(intern!(py, "ggtok._ggtok"))?.getattr(intern!(py, "_encoding"))?;
        Ok((unpickled, (ids, offsets, words)))
    }

    fn __repr__(&self) -> String {
        let tokens = self.ids.iter().zip(self.offsets.as_chunks().0).take(SHOWN);
        let mut shown: Vec<String> = tokens.map(|(id, [start, end])| format!("{id} ({start}, {end})")).collect();
        if self.ids.len() > SHOWN {
            shown.push("...".to_owned());
        }
        let plural = if self.ids.len() == 1 { "" } else { "s" };
        let colon = if shown.is_empty() { "" } else { ": " };
        format!("<ggtok.Encoding of {} token{plural}{colon}{}>", self.ids.len(), shown.join(", "))
    }
}

/// The encoding with these ids, offsets and words, each number little endian, as `__reduce__` makes them.
#[pyfunction]
pub fn _encoding(ids: &[u8], offsets: &[u8], words: &[u8]) -> PyResult<Encoding> {
    if !ids.len().is_multiple_of(size_of::<TokenId>()) || [words.len(), offsets.len()] != [ids.len(), 4 * ids.len()] {
        return Err(invalid("this is not a pickled encoding: its numbers of ids and of offsets differ".to_owned()));
    }
    let int32 = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|&id| i32::from_le_bytes(id)).collect();
    let offsets = offsets.as_chunks().0.iter().map(|&offset| i64::from_le_bytes(offset)).collect();
    Ok(Encoding { ids: Arc::new(int32(ids)), offsets: Arc::new(offsets), words: WordNumbers::Known(int32(words)) })
}

/// A place in a text.
fn place(name: &str, place: &Bound<'_, PyAny>) -> PyResult<i64> {
    match place.extract::<i64>() {
        Ok(at @ 0..) => Ok(at),
        Err(error) if !error.is_instance_of::<PyOverflowError>(place.py()) => Err(error),
        _ => Err(invalid(format!("{name} must be at least 0 and less than 2**63"))),
    }
}
