//! Cuts a text into segments that merge independently: between any two characters that no symbol has side by side.
//!
//! 1. A merge joins two adjacent symbols into one whose text contains the position where they met. So if no symbol has
//!    two characters side by side, no merge ever crosses the position between them. The same holds for any algorithm
//!    that looks for its tokens in the text.
//! 2. Words of most scripts end at such positions, and so do most words inside a run of Chinese, which has no spaces.
//! 3. The texts of all symbols say which pairs of characters are adjacent ([`CharPairs`]). If its filter errs, a text
//!    is not cut at a position where it could be.
//! 4. ASCII is cut 64 bytes at a time: a pair is looked up by itself only if some characters of its two classes are
//!    adjacent and some are not.
//!
//! Time: O(1) per character. Space: 8 to 16 bits for each pair of adjacent characters that is not ASCII.

use std::ops::Range;

use super::adjacency::{AsciiPairs, Char, CharPairs, CharPairsBuilder};
use crate::text::scan::masks::{Classified, Masks, NUM_ASCII_CLASSES};
use crate::text::scan::{BLOCK, padded, places};
use crate::text::unicode::utf8;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::work::memory::array;

/// Bits of the filter per pair, before rounding up to a power of two: at most one other pair in eight is found by
/// accident.
const BITS_PER_PAIR: usize = 8;
/// `▁` as its bytes.
const ESCAPED_SPACE_CHAR: Char = u32::from_le_bytes([ESCAPED_SPACE[0], ESCAPED_SPACE[1], ESCAPED_SPACE[2], 0]);
/// The bits that ASCII characters do not have.
const HIGH_BITS: u64 = u64::from_le_bytes([0x80; 8]);
/// For each length, the bytes of a character among four; index 0 is for a character of four bytes.
const MASKS: [u32; 4] = [u32::MAX, 0xFF, 0xFFFF, 0x00FF_FFFF];
/// The letters among the characters starting at U+0040.
const LETTERS: u64 = ((1 << 26) - 1) << (b'A' - 64) | ((1 << 26) - 1) << (b'a' - 64);

/// One bit per pair of bytes: the last byte before a position and the first byte after it.
type BytePairs = [[u64; 4]; 256];
/// For each class and each class after it, all bits or none.
type ByClass = [[u64; NUM_ASCII_CLASSES]; NUM_ASCII_CLASSES];

/// Cuts texts at the positions that no symbol crosses.
#[derive(Debug)]
pub(crate) struct Segmenter {
    pairs: CharPairs,
    /// For each class of ASCII characters and each class after it, whether no two such characters are ever adjacent.
    apart: ByClass,
    /// The same for classes of which some characters are adjacent and some are not.
    mixed: ByClass,
    /// Pairs of bytes that meet in a symbol with only part of a character on one side, if there are any.
    partial: Option<Box<BytePairs>>,
    /// Whether `▁` counts as a space.
    escaped_spaces: bool,
}

heap_bytes!(Segmenter: pairs, partial);

/// A character of up to four bytes.
#[inline]
fn char_of(bytes: &[u8]) -> Char {
    bytes.iter().rev().fold(0, |char, &byte| char << 8 | u32::from(byte))
}

/// Part of a character that ends or starts with this byte. No character has this number.
fn part(byte: u8) -> Char {
    0xFF00_0000 | Char::from(byte)
}

#[inline]
fn unescaped(char: Char, escaped_spaces: bool) -> Char {
    if escaped_spaces && char == ESCAPED_SPACE_CHAR { u32::from(b' ') } else { char }
}

/// The first character of a text, and its length.
#[inline(always)]
fn next_char<const ESCAPED: bool>(text: &[u8]) -> (Char, usize) {
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
    (unescaped(char, ESCAPED), len)
}

impl Segmenter {
    /// Calls `segment` with the start and end of every segment of `text[range]`, in order. The lead byte of a character
    /// gives its length.
    #[inline]
    pub(crate) fn split(&self, text: &[u8], range: Range<usize>, segment: impl FnMut(usize, usize)) {
        // The compiler makes two loops, of which only one compares characters with `▁`.
        if self.escaped_spaces {
            self.split_as::<true>(text, range, segment)
        } else {
            self.split_as::<false>(text, range, segment)
        }
    }

    #[inline(always)]
    fn split_as<const ESCAPED: bool>(
        &self,
        text: &[u8],
        Range { start, end }: Range<usize>,
        mut segment: impl FnMut(usize, usize),
    ) {
        let text = &text[..end];
        let mut from = start;
        let (mut before, len) = next_char::<ESCAPED>(&text[start..]);
        let mut at = start + len;
        while at < end {
            // The byte is compared too, because `before` may be an escaped space.
            if before < 0x80 && text[at - 1] < 0x80 {
                let base = at - 1;
                let is_short = text[at..].first_chunk().is_none_or(|next| u64::from_le_bytes(*next) & HIGH_BITS != 0);
                let (mut cuts, len) = if is_short { self.few_cuts(&text[base..]) } else { self.cuts(&text[base..]) };
                // Not with `places`: that iterator made the loop over Chinese text a tenth slower.
                while cuts != 0 {
                    let cut = base + cuts.trailing_zeros() as usize;
                    segment(from, cut);
                    from = cut;
                    cuts &= cuts - 1;
                }
                at = base + len;
                before = text[at - 1].into();
            }

            let (char, len) = next_char::<ESCAPED>(&text[at..]);
            if len > 0 && !self.pairs.meet(before, char) && !self.is_crossed(text, at) {
                segment(from, at);
                from = at;
            }
            (before, at) = (char, at + len);
        }
        if from < end {
            segment(from, end);
        }
    }

    /// The last position strictly inside `text[range]`, which is UTF-8, that no symbol crosses and that `accept`
    /// accepts. Looks at no more of the text than twice the distance from that position to the end.
    pub(crate) fn last_cut(
        &self,
        text: &[u8],
        range: Range<usize>,
        mut accept: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        if range.is_empty() {
            return None;
        }
        let mut len = BLOCK;
        loop {
            let start = utf8::floor(text, range.end.saturating_sub(len)).max(range.start);
            let mut last = None;
            self.split(text, start..range.end, |from, _| {
                if from > start && accept(from) {
                    last = Some(from);
                }
            });
            if last.is_some() || start == range.start {
                return last;
            }
            len *= 2;
        }
    }

    /// As [`Segmenter::cuts`], for fewer than nine characters.
    #[inline(always)]
    fn few_cuts(&self, text: &[u8]) -> (u64, usize) {
        let mut cuts = 0;
        let mut len = 1;
        for pair in text.windows(2).take_while(|pair| pair[1] < 0x80) {
            cuts |= u64::from(!self.pairs.ascii_meet(pair[0], pair[1])) << len;
            len += 1;
        }
        (cuts, len)
    }

    /// The cuts in the ASCII characters that `text` starts with, one bit each, and the number of these characters: at
    /// least one and at most a block.
    #[inline(always)]
    fn cuts(&self, text: &[u8]) -> (u64, usize) {
        let masks = Masks::new(padded(text, b' ', &mut [0; BLOCK]));
        let len = (masks.beyond_ascii().trailing_zeros() as usize).min(text.len());
        let classes = masks.ascii_classes();
        let mut cuts = 0;
        let mut unsure = 0;
        for ((class, apart), mixed) in classes.iter().zip(&self.apart).zip(&self.mixed) {
            let any_of = |selected: &[u64; NUM_ASCII_CLASSES]| {
                classes.iter().zip(selected).fold(0, |all, (class, selected)| all | class & selected)
            };
            cuts |= class << 1 & any_of(apart);
            unsure |= class << 1 & any_of(mixed);
        }

        let known = u64::MAX >> (BLOCK - len);
        for at in places(unsure & known) {
            cuts |= u64::from(!self.pairs.ascii_meet(text[at - 1], text[at])) << at;
        }
        (cuts & known, len)
    }

    /// Whether a symbol may have part of the character before byte `at`, or of the one after it, or of both, and cross
    /// the position between them.
    #[inline(always)]
    pub(crate) fn is_crossed(&self, text: &[u8], at: usize) -> bool {
        let Some(partial) = self.partial.as_deref() else { return false };
        let last = text[at - 1];
        let first = text[at];
        partial[usize::from(last)][usize::from(first / 64)] >> (first % 64) & 1 != 0 && self.parts_meet(text, at)
    }

    /// As [`Segmenter::is_crossed`], if it depends on more than the two bytes.
    #[inline(never)]
    fn parts_meet(&self, text: &[u8], at: usize) -> bool {
        let left = char_of(&text[utf8::floor(text, at - 1)..at]);
        let right = next_char::<false>(&text[at..]).0;
        let last = part(text[at - 1]);
        let first = part(text[at]);
        [(left, first), (last, right), (last, first)].into_iter().any(|(left, right)| self.pairs.meet(left, right))
    }
}

/// Collects the pairs of [`Segmenter`] from the texts of symbols.
#[derive(Debug)]
pub(crate) struct SegmenterBuilder {
    pairs: CharPairsBuilder,
    partial: Box<BytePairs>,
    escaped_spaces: bool,
}

impl SegmenterBuilder {
    /// With `escaped_spaces`, the character `▁` counts as a space, in symbols and in texts.
    pub(crate) fn new(escaped_spaces: bool) -> Self {
        Self { pairs: CharPairsBuilder::new(), partial: array([0; 4]), escaped_spaces }
    }

    /// Adds the pairs of a symbol that starts as characters; lead bytes give their lengths.
    pub(crate) fn add_characters(&mut self, text: &[u8]) {
        let mut at = 0;
        let mut before = None;
        while at < text.len() {
            let end = text.len().min(at + utf8::sequence_len(text[at]));
            let char = unescaped(char_of(&text[at..end]), self.escaped_spaces);
            if let Some(before) = before.replace(char) {
                self.pairs.add(before, char);
            }
            at = end;
        }
    }

    /// Adds the pairs of a symbol of ASCII.
    #[inline]
    pub(crate) fn add_ascii(&mut self, text: &[u8]) {
        self.pairs.add_ascii(text);
    }

    /// Adds the pairs of a symbol that starts as bytes, for text of canonical UTF-8: the symbol may start and end
    /// inside a character.
    pub(crate) fn add_bytes(&mut self, text: &[u8]) {
        let is_inner = |byte: u8| byte & 0xC0 == 0x80;
        let mut at = text.iter().position(|&byte| !is_inner(byte)).unwrap_or(text.len());
        let mut before = 0..at;
        while at < text.len() {
            let len = text[at + 1..].iter().take_while(|&&byte| is_inner(byte)).count() + 1;
            if at > 0 {
                let is_left_whole = (before.start > 0 || !is_inner(text[0])) && before.len() <= 4;
                let is_right_whole = len == utf8::sequence_len(text[at]);
                let left = if is_left_whole { char_of(&text[before]) } else { part(text[at - 1]) };
                let right = if is_right_whole { char_of(&text[at..at + len]) } else { part(text[at]) };
                self.pairs.add(left, right);
                if !is_left_whole || !is_right_whole {
                    self.partial[usize::from(text[at - 1])][usize::from(text[at] / 64)] |= 1 << (text[at] % 64);
                }
            }
            before = at..at + len;
            at += len;
        }
    }

    /// The pairs as tables. If any two ASCII letters are adjacent, all count as adjacent: most are, so looking up
    /// each pair is not worth it.
    pub(crate) fn finish(self) -> Segmenter {
        let num_bits = (self.pairs.num_others() * BITS_PER_PAIR).next_power_of_two().max(64);
        let mut pairs = self.pairs.finish(num_bits);
        let mut letters = pairs.ascii.iter().zip(0_u8..).filter(|(_, byte)| byte.is_ascii_alphabetic());
        if letters.any(|(row, _)| row[1] & LETTERS != 0) {
            for letter in (b'A'..=b'Z').chain(b'a'..=b'z') {
                pairs.ascii[usize::from(letter)][1] |= LETTERS;
            }
        }
        let (apart, mixed) = by_class(&pairs.ascii);
        let partial = Some(self.partial).filter(|partial| partial.iter().flatten().any(|&bits| bits != 0));
        Segmenter { pairs, apart, mixed, partial, escaped_spaces: self.escaped_spaces }
    }
}

/// [`Segmenter::apart`] and [`Segmenter::mixed`] for these pairs.
fn by_class(ascii: &AsciiPairs) -> (ByClass, ByClass) {
    let halves = [0, BLOCK].map(|first| Masks::new(&std::array::from_fn(|at| (first + at) as u8)).ascii_classes());
    let mut apart = ByClass::default();
    let mut mixed = ByClass::default();
    for left in 0..NUM_ASCII_CLASSES {
        for right in 0..NUM_ASCII_CLASSES {
            let mut num_adjacent = 0;
            let mut num_pairs = 0;
            for (byte, row) in ascii.iter().enumerate() {
                if halves[byte / BLOCK][left] >> (byte % BLOCK) & 1 != 0 {
                    num_adjacent += (row[0] & halves[0][right]).count_ones() + (row[1] & halves[1][right]).count_ones();
                    num_pairs += halves[0][right].count_ones() + halves[1][right].count_ones();
                }
            }
            apart[left][right] = if num_adjacent == 0 { u64::MAX } else { 0 };
            mixed[left][right] = if num_adjacent > 0 && num_adjacent < num_pairs { u64::MAX } else { 0 };
        }
    }
    (apart, mixed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Segmenter, SegmenterBuilder, char_of};

    fn are_adjacent(segmenter: &Segmenter, left: &str, right: &str) -> bool {
        let text = [left, right].concat();
        segmenter.pairs.meet(char_of(left.as_bytes()), char_of(right.as_bytes()))
            || segmenter.is_crossed(text.as_bytes(), left.len())
    }

    fn of_characters(texts: &[&str], escaped_spaces: bool) -> Segmenter {
        let mut builder = SegmenterBuilder::new(escaped_spaces);
        texts.iter().for_each(|text| builder.add_characters(text.as_bytes()));
        builder.finish()
    }

    fn of_bytes(texts: &[&[u8]]) -> Segmenter {
        let mut builder = SegmenterBuilder::new(false);
        texts.iter().for_each(|text| builder.add_bytes(text));
        builder.finish()
    }

    #[test]
    fn pairs_of_a_text_are_adjacent_and_others_are_not() {
        let texts = ["the", "中文", "▁a"];
        for segmenter in [of_characters(&texts, false), of_bytes(&texts.map(str::as_bytes))] {
            // All letters are adjacent if any two are.
            for (left, right) in [("t", "h"), ("h", "e"), ("e", "t"), ("中", "文"), ("▁", "a")] {
                assert!(are_adjacent(&segmenter, left, right), "{left}{right}");
            }
            for (left, right) in [("e", "1"), (" ", "t")] {
                assert!(!are_adjacent(&segmenter, left, right), "{left}{right}");
            }
            // Others may collide, but few do.
            let chars = || ('\u{4E00}'..'\u{4E40}').map(String::from);
            let pairs = chars().flat_map(|left| chars().map(move |right| (left.clone(), right)));
            assert!(pairs.filter(|(left, right)| are_adjacent(&segmenter, left, right)).count() < 64 * 64 / 4);
        }
    }

    proptest! {
        #[test]
        fn texts_are_cut_where_characters_are_not_adjacent(
            texts in prop::collection::vec("[a1! é中]{2,4}", 0..8),
            text in "[a1! é中]{0,20}|[ac1! ]{50,200}([é中]{1,3}[ac1! ]{0,80})?",
        ) {
            let segmenter = of_characters(&texts.iter().map(String::as_str).collect::<Vec<_>>(), false);
            let mut expected: Vec<String> = Vec::new();
            for char in text.chars().map(String::from) {
                match expected.last_mut() {
                    Some(last) if are_adjacent(&segmenter, &String::from_iter(last.chars().last()), &char) => {
                        *last += &char;
                    }
                    _ => expected.push(char),
                }
            }
            let mut segments = Vec::new();
            segmenter.split(text.as_bytes(), 0..text.len(), |start, end| segments.push(&text[start..end]));
            prop_assert_eq!(segments, expected);
        }
    }

    #[test]
    fn an_escaped_space_is_a_space() {
        let mut segments = Vec::new();
        of_characters(&["▁a"], true).split("a a▁a".as_bytes(), 0..7, |start, end| segments.push((start, end)));
        assert_eq!(segments, [(0, 1), (1, 3), (3, 7)]);
    }

    #[test]
    fn part_of_a_character_stands_for_all_characters_that_have_it() {
        // 文 is E6 96 87.
        let segmenter = of_bytes(&[&[0x87, b'a'], &[b'b', 0xE6]]);
        assert!(are_adjacent(&segmenter, "文", "a"));
        assert!(are_adjacent(&segmenter, "b", "文"));
        assert!(!are_adjacent(&segmenter, "b", "中"));
        assert!(!are_adjacent(&segmenter, "b", "a"));
    }

    #[test]
    fn a_character_beside_part_of_another_one_stands_for_itself() {
        // し is E3 81 97, た is E3 81 9F, 旗 is E6 97 97, and 数 is E6 95 B0.
        let segmenter = of_bytes(&["した".as_bytes().split_last().expect("bytes").1, &[0x97, 0xE6, 0x95, 0xB0]]);
        for (left, right, is_adjacent) in [
            ("し", "た", true),
            ("し", "か", true),
            ("旗", "た", false),
            ("し", "数", true),
            ("旗", "数", true),
            ("旗", "教", false),
        ] {
            assert_eq!(are_adjacent(&segmenter, left, right), is_adjacent, "{left}{right}");
        }
    }
}
