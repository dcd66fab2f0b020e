//! The masks of a block with NEON, in four registers.
//!
//! NEON cannot move the highest bits of all bytes to an integer, as AVX2 can. But its loads can deal bytes out to four
//! registers in turn, so that four neighbours are at the same position of the four. Two rounds of exchanging bits between
//! registers put bit `i` of four neighbours next to each other, for all `i` at once, and a narrowing shift collects
//! these nibbles from all positions.
//!
//! Source: interleaved loads are described by Geoff Langdale, "Fitting My Head Through The ARM Holes" (2019), and the
//! narrowing shift by Danila Kutenin, "Porting x86 vector bitmask optimizations to Arm NEON" (2022). Complexity: one to
//! two instructions per byte.

use std::arch::aarch64::{
    uint8x16_t, uint8x16x4_t, vandq_u8, vbslq_u8, vcgtq_u8, vdupq_n_u8, vget_lane_u64, vld1q_u8, vld4q_u8, vqtbl1q_u8,
    vreinterpret_u64_u8, vreinterpretq_u16_u8, vshlq_n_u8, vshrn_n_u16, vshrq_n_u8, vsliq_n_u8, vsriq_n_u8, vsubq_u8,
};

use super::{BLOCK, Classified, HIGH, LOW};

/// Proof that the processor has NEON: only [`Neon::detect`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Neon(());

impl Neon {
    #[inline(always)]
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }

    /// As [`Classified::portable`].
    #[inline]
    pub(super) fn classify<C: Classified>(self, block: &[u8; BLOCK]) -> C {
        // SAFETY: `self` proves that there is NEON. `both_paths_agree` fails if these are not the portable masks.
        unsafe { classify(block) }
    }
}

#[target_feature(enable = "neon")]
fn classify<C: Classified>(block: &[u8; BLOCK]) -> C {
    let bytes = load(block);
    let [.., second_bits, beyond_ascii] = planes(bytes);
    let [.., unprintable] =
        planes(bytes.map(|bytes| vcgtq_u8(vsubq_u8(bytes, vdupq_n_u8(b' ')), vdupq_n_u8(b'~' - b' '))));
    C::from_classes(classes(bytes), beyond_ascii, second_bits, unprintable)
}

/// The block, with byte `i` in register `i % 4`.
#[inline]
#[target_feature(enable = "neon")]
fn load(block: &[u8; BLOCK]) -> [uint8x16_t; 4] {
    // SAFETY: the pointer is to an array of the 64 bytes read, at any address. `both_paths_agree` compares every byte
    // value in every position.
    let uint8x16x4_t(first, second, third, fourth) = unsafe { vld4q_u8(block.as_ptr()) };
    [first, second, third, fourth]
}

/// The bytes that are in any of some classes.
#[inline]
#[target_feature(enable = "neon")]
fn classes(bytes: [uint8x16_t; 4]) -> impl Fn(u8) -> u64 {
    // SAFETY: the pointer is to an array of the 16 bytes read, at any address.
    let [low_halves, high_halves] = [&LOW, &HIGH].map(|table| unsafe { vld1q_u8(table.as_ptr()) });
    let planes = planes(bytes.map(|bytes| {
        let low = vqtbl1q_u8(low_halves, vandq_u8(bytes, vdupq_n_u8(15)));
        let high = vqtbl1q_u8(high_halves, vshrq_n_u8::<4>(bytes));
        vandq_u8(low, high)
    }));
    move |any| (0..8).filter(|at| any >> at & 1 != 0).fold(0, |mask, at| mask | planes[at])
}

/// For each of the eight bits of a byte, this bit of all bytes of the block.
#[inline]
#[target_feature(enable = "neon")]
fn planes([first, second, third, fourth]: [uint8x16_t; 4]) -> [u64; 8] {
    // The first register of a pair keeps the even bits or pairs of bits, and the second one the odd.
    let pairs = |left, right| {
        let even = vdupq_n_u8(0b0101_0101);
        (vbslq_u8(even, left, vshlq_n_u8::<1>(right)), vbslq_u8(even, vshrq_n_u8::<1>(left), right))
    };
    let nibbles = |left, right| {
        let even = vdupq_n_u8(0b0011_0011);
        (vbslq_u8(even, left, vshlq_n_u8::<2>(right)), vbslq_u8(even, vshrq_n_u8::<2>(left), right))
    };
    let (earlier_even, earlier_odd) = pairs(first, second);
    let (later_even, later_odd) = pairs(third, fourth);
    let (bits_04, bits_26) = nibbles(earlier_even, later_even);
    let (bits_15, bits_37) = nibbles(earlier_odd, later_odd);

    // With a nibble in both halves of each byte, the middle of two bytes is a nibble of each.
    let join = |nibbles| vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(vreinterpretq_u16_u8(nibbles))));
    let low = |nibbles| join(vsliq_n_u8::<4>(nibbles, nibbles));
    let high = |nibbles| join(vsriq_n_u8::<4>(nibbles, nibbles));
    [low(bits_04), low(bits_15), low(bits_26), low(bits_37), high(bits_04), high(bits_15), high(bits_26), high(bits_37)]
}
