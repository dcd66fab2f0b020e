//! Sorted runs of counted words in a temporary file, and their merge.
//!
//! A run is a table of words ordered by their bytes; each is stored as its length and count in LEB128, and its bytes.
//! Runs follow each other in the file. Merging takes a buffer of 64 KiB per run.
//!
//! O(n log n) for n bytes of words, O(n log r) to merge r runs.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};

use ggtok_core::internals::interrupt;

use super::table::WordTable;

/// The temporary file for words that do not fit into memory.
pub trait Spill: Read + Write + Seek + Send {}

impl<T: Read + Write + Seek + Send> Spill for T {}

/// How many bytes of a run are read or written at a time.
const BUFFER: usize = 1 << 16;

/// The runs of a file.
pub(super) struct SpilledRuns<'a> {
    file: Box<dyn Spill + 'a>,
    /// Where each run ends.
    pub(super) ends: Vec<u64>,
}

impl<'a> SpilledRuns<'a> {
    pub(super) fn new(file: Box<dyn Spill + 'a>) -> Self {
        Self { file, ends: Vec::new() }
    }

    /// Writes the words of a table as a run.
    pub(super) fn write(&mut self, table: &WordTable) -> io::Result<()> {
        let mut end = self.ends.last().copied().unwrap_or_default();
        self.file.seek(SeekFrom::Start(end))?;
        let mut buffer = Vec::with_capacity(2 * BUFFER);
        for index in table.sorted() {
            let word = table.word(index as usize);
            put_number(&mut buffer, word.len() as u64);
            put_number(&mut buffer, table.count(index as usize));
            buffer.extend_from_slice(word);
            if buffer.len() >= BUFFER {
                interrupt::check();
                self.file.write_all(&buffer)?;
                end += buffer.len() as u64;
                buffer.clear();
            }
        }
        self.file.write_all(&buffer)?;
        self.ends.push(end + buffer.len() as u64);
        Ok(())
    }

    /// Calls `found` with every word and its total count, ordered by their bytes.
    pub(super) fn merge(&mut self, mut found: impl FnMut(&[u8], u64)) -> io::Result<()> {
        let file = &RefCell::new(&mut *self.file);
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        let run = |(at, end)| BufReader::with_capacity(BUFFER, Run { file, at, end });
        let mut runs = Vec::from_iter(ranges.map(run));
        let mut heap = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            heap.extend(next(run)?.map(|(word, count)| Reverse((word, number, count))));
        }
        let mut current: Option<Vec<u8>> = None;
        let mut total = 0;
        while let Some(Reverse((word, number, count))) = heap.pop() {
            interrupt::check();
            heap.extend(next(&mut runs[number])?.map(|(word, count)| Reverse((word, number, count))));
            if let Some(done) = current.as_ref().filter(|current| **current != word) {
                found(done, std::mem::take(&mut total));
            }
            total += count;
            current = Some(word);
        }
        if let Some(word) = current {
            found(&word, total);
        }
        Ok(())
    }
}

/// The part of a run that has not been read. Runs take turns, so every read seeks.
struct Run<'f, 'a> {
    file: &'f RefCell<&'f mut (dyn Spill + 'a)>,
    at: u64,
    end: u64,
}

impl Read for Run<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(self.at))?;
        let len = buffer.len().min((self.end - self.at) as usize);
        file.read_exact(&mut buffer[..len])?;
        self.at += len as u64;
        Ok(len)
    }
}

/// The next word of a run and its count.
fn next(run: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, u64)>> {
    if run.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let len = number(run)?;
    let count = number(run)?;
    let mut word = Vec::new();
    run.take(len).read_to_end(&mut word)?;
    if word.len() as u64 == len { Ok(Some((word, count))) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Reads a LEB128 number.
fn number(run: &mut impl Read) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        run.read_exact(&mut byte)?;
        number |= u64::from(byte[0] & 0x7F) << shift;
        if byte[0] < 0x80 {
            break;
        }
    }
    Ok(number)
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::SpilledRuns;
    use crate::table::WordTable;

    /// Some words are longer than the buffer.
    fn word() -> impl Strategy<Value = String> {
        prop_oneof![9 => "[abc]{0,4}", 1 => Just("x".repeat(70_000))]
    }

    proptest! {
        #[test]
        fn runs_merge_into_all_words(
            tables in prop::collection::vec(prop::collection::vec((word(), 1..1_000_000_u64), 0..30), 0..5),
        ) {
            let mut expected = BTreeMap::new();
            let mut runs = SpilledRuns::new(Box::new(Cursor::new(Vec::new())));
            for words in &tables {
                let mut table = WordTable::default();
                for (word, count) in words {
                    table.add(word.as_bytes(), *count);
                    *expected.entry(word.clone().into_bytes()).or_insert(0) += *count;
                }
                runs.write(&table).unwrap();
            }
            let mut found = Vec::new();
            runs.merge(|word, count| found.push((word.to_vec(), count))).unwrap();
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }
}
