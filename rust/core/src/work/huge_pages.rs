//! Large buffers in huge pages: one page fault for 2 MiB instead of 512, and fewer misses of the cache of addresses.
//!
//! Linux gives them to buffers for which they are asked for before the first write. Elsewhere these are ordinary buffers.

use std::collections::TryReserveError;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 1 << 21;
/// Bytes of an ordinary page. Where pages are larger, the system refuses the advice.
const PAGE: usize = 1 << 12;

/// An empty buffer with room for `capacity` items or more, in huge pages if the system has them. The first of them is
/// taken at once, and any other one as a whole when it is first written to.
pub(crate) fn with_capacity<T>(capacity: usize) -> Result<Vec<T>, TryReserveError> {
    // The allocator takes less than a page for itself. Linux aligns mappings whose size is a multiple of a huge page.
    let len =
        capacity.saturating_mul(size_of::<T>()).saturating_add(PAGE).div_ceil(HUGE_PAGE).saturating_mul(HUGE_PAGE);
    let mut buffer = Vec::<T>::new();
    buffer.try_reserve_exact((len - PAGE) / size_of::<T>())?;
    #[cfg(all(target_os = "linux", not(miri)))]
    advise(buffer.as_ptr().addr(), buffer.capacity() * size_of::<T>());
    Ok(buffer)
}

/// Asks for huge pages for the `len` bytes at an address.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise(address: usize, len: usize) {
    const MADV_HUGEPAGE: i32 = 14;
    /// The allocator has written to the first page, which keeps a huge page away. This moves it to one (Linux 6.1).
    const MADV_COLLAPSE: i32 = 25;
    unsafe extern "C" {
        fn madvise(address: usize, len: usize, advice: i32) -> i32;
    }
    let start = address - address % PAGE;
    for (len, advice) in [(address + len - start, MADV_HUGEPAGE), (HUGE_PAGE, MADV_COLLAPSE)] {
        // SAFETY: neither advice changes contents, whatever the address. The system refuses what it cannot follow.
        let _ = unsafe { madvise(start, len, advice) };
    }
}

#[cfg(test)]
mod tests {
    use super::{HUGE_PAGE, with_capacity};

    #[test]
    fn a_large_buffer_asks_for_huge_pages() {
        let mut buffer = with_capacity::<u64>(HUGE_PAGE).expect("room");
        buffer.resize(HUGE_PAGE, 7);
        assert!(buffer.capacity() < HUGE_PAGE + HUGE_PAGE / 8 && buffer.iter().all(|&item| item == 7));
        assert!(with_capacity::<u64>(usize::MAX).is_err());

        if !cfg!(miri) && std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap_or_default() {
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("maps");
            let address = buffer[HUGE_PAGE / 2..].as_ptr().addr();
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
