//! Boundaries that follow from a character and the two beside it: the patterns of Bloom and of DeepSeek Coder.
//!
//! Each character has some of five roles, and one mask per role covers 64 bytes. Pieces start where a run starts, or
//! one character earlier if that one goes with the run; after a run; before and after a character that stands alone;
//! and where a zone starts or ends. All of this is shifts and logical operations on the masks, without an automaton.
//!
//! Source: the patterns themselves (see `families`); their automata in sequence are the oracle. Complexity: linear in
//! the text.

use super::families::{BLOOM, DEEPSEEK_CJK, LETTERS_AFTER_SPACE, NEWLINE, NUMBER, PUNCTUATION_AFTER_SPACE};
use crate::scan::masks::Masks;
use crate::scan::{BLOCK, padded, places};
use crate::unicode::{self, utf8};

/// Lists of patterns whose boundaries are found this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbours {
    /// Bloom's: words, each with a space before it, and what is between them.
    Words,
    /// Viking's: as Bloom's, and each number by itself.
    WordsAndNumbers,
    /// DeepSeek Coder's: letters and punctuation, each run with whitespace before it, newlines and numbers by
    /// themselves, and what is between these; all of it cut where East Asian characters, and many more, start and end.
    DeepSeekCoder,
}

/// The roles of a block's characters, one bit per byte.
#[derive(Debug, Clone, Copy, Default)]
struct Roles {
    /// Two kinds of runs.
    runs: [u64; 2],
    /// Characters that go with a run after them.
    prefix: u64,
    /// Characters that stand alone.
    alone: u64,
    zone: u64,
}

impl Roles {
    /// The number of roles, in the order of [`Roles::each`].
    const NUM: usize = 5;

    fn each(&mut self) -> [&mut u64; Self::NUM] {
        let [first, second] = &mut self.runs;
        [first, second, &mut self.prefix, &mut self.alone, &mut self.zone]
    }

    /// Gives the byte at `at` these roles.
    #[inline(always)]
    fn add(&mut self, at: usize, roles: [bool; Self::NUM]) {
        for (mask, has_role) in self.each().into_iter().zip(roles) {
            *mask |= u64::from(has_role) << at;
        }
    }
}

impl Neighbours {
    /// The way that matches all of these patterns together, if there is one.
    pub(crate) fn of(patterns: &[&str]) -> Option<Self> {
        match *patterns {
            [BLOOM] => Some(Self::Words),
            [BLOOM, NUMBER] => Some(Self::WordsAndNumbers),
            [NEWLINE, LETTERS_AFTER_SPACE, PUNCTUATION_AFTER_SPACE, DEEPSEEK_CJK, NUMBER] => Some(Self::DeepSeekCoder),
            _ => None,
        }
    }

    /// Calls `piece` with the byte range of every piece of `text`, in order. `text` is canonical UTF-8.
    pub(crate) fn split(self, text: &[u8], mut piece: impl FnMut(usize, usize)) {
        let (mut block_start, mut piece_start) = (0, 0);
        // The roles of the character before the block, in the lowest bit.
        let mut before = Roles::default();
        let mut buffer = [0; BLOCK];

        while block_start < text.len() {
            #[cfg(test)]
            crate::steps::count(1);
            let rest = &text[block_start..];
            let block = padded(rest, &mut buffer);
            let masks = Masks::new(block);
            let (mut roles, end) = self.roles(block, &masks, rest.len().min(BLOCK));

            // Whether a prefix goes with a run depends on what follows it: at the end of a block it waits for the next.
            let is_last = end == rest.len();
            let last_char = (0..end).rfind(|&at| masks.inner >> at & 1 == 0).unwrap_or_default();
            let limit = if !is_last && roles.prefix >> last_char & 1 != 0 { last_char } else { end };

            let starts = starts(roles, before, masks.inner) & (u64::MAX >> (BLOCK - limit));
            for at in places(starts & !u64::from(block_start == 0)) {
                let end = block_start + at;
                piece(piece_start, end);
                piece_start = end;
            }

            roles.each().into_iter().zip(before.each()).for_each(|(mask, before)| *before = *mask >> (limit - 1) & 1);
            block_start += limit;
        }
        if piece_start < text.len() {
            piece(piece_start, text.len());
        }
    }

    /// The roles of the whole characters among the first `len` bytes of a block, and where these end.
    #[inline(always)]
    fn roles(self, block: &[u8; BLOCK], masks: &Masks, len: usize) -> (Roles, usize) {
        let Masks { letter, digit, space, blank, newline, lead, inner, .. } = *masks;
        let mut roles = match self {
            Self::Words => Roles { runs: [letter | digit, 0], prefix: space, ..Roles::default() },
            Self::WordsAndNumbers => {
                Roles { runs: [letter | digit, 0], prefix: space, alone: digit, ..Roles::default() }
            }
            Self::DeepSeekCoder => Roles { runs: [letter, 0], prefix: space | blank, alone: newline | digit, zone: 0 },
        };
        let whole = u64::MAX >> (BLOCK - len);

        let other_ascii = whole & !(letter | digit | space | blank | newline | lead | inner);
        for at in places(other_ascii) {
            roles.add(at, self.char_roles(block[at].into()));
        }

        for at in places(lead & whole) {
            let Some((code_point, char_len)) = utf8::decode_valid(block, at) else { return (roles, at) };
            let char_roles = self.char_roles(code_point);
            (at..at + char_len).for_each(|at| roles.add(at, char_roles));
        }
        (roles, len)
    }

    /// The roles of a character that is not a letter, a digit or whitespace of ASCII.
    fn char_roles(self, code_point: u32) -> [bool; Roles::NUM] {
        let flags = unicode::flags(code_point);
        if self == Self::DeepSeekCoder {
            return [
                flags.is_letter(),
                flags.is_punctuation(),
                flags.is_whitespace(),
                flags.is_number(),
                matches!(code_point, 0x0800..=0x9FA5 | 0xAC00..=0xD7FF) && !flags.is_whitespace(),
            ];
        }
        let is_gap =
            flags.is_whitespace() || char::from_u32(code_point).is_some_and(|char| "(|.,!?)…。，、।۔،".contains(char));
        [!is_gap, false, false, self == Self::WordsAndNumbers && flags.is_number(), false]
    }
}

/// The bytes at which pieces start.
#[inline(always)]
fn starts(roles: Roles, before: Roles, inner: u64) -> u64 {
    let Roles { runs, prefix, alone, zone } = roles;
    let mut starts = (alone | alone << 1 | before.alone) & !inner;
    starts |= zone ^ (zone << 1 | before.zone);

    for (run, before) in runs.into_iter().zip(before.runs) {
        let after_run = run << 1 | before;
        let first = run & !after_run;
        starts |= first & !(prefix << 1) | !run & after_run;

        // The first byte of each prefix that goes with a run.
        let mut taken = first >> 1 & prefix;
        while taken & inner != 0 {
            taken = taken & !inner | (taken & inner) >> 1;
        }
        starts |= taken;
    }
    starts
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::Neighbours;
    use crate::pretokenizer::families::FAMILIES;
    use crate::pretokenizer::oracle::Oracle;

    static CASES: LazyLock<Vec<(Neighbours, Oracle)>> = LazyLock::new(|| {
        let found = FAMILIES.iter().filter_map(|family| Some((Neighbours::of(family.patterns)?, Oracle::new(family))));
        found.collect()
    });

    /// Characters of each class and length.
    const ALPHABET: [&str; 24] = [
        "a", "Z", " ", "\t", "\n", "\r", ".", "(", "\"", "$", "=", "7", "\0", "é", "中", "한", "。", "，", "→",
        "\u{A0}", "\u{3000}", "²", "😀", "𐐀",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn texts_are_cut_as_by_the_patterns(
            runs in prop::collection::vec((prop::sample::select(&ALPHABET[..]), 1..4_usize), 0..120),
        ) {
            let text = runs.iter().map(|(char, times)| char.repeat(*times)).collect::<String>();
            for (neighbours, oracle) in CASES.iter() {
                let mut pieces = Vec::new();
                neighbours.split(text.as_bytes(), |start, end| pieces.push((start, end)));
                prop_assert_eq!(pieces, oracle.split(text.as_bytes()), "{:?}", neighbours);
            }
        }
    }
}
