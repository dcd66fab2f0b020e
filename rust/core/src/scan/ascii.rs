//! Where the ASCII words of a text are: classes of 64 bytes at a time, one bit per byte.
//!
//! A branch per byte costs more than all else that is done for a short word, because half the words end where the
//! processor does not expect it. So the classes of a block are found by comparing all its bytes at once (SSE2, which
//! every x86-64 has; elsewhere eight bytes in a 64-bit word), and words are found by counting zeros.
//!
//! Time: about one instruction per byte.

/// Bytes in a block.
pub(crate) const BLOCK_LEN: usize = 64;

/// The classes of a block's bytes; the lowest bit is the first byte. A byte in none of them is an ASCII character that
/// is neither letter, digit, whitespace nor control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Classes {
    /// ASCII letters.
    pub letter: u64,
    /// ASCII digits.
    pub digit: u64,
    /// Tabulator, line feed, carriage return and space.
    pub space: u64,
    /// All other ASCII control characters, and all bytes from 0x80 on.
    pub other: u64,
}

impl Classes {
    /// The classes of a block.
    #[inline(always)]
    pub(crate) fn of(block: &[u8; BLOCK_LEN]) -> Self {
        let mut classes = Self::default();
        let mut shift = 0;
        for part in block.as_chunks::<{ lanes::LEN }>().0 {
            let part = lanes::classes(part);
            classes.letter |= part.letter << shift;
            classes.digit |= part.digit << shift;
            classes.space |= part.space << shift;
            classes.other |= part.other << shift;
            shift += lanes::LEN;
        }
        classes
    }
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set_epi64x, _mm_set1_epi8,
    };

    use super::Classes;

    pub(super) const LEN: usize = 16;

    /// Bytes from `first` to `last` as all ones: shifted so that `first` is the lowest signed number.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn between(bytes: __m128i, first: u8, last: u8) -> __m128i {
        let shifted = _mm_add_epi8(bytes, _mm_set1_epi8(0x80_u8.wrapping_sub(first) as i8));
        _mm_cmpgt_epi8(_mm_set1_epi8((0x81_u8.wrapping_add(last - first)) as i8), shifted)
    }

    #[inline(always)]
    pub(super) fn classes(part: &[u8; LEN]) -> Classes {
        // SAFETY: every x86-64 processor has SSE2.
        unsafe { compare(part) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn compare(part: &[u8; LEN]) -> Classes {
        let bits = u128::from_le_bytes(*part);
        let bytes = _mm_set_epi64x((bits >> 64) as i64, bits as i64);
        let mask = |lanes| u64::from(_mm_movemask_epi8(lanes) as u16);
        let equal = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
        let space = _mm_or_si128(between(bytes, b'\t', b'\n'), _mm_or_si128(equal(b'\r'), equal(b' ')));
        // As signed numbers the bytes from 0x80 on are below the control characters.
        let control = _mm_cmpgt_epi8(_mm_set1_epi8(b' ' as i8), bytes);
        Classes {
            letter: mask(between(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), b'a', b'z')),
            digit: mask(between(bytes, b'0', b'9')),
            space: mask(space),
            other: mask(_mm_or_si128(_mm_andnot_si128(space, control), equal(0x7F))),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
use words as lanes;

/// The same on 64-bit words.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod words {
    use super::Classes;

    pub(super) const LEN: usize = 8;
    const ONES: u64 = u64::MAX / 0xFF;
    const HIGH: u64 = ONES << 7;

    /// The highest bit of each byte from `first` to `last`, all bytes being below 0x80.
    fn between(low: u64, first: u8, last: u8) -> u64 {
        (low + ONES * u64::from(0x80 - first)) & !(low + ONES * u64::from(0x7F - last))
    }

    /// Moves the highest bits together.
    fn mask(bits: u64) -> u64 {
        ((bits & HIGH) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
    }

    pub(super) fn classes(part: &[u8; LEN]) -> Classes {
        let bytes = u64::from_le_bytes(*part);
        let low = bytes & !HIGH;
        let space = between(low, b'\t', b'\n') | between(low, b'\r', b'\r') | between(low, b' ', b' ');
        let printable = between(low, b' ', b'~');
        Classes {
            letter: mask(between(low | (ONES * 0x20), b'a', b'z') & !bytes),
            digit: mask(between(low, b'0', b'9') & !bytes),
            space: mask(space & !bytes),
            other: mask(bytes | !(printable | space)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_LEN, Classes, words};

    #[test]
    fn every_byte_at_every_place() {
        for byte in 0..=u8::MAX {
            let is = |class: bool| u64::from(class);
            let space = matches!(byte, b'\t' | b'\n' | b'\r' | b' ');
            let expected = Classes {
                letter: is(byte.is_ascii_alphabetic()),
                digit: is(byte.is_ascii_digit()),
                space: is(space),
                other: is(!byte.is_ascii() || byte.is_ascii_control() && !space),
            };
            let shifted = |by: usize| Classes {
                letter: expected.letter << by,
                digit: expected.digit << by,
                space: expected.space << by,
                other: expected.other << by,
            };
            for at in 0..BLOCK_LEN {
                let mut block = [b'-'; BLOCK_LEN];
                block[at] = byte;
                assert_eq!(Classes::of(&block), shifted(at), "{byte:#x} at {at}");
            }
            let mut block = [b'-'; words::LEN];
            block[3] = byte;
            assert_eq!(words::classes(&block), shifted(3), "{byte:#x}");
        }
    }
}
