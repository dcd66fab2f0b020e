//! A bitmap of the letters and marks of the Basic Multilingual Plane. The 64 code points of a row differ only in the
//! last byte of their UTF-8.
//!
//! [`flags`] takes three dependent reads. Here the bytes of a character give the position of its bit, so there is one
//! read, and most texts use few rows. The compiler computes the 24 KB. Complexity: constant time per character.

use super::flags;

/// One bit for each of 64 code points.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Row {
    /// General category `L*`.
    pub letter: u64,
    /// General category `M*`.
    pub mark: u64,
    /// Neither of these, nor a number or whitespace.
    pub other: u64,
}

#[allow(long_running_const_eval, reason = "65,536 look-ups")]
static ROWS: [Row; 1024] = {
    let mut rows = [Row { letter: 0, mark: 0, other: 0 }; 1024];
    let mut code_point = 0;
    while code_point < 0x1_0000 {
        let row = &mut rows[code_point as usize / 64];
        let bit = 1 << (code_point % 64);
        let flags = flags(code_point);
        if flags.is_letter() {
            row.letter |= bit;
        } else if flags.is_accent_mark() {
            row.mark |= bit;
        } else if !flags.is_number() && !flags.is_whitespace() {
            row.other |= bit;
        }
        code_point += 1;
    }
    rows
};

/// The row and the bit of the character that starts with these bytes of UTF-8, if it has two or three bytes.
#[inline(always)]
pub(crate) fn row(bytes: [u8; 4]) -> Option<(Row, u32)> {
    let [first, second, third, _] = bytes.map(u32::from);
    let is_short = first < 0xE0;
    let row = if is_short { first & 0x1F } else { (first & 0x0F) << 6 | second & 0x3F };
    let last = if is_short { second } else { third };
    (first < 0xF0).then(|| (ROWS[row as usize % ROWS.len()], last & 0x3F))
}

#[cfg(test)]
mod tests {
    use super::row;
    use crate::text::unicode::{flags, utf8};

    #[test]
    fn rows_say_what_flags_say() {
        for code_point in 0x80..0x1_0000 {
            let mut bytes = [0; 4];
            let flags = flags(code_point);
            utf8::encode(code_point, &mut bytes);
            let (row, bit) = row(bytes).expect("in the basic plane");
            assert_eq!(row.letter >> bit & 1 != 0, flags.is_letter(), "U+{code_point:04X}");
            assert_eq!(row.mark >> bit & 1 != 0, flags.is_accent_mark(), "U+{code_point:04X}");
            let is_other = !(flags.is_letter() || flags.is_accent_mark() || flags.is_number() || flags.is_whitespace());
            assert_eq!(row.other >> bit & 1 != 0, is_other, "U+{code_point:04X}");
        }
        assert_eq!(row([0xF0, 0x9F, 0x98, 0x80]), None);
    }
}
