//! Buffers that grow with a text or a file, and how they fail when memory runs out.
//!
//! Rust aborts the process if an allocation fails. The functions here unwind with [`OutOfMemory`] instead, as
//! [`interrupt`](crate::work::interrupt) does: no panic hook runs, nothing is printed, and no function in between has to
//! return an error. Public calls [`catch`] it and return an error. Anything the work was writing to is left incomplete,
//! as after an interruption.

use std::any::Any;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::error::OutOfMemory;
use crate::work::interrupt;

/// Bytes between two checks for an interrupt.
const BYTES_AT_ONCE: usize = 1 << 20;

/// Makes room for `additional` more items, at least doubling the capacity.
#[inline(always)]
pub(crate) fn reserve<T>(buffer: &mut Vec<T>, additional: usize) {
    if additional > buffer.capacity() - buffer.len() {
        grow(buffer, additional);
    }
}

#[cold]
#[inline(never)]
fn grow<T>(buffer: &mut Vec<T>, additional: usize) {
    buffer.try_reserve(additional).unwrap_or_else(|_| out_of_memory());
}

/// Does work that may run out of memory.
pub(crate) fn catch<R>(work: impl FnOnce() -> R) -> Result<R, OutOfMemory> {
    catch_unwind(AssertUnwindSafe(work)).map_err(caught)
}

/// What a caught unwinding means, if it is not to continue.
#[cold]
pub(crate) fn caught(payload: Box<dyn Any + Send>) -> OutOfMemory {
    *payload.downcast().unwrap_or_else(|payload| resume_unwind(payload))
}

/// Whether this many bytes can be allocated now.
pub(crate) fn has_room(bytes: usize) -> bool {
    // The optimizer would leave out an allocation that nothing can see.
    std::hint::black_box(&mut Vec::<u8>::new()).try_reserve_exact(bytes).is_ok()
}

/// Unwinds with [`OutOfMemory`].
#[cold]
pub(crate) fn out_of_memory() -> ! {
    // Boxing a zero-sized payload does not allocate.
    resume_unwind(Box::new(OutOfMemory))
}

/// Appends an item.
#[inline(always)]
pub(crate) fn push<T>(buffer: &mut Vec<T>, item: T) {
    reserve(buffer, 1);
    buffer.push(item);
}

/// Appends items.
#[inline]
pub(crate) fn extend<T>(buffer: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) {
    reserve(buffer, items.len());
    buffer.extend(interrupt::ticking(items));
}

/// Appends an item to a heap.
#[inline(always)]
pub(crate) fn push_to_heap<T: Ord>(heap: &mut BinaryHeap<T>, item: T) {
    if heap.len() == heap.capacity() && heap.try_reserve(1).is_err() {
        out_of_memory();
    }
    heap.push(item);
}

/// Appends an item to a queue.
#[inline]
pub(crate) fn push_back<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == queue.capacity() && queue.try_reserve(1).is_err() {
        out_of_memory();
    }
    queue.push_back(item);
}

/// Appends a copy of items.
#[inline(always)]
pub(crate) fn append<T: Copy>(buffer: &mut Vec<T>, items: &[T]) {
    reserve(buffer, items.len());
    buffer.extend_from_slice(items);
}

/// Appends a long text, interruptibly.
#[inline]
pub(crate) fn append_text(buffer: &mut Vec<u8>, bytes: &[u8]) {
    reserve(buffer, bytes.len());
    for bytes in bytes.chunks(BYTES_AT_ONCE) {
        interrupt::check();
        buffer.extend_from_slice(bytes);
    }
}

/// Makes a buffer at least `len` items long, interruptibly.
pub(crate) fn fill<T: Copy>(buffer: &mut Vec<T>, len: usize, value: T) {
    buffer.try_reserve_exact(len.saturating_sub(buffer.len())).unwrap_or_else(|_| out_of_memory());
    while buffer.len() < len {
        interrupt::check();
        buffer.resize(len.min(buffer.len() + BYTES_AT_ONCE / size_of::<T>()), value);
    }
}

/// `len` copies of a value.
pub(crate) fn filled<T: Copy>(len: usize, value: T) -> Vec<T> {
    let mut buffer = Vec::new();
    fill(&mut buffer, len, value);
    buffer
}

/// An array on the heap, of copies of a value.
pub(crate) fn array<T: Copy, const N: usize>(value: T) -> Box<[T; N]> {
    filled(N, value).try_into().unwrap_or_else(|_| out_of_memory())
}

/// The items of an iterator.
pub(crate) fn collect<T>(items: impl Iterator<Item = T>) -> Vec<T> {
    let (least, most) = items.size_hint();
    let mut buffer = with_capacity(least);
    if most == Some(least) {
        buffer.extend(items);
    } else {
        items.for_each(|item| push(&mut buffer, item));
    }
    buffer
}

/// A copy of items.
pub(crate) fn copied<T: Copy>(items: &[T]) -> Vec<T> {
    collect(items.iter().copied())
}

/// The map, with room for one more key.
pub(crate) fn with_room<K: Eq + std::hash::Hash, V>(map: &mut HashMap<K, V>) -> &mut HashMap<K, V> {
    map.try_reserve(1).unwrap_or_else(|_| out_of_memory());
    map
}

/// An empty buffer with room for `capacity` items.
pub(crate) fn with_capacity<T>(capacity: usize) -> Vec<T> {
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(capacity).unwrap_or_else(|_| out_of_memory());
    buffer
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::{OutOfMemory, reserve, with_capacity};

    #[test]
    fn what_does_not_fit_unwinds() {
        let failed = catch_unwind(|| with_capacity::<u64>(usize::MAX / 16)).unwrap_err();
        assert!(failed.is::<OutOfMemory>());
        let failed = catch_unwind(|| reserve(&mut vec![0u64], usize::MAX / 16)).unwrap_err();
        assert!(failed.is::<OutOfMemory>());
        let mut buffer = with_capacity(3);
        reserve(&mut buffer, 3);
        buffer.push(1u8);
        assert!(buffer.capacity() >= 3);
    }
}
