//! Patterns whose boundaries a character and the two beside it tell: those of Bloom and of DeepSeek Coder.
//!
//! Each character is in some classes, and where pieces begin follows from the classes of neighbours: where a run of one
//! class begins and ends, but one earlier if the character before it goes along; before and behind what stands alone;
//! and where a zone begins or ends. So boundaries are computed as bits, 64 bytes at a time, without an automaton.
//!
//! Source: the patterns themselves (see `families`); the automata of all of them, one after the other, are the oracle.
//! Complexity: linear in the text.

use super::families::{BLOOM, DEEPSEEK_CJK, LETTERS_AFTER_SPACE, NEWLINE, NUMBER, PUNCTUATION_AFTER_SPACE};
use crate::scan::masks::{BLOCK, Masks, spaced_out};
use crate::unicode::{self, utf8};

/// What tells the boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbours {
    /// Bloom's: words, with a space before them, and what is between them.
    Words,
    /// Viking's: as Bloom's, and each number by itself.
    WordsAndNumbers,
    /// DeepSeek Coder's: letters and punctuation, with whitespace before them, newlines and numbers by themselves, and what
    /// is between these; all of it cut where the characters of East Asia, and many more, begin and end.
    DeepSeekCoder,
}

/// One bit a byte for each class.
#[derive(Debug, Clone, Copy, Default)]
struct Classes {
    /// Two classes that make runs.
    runs: [u64; 2],
    /// Characters that go along with a run behind them.
    prefix: u64,
    /// Characters that stand alone.
    alone: u64,
    zone: u64,
}

impl Classes {
    /// The classes in the order of [`Classes::each`].
    const COUNT: usize = 5;

    fn each(&mut self) -> [&mut u64; Self::COUNT] {
        let [first, second] = &mut self.runs;
        [first, second, &mut self.prefix, &mut self.alone, &mut self.zone]
    }

    /// Adds the bits of a byte that is in these classes.
    #[inline(always)]
    fn add(&mut self, at: u32, classes: [bool; Self::COUNT]) {
        for (mask, is_in) in self.each().into_iter().zip(classes) {
            *mask |= u64::from(is_in) << at;
        }
    }
}

impl Neighbours {
    /// How patterns are matched together, if that is one of these ways.
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
        let (mut begin, mut from) = (0, 0);
        // Those of the character before the block, at the lowest bit.
        let mut before = Classes::default();
        let mut padded = [0; BLOCK];
        while begin < text.len() {
            let rest = &text[begin..];
            let block = spaced_out(rest, &mut padded);
            let masks = Masks::new(block);
            let (mut classes, end) = self.classes(block, &masks, rest.len().min(BLOCK));
            // What comes after the last character decides whether that goes along.
            let is_last = end == rest.len();
            let last = (0..end).rfind(|&at| masks.inner >> at & 1 == 0).unwrap_or_default();
            let limit = if !is_last && classes.prefix >> last & 1 != 0 { last } else { end };
            let mut starts = starts(classes, before, masks.inner) & (u64::MAX >> (BLOCK - limit));
            starts &= !u64::from(begin == 0);
            while starts != 0 {
                let to = begin + starts.trailing_zeros() as usize;
                piece(from, to);
                from = to;
                starts &= starts - 1;
            }
            classes.each().into_iter().zip(before.each()).for_each(|(mask, before)| *before = *mask >> (limit - 1) & 1);
            begin += limit;
        }
        if from < text.len() {
            piece(from, text.len());
        }
    }

    /// The classes of the whole characters among the first `len` bytes of a block, and where these end.
    #[inline(always)]
    fn classes(self, block: &[u8; BLOCK], masks: &Masks, len: usize) -> (Classes, usize) {
        let Masks { letter, digit, space, blank, newline, lead, inner, .. } = *masks;
        let mut classes = match self {
            Self::Words => Classes { runs: [letter | digit, 0], prefix: space, ..Classes::default() },
            Self::WordsAndNumbers => {
                Classes { runs: [letter | digit, 0], prefix: space, alone: digit, ..Classes::default() }
            }
            Self::DeepSeekCoder => {
                Classes { runs: [letter, 0], prefix: space | blank, alone: newline | digit, zone: 0 }
            }
        };
        let known = u64::MAX >> (BLOCK - len);
        let mut others = known & !(letter | digit | space | blank | newline | lead | inner);
        while others != 0 {
            let at = others.trailing_zeros();
            classes.add(at, self.classes_of(block[at as usize % BLOCK].into()));
            others &= others - 1;
        }
        let mut leads = lead & known;
        while leads != 0 {
            let at = leads.trailing_zeros();
            let Some((code_point, char_len)) = utf8::decode_valid(block, at as usize) else {
                return (classes, at as usize);
            };
            let of_char = self.classes_of(code_point);
            (at..at + char_len as u32).for_each(|at| classes.add(at, of_char));
            leads &= leads - 1;
        }
        (classes, len)
    }

    /// Whether a character that is neither a letter nor a digit nor whitespace of ASCII is in each class.
    fn classes_of(self, code_point: u32) -> [bool; Classes::COUNT] {
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

/// The bytes at which pieces begin.
#[inline(always)]
fn starts(classes: Classes, before: Classes, inner: u64) -> u64 {
    let Classes { runs, prefix, alone, zone } = classes;
    let mut starts = (alone | alone << 1 | before.alone) & !inner;
    starts |= zone ^ (zone << 1 | before.zone);
    for (run, before) in runs.into_iter().zip(before.runs) {
        let after_run = run << 1 | before;
        let first = run & !after_run;
        starts |= first & !(prefix << 1) | !run & after_run;
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
            parts in prop::collection::vec((prop::sample::select(&ALPHABET[..]), 1..4_usize), 0..120),
        ) {
            let text = parts.iter().map(|(char, count)| char.repeat(*count)).collect::<String>();
            for (neighbours, oracle) in CASES.iter() {
                let mut pieces = Vec::new();
                neighbours.split(text.as_bytes(), |begin, end| pieces.push((begin, end)));
                prop_assert_eq!(pieces, oracle.split(text.as_bytes()), "{:?}", neighbours);
            }
        }
    }
}
