//! Page tables of Unicode properties: character classes, the lowercase map and the map that strips accents.
//!
//! An index leads to pages of 32 code points, and equal pages are stored once. ASCII has a table of its own. The tables
//! take 79 KB and need no set-up.
//!
//! Source: the Unicode Character Database 15.1 as llama.cpp reads it (`src/unicode.cpp`: `unicode_cpt_flags_from_cpt`,
//! `unicode_tolower`, `unicode_cpts_normalize_nfd`); `scripts/generate_unicode.py` writes the tables.
//! Complexity: constant time per code point.
//!
//! Deviations: none.

pub(crate) mod rows;
#[rustfmt::skip]
mod tables;
pub mod utf8;

/// The code points of a page differ in this many low bits.
const PAGE_BITS: u32 = 5;
/// Precomposed Hangul: each leading consonant, starting with U+1100, has 588 consecutive syllables.
const HANGUL_SYLLABLES: std::ops::RangeInclusive<u32> = 0xAC00..=0xD7A3;
const SYLLABLES_PER_CONSONANT: u32 = 588;

/// The classes of a code point, in llama.cpp's bits (`unicode_cpt_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// Not assigned: general category `Cn`, or beyond U+10FFFF.
    pub const UNDEFINED: Self = Self(0x001);

    /// Flags from llama.cpp's bits.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
    /// The bits, as llama.cpp numbers them.
    #[inline]
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// Not assigned: general category `Cn`, or beyond U+10FFFF.
    #[inline]
    pub const fn is_undefined(self) -> bool {
        self.0 & 0x001 != 0
    }
    /// General category `N*`.
    #[inline]
    pub const fn is_number(self) -> bool {
        self.0 & 0x002 != 0
    }
    /// General category `L*`.
    #[inline]
    pub const fn is_letter(self) -> bool {
        self.0 & 0x004 != 0
    }
    /// General category `Z*`.
    #[inline]
    pub const fn is_separator(self) -> bool {
        self.0 & 0x008 != 0
    }
    /// General category `M*`.
    #[inline]
    pub const fn is_accent_mark(self) -> bool {
        self.0 & 0x010 != 0
    }
    /// General category `P*`.
    #[inline]
    pub const fn is_punctuation(self) -> bool {
        self.0 & 0x020 != 0
    }
    /// General category `S*`.
    #[inline]
    pub const fn is_symbol(self) -> bool {
        self.0 & 0x040 != 0
    }
    /// General category `Cc`, `Cf`, `Co` or `Cs`.
    #[inline]
    pub const fn is_control(self) -> bool {
        self.0 & 0x080 != 0
    }
    /// Property `White_Space`.
    #[inline]
    pub const fn is_whitespace(self) -> bool {
        self.0 & 0x100 != 0
    }
    /// The lowercase partner of some code point; a letter without a partner is neither lower nor upper case.
    #[inline]
    pub const fn is_lowercase(self) -> bool {
        self.0 & 0x200 != 0
    }
    /// The uppercase partner of some code point.
    #[inline]
    pub const fn is_uppercase(self) -> bool {
        self.0 & 0x400 != 0
    }
    /// The base letter of some other code point, or U+0000.
    #[inline]
    pub const fn is_nfd(self) -> bool {
        self.0 & 0x800 != 0
    }
}

/// The classes of a code point.
#[inline]
pub const fn flags(code_point: u32) -> Flags {
    let (at, page) = (code_point as usize, (code_point >> PAGE_BITS) as usize);
    if at < tables::ASCII_FLAGS.len() {
        Flags(tables::ASCII_FLAGS[at])
    } else if page < tables::CLASS_INDEX.len() {
        let class = tables::CLASS_PAGES[tables::CLASS_INDEX[page] as usize][in_page(code_point)];
        Flags(tables::FLAGS[class as usize])
    } else {
        high_flags(code_point)
    }
}

/// The classes beyond the paged planes: tags, variation selectors and private use.
#[cold]
const fn high_flags(code_point: u32) -> Flags {
    let mut at = 0;
    while at < tables::HIGH_RANGES.len() {
        let (first, last, bits) = tables::HIGH_RANGES[at];
        if first <= code_point && code_point <= last {
            return Flags(bits);
        }
        at += 1;
    }
    Flags::UNDEFINED
}

/// Whether llama.cpp counts a code point as Han (`unicode_cpt_is_han`): blocks of ideographs, assigned or not.
pub(crate) fn is_han(code_point: u32) -> bool {
    matches!(
        code_point,
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x2_A6DF | 0x2_A700..=0x2_EBEF | 0x2_F800..=0x2_FA1F
    )
}

/// The simple lowercase mapping, or the code point itself.
#[inline]
pub fn lowercase(code_point: u32) -> u32 {
    mapped(&tables::LOWERCASE_INDEX, &tables::LOWERCASE_PAGES, code_point)
}

/// The first code point of the canonical decomposition, or the code point itself: "e" for "é", the leading consonant
/// for a Hangul syllable.
#[inline]
pub fn base_letter(code_point: u32) -> u32 {
    if HANGUL_SYLLABLES.contains(&code_point) {
        return 0x1100 + (code_point - HANGUL_SYLLABLES.start()) / SYLLABLES_PER_CONSONANT;
    }
    mapped(&tables::BASE_INDEX, &tables::BASE_PAGES, code_point)
}

#[inline]
fn mapped(index: &[u8], pages: &[[u32; 1 << PAGE_BITS]], code_point: u32) -> u32 {
    match index.get((code_point >> PAGE_BITS) as usize).map(|&page| pages[usize::from(page)][in_page(code_point)]) {
        None | Some(0) => code_point,
        Some(other) => other,
    }
}

#[inline]
const fn in_page(code_point: u32) -> usize {
    (code_point & ((1 << PAGE_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::{base_letter, flags, lowercase};
    use std::path::PathBuf;

    /// The rows of a table of llama.cpp's results, in hexadecimal. If the table is missing, says so and returns `None`.
    fn reference(name: &str) -> Option<Vec<Vec<u32>>> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let shared = root.join(std::env::var("GGTOK_SHARED").unwrap_or_else(|_| "../shared".into()));
        let Ok(text) = std::fs::read_to_string(shared.join("reference").join(name)) else {
            eprintln!("SKIPPED: no {name} under {}; set GGTOK_SHARED", shared.display());
            return None;
        };
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        Some(rows.map(|row| row.split('\t').map(|cell| u32::from_str_radix(cell, 16).unwrap()).collect()).collect())
    }

    #[test]
    fn flags_equal_llama_cpp_for_every_code_point() {
        let Some(rows) = reference("unicode-flags.tsv") else {
            return;
        };
        let mut next = 0;
        for row in rows {
            assert_eq!(row[0], next);
            for code_point in row[0]..=row[1] {
                assert_eq!(u32::from(flags(code_point).bits()), row[2], "U+{code_point:04X}");
            }
            next = row[1] + 1;
        }
        assert_eq!(next, 0x110000);
    }

    fn assert_map(name: &str, map: impl Fn(u32) -> u32, spread: impl Fn(&[u32]) -> (u32, u32, u32)) {
        let Some(rows) = reference(name) else { return };
        let mut expected: Vec<u32> = (0..0x110000).collect();
        for (first, last, target) in rows.iter().map(|row| spread(row)) {
            expected[first as usize..=last as usize].fill(target);
        }
        for (code_point, target) in (0..).zip(expected) {
            assert_eq!(map(code_point), target, "U+{code_point:04X}");
        }
    }

    #[test]
    fn lowercase_equals_llama_cpp_for_every_code_point() {
        assert_map("unicode-tolower.tsv", lowercase, |row| (row[0], row[0], row[1]));
    }

    #[test]
    fn base_letter_equals_llama_cpp_for_every_code_point() {
        assert_map("unicode-nfd.tsv", base_letter, |row| (row[0], row[1], row[2]));
    }

    #[test]
    fn beyond_the_last_code_point_nothing_is_defined_or_changed() {
        for code_point in [0x110000, 0x1FFFFF, u32::MAX] {
            assert!(flags(code_point).is_undefined());
            assert_eq!(lowercase(code_point), code_point);
            assert_eq!(base_letter(code_point), code_point);
        }
    }

    #[test]
    fn each_accessor_reads_its_own_class() {
        assert!(flags(0x378).is_undefined());
        assert!(flags('7'.into()).is_number());
        assert!(flags('é'.into()).is_letter());
        assert!(flags('\u{2028}'.into()).is_separator());
        assert!(flags('\u{301}'.into()).is_accent_mark());
        assert!(flags('¿'.into()).is_punctuation());
        assert!(flags('€'.into()).is_symbol());
        assert!(flags('\u{AD}'.into()).is_control());
        assert!(flags('\u{3000}'.into()).is_whitespace());
        assert!(flags('é'.into()).is_lowercase());
        assert!(flags('É'.into()).is_uppercase());
        assert!(flags('e'.into()).is_nfd());
    }
}
