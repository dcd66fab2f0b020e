//! Cuts know their alternatives, and the automata and masks of the core cut texts as the patterns do.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use ggtok_core::internals::{Learned, Splitter};
use ggtok_core::unicode::utf8;
use ggtok_core::vocab::{FAMILIES, Family};
use proptest::prelude::*;

use super::Patterns;
use crate::limit::Limit;
use crate::trace::{Cut, Range};

struct Case {
    name: &'static str,
    splitter: Splitter,
    learned: Mutex<Learned>,
    patterns: Patterns,
}

/// The cuts of each pattern in a text that is one word.
fn cuts(patterns: &Patterns, text: &[u8]) -> Vec<Vec<Cut>> {
    let word = Range { start: 0, end: text.len() };
    let passes = patterns.passes(text, &[word], &mut Limit::default()).expect("a text without long runs");
    passes.into_iter().map(|pass| pass.cuts).collect()
}

impl Case {
    fn new(family: &Family) -> Self {
        let splitter = Splitter::new(family);
        let patterns = Patterns::new(family);
        Self { name: family.name, splitter, learned: Mutex::default(), patterns }
    }

    fn check(&self, text: &[u8]) {
        let mut pieces = Vec::new();
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        self.splitter.split(text, &mut learned, |start, end| pieces.push((start, end)));
        let expected = cuts(&self.patterns, text).pop().unwrap_or_default();
        let expected = Vec::from_iter(expected.into_iter().map(|cut| (cut.start, cut.end)));
        assert_eq!(pieces, expected, "{}: {:?}", self.name, String::from_utf8_lossy(text));
    }
}

/// One family for each list of patterns.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let mut lists = HashSet::new();
    let firsts = FAMILIES.iter().filter(|family| lists.insert(family.patterns));
    firsts.map(Case::new).collect()
});

/// What patterns distinguish: letters, marks, numbers, punctuation, symbols, whitespace, the rest.
#[rustfmt::skip]
const ATOMS: &[&str] = &[
    "a", "s", "z", "E", "Z", "é", "É", "Ж", "ж", "ß", "ǅ", "ʰ", "ª", "א", "か", "カ", "中", "一", "龥", "𠀀", "가", "ㄅ",
    "ก", "\u{301}", "\u{93E}", "\u{20DD}", "1", "2", "٣", "²", "Ⅷ", "〇", "½", ".", "'", "’", "!", "-", "/", "(",
    "_", "…", "，", "؟", "$", "+", "<", ">", "^", "`", "|", "~", "€", "😀", "´", " ", " ", "\t", "\n", "\r",
    "\u{B}", "\u{C}", "\u{1C}", "\u{85}", "\u{A0}", "\u{2028}", "\u{3000}", "\0", "\u{7F}", "\u{AD}", "\u{378}",
    "\u{E000}", "\u{10FFFF}", "'s", "'T", "'re", "'Ll", "'v", "    ", "\r\n", "<sentinel:12>", "<sentinel:",
    "IMGIMG", "IMGIMGAZ", "IMGIMGIHGFZ", "ABCDEZ", "123456789",
];

/// The code points that patterns name, and their neighbours.
static BOUNDS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let named = FAMILIES.iter().flat_map(|family| family.patterns).flat_map(|pattern| pattern.chars());
    let mut bounds: Vec<u32> = named.map(u32::from).flat_map(|bound| bound - 1..=bound + 1).collect();
    bounds.sort_unstable();
    bounds.dedup();
    bounds
});

fn encode(code_points: &[u32]) -> Vec<u8> {
    code_points.iter().flat_map(|&code_point| utf8::encode(code_point, &mut [0; 4]).to_vec()).collect()
}

/// One thing, repeated some times.
fn run() -> impl Strategy<Value = Vec<u8>> {
    let thing = prop_oneof![
        12 => prop::sample::select(ATOMS).prop_map(|atom| atom.as_bytes().to_vec()),
        2 => prop::sample::select(&BOUNDS[..]).prop_map(|code_point| encode(&[code_point])),
        1 => (0..0x11_0000_u32).prop_map(|code_point| encode(&[code_point])),
    ];
    let times = prop_oneof![16 => 1..2_usize, 8 => 2..6_usize, 1 => 6..600_usize];
    (thing, times).prop_map(|(thing, times)| thing.repeat(times))
}

/// All texts of up to `len` of these.
fn check_all(alphabet: &[&str], len: u32) {
    let count: usize = (0..=len).map(|len| alphabet.len().pow(len)).sum();
    for case in CASES.iter() {
        let mut text = Vec::new();
        for number in 0..count {
            text.clear();
            let mut left = number;
            while left > 0 {
                left -= 1;
                text.extend_from_slice(alphabet[left % alphabet.len()].as_bytes());
                left /= alphabet.len();
            }
            case.check(&text);
        }
    }
}

proptest! {
    #[test]
    fn any_text_splits_as_by_the_patterns(runs in prop::collection::vec(run(), 0..40)) {
        let text = runs.concat();
        for case in CASES.iter() {
            case.check(&text);
        }
    }

    #[test]
    fn long_texts_split_as_by_the_patterns(
        words in prop::collection::vec("[a-eA-Z]{1,7}|[0-9 .,'\\n]|[ -~]{1,3}| {1,9}|'(s|T|ll|re)|é|[\r\n\t]{1,3}", 0..200),
    ) {
        let text = words.concat();
        for case in CASES.iter() {
            case.check(text.as_bytes());
        }
    }
}

// Apart, so that they run on more than one core.

#[test]
fn all_short_texts_of_one_of_each_class() {
    check_all(&["a", "E", "é", "中", "1", "\u{301}", ".", "/", " ", "\t", "\n", "'", "s"], 4);
}

#[test]
fn all_short_texts_of_words_and_spaces() {
    check_all(&["a", " ", "\n", "\u{301}", "1", "."], 5);
}

#[test]
fn all_short_texts_of_digits() {
    check_all(&["1", "²", "a", " "], 7);
}

#[test]
fn all_short_texts_of_learned_words() {
    check_all(&["IMG", "A", "Z", "<sentinel:", "7", ">"], 5);
}

#[test]
fn contractions_split_as_by_the_patterns() {
    // With the two letters whose other case is ASCII: the Kelvin sign and the long s.
    let letters = || "dlmrestvDLMRESTVak\u{212A}ſ1 ".chars();
    for (first, second) in letters().flat_map(|first| letters().map(move |second| (first, second))) {
        for before in ["", "a", " ", "1", "é'"] {
            let text = format!("{before}'{first}{second}a");
            CASES.iter().for_each(|case| case.check(text.as_bytes()));
        }
    }
}

static ALL: LazyLock<Vec<(&Family, Patterns)>> =
    LazyLock::new(|| FAMILIES.iter().map(|family| (family, Patterns::new(family))).collect());

fn patterns(name: &str) -> &'static Patterns {
    &ALL.iter().find(|(family, _)| family.name == name).expect("a family").1
}

#[test]
fn every_pattern_has_a_regex_or_groups_digits_and_is_its_alternatives() {
    for (family, patterns) in ALL.iter() {
        for (at, pattern) in patterns.0.iter().enumerate() {
            let groups_digits = at == 0 && ["afmoe", "tiny-aya"].contains(&family.name);
            assert_eq!(pattern.regex.is_none(), groups_digits, "{}: {}", family.name, pattern.text);
            assert_eq!(pattern.alternatives.join("|"), pattern.text);
        }
    }
}

#[test]
fn pieces_know_their_alternatives() {
    let cut = |start, end, alternative| Cut { start, end, alternative };
    let patterns = patterns("starcoder");
    assert_eq!((patterns.0[1].alternatives.len(), patterns.0[1].alternatives[10]), (11, r"\s+(?!\S)"));
    let found = cuts(patterns, "it's é1".as_bytes());
    assert_eq!(found[0], [cut(0, 7, None), cut(7, 8, Some(0))]);
    assert_eq!(found[1], [cut(0, 2, Some(7)), cut(2, 4, Some(0)), cut(4, 7, Some(7)), cut(7, 8, Some(8))]);
    let found = cuts(self::patterns("bloom"), b"a, b");
    assert_eq!(found, [[cut(0, 1, Some(0)), cut(1, 2, None), cut(2, 4, Some(0))]]);
}

proptest! {
    #[test]
    fn cuts_tile_the_text_and_matches_are_named(text in "[a-cA-C0-9 .,'\n中é\u{301}]{0,30}") {
        for (family, patterns) in ALL.iter() {
            for (pattern, cuts) in patterns.0.iter().zip(cuts(patterns, text.as_bytes())) {
                let ends = cuts.iter().map(|cut| cut.end);
                let starts: Vec<_> = [0].into_iter().chain(ends).take(cuts.len()).collect();
                prop_assert_eq!(cuts.iter().map(|cut| cut.start).collect::<Vec<_>>(), starts);
                prop_assert_eq!(cuts.last().map_or(0, |cut| cut.end), text.len());
                // Two adjacent stretches without a match would be one.
                let unmatched = |pair: &[Cut]| pair.iter().all(|cut| cut.alternative.is_none());
                let is_sure = !pattern.is_hand_written && family.patterns.len() == 1;
                prop_assert!(!is_sure || !cuts.windows(2).any(unmatched), "{}: {:?}", family.name, cuts);
            }
        }
    }
}
