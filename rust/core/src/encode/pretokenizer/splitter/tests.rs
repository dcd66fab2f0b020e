//! Every list of patterns: what may be learned makes no difference, time is linear, and tables stay small.

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
            let mut expected = Vec::new();
            let mut pieces = Vec::new();
            let mut learned = Learned::default();
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
        let mut learned = Learned::default();
        let mut poor = Learned::default();
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
