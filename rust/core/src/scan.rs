//! Classes of 64 bytes at once, one bit per byte: the only modules with `unsafe`.

pub(crate) mod ascii;
pub(crate) mod masks;

/// The places of a mask's bits, lowest first.
#[inline(always)]
pub(crate) fn places(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let at = mask.trailing_zeros() % u64::BITS;
        mask &= mask - 1;
        Some(at as usize)
    })
}
