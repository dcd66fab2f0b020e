//! Reads merge rules as symbols: the order of the tokens gives a first guess, and other texts are looked up in groups.
//!
//! A rule is the text of its left part, a space, and the text of its right part, so all three texts have to be looked
//! up. Two things make that fast. Most rules make the tokens in order, so the last token made and the next one are the
//! first guesses for what a rule makes. And the other two texts are looked up for several rules together. Half of the
//! rules are read on a second thread.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::load`. O(total length). Deviations: none.

use std::ops::Range;
use std::sync::Mutex;

use super::{MergeRanks, Row};
use crate::encode::model::merging::symbol::{NO_SYMBOL, Symbol};
use crate::lookup::index::LOOKUPS_AT_ONCE;
use crate::lookup::key::Key;
use crate::token::TokenId;
use crate::vocabulary::strings::Strings;
use crate::vocabulary::{Vocabulary, split_rule};
use crate::work::large_vec::LargeVec;
use crate::work::memory::{copied, with_room};
use crate::work::threads::{join, lock};

impl MergeRanks {
    /// The symbols of each rule, in order of rank. Texts that are not tokens become new symbols.
    pub(super) fn read(&mut self, vocabulary: &Vocabulary, merges: Strings<'_>) -> LargeVec<Row> {
        let half = merges.len() / 2;
        let keys = vocabulary.keys();
        let mut tokens = LargeVec::filled(keys.len(), Key::OTHER);
        tokens.iter_mut().enumerate().for_each(|(id, token)| *token = keys.key(id).unwrap_or(Key::OTHER));
        let mut rows = LargeVec::filled(merges.len(), Row::default());
        let (first, second) = rows.split_at_mut(half);
        let second = Mutex::new(second);
        let look_up = |start, rows: &mut [Row]| find_tokens(vocabulary, &tokens, merges, start, rows);
        join(|| look_up(0, first), || look_up(half, &mut lock(&second)));
        for (at, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.contains(&NO_SYMBOL)) {
            if let Some((left, right)) = merges.get(at).and_then(split_rule) {
                *row = [left, right, &[left, right].concat()].map(|text| self.symbol_or_new(vocabulary, text));
            }
        }
        rows
    }

    fn symbol_or_new(&mut self, vocabulary: &Vocabulary, text: &[u8]) -> Symbol {
        let known = self.symbol(vocabulary, text);
        if known != NO_SYMBOL {
            return known;
        }
        let number = (self.num_tokens + self.others.len()) as Symbol;
        with_room(&mut self.others).insert(copied(text).into(), number);
        number
    }
}

/// Writes the tokens of the rules from `start` on to their rows, given the keys of all tokens.
fn find_tokens(vocabulary: &Vocabulary, tokens: &[Key], merges: Strings<'_>, start: usize, rows: &mut [Row]) {
    let symbol = |id: Option<TokenId>| id.map_or(NO_SYMBOL, |id| id as Symbol);
    let is_token = |id: Symbol, text: Key| tokens.get(id as usize).is_some_and(|token| token.is(text));
    let data = merges.data();
    // The token that the last rule made.
    let mut made = NO_SYMBOL;
    for (rows, first) in rows.chunks_mut(LOOKUPS_AT_ONCE).zip((start..).step_by(LOOKUPS_AT_ONCE)) {
        let mut sides = [[Key::default(); LOOKUPS_AT_ONCE]; 2];
        for (at, row) in rows.iter_mut().enumerate() {
            *row = [NO_SYMBOL; 3];
            let Some(Range { start, end }) = merges.range(first + at) else { continue };
            if let Some([left, right, whole]) = Key::new(data, start, end).and_then(Key::split_at_space) {
                (sides[0][at], sides[1][at]) = (left, right);
                let guess = made.wrapping_add(Symbol::from(!is_token(made, whole)));
                row[2] = if is_token(guess, whole) {
                    guess
                } else {
                    symbol(vocabulary.id(&whole.bytes()[..whole.word_len()]))
                };
            } else if let Some((left, right)) = split_rule(&data[start..end]) {
                let starts = [start, start + left.len() + 1];
                for (side, (text, start)) in [left, right].into_iter().zip(starts).enumerate() {
                    match Key::new(data, start, start + text.len()) {
                        Some(key) => sides[side][at] = key,
                        None => row[side] = symbol(vocabulary.id(text)),
                    }
                }
                let is_both = |id: &Symbol| {
                    let token = vocabulary.keys().get(*id as usize);
                    token.len() == left.len() + right.len() && token.starts_with(left) && token.ends_with(right)
                };
                let guessed = [made, made.wrapping_add(1)].into_iter().find(is_both);
                row[2] = guessed.unwrap_or_else(|| symbol(vocabulary.id(&[left, right].concat())));
            }
            if row[2] != NO_SYMBOL {
                made = row[2];
            }
        }
        for (side, keys) in sides.iter().enumerate() {
            vocabulary.find_all(keys, tokens, |at, id| rows[at][side] = id as Symbol);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{NO_SYMBOL, split_rule};
    use crate::encode::model::merging::ranks::tests::with;
    use crate::error::VocabularyError;

    proptest! {
        /// Tokens in any order, and rules that make some of them in order.
        #[test]
        fn rules_are_split_at_the_first_space_after_the_first_byte(
            tokens in prop::collection::hash_set("[ab ]{1,4}|[ab ]{13,19}", 1..30),
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize), 0..60),
            others in prop::collection::vec("[ab \0]{0,6}", 0..5),
        ) {
            let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
            let cut = cuts.iter().map(|(which, at)| {
                let (left, right) = which.get(&tokens).split_at((*at).min(which.get(&tokens).len()));
                format!("{left} {right}")
            });
            let in_order = tokens.iter().map(|token| format!("{} {}", &token[..1], &token[1..]));
            let merges: Vec<String> = in_order.chain(cut).chain(others).collect();
            let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
            with(&tokens, &merges, |vocabulary, ranks| {
                for (merge, &merged) in merges.iter().zip(&ranks.merged) {
                    let Some((left, right)) = split_rule(merge.as_bytes()) else { continue };
                    let [left_symbol, right_symbol] = [left, right].map(|text| ranks.symbol(vocabulary, text));
                    assert_eq!(merged, ranks.symbol(vocabulary, &[left, right].concat()), "{merge:?}");
                    assert_eq!(ranks.get(left_symbol, right_symbol).symbol, merged, "{merge:?}");
                }
            }).expect("few tokens");
        }
    }

    #[test]
    fn rules_make_symbols_of_texts_that_are_not_tokens() -> Result<(), VocabularyError> {
        with(&["a", "b", "ab", "abb"], &["a b", "ab b", "b b"], |vocabulary, ranks| {
            let symbol = |text: &str| ranks.symbol(vocabulary, text.as_bytes());
            assert_eq!([symbol("a"), symbol("b"), symbol("ab"), symbol("abb")], [0, 1, 2, 3]);
            assert_eq!(ranks.get(symbol("b"), symbol("b")).symbol, symbol("bb"));
            assert!(!ranks.is_token(symbol("bb")) && ranks.is_token(symbol("abb")));
            assert_eq!(symbol("c"), NO_SYMBOL);
        })
    }

    #[test]
    fn a_text_that_is_not_a_rule_is_skipped() -> Result<(), VocabularyError> {
        // No space; a space only in front, which belongs to the left text; two spaces, of which the first one is the
        // separator.
        with(&["a", "b", " a"], &["ab", "", " ", " a b", "a b c"], |vocabulary, ranks| {
            assert_eq!(ranks.get(0, 1).symbol, NO_SYMBOL);
            assert_eq!(ranks.get(2, 1).rank, 3);
            assert_eq!(ranks.get(0, ranks.symbol(vocabulary, b"b c")).rank, 4);
        })
    }
}
