//! Decodes several rows of ids, on several threads. O((ids + length of the output) / threads).

use std::ops::Range;

use crate::decode::DecodeOptions;
use crate::error::TokenIndexError;
use crate::many::batch::rows::Rows;
use crate::tokenizer::Tokenizer;
use crate::work::interrupt;
use crate::work::memory::{append, push};
use crate::work::threads::{Lead, share};

/// How many rows are decoded between two checks for an interrupt.
const ROWS_AT_ONCE: usize = 64;
/// Ids that a thread takes at a time. A row counts as one more.
const RUN: usize = 1 << 14;

/// The texts of several rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodedBatch {
    runs: Vec<Run>,
}

/// The texts of consecutive rows, end to end. They need not be UTF-8.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Run {
    first_row: usize,
    bytes: Vec<u8>,
    /// Text `i` of the run ends at `bytes[ends[i]]`.
    ends: Vec<usize>,
}

impl DecodedBatch {
    /// All texts in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.runs.iter().flat_map(|Run { bytes, ends, .. }| {
            let starts = [0].into_iter().chain(ends.iter().copied());
            starts.zip(ends).map(|(start, &end)| bytes.get(start..end).unwrap_or_default())
        })
    }
}

impl Tokenizer {
    /// Decodes every row as [`Tokenizer::decode`] does, on at most `threads` threads.
    ///
    /// # Errors
    /// The first row with an unknown id, and the error.
    pub fn decode_batch(
        &self,
        rows: Rows<'_>,
        options: DecodeOptions,
        threads: usize,
    ) -> Result<DecodedBatch, (usize, TokenIndexError)> {
        let step = |results: &mut Vec<Result<_, _>>, range| results.push(self.decode_run(rows, range, options));
        let lead = |lead: Lead<'_, Range<usize>>| {
            let (mut start, mut size) = (0, 0);
            for (row, ids) in rows.iter().enumerate() {
                size += ids.len() + 1;
                if size >= RUN || row + 1 == rows.len() {
                    lead.push(start..row + 1);
                    (start, size) = (row + 1, 0);
                }
            }
            lead.finish();
        };
        let ((), results) = share(threads.saturating_sub(1), Vec::new, step, lead);
        let mut results = results.into_iter().flatten().collect::<Vec<_>>();
        results.sort_unstable_by_key(|result| match result {
            Ok(run) => run.first_row,
            Err((row, _)) => *row,
        });
        let runs = results.into_iter().collect::<Result<_, _>>()?;
        Ok(DecodedBatch { runs })
    }

    fn decode_run(
        &self,
        rows: Rows<'_>,
        range: Range<usize>,
        options: DecodeOptions,
    ) -> Result<Run, (usize, TokenIndexError)> {
        let mut run = Run { first_row: range.start, ..Run::default() };
        for row in range {
            if row % ROWS_AT_ONCE == 0 {
                interrupt::check();
            }
            let text = self.decode(rows.get(row).unwrap_or_default(), options).map_err(|error| (row, error))?;
            append(&mut run.bytes, &text);
            push(&mut run.ends, run.bytes.len());
        }
        Ok(run)
    }
}
