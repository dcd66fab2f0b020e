//! What the bytes of a block are, as bits.

use crate::pretokenizer::automaton::alphabet::is_han;
use crate::scan::masks::{BLOCK, Masks};
use crate::unicode::{self, Flags, rows, utf8};

/// The bytes that have one of `mask` before them; nothing is before the first.
#[inline(always)]
pub(super) fn after(mask: u64) -> u64 {
    mask << 1
}

/// The lowest `count` bits.
#[inline(always)]
pub(super) fn below(count: u32) -> u64 {
    if count >= u64::BITS { u64::MAX } else { (1 << count) - 1 }
}

/// The last of the lowest `count` bits.
#[inline(always)]
pub(super) fn last_bit(count: u32) -> u64 {
    if count == 0 { 0 } else { 1 << (count - 1) }
}

/// The place of the highest bit.
pub(super) fn highest(mask: u64) -> u32 {
    mask.checked_ilog2().unwrap_or(0)
}

/// Which characters count as letters, which as others, and which are set apart: these come in runs of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Letters alone; whatever is neither that nor a number nor whitespace is another character.
    Letters,
    /// Marks are letters too.
    Marks,
    /// Letters alone, but marks are unknown: among letters they are letters, among others others.
    LettersButMarks,
    /// Marks are letters too, but letters and marks of kanji and kana are set apart; of other characters those are unknown
    /// that are neither punctuation nor symbols.
    DeepSeek,
    /// Kimi K2's: letters of Han are set apart; what else Han has is unknown.
    Han,
    /// Falcon's: punctuation and ASCII's symbols are set apart.
    Punctuation,
    /// The default's: as Falcon's, but a backquote is another character.
    PunctuationButBackquote,
}

impl Alphabet {
    /// Whether what is set apart is cut out before the pattern sees the text.
    #[inline(always)]
    pub(super) fn cuts_first(self) -> bool {
        matches!(self, Self::DeepSeek | Self::Punctuation | Self::PunctuationButBackquote)
    }

    /// Whether what is unknown may belong to the run before it.
    #[inline(always)]
    pub(super) fn goes_on(self, is_apart: bool) -> bool {
        if is_apart { self == Self::Han } else { self == Self::LettersButMarks }
    }

    /// Whether a character is one of those that are set apart in runs. What the pattern cuts out of such a run again is
    /// unknown.
    #[inline(always)]
    pub(super) fn is_cut(self, code_point: u32) -> bool {
        let is_ascii_symbol = || u8::try_from(code_point).is_ok_and(|byte| byte.is_ascii_punctuation());
        match self {
            Self::Letters | Self::Marks | Self::LettersButMarks => false,
            // The main blocks of kanji, hiragana and katakana.
            Self::DeepSeek => matches!(code_point, 0x4E00..=0x9FA5 | 0x3040..=0x30FF),
            Self::Han => is_han(code_point),
            Self::Punctuation => unicode::flags(code_point).is_punctuation() || is_ascii_symbol(),
            Self::PunctuationButBackquote => code_point != u32::from(b'`') && Self::Punctuation.is_cut(code_point),
        }
    }

    /// Of ASCII's `other` characters those that are set apart.
    #[inline(always)]
    fn ascii_apart(self, block: &[u8; BLOCK], other: u64) -> u64 {
        match self {
            Self::Letters | Self::Marks | Self::LettersButMarks | Self::DeepSeek | Self::Han => 0,
            Self::Punctuation => other & !controls(block),
            Self::PunctuationButBackquote => other & !(controls(block) | bytes_equal::<b'`'>(block)),
        }
    }

    /// Whether the character beyond ASCII that begins with these bytes is a letter, another one, set apart; if nothing of
    /// these, it is unknown.
    #[inline(always)]
    fn classes(self, bytes: [u8; 4]) -> (bool, bool, bool) {
        if self.is_cut(code_point(bytes)) {
            let flags = || unicode::flags(code_point(bytes));
            let is_apart = match self {
                Self::DeepSeek => flags().is_letter() || flags().is_accent_mark(),
                Self::Han => flags().is_letter(),
                _ => true,
            };
            return (false, false, is_apart);
        }
        let (letter, mark, other) = match rows::row(bytes) {
            Some((row, bit)) => (row.letter >> bit & 1 != 0, row.mark >> bit & 1 != 0, row.other >> bit & 1 != 0),
            None => {
                let flags = unicode::flags(code_point(bytes));
                let (letter, mark) = (flags.is_letter(), flags.is_accent_mark());
                (letter, mark, !(letter || mark || flags.is_number() || flags.is_whitespace()))
            }
        };
        let is_shown = |flags: Flags| flags.is_punctuation() || flags.is_symbol();
        let other = other && (self != Self::DeepSeek || is_shown(unicode::flags(code_point(bytes))));
        let marks_are_letters = matches!(self, Self::Marks | Self::DeepSeek);
        let marks_are_others = !marks_are_letters && self != Self::LettersButMarks;
        (letter | mark & marks_are_letters, other | mark & marks_are_others, false)
    }
}

#[inline]
fn code_point(bytes: [u8; 4]) -> u32 {
    utf8::decode_valid(&bytes, 0).map_or(utf8::REPLACEMENT, |(code_point, _)| code_point)
}

/// One bit of each byte.
#[inline(always)]
pub(super) fn bit_of_bytes<const BIT: u32>(block: &[u8; BLOCK]) -> u64 {
    gather(block, |eight| eight >> BIT)
}

/// The control characters of ASCII.
fn controls(block: &[u8; BLOCK]) -> u64 {
    gather(block, |eight| !(eight >> 5 | eight >> 6 | eight >> 7) | equal(eight, 0x7F))
}

/// The bytes that are `BYTE`.
fn bytes_equal<const BYTE: u8>(block: &[u8; BLOCK]) -> u64 {
    gather(block, |eight| equal(eight, BYTE))
}

/// For [`gather`], those of eight bytes that are `byte`.
#[inline(always)]
fn equal(eight: u64, byte: u8) -> u64 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let differing = eight ^ u64::from_le_bytes([byte; 8]);
    // The highest bit of each byte that differs, inverted.
    !(((differing & LOW) + LOW) | differing) >> 7
}

/// The lowest bit of each byte of what `bits` makes of eight of them.
#[inline(always)]
fn gather(block: &[u8; BLOCK], bits: impl Fn(u64) -> u64) -> u64 {
    let mut all = 0;
    for (at, &eight) in block.as_chunks().0.iter().enumerate() {
        let lowest = bits(u64::from_le_bytes(eight)) & 0x0101_0101_0101_0101;
        // The bit of byte i times 2 to the power of 7 (8 - i) is bit 56 + i.
        all |= (lowest.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * at);
    }
    all
}

/// What the bytes of a block are.
#[derive(Clone, Copy)]
pub(super) struct Bits {
    pub letter: u64,
    pub digit: u64,
    pub space: u64,
    /// Whitespace but for newlines.
    pub blank: u64,
    pub newline: u64,
    /// The class that some alphabets set apart; otherwise they are letters or others.
    pub apart: u64,
    /// Everything else.
    pub other: u64,
    pub apostrophe: u64,
    /// Bytes that do not begin a character.
    pub inner: u64,
    /// From this byte on nothing is known.
    pub end: u32,
    /// Whether the text ends there.
    pub is_closed: bool,
}

impl Bits {
    /// What the first `len` bytes of a block are; `is_last` tells whether the text ends after them.
    #[inline(always)]
    pub(super) fn new(block: &[u8; BLOCK], len: usize, is_last: bool, alphabet: Alphabet) -> Self {
        let Masks { letter, digit, space, blank, newline, apostrophe, lead, letter_lead, inner } = Masks::new(block);
        let end = len as u32;
        let blank = blank | space;
        let other = below(end) & !(letter | digit | blank | newline | lead | inner);
        let (apart, is_closed) = (alphabet.ascii_apart(block, other), is_last);
        let other = other & !apart;
        let mut bits = Self { letter, digit, space, blank, newline, apart, other, apostrophe, inner, end, is_closed };
        if lead != 0 {
            let has_han = matches!(alphabet, Alphabet::DeepSeek | Alphabet::Han);
            let letter = if has_han { 0 } else { letter_lead };
            bits.add_beyond(block, lead, letter, alphabet);
        }
        if alphabet == Alphabet::DeepSeek {
            let unknown = controls(block) & bits.other;
            if unknown != 0 {
                bits.cut(unknown.trailing_zeros());
            }
        }
        bits
    }

    /// Adds the characters beyond ASCII, which begin at `leads`; `letter` are those of them that are letters whatever
    /// follows. Digits, whitespace and a character that the block cuts end what is known.
    #[inline(always)]
    fn add_beyond(&mut self, block: &[u8; BLOCK], leads: u64, mut letter: u64, alphabet: Alphabet) {
        let mut padded = [0; BLOCK + 4];
        padded[..BLOCK].copy_from_slice(block);
        let (mut rest, mut other, mut apart) = (leads & !letter, 0, 0);
        while rest != 0 {
            let at = rest.trailing_zeros() as usize % BLOCK;
            let bytes = [padded[at], padded[at + 1], padded[at + 2], padded[at + 3]];
            let (is_letter, is_other, is_apart) = alphabet.classes(bytes);
            letter |= u64::from(is_letter) << at;
            other |= u64::from(is_other) << at;
            apart |= u64::from(is_apart) << at;
            rest &= rest - 1;
        }
        let cut_at = |at: usize| u64::from(at + utf8::sequence_len(block[at]) > BLOCK) << at;
        let cut = leads & (cut_at(BLOCK - 3) | cut_at(BLOCK - 2) | cut_at(BLOCK - 1));
        let unknown = leads & !(letter | other | apart) | cut;
        for _ in 1..4 {
            letter |= after(letter) & self.inner;
            other |= after(other) & self.inner;
            apart |= after(apart) & self.inner;
        }
        self.letter |= letter;
        self.other |= other;
        self.apart |= apart;
        if unknown != 0 {
            self.cut(unknown.trailing_zeros());
        }
    }

    /// Forgets everything from byte `end` on.
    fn cut(&mut self, end: u32) {
        let known = below(end);
        for mask in [
            &mut self.letter,
            &mut self.digit,
            &mut self.space,
            &mut self.blank,
            &mut self.newline,
            &mut self.apart,
            &mut self.other,
            &mut self.apostrophe,
            &mut self.inner,
        ] {
            *mask &= known;
        }
        (self.end, self.is_closed) = (end, false);
    }
}

#[cfg(test)]
mod tests {
    use super::{bit_of_bytes, bytes_equal, controls};
    use crate::scan::masks::BLOCK;

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
            assert_eq!(controls(&block), expected(&|byte| byte.is_ascii_control(), &block));
        }
    }
}
