//! SentencePiece's precompiled character map: a trie of byte strings with their replacements, in an XOR-compressed
//! compact double array.
//!
//! The map is a 32-bit little-endian length, that many bytes of 32-bit little-endian units, and zero-terminated
//! replacements. A unit is a node (see [`Unit`]) or, if it is the child with label 0 of a node where a key ends, the
//! offset of a replacement.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm` and `xcda_array_view` (llama-vocab.cpp); the array is from Kanda, "Space-
//! and Time-Efficient String Dictionaries" (2018), in the layout that Darts-clone writes.
//!
//! Deviations:
//! 1. llama.cpp throws during tokenization if a walk leaves the array, or if a replacement is missing or unterminated.
//!    Here everything that a walk can reach is checked once, when the map is read, and a damaged map is rejected.
//!
//! Time: reading is linear in the size of the map; a look-up is linear in the longest matching prefix of a key.

use crate::error::{CharsmapDamage, VocabularyError};
use crate::text::unicode::utf8;
use crate::work::memory::{collect, copied, filled, push};

/// Bytes in the length field, and in a unit.
const UNIT_LEN: usize = size_of::<u32>();

/// A character map.
#[derive(Debug)]
pub struct Charsmap {
    /// Unit 0 is the root. The children of every node that a walk can reach are in a full block of 256 units.
    units: Vec<Unit>,
    /// Zero-terminated texts; every offset that a walk can reach has a zero after it.
    replacements: Vec<u8>,
    /// Whether a key has ASCII whitespace after its first byte.
    has_inner_space: bool,
    /// Whether all replacements are UTF-8.
    pub(crate) writes_utf8: bool,
}

/// A node. Bits 0 to 7 and 31 are the label; bit 8 says whether a key ends here; bits 10 to 30 are the base, to be
/// shifted left by eight bits if bit 9 is set.
#[derive(Debug, Clone, Copy)]
pub struct Unit(pub u32);

impl Unit {
    /// The position of the children is the node's index XOR this.
    pub const fn base(self) -> usize {
        ((self.0 >> 10) << ((self.0 & 1 << 9) >> 6)) as usize
    }

    /// The label: a byte, except in a unit that is not a node.
    pub const fn label(self) -> u32 {
        self.0 & (1 << 31 | 0xFF)
    }

    /// Whether a key ends at the node.
    pub const fn is_leaf(self) -> bool {
        self.0 >> 8 & 1 != 0
    }

    /// The offset of a replacement, in a unit that is not a node.
    pub const fn value(self) -> usize {
        (self.0 & !(1 << 31)) as usize
    }
}

impl Charsmap {
    /// Reads and checks a map.
    ///
    /// # Errors
    ///
    /// [`VocabularyError::Charsmap`]:
    /// - the map ends before its replacements start;
    /// - a walk can leave the array;
    /// - a replacement is outside the map or unterminated.
    pub fn new(bytes: &[u8]) -> Result<Self, VocabularyError> {
        let damaged = |offset, damage| VocabularyError::Charsmap { offset, damage };
        let (len, rest) = bytes.split_first_chunk().ok_or(damaged(0, CharsmapDamage::NoLength))?;
        let (array, replacements) = usize::try_from(u32::from_le_bytes(*len))
            .ok()
            .and_then(|len| rest.split_at_checked(len))
            .filter(|(_, replacements)| !replacements.is_empty())
            .ok_or(damaged(0, CharsmapDamage::NoReplacements))?;
        let units = collect(array.as_chunks().0.iter().map(|unit| Unit(u32::from_le_bytes(*unit))));
        let writes_utf8 = utf8::is_valid(replacements);
        let map = Self { units, replacements: copied(replacements), has_inner_space: false, writes_utf8 };
        match map.check() {
            Ok((has_inner_space, starts_inside_char)) => {
                Ok(Self { has_inner_space, writes_utf8: writes_utf8 && !starts_inside_char, ..map })
            }
            Err((unit, damage)) => Err(damaged(UNIT_LEN * (unit + 1), damage)),
        }
    }

    /// Walks every path. Returns whether one has ASCII whitespace after its first byte, and whether a replacement
    /// starts with a continuation byte. The error is the damaged unit.
    fn check(&self) -> Result<(bool, bool), (usize, CharsmapDamage)> {
        // Linked lists of children: the first one, indexed by the position of a node's children, and each child's next.
        let mut first_child = filled(self.units.len().next_multiple_of(256), usize::MAX);
        let mut next_child = filled(self.units.len(), usize::MAX);
        for (child, unit) in self.units.iter().enumerate() {
            if let label @ 1..=0xFF = unit.label() as usize {
                next_child[child] = std::mem::replace(&mut first_child[child ^ label], child);
            }
        }

        let last_zero = self.replacements.iter().rposition(|&byte| byte == 0);
        let mut has_inner_space = false;
        let mut starts_inside_char = false;
        let mut is_root = true;
        let mut seen = filled(self.units.len(), false);
        let mut nodes = Vec::from_iter((!self.units.is_empty()).then_some(0));
        while let Some(node) = nodes.pop() {
            let children = self.children(node);
            if children | 0xFF >= self.units.len() {
                return Err((node, CharsmapDamage::ChildrenOutside));
            }
            let mut child = first_child[children];
            while let Some(unit) = self.units.get(child) {
                has_inner_space |= !is_root && (unit.label() as u8).is_ascii_whitespace();
                if !std::mem::replace(&mut seen[child], true) {
                    if unit.is_leaf() {
                        let value = self.units.get(self.children(child)).map(|unit| unit.value());
                        if value.is_none_or(|value| value >= self.replacements.len()) {
                            return Err((child, CharsmapDamage::ReplacementOutside));
                        }
                        if value > last_zero {
                            return Err((child, CharsmapDamage::EndlessReplacement));
                        }
                        let first = value.and_then(|value| self.replacements.get(value));
                        starts_inside_char |= first.is_some_and(|first| first & 0xC0 == 0x80);
                    }
                    push(&mut nodes, child);
                }
                child = next_child[child];
            }
            is_root = false;
        }

        Ok((has_inner_space, starts_inside_char))
    }

    /// The position of the children of `node`; each one is at this position XOR its label.
    #[inline(always)]
    fn children(&self, node: usize) -> usize {
        node ^ self.units.get(node).map_or(0, |unit| unit.base())
    }

    /// Whether a replacement contains `text`.
    pub(crate) fn may_write(&self, text: &[u8]) -> bool {
        memchr::memmem::find(&self.replacements, text).is_some()
    }

    /// The number of characters of the longest replacement, at least one.
    pub(crate) fn max_expansion(&self) -> usize {
        let num_characters = |text: &[u8]| text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        self.replacements.split(|&byte| byte == 0).map(num_characters).max().unwrap_or(0).max(1)
    }

    /// Whether `byte`, which is ASCII whitespace, becomes a space in any context.
    pub(crate) fn is_space(&self, byte: u8) -> bool {
        let becomes = self.longest_prefix(&[byte]).map_or(&[byte][..], |(_, replacement)| replacement) == b" ";
        becomes && !self.has_inner_space && (1..=u8::MAX).all(|next| self.longest_walk(&[byte, next]) < 2)
    }

    /// The nodes of the walk along `text`.
    #[inline]
    fn walk(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        let mut node = 0;
        text.iter().map_while(move |&byte| {
            node = self.children(node) ^ usize::from(byte);
            // The offset of a replacement can look like a node with the label 0.
            let is_node = byte != 0 && self.units.get(node).is_some_and(|unit| unit.label() == u32::from(byte));
            is_node.then_some(node)
        })
    }

    /// The length of the longest prefix of `text` that starts a key.
    pub(crate) fn longest_walk(&self, text: &[u8]) -> usize {
        self.walk(text).count()
    }

    /// The characters of the keys; `None` if one of the first two characters of a key is not UTF-8.
    pub(crate) fn characters(&self) -> Option<KeyCharacters> {
        let mut table = filled(KeyCharacters::LEN, 0);
        let mut second_nodes = Vec::new();
        self.mark_characters(&mut table, KeyCharacters::STARTS_KEY, 0, &mut second_nodes)?;
        second_nodes.sort_unstable();
        second_nodes.dedup();
        for node in second_nodes {
            self.mark_characters(&mut table, KeyCharacters::IS_SECOND, node, &mut Vec::new())?;
        }
        Some(KeyCharacters(table))
    }

    /// Marks in `table` the characters that continue keys at `node`, or start them if it is the root, and appends the
    /// nodes after them. `None` if keys do not continue with whole characters.
    fn mark_characters(&self, table: &mut [u8], mark: u8, node: usize, nodes_after: &mut Vec<usize>) -> Option<()> {
        // Nodes inside a character, each with the character's bytes so far.
        let mut partial = vec![(node, [0; 4], 0)];
        while let Some((node, mut bytes, len)) = partial.pop() {
            let children = self.children(node);
            for label in 1..=u8::MAX {
                let child = children ^ usize::from(label);
                let Some(unit) = self.units.get(child).filter(|unit| unit.label() == u32::from(label)) else {
                    continue;
                };

                bytes[len] = label;
                if len + 1 < utf8::sequence_len(bytes[0]) {
                    push(&mut partial, (child, bytes, len + 1));
                    if unit.is_leaf() {
                        return None;
                    }
                    continue;
                }

                let (character, _) = utf8::decode(&bytes[..=len], 0)?;
                if let Some(marks) = table.get_mut(character as usize) {
                    let is_key = mark == KeyCharacters::STARTS_KEY && unit.is_leaf();
                    *marks |= mark | if is_key { KeyCharacters::IS_KEY } else { 0 };
                }
                push(nodes_after, child);
            }
        }
        Some(())
    }

    /// The longest prefix of `text` that is a key: its length and its replacement.
    #[inline]
    pub fn longest_prefix(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        let keys =
            self.walk(text).enumerate().filter(|&(_, node)| self.units.get(node).is_some_and(|unit| unit.is_leaf()));
        let (last, node) = keys.last()?;
        let replacement = self.replacements.get(self.units.get(self.children(node))?.value()..)?;
        Some((last + 1, replacement.split(|&byte| byte == 0).next()?))
    }
}

/// Whether each character of the Basic Multilingual Plane is a key, starts one, or is the second character of one.
#[derive(Debug)]
pub(crate) struct KeyCharacters(Vec<u8>);

heap_bytes!(Charsmap: units, replacements; Unit; KeyCharacters: 0);

impl KeyCharacters {
    const LEN: usize = 0x10000;
    const IS_KEY: u8 = 1;
    const STARTS_KEY: u8 = 2;
    const IS_SECOND: u8 = 4;

    /// The table of a map without keys.
    pub(crate) fn without_keys() -> Self {
        Self(filled(Self::LEN, 0))
    }

    /// The same, except that `character` is not kept.
    pub(crate) fn except(mut self, character: u32) -> Self {
        if let Some(marks) = self.0.get_mut(character as usize) {
            *marks |= Self::IS_KEY;
        }
        self
    }

    /// Whether the map is known to keep `character` before `next`. Nothing is known about characters beyond the table.
    #[inline(always)]
    pub(crate) fn keeps(&self, character: u32, next: Option<u32>) -> bool {
        let marks = |character: u32| self.0.get(character as usize).copied().unwrap_or(u8::MAX);
        match marks(character) & (Self::IS_KEY | Self::STARTS_KEY) {
            0 => true,
            Self::STARTS_KEY => next.is_none_or(|next| marks(next) & Self::IS_SECOND == 0),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Charsmap {
        /// A map of `pairs`.
        pub(crate) fn of(pairs: &[(&str, &str)]) -> Self {
            Self::new(&Self::bytes_of(pairs)).expect("a sound map")
        }

        /// A map of `pairs` as a file stores it. Keys are a few short words; each node has its own block.
        pub(crate) fn bytes_of(pairs: &[(&str, &str)]) -> Vec<u8> {
            let mut units = vec![0; 512];
            let mut replacements = Vec::new();
            units[0] = 256 << 10;
            for (key, replacement) in pairs {
                let mut node = 0;
                for &byte in key.as_bytes() {
                    let children = node ^ Unit(units[node]).base();
                    let child = children ^ usize::from(byte);
                    if units[child] == 0 {
                        // A base in the wide form, from the child to its own block.
                        let distance = units.len() ^ (child & !0xFF);
                        units[child] = ((distance >> 8) as u32) << 10 | 1 << 9 | u32::from(byte);
                        units.resize(units.len() + 256, 0);
                    }
                    node = child;
                }
                units[node] |= 1 << 8;
                let value = node ^ Unit(units[node]).base();
                units[value] = 1 << 31 | replacements.len() as u32;
                replacements.extend(replacement.bytes().chain([0]));
            }
            let array = units.iter().flat_map(|unit| unit.to_le_bytes());
            let map = (4 * units.len() as u32).to_le_bytes().into_iter().chain(array).chain(replacements);
            map.collect()
        }
    }

    #[test]
    fn replacements_that_are_not_utf8_are_found() {
        let sound = Charsmap::bytes_of(&[("a", "é")]);
        let writes_utf8 = |bytes: &[u8]| Charsmap::new(bytes).expect("a sound map").writes_utf8;
        assert!(writes_utf8(&sound));
        let mut cut_off = sound.clone();
        cut_off.remove(sound.len() - 2);
        assert!(!writes_utf8(&cut_off));
        let mut inside = sound;
        let offset = inside.windows(4).position(|unit| unit == (1u32 << 31).to_le_bytes()).expect("one at offset 0");
        inside[offset] = 1;
        assert!(!writes_utf8(&inside));
    }

    #[test]
    fn the_longest_prefix_is_replaced() {
        let map = Charsmap::of(&[("ab", "1"), ("abcd", "22"), ("é", ""), ("x\u{300}", "3")]);
        assert_eq!(map.longest_prefix(b"abce"), Some((2, b"1".as_slice())));
        assert_eq!(map.longest_prefix(b"abcde"), Some((4, b"22".as_slice())));
        assert_eq!(map.longest_prefix("é".as_bytes()), Some((2, b"".as_slice())));
        assert_eq!(map.longest_prefix(b"a"), None);
        let characters = map.characters().expect("whole characters");
        let keeps = |first: char, next: Option<char>| characters.keeps(first.into(), next.map(u32::from));
        assert!(keeps('b', Some('a')) && keeps('a', None) && keeps('x', Some('a')) && keeps('\u{300}', None));
        assert!(!keeps('a', Some('b')) && !keeps('é', None) && !keeps('x', Some('\u{300}')));
    }

    #[test]
    fn whitespace_that_always_becomes_a_space() {
        let spaces = [("\t", " "), ("\n", " "), ("\r", "x")];
        let is_space = |more: &[(&str, &str)]| {
            let map = Charsmap::of(&[&spaces[..], more].concat());
            [b' ', b'\t', b'\n', b'\r'].map(|byte| map.is_space(byte))
        };
        assert_eq!(is_space(&[]), [true, true, true, false]);
        assert_eq!(is_space(&[(" ", " "), ("\nx", "y")]), [true, true, false, false]);
        assert_eq!(is_space(&[(" ", "_"), ("\t\u{300}", "y")]), [false, false, true, false]);
        assert_eq!(is_space(&[("abc d", "_")]), [false; 4]);
    }

    const END: u32 = 1 << 31;

    /// A map from `a` to `xy`, with the unit of the child set to `child` and that of its value to `value`.
    fn map(child: u32, value: u32, replacements: &[u8]) -> Vec<u8> {
        let mut units = vec![END; 512];
        units[0] = 256 << 10;
        units[256 ^ usize::from(b'a')] = child;
        units[256 ^ usize::from(b'a') ^ 1] = value;
        let array = units.iter().flat_map(|unit| unit.to_le_bytes());
        (512 * 4u32).to_le_bytes().into_iter().chain(array).chain(replacements.iter().copied()).collect()
    }

    const LEAF: u32 = b'a' as u32 | 1 << 8 | 1 << 10;

    fn error(bytes: &[u8]) -> (usize, CharsmapDamage) {
        match Charsmap::new(bytes) {
            Err(VocabularyError::Charsmap { offset, damage }) => (offset, damage),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_replacement() {
        let map = Charsmap::new(&map(LEAF, END | 2, b"-\0xy\0")).expect("a map");
        assert_eq!(map.longest_prefix(b"ab"), Some((1, b"xy".as_slice())));
        assert_eq!(map.longest_prefix(b"b"), None);
        assert_eq!(map.longest_prefix(b""), None);
        assert_eq!(map.longest_prefix(b"\0"), None);
        let empty = Charsmap::new(&[0, 0, 0, 0, b'x']).expect("a map");
        assert_eq!(empty.longest_prefix(b"a"), None);
    }

    #[test]
    fn wide_bases() {
        let unit = Unit(3 << 10 | 1 << 9 | 7);
        assert_eq!((unit.base(), unit.label(), unit.is_leaf()), (3 << 8, 7, false));
        assert_eq!(Unit(END | 5).value(), 5);
    }

    #[test]
    fn damaged_maps_are_refused() {
        let child = UNIT_LEN * (1 + (256 ^ usize::from(b'a')));
        assert_eq!(error(&[]), (0, CharsmapDamage::NoLength));
        assert_eq!(error(&[1, 0, 0, 0, 0]), (0, CharsmapDamage::NoReplacements));
        assert_eq!(error(&[255, 255, 255, 255, 0]), (0, CharsmapDamage::NoReplacements));
        assert_eq!(error(&[4, 0, 0, 0, 0, 0, 0, 0, 0]), (4, CharsmapDamage::ChildrenOutside));
        assert_eq!(error(&map(LEAF | 1 << 20, END, b"\0")), (child, CharsmapDamage::ReplacementOutside));
        assert_eq!(error(&map(LEAF, END | 1, b"\0")), (child, CharsmapDamage::ReplacementOutside));
        assert_eq!(error(&map(LEAF, END | 2, b"-\0xy")), (child, CharsmapDamage::EndlessReplacement));
        assert_eq!(error(&map(LEAF & !(1 << 8) | 1 << 20, END, b"\0")), (child, CharsmapDamage::ChildrenOutside));
    }
}
