//! Special tokens the textbook way: each special text in turn is searched for in what the earlier ones left.
//!
//! The order is the vocabulary's: longest special text first. So matches are neither leftmost nor longest at a
//! position. A token may remove the whitespace around it.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `tokenizer_st_partition`. Complexity: O(n · s) for a text of n bytes and s
//! special texts. Deviations: none.

use memchr::memmem;

use ggtok_core::TokenId;
use ggtok_core::vocab::Attributes;

use super::limit::Tracing;
use super::trace::SpecialMatch;
use super::{Bytes, Result};

/// An item of a partitioned text: text, which is never empty, or a token without the whitespace that it removes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub start: usize,
    pub end: usize,
    /// The token.
    pub token: Option<TokenId>,
}

/// Partitions a text by its special tokens: the matches in the order of search, and the items in that of the text. Control
/// and unknown tokens are searched for only with `parse_special`.
pub(super) fn partition(
    text: &[u8],
    parse_special: bool,
    tracing: &mut Tracing<'_>,
) -> Result<(Vec<SpecialMatch>, Vec<Item>)> {
    let vocabulary = tracing.vocabulary;
    let mut matches = Vec::new();
    let mut items = Vec::new();
    if !text.is_empty() {
        items.push(Item { start: 0, end: text.len(), token: None });
    }
    for &id in vocabulary.special_order() {
        let attributes = vocabulary.attributes(id);
        let needle = vocabulary.text(id);
        let is_control = attributes.is_control() || attributes.is_unknown();
        if is_control && !parse_special || memmem::find(text, needle).is_none() {
            continue;
        }
        for item in std::mem::take(&mut items) {
            let Item { mut start, end, token: None } = item else {
                items.push(item);
                continue;
            };
            while let Some(found) = memmem::find(&text[start..end], needle) {
                tracing.limit.step(needle.len())?;
                let token_start = start + found;
                let token_end = token_start + needle.len();
                let strips = |strip: Attributes| move |byte: &&u8| attributes.contains(strip) && is_space(**byte);
                let before = text[start..token_start].iter().rev().take_while(strips(Attributes::LSTRIP)).count();
                let after = text[token_end..end].iter().take_while(strips(Attributes::RSTRIP)).count();
                if start < token_start - before {
                    items.push(Item { start, end: token_start - before, token: None });
                }
                items.push(Item { start: token_start, end: token_end, token: Some(id) });
                matches.push(SpecialMatch {
                    token: id,
                    text: Bytes::from(needle),
                    attribute: name(attributes),
                    start: token_start - before,
                    end: token_end + after,
                });
                start = token_end + after;
            }
            if start < end {
                items.push(Item { start, end, token: None });
            }
        }
    }
    Ok((matches, items))
}

fn name(attributes: Attributes) -> &'static str {
    match (attributes.is_control(), attributes.is_unknown()) {
        (true, _) => "control",
        (_, true) => "unknown",
        _ => "user_defined",
    }
}

/// C's `isspace` in the "C" locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0D)
}
