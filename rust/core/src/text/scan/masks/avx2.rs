//! The masks of a block with AVX2, in two registers. This is worth its `unsafe`: English is encoded a third faster.

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_setzero_si256,
    _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srli_epi16,
};

use super::{BLOCK, Classified, HIGH, LOW};

/// Proof that the processor has AVX2: only [`Avx2::detect`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    #[inline(always)]
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// As [`Classified::portable`].
    #[inline]
    pub(super) fn classify<C: Classified>(self, block: &[u8; BLOCK]) -> C {
        // SAFETY: `self` proves that there is AVX2. `both_paths_agree` fails if these are not the portable masks.
        unsafe { classify(block) }
    }
}

#[target_feature(enable = "avx2")]
fn classify<C: Classified>(block: &[u8; BLOCK]) -> C {
    let lanes = Lanes::new(block);
    let second_bits = lanes.bytes.map(|bytes| _mm256_slli_epi16::<1>(bytes));
    // DEL plus one is negative, as are bytes beyond ASCII.
    let unprintable = lanes
        .bytes
        .map(|bytes| _mm256_cmpgt_epi8(_mm256_set1_epi8(b' ' as i8 + 1), _mm256_add_epi8(bytes, _mm256_set1_epi8(1))));
    C::from_classes(|any| lanes.of(any), bits(lanes.bytes), bits(second_bits), bits(unprintable))
}

/// The bytes of a block, and their classes as bits of a byte.
#[derive(Clone, Copy)]
struct Lanes {
    bytes: [__m256i; 2],
    classes: [__m256i; 2],
}

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(block: &[u8; BLOCK]) -> Self {
        // SAFETY: each pointer is to an array of at least the 16 or 32 bytes read, and unaligned loads take any
        // address. `both_paths_agree` compares every byte value in every position.
        let (low_half, high_half, bytes) = unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(LOW.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(HIGH.as_ptr().cast())),
                [_mm256_loadu_si256(block.as_ptr().cast()), _mm256_loadu_si256(block.as_ptr().add(32).cast())],
            )
        };
        let classes = bytes.map(|bytes| {
            let half = |bytes| _mm256_and_si256(bytes, _mm256_set1_epi8(15));
            let low = half(bytes);
            let high = half(_mm256_srli_epi16::<4>(bytes));
            _mm256_and_si256(_mm256_shuffle_epi8(low_half, low), _mm256_shuffle_epi8(high_half, high))
        });
        Self { bytes, classes }
    }

    /// The bytes that are in any of these classes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn of(&self, any: u8) -> u64 {
        let wanted = _mm256_set1_epi8(any as i8);
        !bits(self.classes.map(|classes| _mm256_cmpeq_epi8(_mm256_and_si256(classes, wanted), _mm256_setzero_si256())))
    }
}

/// The highest bits of 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn bits([first, second]: [__m256i; 2]) -> u64 {
    u64::from(_mm256_movemask_epi8(first) as u32) | u64::from(_mm256_movemask_epi8(second) as u32) << 32
}
