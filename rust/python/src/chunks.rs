//! Texts that are cut to a budget, with positions as Python counts: characters of a `str`, bytes of others.

use std::ops::Range;

use ggtok_core::Spans;
use ggtok_core::chunks::{Boundary, Ends, Segmentable, SplitOptions, Truncation};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyString};

use crate::arguments::{TextArgument, encode_options, one_of, text, with_name};
use crate::run::check_signals;
use crate::tokenizer::Tokenizer;

#[pyfunction]
pub fn split(
    py: Python<'_>,
    tokenizer: &Tokenizer,
    text: &Bound<'_, PyAny>,
    max_tokens: usize,
    overlap: usize,
    boundaries: &Bound<'_, PyList>,
    prefix: &Bound<'_, PyAny>,
    add_special: bool,
    parse_special: bool,
) -> PyResult<Vec<(usize, usize, usize)>> {
    let object = text;
    let text = Cuttable::new(text)?;
    let prefix = Cuttable::new(prefix)?;
    let mut kinds = Vec::new();
    let mut places = Vec::new();
    for kind in boundaries {
        if kind.hasattr(intern!(py, "finditer"))? {
            kinds.push(Boundary::Listed(places.len()));
            places.push(text.matches(object, &kind).map_err(|error| with_name(py, "boundaries", error))?);
        } else {
            kinds.push(one_of("boundaries must be compiled patterns or of", &kind, &Boundary::ALL)?);
        }
    }
    let split =
        SplitOptions::new(max_tokens).overlap(overlap).boundaries(kinds).places(places).prefix(prefix.bytes().to_vec());
    let options = encode_options(add_special, parse_special, false);
    let chunks = tokenizer.work(py, text.bytes().len(), |encoder| encoder.split(&text.text(), split, options))?;
    let ranges = text.places(chunks.iter().map(|chunk| chunk.start..chunk.end));
    Ok(ranges.into_iter().zip(&chunks).map(|(range, chunk)| (range.start, range.end, chunk.count)).collect())
}

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
    let side = self::side(side)?;
    let options = encode_options(add_special, parse_special, false);
    if !text.is_instance_of::<PyString>() {
        let text = Cuttable::new(text)?;
        let removed = tokenizer
            .work(py, text.bytes().len(), |encoder| encoder.truncate(&text.text(), max_tokens, side, options))?;
        return Ok((removed.start, removed.end));
    }
    // A `str` that is not ASCII is copied as UTF-8, so only its ends are converted.
    let len = text.len()?;
    for read in Ends::lens(len, max_tokens) {
        let slice = |start: usize, end: usize| text.get_item(PySlice::new(py, start as isize, end as isize, 1));
        let head = slice(0, read)?;
        let tail = slice(len - read, len)?;
        let head = Cuttable::new(&head)?;
        let tail = Cuttable::new(&tail)?;
        let kept = tokenizer.work(py, head.bytes().len() + tail.bytes().len(), |encoder| {
            let ends = Ends { head: head.text(), tail: tail.text(), is_whole: read == len };
            encoder.truncate_ends(&ends, max_tokens, side, options)
        })?;
        if let Some((start, end)) = kept {
            let num =
                |text: &Cuttable<'_>, range| text.places([range].into_iter()).pop().map_or(0, |range| range.len());
            return Ok((num(&head, 0..start), len - num(&tail, end..tail.bytes().len())));
        }
    }
    Ok((len, len))
}

/// A text that is cut.
struct Cuttable<'a>(TextArgument<'a>);

impl<'a> Cuttable<'a> {
    fn new(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        text(object).map(Self)
    }

    fn bytes(&self) -> &[u8] {
        self.0.text().as_bytes()
    }

    fn text(&self) -> Segmentable<'_> {
        match &self.0 {
            TextArgument::Str(text) => Segmentable::new(text),
            _ => Segmentable::of_bytes(self.bytes()),
        }
    }

    /// Changes byte ranges of the text into what Python counts: ranges of its characters, if it is a `str`.
    fn places(&self, ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
        let mut spans = Spans { ids: Vec::new(), spans: ranges.collect() };
        if self.0.bytes().is_none() {
            spans.to_characters(self.bytes());
        }
        spans.spans
    }

    /// Where the matches of a compiled pattern end, in bytes.
    fn matches(&self, object: &Bound<'_, PyAny>, pattern: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
        let py = object.py();
        let searched = self.0.bytes().map_or(object.clone(), |bytes| PyBytes::new(py, bytes).into_any());
        let is_start = |&(_, byte): &(usize, &u8)| self.0.bytes().is_some() || byte & 0xC0 != 0x80;
        let starts = self.bytes().iter().enumerate().filter(is_start).map(|(at, _)| at);
        let mut starts = starts.enumerate().peekable();
        let mut places = Vec::new();
        for (index, found) in pattern.call_method1(intern!(py, "finditer"), (searched,))?.try_iter()?.enumerate() {
            check_signals(py, index)?;
            let end: usize = found?.call_method0(intern!(py, "end"))?.extract()?;
            while starts.next_if(|&(number, _)| number < end).is_some() {}
            places.push(starts.peek().map_or(self.bytes().len(), |&(_, at)| at));
        }
        Ok(places)
    }
}

/// The side that is cut off.
pub(crate) fn side(name: &Bound<'_, PyAny>) -> PyResult<Truncation> {
    let known = [("right", Truncation::Right), ("left", Truncation::Left), ("middle", Truncation::Middle)];
    one_of("side must be", name, &known)
}
