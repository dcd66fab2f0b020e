//! The simplest trie: a sorted list of texts. Texts with a common prefix are adjacent, so a node is a range of the
//! list, and its child for a byte is a part of that range.
//!
//! Complexity: O(log n) per step of a walk through n texts. Space: the texts.

use std::ops::Range;

use ggtok_core::TokenId;

/// Texts with their tokens, in order.
#[derive(Debug)]
pub(super) struct SortedTexts(Vec<(Vec<u8>, TokenId)>);

/// A node: the texts that start with the bytes walked so far.
#[derive(Debug, Clone)]
pub(super) struct PrefixRange {
    range: Range<usize>,
    depth: usize,
}

impl SortedTexts {
    /// Sorts texts. Of equal ones the last one wins.
    pub(super) fn new(texts: impl Iterator<Item = (Vec<u8>, TokenId)>) -> Self {
        let mut texts = Vec::from_iter(texts);
        texts.reverse();
        texts.sort_by(|a, b| a.0.cmp(&b.0));
        texts.dedup_by(|later, first| later.0 == first.0);
        Self(texts)
    }

    /// The root, where every walk starts.
    pub(super) fn root(&self) -> PrefixRange {
        PrefixRange { range: 0..self.0.len(), depth: 0 }
    }

    /// The child of a node for a byte.
    pub(super) fn child(&self, node: &PrefixRange, byte: u8) -> Option<PrefixRange> {
        // The text that ends at the node has no further byte, so it comes first.
        let texts = &self.0[node.range.clone()];
        let start = texts.partition_point(|(text, _)| text.get(node.depth) < Some(&byte));
        let end = texts.partition_point(|(text, _)| text.get(node.depth) <= Some(&byte));
        let range = node.range.start + start..node.range.start + end;
        (!range.is_empty()).then_some(PrefixRange { range, depth: node.depth + 1 })
    }

    /// The token whose text ends at a node.
    pub(super) fn token(&self, node: &PrefixRange) -> Option<TokenId> {
        self.0[node.range.clone()].first().filter(|(text, _)| text.len() == node.depth).map(|&(_, token)| token)
    }

    /// The node that a walk along some bytes leads to.
    pub(super) fn find<'b>(&self, mut bytes: impl Iterator<Item = &'b u8>) -> Option<PrefixRange> {
        bytes.try_fold(self.root(), |node, &byte| self.child(&node, byte))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_walk_finds_what_the_texts_are(
            texts in proptest::collection::vec("[ab\u{0}é]{0,4}", 0..12),
            walked in "[ab\u{0}é]{0,5}",
        ) {
            let sorted = SortedTexts::new(texts.iter().map(|text| text.as_bytes().to_vec()).zip(0..));
            let walked = walked.as_bytes();
            let mut node = Some(sorted.root());
            for len in 0..=walked.len() {
                let exists = texts.iter().any(|text| text.as_bytes().starts_with(&walked[..len]));
                prop_assert_eq!(node.is_some() , exists || len == 0);
                let Some(here) = node else { break };
                let token = texts.iter().rposition(|text| text.as_bytes() == &walked[..len]);
                prop_assert_eq!(sorted.token(&here), token.map(|token| token as TokenId));
                node = walked.get(len).and_then(|&byte| sorted.child(&here, byte));
            }
            let exists = texts.iter().any(|text| text.as_bytes().starts_with(walked));
            prop_assert_eq!(sorted.find(walked.iter()).is_some(), exists || walked.is_empty());
        }
    }
}
