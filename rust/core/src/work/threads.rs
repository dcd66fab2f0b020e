//! Runs two tasks at once, the second one on its own thread: loading a vocabulary has several such pairs.

use std::panic::resume_unwind;
use std::thread;

use crate::work::interrupt;

/// Runs two tasks at once and returns both results: the second one on its own thread, or after the first one if no
/// thread can be started. Then checks for an interrupt.
pub(crate) fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    let results = thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, &second);
        let first = first();
        match thread.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(second)) => (first, second),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => (first, second()),
        }
    });
    interrupt::check();
    results
}
