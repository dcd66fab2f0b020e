//! How far the pieces of an unfinished text are settled.
//!
//! A text is cut between two adjacent characters if a pattern surely ends or starts a match there, and if two things
//! hold for this pattern and all before it:
//! 1. No attempt takes both characters. So each pattern starts an attempt after the cut, as at the start of a text, and
//!    what comes after the cut is split as in the whole text.
//! 2. No attempt looks ahead after the first of the two. So what comes before the cut is split as in the whole text,
//!    although it ends at the cut.
//!
//! A match is sure if one character is a match by itself, whatever follows it. The patterns after this one never see
//! both characters in one piece.
//!
//! All of this follows from the classes of the two characters. Digits that a rule groups stay together. Of a pattern
//! that takes whole lines ([`LINES`]), only the last line or run of newlines may continue.
//!
//! Complexity: linear in the distance from the last cut to the end of the text, for each pattern.

use super::automaton::alphabet::ClassSet;
use super::joint::Stage;
use super::splitter::stages;
use crate::text::unicode::utf8;
use crate::vocabulary::families::{Family, LINES};
use crate::work::interrupt::Ticker;

/// What the patterns of a family say about adjacent characters; nothing for [`LINES`].
#[derive(Debug)]
pub(crate) struct SettledPieces(Vec<Settling>);

/// What one pattern says.
#[derive(Debug)]
struct Settling {
    stage: Stage,
    /// For each class, those of which a character may have to stay with one before it (1 and 2).
    joined: Vec<ClassSet>,
    /// The classes whose characters are matches by themselves.
    alone: ClassSet,
}

heap_bytes!(SettledPieces: 0; Settling: stage, joined, alone);

impl SettledPieces {
    /// Compiles the patterns of a family.
    pub(crate) fn new(family: &Family) -> Self {
        let stages = if family.patterns == [LINES] { Vec::new() } else { stages(family) };
        Self(stages.into_iter().map(Settling::new).collect())
    }

    /// The last settled boundary of `text`; 0 if there is none. `text` is canonical UTF-8, and starts at such a
    /// boundary or at the start of a fragment.
    pub(crate) fn last_cut(&self, text: &[u8]) -> usize {
        if self.0.is_empty() {
            return last_line(text);
        }
        let mut end = text.len();
        let mut after = None;
        let mut ticker = Ticker::default();
        while end > 0 {
            ticker.tick();
            count_steps!(1);
            let start = utf8::floor(text, end - 1);
            let before = utf8::decode_lossy(text, start).0;
            if after.replace(before).is_some_and(|after| self.is_cut(before, after)) {
                return end;
            }
            end = start;
        }
        0
    }

    /// Whether the pieces of a text are settled between two adjacent characters.
    fn is_cut(&self, before: u32, after: u32) -> bool {
        for Settling { stage, joined, alone } in &self.0 {
            let [before, after] = [before, after].map(|code_point| stage.class(code_point));
            if joined[usize::from(before)].contains(after) {
                return false;
            }
            // The first group of a run of digits stays with the text before it.
            let is_start = matches!(stage, Stage::Pattern(_)) && alone.contains(after);
            if is_start || alone.contains(before) {
                return true;
            }
        }
        false
    }
}

/// Where the last line, or the last run of newlines, starts. It is all that may continue.
fn last_line(text: &[u8]) -> usize {
    let ends_line = text.last() == Some(&b'\n');
    text.iter().rposition(|&byte| (byte == b'\n') != ends_line).map_or(0, |before| before + 1)
}

impl Settling {
    fn new(stage: Stage) -> Self {
        let (joined, alone) = match &stage {
            Stage::Pattern(automaton) => (automaton.joined(), automaton.alone()),
            Stage::Digits => {
                let digits = ClassSet::from_iter([1]);
                (vec![ClassSet::default(), digits], digits)
            }
        };
        Self { stage, joined, alone }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::SettledPieces;
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
