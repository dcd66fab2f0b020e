//! Classifies every byte of a block, with one mask per class: two table look-ups for 64 bytes at once.
//!
//! The two halves of a byte each select an entry of a 16-entry table, and the bits that both entries share are the
//! byte's classes. One shuffle looks up 32 bytes with AVX2 and 16 with NEON; without them, a table of 256 entries is
//! read byte by byte.
//!
//! Source: the technique is described by Muła and Lemire, "Faster Base64 Encoding and Decoding Using AVX2 Instructions"
//! (2018). Complexity: one to two instructions per byte with AVX2 or NEON.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;

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
const LETTER: u8 = LETTER_LOW | LETTER_HIGH;
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

/// The classes of a byte. All letters are `LETTER_LOW`, so that one bit is enough.
static CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let classes = LOW[byte % 16] & HIGH[byte / 16];
        table[byte] = classes | (classes & LETTER_HIGH) >> 1;
        byte += 1;
    }
    table
};

/// The bytes of a block that are in any of some classes: the lowest of these must include the others.
fn portable_of(block: &[u8; BLOCK]) -> impl Fn(u8) -> u64 {
    let classes = block.map(|byte| CLASSES[usize::from(byte)]);
    move |any| gather(&classes, |eight| eight >> any.trailing_zeros())
}

/// A selection of masks for a block.
pub(crate) trait Classified: Sized {
    /// The masks of a block.
    #[inline]
    fn new(block: &[u8; BLOCK]) -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = avx2::Avx2::detect() {
            return avx2.classify(block);
        }
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        if let Some(neon) = neon::Neon::detect() {
            return neon.classify(block);
        }
        Self::portable(block)
    }

    fn portable(block: &[u8; BLOCK]) -> Self {
        let [beyond_ascii, second_bits] = [7, 6].map(|bit| gather(block, |eight| eight >> bit));
        Self::from_classes(portable_of(block), beyond_ascii, second_bits, controls(block) | beyond_ascii)
    }

    /// `of` gives the bytes that are in any of some classes. The other masks are the highest bits of all bytes, the second
    /// highest, and the bytes that are control characters or beyond ASCII. What is not used is not computed.
    fn from_classes(of: impl Fn(u8) -> u64, beyond_ascii: u64, second_bits: u64, unprintable: u64) -> Self;
}

impl Classified for Masks {
    #[inline(always)]
    fn from_classes(of: impl Fn(u8) -> u64, beyond_ascii: u64, second_bits: u64, _: u64) -> Self {
        let blank = of(BLANK);
        Self {
            letter: of(LETTER),
            digit: of(DIGIT),
            space: of(SPACE),
            blank,
            newline: of(FEED) & !blank,
            apostrophe: of(APOSTROPHE),
            lead: beyond_ascii & second_bits,
            letter_lead: of(LETTER_LEAD),
            inner: beyond_ascii & !second_bits,
        }
    }
}

impl Masks {
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

impl Classified for WordClasses {
    #[inline(always)]
    fn from_classes(of: impl Fn(u8) -> u64, _: u64, _: u64, unprintable: u64) -> Self {
        // Newlines are only feeds, horizontal tabs only blanks, and other blanks both.
        let space = of(SPACE) | of(BLANK) ^ of(FEED);
        Self { letter: of(LETTER), digit: of(DIGIT), space, other: unprintable & !space }
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

#[cfg(test)]
mod tests {
    use super::{BLOCK, Classified, Masks, WordClasses, controls};
    use crate::text::unicode::flags;

    #[test]
    fn both_paths_agree() {
        let agree = |block: [u8; BLOCK]| {
            assert_eq!(Masks::new(&block), Masks::portable(&block), "{block:?}");
            assert_eq!(WordClasses::new(&block), WordClasses::portable(&block), "{block:?}");
        };
        // Miri takes a tenth of a second for a block.
        let step = if cfg!(miri) { 7 } else { 1 };
        for byte in (0..=255_u8).step_by(step) {
            for place in (0..BLOCK).step_by(step) {
                let mut block = [b'x'; BLOCK];
                block[place] = byte;
                agree(block);
            }
        }

        let mut state = 1_u64;
        for _ in (0..1 << 12).step_by(step * step) {
            agree(std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            }));
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
