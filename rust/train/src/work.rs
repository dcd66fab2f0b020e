//! Shares numbered work out among threads.

use std::sync::atomic::{AtomicUsize, Ordering};

use ggtok_core::internals::{interrupt, with_helpers};

/// Calls `step` for every number below `len`, on several threads, each with its own state. Returns the states.
pub(super) fn work<S: Send>(
    threads: usize,
    len: usize,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, usize) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    with_helpers(threads.min(len).saturating_sub(1), || {
        let mut state = state();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= len {
                return state;
            }
            interrupt::check();
            step(&mut state, index);
        }
    })
}
