//! What the bytes of a block are, as bits.

use crate::unicode::masks::{BLOCK, Masks};
use crate::unicode::{self, rows, utf8};

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

/// Whether the character beyond ASCII that begins with these bytes is a letter (or a mark, if these count as letters), and
/// whether it is neither that nor a number nor whitespace.
#[inline(always)]
fn classes(bytes: [u8; 4], marks_are_letters: bool) -> (bool, bool) {
    let (letter, mark, other) = match rows::row(bytes) {
        Some((row, bit)) => (row.letter >> bit & 1 != 0, row.mark >> bit & 1 != 0, row.other >> bit & 1 != 0),
        None => {
            let code_point = utf8::decode_valid(&bytes, 0).map_or(utf8::REPLACEMENT, |(code_point, _)| code_point);
            let flags = unicode::flags(code_point);
            let (letter, mark) = (flags.is_letter(), flags.is_accent_mark());
            (letter, mark, !(letter || mark || flags.is_number() || flags.is_whitespace()))
        }
    };
    (letter | mark & marks_are_letters, other | mark & !marks_are_letters)
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
    pub(super) fn new(block: &[u8; BLOCK], len: usize, is_last: bool, marks_are_letters: bool) -> Self {
        let Masks { letter, digit, space, blank, newline, apostrophe, lead, letter_lead, inner } = Masks::new(block);
        let end = len as u32;
        let blank = blank | space;
        let other = below(end) & !(letter | digit | blank | newline | lead | inner);
        let mut bits = Self { letter, digit, space, blank, newline, other, apostrophe, inner, end, is_closed: is_last };
        if lead != 0 {
            bits.add_beyond(block, lead, letter_lead, marks_are_letters);
        }
        bits
    }

    /// Adds the characters beyond ASCII, which begin at `leads`; `letter` are those of them that are letters whatever
    /// follows. Digits, whitespace and a character that the block cuts end what is known.
    fn add_beyond(&mut self, block: &[u8; BLOCK], leads: u64, mut letter: u64, marks_are_letters: bool) {
        let mut padded = [0; BLOCK + 4];
        padded[..BLOCK].copy_from_slice(block);
        let (mut rest, mut other) = (leads & !letter, 0);
        while rest != 0 {
            let at = rest.trailing_zeros() as usize % BLOCK;
            let bytes = [padded[at], padded[at + 1], padded[at + 2], padded[at + 3]];
            let (is_letter, is_other) = classes(bytes, marks_are_letters);
            letter |= u64::from(is_letter) << at;
            other |= u64::from(is_other) << at;
            rest &= rest - 1;
        }
        let last = leads & !below(BLOCK as u32 - 3);
        let is_cut = |at: u32| at as usize + utf8::sequence_len(block[at as usize]) > BLOCK;
        let cut = (BLOCK as u32 - 3..BLOCK as u32).find(|&at| last >> at & 1 != 0 && is_cut(at));
        let unknown = leads & !(letter | other) | cut.map_or(0, |at| 1 << at);
        for _ in 1..4 {
            letter |= after(letter) & self.inner;
            other |= after(other) & self.inner;
        }
        self.letter |= letter;
        self.other |= other;
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
            &mut self.other,
            &mut self.apostrophe,
            &mut self.inner,
        ] {
            *mask &= known;
        }
        (self.end, self.is_closed) = (end, false);
    }
}
