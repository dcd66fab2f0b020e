//! Reads merge rules as symbols: the order of the tokens gives a first guess, and other texts are looked up in groups.
//!
//! A rule is the text of its left part, a space, and the text of its right part, so all three texts have to be looked
//! up. Two things make that fast. Most rules make the tokens in order, so the next token is the first guess for what a
//! rule makes, and comparing the two also finds the space. And the other two texts are looked up for several rules
//! together. Half of the rules are read on a second thread.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::load`. O(total length). Deviations: none.

use std::ops::Range;

use super::{MergeRanks, Row};
use crate::encode::model::merging::symbol::{NO_SYMBOL, Symbol};
use crate::lookup::index::TOGETHER;
use crate::lookup::key::Key;
use crate::token::TokenId;
use crate::vocabulary::strings::Strings;
use crate::vocabulary::{Vocabulary, split_rule};
use crate::work::threads::join;

impl MergeRanks {
    /// The symbols of each rule, in order of rank. Texts that are not tokens become new symbols.
    pub(super) fn read(&mut self, vocabulary: &Vocabulary, merges: Strings<'_>) -> Vec<Row> {
        let (len, half) = (merges.len(), merges.len() / 2);
        let look_up = |range| token_rows(vocabulary, merges, range);
        let (mut rows, second) = join(|| look_up(0..half), || look_up(half..len));
        rows.extend(second);
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
        self.others.insert(text.into(), number);
        number
    }
}

/// The tokens of some rules.
fn token_rows(vocabulary: &Vocabulary, merges: Strings<'_>, Range { start, end }: Range<usize>) -> Vec<Row> {
    let symbol = |id: Option<TokenId>| id.map_or(NO_SYMBOL, |id| id as Symbol);
    let (keys, data) = (vocabulary.keys(), merges.data());
    let has_spaces = keys.contains(b' ');
    let mut rows = Vec::with_capacity(end - start);
    let mut both = Vec::new();
    let mut guess = NO_SYMBOL;
    for first in (start..end).step_by(TOGETHER) {
        let mut lefts = [(&b""[..], Key::default()); TOGETHER];
        let (mut rights, mut merged) = (lefts, [NO_SYMBOL; TOGETHER]);
        let len = TOGETHER.min(end - first);
        for at in 0..len {
            let Some(Range { start, end }) = merges.range(first + at) else { continue };
            let (merge, key) = (&data[start..end], Key::new(data, start, end));
            let guessed = [guess, guess.wrapping_add(1)].into_iter().find_map(|guess| {
                let (left, right) = key?.split_at_space(keys.key(guess as usize)?)?;
                let space = left.word_len();
                let is_first = !(has_spaces && merge[1..space].contains(&b' '));
                is_first.then_some((guess, (&merge[..space], left), (&merge[space + 1..], right)))
            });
            if let Some(guessed) = guessed {
                (guess, lefts[at], rights[at]) = guessed;
            } else if let Some((left, right)) = split_rule(merge) {
                [lefts[at], rights[at]] =
                    [left, right].map(|text| (text, Key::new(text, 0, text.len()).unwrap_or_default()));
                both.clear();
                both.extend_from_slice(left);
                both.extend_from_slice(right);
                let next = guess.wrapping_add(1);
                let is_next = keys.get(next as usize) == both && !both.is_empty();
                guess = if is_next { next } else { symbol(vocabulary.id(&both)) };
            } else {
                continue;
            }
            merged[at] = guess;
        }
        let symbols = vocabulary.ids(&lefts).into_iter().zip(vocabulary.ids(&rights)).zip(merged);
        rows.extend(symbols.take(len).map(|((left, right), merged)| [symbol(left), symbol(right), merged]));
    }
    rows
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
