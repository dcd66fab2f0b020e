//! The columns of an encoding as JSON, as Python's `json.dumps` writes it: in ASCII, with a space after commas.

use std::io;

use ggtok_core::{DecodeError, TokenId};
use ggtok_explain::bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::encoding::Encoding;
use crate::errors::Raise;
use crate::run::run;
use crate::tokenizer::Tokenizer;

#[pyfunction]
pub fn json_items<'py>(
    py: Python<'py>,
    tokenizer: &Tokenizer,
    encoding: &Encoding,
    column: &str,
    start: usize,
    end: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let (ids, offsets) = encoding.slice(start..end);
    let json = match column {
        "ids" => items(ids).map_err(Raise::raise)?,
        "offsets" => items(offsets).map_err(Raise::raise)?,
        _ => run(py, ids.len(), || pieces(tokenizer, ids))?,
    };
    Ok(PyBytes::new(py, &json))
}

/// The items of a list as JSON, without its brackets.
fn items<T: Serialize>(list: &[T]) -> serde_json::Result<Vec<u8>> {
    let mut json = Vec::new();
    list.serialize(&mut Serializer::with_formatter(&mut json, Ascii))?;
    json.pop();
    json.remove(0);
    Ok(json)
}

/// The bytes of tokens. Most are printable ASCII, which is copied.
fn pieces(tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
    let mut json = Vec::with_capacity(ids.len() * 8);
    for &id in ids {
        let piece = tokenizer.core.piece(id, true)?;
        let is_special = |byte: u8| !(0x20..0x7f).contains(&byte) | (byte == b'"') | (byte == b'\\');
        if piece.iter().fold(false, |found, &byte| found | is_special(byte)) {
            // Writing to a vector does not fail.
            let _ = Bytes::from(piece).serialize(&mut Serializer::with_formatter(&mut json, Ascii));
            json.extend_from_slice(b", ");
        } else {
            json.push(b'"');
            json.extend_from_slice(piece);
            json.extend_from_slice(b"\", ");
        }
    }
    // Without the last separator.
    json.truncate(json.len().saturating_sub(2));
    Ok(json)
}

/// JSON in ASCII.
struct Ascii;

impl Formatter for Ascii {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        for unit in text.encode_utf16() {
            match u8::try_from(unit) {
                Ok(byte @ ..0x7f) => writer.write_all(&[byte])?,
                _ => write!(writer, "\\u{unit:04x}")?,
            }
        }
        Ok(())
    }
}
