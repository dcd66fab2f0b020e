//! A family's patterns, each applied to the pieces left by the one before it.
//!
//! If all of them together have a fast way, a [`Shape`], [`lines`] or [`numbers`], it is used. Otherwise they go through
//! the text in one pass, with a table that is learned on the way ([`Joint`]).
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`. Complexity: linear in the text.

use super::automaton::Automaton;
use super::digits::DigitGroups;
use super::joint::{Joint, Learned, Stage};
use super::lines;
use super::numbers;
use super::shape::Shape;
use crate::vocabulary::families::{Family, LINES, NUMBERS, THOUSANDS, WORDS};
use crate::work::heap::HeapBytes;

/// The compiled patterns of a family.
#[derive(Debug)]
pub struct Splitter(Patterns);

heap_bytes!(Splitter: 0);

#[derive(Debug)]
enum Patterns {
    /// The automaton matches one of the patterns.
    Shape(Shape, Box<Automaton>),
    Lines,
    Numbers,
    /// As `Joint`, and a word without whitespace is one piece.
    Words(Joint),
    Joint(Joint),
}

impl HeapBytes for Patterns {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Shape(_, automaton) => automaton.heap_bytes(),
            Self::Lines | Self::Numbers => 0,
            Self::Words(joint) | Self::Joint(joint) => joint.heap_bytes(),
        }
    }
}

impl Splitter {
    /// Compiles the patterns of a family.
    ///
    /// llama.cpp has hand-written code for some patterns. If the code and the pattern differ, this follows the code.
    pub fn new(family: &Family) -> Self {
        if let Some((shape, pattern)) = Shape::of(family.patterns) {
            return Self(Patterns::Shape(shape, compile(pattern)));
        }
        if family.patterns == [LINES] {
            return Self(Patterns::Lines);
        }
        if family.patterns == [NUMBERS, THOUSANDS] {
            return Self(Patterns::Numbers);
        }
        let joint = Joint::new(family.patterns.iter().map(|pattern| stage(pattern)).collect());
        Self(if family.patterns == [WORDS] { Patterns::Words(joint) } else { Patterns::Joint(joint) })
    }

    /// Whether a piece is usually longer than a word, because nothing but a number ends one.
    pub(crate) fn has_long_pieces(&self) -> bool {
        matches!(self.0, Patterns::Numbers)
    }

    /// Calls `piece` with the byte range of every piece of `text`, in order. `text` is canonical UTF-8, and `learned`
    /// must always be used with the same splitter.
    #[inline]
    pub fn split(&self, text: &[u8], learned: &mut Learned, piece: impl FnMut(usize, usize)) {
        match &self.0 {
            Patterns::Shape(shape, automaton) => shape.split(automaton, text, piece),
            Patterns::Lines => lines::split(text, piece),
            Patterns::Numbers => numbers::split(text, piece),
            Patterns::Words(joint) | Patterns::Joint(joint) => joint.split(text, learned, piece),
        }
    }

    /// The same for each word of a text. Words lie end to end, and if there are several, none has whitespace.
    #[inline]
    pub(crate) fn split_words(
        &self,
        text: &[u8],
        ends: &[usize],
        learned: &mut Learned,
        mut piece: impl FnMut(usize, usize),
    ) {
        let mut word = 0;
        for &end in ends {
            match &self.0 {
                Patterns::Words(_) if ends.len() > 1 => piece(word, end),
                _ => self.split(&text[word..end], learned, |from, to| piece(word + from, word + to)),
            }
            word = end;
        }
    }
}

/// The stage of a pattern. Some of llama.cpp's code for groups of digits matches no pattern.
pub(super) fn stage(pattern: &str) -> Stage {
    match pattern {
        r"\p{AFMoE_digits}" | r"\d{1,3}(?=(?:\d{3})*\b)" => Stage::Digits(DigitGroups::After),
        THOUSANDS => Stage::Digits(DigitGroups::Before),
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
pub(super) mod tests {
    use std::collections::HashSet;
    use std::sync::{LazyLock, Mutex, PoisonError};

    use proptest::prelude::*;

    use super::{Learned, Splitter};
    use crate::vocabulary::families::{FAMILIES, Family};
    use crate::work::heap::HeapBytes;
    use crate::work::steps;

    /// Characters classified, table look-ups and blocks, per byte of a text. An attempt takes up to 64 look-ups before
    /// it checks for a failed run.
    const MAX_STEPS_PER_BYTE: usize = 96;

    pub(crate) struct Case {
        pub family: &'static Family,
        splitter: Splitter,
        learned: Mutex<Learned>,
    }

    impl Case {
        pub(crate) fn split(&self, text: &[u8], piece: impl FnMut(usize, usize)) {
            self.splitter.split(text, &mut self.learned.lock().unwrap_or_else(PoisonError::into_inner), piece);
        }
    }

    /// One family per list of patterns.
    pub(crate) static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let mut lists = HashSet::new();
        let firsts = FAMILIES.iter().filter(|family| lists.insert(family.patterns));
        firsts.map(|family| Case { family, splitter: Splitter::new(family), learned: Mutex::default() }).collect()
    });

    /// Runs of these are hard for patterns.
    #[rustfmt::skip]
    const UNITS: &[&str] = &[
        "a", "Z", "é", "中", "か", "1", "²", "\u{301}", " ", "\t", "\n", "\r\n", "\u{3000}", ".", "/", "'", "<",
        "$", "😀", "\u{378}", "a ", "a\u{301}", " \n", "1a", "IMG", "<sentinel:1", "  a",
    ];

    proptest! {
        #[test]
        fn what_may_not_be_learned_is_split_as_well(
            runs in prop::collection::vec((prop::sample::select(UNITS), 1..20_usize), 0..40),
        ) {
            let text = runs.iter().flat_map(|&(unit, times)| unit.repeat(times).into_bytes()).collect::<Vec<_>>();
            for case in CASES.iter() {
                let (mut expected, mut pieces, mut learned) = (Vec::new(), Vec::new(), Learned::default());
                case.split(&text, |start, end| expected.push((start, end)));
                case.splitter.split(&text[..0], &mut learned, |_, _| ());
                learned.spend();
                case.splitter.split(&text, &mut learned, |start, end| pieces.push((start, end)));
                prop_assert_eq!(pieces, expected, "{}: {:?}", case.family.name, String::from_utf8_lossy(&text));
            }
        }
    }

    #[test]
    fn what_is_learned_is_bounded() {
        // Every mixture of whitespace is its own state until its pieces are settled.
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
                assert_eq!(pieces, expected, "{}", case.family.name);
            }
            assert!(learned.heap_bytes() < 2 << 20, "{}: {} bytes", case.family.name, learned.heap_bytes());
        }
    }

    #[test]
    fn steps_are_linear_in_runs() {
        #[rustfmt::skip]
        let ends = [
            ("", ""), ("a", ""), (" ", ""), ("<sentinel:", ""), ("IMGIMG", ""), ("", "a"), ("", "中"), ("", "."), ("", "\n"),
        ];
        for (unit, (first, last)) in UNITS.iter().flat_map(|unit| ends.iter().map(move |ends| (unit, ends))) {
            // Quadratic time would be 1,500 and 15,000 steps per byte.
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
                    assert!(steps < most, "{}: {steps} steps for {first:?} {unit:?} {last:?}", case.family.name);
                }
            }
        }
    }

    #[test]
    fn tables_stay_small() {
        for case in CASES.iter() {
            let bytes = case.splitter.heap_bytes();
            assert!(bytes < 1 << 20, "{}: {bytes} bytes", case.family.name);
        }
    }
}
