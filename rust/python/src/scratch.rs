//! The limit of caches, for all tokenizers of the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use ggtok_core::Tokenizer;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;

use crate::errors::invalid;

/// The limit of each tokenizer, and the tokenizers. Locked only with the GIL, so that no other thread has it locked
/// while the process forks.
static LIMITED: Mutex<(usize, Vec<Weak<Tokenizer>>)> = Mutex::new((Tokenizer::DEFAULT_CACHE_LIMIT, Vec::new()));

fn limited() -> MutexGuard<'static, (usize, Vec<Weak<Tokenizer>>)> {
    LIMITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a new tokenizer follow the limit, now and later.
pub(crate) fn register(tokenizer: &Arc<Tokenizer>) {
    let (limit, tokenizers) = &mut *limited();
    tokenizer.set_cache_limit(*limit);
    tokenizers.retain(|tokenizer| tokenizer.strong_count() > 0);
    tokenizers.push(Arc::downgrade(tokenizer));
}

#[doc = doc!(cache_limit)]
#[pyfunction]
pub fn cache_limit() -> usize {
    limited().0
}

#[doc = doc!(set_cache_limit)]
#[pyfunction]
pub fn set_cache_limit(num_bytes: &Bound<'_, PyAny>) -> PyResult<()> {
    let new_limit = num_bytes.extract().map_err(|error: PyErr| {
        let is_beyond = error.is_instance_of::<PyOverflowError>(num_bytes.py());
        if is_beyond { invalid("num_bytes must be at least 0 and fit into 64 bits".to_owned()) } else { error }
    })?;
    let (limit, tokenizers) = &mut *limited();
    *limit = new_limit;
    tokenizers.iter().filter_map(Weak::upgrade).for_each(|tokenizer| tokenizer.set_cache_limit(*limit));
    Ok(())
}
