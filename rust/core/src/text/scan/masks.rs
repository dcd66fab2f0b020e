//! Classifies every byte of a block, with one mask per class: two table look-ups for 64 bytes at once.
//!
//! The two halves of a byte each select an entry of a 16-entry table, and the bits that both entries share are the
//! byte's classes. With AVX2, one shuffle looks up 32 bytes; without it, a table of 256 entries is read byte by byte.
//!
//! Source: the technique is described by Muła and Lemire, "Faster Base64 Encoding and Decoding Using AVX2 Instructions"
//! (2018). Complexity: one to two instructions per byte with AVX2.

use super::{BLOCK, gather};

/// Bit `i` of each mask is about byte `i` of the block. A byte is in at most one of the masks, except that `lead`
/// includes `letter_lead`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Masks {
    /// `A` to `Z` and `a` to `z`.
    pub letter: u64,
    /// `0` to `9`.
    pub digit: u64,
    /// The space.
    pub space: u64,
    /// Horizontal and vertical tab, and form feed.
    pub blank: u64,
    /// Carriage return and line feed.
    pub newline: u64,
    /// The apostrophe.
    pub apostrophe: u64,
    /// The lead bytes of characters beyond ASCII.
    pub lead: u64,
    /// Lead bytes that always start a letter: most of Han and Hangul.
    pub letter_lead: u64,
    /// The continuation bytes of characters beyond ASCII.
    pub inner: u64,
}

/// The classes of [`Masks::ascii_classes`].
pub(crate) const NUM_ASCII_CLASSES: usize = 5;

/// The coarser classes with which WordPiece and Unigram find words. Bit `i` of each mask is about byte `i` of the
/// block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordClasses {
    /// ASCII letters.
    pub letter: u64,
    /// ASCII digits.
    pub digit: u64,
    /// Horizontal tab, line feed, carriage return and space.
    pub space: u64,
    /// All other ASCII control characters, and all bytes beyond ASCII.
    pub other: u64,
}

// Classes as bits of a table entry. Letters are two rectangles in the plane of high and low halves.
const LETTER_LOW: u8 = 1;
const LETTER_HIGH: u8 = 2;
const DIGIT: u8 = 4;
const SPACE: u8 = 8;
const BLANK: u8 = 16;
/// Newlines, and all blanks except the horizontal tab.
const FEED: u8 = 32;
const APOSTROPHE: u8 = 64;
/// The highest bit, which needs no comparison.
const LETTER_LEAD: u8 = 128;

/// The possible classes of a byte by its low half.
const LOW: [u8; 16] = {
    let mut table = [0; 16];
    let mut low = 0;
    while low < 16 {
        // Letter leads are those of U+5000 to U+9FFF and U+B000 to U+CFFF.
        table[low] = (LETTER_LOW * (low >= 1) as u8)
            | (LETTER_HIGH * (low <= 10) as u8)
            | (DIGIT * (low <= 9) as u8)
            | (SPACE * (low == 0) as u8)
            | (BLANK * matches!(low, 9 | 11 | 12) as u8)
            | (FEED * matches!(low, 10..=13) as u8)
            | (APOSTROPHE * (low == 7) as u8)
            | (LETTER_LEAD * matches!(low, 5..=9 | 11 | 12) as u8);
        low += 1;
    }
    table
};

/// The possible classes of a byte by its high half.
#[rustfmt::skip]
const HIGH: [u8; 16] = [
    BLANK | FEED, 0, SPACE | APOSTROPHE, DIGIT, LETTER_LOW, LETTER_HIGH, LETTER_LOW, LETTER_HIGH,
    0, 0, 0, 0, 0, 0, LETTER_LEAD, 0,
];

/// The classes of a byte.
static CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = LOW[byte % 16] & HIGH[byte / 16];
        byte += 1;
    }
    table
};

impl Masks {
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
        let classes = block.map(|byte| CLASSES[usize::from(byte)]);
        let of = |class: u8| gather(&classes, |eight| eight >> class.trailing_zeros());
        let beyond_ascii = gather(block, |eight| eight >> 7);
        let second_bits = gather(block, |eight| eight >> 6);
        Self {
            letter: of(LETTER_LOW) | of(LETTER_HIGH),
            digit: of(DIGIT),
            space: of(SPACE),
            blank: of(BLANK),
            newline: of(FEED) & !of(BLANK),
            apostrophe: of(APOSTROPHE),
            lead: beyond_ascii & second_bits,
            letter_lead: of(LETTER_LEAD),
            inner: beyond_ascii & !second_bits,
        }
    }

    /// One mask each for letters, digits, spaces, other whitespace and all other ASCII characters.
    #[inline(always)]
    pub(crate) fn ascii_classes(self) -> [u64; NUM_ASCII_CLASSES] {
        let Self { letter, digit, space, blank, newline, .. } = self;
        let other = !(letter | digit | space | blank | newline | self.beyond_ascii());
        [letter, digit, space, blank | newline, other]
    }

    /// The bytes beyond ASCII.
    #[inline(always)]
    pub(crate) fn beyond_ascii(self) -> u64 {
        self.lead | self.inner
    }
}

impl WordClasses {
    /// The classes of a block.
    #[inline]
    pub(crate) fn new(block: &[u8; BLOCK]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            return avx2::word_classes(block);
        }
        Self::portable(block)
    }

    fn portable(block: &[u8; BLOCK]) -> Self {
        let Masks { letter, digit, space, blank, newline, lead, inner, .. } = Masks::portable(block);
        // Of the blanks 9, 11 and 12, only the horizontal tab is odd and has bit 1 clear.
        let tab = blank & gather(block, |eight| eight & !(eight >> 1));
        let space = space | newline | tab;
        Self { letter, digit, space, other: (controls(block) | lead | inner) & !space }
    }
}

/// ASCII control characters, including whitespace.
pub(crate) fn controls(block: &[u8; BLOCK]) -> u64 {
    gather(block, |eight| {
        // DEL plus one sets the highest bit of a byte.
        let is_del = ((eight & 0x7F7F_7F7F_7F7F_7F7F) + 0x0101_0101_0101_0101) & !eight;
        !(eight >> 5 | eight >> 6 | eight >> 7) | is_del >> 7
    })
}

/// A block in two registers. This is worth its `unsafe`: English is encoded a third faster.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use super::{APOSTROPHE, BLANK, BLOCK, DIGIT, FEED, HIGH, LETTER_HIGH, LETTER_LOW, LOW, Masks, SPACE, WordClasses};
    use std::arch::x86_64::{
        __m256i, _mm_loadu_si128, _mm256_add_epi8, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_cmpgt_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_set1_epi8, _mm256_setzero_si256,
        _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srli_epi16,
    };

    /// As [`Masks::portable`]. The processor must have AVX2.
    #[inline]
    pub(super) fn masks(block: &[u8; BLOCK]) -> Masks {
        debug_assert!(is_x86_feature_detected!("avx2"));
        // SAFETY: the only caller checks for AVX2 first. `both_paths_agree` would fail if the feature were missing.
        unsafe { detected_masks(block) }
    }

    /// As [`WordClasses::portable`]. The processor must have AVX2.
    #[inline]
    pub(super) fn word_classes(block: &[u8; BLOCK]) -> WordClasses {
        debug_assert!(is_x86_feature_detected!("avx2"));
        // SAFETY: as above.
        unsafe { detected_word_classes(block) }
    }

    #[target_feature(enable = "avx2")]
    fn detected_masks(block: &[u8; BLOCK]) -> Masks {
        let lanes = Lanes::new(block);
        let Lanes { bytes: [first, second], classes: [first_classes, second_classes] } = lanes;
        let blank = lanes.of(BLANK);
        let beyond_ascii = bits(first, second);
        let second_bits = bits(_mm256_slli_epi16::<1>(first), _mm256_slli_epi16::<1>(second));
        Masks {
            letter: lanes.of(LETTER_LOW | LETTER_HIGH),
            digit: lanes.of(DIGIT),
            space: lanes.of(SPACE),
            blank,
            newline: lanes.of(FEED) & !blank,
            apostrophe: lanes.of(APOSTROPHE),
            lead: beyond_ascii & second_bits,
            letter_lead: bits(first_classes, second_classes),
            inner: beyond_ascii & !second_bits,
        }
    }

    #[target_feature(enable = "avx2")]
    fn detected_word_classes(block: &[u8; BLOCK]) -> WordClasses {
        let lanes = Lanes::new(block);
        // DEL plus one is negative, as are bytes beyond ASCII.
        let [first, second] = lanes.bytes.map(|bytes| {
            _mm256_cmpgt_epi8(_mm256_set1_epi8(b' ' as i8 + 1), _mm256_add_epi8(bytes, _mm256_set1_epi8(1)))
        });
        // Newlines are only feeds, horizontal tabs only blanks, and other blanks both.
        let space = lanes.of(SPACE) | lanes.of(BLANK) ^ lanes.of(FEED);
        WordClasses {
            letter: lanes.of(LETTER_LOW | LETTER_HIGH),
            digit: lanes.of(DIGIT),
            space,
            other: bits(first, second) & !space,
        }
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
                let (low, high) = (half(bytes), half(_mm256_srli_epi16::<4>(bytes)));
                _mm256_and_si256(_mm256_shuffle_epi8(low_half, low), _mm256_shuffle_epi8(high_half, high))
            });
            Self { bytes, classes }
        }

        /// The bytes that are in any of these classes.
        #[inline]
        #[target_feature(enable = "avx2")]
        fn of(&self, classes: u8) -> u64 {
            let wanted = _mm256_set1_epi8(classes as i8);
            let [first, second] = self
                .classes
                .map(|classes| _mm256_cmpeq_epi8(_mm256_and_si256(classes, wanted), _mm256_setzero_si256()));
            !bits(first, second)
        }
    }

    /// The highest bits of 64 bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn bits(first: __m256i, second: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(first) as u32) | u64::from(_mm256_movemask_epi8(second) as u32) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Masks, WordClasses, controls};
    use crate::text::unicode::flags;

    #[test]
    fn both_paths_agree() {
        // Miri takes a tenth of a second for a block.
        let step = if cfg!(miri) { 7 } else { 1 };
        for byte in (0..=255_u8).step_by(step) {
            for place in (0..BLOCK).step_by(step) {
                let mut block = [b'x'; BLOCK];
                block[place] = byte;
                assert_eq!(Masks::new(&block), Masks::portable(&block), "{byte} at {place}");
                assert_eq!(WordClasses::new(&block), WordClasses::portable(&block), "{byte} at {place}");
            }
        }
    }

    #[test]
    fn every_byte_has_its_class() {
        for byte in 0..=255_u8 {
            let masks = Masks::portable(&[byte; BLOCK]);
            let all = |is: bool| if is { u64::MAX } else { 0 };
            let is_letter = |last: u32| flags(u32::from(byte & 15) << 12 | last).is_letter();
            let is_letter_lead = byte >> 4 == 14 && (0..1 << 12).all(is_letter);
            let expected = Masks {
                letter: all(byte.is_ascii_alphabetic()),
                digit: all(byte.is_ascii_digit()),
                space: all(byte == b' '),
                blank: all(matches!(byte, b'\t' | 0x0B | 0x0C)),
                newline: all(matches!(byte, b'\r' | b'\n')),
                apostrophe: all(byte == b'\''),
                lead: all(byte >= 0xC0),
                inner: all((0x80..0xC0).contains(&byte)),
                letter_lead: all(is_letter_lead),
            };
            assert_eq!(masks, expected, "{byte:#x}");

            assert_eq!(controls(&[byte; BLOCK]), all(byte.is_ascii_control()), "{byte:#x}");
            let is_space = matches!(byte, b'\t' | b'\n' | b'\r' | b' ');
            let expected = WordClasses {
                letter: expected.letter,
                digit: expected.digit,
                space: all(is_space),
                other: all(!is_space && (!byte.is_ascii() || byte.is_ascii_control())),
            };
            assert_eq!(WordClasses::portable(&[byte; BLOCK]), expected, "{byte:#x}");
        }
    }
}
