//! Limits what a trace records, so that no text can exhaust the memory.

use ggtok_core::internals::interrupt;
use ggtok_core::vocab::Vocabulary;

use super::{ExplainError, Result};

/// The most steps that a trace records. Each takes about 200 bytes here and several times as much in Python.
pub(super) const MAX_STEPS: usize = 1_000_000;
/// Bytes of a text that count as a step.
const BYTES_PER_STEP: usize = 64;

/// How many steps pass between two checks for an interrupt.
const STEPS_PER_CHECK: usize = 1024;

/// What tracers share: the vocabulary, and what the trace may still record.
#[derive(Debug)]
pub(super) struct Tracing<'v> {
    pub vocabulary: &'v Vocabulary,
    pub limit: Limit,
}

/// Counts down what a trace may still record, and regularly checks for an interrupt.
#[derive(Debug)]
pub(super) struct Limit(usize);

impl Default for Limit {
    fn default() -> Self {
        Self(MAX_STEPS)
    }
}

impl Limit {
    /// Counts one step that keeps a text of `len` bytes.
    ///
    /// # Errors
    /// [`ExplainError::TooManySteps`] after the last step that a trace may record.
    pub(super) fn step(&mut self, len: usize) -> Result<()> {
        let steps = 1 + len / BYTES_PER_STEP;
        let left = self.0.checked_sub(steps).ok_or(ExplainError::TooManySteps { limit: MAX_STEPS })?;
        // A long text counts as many short ones.
        if self.0 / STEPS_PER_CHECK != left / STEPS_PER_CHECK {
            interrupt::check();
        }
        self.0 = left;
        Ok(())
    }
}
