//! Page tables of Unicode properties: character classes, the lowercase map and the map that strips accents.
//!
//! An index leads to pages of 32 code points, and equal pages are stored once. ASCII has its own table. The tables take
//! 79 KB and need no set-up.
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

/// Code points per page.
const PAGE: usize = 32;
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
}

macro_rules! classes {
    ($($(#[$doc:meta])* $is:ident = $bit:literal,)*) => {
        impl Flags {
            $(
                $(#[$doc])*
                #[inline]
                pub const fn $is(self) -> bool {
                    self.0 & $bit != 0
                }
            )*
        }
    };
}

classes! {
    /// Not assigned: general category `Cn`, or beyond U+10FFFF.
    is_undefined = 0x001,
    /// General category `N*`.
    is_number = 0x002,
    /// General category `L*`.
    is_letter = 0x004,
    /// General category `Z*`.
    is_separator = 0x008,
    /// General category `M*`.
    is_accent_mark = 0x010,
    /// General category `P*`.
    is_punctuation = 0x020,
    /// General category `S*`.
    is_symbol = 0x040,
    /// General category `Cc`, `Cf`, `Co` or `Cs`.
    is_control = 0x080,
    /// Property `White_Space`.
    is_whitespace = 0x100,
    /// The lowercase partner of some code point; a letter without a partner is neither lower nor upper case.
    is_lowercase = 0x200,
    /// The uppercase partner of some code point.
    is_uppercase = 0x400,
    /// The base letter of some other code point, or U+0000.
    is_nfd = 0x800,
}

/// The classes of a code point.
#[inline]
pub const fn flags(code_point: u32) -> Flags {
    let at = code_point as usize;
    if at < tables::ASCII_FLAGS.len() {
        Flags(tables::ASCII_FLAGS[at])
    } else if at / PAGE < tables::CLASS_INDEX.len() {
        let class = tables::CLASS_PAGES[tables::CLASS_INDEX[at / PAGE] as usize][at % PAGE];
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
pub fn is_han(code_point: u32) -> bool {
    matches!(
        code_point,
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x2_A6DF | 0x2_A700..=0x2_EBEF | 0x2_F800..=0x2_FA1F
    )
}

/// The simple lowercase mapping, or the code point itself.
#[inline]
pub fn lowercase(code_point: u32) -> u32 {
    tables::LOWERCASE.get(code_point)
}

/// The first code point of the canonical decomposition, or the code point itself: "e" for "é", the leading consonant
/// for a Hangul syllable.
#[inline]
pub fn base_letter(code_point: u32) -> u32 {
    if HANGUL_SYLLABLES.contains(&code_point) {
        return 0x1100 + (code_point - HANGUL_SYLLABLES.start()) / SYLLABLES_PER_CONSONANT;
    }
    tables::BASE.get(code_point)
}

/// A map of code points. Page 0 is empty, for every range of code points without an entry.
struct Map<const INDEX: usize, const PAGES: usize> {
    index: [u8; INDEX],
    /// The targets; 0 for a code point that maps to itself.
    pages: [[u32; PAGE]; PAGES],
}

impl<const INDEX: usize, const PAGES: usize> Map<INDEX, PAGES> {
    /// Each code point is followed by its target.
    const fn from_pairs(pairs: &str) -> Self {
        let mut map = Self { index: [0; INDEX], pages: [[0; PAGE]; PAGES] };
        let mut rest = pairs.as_bytes();
        let mut num_pages = 1;
        while let Some((code_point, after)) = split_first_char(rest)
            && let Some((target, after)) = split_first_char(after)
        {
            let page = &mut map.index[code_point as usize / PAGE];
            if *page == 0 {
                *page = num_pages;
                num_pages += 1;
            }
            map.pages[*page as usize][code_point as usize % PAGE] = target;
            rest = after;
        }
        map
    }

    #[inline]
    fn get(&self, code_point: u32) -> u32 {
        let at = code_point as usize;
        match self.index.get(at / PAGE).map(|&page| self.pages[usize::from(page)][at % PAGE]) {
            None | Some(0) => code_point,
            Some(target) => target,
        }
    }
}

/// The first code point of valid UTF-8, and the bytes after it; [`utf8::decode`] for constants.
const fn split_first_char(text: &[u8]) -> Option<(u32, &[u8])> {
    let Some((&lead, mut rest)) = text.split_first() else { return None };
    let mut code_point = if lead < 0x80 { lead } else { lead & (0x7F >> lead.leading_ones()) } as u32;
    while let Some((&byte, after)) = rest.split_first()
        && byte & 0xC0 == 0x80
    {
        code_point = code_point << 6 | (byte & 0x3F) as u32;
        rest = after;
    }
    Some((code_point, rest))
}

/// Expands a list in which, after -n, the next number repeats n times.
const fn unrun<const N: usize>(runs: &[i16]) -> [u16; N] {
    let mut values = [0; N];
    let mut at = 0;
    let mut run = 0;
    while run < runs.len() {
        let mut count = 1;
        if runs[run] < 0 {
            count = -runs[run];
            run += 1;
        }
        while count > 0 {
            values[at] = runs[run] as u16;
            at += 1;
            count -= 1;
        }
        run += 1;
    }
    values
}

/// Expands pages written as letters, each with a number if it repeats; `A` is 0.
const fn letters<const N: usize>(letters: &str) -> [[u8; PAGE]; N] {
    let mut pages = [[0; PAGE]; N];
    let mut at = 0;
    let mut rest = letters.as_bytes();
    while let Some((letter, mut after)) = rest.split_first() {
        let mut count = 0;
        while let Some((&digit @ b'0'..=b'9', rest)) = after.split_first() {
            count = 10 * count + (digit - b'0') as usize;
            after = rest;
        }
        let end = at + if count == 0 { 1 } else { count };
        while at < end {
            pages[at / PAGE][at % PAGE] = *letter - b'A';
            at += 1;
        }
        rest = after;
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::{base_letter, flags, lowercase};
    use std::path::PathBuf;

    /// The rows of a table of llama.cpp's results, in hexadecimal. If the table is missing, prints a note and returns
    /// `None`.
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
