//! How far the pieces of an unfinished text are settled.
//!
//! 1. A pattern is tried at one place after another, and an attempt sees only what follows. An attempt that ends before
//!    the known text does is settled. The first one that does not is undecided, and so is the piece it is in: a match
//!    that may become longer, or the text since the last match, which ends where the next one starts.
//! 2. The next pattern gets that piece too, up to the undecided attempt. The piece may end or continue there, so an
//!    attempt of this pattern that gets that far is undecided as well.
//! 3. The boundaries that are settled after the last pattern stay. A text cut at one of them splits after the cut as
//!    the whole does: every pattern starts an attempt there, either after a match or with no match so far.
//! 4. The text before the cut must also split as in the whole, although it now ends at the cut. Patterns look at the
//!    end, or at what follows, only after whitespace, so a cut never comes after whitespace. Groups of digits are
//!    counted from the right, so the part of a run before the cut has a multiple of three digits.
//!
//! The boundaries are found with plain automata, because shapes do not report how far they have looked.
//!
//! Complexity: linear in the text for each pattern.

use super::automaton::Automaton;
use super::digits::DigitGroups;
use super::joint::Stage;
use super::shape::Shape;
use super::splitter::stage;
use crate::text::unicode::{self, utf8};
use crate::vocabulary::families::{Family, LINES};

/// The patterns of a family as plain automata.
#[derive(Debug)]
pub(crate) enum SettledPieces {
    Lines,
    Stages(Vec<Stage>),
}

impl SettledPieces {
    /// Compiles the patterns of a family.
    pub(crate) fn new(family: &Family) -> Self {
        if family.patterns == [LINES] {
            return Self::Lines;
        }
        // llama.cpp's code for a single pattern can differ from it; a shape has the pattern that agrees with the code.
        Self::Stages(match (family.patterns, Shape::of(family.patterns)) {
            ([_], Some((_, pattern))) => vec![stage(pattern)],
            (patterns, _) => patterns.iter().map(|pattern| stage(pattern)).collect(),
        })
    }

    /// The last settled boundary of `text`; 0 if there is none. `text` is canonical UTF-8, and starts at such a
    /// boundary or at the start of a fragment.
    pub(crate) fn last_cut(&self, text: &[u8]) -> usize {
        let mut undecided = Undecided { text, start: 0, end: text.len(), cut: 0 };
        let Self::Stages(stages) = self else { return undecided.lines_cut() };
        for stage in stages {
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

    pub(crate) fn heap_bytes(&self) -> usize {
        let Self::Stages(stages) = self else { return 0 };
        stages.capacity() * size_of::<Stage>() + stages.iter().map(Stage::heap_bytes).sum::<usize>()
    }
}

/// The piece that may continue.
struct Undecided<'a> {
    text: &'a [u8],
    /// Where it starts.
    start: usize,
    /// How far it is known not to end.
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
        let (text, start, end) = (self.text, self.start, self.end);
        self.end = automaton.undecided(text, start, end, |from, to| {
            self.boundary(from);
            self.boundary(to);
        });
    }

    /// A run of digits is undecided until its end is known.
    fn advance_digits(&mut self, groups: DigitGroups) {
        let (text, start) = (self.text, self.start);
        let mut run_start = self.end;
        while let Some(before) = text[start..run_start].iter().rposition(|byte| byte & 0xC0 != 0x80) {
            if groups.digit_len(text, start + before).is_none() {
                break;
            }
            run_start = start + before;
        }
        // The last piece is the text after the last digits.
        groups.split(text, start, run_start, |from, _| self.boundary(from));
        self.end = run_start;
    }

    /// The last line, or run of newlines, is undecided from its start. No earlier line depends on what follows.
    fn lines_cut(&self) -> usize {
        let is_newline = |at: usize| self.text[at] == b'\n';
        let run = (self.start..self.end).rev().take_while(|&at| is_newline(at) == is_newline(self.end - 1)).last();
        run.unwrap_or(self.start)
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

    use super::SettledPieces;
    use crate::encode::pretokenizer::splitter::tests::{CASES as SPLITTERS, Case};
    use crate::vocabulary::families::Family;

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
                let (mut pending, mut found) = (String::new(), Vec::new());
                for part in &parts {
                    pending.push_str(part);
                    let cut = settled.last_cut(pending.as_bytes());
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
}
