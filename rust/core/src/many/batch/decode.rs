//! Decodes several rows of ids, on several threads. O((ids + length of the output) / threads).
//!
//! The calling thread takes the texts in order while the others decode the rows after them, and decodes too if none
//! wait for it.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::decode::DecodeOptions;
use crate::error::{DecodeError, OutOfMemory};
use crate::many::batch::rows::Rows;
use crate::tokenizer::Tokenizer;
use crate::work::interrupt;
use crate::work::memory::{self, append, push};
use crate::work::threads::{Lead, share};

/// How many rows are decoded between two checks for an interrupt.
const ROWS_AT_ONCE: usize = 64;
/// Ids that a thread takes at a time. A row counts as one more.
const RUN: usize = 1 << 14;
/// The calling thread takes texts when so many runs wait. To take them it may have to wait for other work, such as
/// for Python's GIL, so it does not do so for each run.
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
    /// The first row with an unknown id, and the error.
    Row(usize, DecodeError),
    /// The texts were not taken.
    NotTaken(E),
}

/// The texts of a run, or the row that fails.
type Decoded = Result<DecodedRows, (usize, DecodeError)>;

/// Runs that were decoded and not taken.
#[derive(Debug, Default)]
struct Runs {
    /// The number of the first one.
    first: usize,
    /// In order, each once it is decoded.
    runs: VecDeque<Option<Decoded>>,
}

/// [`Runs`] of several threads.
#[derive(Debug, Default)]
struct SharedRuns(Mutex<Runs>);

impl SharedRuns {
    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, number: usize, run: Decoded) {
        let mut runs = self.lock();
        let place = number - runs.first;
        if runs.runs.len() <= place {
            runs.runs.resize_with(place + 1, || None);
        }
        runs.runs[place] = Some(run);
    }

    /// Whether at least so many runs can be taken.
    fn has(&self, num_runs: usize) -> bool {
        let runs = self.lock();
        runs.runs.len() >= num_runs && runs.runs.iter().take(num_runs).all(Option::is_some)
    }

    /// The next run, if it is decoded.
    fn take(&self) -> Option<Decoded> {
        let mut runs = self.lock();
        let run = runs.runs.front_mut()?.take()?;
        runs.runs.pop_front();
        runs.first += 1;
        Some(run)
    }
}

impl Tokenizer {
    /// Decodes every row as [`Tokenizer::decode_with`] does, on at most `threads` threads.
    ///
    /// `take` is called on this thread with a closure that returns the texts of the next rows, and `None` when more
    /// must be decoded first. Together the calls get all texts in order.
    ///
    /// # Errors
    /// - [`DecodeBatchError::Row`] for the first row with an unknown id, or if there is not enough memory.
    /// - [`DecodeBatchError::NotTaken`] if `take` fails.
    pub fn decode_batch<E>(
        &self,
        rows: Rows<'_>,
        options: DecodeOptions,
        threads: usize,
        mut take: impl FnMut(&mut dyn FnMut() -> Option<DecodedRows>) -> Result<(), E>,
    ) -> Result<(), DecodeBatchError<E>> {
        let runs = SharedRuns::default();
        let step = |(): &mut (), (number, range)| runs.put(number, self.decode_run(rows, range, options));
        let mut take_decoded = || {
            let mut failed = None;
            let taken = take(&mut || match runs.take()? {
                Ok(texts) => Some(texts),
                Err(error) => {
                    failed = Some(error);
                    None
                }
            });
            match failed {
                Some((row, error)) => Err(DecodeBatchError::Row(row, error)),
                None => taken.map_err(DecodeBatchError::NotTaken),
            }
        };
        let lead = |lead: Lead<'_, (usize, Range<usize>)>| {
            let (mut number, mut start, mut size) = (0, 0, 0);
            for (row, ids) in rows.iter().enumerate() {
                size += ids.len() + 1;
                if size >= RUN || row + 1 == rows.len() {
                    lead.push((number, start..row + 1));
                    (number, start, size) = (number + 1, row + 1, 0);
                }
            }
            loop {
                if runs.has(WAITING) {
                    take_decoded()?;
                } else if !lead.work_once() {
                    break;
                }
            }
            lead.finish();
            take_decoded()
        };
        let out_of_memory = |error: OutOfMemory| Err(DecodeBatchError::Row(0, error.into()));
        memory::catch(|| share(threads.saturating_sub(1), || (), step, lead).0).unwrap_or_else(out_of_memory)
    }

    fn decode_run(&self, rows: Rows<'_>, range: Range<usize>, options: DecodeOptions) -> Decoded {
        let mut run = DecodedRows::default();
        for row in range {
            if row % ROWS_AT_ONCE == 0 {
                interrupt::check();
            }
            let text = self.decode_with(rows.get(row).unwrap_or_default(), options).map_err(|error| (row, error))?;
            append(&mut run.bytes, &text);
            push(&mut run.ends, run.bytes.len());
        }
        Ok(run)
    }
}
