//! Scratch spaces for single calls: each thread keeps its latest few, so that no call waits for another.
//!
//! The caches of a thread share one limit. Each of its n spaces may take one n-th of it.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use ggtok_core::Scratch;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::invalid;

/// How many tokenizers a thread keeps scratch spaces for.
const NUM_KEPT: usize = 4;

/// The most memory that the caches of a thread take, in bytes.
static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(Scratch::DEFAULT_CACHE_LIMIT);

thread_local! {
    /// Scratch spaces with their owners, the latest last.
    static SPACES: RefCell<Vec<(Weak<Owner>, Box<Scratch>)>> = const { RefCell::new(Vec::new()) };
}

/// Stands for a tokenizer. When it is dropped, this thread's scratch space for it is freed too; other threads free
/// theirs when they make one for another tokenizer.
#[derive(Debug, Default)]
pub(crate) struct Owner;

impl Drop for Owner {
    fn drop(&mut self) {
        // The list is gone if the thread is ending.
        let _ = SPACES.try_with(|spaces| spaces.try_borrow_mut().map(|mut spaces| purge(&mut spaces)));
    }
}

fn purge(spaces: &mut Vec<(Weak<Owner>, Box<Scratch>)>) {
    spaces.retain(|(owner, _)| owner.strong_count() > 0);
}

#[doc = doc!(cache_limit)]
#[pyfunction]
pub fn cache_limit() -> usize {
    CACHE_LIMIT.load(Ordering::Relaxed)
}

#[doc = doc!(set_cache_limit)]
#[pyfunction]
pub fn set_cache_limit(num_bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let limit = num_bytes.extract().map_err(|error: PyErr| {
        let is_beyond = error.is_instance_of::<PyOverflowError>(num_bytes.py());
        if is_beyond { invalid("num_bytes must be at least 0 and fit into 64 bits".to_owned()) } else { error }
    })?;
    CACHE_LIMIT.store(limit, Ordering::Relaxed);
    Ok(())
}

/// Calls `work` with this thread's scratch space for a tokenizer. Unwinding drops the scratch space.
#[inline]
pub(crate) fn with_scratch<T>(owner: &Arc<Owner>, work: impl FnOnce(&mut Scratch) -> T) -> T {
    // Taken out while in use, so that a nested call finds the list unborrowed.
    let (mut scratch, num_spaces) = SPACES.with_borrow_mut(|spaces| {
        let is_own = |(other, _): &(Weak<Owner>, _)| other.as_ptr() == Arc::as_ptr(owner);
        let latest = match spaces.last() {
            Some(latest) if is_own(latest) => spaces.pop(),
            _ => spaces.iter().position(is_own).map(|index| spaces.remove(index)),
        };
        let scratch = latest.map_or_else(|| new_space(spaces), |(_, scratch)| scratch);
        (scratch, spaces.len() + 1)
    });
    scratch.set_cache_limit(cache_limit() / num_spaces);
    let result = work(&mut scratch);
    SPACES.with_borrow_mut(|spaces| {
        if spaces.len() >= NUM_KEPT {
            spaces.remove(0);
        }
        spaces.push((Arc::downgrade(owner), scratch));
    });
    result
}

/// A new space; the others shrink to their new share.
#[cold]
fn new_space(spaces: &mut Vec<(Weak<Owner>, Box<Scratch>)>) -> Box<Scratch> {
    purge(spaces);
    let limit = cache_limit() / (spaces.len() + 1);
    spaces.iter_mut().for_each(|(_, scratch)| scratch.set_cache_limit(limit));
    Box::default()
}
