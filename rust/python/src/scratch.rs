//! Scratch spaces for single calls: each thread keeps its latest few, so that no call waits for another.

use std::cell::RefCell;

use ggtok_core::Scratch;

/// How many tokenizers a thread keeps scratch spaces for.
const NUM_KEPT: usize = 4;

thread_local! {
    /// Scratch spaces with the number of their tokenizer, the latest last.
    static SPACES: RefCell<Vec<(u64, Box<Scratch>)>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with this thread's scratch space for tokenizer `number`. Unwinding drops the scratch space.
#[inline]
pub(crate) fn with_scratch<T>(number: u64, work: impl FnOnce(&mut Scratch) -> T) -> T {
    // Taken out while in use, so that a call inside the call finds the list unborrowed.
    let latest = SPACES.with_borrow_mut(|spaces| match spaces.last() {
        Some((owner, _)) if *owner == number => spaces.pop(),
        _ => spaces.iter().position(|(owner, _)| *owner == number).map(|index| spaces.remove(index)),
    });
    let mut scratch = latest.map_or_else(Box::default, |(_, scratch)| scratch);
    let result = work(&mut scratch);
    SPACES.with_borrow_mut(|spaces| {
        if spaces.len() == NUM_KEPT {
            spaces.remove(0);
        }
        spaces.push((number, scratch));
    });
    result
}
