//! Two common pattern shapes, matched for 64 bytes at once.
//!
//! The patterns of GPT-2 and of cl100k (GPT-4, Llama 3, Qwen) cut text at places that a byte and its nearest neighbours
//! tell, but for a few rare constellations. So boundaries are computed as bits: one mask per class of bytes, shifted and
//! combined. A block begins where a piece begins, which makes it independent of everything before it, or else inside the
//! letters of a piece, which go on as long as letters come. Whatever cannot be decided inside the block ends it early, and
//! the automaton takes over for one piece.
//!
//! Source: the patterns themselves (see `families`); the automaton is the oracle. About one instruction per byte and
//! mask instead of a mispredicted branch per piece.

use super::automaton::Automaton;
use crate::unicode::masks::{BLOCK, Masks};
use crate::unicode::{self, Flags, rows, utf8};

/// How a shape groups digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Each by itself.
    Single,
    /// By threes from the left.
    Threes,
    /// Whole runs, with a space before them.
    Runs,
}

/// A pattern that can be matched by blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// cl100k's shape: letters take any one character before them along, runs of other characters the newlines after
    /// them, and whitespace ends with its last newline. Otherwise GPT-2's: a space goes with what comes after it.
    pub cl100k: bool,
    pub digits: Digits,
}

impl Shape {
    /// Calls `piece` with the byte range of every piece of `text`, which is canonical UTF-8. `automaton` matches the
    /// same pattern.
    #[inline]
    pub(crate) fn split(self, automaton: &Automaton, text: &[u8], mut piece: impl FnMut(usize, usize)) {
        let (mut begin, mut from, mut in_letters) = (0, 0, false);
        while begin < text.len() {
            let rest = &text[begin..];
            let bits = match rest.first_chunk::<BLOCK>() {
                Some(block) => Bits::new(block, BLOCK, rest.len() == BLOCK),
                None => {
                    let mut block = [0; BLOCK];
                    block[..rest.len()].copy_from_slice(rest);
                    Bits::new(&block, rest.len(), true)
                }
            };
            let (mut starts, known) = self.starts(bits, rest, in_letters);
            while starts != 0 {
                let to = begin + starts.trailing_zeros() as usize;
                piece(from, to);
                from = to;
                starts &= starts - 1;
            }
            match known {
                Known::Text => return piece(from, text.len()),
                Known::Letters => (begin, in_letters) = (begin + bits.end as usize, true),
                Known::Starts => {
                    if from < begin {
                        // The letters end here, whatever comes after them.
                        let to = begin + bits.letter.trailing_ones() as usize;
                        piece(from, to);
                        from = to;
                    } else if from == begin && !in_letters {
                        // Nothing was certain: one piece the long way.
                        from = automaton.piece_end(text, begin, text.len());
                        piece(begin, from);
                    }
                    (begin, in_letters) = (from, false);
                }
            }
        }
    }

    /// The bytes at which pieces begin, as far as that is certain, and how far it is. A piece begins at the first byte, or
    /// else a letter is before it.
    #[inline]
    fn starts(self, bits: Bits, text: &[u8], in_letters: bool) -> (u64, Known) {
        let Bits { letter, digit, space, blank, newline, other, apostrophe, inner, end, is_closed } = bits;
        let white = blank | newline;
        // Others begin a piece, unless others or a space are before them.
        let other_starts = other & !inner & !after(other | space);
        let digit_starts = match self.digits {
            Digits::Runs => digit & !after(digit | space),
            Digits::Single => digit,
            Digits::Threes => {
                let third = digit & after(digit) & after(after(digit));
                let mut group = digit & !after(digit);
                let mut groups = group;
                while group != 0 {
                    group = group << 3 & third;
                    groups |= group;
                }
                groups
            }
        };
        // The last of several whitespace characters begins a piece if something comes after it. At the end of an open
        // block that does not show.
        let last_white = white & after(white) & (below(end) & !white) >> 1;
        let mut limit = if !is_closed && white & last_bit(end) != 0 { end - 1 } else { end };
        let mut starts = other_starts | digit_starts;
        if self.cl100k {
            let mut alone = other_starts;
            for _ in 1..4 {
                alone |= after(alone) & inner;
            }
            starts |= letter & !inner & !(after(letter | blank | alone) | u64::from(in_letters));
            starts |= newline & !after(other | white);
            // A blank begins a piece after a newline, if that is the last one of its run. Adding a run's first bit moves
            // it to where the run ends.
            let after_newline = blank & after(newline);
            let (sum, overflow) = blank.overflowing_add(after_newline);
            let ends = sum & !blank;
            let open_ends = if is_closed { 0 } else { ends & !below(end) };
            let undecided = ends & newline | open_ends;
            if undecided != 0 {
                limit = limit.min(highest(after_newline & below(undecided.trailing_zeros())));
            } else if overflow && !is_closed {
                limit = limit.min(highest(after_newline));
            }
            starts |= blank & (!after(white) | after_newline | last_white);
        } else {
            starts |= letter & !inner & !(after(letter | space) | u64::from(in_letters));
            starts |= white & !after(white) | last_white;
        }
        let candidates = apostrophe & other_starts & letter >> 1;
        if candidates != 0 {
            limit = limit.min(self.contractions(text, candidates, bits, &mut starts));
        }
        let known = match limit == end {
            true if is_closed => Known::Text,
            true if letter & last_bit(end) != 0 => Known::Letters,
            _ => Known::Starts,
        };
        let first = u64::from(!in_letters);
        (starts & !first & below(limit), known)
    }

    /// Corrects the pieces after apostrophes that begin a contraction; answers how far that is certain.
    fn contractions(self, text: &[u8], mut candidates: u64, bits: Bits, starts: &mut u64) -> u32 {
        while candidates != 0 {
            let at = candidates.trailing_zeros();
            candidates &= candidates - 1;
            if at + 3 >= BLOCK as u32 {
                return at + 1;
            }
            if let Some(len) = contraction(&text[at as usize + 1..], self.cl100k) {
                if at + len == bits.end && !bits.is_closed {
                    return at + 1;
                }
                *starts &= !(1 << (at + 1));
                *starts |= bits.letter & 1 << (at + len);
            }
        }
        BLOCK as u32
    }
}

/// What is known behind the last piece that begins in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Nothing.
    Starts,
    /// It goes on to the end of the block at least, where it has come to its letters: it ends with the last of them.
    Letters,
    /// It is the text's last one.
    Text,
}

/// The length of a contraction with its apostrophe, given what follows the apostrophe.
fn contraction(after: &[u8], any_case: bool) -> Option<u32> {
    let fold = |byte: u8| if any_case { byte.to_ascii_lowercase() } else { byte };
    match *after {
        [first, ..] if matches!(fold(first), b's' | b't' | b'm' | b'd') => Some(2),
        [first, second, ..] if matches!(&[fold(first), fold(second)], b"re" | b"ve" | b"ll") => Some(3),
        _ => None,
    }
}

/// The bytes that have one of `mask` before them; nothing is before the first.
#[inline(always)]
fn after(mask: u64) -> u64 {
    mask << 1
}

/// The lowest `count` bits.
#[inline(always)]
fn below(count: u32) -> u64 {
    if count >= u64::BITS { u64::MAX } else { (1 << count) - 1 }
}

/// The last of the lowest `count` bits.
#[inline(always)]
fn last_bit(count: u32) -> u64 {
    if count == 0 { 0 } else { 1 << (count - 1) }
}

/// The place of the highest bit.
fn highest(mask: u64) -> u32 {
    mask.checked_ilog2().unwrap_or(0)
}

/// Whether the character beyond ASCII that begins with these bytes is a letter, and whether it is neither that nor a
/// number nor whitespace.
#[inline(always)]
fn classes(bytes: [u8; 4]) -> (bool, bool) {
    if let Some((row, bit)) = rows::row(bytes) {
        return (row.letter >> bit & 1 != 0, row.other >> bit & 1 != 0);
    }
    let flags = utf8::decode_valid(&bytes, 0).map_or(Flags::UNDEFINED, |(code_point, _)| unicode::flags(code_point));
    (flags.is_letter(), !(flags.is_letter() || flags.is_number() || flags.is_whitespace()))
}

/// What the bytes of a block are.
#[derive(Clone, Copy)]
struct Bits {
    letter: u64,
    digit: u64,
    space: u64,
    /// Whitespace but for newlines.
    blank: u64,
    newline: u64,
    /// Everything else.
    other: u64,
    apostrophe: u64,
    /// Bytes that do not begin a character.
    inner: u64,
    /// From this byte on nothing is known.
    end: u32,
    /// Whether the text ends there.
    is_closed: bool,
}

impl Bits {
    /// What the first `len` bytes of a block are; `is_last` tells whether the text ends after them.
    #[inline]
    fn new(block: &[u8; BLOCK], len: usize, is_last: bool) -> Self {
        let Masks { letter, digit, space, blank, newline, apostrophe, lead, letter_lead, inner } = Masks::new(block);
        let end = len as u32;
        let blank = blank | space;
        let other = below(end) & !(letter | digit | blank | newline | lead | inner);
        let mut bits = Self { letter, digit, space, blank, newline, other, apostrophe, inner, end, is_closed: is_last };
        if lead != 0 {
            bits.add_beyond(block, lead, letter_lead);
        }
        bits
    }

    /// Adds the characters beyond ASCII, which begin at `leads`; `letter` are those of them that are letters whatever
    /// follows. Digits, whitespace and a character that the block cuts end what is known.
    fn add_beyond(&mut self, block: &[u8; BLOCK], leads: u64, mut letter: u64) {
        let mut padded = [0; BLOCK + 4];
        padded[..BLOCK].copy_from_slice(block);
        let (mut rest, mut other) = (leads & !letter, 0);
        while rest != 0 {
            let at = rest.trailing_zeros() as usize % BLOCK;
            let (is_letter, is_other) = classes([padded[at], padded[at + 1], padded[at + 2], padded[at + 3]]);
            letter |= u64::from(is_letter) << at;
            other |= u64::from(is_other) << at;
            rest &= rest - 1;
        }
        let last = leads & !below(BLOCK as u32 - 3);
        let is_cut = |at: u32| at as usize + utf8::sequence_len(block[at as usize]) > BLOCK;
        let cut = (BLOCK as u32 - 3..BLOCK as u32).find(|&at| last >> at & 1 != 0 && is_cut(at));
        let unknown = leads & !(letter | other) | cut.map_or(0, |at| 1 << at);
        for _ in 1..4 {
            letter |= after(letter) & self.inner;
            other |= after(other) & self.inner;
        }
        self.letter |= letter;
        self.other |= other;
        if unknown != 0 {
            self.cut(unknown.trailing_zeros());
        }
    }

    /// Forgets everything from byte `end` on.
    fn cut(&mut self, end: u32) {
        let known = below(end);
        for mask in [
            &mut self.letter,
            &mut self.digit,
            &mut self.space,
            &mut self.blank,
            &mut self.newline,
            &mut self.other,
            &mut self.apostrophe,
            &mut self.inner,
        ] {
            *mask &= known;
        }
        (self.end, self.is_closed) = (end, false);
    }
}

#[cfg(test)]
mod tests {
    use super::{Digits, Shape};
    use crate::pretokenizer::automaton::Automaton;
    use crate::pretokenizer::families::{GPT2, LLAMA3, QWEN2};
    use proptest::prelude::*;

    const SHAPES: [(Shape, &str); 3] = [
        (Shape { cl100k: true, digits: Digits::Threes }, LLAMA3),
        (Shape { cl100k: true, digits: Digits::Single }, QWEN2),
        (Shape { cl100k: false, digits: Digits::Runs }, GPT2),
    ];

    fn assert_agree(text: &str) {
        for (shape, pattern) in SHAPES {
            let automaton = Automaton::new(pattern).expect("a pattern of the table");
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            shape.split(&automaton, text.as_bytes(), |begin, end| found.push(&text[begin..end]));
            automaton.split(text.as_bytes(), 0, text.len(), |begin, end| expected.push(&text[begin..end]));
            assert_eq!(found, expected, "{shape:?}");
        }
    }

    /// One character of each class, and what contractions are made of.
    const ALPHABET: [&str; 16] =
        ["a", "s", "L", " ", "\t", "\n", "\r", "'", "!", "7", "é", "中", "\u{301}", "\u{A0}", "²", "”"];

    #[test]
    fn all_short_texts() {
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            texts = texts.iter().flat_map(|text| ALPHABET.map(|char| format!("{text}{char}"))).collect();
            texts.iter().for_each(|text| assert_agree(text));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn long_texts(parts in prop::collection::vec((prop::sample::select(&ALPHABET[..]), 1..9_usize), 0..120)) {
            assert_agree(&parts.iter().map(|(char, count)| char.repeat(*count)).collect::<String>());
        }

        #[test]
        fn texts_of_words(words in prop::collection::vec(
            prop::sample::select(&["hello", " world", "don't", "I'LL", " 12345", "\n\n", "  ", "\n    ", "!!\n", " \n ", "naïve ", "…", "'re"][..]),
            0..60,
        )) {
            assert_agree(&words.concat());
        }
    }
}
