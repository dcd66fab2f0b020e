//! Buffers that grow with a text, where memory may end.
//!
//! Rust ends the process if an allocation fails. The functions here try instead, and unwind with [`OutOfMemory`] as
//! [`interrupt`](crate::interrupt) does: no panic hook runs, nothing is printed, and no function in between has to
//! return an error. What the work wrote to is half done, as after an interruption.

use std::fmt;
use std::panic::resume_unwind;

/// Memory was not enough for a buffer. The payload of an unwinding that comes out of a call of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is not enough memory for this text")
    }
}

impl std::error::Error for OutOfMemory {}

/// Makes room for `additional` items more, at least as much again as there is.
#[inline(always)]
pub(crate) fn reserve<T>(buffer: &mut Vec<T>, additional: usize) {
    if additional > buffer.capacity() - buffer.len() {
        grow(buffer, additional);
    }
}

#[cold]
#[inline(never)]
fn grow<T>(buffer: &mut Vec<T>, additional: usize) {
    if buffer.try_reserve(additional).is_err() {
        // A zero-sized payload takes no memory.
        resume_unwind(Box::new(OutOfMemory));
    }
}

/// An empty buffer with room for `capacity` items.
pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut buffer = Vec::new();
    if buffer.try_reserve_exact(capacity).is_err() {
        resume_unwind(Box::new(OutOfMemory));
    }
    buffer
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::{OutOfMemory, reserve, with_capacity};

    #[test]
    fn what_does_not_fit_unwinds() {
        let failed = catch_unwind(|| with_capacity::<u64>(usize::MAX / 16)).unwrap_err();
        assert!(failed.is::<OutOfMemory>());
        let failed = catch_unwind(|| reserve(&mut vec![0u64], usize::MAX / 16)).unwrap_err();
        assert!(failed.is::<OutOfMemory>());
        let mut buffer = with_capacity(3);
        reserve(&mut buffer, 3);
        buffer.push(1u8);
        assert!(buffer.capacity() >= 3);
    }
}
