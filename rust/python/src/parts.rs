//! Texts in parts: pairs of a text and whether control tokens are parsed in it.

use ggtok_core::Parts;
use pyo3::prelude::*;
use pyo3::types::PySequence;

use crate::arguments::{TextArgument, is_text, iterate, text, with_name};
use crate::encoding::Unit;
use crate::errors::{invalid, type_error};
use crate::run::{check_signals, quick};

/// Reads an iterable of parts to its end and joins them. What the iterable raises passes through; an error of a part
/// names it. Unless they are counted, bytes must be UTF-8, but a character may continue from one part of bytes to the next.
pub(crate) fn parts(object: &Bound<'_, PyAny>, unit: Unit) -> PyResult<Parts> {
    let py = object.py();
    let expected = "parts must be an iterable of pairs of a text and a bool";
    if is_text(object) {
        return Err(type_error(format!("{expected}, not {}", object.get_type().name()?)));
    }
    let (mut parts, mut unfinished) = (Parts::default(), Unfinished::default());
    for (index, part) in iterate(object, expected)?.enumerate() {
        check_signals(py, index)?;
        let part = part?;
        let named = |error| with_name(py, &format!("part {index}"), error);
        let (part_text, parse_special) = pair(&part).map_err(named)?;
        let argument = text(&part_text).map_err(named)?;
        if unit != Unit::Byte {
            unfinished.check(&argument, index)?;
        }
        quick(|| parts.push(argument.text(), parse_special))?;
    }
    unfinished.end()?;
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

/// A character that the parts of bytes so far leave unfinished.
#[derive(Default)]
struct Unfinished {
    bytes: Vec<u8>,
    /// The part in which it starts, and the byte there.
    start: (usize, usize),
}

impl Unfinished {
    /// Checks that the next part continues it.
    fn check(&mut self, argument: &TextArgument<'_>, index: usize) -> PyResult<()> {
        let Some(bytes) = argument.bytes() else { return self.end() };
        let num_before = self.bytes.len();
        let joined;
        let (bytes, first) = if num_before == 0 {
            (bytes, (index, 0))
        } else {
            joined = [&self.bytes[..], bytes].concat();
            (&joined[..], self.start)
        };
        let Err(error) = std::str::from_utf8(bytes) else {
            self.bytes.clear();
            return Ok(());
        };
        let at = error.valid_up_to();
        let start = if at < num_before { first } else { (index, at - num_before) };
        if error.error_len().is_some() {
            return Err(no_characters(start));
        }
        (self.bytes, self.start) = (bytes[at..].to_vec(), start);
        Ok(())
    }

    /// Checks that nothing is left unfinished.
    fn end(&self) -> PyResult<()> {
        if self.bytes.is_empty() { Ok(()) } else { Err(no_characters(self.start)) }
    }
}

fn no_characters((index, at): (usize, usize)) -> PyErr {
    invalid(format!("part {index}: {}", not_utf8(at)))
}

/// What is wrong with a text of bytes whose characters are to be counted.
pub(crate) fn not_utf8(at: usize) -> String {
    format!("bytes that are not UTF-8 (at byte {at}) have no characters to count; unit=\"byte\" works for any bytes")
}
