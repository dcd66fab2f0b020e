//! The simplest trie: texts in order. Those with a common prefix are adjacent, and the first of them says whether there
//! is one.
//!
//! Complexity: O(log n) comparisons to look among n texts. Space: the texts.

use std::collections::BTreeMap;
use std::ops::Bound;

use ggtok_core::TokenId;

/// Texts with their tokens, in order. Of equal texts the last one wins.
#[derive(Debug)]
pub(super) struct SortedTexts(BTreeMap<Vec<u8>, TokenId>);

impl SortedTexts {
    /// Sorts texts.
    pub(super) fn new(texts: impl Iterator<Item = (Vec<u8>, TokenId)>) -> Self {
        Self(texts.collect())
    }

    /// Whether one of the texts starts with `prefix`.
    pub(super) fn start_with(&self, prefix: &[u8]) -> bool {
        let mut from = self.0.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
        from.next().is_some_and(|(text, _)| text.starts_with(prefix))
    }

    /// The token with a text.
    pub(super) fn token(&self, text: &[u8]) -> Option<TokenId> {
        self.0.get(text).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_found_by_what_they_start_with(
            texts in proptest::collection::vec("[ab\u{0}é]{0,4}", 0..12),
            walked in "[ab\u{0}é]{0,5}",
        ) {
            let sorted = SortedTexts::new(texts.iter().map(|text| text.as_bytes().to_vec()).zip(0..));
            for len in 0..=walked.len() {
                let prefix = &walked.as_bytes()[..len];
                let exists = texts.iter().any(|text| text.as_bytes().starts_with(prefix));
                prop_assert_eq!(sorted.start_with(prefix), exists);
                let token = texts.iter().rposition(|text| text.as_bytes() == prefix);
                prop_assert_eq!(sorted.token(prefix), token.map(|token| token as TokenId));
            }
        }
    }
}
