//! A family's patterns, each of which cuts the pieces that the one before it leaves.
//!
//! Where a fast way exists for all of them together, it is taken: a [`Shape`] or [`lines`]. All others go through the
//! text in one pass, by a table that is learned from it ([`Joint`]).
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`. Complexity: linear in the text.

use super::automaton::Automaton;
use super::digits::DigitGroups;
use super::families::{Family, LINES};
use super::joint::{Joint, Learned, Stage};
use super::lines;
use super::shape::Shape;

/// The compiled patterns of a family.
#[derive(Debug)]
pub(crate) enum Splitter {
    /// The automaton matches one of the patterns.
    Shape(Shape, Box<Automaton>),
    Lines,
    Joint(Joint),
}

impl Splitter {
    /// Compiles the patterns of a family.
    ///
    /// llama.cpp has code of its own for some patterns. Where that code does not match what the pattern says, it is
    /// followed here; everywhere else the pattern and the code agree.
    pub(crate) fn new(family: &Family) -> Self {
        if let Some((shape, pattern)) = Shape::of(family.patterns) {
            return Self::Shape(shape, compile(pattern));
        }
        if family.patterns == [LINES] {
            return Self::Lines;
        }
        Self::Joint(Joint::new(family.patterns.iter().map(|pattern| stage(pattern)).collect()))
    }

    /// Calls `piece` with the byte range of every piece of `text`, in order. `text` is canonical UTF-8, and `learned` is
    /// always used with the same splitter.
    #[inline]
    pub(crate) fn split(&self, text: &[u8], learned: &mut Learned, piece: impl FnMut(usize, usize)) {
        match self {
            Self::Shape(shape, automaton) => shape.split(automaton, text, piece),
            Self::Lines => lines::split(text, piece),
            Self::Joint(joint) => joint.split(text, learned, piece),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Shape(_, automaton) => size_of::<Automaton>() + automaton.heap_bytes(),
            Self::Lines => 0,
            Self::Joint(joint) => joint.heap_bytes(),
        }
    }
}

/// The stage of a pattern. Some of llama.cpp's code for groups of digits is described by no pattern.
pub(super) fn stage(pattern: &str) -> Stage {
    match pattern {
        r"\p{AFMoE_digits}" | r"\d{1,3}(?=(?:\d{3})*\b)" => Stage::Digits(DigitGroups::After),
        r"(?=(\d{3})+(?!\d))" => Stage::Digits(DigitGroups::Before),
        _ => Stage::Pattern(compile(pattern)),
    }
}

/// Compiles a pattern of the table; a test compiles every row.
fn compile(pattern: &str) -> Box<Automaton> {
    match Automaton::new(pattern) {
        Ok(automaton) => Box::new(automaton),
        Err(error) => unreachable!("{pattern:?} at character {}: {} expected", error.at, error.expected),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::{LazyLock, Mutex, PoisonError};

    use proptest::prelude::*;

    use super::{Learned, Splitter};
    use crate::explain::patterns::Patterns;
    use crate::pretokenizer::{FAMILIES, Family};
    use crate::steps;
    use crate::unicode::utf8;

    /// Characters classified, table look-ups and blocks, for each byte of a text. An attempt of an automaton takes up
    /// to 64 look-ups before it checks for a failed run.
    const MAX_STEPS_PER_BYTE: usize = 96;

    struct Case {
        name: &'static str,
        splitter: Splitter,
        learned: Mutex<Learned>,
        patterns: Patterns,
    }

    impl Case {
        fn new(family: &Family) -> Self {
            let (splitter, patterns) = (Splitter::new(family), Patterns::new(family));
            Self { name: family.name, splitter, learned: Mutex::default(), patterns }
        }

        fn split(&self, text: &[u8], piece: impl FnMut(usize, usize)) {
            self.splitter.split(text, &mut self.learned.lock().unwrap_or_else(PoisonError::into_inner), piece);
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

    fn check(case: &Case, text: &[u8]) {
        let mut pieces = Vec::new();
        case.split(text, |start, end| pieces.push((start, end)));
        assert_eq!(Ok(pieces), case.patterns.split(text), "{}: {:?}", case.name, String::from_utf8_lossy(text));
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
                check(case, &text);
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_splits_as_by_the_patterns(runs in prop::collection::vec(run(), 0..40)) {
            let text = runs.concat();
            for case in CASES.iter() {
                check(case, &text);
            }
        }
    }

    proptest! {
        #[test]
        fn what_may_not_be_learned_is_split_as_well(runs in prop::collection::vec(run(), 0..40)) {
            let text = runs.concat();
            for case in CASES.iter() {
                let (mut expected, mut pieces, mut learned) = (Vec::new(), Vec::new(), Learned::default());
                case.split(&text, |start, end| expected.push((start, end)));
                case.splitter.split(&text[..0], &mut learned, |_, _| ());
                learned.spend();
                case.splitter.split(&text, &mut learned, |start, end| pieces.push((start, end)));
                prop_assert_eq!(pieces, expected, "{}: {:?}", case.name, String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn what_is_learned_is_bounded() {
        // Every mixture of whitespace is a state of its own until it is certain where its pieces end.
        let mut state = 1_u64;
        let text: String = (0..100_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ["\t", " ", "\n", "\r", "\u{A0}", "1", "1", "a"][(state >> 61) as usize]
            })
            .collect();
        for case in CASES.iter() {
            let (mut learned, mut poor) = (Learned::default(), Learned::default());
            case.splitter.split(b"", &mut poor, |_, _| ());
            let mut expected = Vec::new();
            poor.spend();
            case.splitter.split(text.as_bytes(), &mut poor, |start, end| expected.push((start, end)));
            for _ in 0..12 {
                let mut pieces = Vec::new();
                case.splitter.split(text.as_bytes(), &mut learned, |start, end| pieces.push((start, end)));
                assert_eq!(pieces, expected, "{}", case.name);
            }
            assert!(learned.heap_bytes() < 2 << 20, "{}: {} bytes", case.name, learned.heap_bytes());
        }
    }

    proptest! {
        #[test]
        fn long_texts_split_as_by_the_patterns(
            words in prop::collection::vec("[a-eA-Z]{1,7}|[0-9 .,'\\n]|[ -~]{1,3}| {1,9}|'(s|T|ll|re)|é|[\r\n\t]{1,3}", 0..200),
        ) {
            let text = words.concat();
            for case in CASES.iter() {
                check(case, text.as_bytes());
            }
        }
    }

    #[test]
    fn short_texts_of_every_class_split_as_by_the_patterns() {
        check_all(&["a", "E", "é", "中", "1", "\u{301}", ".", "/", " ", "\t", "\n", "'", "s"], 4);
    }

    #[test]
    fn texts_of_words_and_spaces_split_as_by_the_patterns() {
        check_all(&["a", " ", "\n", "\u{301}", "1", "."], 6);
    }

    #[test]
    fn contractions_split_as_by_the_patterns() {
        // With the two letters whose other case is ASCII: the Kelvin sign and the long s.
        let letters = || "dlmrestvDLMRESTVak\u{212A}ſ1 ".chars();
        for (first, second) in letters().flat_map(|first| letters().map(move |second| (first, second))) {
            for before in ["", "a", " ", "1", "é'"] {
                let text = format!("{before}'{first}{second}a");
                CASES.iter().for_each(|case| check(case, text.as_bytes()));
            }
        }
    }

    #[test]
    fn numbers_split_as_by_the_patterns() {
        check_all(&["1", "²", "a", " "], 8);
    }

    #[test]
    fn image_tokens_split_as_by_the_patterns() {
        check_all(&["IMG", "A", "Z", "<sentinel:", "7", ">"], 6);
    }

    #[test]
    fn steps_are_linear_in_runs() {
        #[rustfmt::skip]
        let units = [
            "a", "Z", "é", "中", "か", "1", "²", "\u{301}", " ", "\t", "\n", "\r\n", "\u{3000}", ".", "/", "'", "<",
            "$", "😀", "\u{378}", "a ", "a\u{301}", " \n", "1a", "IMG", "<sentinel:1", "  a",
        ];
        #[rustfmt::skip]
        let ends = [
            ("", ""), ("a", ""), (" ", ""), ("<sentinel:", ""), ("IMGIMG", ""), ("", "a"), ("", "中"), ("", "."), ("", "\n"),
        ];
        for (unit, (first, last)) in units.iter().flat_map(|unit| ends.iter().map(move |ends| (unit, ends))) {
            // With a step for each pair of bytes these would be 1,500 and 15,000 steps per byte.
            for size in [3_000, 30_000] {
                let text = format!("{first}{}{last}", unit.repeat(size / unit.len()));
                for case in CASES.iter() {
                    let mut at = 0;
                    let steps = steps::of(|| {
                        case.split(text.as_bytes(), |start, end| {
                            assert!(start == at && end > start);
                            at = end;
                        });
                    });
                    assert_eq!(at, text.len());
                    let most = MAX_STEPS_PER_BYTE * text.len();
                    assert!(steps < most, "{}: {steps} steps for {first:?} {unit:?} {last:?}", case.name);
                }
            }
        }
    }

    #[test]
    fn tables_stay_small() {
        for case in CASES.iter() {
            let bytes = case.splitter.heap_bytes();
            assert!(bytes < 1 << 20, "{}: {bytes} bytes", case.name);
        }
    }
}
