//! How work runs: cancellation, memory that may end, threads.

pub(crate) mod interrupt;
pub(crate) mod memory;
#[cfg(test)]
pub(crate) mod steps;
pub(crate) mod threads;
