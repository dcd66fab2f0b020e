//! Texts that are cut to a budget, with places in characters, as Python counts.

use std::ops::Range;

use ggtok_core::{Boundary, BudgetError, EncodeOptions, Ends, Segmentable, Spans, SplitOptions, Truncation};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyString};

use crate::arguments::{TextArgument, one_of, text};
use crate::errors::{Raise, invalid, type_error};
use crate::tokenizer::Tokenizer;

#[doc = doc!(split)]
#[pyfunction]
#[allow(clippy::too_many_arguments)]
pub fn split(
    py: Python<'_>,
    tokenizer: &Tokenizer,
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
    let chunks = tokenizer.work(py, text.len(), |scratch| match text.text() {
        Some(text) => tokenizer.core.split(&text, &split, options, scratch),
        None => Ok(Vec::new()),
    })?;
    let ranges = text.characters(chunks.iter().map(|chunk| chunk.start..chunk.end));
    Ok(ranges.into_iter().zip(&chunks).map(|(range, chunk)| (range.start, range.end, chunk.count)).collect())
}

#[doc = doc!(truncate)]
#[pyfunction]
pub fn truncate(
    py: Python<'_>,
    tokenizer: &Tokenizer,
    text: &Bound<'_, PyAny>,
    max_tokens: usize,
    side: &Bound<'_, PyAny>,
    add_special: bool,
    parse_special: bool,
) -> PyResult<(usize, usize)> {
    let side = one_of(
        "side must be",
        side,
        &[("right", Truncation::Right), ("left", Truncation::Left), ("middle", Truncation::Middle)],
    )?;
    let options = EncodeOptions { add_special, parse_special, ..EncodeOptions::default() };
    // A `str` that is not ASCII is copied as UTF-8, so only its ends are converted.
    let len = string(text)?.len()?;
    for read in Ends::lens(len, max_tokens) {
        let slice = |start: usize, end: usize| text.get_item(PySlice::new(py, start as isize, end as isize, 1));
        let (head, tail) = (slice(0, read)?, slice(len - read, len)?);
        let (head, tail) = (Cuttable::new(&head)?, Cuttable::new(&tail)?);
        let kept = tokenizer.work(py, head.len() + tail.len(), |scratch| match (head.text(), tail.text()) {
            (Some(head), Some(tail)) => {
                let ends = Ends { head, tail, is_whole: read == len };
                tokenizer.core.truncate_ends(&ends, max_tokens, side, options, scratch)
            }
            _ => Ok(Some((0, 0))),
        })?;
        if let Some((start, end)) = kept {
            let num =
                |text: &Cuttable<'_>, range| text.characters([range].into_iter()).pop().map_or(0, |range| range.len());
            return Ok((num(&head, 0..start), len - num(&tail, end..tail.len())));
        }
    }
    Ok((len, len))
}

/// A `str` argument that is cut.
struct Cuttable<'a> {
    text: TextArgument<'a>,
    /// The text without its surrogates, if it has any.
    segmented: Option<String>,
}

impl<'a> Cuttable<'a> {
    fn new(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        let text = text(string(object)?)?;
        let segmented = match &text {
            TextArgument::Surrogates(bytes) => Some(without_surrogates(bytes)),
            _ => None,
        };
        Ok(Self { text, segmented })
    }

    fn text(&self) -> Option<Segmentable<'_>> {
        match (&self.text, &self.segmented) {
            (TextArgument::Str(text), _) => Some(Segmentable::new(text)),
            (text, Some(segmented)) => Segmentable::with_surrogates(text.text().as_bytes(), segmented),
            _ => None,
        }
    }

    fn len(&self) -> usize {
        self.text.text().as_bytes().len()
    }

    /// Changes byte ranges of the text into ranges of its characters.
    fn characters(&self, ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
        let mut spans = Spans { ids: Vec::new(), spans: ranges.collect() };
        spans.count_characters(self.text.text().as_bytes());
        spans.spans
    }
}

/// Checks that an argument is a `str`.
fn string<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyAny>> {
    if object.is_instance_of::<PyString>() {
        return Ok(object);
    }
    Err(type_error(format!("text must be str, not {}", object.get_type().name()?)))
}

/// A text with U+FFFD in place of each surrogate. Both have three bytes.
fn without_surrogates(bytes: &[u8]) -> String {
    let mut replaced = bytes.to_vec();
    for at in memchr::memchr_iter(0xED, bytes) {
        if bytes.get(at + 1).is_some_and(|&byte| byte >= 0xA0) {
            replaced[at..at + 3].copy_from_slice("\u{FFFD}".as_bytes());
        }
    }
    String::from_utf8_lossy(&replaced).into_owned()
}

/// How to split, from Python's arguments.
fn split_options(max_tokens: usize, overlap: usize, names: &Bound<'_, PyList>) -> PyResult<SplitOptions> {
    let mut boundaries = Vec::new();
    for name in names {
        boundaries.push(one_of("boundaries must be of", &name, &Boundary::ALL)?);
    }
    boundaries.sort_unstable();
    boundaries.dedup();
    Ok(SplitOptions { max_tokens, overlap, boundaries })
}

impl Raise for BudgetError {
    fn raise(self) -> PyErr {
        match self {
            Self::Encode(error) => error.raise(),
            _ => invalid(self.to_string()),
        }
    }
}
