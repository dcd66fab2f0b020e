//! Lists of Python ints, from a cache of int objects by value: making and freeing an int costs more than its token.

use std::cell::RefCell;

use ggtok_core::TokenId;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

use crate::run::list;

/// Ids this large are not cached; no vocabulary in use has as many tokens.
const NUM_CACHED: usize = 1 << 20;
/// Room for at most this many ids is kept from one list to the next.
const ROOM: usize = 1 << 12;
/// A longer list is made in parts of this length, with a check for signals between them.
const PART: usize = 1 << 16;

thread_local! {
    static LISTS: RefCell<Option<Box<Lists>>> = const { RefCell::new(None) };
}

/// What the lists of a thread share: at most 8 bytes per id up to the largest seen, and 32 bytes per id seen.
#[derive(Default)]
pub(crate) struct Lists {
    /// The ids of the next list; empty at first.
    pub ids: Vec<TokenId>,
    /// The ints made so far, by value.
    ints: Vec<Option<Py<PyInt>>>,
}

/// Calls `work` with this thread's `Lists`.
#[inline]
pub(crate) fn with_lists<T>(work: impl FnOnce(&mut Lists) -> T) -> T {
    // Taken out while in use: making a list can start the garbage collector, which can call anything, even this.
    let mut lists = LISTS.take().unwrap_or_default();
    let result = work(&mut lists);
    lists.ids.clear();
    lists.ids.shrink_to(ROOM);
    LISTS.set(Some(lists));
    result
}

impl Lists {
    /// A list of the ids.
    #[inline]
    pub(crate) fn list<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        if self.ids.len() > PART {
            return self.long_list(py);
        }
        let Self { ids, ints } = self;
        list(py, ids.iter().map(|&id| int(py, ints, id)))
    }

    #[cold]
    fn long_list<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Self { ids, ints } = self;
        let all = PyList::empty(py);
        for ids in ids.chunks(PART) {
            py.check_signals()?;
            let part = list(py, ids.iter().map(|&id| int(py, ints, id)))?;
            all.set_slice(all.len(), all.len(), part.as_any())?;
        }
        Ok(all)
    }
}

#[inline(always)]
fn int<'py>(py: Python<'py>, ints: &mut Vec<Option<Py<PyInt>>>, id: TokenId) -> Bound<'py, PyInt> {
    match ints.get(id as usize) {
        Some(Some(int)) => int.bind(py).clone(),
        _ => new_int(py, ints, id),
    }
}

#[cold]
fn new_int<'py>(py: Python<'py>, ints: &mut Vec<Option<Py<PyInt>>>, id: TokenId) -> Bound<'py, PyInt> {
    let value = id as usize;
    let int = PyInt::new(py, id);
    if value < NUM_CACHED {
        ints.resize_with(ints.len().max(value + 1), || None);
        ints[value] = Some(int.clone().unbind());
    }
    int
}
