//! Blocks of 64 bytes: their classes as bits ([`masks`]), and iteration over such bits.

pub(crate) mod masks;

/// Bytes per block: a mask has one bit for each.
pub(crate) const BLOCK: usize = 64;

/// The first `N` bytes of a text. If it has fewer, they are copied to `buffer` and padded with `filler`.
#[inline(always)]
pub(crate) fn padded<'a, const N: usize>(text: &'a [u8], filler: u8, buffer: &'a mut [u8; N]) -> &'a [u8; N] {
    match text.first_chunk() {
        Some(block) => block,
        None => {
            buffer.fill(filler);
            buffer[..text.len()].copy_from_slice(text);
            buffer
        }
    }
}

/// The positions of a mask's bits, lowest first.
#[inline(always)]
pub(crate) fn places(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let at = mask.trailing_zeros() as usize % BLOCK;
        mask &= mask - 1;
        Some(at)
    })
}

/// The mask of a block. `classify` computes it for eight bytes at a time, in the lowest bit of each.
#[inline(always)]
pub(crate) fn gather(block: &[u8; BLOCK], classify: impl Fn(u64) -> u64) -> u64 {
    let mut mask = 0;
    for (at, &eight) in block.as_chunks().0.iter().enumerate() {
        let lowest = classify(u64::from_le_bytes(eight)) & 0x0101_0101_0101_0101;
        // The bit of byte i times 2 to the power of 7 (8 - i) is bit 56 + i.
        mask |= (lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::{padded, places};

    #[test]
    fn places_are_those_of_the_bits() {
        for mask in [0, 1, 1 << 63, u64::MAX, 0x8000_0000_0001_0010] {
            let expected: Vec<usize> = (0..64).filter(|at| mask >> at & 1 != 0).collect();
            assert_eq!(places(mask).collect::<Vec<_>>(), expected, "{mask:x}");
        }
    }

    #[test]
    fn short_texts_are_padded_and_long_ones_are_not_copied() {
        let text = *b"abcdef";
        assert_eq!(padded(&text[..2], b' ', &mut [0; 4]), b"ab  ");
        assert_eq!(padded(&text, b' ', &mut [0; 4]), b"abcd");
        assert!(std::ptr::eq(padded::<4>(&text, b' ', &mut [0; 4]), &raw const text as *const [u8; 4]));
    }
}
