//! The classes of a block's characters as bits: one 64-bit mask per class, bit `i` for byte `i`.
//!
//! ASCII is classified for the whole block at once ([`Masks`]). Characters beyond ASCII are looked up one by one,
//! unless the lead byte says enough, and every byte of a character gets its class. A character that no rule of the
//! pattern decides ends the known part of the block.

use crate::encode::pretokenizer::shape::WordChars;
use crate::text::scan::masks::{Classified, Masks, controls};
use crate::text::scan::{BLOCK, gather, places};
use crate::text::unicode::rows::{self, Row};
use crate::text::unicode::{self, utf8};

/// The bytes after those of `mask`. The lowest bit is 0: the first byte follows none.
#[inline(always)]
pub(super) fn after(mask: u64) -> u64 {
    mask << 1
}

/// The lowest `len` bits.
#[inline(always)]
pub(super) fn below(len: u32) -> u64 {
    if len >= u64::BITS { u64::MAX } else { (1 << len) - 1 }
}

/// The last of the lowest `len` bits.
#[inline(always)]
pub(super) fn last_bit(len: u32) -> u64 {
    if len == 0 { 0 } else { 1 << (len - 1) }
}

/// The position of the highest bit, or 0.
pub(super) fn highest(mask: u64) -> u32 {
    mask.checked_ilog2().unwrap_or(0)
}

/// The class of a character beyond ASCII. Numbers, whitespace and whatever depends on context are undecided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    is_letter: bool,
    is_other: bool,
    is_isolated: bool,
}

impl WordChars {
    /// The isolated ones among the ASCII characters that are `other`.
    #[inline(always)]
    fn isolated_ascii(self, block: &[u8; BLOCK], other: u64) -> u64 {
        match self {
            Self::Letters | Self::LettersAndMarks | Self::MarksByContext | Self::DeepSeek | Self::KimiK2 => 0,
            Self::Falcon => other & !controls(block),
            Self::Default => other & !(controls(block) | bytes_equal::<b'`'>(block)),
        }
    }

    /// The class of the character beyond ASCII that starts with these bytes.
    #[inline(always)]
    fn class(self, bytes: [u8; 4]) -> Class {
        if self.isolates(code_point(bytes)) {
            let flags = || unicode::flags(code_point(bytes));
            let is_isolated = match self {
                Self::DeepSeek => flags().is_letter() || flags().is_accent_mark(),
                Self::KimiK2 => flags().is_letter(),
                _ => true,
            };
            return Class { is_letter: false, is_other: false, is_isolated };
        }

        let marks_are_letters = matches!(self, Self::LettersAndMarks | Self::DeepSeek);
        let marks_are_others = !marks_are_letters && self != Self::MarksByContext;
        let (is_letter, is_other) = match rows::row(bytes) {
            Some((Row { letter, mark, other }, bit)) => {
                let letters = if marks_are_letters { letter | mark } else { letter };
                let others = if marks_are_others { other | mark } else { other };
                (letters >> bit & 1 != 0, others >> bit & 1 != 0)
            }
            None => {
                let flags = unicode::flags(code_point(bytes));
                let letter = flags.is_letter();
                let mark = flags.is_accent_mark();
                let other = !(letter || mark || flags.is_number() || flags.is_whitespace());
                (letter || mark && marks_are_letters, other || mark && marks_are_others)
            }
        };

        let is_punctuation_or_symbol = || {
            let flags = unicode::flags(code_point(bytes));
            flags.is_punctuation() || flags.is_symbol()
        };
        let is_other = is_other && (self != Self::DeepSeek || is_punctuation_or_symbol());
        Class { is_letter, is_other, is_isolated: false }
    }
}

#[inline]
fn code_point(bytes: [u8; 4]) -> u32 {
    utf8::decode_valid(&bytes, 0).map_or(utf8::REPLACEMENT, |(code_point, _)| code_point)
}

/// Bit `BIT` of each byte.
#[inline(always)]
pub(super) fn bit_of_bytes<const BIT: u32>(block: &[u8; BLOCK]) -> u64 {
    gather(block, |eight| eight >> BIT)
}

/// The bytes that are `BYTE`.
fn bytes_equal<const BYTE: u8>(block: &[u8; BLOCK]) -> u64 {
    gather(block, |eight| equal(eight, BYTE))
}

/// Which of eight bytes are `byte`: the lowest bit of each is set. The other bits are arbitrary; [`gather`] ignores
/// them.
#[inline(always)]
fn equal(eight: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let differing = eight ^ u64::from_le_bytes([byte; 8]);
    // The highest bit of each byte: set if it differs, then inverted.
    !(((differing & LOW) + LOW) | differing) >> 7
}

/// The classes of a block's characters. Each byte below `end` is in one of letter, digit, blank, newline, isolated and
/// other; space and apostrophe are parts of blank and other.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    pub letter: u64,
    pub digit: u64,
    pub space: u64,
    /// Whitespace except newlines.
    pub blank: u64,
    pub newline: u64,
    /// See [`WordChars`].
    pub isolated: u64,
    pub other: u64,
    pub apostrophe: u64,
    /// Continuation bytes of characters.
    pub inner: u64,
    /// The end of the known part. No mask has a bit from here on.
    pub end: u32,
    /// Whether the text ends there too.
    pub is_closed: bool,
}

impl Bits {
    /// Classifies the first `len` bytes of a block; `is_last` says whether the text ends after them.
    #[inline(always)]
    pub(super) fn new(block: &[u8; BLOCK], len: usize, is_last: bool, words: WordChars) -> Self {
        let Masks { letter, digit, space, blank, newline, apostrophe, lead, letter_lead, inner } = Masks::new(block);
        let end = len as u32;
        let blank = blank | space;
        let other = below(end) & !(letter | digit | blank | newline | lead | inner);
        let isolated = words.isolated_ascii(block, other);
        let other = other & !isolated;
        let mut bits =
            Self { letter, digit, space, blank, newline, isolated, other, apostrophe, inner, end, is_closed: is_last };

        if lead != 0 {
            let isolates_han = matches!(words, WordChars::DeepSeek | WordChars::KimiK2);
            let letter = if isolates_han { 0 } else { letter_lead };
            bits.add_beyond_ascii(block, lead, letter, words);
        }

        if words == WordChars::DeepSeek {
            let undecided = controls(block) & bits.other;
            if undecided != 0 {
                bits.truncate(undecided.trailing_zeros());
            }
        }
        bits
    }

    /// Adds the characters beyond ASCII, which start at `leads`; the lead bytes at `letter` always start letters. The
    /// first undecided character, or one cut off by the block, ends the known part.
    #[inline(always)]
    fn add_beyond_ascii(&mut self, block: &[u8; BLOCK], leads: u64, mut letter: u64, words: WordChars) {
        let mut padded = [0; BLOCK + 4];
        padded[..BLOCK].copy_from_slice(block);

        let mut other = 0;
        let mut isolated = 0;
        for at in places(leads & !letter) {
            let bytes = [padded[at], padded[at + 1], padded[at + 2], padded[at + 3]];
            let class = words.class(bytes);
            letter |= u64::from(class.is_letter) << at;
            other |= u64::from(class.is_other) << at;
            isolated |= u64::from(class.is_isolated) << at;
        }

        let cut_at = |at: usize| u64::from(at + utf8::sequence_len(block[at]) > BLOCK) << at;
        let cut = leads & (cut_at(BLOCK - 3) | cut_at(BLOCK - 2) | cut_at(BLOCK - 1));
        let undecided = leads & !(letter | other | isolated) | cut;

        for _ in 1..4 {
            letter |= after(letter) & self.inner;
            other |= after(other) & self.inner;
            isolated |= after(isolated) & self.inner;
        }
        self.letter |= letter;
        self.other |= other;
        self.isolated |= isolated;

        if undecided != 0 {
            self.truncate(undecided.trailing_zeros());
        }
    }

    /// Ends the known part at byte `end`.
    fn truncate(&mut self, end: u32) {
        (self.end, self.is_closed) = (end, false);
        let Self { letter, digit, space, blank, newline, isolated, other, apostrophe, inner, .. } = self;
        for mask in [letter, digit, space, blank, newline, isolated, other, apostrophe, inner] {
            *mask &= below(end);
        }
    }
}

/// A block and what is known about it before its boundaries are found.
#[derive(Clone, Copy)]
pub(super) struct Block<'a> {
    pub bytes: &'a [u8; BLOCK],
    pub bits: Bits,
    /// The run that the block starts in; if there is none, a piece starts at its first byte.
    pub inside: Option<OpenRun>,
}

/// A run that continues past the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenRun {
    /// Letters, with the last byte before the next block.
    Letters(u8),
    Isolated,
}

impl Block<'_> {
    /// The first bit, if there are letters before the block.
    #[inline(always)]
    pub(super) fn in_letters(self) -> u64 {
        u64::from(matches!(self.inside, Some(OpenRun::Letters(_))))
    }
}

#[cfg(test)]
mod tests {
    use super::{bit_of_bytes, bytes_equal};
    use crate::text::scan::BLOCK;

    #[test]
    fn bits_of_bytes_stand_at_their_places() {
        let expected = |is: &dyn Fn(u8) -> bool, block: &[u8; BLOCK]| {
            block.iter().enumerate().fold(0, |bits, (at, &byte)| bits | u64::from(is(byte)) << at)
        };
        for first in 0..=255_u8 {
            let block = std::array::from_fn(|at| first.wrapping_add((at * 37) as u8));
            assert_eq!(bit_of_bytes::<5>(&block), expected(&|byte| byte & 0x20 != 0, &block));
            assert_eq!(bit_of_bytes::<7>(&block), expected(&|byte| byte >= 0x80, &block));
            assert_eq!(bytes_equal::<b'`'>(&block), expected(&|byte| byte == b'`', &block));
        }
    }
}
