//! Shares numbered work out among threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use ggtok_core::internals::{Jobs, Producer, interrupt, share};

/// Calls `step` for all numbers below `len`, `run` of them at a time, on several threads, each with its own state.
/// Returns the states.
pub(super) fn work<S: Send>(
    threads: usize,
    len: usize,
    run: usize,
    state: impl Fn() -> S + Sync,
    step: impl Fn(&mut S, Range<usize>) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    // One job per thread: to take numbers until there are none.
    let work = |jobs: &Jobs<()>| {
        let mut state = state();
        for () in jobs {
            while let Some(start) = Some(next.fetch_add(run, Ordering::Relaxed)).filter(|&start| start < len) {
                interrupt::check();
                step(&mut state, start..len.min(start + run));
            }
        }
        state
    };
    let num_jobs = threads.clamp(1, len.div_ceil(run).max(1));
    let produce = |producer: Producer<'_, ()>| {
        (0..num_jobs).for_each(|_| producer.push(()));
        producer.finish();
    };
    share(num_jobs - 1, work, produce).1
}
