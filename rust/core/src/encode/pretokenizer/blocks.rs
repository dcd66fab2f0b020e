//! Matches patterns 64 bytes at a time: the starts of pieces are bits, computed by shifting and combining masks.
//!
//! This is fairly complex and not obviously correct. The essence of it is:
//!
//! 1. Every byte of a block has one class: letter, digit, blank, newline, isolated or other. Each class is a 64-bit
//!    mask ([`Bits`]); the bytes of a character beyond ASCII all have its class.
//! 2. Whether a piece starts at a character usually follows from its class and that of the character before it: "a
//!    letter starts a piece unless a letter or a space is before it" is `letter & !(letter << 1 | space << 1)`.
//! 3. A few rules ask how a *run* of one class ends: a blank after a newline starts a piece unless another newline ends
//!    the run of blanks. Adding a run's first bit to the run's mask carries it to the byte after the run, for all runs
//!    of a block in one addition.
//! 4. Some boundaries depend on bytes outside the block, or on a character whose class depends on its context. The
//!    first such position is the block's *limit*: boundaries below it are settled, others are dropped.
//! 5. The next block starts where a piece starts, which makes it independent of everything before it. The exception is
//!    a block that ends inside a run of letters or of isolated characters: then the next one starts right after it, and
//!    only the run is carried over ([`OpenRun`]).
//! 6. If a block finds no boundary, [`Cuts`] finds the end of one piece with automata.
//!
//! Source: the patterns themselves (see `families`); the automata are the oracle. Complexity: linear in the text, about
//! one instruction per byte and mask, while an automaton mispredicts a branch per piece. The worst case is text in
//! which no boundary is settled: each piece costs a block and a run of the automaton.

mod bits;
mod cuts;
mod rules;

use super::automaton::Automaton;
use super::shape::{Contractions, Digits, Shape, Tail, WordChars};
use crate::text::scan::{BLOCK, padded, places};
use bits::{Bits, Block, OpenRun, after, below, bit_of_bytes, highest, last_bit};
use cuts::Cuts;
use rules::{Boundaries, slashes};

/// How far the boundaries of a block are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certain {
    /// Up to this byte of the block.
    UpTo(u32),
    /// Up to the end of the block; the last piece lasts as long as this run.
    UpToRun(OpenRun),
    /// Up to the end of the text.
    Text,
}

impl Shape {
    /// Calls `piece` with the byte range of every piece of `text`, which is canonical UTF-8. `automata` match the
    /// patterns of this shape.
    #[inline]
    pub(crate) fn split(self, automata: &[Automaton], text: &[u8], piece: impl FnMut(usize, usize)) {
        match self {
            // The compiler specialises the code for each of the most common shapes.
            Self::CL100K => Self::CL100K.split_as(automata, text, piece),
            Self::QWEN2 => Self::QWEN2.split_as(automata, text, piece),
            Self::GPT2 => Self::GPT2.split_as(automata, text, piece),
            _ => self.split_as(automata, text, piece),
        }
    }

    #[inline(always)]
    fn split_as(self, automata: &[Automaton], text: &[u8], mut piece: impl FnMut(usize, usize)) {
        let mut cuts = Cuts::new(self, automata, text);
        let mut buffer = [0; BLOCK];
        let mut block_start = 0;
        let mut piece_start = 0;
        let mut inside = None;

        while block_start < text.len() {
            count_steps!(1);
            let rest = &text[block_start..];
            let bytes = padded(rest, 0, &mut buffer);
            let bits = Bits::new(bytes, rest.len().min(BLOCK), rest.len() <= BLOCK, self.words);
            let block = Block { bytes, bits, inside };

            let (starts, certain) = self.boundaries(block);
            for at in places(starts) {
                let end = block_start + at;
                piece(piece_start, end);
                piece_start = end;
            }

            match certain {
                Certain::Text => return piece(piece_start, text.len()),
                Certain::UpToRun(run) => (block_start, inside) = (block_start + bits.end as usize, Some(run)),
                Certain::UpTo(limit) => {
                    let is_open = piece_start < block_start;
                    let end = if is_open && let Some(len) = self.open_run_len(block, limit) {
                        Some(block_start + len as usize)
                    } else if is_open || piece_start == block_start && inside.is_none() {
                        Some(cuts.piece_end(piece_start))
                    } else {
                        None
                    };
                    if let Some(end) = end {
                        piece(piece_start, end);
                        piece_start = end;
                    }
                    (block_start, inside) = (piece_start, None);
                }
            }
        }
    }

    /// The length of the run that the block starts in, if the piece is sure to end with that run.
    #[inline(always)]
    fn open_run_len(self, block: Block<'_>, limit: u32) -> Option<u32> {
        let Block { bits, inside, .. } = block;
        let is_isolated = inside == Some(OpenRun::Isolated);
        let run = if is_isolated { bits.isolated } else { bits.letter };
        let len = run.trailing_ones();
        // All that is known about the first character is that it does not belong to the run.
        let is_over = bits.end == 0 && !self.words.may_continue(is_isolated);
        let may_have_suffix = || self.contractions == Contractions::Suffixes && bits.apostrophe >> len & 1 != 0;
        (len < limit && !may_have_suffix() || is_over).then_some(len)
    }

    /// The bytes of a block at which pieces start, not counting a piece that starts with the block, and how far they
    /// are settled.
    #[inline(always)]
    fn boundaries(self, block: Block<'_>) -> (u64, Certain) {
        let Block { bits, inside, .. } = block;
        let Bits { digit, space, inner, end, is_closed, .. } = bits;

        // 1. A run of others starts a piece, unless a space before it does. Slashes in its tail are not others.
        let tail = if self.tail == Tail::Slashes { slashes(block) } else { 0 };
        let other = bits.other & !tail;
        let other_starts = other & !inner & !after(other | space);
        let mut found = Boundaries { starts: other_starts, limit: end, is_ascii_word: false };

        // 2. So do digits, grouped or not, and runs of isolated characters.
        found.starts |= self.digits.starts(digit, space);
        if self.digits == Digits::RunsThenThrees && !is_closed {
            found.doubt_short_run(bits);
        }
        let in_isolated = u64::from(inside == Some(OpenRun::Isolated));
        found.starts |= bits.isolated & !inner & !(after(bits.isolated) | in_isolated);

        // 3. Words and whitespace.
        if self.cl100k {
            self.cl100k_words(block, other_starts, &mut found);
            self.cl100k_whitespace(block, other, tail, &mut found);
        } else {
            self.gpt2_words_and_whitespace(block, &mut found);
        }
        if self.cased {
            found.add_case_changes(block);
        }

        // 4. Contractions correct what steps 1 and 3 found around apostrophes.
        self.contractions(block, other_starts, &mut found);

        let certain = if found.limit != end {
            Certain::UpTo(found.limit)
        } else if is_closed {
            Certain::Text
        } else if bits.letter & last_bit(end) != 0 && !found.is_ascii_word {
            Certain::UpToRun(OpenRun::Letters(block.bytes[end as usize - 1]))
        } else if bits.isolated & last_bit(end) != 0 {
            Certain::UpToRun(OpenRun::Isolated)
        } else {
            Certain::UpTo(end)
        };
        (found.starts & !u64::from(inside.is_none()) & below(found.limit), certain)
    }

    /// The last of several whitespace characters, if the pattern sees something else after it. What follows an open
    /// block is unknown, so whitespace at the end of the block lowers the limit.
    #[inline(always)]
    fn last_white(self, bits: Bits, found: &mut Boundaries) -> u64 {
        let white = bits.blank | bits.newline;
        if !bits.is_closed && white & last_bit(bits.end) != 0 {
            found.doubt(bits.end - 1);
        }
        // To the pattern, what is cut out beforehand ends the text.
        let cut_digits = if self.digits_first { bits.digit } else { 0 };
        let cut_isolated = if self.words.isolates_first() { bits.isolated } else { 0 };
        white & after(white) & (below(bits.end) & !(white | cut_digits | cut_isolated)) >> 1
    }

    /// GPT-2's rule: a space goes with the letters after it, and a run of whitespace ends before its last character.
    #[inline(always)]
    fn gpt2_words_and_whitespace(self, block: Block<'_>, found: &mut Boundaries) {
        let Bits { letter, space, blank, newline, inner, .. } = block.bits;
        let white = blank | newline;
        let last_white = self.last_white(block.bits, found);
        found.starts |= letter & !inner & !(after(letter | space) | block.in_letters());
        found.starts |= white & !after(white) | last_white;
    }

    /// cl100k's rule: letters go with the blank before them, or with a character of class other that has no other
    /// before it.
    #[inline(always)]
    fn cl100k_words(self, block: Block<'_>, other_starts: u64, found: &mut Boundaries) {
        let Bits { letter, blank, inner, end, .. } = block.bits;
        let is_deepseek = self.words == WordChars::DeepSeek;
        let ascii = if is_deepseek { !bit_of_bytes::<7>(block.bytes) } else { u64::MAX };

        let mut first_others = other_starts & ascii;
        for _ in 1..4 {
            first_others |= after(first_others) & inner;
        }
        let joined = after(first_others) & ascii;
        found.starts |= letter & !inner & !(after(letter | blank) | joined | block.in_letters());

        if is_deepseek {
            // After such a character a word ends with its ASCII letters (essence, 3).
            let (sum, overflow) = (letter & ascii).overflowing_add(letter & joined);
            let ends = sum & !(letter & ascii);
            found.starts |= ends & letter & !inner;
            found.is_ascii_word = overflow || ends & !below(end) != 0;
        }
    }

    /// cl100k's rule: whitespace that contains newlines ends with the last newline.
    #[inline(always)]
    fn cl100k_whitespace(self, block: Block<'_>, other: u64, tail: u64, found: &mut Boundaries) {
        let Bits { blank, newline, end, is_closed, .. } = block.bits;
        let white = blank | newline;
        let last_white = self.last_white(block.bits, found);
        let takes_newline = if self.tail == Tail::None { white } else { white | other };
        found.starts |= newline & !after(takes_newline) & !tail;

        // A blank after a newline starts a piece if that newline is the last one in the whitespace. It is not if a
        // newline ends the run of blanks (essence, 3), and that is undecided if the block ends first.
        let after_newline = blank & after(newline);
        let (sum, overflow) = blank.overflowing_add(after_newline);
        let ends = sum & !blank;
        let open_ends = if is_closed { 0 } else { ends & !below(end) };
        let undecided = ends & newline | open_ends;
        if undecided != 0 {
            found.doubt(highest(after_newline & below(undecided.trailing_zeros())));
        } else if overflow && !is_closed {
            found.doubt(highest(after_newline));
        }
        found.starts |= blank & (!after(white) | after_newline | last_white);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::Shape;
    use crate::encode::pretokenizer::automaton::Automaton;
    use crate::encode::pretokenizer::shape::matched_patterns;
    use crate::vocabulary::families::FAMILIES;

    /// The shapes of the table, each with the automata of its patterns.
    static SHAPES: LazyLock<Vec<(Shape, Vec<Automaton>)>> = LazyLock::new(|| {
        let lists: HashSet<&[&str]> = FAMILIES.iter().map(|family| matched_patterns(family.patterns)).collect();
        let shapes = lists.iter().filter_map(|patterns| {
            Some((Shape::of(patterns)?, patterns.iter().map(|pattern| Automaton::new(pattern)).collect()))
        });
        shapes.collect()
    });

    fn descend(automata: &[Automaton], text: &[u8], start: usize, end: usize, piece: &mut dyn FnMut(usize, usize)) {
        match automata {
            [] => piece(start, end),
            [first, rest @ ..] => first.split(text, start, end, |start, end| descend(rest, text, start, end, piece)),
        }
    }

    fn assert_agree(text: &str) {
        for (shape, automata) in &*SHAPES {
            let mut found = Vec::new();
            let mut expected = Vec::new();
            shape.split(automata, text.as_bytes(), |start, end| found.push(&text[start..end]));
            descend(automata, text.as_bytes(), 0, text.len(), &mut |start, end| expected.push(&text[start..end]));
            assert_eq!(found, expected, "{shape:?}");
        }
    }

    /// One character of each class, and the letters of contractions.
    const ALPHABET: [&str; 27] = [
        "a", "s", "L", " ", "\t", "\n", "\r", "'", "!", "/", "7", "é", "中", "\u{301}", "\u{A0}", "²", "”", "\u{1}",
        "한", "`", "€", "\u{FAFE}", "あ", "・", "\u{3040}", "\u{3099}", "'s",
    ];

    #[test]
    fn all_short_texts() {
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            texts = texts.iter().flat_map(|text| ALPHABET.map(|char| format!("{text}{char}"))).collect();
            texts.iter().for_each(|text| assert_agree(text));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn long_texts(runs in prop::collection::vec(
            (prop::sample::select(&ALPHABET[..]), prop_oneof![12 => 1..9_usize, 1 => 50..70_usize]),
            0..120,
        )) {
            assert_agree(&runs.iter().map(|(char, count)| char.repeat(*count)).collect::<String>());
        }
    }
}
