//! Where a text can be cut before merging: between characters that stand side by side in no symbol.
//!
//! A merge joins two neighbouring symbols into one whose text contains the place where they met. So where no symbol
//! contains two characters side by side, no merge ever crosses the place between them, and what is left of it and what
//! is right of it merge independently. Words of most scripts end at such places, and so do most words inside a run of
//! Chinese, which has no spaces.
//!
//! Pairs of ASCII characters are known exactly, but that letters count as joined to each other if any two are. Of 64
//! characters the classes are found at once, and only pairs of classes of which some characters join and some do not are
//! looked at one by one. Other pairs are hashed into a bit table: a collision only leaves a text uncut that could have
//! been cut. O(1) for a pair.

use crate::lookup::hash::Seed;
use crate::scan::masks::{ASCII_CLASSES, BLOCK, Masks, spaced_out};
use crate::unicode::utf8;

/// Bits per pair in the hashed table; a power of two of them finds one pair in eight by accident.
const BITS_PER_PAIR: usize = 8;

/// `▁`, which stands for a space.
const ESCAPED_SPACE: Char = 0x0081_96E2;

/// A character as the up to four bytes that it is made of, the first lowest.
pub(crate) type Char = u32;

/// The bits that ASCII characters do not have.
const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
/// By length, the bytes of a character among four; of four bytes it has all.
const MASKS: [u32; 4] = [u32::MAX, 0xFF, 0xFFFF, 0x00FF_FFFF];
/// The letters among the characters from U+0040 on.
const LETTERS: u64 = ((1 << 26) - 1) << (b'A' - 64) | ((1 << 26) - 1) << (b'a' - 64);

/// For each class and each class after it all bits or none.
type ByClass = [[u64; ASCII_CLASSES]; ASCII_CLASSES];

/// Which characters stand side by side in some symbol.
#[derive(Debug)]
pub(crate) struct Junctions {
    /// For each ASCII character a bit for each ASCII character that comes after it.
    ascii: Box<[[u64; 2]; 128]>,
    /// By class of an ASCII character, for each class after it whether no two such characters join: all bits or none.
    apart: ByClass,
    /// The same for classes of which some characters join and some do not.
    mixed: ByClass,
    /// Other pairs, by hash.
    pairs: Vec<u64>,
    mask: usize,
    /// By the last byte before and the first byte after: places where a symbol has only part of a character, if there
    /// are any.
    parts: Option<Box<[[u64; 4]; 256]>>,
    seed: Seed,
}

/// The bytes of a character, four at most.
#[inline]
pub(crate) fn char_of(bytes: &[u8]) -> Char {
    bytes.iter().rev().fold(0, |char, &byte| char << 8 | u32::from(byte))
}

/// The character that `char` stands for.
#[inline]
fn unescaped(char: Char, escaped_spaces: bool) -> Char {
    if escaped_spaces && char == ESCAPED_SPACE { u32::from(b' ') } else { char }
}

/// The character that a text begins with, and its length.
#[inline(always)]
fn next_char(text: &[u8], escaped_spaces: bool) -> (Char, usize) {
    let (char, len) = match text.first_chunk() {
        Some(bytes) => {
            let len = utf8::sequence_len(bytes[0]);
            (u32::from_le_bytes(*bytes) & MASKS[len % MASKS.len()], len)
        }
        None => {
            let len = text.first().map_or(0, |&lead| utf8::sequence_len(lead).min(text.len()));
            (char_of(&text[..len]), len)
        }
    };
    (unescaped(char, escaped_spaces), len)
}

impl Junctions {
    /// Where the first part of `text` ends.
    pub(crate) fn first_part(&self, text: &[u8], escaped_spaces: bool) -> usize {
        let mut first = None;
        // The rest is short: callers hand over a window.
        self.split(text, 0, text.len(), escaped_spaces, |_, end| _ = first.get_or_insert(end));
        first.unwrap_or(text.len())
    }

    /// Calls `part` with the byte range of every part of `text[begin..end]` that merges by itself. Characters are told
    /// by their lead bytes; `escaped_spaces` is as in [`Pairs::add_characters`].
    #[inline]
    pub(crate) fn split(
        &self,
        text: &[u8],
        begin: usize,
        end: usize,
        escaped_spaces: bool,
        mut part: impl FnMut(usize, usize),
    ) {
        let text = &text[..end];
        let mut from = begin;
        let (mut before, len) = next_char(&text[begin..], escaped_spaces);
        let mut at = begin + len;
        while at < end {
            // A space may be an escaped one.
            if before < 0x80 && text[at - 1] < 0x80 {
                let base = at - 1;
                let is_short = text[at..].first_chunk().is_none_or(|next| u64::from_le_bytes(*next) & HIGH_BITS != 0);
                let (mut cuts, len) = if is_short { self.few_cuts(&text[base..]) } else { self.cuts(&text[base..]) };
                while cuts != 0 {
                    let cut = base + cuts.trailing_zeros() as usize;
                    part(from, cut);
                    from = cut;
                    cuts &= cuts - 1;
                }
                at = base + len;
                before = text[at - 1].into();
            }
            let (char, len) = next_char(&text[at..], escaped_spaces);
            if len > 0 && !self.meet(before, char) && !self.is_crossed(text[at - 1], text[at]) {
                part(from, at);
                from = at;
            }
            (before, at) = (char, at + len);
        }
        if from < end {
            part(from, end);
        }
    }

    /// As [`Junctions::cuts`], for less than nine characters.
    #[inline(always)]
    fn few_cuts(&self, text: &[u8]) -> (u64, usize) {
        let (mut cuts, mut len) = (0, 1);
        for pair in text.windows(2).take_while(|pair| pair[1] < 0x80) {
            cuts |= u64::from(!self.ascii_meet(pair[0], pair[1])) << len;
            len += 1;
        }
        (cuts, len)
    }

    /// The places to cut in the ASCII characters that `text` begins with, one at least and a block at most, as bits, and
    /// how many characters these are.
    #[inline(always)]
    fn cuts(&self, text: &[u8]) -> (u64, usize) {
        let masks = Masks::new(spaced_out(text, &mut [0; BLOCK]));
        let len = (masks.beyond_ascii().trailing_zeros() as usize).min(text.len());
        let classes = masks.ascii_classes();
        let (mut cuts, mut unsure) = (0, 0);
        for ((class, apart), mixed) in classes.iter().zip(&self.apart).zip(&self.mixed) {
            let any_of = |selected: &[u64; ASCII_CLASSES]| {
                classes.iter().zip(selected).fold(0, |all, (class, selected)| all | class & selected)
            };
            cuts |= class << 1 & any_of(apart);
            unsure |= class << 1 & any_of(mixed);
        }
        let known = u64::MAX >> (BLOCK - len);
        unsure &= known;
        while unsure != 0 {
            let at = unsure.trailing_zeros() as usize;
            cuts |= u64::from(!self.ascii_meet(text[at - 1], text[at])) << at;
            unsure &= unsure - 1;
        }
        (cuts & known, len)
    }

    /// As [`Junctions::meet`] for ASCII characters.
    #[inline(always)]
    fn ascii_meet(&self, left: u8, right: u8) -> bool {
        self.ascii[usize::from(left) % 128][usize::from(right / 64) % 2] >> (right % 64) & 1 != 0
    }

    /// Whether a symbol may contain `left` followed by `right`, both whole.
    #[inline]
    fn meet(&self, left: Char, right: Char) -> bool {
        if left | right < 0x80 {
            return self.ascii_meet(left as u8, right as u8);
        }
        let hash = self.seed.hash_pair(left, right) as usize & self.mask;
        self.pairs.get(hash / 64).is_some_and(|bits| bits >> (hash % 64) & 1 != 0)
    }

    /// Whether a symbol may contain a part of one character and some of another, where these bytes meet.
    #[inline]
    pub(crate) fn is_crossed(&self, last: u8, first: u8) -> bool {
        let joined =
            |parts: &[[u64; 4]; 256]| parts[usize::from(last)][usize::from(first / 64)] >> (first % 64) & 1 != 0;
        self.parts.as_deref().is_some_and(joined)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.ascii)
            + self.parts.as_deref().map_or(0, size_of_val)
            + self.pairs.capacity() * size_of::<u64>()
    }
}

/// Pairs while they are collected from the texts of symbols.
#[derive(Debug)]
pub(crate) struct Pairs {
    ascii: Box<[[u64; 2]; 128]>,
    others: Vec<(Char, Char)>,
    parts: Box<[[u64; 4]; 256]>,
}

impl Default for Pairs {
    fn default() -> Self {
        Self { ascii: Box::new([[0; 2]; 128]), others: Vec::new(), parts: Box::new([[0; 4]; 256]) }
    }
}

impl Pairs {
    /// Adds the pairs inside a symbol that begins as characters, which its lead bytes tell. With `escaped_spaces` the
    /// character `▁` counts as a space.
    pub(crate) fn add_characters(&mut self, text: &[u8], escaped_spaces: bool) {
        let (mut at, mut before) = (0, None);
        while at < text.len() {
            let end = text.len().min(at + utf8::sequence_len(text[at]));
            let char = unescaped(char_of(&text[at..end]), escaped_spaces);
            if let Some(before) = before.replace(char) {
                self.add(before, char);
            }
            at = end;
        }
    }

    /// Adds the pairs inside a symbol that begins as bytes, for text of canonical UTF-8: the symbol may begin and end
    /// inside a character.
    pub(crate) fn add_bytes(&mut self, text: &[u8]) {
        if text.is_ascii() {
            return text.windows(2).for_each(|pair| self.add(pair[0].into(), pair[1].into()));
        }
        let is_inner = |byte: u8| byte & 0xC0 == 0x80;
        let mut at = text.iter().position(|&byte| !is_inner(byte)).unwrap_or(text.len());
        let mut before = 0..at;
        while at < text.len() {
            let len = text[at + 1..].iter().take_while(|&&byte| is_inner(byte)).count() + 1;
            if at > 0 {
                let is_whole = before.start > 0 || !is_inner(text[0]);
                if is_whole && len == utf8::sequence_len(text[at]) && before.len() <= 4 {
                    self.add(char_of(&text[before.clone()]), char_of(&text[at..at + len]));
                } else {
                    self.add_part(text[at - 1], text[at]);
                }
            }
            before = at..at + len;
            at += len;
        }
    }

    fn add(&mut self, left: Char, right: Char) {
        if left < 0x80 && right < 0x80 {
            self.ascii[left as usize][right as usize / 64] |= 1 << (right % 64);
        } else {
            self.others.push((left, right));
        }
    }

    fn add_part(&mut self, last: u8, first: u8) {
        self.parts[usize::from(last)][usize::from(first / 64)] |= 1 << (first % 64);
        if last < 0x80 && first < 0x80 {
            self.ascii[usize::from(last)][usize::from(first / 64)] |= 1 << (first % 64);
        }
    }

    /// The pairs as a table.
    pub(crate) fn finish(mut self) -> Junctions {
        let seed = Seed::default();
        // Letters stand side by side so often that it is not worth looking at each two.
        let mut letters = self.ascii.iter().zip(0_u8..).filter(|(_, byte)| byte.is_ascii_alphabetic());
        if letters.any(|(row, _)| row[1] & LETTERS != 0) {
            for letter in (b'A'..=b'Z').chain(b'a'..=b'z') {
                self.ascii[usize::from(letter)][1] |= LETTERS;
            }
        }
        let bits = (self.others.len() * BITS_PER_PAIR).next_power_of_two().max(64);
        let mut pairs = vec![0; bits / 64];
        for (left, right) in self.others {
            let hash = seed.hash_pair(left, right) as usize & (bits - 1);
            pairs[hash / 64] |= 1 << (hash % 64);
        }
        let (apart, mixed) = by_class(&self.ascii);
        let parts = Some(self.parts).filter(|parts| parts.iter().flatten().any(|&bits| bits != 0));
        Junctions { ascii: self.ascii, apart, mixed, pairs, mask: bits - 1, parts, seed }
    }
}

/// [`Junctions::apart`] and [`Junctions::mixed`] for these pairs.
fn by_class(ascii: &[[u64; 2]; 128]) -> (ByClass, ByClass) {
    let halves = [0, BLOCK].map(|first| Masks::new(&std::array::from_fn(|at| (first + at) as u8)).ascii_classes());
    let (mut apart, mut mixed) = (ByClass::default(), ByClass::default());
    for left in 0..ASCII_CLASSES {
        for right in 0..ASCII_CLASSES {
            let (mut joined, mut pairs) = (0, 0);
            for (byte, row) in ascii.iter().enumerate() {
                if halves[byte / BLOCK][left] >> (byte % BLOCK) & 1 != 0 {
                    joined += (row[0] & halves[0][right]).count_ones() + (row[1] & halves[1][right]).count_ones();
                    pairs += halves[0][right].count_ones() + halves[1][right].count_ones();
                }
            }
            apart[left][right] = if joined == 0 { u64::MAX } else { 0 };
            mixed[left][right] = if joined > 0 && joined < pairs { u64::MAX } else { 0 };
        }
    }
    (apart, mixed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Junctions, Pairs, char_of};

    fn joins(junctions: &Junctions, left: &str, right: &str) -> bool {
        let (left, right) = (left.as_bytes(), right.as_bytes());
        junctions.meet(char_of(left), char_of(right)) || junctions.is_crossed(left[left.len() - 1], right[0])
    }

    fn of_characters(texts: &[&str], escaped_spaces: bool) -> Junctions {
        let mut pairs = Pairs::default();
        texts.iter().for_each(|text| pairs.add_characters(text.as_bytes(), escaped_spaces));
        pairs.finish()
    }

    fn of_bytes(texts: &[&[u8]]) -> Junctions {
        let mut pairs = Pairs::default();
        texts.iter().for_each(|text| pairs.add_bytes(text));
        pairs.finish()
    }

    #[test]
    fn pairs_inside_texts_join_and_others_do_not() {
        let texts = ["the", "中文", "▁a"];
        for junctions in [of_characters(&texts, false), of_bytes(&texts.map(str::as_bytes))] {
            // Of letters all join if any two do.
            for (left, right) in [("t", "h"), ("h", "e"), ("e", "t"), ("中", "文"), ("▁", "a")] {
                assert!(joins(&junctions, left, right), "{left}{right}");
            }
            for (left, right) in [("e", "1"), (" ", "t")] {
                assert!(!joins(&junctions, left, right), "{left}{right}");
            }
            // Others may collide, but few do.
            let chars = || ('\u{4E00}'..'\u{4E40}').map(String::from);
            let pairs = chars().flat_map(|left| chars().map(move |right| (left.clone(), right)));
            assert!(pairs.filter(|(left, right)| joins(&junctions, left, right)).count() < 64 * 64 / 4);
        }
    }

    proptest! {
        #[test]
        fn texts_are_cut_where_characters_do_not_join(
            texts in prop::collection::vec("[a1! é中]{2,4}", 0..8),
            text in "[a1! é中]{0,20}|[ac1! ]{50,200}([é中]{1,3}[ac1! ]{0,80})?",
        ) {
            let junctions = of_characters(&texts.iter().map(String::as_str).collect::<Vec<_>>(), false);
            let mut expected: Vec<String> = Vec::new();
            for char in text.chars().map(String::from) {
                match expected.last_mut() {
                    Some(last) if joins(&junctions, &String::from_iter(last.chars().last()), &char) => *last += &char,
                    _ => expected.push(char),
                }
            }
            let mut parts = Vec::new();
            junctions.split(text.as_bytes(), 0, text.len(), false, |begin, end| parts.push(&text[begin..end]));
            prop_assert_eq!(parts, expected);
        }
    }

    #[test]
    fn an_escaped_space_is_a_space() {
        let mut parts = Vec::new();
        of_characters(&["▁a"], true).split("a a▁a".as_bytes(), 0, 7, true, |begin, end| parts.push((begin, end)));
        assert_eq!(parts, [(0, 1), (1, 3), (3, 7)]);
    }

    #[test]
    fn a_part_of_a_character_stands_for_all_that_have_it() {
        // 文 is E6 96 87.
        let junctions = of_bytes(&[&[0x87, b'a'], &[b'b', 0xE6]]);
        assert!(joins(&junctions, "文", "a"));
        assert!(joins(&junctions, "b", "文"));
        assert!(!joins(&junctions, "b", "中"));
        assert!(!joins(&junctions, "b", "a"));
    }
}
