//! Common pattern shapes, matched for 64 bytes at once.
//!
//! The patterns of GPT-2 and of cl100k (GPT-4, Llama 3, Qwen) with their descendants cut text at places that a byte and
//! its nearest neighbours tell, but for a few rare constellations. So boundaries are computed as bits: one mask per class
//! of bytes, shifted and combined. A block begins where a piece begins, which makes it independent of everything before
//! it, or else inside the letters of a piece, which go on as long as letters come. Whatever cannot be decided inside the
//! block ends it early, and the automaton takes over for one piece.
//!
//! Source: the patterns themselves (see `families`); the automaton is the oracle. About one instruction per byte and
//! mask instead of a mispredicted branch per piece.

mod bits;

use super::automaton::Automaton;
use crate::scan::masks::BLOCK;
use crate::unicode::{self, utf8};
pub(crate) use bits::Alphabet;
use bits::{Bits, after, below, bit_of_bytes, highest, last_bit};

/// How a shape groups digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Each by itself.
    Single,
    /// By threes from the left.
    Threes,
    /// Whole runs, with a space before them.
    Runs,
    /// Falcon's: as runs, from which what comes first is cut of three digits of ASCII from the left, and what is before.
    RunsCutByThrees,
}

impl Digits {
    /// The digits at which pieces begin.
    #[inline(always)]
    fn starts(self, digit: u64, space: u64) -> u64 {
        match self {
            Self::Runs => digit & !after(digit | space),
            Self::Single => digit,
            Self::Threes | Self::RunsCutByThrees => {
                let third = digit & after(digit) & after(after(digit));
                let mut group = digit & !after(digit);
                let mut groups = group;
                while group != 0 {
                    group = group << 3 & third;
                    groups |= group;
                }
                if self == Self::Threes { groups } else { groups & !short_after(digit, space) }
            }
        }
    }
}

/// The beginnings of runs of less than three digits with a space before them.
#[inline(always)]
fn short_after(digit: u64, space: u64) -> u64 {
    digit & !after(digit) & after(space) & !(digit >> 1 & digit >> 2)
}

/// What a shape makes of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` and `'d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contractions {
    /// Nothing.
    None,
    /// A piece, in lower case only.
    Lower,
    /// A piece, in any case.
    Pieces,
    /// The end of a piece of letters, in any case.
    Suffixes,
}

/// What runs of characters that are neither letters nor digits nor whitespace take along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Nothing.
    None,
    /// The newlines after them.
    Newlines,
    /// The newlines and slashes after them.
    Slashes,
}

/// A pattern that can be matched by blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// cl100k's shape: letters take any one character before them along, and whitespace ends with its last newline.
    /// Otherwise GPT-2's: a space goes with what comes after it.
    pub cl100k: bool,
    pub digits: Digits,
    /// Whether digits are cut out by a pattern of their own before this one sees the text between them.
    pub digits_first: bool,
    /// For DeepSeek V3, letters take only ASCII along, and only those of ASCII do.
    pub alphabet: Alphabet,
    /// Whether a piece of letters ends where one of `A` to `Z` comes after another letter than these.
    pub cased: bool,
    pub contractions: Contractions,
    pub tail: Tail,
}

/// The shape of GPT-2's pattern.
pub(crate) const GPT2: Shape = Shape {
    cl100k: false,
    digits: Digits::Runs,
    digits_first: false,
    alphabet: Alphabet::Letters,
    cased: false,
    contractions: Contractions::Lower,
    tail: Tail::None,
};
/// The shape of cl100k's.
pub(crate) const CL100K: Shape =
    Shape { cl100k: true, digits: Digits::Threes, contractions: Contractions::Pieces, tail: Tail::Newlines, ..GPT2 };
/// The shape of Qwen 2's.
pub(crate) const QWEN2: Shape = Shape { digits: Digits::Single, ..CL100K };
/// The shape of o200k's.
pub(crate) const O200K: Shape =
    Shape { cased: true, contractions: Contractions::Suffixes, tail: Tail::Slashes, ..CL100K };

/// The shape of those that tell cases apart in Unicode's categories, which llama.cpp does not: for it letters are letters.
pub(crate) const CASED: Shape = Shape { alphabet: Alphabet::LettersButMarks, cased: false, ..O200K };

/// The shape of DeepSeek V3's.
pub(crate) const DEEPSEEK3: Shape =
    Shape { alphabet: Alphabet::DeepSeek, digits_first: true, contractions: Contractions::None, ..CL100K };

/// The shape of Kimi K2's.
pub(crate) const KIMI_K2: Shape = Shape { alphabet: Alphabet::Han, contractions: Contractions::Suffixes, ..CL100K };
/// The shape of Falcon's.
pub(crate) const FALCON: Shape = Shape {
    alphabet: Alphabet::Punctuation,
    digits: Digits::RunsCutByThrees,
    contractions: Contractions::None,
    ..GPT2
};
/// The shape of the default's, which leaves no space with numbers.
pub(crate) const DEFAULT: Shape =
    Shape { alphabet: Alphabet::PunctuationButBackquote, digits: Digits::Threes, ..FALCON };

/// How far pieces are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Up to this byte of a block.
    To(u32),
    /// To the end of the block, where the last piece goes on as long as what it ends with there.
    Inside(Run),
    /// To the end of the text.
    Text,
}

/// What a piece is that ends with the last one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Run {
    /// Letters, with the last byte of the latest.
    Letters(u8),
    Apart,
}

impl Shape {
    /// Calls `piece` with the byte range of every piece of `text`, which is canonical UTF-8. `automaton` matches the
    /// same pattern.
    #[inline]
    pub(crate) fn split(self, automaton: &Automaton, text: &[u8], piece: impl FnMut(usize, usize)) {
        match self {
            // The compiler leaves out what the most common ones do not need.
            CL100K => CL100K.split_as(automaton, text, piece),
            QWEN2 => QWEN2.split_as(automaton, text, piece),
            GPT2 => GPT2.split_as(automaton, text, piece),
            _ => self.split_as(automaton, text, piece),
        }
    }

    #[inline(always)]
    fn split_as(self, automaton: &Automaton, text: &[u8], mut piece: impl FnMut(usize, usize)) {
        let (mut begin, mut from) = (0, 0);
        // Where a block begins inside a piece, what is before it.
        let mut inside = None;
        let (mut next_cut, mut padded) = (NextCut::default(), [0; BLOCK]);
        while begin < text.len() {
            let rest = &text[begin..];
            let block = rest.first_chunk().unwrap_or_else(|| {
                padded = [0; BLOCK];
                padded[..rest.len()].copy_from_slice(rest);
                &padded
            });
            let bits = Bits::new(block, rest.len().min(BLOCK), rest.len() <= BLOCK, self.alphabet);
            let (mut starts, known) = self.starts(bits, block, inside);
            while starts != 0 {
                let to = begin + starts.trailing_zeros() as usize;
                piece(from, to);
                from = to;
                starts &= starts - 1;
            }
            match known {
                Known::Text => return piece(from, text.len()),
                Known::Inside(run) => (begin, inside) = (begin + bits.end as usize, Some(run)),
                Known::To(limit) => {
                    let run = if inside == Some(Run::Apart) { bits.apart } else { bits.letter };
                    let len = run.trailing_ones();
                    let is_over = bits.end == 0 && !self.alphabet.goes_on(inside == Some(Run::Apart));
                    // A suffix belongs to the letters before it.
                    let has_suffix = || self.contractions == Contractions::Suffixes && bits.apostrophe >> len & 1 != 0;
                    let to = if from < begin && (len < limit && !has_suffix() || is_over) {
                        // The run ends here, whatever comes after it.
                        Some(begin + len as usize)
                    } else if from < begin || from == begin && inside.is_none() {
                        // Nothing was certain: one piece the long way.
                        Some(self.piece_end(automaton, text, from, &mut next_cut))
                    } else {
                        None
                    };
                    if let Some(to) = to {
                        piece(from, to);
                        from = to;
                    }
                    (begin, inside) = (from, None);
                }
            }
        }
    }

    /// Where the piece that begins at `begin` ends.
    #[inline(never)]
    fn piece_end(self, automaton: &Automaton, text: &[u8], begin: usize, next_cut: &mut NextCut) -> usize {
        if !self.digits_first && !self.alphabet.cuts_first() {
            return automaton.piece_end(text, begin, text.len());
        }
        let next = next_cut.from(self, text, begin);
        if next > begin {
            let number_end = || self.number_end(&text[..next], begin);
            return number_end().unwrap_or_else(|| automaton.piece_end(text, begin, next));
        }
        let (cut, len) = self.cut(text, begin).unwrap_or((Cut::Number, 1));
        let most = match cut {
            Cut::Apart => return automaton.piece_end(text, begin, next_cut.run_end(self, text, begin)),
            Cut::Number if self.digits == Digits::Single => 1,
            Cut::Number => 3,
        };
        let mut at = begin + len;
        for _ in 1..most {
            match self.cut(text, at) {
                Some((Cut::Number, len)) => at += len,
                _ => break,
            }
        }
        at
    }

    /// Of a character at `at` that is cut out before the pattern sees the text, what it is, and its length.
    fn cut(self, text: &[u8], at: usize) -> Option<(Cut, usize)> {
        let (code_point, len) = utf8::decode_valid(text, at)?;
        match self.digits_first && unicode::flags(code_point).is_number() {
            true => Some((Cut::Number, len)),
            false => (self.alphabet.cuts_first() && self.alphabet.is_cut(code_point)).then_some((Cut::Apart, len)),
        }
    }

    /// Where the piece that begins at `begin` ends, if that is a number, or a space before one, that is cut after the
    /// pattern has seen it. The automaton would go through the whole number for each of its pieces.
    fn number_end(self, text: &[u8], begin: usize) -> Option<usize> {
        let number_len = |at| {
            let (code_point, len) = utf8::decode_valid(text, at)?;
            unicode::flags(code_point).is_number().then_some(len)
        };
        let is_three =
            |at: usize| text[at..].first_chunk::<3>().is_some_and(|three| three.iter().all(u8::is_ascii_digit));
        let mut at = begin + usize::from(text[begin] == b' ');
        let has_space = at > begin;
        let keeps_space = self.digits == Digits::RunsCutByThrees;
        if self.digits_first || number_len(at).is_none() {
            return None;
        }
        if has_space && (!keeps_space || is_three(at)) {
            return Some(at);
        }
        if is_three(at) {
            return Some(at + 3);
        }
        while let Some(len) = number_len(at).filter(|_| !is_three(at)) {
            at += len;
        }
        Some(at)
    }

    /// The bytes at which pieces begin, as far as that is certain, and how far it is. A piece begins at the first byte, or
    /// else the block is `inside` one.
    #[inline(always)]
    fn starts(self, bits: Bits, block: &[u8; BLOCK], inside: Option<Run>) -> (u64, Known) {
        let Bits { letter, digit, space, blank, newline, apart, mut other, apostrophe, inner, end, is_closed } = bits;
        let white = blank | newline;
        let before = if let Some(Run::Letters(byte)) = inside { Some(byte) } else { None };
        let in_letters = u64::from(before.is_some());
        let takes_newline = if self.tail == Tail::None { white } else { white | other };
        let mut tail = 0;
        if self.tail == Tail::Slashes {
            tail = slashes(block, newline & after(other), end);
            // Slashes in it are like nothing that comes before them.
            other &= !tail;
        }
        // Others begin a piece, unless others or a space are before them.
        let other_starts = other & !inner & !after(other | space);
        // The last of several whitespace characters begins a piece if the pattern sees something after it. At the end of
        // an open block that does not show.
        let cut_digits = if self.digits_first { digit } else { 0 };
        let ending = white | cut_digits | if self.alphabet.cuts_first() { apart } else { 0 };
        let last_white = white & after(white) & (below(end) & !ending) >> 1;
        let mut limit = if !is_closed && white & last_bit(end) != 0 { end - 1 } else { end };
        let mut starts = other_starts | self.digits.starts(digit, space);
        if self.digits == Digits::RunsCutByThrees && !is_closed {
            // Whether a short run goes on behind the block does not show.
            let open = digit & last_bit(end);
            let undecided = short_after(digit, space) & (open | open >> 1);
            if undecided != 0 {
                limit = limit.min(undecided.trailing_zeros());
            }
        }
        let in_apart = u64::from(inside == Some(Run::Apart));
        starts |= apart & !inner & !(after(apart) | in_apart);
        // Whether the last piece takes no letters along but those of ASCII.
        let mut ends_in_ascii = false;
        if self.cl100k {
            let ascii = if self.alphabet == Alphabet::DeepSeek { !bit_of_bytes::<7>(block) } else { u64::MAX };
            let mut alone = other_starts & ascii;
            for _ in 1..4 {
                alone |= after(alone) & inner;
            }
            let joined = after(alone) & ascii;
            starts |= letter & !inner & !(after(letter | blank) | joined | in_letters);
            if self.alphabet == Alphabet::DeepSeek {
                // With another character before them, letters end with those of ASCII. Adding a run's first bit moves it to
                // where the run ends.
                let (sum, overflow) = (letter & ascii).overflowing_add(letter & joined);
                let ends = sum & !(letter & ascii);
                starts |= ends & letter & !inner;
                ends_in_ascii = overflow || ends & !below(end) != 0;
            }
            starts |= newline & !after(takes_newline) & !tail;
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
            starts |= letter & !inner & !(after(letter | space) | in_letters);
            starts |= white & !after(white) | last_white;
        }
        if self.cased {
            let (ends, unsure) = case_changes(block, letter, before);
            starts |= ends;
            limit = limit.min(unsure.trailing_zeros());
        }
        let mut candidates = apostrophe & other_starts;
        if self.contractions == Contractions::Suffixes {
            candidates &= after(letter) | in_letters;
            if !is_closed && candidates & last_bit(end) != 0 {
                limit = limit.min(end - 1);
            }
        }
        candidates &= letter >> 1;
        if candidates != 0 && self.contractions != Contractions::None {
            limit = limit.min(self.contracted(block, candidates, bits, &mut starts));
        }
        let known = match limit == end {
            true if is_closed => Known::Text,
            true if letter & last_bit(end) != 0 && !ends_in_ascii => {
                Known::Inside(Run::Letters(block[end as usize - 1]))
            }
            true if apart & last_bit(end) != 0 => Known::Inside(Run::Apart),
            _ => Known::To(limit),
        };
        (starts & !u64::from(inside.is_none()) & below(limit), known)
    }

    /// Corrects the pieces at apostrophes that begin a contraction; answers how far that is certain.
    fn contracted(self, block: &[u8; BLOCK], mut candidates: u64, bits: Bits, starts: &mut u64) -> u32 {
        // A suffix is a part of the piece before it, another contraction begins a piece.
        let is_suffix = self.contractions == Contractions::Suffixes;
        let mut last = 0;
        while candidates != 0 {
            let at = candidates.trailing_zeros();
            candidates &= candidates - 1;
            let certain = if is_suffix { at } else { at + 1 };
            if at + 3 >= BLOCK as u32 {
                return certain;
            }
            let found = contraction(&block[at as usize + 1..], self.contractions != Contractions::Lower);
            // Behind a suffix no other one comes.
            let Some(len) = found.filter(|_| !is_suffix || at == 0 || at != last) else { continue };
            last = at + len;
            if last == bits.end && !bits.is_closed {
                return certain;
            }
            *starts &= !(below(last) & !below(certain));
            *starts |= bits.letter & 1 << last;
        }
        BLOCK as u32
    }
}

/// The newlines and slashes in a row, from each of `newlines` on.
fn slashes(block: &[u8; BLOCK], mut newlines: u64, end: u32) -> u64 {
    let mut found = 0;
    while newlines != 0 {
        let first = newlines.trailing_zeros();
        let is_in = |&at: &u32| matches!(block[at as usize], b'\r' | b'\n' | b'/');
        let last = (first..end).take_while(is_in).last().unwrap_or(first);
        found |= below(last + 1) & !below(first);
        newlines &= !below(last + 1);
    }
    found
}

/// The upper-case letters of ASCII that come after lower-case ones, and those that come after a letter beyond ASCII, where
/// more of the text has to be seen.
#[inline(always)]
fn case_changes(block: &[u8; BLOCK], letter: u64, before: Option<u8>) -> (u64, u64) {
    let (lower_half, ascii) = (bit_of_bytes::<5>(block), !bit_of_bytes::<7>(block));
    let (upper, lower, beyond) = (letter & ascii & !lower_half, letter & ascii & lower_half, letter & !ascii);
    let is_before = |is: fn(&u8) -> bool| u64::from(before.as_ref().is_some_and(is));
    let after_lower = after(lower) | is_before(u8::is_ascii_lowercase);
    (upper & after_lower, upper & (after(beyond) | is_before(|byte| !byte.is_ascii())))
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

/// What is cut out before the pattern sees the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Number,
    Apart,
}

/// What is cut out next. Linear in the text for all questions together, which go upwards.
#[derive(Default)]
struct NextCut {
    /// Where the first character that is cut out is from the last place on that was asked for.
    next: usize,
    /// Where the last run ends that was asked for.
    run_end: usize,
}

impl NextCut {
    /// The first one from `begin` on, or else the end.
    fn from(&mut self, shape: Shape, text: &[u8], begin: usize) -> usize {
        self.next = self.next.max(begin);
        while self.next < text.len() && shape.cut(text, self.next).is_none() {
            self.next += utf8::sequence_len(text[self.next]);
        }
        self.next
    }

    /// Where the run ends that the character at `begin` is in, which is set apart.
    fn run_end(&mut self, shape: Shape, text: &[u8], begin: usize) -> usize {
        self.run_end = self.run_end.max(begin);
        while let Some((Cut::Apart, len)) = shape.cut(text, self.run_end) {
            self.run_end += len;
        }
        self.run_end
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::Shape;
    use crate::pretokenizer::automaton::Automaton;
    use crate::pretokenizer::families::{FAMILIES, HAN};
    use crate::pretokenizer::splitter::{KIMI_K2, shape};
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Shapes of the table, each with the automaton of its pattern and those of all patterns that it stands for.
    static SHAPES: LazyLock<Vec<(Shape, Automaton, Vec<Automaton>)>> = LazyLock::new(|| {
        let automaton = |pattern: &str| Automaton::new(if pattern == HAN { KIMI_K2 } else { pattern });
        let automaton = |pattern: &str| automaton(pattern).expect("a pattern of the table");
        let lists: HashSet<&[&str]> = FAMILIES.iter().map(|family| family.patterns).collect();
        let shapes = lists.iter().filter_map(|patterns| {
            let (shape, pattern) = shape(patterns)?;
            Some((shape, automaton(pattern), patterns.iter().map(|pattern| automaton(pattern)).collect()))
        });
        shapes.collect()
    });

    fn descend(automata: &[Automaton], text: &[u8], begin: usize, end: usize, piece: &mut dyn FnMut(usize, usize)) {
        match automata {
            [] => piece(begin, end),
            [first, rest @ ..] => first.split(text, begin, end, |begin, end| descend(rest, text, begin, end, piece)),
        }
    }

    fn assert_agree(text: &str) {
        for (shape, automaton, automata) in &*SHAPES {
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            shape.split(automaton, text.as_bytes(), |begin, end| found.push(&text[begin..end]));
            descend(automata, text.as_bytes(), 0, text.len(), &mut |begin, end| expected.push(&text[begin..end]));
            assert_eq!(found, expected, "{shape:?}");
        }
    }

    /// One character of each class, and what contractions are made of.
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
        fn long_texts(parts in prop::collection::vec(
            (prop::sample::select(&ALPHABET[..]), prop_oneof![12 => 1..9_usize, 1 => 50..70_usize]),
            0..120,
        )) {
            assert_agree(&parts.iter().map(|(char, count)| char.repeat(*count)).collect::<String>());
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
