//! The columns of an encoding as JSON, as Python's `json.dumps` writes it: in ASCII, with a space after commas.

use std::io;

use ggtok_core::TokenIndexError;
use ggtok_explain::bytes::Bytes;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::encoding::Encoding;
use crate::errors::invalid;
use crate::run::run;
use crate::tokenizer::Tokenizer;

#[doc = doc!(json_items)]
#[pyfunction]
pub fn json_items(
    py: Python<'_>,
    tokenizer: &Tokenizer,
    encoding: &Encoding,
    column: &str,
    start: usize,
    end: usize,
) -> PyResult<String> {
    let (ids, offsets) = encoding.slice(start..end);
    let json = match column {
        "ids" => json(ids),
        "offsets" => json(offsets),
        _ => {
            let piece = |&id| tokenizer.core.piece(id, true).map(Piece);
            let pieces = run(py, ids.len(), || ids.iter().map(piece).collect::<Result<Vec<_>, TokenIndexError>>())?;
            json(&pieces)
        }
    };
    json.map_err(|error| invalid(error.to_string()))
}

/// The items of a list, without brackets around them.
fn json<T: Serialize + ?Sized>(list: &T) -> serde_json::Result<String> {
    let mut json = Vec::new();
    list.serialize(&mut Serializer::with_formatter(&mut json, Ascii))?;
    Ok(String::from_utf8_lossy(&json[1..json.len() - 1]).into_owned())
}

/// The bytes of a token: a string, or an object with base64.
struct Piece<'a>(&'a [u8]);

impl Serialize for Piece<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Bytes::from(self.0).serialize(serializer),
        }
    }
}

struct Ascii;

impl Formatter for Ascii {
    fn begin_array_value<W: io::Write + ?Sized>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        if is_first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if text.bytes().all(|byte| byte.is_ascii() && byte != 0x7f) {
            return writer.write_all(text.as_bytes());
        }
        for unit in text.encode_utf16() {
            match u8::try_from(unit) {
                Ok(byte @ ..0x7f) => writer.write_all(&[byte])?,
                _ => write!(writer, "\\u{unit:04x}")?,
            }
        }
        Ok(())
    }
}
