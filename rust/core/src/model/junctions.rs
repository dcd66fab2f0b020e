//! Where a text can be cut before merging: between characters that stand side by side in no symbol.
//!
//! A merge joins two neighbouring symbols into one whose text contains the place where they met. So where no symbol
//! contains two characters side by side, no merge ever crosses the place between them, and what is left of it and what
//! is right of it merge independently. Words of most scripts end at such places, and so do most words inside a run of
//! Chinese, which has no spaces.
//!
//! Pairs of ASCII characters are looked up exactly. Other pairs are hashed into a bit table: a collision only leaves a
//! text uncut that could have been cut. O(1) for a pair.

use crate::hash::Seed;
use crate::unicode::utf8;

/// Bits per pair in the hashed table; a power of two of them finds one pair in eight by accident.
const BITS_PER_PAIR: usize = 8;

/// `▁`, which stands for a space.
const ESCAPED_SPACE: Char = 0x0081_96E2;

/// A character as the up to four bytes that it is made of, the first lowest.
pub(crate) type Char = u32;

/// Which characters stand side by side in some symbol.
#[derive(Debug)]
pub(crate) struct Junctions {
    /// For each ASCII character a bit for each ASCII character that comes after it.
    ascii: Box<[[u64; 2]; 128]>,
    /// Other pairs, by hash.
    pairs: Vec<u64>,
    mask: usize,
    /// By the last byte before and the first byte after: places where a symbol has only part of a character.
    parts: Box<[[u64; 4]; 256]>,
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
        let (mut from, mut at, mut before) = (begin, begin, None);
        while at < end {
            let (char, next) = if text[at] < 0x80 {
                (u32::from(text[at]), at + 1)
            } else {
                let next = end.min(at + utf8::sequence_len(text[at]));
                let char = match text[at..].first_chunk() {
                    Some(bytes) => u32::from_le_bytes(*bytes) & (u32::MAX >> (32 - 8 * (next - at))),
                    None => char_of(&text[at..next]),
                };
                (unescaped(char, escaped_spaces), next)
            };
            if before.is_some_and(|before| !self.meet(before, char) && !self.is_crossed(text[at - 1], text[at])) {
                part(from, at);
                from = at;
            }
            (before, at) = (Some(char), next);
            if char >= 0x80 {
                continue;
            }
            // Places to cut in a stretch of ASCII are collected as bits, so that no branch depends on where they are.
            let (base, mut cuts, mut last) = (at, 0_u64, char);
            let stretch = &text[at..end.min(at + 64)];
            for (&byte, bit) in stretch.iter().zip(0..).take_while(|&(&byte, _)| byte < 0x80) {
                let joined = self.ascii[last as usize & 0x7F][usize::from(byte / 64)] >> (byte % 64) & 1;
                cuts |= (joined ^ 1) << bit;
                (last, at) = (u32::from(byte), at + 1);
            }
            before = Some(last);
            while cuts != 0 {
                let cut = base + cuts.trailing_zeros() as usize;
                part(from, cut);
                from = cut;
                cuts &= cuts - 1;
            }
        }
        if from < end {
            part(from, end);
        }
    }

    /// Whether a symbol may contain `left` followed by `right`, both whole.
    #[inline]
    fn meet(&self, left: Char, right: Char) -> bool {
        if left < 0x80 && right < 0x80 {
            return self.ascii[left as usize][right as usize / 64] >> (right % 64) & 1 != 0;
        }
        let hash = self.seed.hash_pair(left, right) as usize & self.mask;
        self.pairs.get(hash / 64).is_some_and(|bits| bits >> (hash % 64) & 1 != 0)
    }

    /// Whether a symbol may contain a part of one character and some of another, where these bytes meet.
    #[inline]
    pub(crate) fn is_crossed(&self, last: u8, first: u8) -> bool {
        self.parts[usize::from(last)][usize::from(first / 64)] >> (first % 64) & 1 != 0
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.ascii) + size_of_val(&*self.parts) + self.pairs.capacity() * size_of::<u64>()
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
    pub(crate) fn finish(self) -> Junctions {
        let seed = Seed::default();
        let bits = (self.others.len() * BITS_PER_PAIR).next_power_of_two().max(64);
        let mut pairs = vec![0; bits / 64];
        for (left, right) in self.others {
            let hash = seed.hash_pair(left, right) as usize & (bits - 1);
            pairs[hash / 64] |= 1 << (hash % 64);
        }
        Junctions { ascii: self.ascii, pairs, mask: bits - 1, parts: self.parts, seed }
    }
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
            for (left, right) in [("t", "h"), ("h", "e"), ("中", "文"), ("▁", "a")] {
                assert!(joins(&junctions, left, right), "{left}{right}");
            }
            for (left, right) in [("e", "t"), ("h", "t"), ("e", "▁")] {
                assert!(!joins(&junctions, left, right), "{left}{right}");
            }
        }
    }

    proptest! {
        #[test]
        fn texts_are_cut_where_characters_do_not_join(
            texts in prop::collection::vec("[a-c é中]{2,4}", 0..8),
            text in "[a-c é中]{0,20}|[a-c ]{50,200}([é中]{1,3}[a-c ]{0,80})?",
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
