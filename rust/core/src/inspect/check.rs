//! Finds problems with merges: tokens that no merge makes, and merges that do not make a token.
//!
//! Time: O(total length of tokens and merges) for merge rules. In SPM any two tokens may merge, so each token of up to
//! [`MAX_LEN`] bytes is split at each of its characters; longer ones are ignored.

use std::collections::HashSet;

use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::strings::Strings;
use crate::vocabulary::{Kind, Vocabulary, split_rule};
use crate::work::interrupt;

/// Far longer than almost all tokens. Splitting a token at every character takes time quadratic in its length.
const MAX_LEN: usize = 128;

/// The normal tokens of more than one character that no merge makes, in ascending order.
///
/// For byte-pair encoding, tokens that are not the joined sides of any rule. For SPM, tokens that are not two texts
/// joined, each a character or a token that merges make. Other kinds do not merge, so there are none.
///
/// With `ignore_merges`, a byte-pair vocabulary finds whole words that no merge makes, so such tokens are fine.
pub fn unreachable_tokens(vocabulary: &Vocabulary, merges: Option<Strings<'_>>) -> Vec<TokenId> {
    let ids = 0..vocabulary.len() as TokenId;
    let long = |&id: &TokenId| vocabulary.attributes(id).is_normal() && !is_character(vocabulary.text(id));
    match vocabulary.kind() {
        Kind::Bpe => {
            let rules = interrupt::ticking(merges.iter().flat_map(Strings::iter)).filter_map(split_rule);
            let made: HashSet<TokenId> =
                rules.filter_map(|(left, right)| vocabulary.id(&[left, right].concat())).collect();
            ids.filter(long).filter(|id| !made.contains(id)).collect()
        }
        Kind::Spm => {
            let mut by_len: Vec<TokenId> = ids.clone().filter(|&id| vocabulary.text(id).len() <= MAX_LEN).collect();
            by_len.sort_by_key(|&id| vocabulary.text(id).len());
            let mut made = vec![false; vocabulary.len()];
            for id in interrupt::ticking(by_len) {
                let text = vocabulary.text(id);
                let is_made =
                    |part: &[u8]| is_character(part) || vocabulary.id(part).is_some_and(|id| made[id as usize]);
                made[id as usize] = character_starts(text).any(|at| is_made(&text[..at]) && is_made(&text[at..]));
            }
            let is_unreachable = |id: &TokenId| vocabulary.text(*id).len() <= MAX_LEN && !made[*id as usize];
            ids.filter(long).filter(is_unreachable).collect()
        }
        _ => Vec::new(),
    }
}

/// The ranks of the merge rules whose joined sides are not a token, in ascending order. They include rules without a
/// space, which never apply.
pub fn unused_merges(vocabulary: &Vocabulary, merges: Strings<'_>) -> Vec<usize> {
    let makes_token =
        |rule: &[u8]| split_rule(rule).is_some_and(|(left, right)| vocabulary.id(&[left, right].concat()).is_some());
    let rules = interrupt::ticking(merges.iter()).enumerate();
    rules.filter(|(_, rule)| !makes_token(rule)).map(|(rank, _)| rank).collect()
}

/// Whether a text is at most one character.
fn is_character(text: &[u8]) -> bool {
    character_starts(text).next().is_none()
}

/// Where all characters but the first start.
fn character_starts(text: &[u8]) -> impl Iterator<Item = usize> {
    (1..text.len()).filter(|&at| utf8::is_boundary(text, at))
}

#[cfg(test)]
mod tests {
    use super::{unreachable_tokens, unused_merges};
    use crate::vocabulary::strings::StringIndex;
    use crate::vocabulary::{Definition, Vocabulary};

    fn found(model: &str, tokens: &[&str], merges: &[&str]) -> (Vec<i32>, Vec<usize>) {
        let (tokens, token_index) = StringIndex::concatenate(tokens).unwrap();
        let (merges, merge_index) = StringIndex::concatenate(merges).unwrap();
        let definition = Definition {
            model,
            pre: Some("gpt-2"),
            tokens: Some(token_index.view(&tokens)),
            merges: Some(merge_index.view(&merges)),
            ..Definition::default()
        };
        let vocabulary = Vocabulary::declare(&definition).unwrap();
        let merges = merge_index.view(&merges);
        (unreachable_tokens(&vocabulary, Some(merges)), unused_merges(&vocabulary, merges))
    }

    #[test]
    fn byte_pair_tokens_are_the_results_of_rules() {
        let tokens = ["a", "b", "Ġ", "ab", "abc", "bc", "é", "aé", "bb"];
        // A rule ends at a NUL byte.
        let merges = ["a b", "ab c", "b d", "ab", " a", "", "a é", "b b\0c"];
        assert_eq!(found("gpt2", &tokens, &merges), (vec![5], vec![2, 3, 4, 5]));
    }

    #[test]
    fn spm_tokens_are_made_of_two_others() {
        let tokens = ["<unk>", "<s>", "</s>", "▁", "a", "ab", "abc", "▁abc", "cdef", "ef", "xyz", "éü"];
        let (tokens, merges) = found("llama", &tokens, &[]);
        // `ef` is two characters. No half of `cdef` or `xyz` is made.
        assert_eq!((tokens, merges), (vec![0, 1, 2, 8, 10], vec![]));
    }

    #[test]
    fn other_kinds_do_not_merge() {
        assert_eq!(found("rwkv", &["\\n", "abc"], &[]), (vec![], vec![]));
    }
}
