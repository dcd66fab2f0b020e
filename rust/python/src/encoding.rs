//! The tokens of a text with their offsets, as Python sees them.
//!
//! The numbers stay in Rust's memory, and numpy arrays are read-only views of it. Only the arrays need numpy.

use std::ops::Range;
use std::sync::Arc;

use ggtok_core::{Spans, Text, TokenId};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arguments::one_of;
use crate::bytes::little_endian;
use crate::errors::invalid;
use crate::ints::with_lists;
use crate::memory::{Buffer, Memory};

/// How many offsets are made between two checks for signals.
const PART: usize = 1 << 15;
/// How many tokens the repr shows.
const SHOWN: usize = 3;

/// How pickle makes an encoding: a function and its arguments.
type Pickled<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, Bound<'py, PyBytes>));

/// What offsets count.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Char,
    Byte,
}

impl Unit {
    /// Converts byte ranges of a text to this unit.
    pub(crate) fn apply(self, text: Text<'_>, spans: &mut Spans) {
        if self == Self::Char {
            spans.count_characters(text.as_bytes());
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for Unit {
    type Error = PyErr;

    fn extract(name: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        one_of("unit must be", &name, &[("char", Self::Char), ("byte", Self::Byte)])
    }
}

#[doc = doc!(Encoding)]
#[pyclass(frozen, module = "ggtok")]
pub struct Encoding {
    ids: Arc<Vec<TokenId>>,
    /// The start and end of each token.
    offsets: Arc<Vec<i64>>,
}

impl Encoding {
    pub(crate) fn new_from(spans: Spans) -> Self {
        // Reuses the memory of the spans.
        let offsets = spans.spans.into_iter().map(|span| [span.start as i64, span.end as i64]).collect::<Vec<_>>();
        Self { ids: Arc::new(spans.ids), offsets: Arc::new(offsets.into_flattened()) }
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
        Buffer::row(Memory::Int32(Arc::clone(&self.ids)), 0, self.ids.len()).into_numpy(py)
    }

    #[doc = doc!(Encoding.offsets)]
    #[getter]
    fn offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Buffer::table(Memory::Int64(Arc::clone(&self.offsets)), self.ids.len(), 2).into_numpy(py)
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
            let part = PyList::new(py, part.iter().map(|&[start, end]| (start, end)))?;
            offsets.set_slice(offsets.len(), offsets.len(), part.as_any())?;
        }
        Ok((ids, offsets))
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
        let unpickled = py.import(intern!(py, "ggtok._ggtok"))?.getattr(intern!(py, "_encoding"))?;
        Ok((unpickled, (ids, offsets)))
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

/// The encoding with these ids and offsets, each number little endian, as `__reduce__` makes them.
#[pyfunction]
pub fn _encoding(ids: &[u8], offsets: &[u8]) -> PyResult<Encoding> {
    let ((ids, odd_id), (offsets, odd_offset)) = (ids.as_chunks(), offsets.as_chunks());
    if 2 * ids.len() != offsets.len() || !odd_id.is_empty() || !odd_offset.is_empty() {
        return Err(invalid("this is not a pickled encoding: its numbers of ids and of offsets differ".to_owned()));
    }
    let ids = ids.iter().map(|&id| TokenId::from_le_bytes(id)).collect();
    let offsets = offsets.iter().map(|&offset| i64::from_le_bytes(offset)).collect();
    Ok(Encoding { ids: Arc::new(ids), offsets: Arc::new(offsets) })
}
