//! Decodes several rows of ids, on several threads. O((ids + length of the output) / threads).
//!
//! The calling thread takes the texts in order while the others decode the rows after them. If it has nothing to take,
//! it decodes too.

use std::ops::Range;

use crate::decode::{DecodeOptions, detokenize};
use crate::error::DecodeError;
use crate::many::batch::rows::Rows;
use crate::tokenizer::Tokenizer;
use crate::work::in_order::InOrder;
use crate::work::interrupt;
use crate::work::memory::{self, push};
use crate::work::threads::{Jobs, Producer, share};

/// How many rows are decoded between two checks for an interrupt.
const ROWS_AT_ONCE: usize = 64;
/// Ids in a group of rows, which a thread takes at a time. A row counts as one more.
const GROUP: usize = 1 << 14;
/// The calling thread takes texts when this many groups are decoded, not after each one, because it may have to wait
/// for a lock to take them.
const WAITING: usize = 4;

/// The texts of consecutive rows, end to end. They need not be UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodedRows {
    bytes: Vec<u8>,
    /// Text `i` ends at `bytes[ends[i]]`.
    ends: Vec<usize>,
}

impl DecodedRows {
    /// All texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| self.bytes.get(start..end).unwrap_or_default())
    }
}

/// Why a batch was not decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeBatchError<E> {
    /// The first row that fails, and the error.
    Row(usize, DecodeError),
    /// The texts were not taken.
    NotTaken(E),
}

impl Tokenizer {
    /// Decodes every row as [`Tokenizer::decode_with`] does, on at most `threads` threads.
    ///
    /// `take` is called on this thread with a closure that returns the texts of the next rows, and `None` when more
    /// must be decoded first. Together the calls get all texts in order.
    ///
    /// # Errors
    /// - [`DecodeBatchError::Row`] for the first row that has an unknown id or for which there is not enough memory.
    /// - [`DecodeBatchError::NotTaken`] if `take` fails.
    pub fn decode_batch<E>(
        &self,
        rows: Rows<'_>,
        options: DecodeOptions,
        threads: usize,
        mut take: impl FnMut(&mut dyn FnMut() -> Option<DecodedRows>) -> Result<(), E>,
    ) -> Result<(), DecodeBatchError<E>> {
        let groups = InOrder::default();
        let decode = |(number, range)| groups.put(number, self.decode_group(rows, range, options));
        let work = |jobs: &Jobs<(usize, Range<usize>)>| jobs.for_each(decode);
        let mut take_decoded = || {
            let mut failed = None;
            let taken = take(&mut || match groups.take()? {
                Ok(texts) => Some(texts),
                Err((row, error)) => {
                    failed = Some(DecodeBatchError::Row(row, error));
                    None
                }
            });
            failed.map_or(taken.map_err(DecodeBatchError::NotTaken), Err)
        };
        let produce = |producer: Producer<'_, (usize, Range<usize>)>| {
            let mut number = 0;
            let mut start = 0;
            let mut size = 0;
            for (row, ids) in rows.iter().enumerate() {
                size += ids.len() + 1;
                if size >= GROUP || row + 1 == rows.len() {
                    memory::catch(|| producer.push((number, start..row + 1)))
                        .map_err(|error| DecodeBatchError::Row(start, error.into()))?;
                    (number, start, size) = (number + 1, row + 1, 0);
                }
            }
            loop {
                if groups.has(WAITING) {
                    take_decoded()?;
                } else if let Some(job) = producer.pop() {
                    decode(job);
                } else {
                    break;
                }
            }
            producer.finish();
            take_decoded()
        };
        share(threads.saturating_sub(1), work, produce).0
    }

    /// Decodes some rows; or the row that fails, and its error.
    fn decode_group(
        &self,
        rows: Rows<'_>,
        range: Range<usize>,
        options: DecodeOptions,
    ) -> Result<DecodedRows, (usize, DecodeError)> {
        let first = range.start;
        let mut group = DecodedRows::default();
        let decoded = memory::catch(|| {
            for row in range {
                if row % ROWS_AT_ONCE == 0 {
                    interrupt::check();
                }
                let ids = rows.get(row).unwrap_or_default();
                detokenize(self.vocabulary(), self.pieces(), ids, options, &mut group.bytes)?;
                push(&mut group.ends, group.bytes.len());
            }
            Ok(())
        });
        match decoded.unwrap_or_else(|error| Err(error.into())) {
            Ok(()) => Ok(group),
            Err(error) => Err((first + group.ends.len(), error)),
        }
    }
}
