//! Lists of Python ints that are made once: making and freeing an int object costs more than encoding its token.

use std::cell::RefCell;

use ggtok_core::TokenId;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

/// Ids from here on are not kept; no vocabulary that anybody uses has so many tokens.
const KEPT: usize = 1 << 20;

thread_local! {
    /// The ints that lists of this thread have had so far, by value.
    static INTS: RefCell<Vec<Option<Py<PyInt>>>> = const { RefCell::new(Vec::new()) };
}

/// A list of ints. What a thread keeps is at most 8 bytes up to the largest id, and 32 bytes for each id it has met.
pub(crate) fn list<'py>(py: Python<'py>, ids: &[TokenId]) -> PyResult<Bound<'py, PyList>> {
    // Taken out while in use: a new list can set off the garbage collector, which can call anything, even this.
    let mut ints = INTS.take();
    let list = PyList::new(py, ids.iter().map(|&id| int(py, &mut ints, id)));
    INTS.set(ints);
    list
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
