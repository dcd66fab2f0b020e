//! The rules that only some shapes have: groups of digits, contractions, slashes after punctuation, changes of case.
//!
//! Each rule is a few shifts and logical operations on a block's masks, as in [`super`]; loops run only over the rare
//! bits that are candidates.

use super::bits::{Bits, Block, OpenRun, after, below, bit_of_bytes, last_bit};
use crate::encode::pretokenizer::shape::{Contractions, Digits, Shape};
use crate::text::scan::{BLOCK, places};

/// The boundaries of a block while they are being found.
pub(super) struct Boundaries {
    /// The bytes at which pieces start.
    pub starts: u64,
    /// Boundaries below this byte are settled.
    pub limit: u32,
    /// Whether the word at the end of the block takes only ASCII letters.
    pub is_ascii_word: bool,
}

impl Boundaries {
    /// Lowers the limit to `at`.
    #[inline(always)]
    pub(super) fn doubt(&mut self, at: u32) {
        self.limit = self.limit.min(at);
    }

    /// A word ends before an upper-case ASCII letter after a lower-case one. After a letter beyond ASCII, this depends
    /// on more of the text.
    #[inline(always)]
    pub(super) fn add_case_changes(&mut self, block: Block<'_>) {
        let letter = block.bits.letter;
        let lower_half = bit_of_bytes::<5>(block.bytes);
        let ascii = !bit_of_bytes::<7>(block.bytes);
        let upper = letter & ascii & !lower_half;
        let lower = letter & ascii & lower_half;
        let is_before = |is: fn(&u8) -> bool| match &block.inside {
            Some(OpenRun::Letters(byte)) => u64::from(is(byte)),
            _ => 0,
        };
        self.starts |= upper & (after(lower) | is_before(u8::is_ascii_lowercase));
        self.doubt((upper & (after(letter & !ascii) | is_before(|byte| !byte.is_ascii()))).trailing_zeros());
    }

    /// A short run of digits at the end of an open block may turn out to be longer.
    #[inline(always)]
    pub(super) fn doubt_short_run(&mut self, bits: Bits) {
        let open = bits.digit & last_bit(bits.end);
        let undecided = short_run_starts(bits.digit, bits.space) & (open | open >> 1);
        if undecided != 0 {
            self.doubt(undecided.trailing_zeros());
        }
    }
}

impl Digits {
    /// The digits at which pieces start.
    #[inline(always)]
    pub(super) fn starts(self, digit: u64, space: u64) -> u64 {
        match self {
            Self::Runs => digit & !after(digit | space),
            Self::Single => digit,
            Self::Threes | Self::RunsThenThrees => {
                let third = digit & after(digit) & after(after(digit));
                let mut group = digit & !after(digit);
                let mut groups = group;
                while group != 0 {
                    group = group << 3 & third;
                    groups |= group;
                }
                if self == Self::Threes { groups } else { groups & !short_run_starts(digit, space) }
            }
        }
    }
}

/// The starts of runs of one or two digits with a space before them.
#[inline(always)]
fn short_run_starts(digit: u64, space: u64) -> u64 {
    digit & !after(digit) & after(space) & !(digit >> 1 & digit >> 2)
}

impl Shape {
    /// Makes contractions separate pieces, or the ends of words.
    #[inline(always)]
    pub(super) fn contractions(self, block: Block<'_>, other_starts: u64, found: &mut Boundaries) {
        let Bits { letter, apostrophe, end, is_closed, .. } = block.bits;
        let mut candidates = apostrophe & other_starts;
        if self.contractions == Contractions::Suffixes {
            candidates &= after(letter) | block.in_letters();
            if !is_closed && candidates & last_bit(end) != 0 {
                found.doubt(end - 1);
            }
        }
        candidates &= letter >> 1;
        if candidates != 0 && self.contractions != Contractions::None {
            self.contract(block, candidates, found);
        }
    }

    /// Corrects the boundaries around the apostrophes in `candidates` that start a contraction.
    fn contract(self, block: Block<'_>, candidates: u64, found: &mut Boundaries) {
        let is_suffix = self.contractions == Contractions::Suffixes;
        let mut last_end = 0;
        for at in places(candidates).map(|at| at as u32) {
            // A suffix ends the piece before it; any other contraction starts one.
            let certain = if is_suffix { at } else { at + 1 };
            if at + 3 >= BLOCK as u32 {
                return found.doubt(certain);
            }
            let len = contraction_len(&block.bytes[at as usize + 1..], self.contractions != Contractions::Lower);
            // A word has only one suffix.
            let Some(len) = len.filter(|_| !is_suffix || at == 0 || at != last_end) else { continue };
            last_end = at + len;
            if last_end == block.bits.end && !block.bits.is_closed {
                return found.doubt(certain);
            }
            found.starts &= !(below(last_end) & !below(certain));
            found.starts |= block.bits.letter & 1 << last_end;
        }
    }
}

/// The length of a contraction with its apostrophe, if `text`, which follows an apostrophe, starts with the rest of
/// one.
fn contraction_len(text: &[u8], any_case: bool) -> Option<u32> {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    match *text {
        [first, ..] if matches!(fold(first), b's' | b't' | b'm' | b'd') => Some(2),
        [first, second, ..] if matches!(&[fold(first), fold(second)], b"re" | b"ve" | b"ll") => Some(3),
        _ => None,
    }
}

/// The runs of newlines and slashes that start with a newline after a character of class other.
pub(super) fn slashes(block: Block<'_>) -> u64 {
    let Bits { newline, other, end, .. } = block.bits;
    let mut newlines = newline & after(other);
    let mut found = 0;
    while newlines != 0 {
        let first = newlines.trailing_zeros();
        let is_in = |&at: &u32| matches!(block.bytes[at as usize], b'\r' | b'\n' | b'/');
        let last = (first..end).take_while(is_in).last().unwrap_or(first);
        found |= below(last + 1) & !below(first);
        newlines &= !below(last + 1);
    }
    found
}
