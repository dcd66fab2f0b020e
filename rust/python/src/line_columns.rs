//! Lines of bytes to columns of texts, as the three buffers of Arrow's type `large_utf8`.
//!
//! The bytes are checked for UTF-8 as a whole, by `simdutf8`: outside of ASCII, `std` takes as long as all else here.
//! Only if that fails is it done line by line.

use std::panic::resume_unwind;
use std::sync::Arc;

use ggtok_core::OutOfMemory;
use memchr::{memchr, memchr_iter};
use pyo3::pybacked::PyBackedBytes;

use crate::arrow::validity;
use crate::memory::{Buffer, Memory};

/// A column as Python receives it: offsets, validity and data.
pub(crate) type Buffers = (Buffer, Option<Buffer>, Buffer);

/// A bad line: its number, where it starts and ends in all lines, the reason, and the fields of an object that lacks one.
pub(crate) type BadLine = (i64, usize, usize, String, Vec<String>);

/// The number of lines, the numbers of the rows, the columns and the bad lines.
pub(crate) type LineColumns = (usize, Buffer, Vec<Buffers>, Vec<BadLine>);

/// The rows that lines became.
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    /// The numbers of their lines.
    rows: Vec<i64>,
    bad: Vec<BadLine>,
    num_lines: usize,
}

impl Table {
    /// A table without rows, with room for `num_bytes` in its first column.
    pub(crate) fn new(num_columns: usize, num_bytes: usize) -> Self {
        let mut columns: Vec<_> = (0..num_columns).map(|_| Column::new()).collect();
        columns[0].reserve(num_bytes);
        Self { columns, rows: Vec::new(), bad: Vec::new(), num_lines: 0 }
    }

    pub(crate) fn into_rows(self) -> LineColumns {
        let columns = self.columns.into_iter().map(Column::into_buffers).collect();
        (self.num_lines, numbers(self.rows), columns, self.bad)
    }
}

/// Whole lines: what the first one starts with, and a block with the rest of it and further lines, up to a byte.
pub(crate) type Lines = (PyBackedBytes, PyBackedBytes, usize);

/// The first line, if its start is not in the block, and the other lines.
pub(crate) fn split_first((start, block, end): &Lines) -> (Vec<u8>, &[u8]) {
    let block = &block[..(*end).min(block.len())];
    let len = if start.is_empty() { 0 } else { memchr(b'\n', block).map_or(block.len(), |at| at + 1) };
    ([start, &block[..len]].concat(), &block[len..])
}

/// Calls `read` with each line without its `\n`. It appends a row to the columns, or returns false, or a reason.
pub(crate) fn for_each_line<'a>(
    parts: [&'a [u8]; 2],
    first_row: i64,
    table: &mut Table,
    mut read: impl FnMut(&'a str, &mut Table) -> Result<bool, (String, Vec<String>)>,
) {
    let mut before = 0;
    for lines in parts {
        let whole = simdutf8::basic::from_utf8(lines);
        let last = (lines.last().is_some_and(|&byte| byte != b'\n')).then_some(lines.len());
        let mut start = 0;
        for end in memchr_iter(b'\n', lines).chain(last) {
            let row = first_row.saturating_add(table.num_lines as i64);
            let line = match whole {
                Ok(text) => Ok(&text[start..end]),
                Err(_) => std::str::from_utf8(&lines[start..end]),
            };
            let result = match line {
                Ok(line) => read(line, table),
                Err(error) => Err((format!("byte {} is not UTF-8", error.valid_up_to() + 1), Vec::new())),
            };
            match result {
                Ok(true) => table.rows.push(row),
                Ok(false) => {}
                Err((reason, names)) => {
                    table.columns.iter_mut().for_each(Column::undo);
                    table.bad.push((row, before + start, before + end, reason, names));
                }
            }
            table.num_lines += 1;
            start = end + 1;
        }
        before += lines.len();
    }
}

/// Texts, some of which may be null.
pub(crate) struct Column {
    /// Text `i` is `data[offsets[i]..offsets[i + 1]]`. There is always a first offset, 0.
    offsets: Vec<i64>,
    /// For each text whether it is null.
    nulls: Vec<bool>,
    /// The texts end to end, and what was pushed since the last one ended.
    data: Vec<u8>,
}

impl Column {
    fn new() -> Self {
        Self { offsets: vec![0], nulls: Vec::new(), data: Vec::new() }
    }

    /// Makes room for a text. Without memory the call unwinds, and becomes a `MemoryError` (see `run`).
    pub(crate) fn reserve(&mut self, num_bytes: usize) {
        if self.data.try_reserve(num_bytes).is_err() {
            resume_unwind(Box::new(OutOfMemory));
        }
    }

    /// Writes a part of the current text. There is room for it.
    #[inline]
    pub(crate) fn push(&mut self, part: &[u8]) {
        self.data.extend_from_slice(part);
    }

    /// Writes a character. There is room for it.
    #[inline]
    pub(crate) fn push_char(&mut self, character: char) {
        let mut bytes = [0; 4];
        // Of known lengths, so that no copy is a call.
        match character.encode_utf8(&mut bytes).len() {
            1 => self.push(&bytes[..1]),
            2 => self.push(&bytes[..2]),
            3 => self.push(&bytes[..3]),
            _ => self.push(&bytes),
        }
    }

    /// Makes room, and writes.
    pub(crate) fn push_all(&mut self, text: &[u8]) {
        self.reserve(text.len());
        self.push(text);
    }

    /// Drops what was written since the last text ended.
    fn undo(&mut self) {
        self.data.truncate(self.offsets[self.nulls.len()] as usize);
    }

    /// Ends a text. If it is null, nothing must have been written.
    pub(crate) fn end(&mut self, is_null: bool) {
        self.nulls.push(is_null);
        self.offsets.push(self.data.len() as i64);
    }

    fn into_buffers(self) -> Buffers {
        let bytes = |data| Buffer::whole(Memory::Uint8(Arc::new(data)));
        let validity = self.nulls.contains(&true).then(|| bytes(validity(&self.nulls)));
        (numbers(self.offsets), validity, bytes(self.data))
    }
}

/// Numbers that Python reads without a copy.
fn numbers(numbers: Vec<i64>) -> Buffer {
    Buffer::whole(Memory::Int64(Arc::new(numbers)))
}
