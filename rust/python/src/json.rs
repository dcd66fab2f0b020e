//! The columns of an encoding as JSON, as Python's `json.dumps` writes it: in ASCII, with a space after commas.
//!
//! Numbers are written two digits at a time. The start of most tokens is the end of the token before, and is copied.

use std::io;

use ggtok_core::{DecodeError, TokenId};
use ggtok_explain::bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::encoding::Encoding;
use crate::run::run;
use crate::tokenizer::Tokenizer;

/// The most characters of a number.
const MOST: usize = 20;
/// What is written after each item.
const SEPARATOR: &[u8; 2] = b", ";
/// Numbers below this have up to eight digits.
const SHORT: i64 = 100_000_000;
/// The numbers below 100 with two digits, the first one in the low byte.
const PAIRS: [u16; 100] = {
    let mut pairs = [0; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number as usize] = u16::from_le_bytes([b'0' + number / 10, b'0' + number % 10]);
        number += 1;
    }
    pairs
};

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
    let mut json = match column {
        "ids" => numbers(ids),
        "offsets" => pairs(offsets),
        _ => run(py, ids.len(), || pieces(tokenizer, ids))?,
    };
    json.truncate(json.len().saturating_sub(SEPARATOR.len()));
    Ok(PyBytes::new(py, &json))
}

/// Numbers, with a separator after each.
fn numbers(ids: &[TokenId]) -> Vec<u8> {
    let mut json = Json::new(ids.len(), 1);
    for &id in ids {
        json.push_number(Decimal::new(id.into()));
        json.push(SEPARATOR);
    }
    json.finish()
}

/// Pairs of numbers, with a separator after each.
fn pairs(offsets: &[[i64; 2]]) -> Vec<u8> {
    let mut json = Json::new(offsets.len(), 2);
    let mut last = Decimal::new(0);
    for &[start, end] in offsets {
        if start != last.number {
            last = Decimal::new(start);
        }
        json.push(b"[");
        json.push_number(last);
        json.push(SEPARATOR);
        last = Decimal::new(end);
        json.push_number(last);
        json.push(b"], ");
    }
    json.finish()
}

/// The bytes of tokens, with a separator after each. Most are printable ASCII, which is copied.
fn pieces(tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<Vec<u8>, DecodeError> {
    let mut json = Vec::with_capacity(ids.len() * 8);
    for &id in ids {
        let piece = tokenizer.core.piece(id, true)?;
        let is_special = |byte: u8| !(0x20..0x7f).contains(&byte) | (byte == b'"') | (byte == b'\\');
        if piece.iter().fold(false, |found, &byte| found | is_special(byte)) {
            // Writing to a vector does not fail.
            let _ = Bytes::from(piece).serialize(&mut Serializer::with_formatter(&mut json, Ascii));
            json.extend_from_slice(SEPARATOR);
        } else {
            json.push(b'"');
            json.extend_from_slice(piece);
            json.extend_from_slice(b"\", ");
        }
    }
    Ok(json)
}

/// A number in decimal.
#[derive(Clone, Copy)]
struct Decimal {
    number: i64,
    /// The characters of a short number, the first one in the low byte.
    characters: u64,
    /// How many characters it has, if it is short.
    len: usize,
}

impl Decimal {
    /// Short numbers take no branch, because their lengths cannot be predicted.
    #[inline(always)]
    fn new(number: i64) -> Self {
        if !(0..SHORT).contains(&number) {
            return Self { number, characters: 0, len: 0 };
        }
        let short = number as u32;
        let high = short / 10_000;
        let low = short % 10_000;
        let pair = |number: u32| u64::from(PAIRS[number as usize]);
        let all = pair(high / 100) | pair(high % 100) << 16 | pair(low / 100) << 32 | pair(low % 100) << 48;
        let len = short.checked_ilog10().map_or(1, |log| log as usize + 1);
        Self { number, characters: all >> (64 - 8 * len), len }
    }
}

/// JSON that is written into room for all of it.
struct Json {
    room: Vec<u8>,
    len: usize,
}

impl Json {
    /// Room for a number of items, each with some numbers, a separator, and brackets.
    fn new(num_items: usize, numbers: usize) -> Self {
        Self { room: vec![0; num_items * (numbers * (MOST + SEPARATOR.len()) + 2) + MOST], len: 0 }
    }

    #[inline(always)]
    fn push<const N: usize>(&mut self, text: &[u8; N]) {
        self.room[self.len..self.len + N].copy_from_slice(text);
        self.len += N;
    }

    #[inline(always)]
    fn push_number(&mut self, Decimal { number, characters, len }: Decimal) {
        if len > 0 {
            self.room[self.len..self.len + 8].copy_from_slice(&characters.to_le_bytes());
            self.len += len;
        } else {
            number.to_string().bytes().for_each(|character| self.push(&[character]));
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.room.truncate(self.len);
        self.room
    }
}

/// JSON in ASCII.
struct Ascii;

impl Formatter for Ascii {
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
