//! The only way from Python into the core for work that may take long or fail.
//!
//! - Short work keeps the GIL, longer work releases it.
//! - Long work on the main thread stops on Ctrl-C. About every thousand steps the core asks whether to stop (see
//!   `ggtok_core::interruptible`). Once per [`POLL`], answering takes the GIL and runs Python's signal handlers. If one
//!   raises an exception, such as `KeyboardInterrupt`, the work unwinds and the exception is raised. This needs no
//!   second thread, and the caches of this one stay warm.
//! - Running out of memory on a long text is a `MemoryError`.
//! - A panic becomes a `GgtokError`. It never reaches Python as a `PanicException`, which `except Exception` misses.
//! - An error of the core becomes its Python exception.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ggtok_core::{OutOfMemory, interruptible};
use pyo3::exceptions::PyMemoryError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::{Raise, bug};

/// Work on at most this many bytes or ids keeps the GIL: releasing it would cost more than others could gain.
const SHORT: usize = 512;
/// Work on more than this many bytes or ids can be interrupted. Less takes a few milliseconds at worst.
const LONG: usize = 1 << 16;
/// How often the signal handlers run. Not more often, because taking the GIL can wait 5 ms for a busy Python thread.
const POLL: Duration = Duration::from_millis(30);
/// How many Python objects a loop visits between two checks for signals.
const OBJECTS: usize = 1 << 12;

/// What pyo3 panics with if Python returns no object where only memory can be missing.
const NO_OBJECT: &str = "PyObject pointer is null";

/// Runs work of the core on `size` bytes or ids. What unwinds is dropped or cleared by the caller.
#[inline]
pub(crate) fn run<T: Send, E: Raise + Send>(
    py: Python<'_>,
    size: usize,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    let result = match size {
        0..=SHORT => quick(work),
        _ if size > LONG && is_main_thread(py)? => py.detach(|| until_signal(work)),
        _ => py.detach(|| quick(work)),
    };
    result?.map_err(Raise::raise)
}

/// Like [`run`], for work whose duration is unknown, such as loading.
pub(crate) fn run_long<T: Send, E: Raise + Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, E> + Send,
) -> PyResult<T> {
    run(py, usize::MAX, work)
}

/// Runs Python's signal handlers once in a number of iterations of a loop over Python objects.
#[inline]
pub(crate) fn check_signals(py: Python<'_>, index: usize) -> PyResult<()> {
    if index % OBJECTS == OBJECTS - 1 { py.check_signals() } else { Ok(()) }
}

/// Like [`run`], for short work that cannot fail: turns a panic into an exception, and running out of memory into
/// `MemoryError`.
#[inline]
pub(crate) fn quick<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| match payload.downcast_ref::<OutOfMemory>() {
        Some(error) => PyMemoryError::new_err(error.to_string()),
        None if payload.downcast_ref::<&str>() == Some(&NO_OBJECT) => {
            PyMemoryError::new_err("out of memory: there is not enough for this result")
        }
        None => bug(&*payload),
    })
}

/// A list of Python objects. pyo3 panics where Python has no memory for one of them.
#[inline]
pub(crate) fn list<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
) -> PyResult<Bound<'py, PyList>> {
    quick(|| PyList::new(py, items))?
}

/// Runs work until a signal handler raises.
fn until_signal<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    let raised = Rc::new(RefCell::new(None));
    let last = Cell::new(Instant::now());
    let stop = {
        let raised = Rc::clone(&raised);
        move || {
            if last.get().elapsed() < POLL {
                return false;
            }
            let result = Python::attach(|py| py.check_signals());
            last.set(Instant::now());
            result.map_err(|error| raised.replace(Some(error))).is_err()
        }
    };
    quick(|| interruptible(stop, work))?.map_err(|interrupted| {
        // There always is one: the work stops only after it was set.
        raised.take().unwrap_or_else(|| bug(&interrupted.to_string()))
    })
}

/// Whether this is the thread that runs signal handlers.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    threading.call_method0(intern!(py, "get_ident"))?.eq(main)
}

impl Raise for Infallible {
    fn raise(self) -> PyErr {
        match self {}
    }
}
