//! A vector for tables that grow: once it is large, it does not move, and lies in huge pages.
//!
//! One page fault for 2 MiB instead of 512 makes the first pass over English a tenth faster, and the processor misses
//! fewer addresses. Linux gives huge pages to memory for which they are asked for before the first write. An allocator
//! writes in front of a block, so a large block starts where a huge page does. Elsewhere the memory is ordinary.

use std::alloc::{Layout, alloc, dealloc};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 1 << 21;
/// A vector with more bytes is large. A first call should not have to clear a huge page.
const LARGE: usize = 1 << 18;
/// A large vector reserves at least this many bytes of address space, which take no memory until they are written to.
/// glibc's allocator maps so large a block by itself, so the system has the memory back once it is freed. A smaller one
/// might stay in the heap of a thread that never calls again. With 32 bits, there are too few addresses.
const RESERVED: usize = if cfg!(target_pointer_width = "64") { 1 << 25 } else { 0 };

/// A vector that lies in huge pages once it is large.
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
        let is_large = RESERVED > 0 && len > LARGE / size_of::<T>();
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
        #[cfg(all(target_os = "linux", not(miri)))]
        if layout.align() == HUGE_PAGE {
            advise(start.as_ptr().addr(), layout.size());
        }
        // SAFETY: both have room for these items, and nothing else uses the new memory yet.
        unsafe { self.start.copy_to_nonoverlapping(start, self.len) };
        *self = Self { start, len: self.len, layout };
        true
    }
}

/// Asks for huge pages for the `len` bytes at an address.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(address: usize, len: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    unsafe extern "C" {
        fn madvise(address: usize, len: usize, advice: i32) -> i32;
    }
    // SAFETY: the advice does not change contents, whatever the address. The system refuses what it cannot follow.
    let _ = unsafe { madvise(address, len, MADV_HUGEPAGE) };
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
    use super::{HUGE_PAGE, LARGE, LargeVec};

    #[test]
    fn items_stay_as_it_grows() {
        let mut vec = LargeVec::<u64>::default();
        let max_len = LARGE / 2;
        let mut expected = Vec::new();
        for (value, len) in [0, 1, 1, 7, 1000, LARGE / 8, LARGE / 8 + 1, max_len - 1, max_len].into_iter().enumerate() {
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
