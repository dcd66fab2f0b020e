//! Which bytes of a block are letters, digits, spaces: one bit a byte, for 64 bytes at once.
//!
//! With AVX2 a byte's two halves select a row each from two 16-entry tables, whose intersection is the byte's class
//! (Muła and Lemire, "Faster Base64 Encoding and Decoding Using AVX2 Instructions", 2018, describe the technique);
//! elsewhere one table of 256 entries does. Both give the same bits.

/// Bytes per block.
pub(crate) const BLOCK: usize = 64;

/// Bit `i` of each mask is about byte `i` of the block. No bit is set in two masks but for `lead` and `letter_lead`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    /// `A` to `Z` and `a` to `z`.
    pub letter: u64,
    /// `0` to `9`.
    pub digit: u64,
    /// The space.
    pub space: u64,
    /// Tabulators and form feed.
    pub blank: u64,
    /// Carriage return and line feed.
    pub newline: u64,
    /// The apostrophe.
    pub apostrophe: u64,
    /// Bytes that begin a character beyond ASCII.
    pub lead: u64,
    /// Those of them that tell a letter, whatever follows: most of Han and Hangul.
    pub letter_lead: u64,
    /// Bytes inside such a character.
    pub inner: u64,
}

/// The first `N` bytes of a text, which are its own or, where it has fewer, those with spaces behind them in `padded`.
#[inline(always)]
pub(crate) fn spaced_out<'a, const N: usize>(text: &'a [u8], padded: &'a mut [u8; N]) -> &'a [u8; N] {
    match text.first_chunk() {
        Some(block) => block,
        None => {
            padded.fill(b' ');
            padded[..text.len()].copy_from_slice(text);
            padded
        }
    }
}

// Classes as bits of a table entry. Letters are two rectangles in the plane of high and low halves.
const LETTER_LOW: u8 = 1;
const LETTER_HIGH: u8 = 2;
const DIGIT: u8 = 4;
const SPACE: u8 = 8;
const BLANK: u8 = 16;
const NEWLINE: u8 = 32;
const APOSTROPHE: u8 = 64;
/// The highest bit, which needs no comparison.
const LETTER_LEAD: u8 = 128;

/// By the low half of a byte, the classes that are possible.
const LOW: [u8; 16] = {
    let mut table = [0; 16];
    let mut low = 0;
    while low < 16 {
        let mut classes = 0;
        if low >= 1 {
            classes |= LETTER_LOW;
        }
        if low <= 10 {
            classes |= LETTER_HIGH;
        }
        if low <= 9 {
            classes |= DIGIT;
        }
        if low == 0 {
            classes |= SPACE;
        }
        if low == 9 || low == 11 || low == 12 {
            classes |= BLANK;
        }
        if low == 10 || low == 13 {
            classes |= NEWLINE;
        }
        if low == 7 {
            classes |= APOSTROPHE;
        }
        // U+5000 to U+9FFF and U+B000 to U+CFFF.
        if low >= 5 && low <= 9 || low == 11 || low == 12 {
            classes |= LETTER_LEAD;
        }
        table[low] = classes;
        low += 1;
    }
    table
};

/// By the high half of a byte, the classes that are possible.
const HIGH: [u8; 16] = [
    BLANK | NEWLINE,
    0,
    SPACE | APOSTROPHE,
    DIGIT,
    LETTER_LOW,
    LETTER_HIGH,
    LETTER_LOW,
    LETTER_HIGH,
    0,
    0,
    0,
    0,
    0,
    0,
    LETTER_LEAD,
    0,
];

/// Classes of ASCII characters; see [`Masks::ascii_classes`].
pub(crate) const ASCII_CLASSES: usize = 5;

impl Masks {
    /// Each ASCII character is in one of these: letter, digit, space, other whitespace, anything else.
    #[inline(always)]
    pub(crate) fn ascii_classes(self) -> [u64; ASCII_CLASSES] {
        let Self { letter, digit, space, blank, newline, .. } = self;
        let others = !(letter | digit | space | blank | newline | self.beyond_ascii());
        [letter, digit, space, blank | newline, others]
    }

    /// Bytes that are no ASCII.
    #[inline(always)]
    pub(crate) fn beyond_ascii(self) -> u64 {
        self.lead | self.inner
    }

    /// The masks of a block.
    #[inline]
    pub(crate) fn new(block: &[u8; BLOCK]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return avx2::masks(block);
        }
        Self::portable(block)
    }

    fn portable(block: &[u8; BLOCK]) -> Self {
        let mut masks = Self::default();
        for (at, &byte) in block.iter().enumerate() {
            let bit = 1 << at;
            match LOW[usize::from(byte & 15)] & HIGH[usize::from(byte >> 4)] {
                LETTER_LOW | LETTER_HIGH => masks.letter |= bit,
                DIGIT => masks.digit |= bit,
                SPACE => masks.space |= bit,
                BLANK => masks.blank |= bit,
                NEWLINE => masks.newline |= bit,
                APOSTROPHE => masks.apostrophe |= bit,
                LETTER_LEAD => (masks.lead, masks.letter_lead) = (masks.lead | bit, masks.letter_lead | bit),
                _ if byte >= 0xC0 => masks.lead |= bit,
                _ if byte >= 0x80 => masks.inner |= bit,
                _ => {}
            }
        }
        masks
    }
}

/// The block in two registers. `unsafe` pays here: the whole encoding of English gains a third.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{APOSTROPHE, BLANK, BLOCK, DIGIT, HIGH, LETTER_HIGH, LETTER_LOW, LOW, Masks, NEWLINE, SPACE};
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256,
        _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
        _mm256_srli_epi16,
    };

    /// As [`Masks::portable`]. The processor must have AVX2.
    #[inline]
    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        debug_assert!(is_x86_feature_detected!("avx2"));
        // SAFETY: the only caller asks for AVX2 first. `both_paths_agree` would fail if the feature were missing.
        unsafe { detected(block) }
    }

    #[target_feature(enable = "avx2")]
    fn detected(block: &[u8; BLOCK]) -> Masks {
        // SAFETY: each pointer is to an array of at least the 16 or 32 bytes that are read, and unaligned loads take
        // any address. `both_paths_agree` compares every byte value in every place.
        let (low_half, high_half, first, second) = unsafe {
            (
                _mm256_broadcastsi128_si256(_mm_loadu_si128(LOW.as_ptr().cast())),
                _mm256_broadcastsi128_si256(_mm_loadu_si128(HIGH.as_ptr().cast())),
                _mm256_loadu_si256(block.as_ptr().cast()),
                _mm256_loadu_si256(block.as_ptr().add(32).cast()),
            )
        };
        let classes = |bytes: __m256i| {
            let half = |bytes| _mm256_and_si256(bytes, _mm256_set1_epi8(15));
            let (low, high) = (half(bytes), half(_mm256_srli_epi16::<4>(bytes)));
            _mm256_and_si256(_mm256_shuffle_epi8(low_half, low), _mm256_shuffle_epi8(high_half, high))
        };
        let (first_classes, second_classes) = (classes(first), classes(second));
        let bits = |first: __m256i, second: __m256i| {
            u64::from(_mm256_movemask_epi8(first) as u32) | u64::from(_mm256_movemask_epi8(second) as u32) << 32
        };
        let of = |class: u8| {
            let class = _mm256_set1_epi8(class as i8);
            let none = |classes| _mm256_cmpeq_epi8(_mm256_and_si256(classes, class), _mm256_setzero_si256());
            !bits(none(first_classes), none(second_classes))
        };
        let beyond = bits(first, second);
        let second_bits = bits(_mm256_slli_epi16::<1>(first), _mm256_slli_epi16::<1>(second));
        Masks {
            letter: of(LETTER_LOW | LETTER_HIGH),
            digit: of(DIGIT),
            space: of(SPACE),
            blank: of(BLANK),
            newline: of(NEWLINE),
            apostrophe: of(APOSTROPHE),
            lead: beyond & second_bits,
            letter_lead: bits(first_classes, second_classes),
            inner: beyond & !second_bits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Masks};
    use crate::unicode::flags;

    #[test]
    fn both_paths_agree() {
        for byte in 0..=255_u8 {
            for place in 0..BLOCK {
                let mut block = [b'x'; BLOCK];
                block[place] = byte;
                assert_eq!(Masks::new(&block), Masks::portable(&block), "{byte} at {place}");
            }
        }
    }

    #[test]
    fn every_byte_has_its_class() {
        for byte in 0..=255_u8 {
            let masks = Masks::portable(&[byte; BLOCK]);
            let is = |mask: u64| mask == u64::MAX;
            assert_eq!(is(masks.letter), byte.is_ascii_alphabetic());
            assert_eq!(is(masks.digit), byte.is_ascii_digit());
            assert_eq!(is(masks.space), byte == b' ');
            assert_eq!(is(masks.blank), matches!(byte, b'\t' | 0x0B | 0x0C));
            assert_eq!(is(masks.newline), matches!(byte, b'\r' | b'\n'));
            assert_eq!(is(masks.apostrophe), byte == b'\'');
            assert_eq!(is(masks.lead), byte >= 0xC0);
            assert_eq!(is(masks.inner), (0x80..0xC0).contains(&byte));
            let is_letter = |last: u32| flags(u32::from(byte & 15) << 12 | last).is_letter();
            assert_eq!(is(masks.letter_lead), byte >> 4 == 14 && (0..1 << 12).all(is_letter));
        }
    }
}
