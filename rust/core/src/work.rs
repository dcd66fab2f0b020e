//! Running work: cancellation, running out of memory, threads.

/// Counts some steps of the current thread, in tests.
macro_rules! count_steps {
    ($steps:expr) => {
        #[cfg(test)]
        crate::work::steps::count($steps);
    };
}

#[macro_use]
pub(crate) mod heap;
pub(crate) mod in_order;
pub(crate) mod interrupt;
pub(crate) mod introsort;
pub(crate) mod large_vec;
pub(crate) mod memory;
#[macro_use]
pub(crate) mod setters;
#[cfg(test)]
pub(crate) mod steps;
pub(crate) mod threads;
