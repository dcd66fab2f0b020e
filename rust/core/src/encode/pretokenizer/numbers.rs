//! Numbers without an automaton: SuperBPE's patterns `\p{N}+` and `(?=(\d{3})+(?!\d))`, and groups of three digits from
//! the right, into which AfMoE and Tiny Aya cut numbers. A run of digits is counted to its end, then cut from its start.
//!
//! Source: the patterns of SuperBPE (see `families`); llama.cpp `src/unicode.cpp`, `unicode_regex_split_custom_afmoe`.
//! Complexity: linear in the text; each digit is read twice. For SuperBPE, ASCII without digits takes one comparison per
//! [`CHUNK`] bytes.
//!
//! Deviations: (1) no recursion. `std::regex` overflows its stack on long runs for SuperBPE.

use crate::text::unicode::{self, utf8};

/// How many bytes are searched for digits at once.
const CHUNK: usize = 32;

/// Calls `piece` with the byte range of every group of ASCII digits in a number, and of all text between numbers. A
/// first group of fewer than three stays with the rest of the number before it.
pub(crate) fn split(text: &[u8], mut piece: impl FnMut(usize, usize)) {
    let mut start = 0;
    while start < text.len() {
        let number = next_number(text, start);
        if start < number {
            piece(start, number);
        }
        let end = number + run(text, number, text.len()).0;
        let mut at = number;
        start = number;
        while at < end {
            let num_digits = text[at..end].iter().take_while(|byte| byte.is_ascii_digit()).count();
            for cut in (at + num_digits % 3..at + num_digits).step_by(3).filter(|&cut| cut > number) {
                piece(start, cut);
                start = cut;
            }
            at += num_digits.max(1);
        }
        if start < end {
            piece(start, end);
        }
        start = end;
    }
}

/// Calls `piece` with the byte range of every piece of `text[start..end]`: cuts after every group of three digits of a
/// number, counted from its right. The first group, which may be shorter, stays with the text before it.
pub(super) fn split_groups(text: &[u8], start: usize, end: usize, mut piece: impl FnMut(usize, usize)) {
    let mut piece_start = start;
    let mut at = start;
    while at < end {
        let (len, num_digits) = run(text, at, end);
        for left in (0..num_digits).rev() {
            at += number_len(text, at).1;
            if left % 3 == 0 {
                piece(piece_start, at);
                piece_start = at;
            }
        }
        if len == 0 {
            at += utf8::sequence_len(text[at]);
        }
    }
    if piece_start < end {
        piece(piece_start, end);
    }
}

/// The number at `start`: its length in bytes and in digits.
fn run(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    let mut at = start;
    let mut num_digits = 0;
    while at < end
        && let (true, len) = number_len(text, at)
    {
        at += len;
        num_digits += 1;
    }
    (at - start, num_digits)
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
pub(super) fn number_len(text: &[u8], at: usize) -> (bool, usize) {
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

    use super::{split, split_groups};

    fn text() -> impl Strategy<Value = String> {
        let units = prop::sample::select(vec!["a", " ", "中", "\u{301}", ".", "\n", "1", "²", "٣", "½", "𝟙"]);
        let runs = prop::collection::vec((units, 0..40_usize), 0..12);
        runs.prop_map(|runs| runs.iter().map(|&(unit, times)| unit.repeat(times)).collect())
    }

    /// The pieces between the characters where `is_cut`, given the characters before and from there.
    fn pieces(text: &str, is_cut: impl Fn(&str, &str) -> bool) -> Vec<(usize, usize)> {
        let cuts = text.char_indices().map(|(at, _)| at).filter(|&at| at > 0 && is_cut(&text[..at], &text[at..]));
        let starts: Vec<usize> = (!text.is_empty()).then_some(0).into_iter().chain(cuts).collect();
        let ends = starts.iter().copied().skip(1).chain([text.len()]);
        starts.iter().copied().zip(ends).collect()
    }

    fn num_leading(text: &str, is_digit: impl Fn(char) -> bool) -> usize {
        text.chars().take_while(|&char| is_digit(char)).count()
    }

    proptest! {
        #[test]
        fn numbers_are_cut_before_full_groups_of_ascii_digits(text in text()) {
            let mut found = Vec::new();
            split(text.as_bytes(), |start, end| found.push((start, end)));
            let expected = pieces(&text, |before, after| {
                let num_digits = num_leading(after, |char| char.is_ascii_digit());
                let is_edge = before.ends_with(char::is_numeric) != after.starts_with(char::is_numeric);
                is_edge || num_digits > 0 && num_digits % 3 == 0
            });
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn groups_end_at_every_third_digit_from_the_right(text in text()) {
            let mut found = Vec::new();
            split_groups(text.as_bytes(), 0, text.len(), |start, end| found.push((start, end)));
            let expected = pieces(&text, |before, after| {
                before.ends_with(char::is_numeric) && num_leading(after, char::is_numeric) % 3 == 0
            });
            prop_assert_eq!(found, expected);
        }
    }
}
