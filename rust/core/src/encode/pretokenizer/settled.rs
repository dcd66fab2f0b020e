//! How far the pieces of an unfinished text are settled.
//!
//! 1. A pattern is tried at one position after another, and an attempt sees only what follows. An attempt that ends
//!    before the known text does is settled. The first one that does not is undecided, and so is the piece it is in: a
//!    match that may become longer, or the text since the last match, which ends where the next one starts.
//! 2. The next pattern gets that piece too, up to the undecided attempt. The piece may end or continue there, so an
//!    attempt of this pattern that gets that far is undecided as well.
//! 3. The boundaries that are settled after the last pattern stay. A text cut at one of them splits after the cut as
//!    the whole does: every pattern starts an attempt there, either after a match or with no match so far.
//! 4. The text before the cut must also split as in the whole, although it now ends at the cut. Patterns look at the
//!    end, or at what follows, only after whitespace, so a cut never comes after whitespace. Groups of digits are
//!    counted from the right, so the part of a run before the cut has a multiple of three digits.
//!
//! The boundaries are found with plain automata, because shapes do not report how far they have looked. Only the end of
//! the text has to be read: if no attempt of any pattern can reach across the position between two characters, every
//! pattern has an attempt there, as at the start of the text. Such a position is searched backwards, twice as far from
//! the end each time, until there is a boundary after it.
//!
//! Complexity: linear in the distance from the last boundary to the end of the text, for each pattern.

use super::automaton::Automaton;
use super::automaton::alphabet::ClassSet;
use super::digits::DigitGroups;
use super::joint::Stage;
use super::shape::Shape;
use super::splitter::stage;
use crate::text::unicode::{self, utf8};
use crate::vocabulary::families::{Family, LINES};
use crate::work::interrupt::Ticker;

/// How far from the end of a text the search for a boundary starts, in bytes: about a word. Each next look goes twice
/// as far.
const FIRST_LOOK: usize = 8;

/// The patterns of a family as plain automata; none for [`LINES`].
#[derive(Debug)]
pub(crate) struct SettledPieces(Vec<Settling>);

/// A pattern.
#[derive(Debug)]
struct Settling {
    stage: Stage,
    /// For each class, the classes of the characters after it that one attempt, or one run of digits, can take too.
    successors: Vec<ClassSet>,
}

heap_bytes!(SettledPieces: 0; Settling: stage, successors);

impl SettledPieces {
    /// Compiles the patterns of a family.
    pub(crate) fn new(family: &Family) -> Self {
        if family.patterns == [LINES] {
            return Self(Vec::new());
        }
        // llama.cpp's code for a single pattern can differ from it; a shape has the pattern that agrees with the code.
        Self(match (family.patterns, Shape::of(family.patterns)) {
            ([_], Some((_, pattern))) => vec![Settling::new(pattern)],
            (patterns, _) => patterns.iter().map(|pattern| Settling::new(pattern)).collect(),
        })
    }

    /// The last settled boundary of `text`; 0 if there is none. `text` is canonical UTF-8, and starts at such a
    /// boundary or at the start of a fragment.
    pub(crate) fn last_cut(&self, text: &[u8]) -> usize {
        let Self(stages) = self;
        if stages.is_empty() {
            return lines_cut(text);
        }
        let mut len = FIRST_LOOK;
        loop {
            let start = last_start(stages, text, text.len().saturating_sub(len));
            let cut = last_cut_from(stages, text, start);
            if cut > 0 || start == 0 {
                return cut;
            }
            len = (text.len() - start) * 2;
        }
    }
}

impl Settling {
    fn new(pattern: &str) -> Self {
        let stage = stage(pattern);
        let successors = match &stage {
            Stage::Pattern(automaton) => automaton.successors(),
            Stage::Digits(_) => {
                let mut digits = ClassSet::default();
                digits.insert(1);
                vec![ClassSet::default(), digits]
            }
        };
        Self { stage, successors }
    }

    /// Whether an attempt can take both of two adjacent characters.
    fn joins(&self, before: u32, after: u32) -> bool {
        let successors = self.successors[usize::from(self.stage.class(before))];
        successors.contains(self.stage.class(after))
    }
}

/// The last settled boundary after `start`, where every pattern has an attempt; 0 if there is none.
fn last_cut_from(stages: &[Settling], text: &[u8], start: usize) -> usize {
    let mut undecided = Undecided { text, start, end: text.len(), cut: 0 };
    for Settling { stage, .. } in stages {
        match stage {
            Stage::Pattern(automaton) => undecided.advance(automaton),
            Stage::Digits(groups) => undecided.advance_digits(*groups),
        }
        if undecided.start >= undecided.end {
            break;
        }
    }
    undecided.cut
}

/// The last position up to byte `at` where every pattern has an attempt.
fn last_start(stages: &[Settling], text: &[u8], at: usize) -> usize {
    let mut ticker = Ticker::default();
    let mut at = utf8::floor(text, at);
    let mut after = None;
    while at > 0 {
        ticker.tick();
        count_steps!(1);
        let start = utf8::floor(text, at - 1);
        let before = utf8::decode_lossy(text, start).0;
        let after = after.replace(before).unwrap_or_else(|| utf8::decode_lossy(text, at).0);
        if !stages.iter().any(|stage| stage.joins(before, after)) {
            break;
        }
        at = start;
    }
    at
}

/// The line, or the run of newlines, is undecided from its start. No line depends on what follows it.
fn lines_cut(text: &[u8]) -> usize {
    let is_newline = |at: usize| text[at] == b'\n';
    let run = (0..text.len()).rev().take_while(|&at| is_newline(at) == is_newline(text.len() - 1)).last();
    run.unwrap_or(0)
}

/// The piece that may continue.
struct Undecided<'a> {
    text: &'a [u8],
    /// Where it starts, or a later position where every pattern has an attempt.
    start: usize,
    /// It does not end before here.
    end: usize,
    /// The last boundary with no whitespace before it.
    cut: usize,
}

impl Undecided<'_> {
    fn boundary(&mut self, at: usize) {
        if at > self.cut && !may_be_space(self.text, at) {
            self.cut = at;
        }
        self.start = at;
    }

    fn advance(&mut self, automaton: &Automaton) {
        let Self { text, start, end, .. } = *self;
        self.end = automaton.undecided(text, start, end, |from, to| {
            self.boundary(from);
            self.boundary(to);
        });
    }

    /// A run of digits is undecided until its end is known.
    fn advance_digits(&mut self, groups: DigitGroups) {
        let Self { text, start, .. } = *self;
        let mut run_start = self.end;
        while let Some(before) = text[start..run_start].iter().rposition(|byte| byte & 0xC0 != 0x80) {
            if groups.digit_len(text, start + before).is_none() {
                break;
            }
            run_start = start + before;
        }
        // The last piece is the text after the last digits. The first one starts before `start` if no boundary is
        // there.
        groups.split(text, start, run_start, |from, _| {
            if from > start {
                self.boundary(from);
            }
        });
        self.end = run_start;
    }
}

/// Whether the character before `at` may be whitespace to a pattern.
fn may_be_space(text: &[u8], at: usize) -> bool {
    let start = utf8::floor(text, at.saturating_sub(1));
    match text.get(start) {
        Some(byte) if byte.is_ascii() => !byte.is_ascii_graphic(),
        Some(_) => {
            let flags = unicode::flags(utf8::decode_lossy(text, start).0);
            !(flags.is_letter() || flags.is_number() || flags.is_punctuation() || flags.is_symbol())
        }
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::{SettledPieces, last_cut_from};
    use crate::encode::pretokenizer::splitter::tests::{CASES as SPLITTERS, Case};
    use crate::vocabulary::families::Family;
    use crate::work::steps;

    static CASES: LazyLock<Vec<(&Case, SettledPieces)>> =
        LazyLock::new(|| SPLITTERS.iter().map(|case| (case, SettledPieces::new(case.family))).collect());

    fn pieces(case: &Case, text: &str) -> Vec<String> {
        let mut pieces = Vec::new();
        case.split(text.as_bytes(), |start, end| pieces.push(text[start..end].to_owned()));
        pieces
    }

    /// Characters that patterns distinguish.
    #[rustfmt::skip]
    const ATOMS: &[&str] = &[
        "a", "s", "Z", "é", "É", "ж", "ß", "中", "か", "カ", "가", "ㄅ", "\u{301}", "1", "2", "٣", "²", ".", "'", "!",
        "/", "(", "…", "，", "$", "<", "😀", " ", " ", "  ", "    ", "\t", "\n", "\r\n", "\u{A0}", "\u{3000}",
        "\u{AD}", "'s", "'re", "'Ll", "<sentinel:12>", "<sentinel:", "IMGIMG", "IMGIMGAZ", "123", "123456789",
    ];

    fn text(max: usize) -> impl Strategy<Value = String> {
        let runs = (prop::sample::select(ATOMS), prop_oneof![8 => 1..2_usize, 2 => 2..6_usize, 1 => 6..90_usize]);
        prop::collection::vec(runs.prop_map(|(atom, times)| atom.repeat(times)), 0..max).prop_map(|runs| runs.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn texts_in_many_parts_split_as_the_whole(parts in prop::collection::vec(text(8), 1..6)) {
            for (case, settled) in CASES.iter() {
                let mut pending = String::new();
                let mut found = Vec::new();
                for part in &parts {
                    pending.push_str(part);
                    let cut = settled.last_cut(pending.as_bytes());
                    if !settled.0.is_empty() {
                        let expected = last_cut_from(&settled.0, pending.as_bytes(), 0);
                        prop_assert_eq!(cut, expected, "{}: {:?}", case.family.name, pending);
                    }
                    found.extend(pieces(case, &pending[..cut]));
                    pending.drain(..cut);
                }
                found.extend(pieces(case, &pending));
                prop_assert_eq!(found, pieces(case, &parts.concat()), "{}", case.family.name);
            }
        }
    }

    #[test]
    fn words_are_settled_soon() {
        let text =
            "The quick brown fox, it's said, jumps over 12 lazy dogs.\n\nAnd then it sleeps for 3456 hours. ".repeat(3);
        for (Case { family: Family { name, .. }, .. }, settled) in CASES.iter() {
            let most = if ["gemma4", "laguna", "superbpe"].contains(name) { 100 } else { 12 };
            let left = text.len() - settled.last_cut(text.as_bytes());
            assert!(left <= most, "{name}: {left} bytes");
        }
    }

    #[test]
    fn only_the_end_of_a_long_text_is_read() {
        let text = "The quick brown fox jumps over 12 lazy dogs. 敏捷的棕色狐狸，跳过了懒狗。\n".repeat(1000);
        for (Case { family, .. }, settled) in CASES.iter() {
            let steps = steps::of(|| assert!(settled.last_cut(text.as_bytes()) > 0));
            assert!(steps < 2000, "{}: {steps} steps", family.name);
        }
    }

    #[test]
    fn a_run_takes_linear_time() {
        for unit in ["a", "中", "1", " ", ".", "a ", "'s", "<sentinel:1", "IMGA", "  \n", "12 "] {
            let text = unit.repeat(20_000);
            for (Case { family, .. }, settled) in CASES.iter() {
                let steps = steps::of(|| _ = settled.last_cut(text.as_bytes()));
                assert!(steps < 16 * text.len(), "{} {unit:?}: {steps} steps", family.name);
            }
        }
    }
}
