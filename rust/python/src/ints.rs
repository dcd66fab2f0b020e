//! Lists of Python ints that are made once: making and freeing an int object costs more than encoding its token.

use std::cell::RefCell;

use ggtok_core::TokenId;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

/// Ids from here on are not kept; no vocabulary that anybody uses has so many tokens.
const KEPT: usize = 1 << 20;
/// Room for so many ids is kept from one list to the next.
const ROOM: usize = 1 << 12;

thread_local! {
    static LISTS: RefCell<Option<Box<Lists>>> = const { RefCell::new(None) };
}

/// What the lists of a thread have in common: at most 8 bytes up to the largest id, and 32 bytes for each id it has met.
#[derive(Default)]
pub(crate) struct Lists {
    /// What the next list has in it; none at first.
    pub ids: Vec<TokenId>,
    /// The ints so far, by value.
    ints: Vec<Option<Py<PyInt>>>,
}

/// Calls `work` with what this thread makes lists with.
#[inline]
pub(crate) fn with_lists<T>(work: impl FnOnce(&mut Lists) -> T) -> T {
    // Taken out while in use: a new list can set off the garbage collector, which can call anything, even this.
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
        let Self { ids, ints } = self;
        PyList::new(py, ids.iter().map(|&id| int(py, ints, id)))
    }
}

#[inline]
fn int<'py>(py: Python<'py>, ints: &mut Vec<Option<Py<PyInt>>>, id: TokenId) -> Bound<'py, PyInt> {
    let place = id as usize;
    if let Some(Some(int)) = ints.get(place) {
        return int.bind(py).clone();
    }
    let int = PyInt::new(py, id);
    if place < KEPT {
        if ints.len() <= place {
            ints.resize_with(place + 1, || None);
        }
        ints[place] = Some(int.clone().unbind());
    }
    int
}
