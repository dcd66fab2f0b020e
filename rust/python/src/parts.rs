//! Texts in parts: pairs of a text and whether control tokens are parsed in it.

use std::ops::Range;

use ggtok_core::Parts;
use pyo3::prelude::*;
use pyo3::types::PySequence;

use crate::arguments::{is_text, iterate, text, with_name};
use crate::encoding::Unit;
use crate::errors::{Raise, invalid, type_error};
use crate::run::{check_signals, quick};

/// Reads an iterable of parts to its end and joins them. What the iterable raises passes through; an error of a part
/// names it. Unless they are counted, bytes must be UTF-8, but a character may continue from one part of bytes to the next.
pub(crate) fn parts(object: &Bound<'_, PyAny>, unit: Unit) -> PyResult<Parts> {
    let py = object.py();
    let expected = "parts must be an iterable of pairs of a text and a bool";
    if is_text(object) {
        return Err(type_error(format!("{expected}, not {}", object.get_type().name()?)));
    }
    let mut parts = Parts::default();
    let mut of_bytes = Vec::new();
    for (index, part) in iterate(object, expected)?.enumerate() {
        check_signals(py, index)?;
        let part = part?;
        let named = |error| with_name(py, &format!("part {index}"), error);
        let (part_text, parse_special) = pair(&part).map_err(named)?;
        let argument = text(&part_text).map_err(named)?;
        let start = parts.len();
        quick(|| parts.push(argument.text(), parse_special))?;
        if unit != Unit::Byte && argument.bytes().is_some() {
            of_bytes.push((index, start..parts.len()));
        }
    }
    if !of_bytes.is_empty() {
        check_utf8(&parts, &of_bytes)?;
    }
    Ok(parts)
}

/// The two items of a part.
fn pair<'py>(part: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, bool)> {
    let wrong = |found: &str| type_error(format!("expected a pair of a text and a bool, not {found}"));
    if is_text(part) || part.cast::<PySequence>().is_err() {
        return Err(wrong(&part.get_type().name()?.to_string()));
    }
    let len = part.len()?;
    if len != 2 {
        return Err(wrong(&format!("{} of length {len}", part.get_type().name()?)));
    }
    let flag = part.get_item(1)?;
    let parse_special = flag.extract::<bool>().map_err(|error| match flag.get_type().name() {
        Ok(found) => type_error(format!("parse_special must be a bool, not {found}")),
        Err(_) => error,
    })?;
    Ok((part.get_item(0)?, parse_special))
}

/// Checks the parts of bytes, each given as its number and its range of the joined text.
fn check_utf8(parts: &Parts, of_bytes: &[(usize, Range<usize>)]) -> PyResult<()> {
    let joined = parts.text().map_err(Raise::raise)?.as_bytes();
    for run in of_bytes.chunk_by(|(before, _), (number, _)| before + 1 == *number) {
        let start = run[0].1.start;
        let Err(error) = std::str::from_utf8(&joined[start..run[run.len() - 1].1.end]) else { continue };
        let at = start + error.valid_up_to();
        let (number, part) = &run[run.partition_point(|(_, part)| part.start <= at) - 1];
        return Err(invalid(format!("part {number}: {}", not_utf8(at - part.start))));
    }
    Ok(())
}

/// What is wrong with a text of bytes whose characters are to be counted.
pub(crate) fn not_utf8(at: usize) -> String {
    format!("bytes that are not UTF-8 (at byte {at}) have no characters to count; unit=\"byte\" works for any bytes")
}
