//! Patterns matched 64 bytes at a time: where pieces start is computed as bits, by shifting and combining masks.
//!
//! This is fairly complex and not obviously correct. The essence of it is:
//!
//! 1. Every byte of a block has one class: letter, digit, blank, newline, isolated or other. Each class is a 64-bit mask
//!    ([`Bits`]); the bytes of a character beyond ASCII all have its class.
//! 2. Whether a piece starts at a character mostly follows from its class and that of the character before it: "a
//!    letter starts a piece unless a letter or a space is before it" is `letter & !(letter << 1 | space << 1)`.
//! 3. A few rules ask how a *run* of one class ends: a blank after a newline starts a piece unless another newline ends
//!    the run of blanks. Adding a run's first bit to the run's mask carries it to the byte after the run, for all runs
//!    of a block in one addition.
//! 4. Some boundaries depend on bytes that the block does not have, or on a character whose class only its context
//!    decides. The first such place is the block's *limit*: boundaries below it are certain, others are dropped.
//! 5. The next block starts where a piece starts, which makes it independent of everything before it. The exception is a
//!    block that ends inside a run of letters or of isolated characters: then the next one starts right after it, and
//!    only the run is carried over ([`OpenRun`]).
//! 6. A block that finds no boundary leaves one piece to [`Cuts`], which asks the automaton.
//!
//! Source: the patterns themselves (see `families`); the automata are the oracle. Complexity: linear in the text, about
//! one instruction per byte and mask, where an automaton mispredicts a branch per piece. The worst case is text whose
//! pieces are all undecided: each costs a block and the automaton's run through it.

mod bits;
mod cuts;

use super::automaton::Automaton;
use super::shape::{Contractions, Digits, Shape, Tail, WordChars};
use crate::scan::{BLOCK, places};
use bits::{Bits, after, below, bit_of_bytes, highest, last_bit};
use cuts::Cuts;

/// A block and what is known of it before its boundaries are.
#[derive(Clone, Copy)]
struct Block<'a> {
    bytes: &'a [u8; BLOCK],
    bits: Bits,
    /// The run that the block starts in the middle of; if none, a piece starts at its first byte.
    inside: Option<OpenRun>,
}

/// A run that continues past the end of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenRun {
    /// Letters, with the last byte before the next block.
    Letters(u8),
    Isolated,
}

/// The boundaries of a block while they are being found.
struct Boundaries {
    /// The bytes at which pieces start.
    starts: u64,
    /// Boundaries below this byte are certain.
    limit: u32,
    /// Whether the word at the end of the block takes no letters but those of ASCII.
    is_ascii_word: bool,
}

/// How far the boundaries of a block are certain.
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
    /// Calls `piece` with the byte range of every piece of `text`, which is canonical UTF-8. `automaton` matches the
    /// pattern of this shape.
    #[inline]
    pub(crate) fn split(self, automaton: &Automaton, text: &[u8], piece: impl FnMut(usize, usize)) {
        match self {
            // The compiler specialises the code for each of the most common shapes.
            Self::CL100K => Self::CL100K.split_as(automaton, text, piece),
            Self::QWEN2 => Self::QWEN2.split_as(automaton, text, piece),
            Self::GPT2 => Self::GPT2.split_as(automaton, text, piece),
            _ => self.split_as(automaton, text, piece),
        }
    }

    #[inline(always)]
    fn split_as(self, automaton: &Automaton, text: &[u8], mut piece: impl FnMut(usize, usize)) {
        let mut cuts = Cuts::new(self, automaton, text);
        let mut padded = [0; BLOCK];
        let (mut block_start, mut piece_start) = (0, 0);
        let mut inside = None;

        while block_start < text.len() {
            #[cfg(test)]
            crate::steps::count(1);
            let rest = &text[block_start..];
            let bytes = rest.first_chunk().unwrap_or_else(|| {
                padded = [0; BLOCK];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            });
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

    /// The length of the run that the block starts in the middle of, if the piece certainly ends with it.
    #[inline(always)]
    fn open_run_len(self, block: Block<'_>, limit: u32) -> Option<u32> {
        let Block { bits, inside, .. } = block;
        let is_isolated = inside == Some(OpenRun::Isolated);
        let run = if is_isolated { bits.isolated } else { bits.letter };
        let len = run.trailing_ones();
        // Nothing is known of the first character, except that it does not belong to the run.
        let is_over = bits.end == 0 && !self.words.may_continue(is_isolated);
        let may_have_suffix = || self.contractions == Contractions::Suffixes && bits.apostrophe >> len & 1 != 0;
        (len < limit && !may_have_suffix() || is_over).then_some(len)
    }

    /// The bytes of a block at which pieces start, not counting a piece that starts with the block, and how far they
    /// are certain.
    #[inline(always)]
    fn boundaries(self, block: Block<'_>) -> (u64, Certain) {
        let Block { bits, inside, .. } = block;
        let Bits { digit, space, inner, end, is_closed, .. } = bits;

        // 1. A run of others starts a piece, unless a space before it does. Slashes in its tail are not others.
        let tail = if self.tail == Tail::Slashes { slashes(block) } else { 0 };
        let other = bits.other & !tail;
        let other_starts = other & !inner & !after(other | space);
        let mut found = Boundaries { starts: other_starts, limit: end, is_ascii_word: false };

        // 2. So do digits, in groups or not, and runs of isolated characters.
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

        // 4. Contractions change what steps 1 and 3 have found around apostrophes.
        self.contractions(block, other_starts, &mut found);

        let certain = match found.limit == end {
            true if is_closed => Certain::Text,
            true if bits.letter & last_bit(end) != 0 && !found.is_ascii_word => {
                Certain::UpToRun(OpenRun::Letters(block.bytes[end as usize - 1]))
            }
            true if bits.isolated & last_bit(end) != 0 => Certain::UpToRun(OpenRun::Isolated),
            _ => Certain::UpTo(found.limit),
        };
        (found.starts & !u64::from(inside.is_none()) & below(found.limit), certain)
    }

    /// The last of several whitespace characters, where the pattern sees something else after it. The end of an open
    /// block does not show what follows, so whitespace there lowers the limit.
    #[inline(always)]
    fn last_white(self, bits: Bits, found: &mut Boundaries) -> u64 {
        let white = bits.blank | bits.newline;
        if !bits.is_closed && white & last_bit(bits.end) != 0 {
            found.doubt(bits.end - 1);
        }
        // What is cut out before the pattern sees the text ends it as the end of the text does.
        let cut_digits = if self.digits_first { bits.digit } else { 0 };
        let cut_isolated = if self.words.isolates_first() { bits.isolated } else { 0 };
        white & after(white) & (below(bits.end) & !(white | cut_digits | cut_isolated)) >> 1
    }

    /// GPT-2's: a space goes with the letters after it, and whitespace ends before the last one of its run.
    #[inline(always)]
    fn gpt2_words_and_whitespace(self, block: Block<'_>, found: &mut Boundaries) {
        let Bits { letter, space, blank, newline, inner, .. } = block.bits;
        let white = blank | newline;
        let last_white = self.last_white(block.bits, found);
        found.starts |= letter & !inner & !(after(letter | space) | block.in_letters());
        found.starts |= white & !after(white) | last_white;
    }

    /// cl100k's: letters go with a blank before them, or with another character that has no other before it.
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

    /// cl100k's: whitespace that has newlines ends with the last one of them.
    #[inline(always)]
    fn cl100k_whitespace(self, block: Block<'_>, other: u64, tail: u64, found: &mut Boundaries) {
        let Bits { blank, newline, end, is_closed, .. } = block.bits;
        let white = blank | newline;
        let last_white = self.last_white(block.bits, found);
        let takes_newline = if self.tail == Tail::None { white } else { white | other };
        found.starts |= newline & !after(takes_newline) & !tail;

        // A blank after a newline starts a piece if that newline is the last one of the whitespace. It is not if the run
        // of blanks ends with a newline (essence, 3), and that is undecided if the block ends first.
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

    /// Contractions are pieces, or the ends of words.
    #[inline(always)]
    fn contractions(self, block: Block<'_>, other_starts: u64, found: &mut Boundaries) {
        let Bits { letter, apostrophe, end, is_closed, .. } = block.bits;
        let mut candidates = apostrophe & other_starts;
        if self.contractions == Contractions::Suffixes {
            candidates &= after(letter) | block.in_letters();
            if !is_closed && candidates & last_bit(end) != 0 {
                found.doubt(end - 1);
            }
        }
        candidates &= letter >> 1;
        if candidates != 0 && self.contractions != Contractions::None {
            self.contract(block, candidates, found);
        }
    }

    /// Corrects the boundaries around those of the apostrophes `candidates` that start a contraction.
    fn contract(self, block: Block<'_>, candidates: u64, found: &mut Boundaries) {
        let is_suffix = self.contractions == Contractions::Suffixes;
        let mut last_end = 0;
        for at in places(candidates).map(|at| at as u32) {
            // A suffix ends the piece before it; any other contraction starts one.
            let certain = if is_suffix { at } else { at + 1 };
            if at + 3 >= BLOCK as u32 {
                return found.doubt(certain);
            }
            let len = contraction_len(&block.bytes[at as usize + 1..], self.contractions != Contractions::Lower);
            // A word has one suffix.
            let Some(len) = len.filter(|_| !is_suffix || at == 0 || at != last_end) else { continue };
            last_end = at + len;
            if last_end == block.bits.end && !block.bits.is_closed {
                return found.doubt(certain);
            }
            found.starts &= !(below(last_end) & !below(certain));
            found.starts |= block.bits.letter & 1 << last_end;
        }
    }
}

impl Digits {
    /// The digits at which pieces start.
    #[inline(always)]
    fn starts(self, digit: u64, space: u64) -> u64 {
        match self {
            Self::Runs => digit & !after(digit | space),
            Self::Single => digit,
            Self::Threes | Self::RunsThenThrees => {
                let third = digit & after(digit) & after(after(digit));
                let mut group = digit & !after(digit);
                let mut groups = group;
                while group != 0 {
                    group = group << 3 & third;
                    groups |= group;
                }
                if self == Self::Threes { groups } else { groups & !short_run_starts(digit, space) }
            }
        }
    }
}

/// The starts of runs of one or two digits with a space before them.
#[inline(always)]
fn short_run_starts(digit: u64, space: u64) -> u64 {
    digit & !after(digit) & after(space) & !(digit >> 1 & digit >> 2)
}

impl Block<'_> {
    /// The first bit, if letters are before it.
    #[inline(always)]
    fn in_letters(self) -> u64 {
        u64::from(matches!(self.inside, Some(OpenRun::Letters(_))))
    }

    /// The upper-case ASCII letters after lower-case ones, and those after a letter beyond ASCII.
    #[inline(always)]
    fn case_changes(self) -> (u64, u64) {
        let letter = self.bits.letter;
        let (lower_half, ascii) = (bit_of_bytes::<5>(self.bytes), !bit_of_bytes::<7>(self.bytes));
        let (upper, lower, beyond) = (letter & ascii & !lower_half, letter & ascii & lower_half, letter & !ascii);
        let is_before = |is: fn(&u8) -> bool| match &self.inside {
            Some(OpenRun::Letters(byte)) => u64::from(is(byte)),
            _ => 0,
        };
        let after_lower = after(lower) | is_before(u8::is_ascii_lowercase);
        (upper & after_lower, upper & (after(beyond) | is_before(|byte| !byte.is_ascii())))
    }
}

impl Boundaries {
    /// Lowers the limit to `at`.
    #[inline(always)]
    fn doubt(&mut self, at: u32) {
        self.limit = self.limit.min(at);
    }

    /// A word ends before a capital that follows a small letter. What follows a letter beyond ASCII depends on more of
    /// the text.
    #[inline(always)]
    fn add_case_changes(&mut self, block: Block<'_>) {
        let (ends, undecided) = block.case_changes();
        self.starts |= ends;
        self.doubt(undecided.trailing_zeros());
    }

    /// A short run of digits at the end of an open block may be a longer one.
    #[inline(always)]
    fn doubt_short_run(&mut self, bits: Bits) {
        let open = bits.digit & last_bit(bits.end);
        let undecided = short_run_starts(bits.digit, bits.space) & (open | open >> 1);
        if undecided != 0 {
            self.doubt(undecided.trailing_zeros());
        }
    }
}

/// The runs of newlines and slashes that start with a newline after a character that is other.
fn slashes(block: Block<'_>) -> u64 {
    let Bits { newline, other, end, .. } = block.bits;
    let mut newlines = newline & after(other);
    let mut found = 0;
    while newlines != 0 {
        let first = newlines.trailing_zeros();
        let is_in = |&at: &u32| matches!(block.bytes[at as usize], b'\r' | b'\n' | b'/');
        let last = (first..end).take_while(is_in).last().unwrap_or(first);
        found |= below(last + 1) & !below(first);
        newlines &= !below(last + 1);
    }
    found
}

/// The length of a contraction with its apostrophe, if one is followed by this text.
fn contraction_len(text: &[u8], any_case: bool) -> Option<u32> {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    match *text {
        [first, ..] if matches!(fold(first), b's' | b't' | b'm' | b'd') => Some(2),
        [first, second, ..] if matches!(&[fold(first), fold(second)], b"re" | b"ve" | b"ll") => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::Shape;
    use crate::pretokenizer::automaton::Automaton;
    use crate::pretokenizer::families::{FAMILIES, HAN};
    use crate::pretokenizer::shape::KIMI_K2;

    /// The shapes of the table, each with the automaton of its pattern and the automata of all patterns that it replaces.
    static SHAPES: LazyLock<Vec<(Shape, Automaton, Vec<Automaton>)>> = LazyLock::new(|| {
        let automaton = |pattern: &str| Automaton::new(if pattern == HAN { KIMI_K2 } else { pattern });
        let automaton = |pattern: &str| automaton(pattern).expect("a pattern of the table");
        let lists: HashSet<&[&str]> = FAMILIES.iter().map(|family| family.patterns).collect();
        let shapes = lists.iter().filter_map(|patterns| {
            let (shape, pattern) = Shape::of(patterns)?;
            Some((shape, automaton(pattern), patterns.iter().map(|pattern| automaton(pattern)).collect()))
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
        for (shape, automaton, automata) in &*SHAPES {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            shape.split(automaton, text.as_bytes(), |start, end| found.push(&text[start..end]));
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

        #[test]
        fn texts_of_words(words in prop::collection::vec(
            prop::sample::select(&["hello", " world", "don't", "I'LL", " 12345", "\n\n", "  ", "\n    ", "!!\n", " \n ", "naïve ", "…", "'re", "camelCase", "HTTPServer", "ÉCOLE", "É", ";\n//", "*/\n\n", "/", "'s", " 7", "77", "777", "  1234", "²77", "中国", "「"][..]),
            0..60,
        )) {
            assert_agree(&words.concat());
        }
    }
}
