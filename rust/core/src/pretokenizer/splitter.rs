//! The patterns of a family, one after the other: each cuts the pieces that the one before leaves.
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`. Pieces are handed down one by one, so nothing is kept:
//! O(text) time for each pattern, no memory.

use super::automaton::Automaton;
use super::blocks::{self, Alphabet, Contractions, Digits, Shape, Tail};
use super::digits::DigitGroups;
use super::families::{
    BAILINGMOE, CASED, CASED_3, DEEPSEEK3, Family, GPT2, GPT4O, GRANITE, HAN, KANJI_KANA, LINES, LLAMA3, MINICPM5,
    NUMBER, NUMBERS, NUMBERS_3, PUNCTUATION, PUNCTUATION_BUT_BACKQUOTE, QWEN2, QWEN35, SEED_CODER, TEKKEN,
    THREE_DIGITS, UFAKZEKA,
};
use super::lines;
use super::neighbours::Neighbours;

/// What llama.cpp's code for `\p{Han}+` matches, as a pattern: the whole of Kimi K2's.
pub(super) const KIMI_K2: &str = r"\p{Han}+|[^\r\n\p{L}\p{N}]?\p{L-Han}+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// One step of the sequence.
#[derive(Debug)]
enum Stage {
    Pattern(Box<Automaton>),
    /// Several patterns at once, the last ones, of which the automaton matches one.
    Shape(Shape, Box<Automaton>),
    /// Several patterns at once, the last ones.
    Neighbours(Neighbours),
    Digits(DigitGroups),
    Lines,
}

/// The compiled patterns of a family.
#[derive(Debug)]
pub(crate) struct Splitter {
    stages: Vec<Stage>,
}

impl Splitter {
    /// Compiles the patterns of a family.
    ///
    /// Patterns for which llama.cpp has code of its own, and which that code does not follow, get theirs here; for all
    /// others the pattern and its code agree.
    pub(crate) fn new(family: &Family) -> Self {
        let mut stages = Vec::new();
        let mut patterns = family.patterns;
        while let [first, rest @ ..] = patterns {
            if let Some((shape, pattern)) = shape(patterns) {
                stages.push(Stage::Shape(shape, compile(pattern)));
                break;
            }
            if let Some(neighbours) = Neighbours::of(patterns) {
                stages.push(Stage::Neighbours(neighbours));
                break;
            }
            stages.push(match *first {
                r"\p{AFMoE_digits}" | r"\d{1,3}(?=(?:\d{3})*\b)" => Stage::Digits(DigitGroups::After),
                r"(?=(\d{3})+(?!\d))" => Stage::Digits(DigitGroups::Before),
                LINES => Stage::Lines,
                pattern => Stage::Pattern(compile(pattern)),
            });
            patterns = rest;
        }
        Self { stages }
    }

    /// Calls `piece` with the byte range of every piece of `text`, in order. `text` is canonical UTF-8.
    #[inline]
    pub(crate) fn split(&self, text: &[u8], mut piece: impl FnMut(usize, usize)) {
        match &self.stages[..] {
            [Stage::Shape(shape, automaton)] => shape.split(automaton, text, piece),
            [Stage::Neighbours(neighbours)] => neighbours.split(text, piece),
            [Stage::Lines] => lines::split(text, 0..text.len(), piece),
            [Stage::Pattern(automaton)] => automaton.split(text, 0, text.len(), piece),
            stages => descend(stages, text, 0, text.len(), &mut piece),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let of = |stage: &Stage| match stage {
            Stage::Pattern(automaton) | Stage::Shape(_, automaton) => automaton.heap_bytes(),
            Stage::Neighbours(_) | Stage::Digits(_) | Stage::Lines => 0,
        };
        self.stages.capacity() * size_of::<Stage>() + self.stages.iter().map(of).sum::<usize>()
    }
}

/// The shape of these patterns together, if they have one, and which of them its automaton matches.
pub(super) fn shape<'a>(patterns: &[&'a str]) -> Option<(Shape, &'a str)> {
    Some(match *patterns {
        [pattern @ LLAMA3] => (blocks::CL100K, pattern),
        // Spaces and newlines in any order end with the last newline, however many of them the pattern asks for.
        [pattern @ (QWEN2 | BAILINGMOE)] => (blocks::QWEN2, pattern),
        [pattern @ QWEN35] => (Shape { alphabet: Alphabet::Marks, ..blocks::QWEN2 }, pattern),
        [pattern @ SEED_CODER] => (Shape { tail: Tail::None, ..blocks::QWEN2 }, pattern),
        [pattern @ UFAKZEKA] => (Shape { contractions: Contractions::None, ..blocks::QWEN2 }, pattern),
        [pattern @ GPT4O] => (blocks::O200K, pattern),
        [pattern @ TEKKEN] => {
            (Shape { digits: Digits::Single, contractions: Contractions::None, ..blocks::O200K }, pattern)
        }
        [pattern @ CASED] => (Shape { digits: Digits::Single, ..blocks::CASED }, pattern),
        [pattern @ CASED_3] => (blocks::CASED, pattern),
        [pattern @ GRANITE] => (Shape { cased: true, ..blocks::CASED }, pattern),
        [HAN] => (blocks::KIMI_K2, KIMI_K2),
        [pattern @ GPT2] => (blocks::GPT2, pattern),
        [NUMBER, pattern @ GPT2] => (Shape { digits: Digits::Single, digits_first: true, ..blocks::GPT2 }, pattern),
        [PUNCTUATION, pattern @ GPT2, THREE_DIGITS] => (blocks::FALCON, pattern),
        [PUNCTUATION_BUT_BACKQUOTE, pattern @ GPT2, NUMBERS, THREE_DIGITS] => (blocks::DEFAULT, pattern),
        [NUMBERS_3, pattern @ MINICPM5] => (Shape { digits_first: true, ..blocks::CL100K }, pattern),
        [NUMBERS_3, KANJI_KANA, pattern @ DEEPSEEK3] => (blocks::DEEPSEEK3, pattern),
        _ => return None,
    })
}

fn descend(stages: &[Stage], text: &[u8], begin: usize, end: usize, piece: &mut dyn FnMut(usize, usize)) {
    match stages {
        [] => piece(begin, end),
        [Stage::Pattern(automaton), rest @ ..] => {
            automaton.split(text, begin, end, |begin, end| descend(rest, text, begin, end, piece));
        }
        [Stage::Shape(shape, automaton), rest @ ..] => {
            let split = |from, to| descend(rest, text, begin + from, begin + to, piece);
            shape.split(automaton, &text[begin..end], split);
        }
        [Stage::Neighbours(neighbours), rest @ ..] => {
            neighbours.split(&text[begin..end], |from, to| descend(rest, text, begin + from, begin + to, piece));
        }
        [Stage::Lines, rest @ ..] => {
            lines::split(text, begin..end, |begin, end| descend(rest, text, begin, end, piece));
        }
        [Stage::Digits(groups), rest @ ..] => {
            groups.split(text, begin, end, |begin, end| descend(rest, text, begin, end, piece));
        }
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
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::Splitter;
    use crate::pretokenizer::oracle::Oracle;
    use crate::pretokenizer::{FAMILIES, Family};
    use crate::unicode::utf8;

    struct Case {
        name: &'static str,
        splitter: Splitter,
        oracle: Oracle,
    }

    /// One family for each list of patterns.
    static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
        let mut lists = HashSet::new();
        let firsts = FAMILIES.iter().filter(|family| lists.insert(family.patterns));
        let case =
            |family: &Family| Case { name: family.name, splitter: Splitter::new(family), oracle: Oracle::new(family) };
        firsts.map(case).collect()
    });

    /// What patterns tell apart: letters, marks, numbers, punctuation, symbols, whitespace, the rest.
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

    /// A stretch of text: one thing, some times over.
    fn stretch() -> impl Strategy<Value = Vec<u8>> {
        let thing = prop_oneof![
            12 => prop::sample::select(ATOMS).prop_map(|atom| atom.as_bytes().to_vec()),
            2 => prop::sample::select(&BOUNDS[..]).prop_map(|code_point| encode(&[code_point])),
            1 => (0..0x11_0000_u32).prop_map(|code_point| encode(&[code_point])),
        ];
        let times = prop_oneof![16 => 1..2_usize, 8 => 2..6_usize, 1 => 6..600_usize];
        (thing, times).prop_map(|(thing, times)| thing.repeat(times))
    }

    fn pieces(splitter: &Splitter, text: &[u8]) -> Vec<(usize, usize)> {
        let mut pieces = Vec::new();
        splitter.split(text, |begin, end| pieces.push((begin, end)));
        pieces
    }

    fn check(case: &Case, text: &[u8]) {
        let pieces = pieces(&case.splitter, text);
        assert_eq!(pieces, case.oracle.split(text), "{}: {:?}", case.name, String::from_utf8_lossy(text));
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
        fn any_text_splits_as_by_the_patterns(stretches in prop::collection::vec(stretch(), 0..40)) {
            let text = stretches.concat();
            for case in CASES.iter() {
                check(case, &text);
            }
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
    fn time_is_linear_in_runs() {
        #[rustfmt::skip]
        let units = [
            "a", "Z", "é", "中", "か", "1", "²", "\u{301}", " ", "\t", "\n", "\r\n", "\u{3000}", ".", "/", "'", "<",
            "$", "😀", "\u{378}", "a ", "a\u{301}", " \n", "1a", "IMG", "<sentinel:1", "  a",
        ];
        #[rustfmt::skip]
        let ends = [
            ("", ""), ("a", ""), (" ", ""), ("<sentinel:", ""), ("IMGIMG", ""), ("", "a"), ("", "中"), ("", "."), ("", "\n"),
        ];
        for (unit, (start, end)) in units.iter().flat_map(|unit| ends.iter().map(move |ends| (unit, ends))) {
            let size = if start.is_empty() && end.is_empty() { 300_000 } else { 60_000 };
            let text = format!("{start}{}{end}", unit.repeat(size / unit.len()));
            for case in CASES.iter() {
                let began = Instant::now();
                let (mut at, mut count) = (0, 0);
                case.splitter.split(text.as_bytes(), |begin, end| {
                    assert!(begin == at && end > begin);
                    (at, count) = (end, count + 1);
                });
                assert_eq!(at, text.len());
                let taken = began.elapsed();
                assert!(taken < Duration::from_secs(2), "{}: {start:?} {unit:?} {end:?}: {count} pieces", case.name);
            }
        }
    }

    #[test]
    fn tables_stay_small() {
        for case in CASES.iter() {
            let bytes = case.splitter.heap_bytes();
            assert!((1..1 << 20).contains(&bytes), "{}: {bytes} bytes", case.name);
        }
    }
}
