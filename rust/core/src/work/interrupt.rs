//! Cancellation by unwinding: long loops call [`check`], which asks the caller whether to stop.
//!
//! [`interruptible`] sets a thread-local callback, `stop`, while its work runs. [`check`] calls it and, if it returns
//! true, unwinds to `interruptible` with `resume_unwind`, which skips the panic hook and so prints nothing. No function
//! in between has to return an error, and without a callback the cost is one thread-local read every thousand steps or
//! so. This is how salsa, rust-analyzer's database, cancels queries.
//!
//! A [`Tokenizer`](crate::Tokenizer) is unaffected. Anything the work was writing to is left incomplete: a sink holds
//! some of the tokens. An [`Encoder`](crate::Encoder) starts over with an empty cache. With `panic = "abort"` nothing
//! unwinds, and the work runs to completion.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::OnceLock;

/// Whether to stop. Called about once per thousand steps of an algorithm.
type Question = Rc<dyn Fn() -> bool>;

thread_local! {
    /// Whether there is a callback. Most calls of [`check`] read only this.
    static HAS_QUESTION: Cell<bool> = const { Cell::new(false) };
    static QUESTION: RefCell<Option<Question>> = const { RefCell::new(None) };
}

/// The work was stopped early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the work was interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Runs `work`, and ends it early once `stop` returns true.
///
/// `stop` is called on this thread, from inside the work. Calls may be nested; only the innermost `stop` is asked.
///
/// # Errors
/// [`Interrupted`] if the work was stopped. Anything passed to it by `&mut` may be incomplete; drop it or clear it.
///
/// # Panics
/// If `work` panics; the panic passes through.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use std::sync::Arc;
///
/// use ggtok_core::vocab::{Definition, StringIndex};
/// use ggtok_core::{EncodeOptions, Interrupted, Text, Tokenizer, interruptible};
///
/// let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "▁", "a", "▁a"])?;
/// let definition = Definition { model: "llama", tokens: Some(index.view(&data)), ..Definition::default() };
/// let tokenizer = Tokenizer::new(&definition)?;
///
/// let stop = Arc::new(AtomicBool::new(true));
/// let stopped = Arc::clone(&stop);
/// let texts = [Text::Str("a a"); 1000];
/// let work = || tokenizer.encode_batch(&texts, EncodeOptions::default(), 1);
/// assert_eq!(interruptible(move || stopped.load(Relaxed), work), Err(Interrupted));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn interruptible<T>(stop: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> Result<T, Interrupted> {
    let outer = set(Some(Rc::new(stop)));
    let result = catch_unwind(AssertUnwindSafe(work));
    set(outer);
    match result {
        Ok(result) => Ok(result),
        Err(payload) if payload.is::<Interrupted>() => Err(Interrupted),
        Err(payload) => resume_unwind(payload),
    }
}

/// Sets this thread's callback and returns the previous one.
fn set(question: Option<Question>) -> Option<Question> {
    HAS_QUESTION.set(question.is_some());
    QUESTION.replace(question)
}

/// Unwinds to the innermost [`interruptible`] if its `stop` returns true. Call it about every thousand steps.
#[inline]
pub fn check() {
    if HAS_QUESTION.get() && cfg!(panic = "unwind") {
        ask();
    }
}

/// Calls [`check`] every 1,024 steps.
#[derive(Debug, Default)]
pub struct Ticker(u32);

impl Ticker {
    /// Takes one step.
    #[inline(always)]
    pub fn tick(&mut self) {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(1024) {
            check();
        }
    }
}

/// Iterates over `items` and takes one step of a [`Ticker`] for each.
pub fn ticking<T>(items: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    let mut ticker = Ticker::default();
    items.into_iter().inspect(move |_| ticker.tick())
}

/// Like the slice method of this name, but interruptible.
pub fn sort_unstable_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut ticker = Ticker::default();
    items.sort_unstable_by(|one, other| {
        ticker.tick();
        compare(one, other)
    });
}

/// The value of a cell, which is filled first if it is empty. Filling it is not interruptible.
///
/// Another thread that needs the value waits inside the cell. If `stop` then waited for a lock that this thread holds,
/// such as Python's GIL, the two would deadlock.
#[inline]
pub(crate) fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    match cell.get() {
        Some(value) => value,
        None => fill(cell, make),
    }
}

/// Not inlined: callers are on hot paths.
#[cold]
#[inline(never)]
fn fill<T>(cell: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    let made = || {
        let _restored = Silence(HAS_QUESTION.replace(false));
        make()
    };
    cell.get_or_init(made)
}

/// Restores the flag when dropped.
struct Silence(bool);

impl Drop for Silence {
    fn drop(&mut self) {
        HAS_QUESTION.set(self.0);
    }
}

#[cold]
fn ask() {
    // Cloned, because the callback may run anything, even another `interruptible`.
    let question = QUESTION.with_borrow(Option::clone);
    if question.is_some_and(|stop| stop()) {
        resume_unwind(Box::new(Interrupted));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;
    use std::sync::OnceLock;

    use super::{HAS_QUESTION, Interrupted, check, interruptible, once};

    /// Steps until `stop` is true for the third time.
    fn stopped_after_three() -> (Result<(), Interrupted>, u32) {
        let asked = Cell::new(0);
        let mut steps = 0;
        let stop = move || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let result = interruptible(stop, || {
            for _ in 0..10 {
                check();
                steps += 1;
            }
        });
        (result, steps)
    }

    #[test]
    fn work_stops_when_told_and_leaves_nothing_set() {
        assert_eq!(stopped_after_three(), (Err(Interrupted), 2));
        assert!(!HAS_QUESTION.get());
        check();
    }

    #[test]
    fn nothing_is_asked_while_a_cell_is_filled() {
        let cell = OnceLock::new();
        let fill = || *once(&cell, || (check(), 7).1);
        assert_eq!(interruptible(|| true, fill), Ok(7));
        assert_eq!(interruptible(|| true, || (fill(), check())), Err(Interrupted));
        let unwinding = || *once(&OnceLock::<()>::new(), || panic!("a bug"));
        assert_eq!(
            interruptible(|| true, || (catch_unwind(AssertUnwindSafe(unwinding)).is_err(), check())),
            Err(Interrupted)
        );
        assert!(!HAS_QUESTION.get());
    }

    #[test]
    fn only_the_innermost_question_is_asked() {
        let outer = Rc::new(Cell::new(false));
        let stop = Rc::clone(&outer);
        let result = interruptible(
            move || stop.get(),
            || {
                assert_eq!(stopped_after_three(), (Err(Interrupted), 2));
                check();
                outer.set(true);
                assert_eq!(interruptible(|| false, check), Ok(()));
                check();
            },
        );
        assert_eq!(result, Err(Interrupted));
    }

    #[test]
    fn a_question_may_be_asked_while_it_is_answered() {
        let result = interruptible(|| stopped_after_three().1 == 2, check);
        assert_eq!(result, Err(Interrupted));
    }

    #[test]
    fn other_panics_pass_through() {
        let work = || interruptible(|| false, || std::panic::resume_unwind(Box::new("a bug")));
        let caught: Result<Result<(), _>, _> = catch_unwind(AssertUnwindSafe(work));
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"a bug"));
        assert!(!HAS_QUESTION.get());
    }
}
