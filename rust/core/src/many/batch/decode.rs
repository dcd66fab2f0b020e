//! Decodes several rows of ids. O(ids + length of the output).

use crate::decode::DecodeOptions;
use crate::error::TokenIndexError;
use crate::many::batch::rows::Rows;
use crate::tokenizer::Tokenizer;
use crate::work::interrupt;
use crate::work::memory;

/// How many rows are decoded between two checks for an interrupt.
const ROWS_AT_ONCE: usize = 64;

/// The texts of several rows, end to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecodedBatch {
    /// All texts. They need not be UTF-8.
    pub bytes: Vec<u8>,
    /// Text `i` ends at `bytes[ends[i]]`.
    pub ends: Vec<usize>,
}

impl DecodedBatch {
    /// All texts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let text = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            text
        })
    }
}

impl Tokenizer {
    /// Decodes every row as [`Tokenizer::decode`] does.
    ///
    /// # Errors
    /// The first row with an unknown id, and the error.
    pub fn decode_batch(
        &self,
        rows: Rows<'_>,
        options: DecodeOptions,
    ) -> Result<DecodedBatch, (usize, TokenIndexError)> {
        let mut decoded = DecodedBatch { bytes: Vec::new(), ends: memory::with_capacity(rows.len()) };
        for (row, ids) in rows.iter().enumerate() {
            if row % ROWS_AT_ONCE == 0 {
                interrupt::check();
            }
            let text = self.decode(ids, options).map_err(|error| (row, error))?;
            memory::reserve(&mut decoded.bytes, text.len());
            decoded.bytes.extend_from_slice(&text);
            decoded.ends.push(decoded.bytes.len());
        }
        Ok(decoded)
    }
}
