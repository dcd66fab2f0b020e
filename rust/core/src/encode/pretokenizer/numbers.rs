//! Numbers, and the text between them: SuperBPE's patterns `\p{N}+` and `(?=(\d{3})+(?!\d))` without an automaton.
//!
//! Source: the patterns of SuperBPE (see `families`). Complexity: linear in the text; ASCII without digits takes one
//! comparison per [`CHUNK`] bytes.

use super::digits::DigitGroups;
use crate::text::unicode::{self, utf8};

/// How many bytes are searched for digits at once.
const CHUNK: usize = 32;

/// Calls `piece` with the byte range of every group of digits, and of all text between numbers.
pub(crate) fn split(text: &[u8], mut piece: impl FnMut(usize, usize)) {
    let mut start = 0;
    while start < text.len() {
        let number = next_number(text, start);
        if start < number {
            piece(start, number);
        }
        start = number;
        while start < text.len() && number_len(text, start).0 {
            start += number_len(text, start).1;
        }
        if number < start {
            DigitGroups::Before.split(text, number, start, &mut piece);
        }
    }
}

/// The first position from `at` at which a number starts, or the end of the text.
fn next_number(text: &[u8], mut at: usize) -> usize {
    while at < text.len() {
        while let Some(chunk) = text[at..].first_chunk::<CHUNK>()
            && !chunk.iter().fold(false, |found, &byte| found | (byte >= 0x80) | byte.is_ascii_digit())
        {
            at += CHUNK;
        }
        let chunk_end = (at + CHUNK).min(text.len());
        while at < chunk_end {
            match number_len(text, at) {
                (true, _) => return at,
                (false, len) => at += len,
            }
        }
    }
    text.len()
}

/// Whether the character at `at` is a number, and its length.
#[inline(always)]
fn number_len(text: &[u8], at: usize) -> (bool, usize) {
    count_steps!(1);
    if text[at] < 0x80 {
        return (text[at].is_ascii_digit(), 1);
    }
    let (code_point, len) = utf8::decode_lossy(text, at);
    (unicode::flags(code_point).is_number(), len)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split;
    use crate::encode::pretokenizer::Learned;
    use crate::encode::pretokenizer::joint::Joint;
    use crate::encode::pretokenizer::splitter::stage;
    use crate::vocabulary::families::{NUMBERS, THOUSANDS};

    proptest! {
        #[test]
        fn pieces_are_those_of_the_patterns(
            runs in prop::collection::vec(
                (prop::sample::select(vec!["a", " ", "中", "\u{301}", ".", "\n", "1", "²", "٣", "½", "𝟙"]), 0..40_usize),
                0..12,
            ),
        ) {
            let text = runs.iter().flat_map(|&(unit, times)| unit.repeat(times).into_bytes()).collect::<Vec<_>>();
            let joint = Joint::new([NUMBERS, THOUSANDS].map(stage).into());
            let mut pieces = Vec::new();
            let mut expected = Vec::new();
            split(&text, |start, end| pieces.push((start, end)));
            joint.split(&text, &mut Learned::default(), |start, end| expected.push((start, end)));
            prop_assert_eq!(pieces, expected, "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
