//! What one call may spend: work and memory, counted before they are spent. Neither is measured in time, so that a busy
//! machine renders whatever an idle one does.

use std::cell::Cell;

use crate::error::Error;

/// Steps that any call may take: about half a second.
const STEPS: usize = 20_000_000;
/// Bytes that strings may take at the same time, and that everything else may take in total.
const BYTES: usize = 64 << 20;
/// How many more of both for each byte of the conversation.
const PER_BYTE: usize = 64;

thread_local! {
    /// The bytes that the strings of this thread take.
    pub(crate) static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Notes that a string of this thread takes `after` bytes instead of `before`.
pub(crate) fn hold(before: usize, after: usize) {
    HELD.set(HELD.get() - before + after);
}

/// How many steps and bytes are left.
#[derive(Debug)]
pub struct Budget {
    steps: usize,
    bytes: usize,
    /// How many bytes strings may take at the same time.
    most_held: usize,
}

impl Budget {
    /// The budget of a call whose messages, tools and variables have `input` bytes.
    pub fn new(input: usize) -> Self {
        let more = input.saturating_mul(PER_BYTE);
        let bytes = BYTES.saturating_add(more).min(u32::MAX as usize);
        Self { steps: STEPS.saturating_add(more), bytes, most_held: bytes }
    }

    /// Pays for steps.
    pub(crate) fn steps(&mut self, count: usize) -> Result<(), Error> {
        self.steps = self.steps.checked_sub(count).ok_or_else(|| limit("the template takes too many steps"))?;
        Ok(())
    }

    /// Pays for the work of filling `count` bytes of a string, and checks that there is memory for them beside the other
    /// strings of this thread.
    pub(crate) fn string(&mut self, count: usize) -> Result<(), Error> {
        if HELD.get().saturating_add(count) > self.most_held {
            return Err(limit("the template takes too much memory"));
        }
        self.steps(1 + count / 64)
    }

    /// Pays for bytes that are about to be allocated, and for the work of filling them.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<(), Error> {
        self.bytes = self.bytes.checked_sub(count).ok_or_else(|| limit("the template takes too much memory"))?;
        self.steps(count / 64)
    }
}

fn limit(problem: &str) -> Error {
    Error::Limit { problem: problem.to_owned() }
}
