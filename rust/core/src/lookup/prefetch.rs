//! Prefetching: a hint that memory will be read soon.
//!
//! A plain read would do too, but no later instruction can retire until the read finishes, so only a few reads would
//! overlap. A prefetch retires at once.

/// Starts to load `slice[at]` into the processor's cache. Does nothing if `at` is out of bounds.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    let address = slice.as_ptr().wrapping_add(at);
    // SAFETY: a prefetch has no visible effect, and no address makes it fault.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    // SAFETY: as above. Stable Rust has no intrinsic for this instruction.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn any_place_may_be_prefetched() {
        for at in [0, 2, 3, usize::MAX] {
            prefetch(&[1_u64, 2, 3], at);
            prefetch::<u64>(&[], at);
        }
    }
}
