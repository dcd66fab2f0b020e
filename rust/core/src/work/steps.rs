//! A counter of steps, so that tests can assert how much work an algorithm does without measuring time.

use std::cell::Cell;

thread_local! {
    static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// Counts some steps of the current thread.
pub(crate) fn count(steps: usize) {
    STEPS.set(STEPS.get() + steps);
}

/// The steps that `work` takes on the current thread.
pub(crate) fn of(work: impl FnOnce()) -> usize {
    STEPS.set(0);
    work();
    STEPS.get()
}
