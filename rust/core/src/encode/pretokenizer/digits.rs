//! Cuts digits into groups of three from the right: counts a run to its end, then cuts it from its start.
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split_custom_afmoe` (AfMoE and Tiny Aya) and SuperBPE's pattern
//! `(?=(\d{3})+(?!\d))`. Complexity: linear in the text; each digit is read twice.
//!
//! Deviations: (1) no recursion. `std::regex` overflows its stack on long runs for SuperBPE.

use crate::text::unicode::{self, utf8};

/// Where groups of digits are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DigitGroups {
    /// After every group of any script's digits; the first group stays with the text before it.
    After,
    /// Before every full group of ASCII digits; a shorter first group stays with the text before it.
    Before,
}

impl DigitGroups {
    /// Calls `piece` with the byte range of every piece of `text[start..end]`.
    pub(crate) fn split(self, text: &[u8], start: usize, end: usize, mut piece: impl FnMut(usize, usize)) {
        let mut piece_start = start;
        let mut at = start;
        while at < end {
            let Some(len) = self.digit_len(text, at) else {
                at += utf8::sequence_len(text[at]);
                continue;
            };

            let run_start = at;
            let mut num_digits = 0;
            let mut next_len = Some(len);
            while let Some(len) = next_len {
                at += len;
                num_digits += 1;
                next_len = if at < end { self.digit_len(text, at) } else { None };
            }

            // `left` digits of the run come after `cut`.
            let mut cut = run_start;
            let mut left = num_digits;
            loop {
                let is_cut = left % 3 == 0 && if self == Self::After { cut > run_start } else { left > 0 };
                if is_cut && piece_start < cut {
                    piece(piece_start, cut);
                    piece_start = cut;
                }
                if left == 0 {
                    break;
                }
                cut += self.digit_len(text, cut).unwrap_or(1);
                left -= 1;
            }
        }
        if piece_start < end {
            piece(piece_start, end);
        }
    }

    /// The length of the digit at `at`, if there is one.
    pub(super) fn digit_len(self, text: &[u8], at: usize) -> Option<usize> {
        count_steps!(1);
        if text[at] < 0x80 {
            return text[at].is_ascii_digit().then_some(1);
        }
        let (code_point, len) = utf8::decode_lossy(text, at);
        self.is_digit(code_point).then_some(len)
    }

    /// Whether a code point is one of the digits.
    pub(super) fn is_digit(self, code_point: u32) -> bool {
        match u8::try_from(code_point) {
            Ok(byte @ 0..0x80) => byte.is_ascii_digit(),
            _ => self == Self::After && unicode::flags(code_point).is_number(),
        }
    }
}
