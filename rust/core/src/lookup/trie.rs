//! A double-array trie over bytes, used for every look-up by prefix.
//!
//! The child of a node for a byte is in slot `base ^ byte`, if the label there is that byte. So all children of a node
//! are in one block of 256 slots, and no two nodes may share a base. Keys may hold any bytes, including 0: labels have
//! nine bits, and the ninth marks slots that are not children (free ones and the root).
//!
//! A node is one 64-bit word of label, base and value, and [`Node`] is that word rather than an index: a step takes one
//! load and one comparison, and reading the value takes no load.
//!
//! Source: Aoe's double array (1989) with the exclusive-or addressing of Darts-clone and of Kanda's XCDA (2018).
//! Complexity: a look-up is linear in the length of the key. Building sorts n keys in O(n log n) and is then linear in
//! the number of nodes (see `builder`). Space: 8 bytes per slot, of which a natural vocabulary uses 97 %.

pub(crate) mod backward;
mod builder;
mod sorted;

use crate::error::errors;
use crate::work::heap::HeapBytes;
use crate::work::large_vec::LargeVec;

/// An immutable map from byte strings to numbers below [`DoubleArray::MAX_VALUE`], with search by prefix.
///
/// # Examples
///
/// ```
/// use ggtok_core::trie::DoubleArray;
///
/// let keys: [(&[u8], u32); 3] = [(b"a", 1), (b"ab", 2), (b"abcd", 4)];
/// let trie = DoubleArray::build(keys)?;
/// assert_eq!(trie.exact(b"ab"), Some(2));
/// assert_eq!(trie.common_prefix_matches(b"abc").collect::<Vec<_>>(), [(1, 1), (2, 2)]);
/// assert_eq!(trie.longest_match(b"abc"), Some((2, 2)));
/// assert_eq!(trie.longest_walk(b"abcx"), 3);
/// # Ok::<(), ggtok_core::trie::TrieError>(())
/// ```
#[derive(Debug)]
pub struct DoubleArray {
    /// Whole blocks of 256 slots, at least one; the root is in slot 0.
    nodes: LargeVec<Node>,
}

/// The end of a walk through a [`DoubleArray`].
///
/// From the lowest bit: 9 bits of label, 27 bits of base, 28 bits of value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(u64);

heap_bytes!(DoubleArray: nodes; Node);

impl Node {
    const BASE_SHIFT: u32 = 9;
    const VALUE_SHIFT: u32 = 36;
    /// The label of slots that are not children; no byte equals it.
    const NO_LABEL: u64 = 0x1FF;
    const MAX_BASE: usize = (1 << (Self::VALUE_SHIFT - Self::BASE_SHIFT)) - 1;
    /// The base of a node without children; the builder gives it to no other node.
    const NO_CHILDREN: usize = 0;
    /// The value of a node at which no key ends.
    const NO_VALUE: u32 = (1 << (u64::BITS - Self::VALUE_SHIFT)) - 1;
    /// A free slot.
    const FREE: Self = Self(u64::MAX);
    /// The root of no keys.
    const EMPTY: Self = Self::new(Self::NO_LABEL, Self::NO_CHILDREN, Self::NO_VALUE);

    const fn new(label: u64, base: usize, value: u32) -> Self {
        Self(label | (base as u64) << Self::BASE_SHIFT | (value as u64) << Self::VALUE_SHIFT)
    }

    const fn with_label(self, label: u8) -> Self {
        Self(self.0 & !Self::NO_LABEL | label as u64)
    }

    const fn label(self) -> u64 {
        self.0 & Self::NO_LABEL
    }

    const fn base(self) -> usize {
        (self.0 >> Self::BASE_SHIFT) as usize & Self::MAX_BASE
    }

    const fn value(self) -> u32 {
        (self.0 >> Self::VALUE_SHIFT) as u32
    }
}

impl DoubleArray {
    /// The lowest number that is too large for a value.
    pub const MAX_VALUE: u32 = Node::NO_VALUE;

    /// Builds the trie of `keys`, in any order. Of equal keys, the last one wins.
    ///
    /// # Errors
    ///
    /// - [`TrieError::Value`]: a value is not below [`DoubleArray::MAX_VALUE`].
    /// - [`TrieError::TooLarge`]: more keys or nodes than the 27 bits of a base can number.
    pub fn build<'a>(keys: impl IntoIterator<Item = (&'a [u8], u32)>) -> Result<Self, TrieError> {
        builder::build(keys.into_iter())
    }

    /// The start of every walk.
    #[inline]
    pub fn root(&self) -> Node {
        self.nodes[0]
    }

    /// The child of `node` for `byte`.
    #[inline(always)]
    pub fn step(&self, node: Node, byte: u8) -> Option<Node> {
        let child = *self.nodes.get(node.base() ^ usize::from(byte))?;
        (child.label() == u64::from(byte)).then_some(child)
    }

    /// The value of the key that ends at `node`.
    #[inline(always)]
    pub fn value(&self, node: Node) -> Option<u32> {
        (node.value() != Node::NO_VALUE).then_some(node.value())
    }

    /// The value of `key`.
    pub fn exact(&self, key: &[u8]) -> Option<u32> {
        let node = key.iter().try_fold(self.root(), |node, &byte| self.step(node, byte))?;
        self.value(node)
    }

    /// Length and value of every key that `text` starts with, shortest first.
    #[inline]
    pub fn common_prefix_matches<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (usize, u32)> + 'a {
        let mut node = Some(self.root());
        let mut len = 0;
        std::iter::from_fn(move || {
            loop {
                let here = node?;
                let value = self.value(here).map(|value| (len, value));
                node = text.get(len).and_then(|&byte| self.step(here, byte));
                len += 1;
                if value.is_some() {
                    return value;
                }
            }
        })
    }

    /// Length and value of the longest key that `text` starts with.
    #[inline]
    pub fn longest_match(&self, text: &[u8]) -> Option<(usize, u32)> {
        self.common_prefix_matches(text).last()
    }

    /// How many bytes of `text` a walk can take, whether or not a key ends there.
    #[inline]
    pub fn longest_walk(&self, text: &[u8]) -> usize {
        let mut node = self.root();
        for (len, &byte) in text.iter().enumerate() {
            match self.step(node, byte) {
                Some(child) => node = child,
                None => return len,
            }
        }
        text.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.root() == Node::EMPTY
    }

    /// Memory held outside the value itself, in bytes.
    pub fn heap_bytes(&self) -> usize {
        HeapBytes::heap_bytes(self)
    }
}

impl Default for DoubleArray {
    /// The trie of no keys.
    fn default() -> Self {
        Self { nodes: LargeVec::filled(1, Node::EMPTY) }
    }
}

errors! {
    /// Why a [`DoubleArray`] cannot be built.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum TrieError {
        /// A value is too large.
        Value(value: u32) => "the value {value} of a trie is not below {}", DoubleArray::MAX_VALUE;
        /// There are too many keys or nodes to number.
        TooLarge => "a trie cannot hold more than {} nodes", Node::MAX_BASE;
    }
}

impl From<TrieError> for crate::error::VocabularyError {
    fn from(_: TrieError) -> Self {
        Self::TooLarge { what: "trie" }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The trie as it is drawn in textbooks.
    #[derive(Default)]
    struct Naive {
        children: BTreeMap<u8, Naive>,
        value: Option<u32>,
    }

    impl Naive {
        fn new(keys: &[(Vec<u8>, u32)]) -> Self {
            let mut root = Self::default();
            for (key, value) in keys {
                let end = key.iter().fold(&mut root, |node, byte| node.children.entry(*byte).or_default());
                end.value = Some(*value);
            }
            root
        }

        fn check(&self, trie: &DoubleArray, node: Node) {
            assert_eq!(trie.value(node), self.value);
            for byte in 0..=255 {
                match (self.children.get(&byte), trie.step(node, byte)) {
                    (Some(naive), Some(child)) => naive.check(trie, child),
                    (None, None) => {}
                    (naive, child) => panic!("{byte:#x}: {child:?}, expected {}", naive.is_some()),
                }
            }
        }

        fn walk(&self, text: &[u8]) -> (usize, Vec<(usize, u32)>) {
            let mut found = Vec::from_iter(self.value.map(|value| (0, value)));
            let mut node = self;
            for (len, byte) in text.iter().enumerate() {
                let Some(child) = node.children.get(byte) else { return (len, found) };
                found.extend(child.value.map(|value| (len + 1, value)));
                node = child;
            }
            (text.len(), found)
        }
    }

    fn build(keys: &[(Vec<u8>, u32)]) -> DoubleArray {
        DoubleArray::build(keys.iter().map(|(key, value)| (key.as_slice(), *value))).expect("a small trie")
    }

    fn check(keys: &[(Vec<u8>, u32)], texts: &[Vec<u8>]) {
        let trie = build(keys);
        let naive = Naive::new(keys);
        naive.check(&trie, trie.root());
        assert_eq!(trie.is_empty(), keys.is_empty());
        for text in texts.iter().chain(keys.iter().map(|(key, _)| key)) {
            let (walk, matches) = naive.walk(text);
            assert_eq!(trie.common_prefix_matches(text).collect::<Vec<_>>(), matches);
            assert_eq!(trie.longest_match(text), matches.last().copied());
            assert_eq!(trie.longest_walk(text), walk);
            let exact = matches.last().filter(|(len, _)| *len == text.len()).map(|(_, value)| *value);
            assert_eq!(trie.exact(text), exact);
        }
    }

    /// Few different bytes make prefixes and equal keys likely; 0 and 255 are the extreme labels.
    fn key() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            vec(any::<u8>(), 0..6),
            vec(prop_oneof![Just(0), Just(1), Just(b'a'), Just(255)], 0..24),
            vec(any::<u8>(), 14..18).prop_map(|end| [b"0123456789abc".as_slice(), &end].concat()),
        ]
    }

    fn value() -> impl Strategy<Value = u32> {
        prop_oneof![0..DoubleArray::MAX_VALUE, Just(DoubleArray::MAX_VALUE - 1)]
    }

    proptest! {
        #[test]
        fn equals_the_naive_trie(keys in vec((key(), value()), 0..200), texts in vec(key(), 0..50)) {
            check(&keys, &texts);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn equals_the_naive_trie_with_many_keys(keys in vec((key(), value()), 1000..5000)) {
            check(&keys, &[]);
        }
    }

    #[test]
    fn few_keys() {
        let texts = [vec![], vec![0], vec![1], vec![255], b"abc".to_vec()];
        check(&[], &texts);
        for text in &texts {
            check(&[(text.clone(), 7)], &texts);
        }
        let trie = build(&[]);
        assert!(trie.is_empty());
        assert_eq!(DoubleArray::default().step(trie.root(), 0), None);
        assert_eq!(DoubleArray::default().longest_walk(&[0, 1, 255]), 0);
    }

    #[test]
    fn every_label_of_every_node() {
        let keys = (0..=u16::MAX).map(|n| (n.to_be_bytes().to_vec(), n.into())).collect::<Vec<_>>();
        check(&keys, &[]);
    }

    #[test]
    fn long_keys_need_no_stack() {
        let long = vec![b'x'; 1 << 20];
        let keys = [(long.as_slice(), 1), (&long[1..], 2), (&long, 3)];
        let trie = DoubleArray::build(keys).expect("a million nodes");
        assert_eq!(trie.common_prefix_matches(&long).collect::<Vec<_>>(), [(long.len() - 1, 2), (long.len(), 3)]);
    }

    #[test]
    fn values_that_do_not_fit() {
        let largest = DoubleArray::MAX_VALUE;
        let error = DoubleArray::build([(b"a".as_slice(), largest)]).expect_err("too large a value");
        assert_eq!(error, TrieError::Value(largest));
    }

    #[test]
    fn heap_bytes_are_eight_per_slot() {
        let keys = (0..5000u32).map(|n| (format!("{:x}", n * 7919).into_bytes(), n)).collect::<Vec<_>>();
        let trie = build(&keys);
        assert_eq!(trie.heap_bytes(), trie.nodes.len() * 8);
        let nodes = trie.nodes.iter().filter(|node| **node != Node::FREE).count();
        assert!(trie.nodes.len() - nodes < nodes / 20, "{nodes} nodes in {} slots", trie.nodes.len());
    }
}
