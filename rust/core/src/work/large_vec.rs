//! A vector for large tables, which lies in huge pages.
//!
//! One page fault for 2 MiB instead of 512, and fewer misses of the processor's cache of addresses, make loading a fifth
//! faster, and a first pass over a text a tenth. Linux gives huge pages to memory for which they are asked for before
//! the first write. An allocator writes in front of a block, so a large block starts where a huge page does. Elsewhere
//! the memory is ordinary.

use std::alloc::{Layout, alloc, dealloc};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::work::heap::HeapBytes;
use crate::work::memory::out_of_memory;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 1 << 21;
/// Bytes of an ordinary page. Where pages are larger, the system refuses the advice.
const PAGE: usize = 1 << 12;
/// A table with at least this many bytes gets whole huge pages.
const LARGE: usize =
    if cfg!(all(target_os = "linux", target_pointer_width = "64")) { HUGE_PAGE / 2 } else { usize::MAX };
/// From this size on, a growing vector is in huge pages. A first call should not have to clear one.
const GROWN: usize = 1 << 18;
/// It then reserves at least this many bytes of address space, which take no memory until they are written to, and does
/// not move. glibc's allocator maps so large a block by itself, so the system has the memory back once it is freed. A
/// smaller one might stay in the heap of a thread that never calls again. With 32 bits, there are too few addresses.
const RESERVED: usize = if cfg!(target_pointer_width = "64") { 1 << 25 } else { 0 };

/// A vector that lies in huge pages if it is large.
#[derive(Debug)]
pub(crate) struct LargeVec<T> {
    start: NonNull<T>,
    len: usize,
    /// Of the memory; without size if there is none.
    layout: Layout,
}

impl<T> Default for LargeVec<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, layout: Layout::new::<()>() }
    }
}

impl<T: Copy> LargeVec<T> {
    /// `len` copies of a value. Unwinds if there is not enough memory.
    pub(crate) fn filled(len: usize, value: T) -> Self {
        let mut vec = Self::with_room(len);
        vec.grow(len, len, value);
        vec
    }

    /// A copy of items. Unwinds if there is not enough memory.
    fn copied(items: &[T]) -> Self {
        let mut vec = Self::with_room(items.len());
        // SAFETY: there is room for these items, and nothing else uses the memory.
        unsafe { vec.start.as_ptr().copy_from_nonoverlapping(items.as_ptr(), items.len()) };
        vec.len = items.len();
        vec
    }

    /// An empty vector with room for `len` items, in whole huge pages if they are large.
    fn with_room(len: usize) -> Self {
        let mut vec = Self::default();
        let layout = Layout::array::<T>(len).ok().and_then(|layout| {
            let is_large = layout.size() >= LARGE;
            if is_large { Some(layout.align_to(HUGE_PAGE).ok()?.pad_to_align()) } else { Some(layout) }
        });
        if len > 0 && !vec.move_to(layout) {
            out_of_memory();
        }
        vec
    }

    /// Makes the vector `len` items long, where it will have at most `max_len`; new ones are copies of `value`. Returns
    /// false if there is not enough memory, and changes nothing.
    pub(crate) fn grow(&mut self, len: usize, max_len: usize, value: T) -> bool {
        if len > self.layout.size() / size_of::<T>() && !self.reserve(len, max_len) {
            return false;
        }
        for at in self.len..len {
            // SAFETY: there is room for `len` items.
            unsafe { self.start.add(at).write(value) };
        }
        self.len = self.len.max(len);
        true
    }

    #[cold]
    fn reserve(&mut self, len: usize, max_len: usize) -> bool {
        let is_large = RESERVED > 0 && len > GROWN / size_of::<T>();
        let reserved = (max_len.max(len)).saturating_mul(size_of::<T>()).max(RESERVED);
        let at_once = len.max(self.len.saturating_mul(2).min(max_len));
        is_large && self.move_to(Layout::from_size_align(reserved, HUGE_PAGE).ok())
            || self.move_to(Layout::array::<T>(at_once).ok())
    }

    /// Moves to new memory, which is larger.
    fn move_to(&mut self, layout: Option<Layout>) -> bool {
        let Some(layout) = layout.filter(|layout| layout.size() > 0) else { return false };
        // SAFETY: the layout has a size.
        let Some(start) = NonNull::new(unsafe { alloc(layout) }.cast::<T>()) else { return false };
        if layout.align() == HUGE_PAGE {
            ask_for_huge_pages(start.as_ptr().addr(), layout.size());
        }
        // SAFETY: both have room for these items, and nothing else uses the new memory yet.
        unsafe { self.start.copy_to_nonoverlapping(start, self.len) };
        *self = Self { start, len: self.len, layout };
        true
    }
}

/// Asks for huge pages for those of the `len` bytes at an address that nothing has been written to.
pub(crate) fn ask_for_huge_pages(address: usize, len: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const MADV_HUGEPAGE: i32 = 14;
        unsafe extern "C" {
            fn madvise(address: usize, len: usize, advice: i32) -> i32;
        }
        let before = address % PAGE;
        // SAFETY: the advice does not change contents, whatever the address. The system refuses what it cannot follow.
        let _ = unsafe { madvise(address - before, before + len, MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (address, len, PAGE);
}

impl<T: Copy> From<Vec<T>> for LargeVec<T> {
    /// Takes the memory over. Large items are copied instead, which unwinds if there is not enough memory.
    fn from(items: Vec<T>) -> Self {
        let Ok(layout) = Layout::array::<T>(items.capacity()) else { return Self::copied(&items) };
        if size_of_val(&items[..]) >= LARGE {
            return Self::copied(&items);
        }
        let mut items = ManuallyDrop::new(items);
        let start = NonNull::new(items.as_mut_ptr()).unwrap_or(NonNull::dangling());
        Self { start, len: items.len(), layout }
    }
}

impl<T> Deref for LargeVec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the memory is this vector's own, and its first `len` items were written.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.len).as_ref() }
    }
}

impl<T> DerefMut for LargeVec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { NonNull::slice_from_raw_parts(self.start, self.len).as_mut() }
    }
}

impl<T: HeapBytes> HeapBytes for LargeVec<T> {
    fn heap_bytes(&self) -> usize {
        self.layout.size() + self[..].heap_bytes()
    }
}

impl<T> Drop for LargeVec<T> {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: the memory was allocated with this layout. Items are `Copy`, or there are none.
            unsafe { dealloc(self.start.as_ptr().cast(), self.layout) };
        }
    }
}

// SAFETY: it owns its items, as a `Vec` does.
unsafe impl<T: Send> Send for LargeVec<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for LargeVec<T> {}

#[cfg(test)]
mod tests {
    use super::{GROWN, HUGE_PAGE, LARGE, LargeVec};
    use crate::work::memory;

    #[test]
    fn a_filled_one_starts_where_a_huge_page_does() {
        for len in [0, 1, 1000, LARGE / 8 - 1, LARGE / 8, HUGE_PAGE / 8 + 1].map(|len| len.min(HUGE_PAGE)) {
            for vec in [LargeVec::<u64>::copied(&LargeVec::filled(len, 7)), vec![7; len].into()] {
                assert_eq!(vec[..], vec![7; len]);
                assert!(len < LARGE / 8 || vec.start.addr().get() % HUGE_PAGE == 0);
            }
        }
        assert!(memory::catch(|| LargeVec::<u64>::filled(usize::MAX / 16, 7)).is_err());
    }

    #[test]
    fn items_stay_as_it_grows() {
        let mut vec = LargeVec::<u64>::default();
        let max_len = GROWN / 2;
        let mut expected = Vec::new();
        for (value, len) in [0, 1, 1, 7, 1000, GROWN / 8, GROWN / 8 + 1, max_len - 1, max_len].into_iter().enumerate() {
            let was_large = vec.layout.align() == HUGE_PAGE;
            let start = vec.start;
            assert!(vec.grow(len, max_len, value as u64));
            expected.resize(len, value as u64);
            assert_eq!(vec[..], expected);
            assert!(!was_large || vec.start == start);
        }
        vec[3] = 77;
        assert!(vec.grow(2, max_len, 0) && vec.len() == max_len && vec[3] == 77);
    }

    #[test]
    fn without_memory_nothing_changes() {
        let mut vec = LargeVec::<u64>::default();
        for len in [usize::MAX, usize::MAX / 8, usize::MAX / 16] {
            assert!(vec.grow(3, 3, 5) && !vec.grow(len, len, 6));
            assert_eq!(vec[..], [5; 3]);
        }
    }

    #[test]
    fn a_large_one_asks_for_huge_pages() {
        let mut vec = LargeVec::<u64>::default();
        assert!(vec.grow(HUGE_PAGE, HUGE_PAGE, 7));
        if cfg!(all(target_pointer_width = "64", not(miri)))
            && std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap_or_default()
        {
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("maps");
            for at in [0, HUGE_PAGE / 2] {
                let address = vec[at..].as_ptr().addr();
                let mut has_address = false;
                let flags = maps.lines().find(|line| {
                    let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                    if let Some([Ok(start), Ok(end)]) =
                        range.map(|(start, end)| [start, end].map(|at| usize::from_str_radix(at, 16)))
                    {
                        has_address = (start..end).contains(&address);
                    }
                    has_address && line.starts_with("VmFlags")
                });
                assert!(flags.is_some_and(|flags| flags.contains(" hg")), "{flags:?}");
            }
        }
    }
}
