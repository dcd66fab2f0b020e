//! How much a trace may record, so that no text makes one that fills the memory.

use super::ExplainError;
use crate::interrupt::Ticker;

/// The most steps that a trace records. Each takes about 200 bytes here and some times more in Python.
pub(super) const MAX_STEPS: usize = 1_000_000;
/// Bytes of a text that count as a step.
const BYTES_PER_STEP: usize = 64;

/// Counts what a trace records, and asks from time to time whether to stop.
#[derive(Debug)]
pub(super) struct Limit {
    left: usize,
    ticker: Ticker,
}

impl Default for Limit {
    fn default() -> Self {
        Self { left: MAX_STEPS, ticker: Ticker::default() }
    }
}

impl Limit {
    /// Counts one step that keeps a text of `len` bytes.
    ///
    /// # Errors
    /// [`ExplainError::TooManySteps`] after the last step that a trace may record.
    pub(super) fn step(&mut self, len: usize) -> Result<(), ExplainError> {
        self.ticker.tick();
        let steps = 1 + len / BYTES_PER_STEP;
        self.left = self.left.checked_sub(steps).ok_or(ExplainError::TooManySteps { limit: MAX_STEPS })?;
        Ok(())
    }
}
