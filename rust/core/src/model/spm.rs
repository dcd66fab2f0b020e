//! SentencePiece BPE: characters whose neighbours merge into tokens, highest score first, leftmost first among equals.
//!
//! Source: Kudo and Richardson, "SentencePiece" (2018); llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_spm_session`.
//! A text is cut where no token has two characters side by side, which for most vocabularies is before every word;
//! each part merges by itself. Complexity: O(n log n) for a part of n bytes, O(1) for one that was met before.
//!
//! Deviations: (1) a byte that is no token, on which llama.cpp aborts, gives the unknown token, or nothing where there
//! is none; (2) a score that is not a number counts as the lowest.

use std::ops::Range;
use std::sync::OnceLock;

use super::adjacency::{Junctions, Pairs};
use super::cache::segments::Parts;
use super::merging::Merging;
use super::merging::pair_memo::Memo;
use super::merging::sure_pairs::{BytePairs, TokenPairs};
use super::merging::symbol::{NO_RANK, NO_SYMBOL, Symbol};
use super::{Fragment, Model};
use crate::error::VocabularyError;
use crate::normalizer::rewritten::{Rewritten, Traced};
use crate::sink::{Sink, TokenId};
use crate::unicode::utf8::{self, is_boundary};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Definition, Vocabulary};

/// SentencePiece BPE with one vocabulary.
#[derive(Debug)]
pub(crate) struct Spm {
    /// The token of each byte.
    byte_tokens: [Option<TokenId>; 256],
    /// The token that each ASCII character is, or [`NO_SYMBOL`]; of a space the one of `▁`.
    ascii: [Symbol; 256],
    tables: OnceLock<Tables>,
}

/// What the texts of the tokens tell.
#[derive(Debug)]
struct Tables {
    junctions: Junctions,
    pairs: BytePairs,
}

/// What one call needs and the next can reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    parts: Parts,
    merger: Merger,
    /// The first part with the space before it.
    first: Vec<u8>,
}

/// What merging needs.
#[derive(Debug, Default)]
struct Merger {
    merging: Merging,
    memo: Memo,
    /// A text with its spaces escaped.
    escaped: Vec<u8>,
}

impl Model for Spm {
    type Scratch = Scratch;

    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let byte_tokens = std::array::from_fn(|byte| vocabulary.byte_token(byte as u8));
        let ascii = std::array::from_fn(|byte| {
            let character = [byte as u8];
            let id = vocabulary.id(if byte as u8 == b' ' { ESCAPED_SPACE } else { &character });
            id.filter(|_| byte < 128).map_or(NO_SYMBOL, |id| id as Symbol)
        });
        Ok(Self { byte_tokens, ascii, tables: OnceLock::new() })
    }

    fn encode<S: Sink>(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>, scratch: &mut Scratch, sink: &mut S) {
        let Fragment { text, start, .. } = fragment;
        let tables = self.tables.get_or_init(|| Tables::new(vocabulary));
        let junctions = &tables.junctions;
        let is_prefixed = vocabulary.settings().add_space_prefix && fragment.after_special;
        if !fragment.is_utf8 && std::str::from_utf8(text).is_err() {
            // A lead byte may take the space after it for a part of its character, or what the space is spelled with.
            let text = Rewritten::escaped(text, start, is_prefixed, S::SPANS);
            let sink = &mut Traced { sink, text: &text };
            junctions.split(&text.text, 0, text.text.len(), true, |from, to| {
                self.merge(vocabulary, tables, &text.text, from..to, &mut scratch.merger, sink);
            });
            return;
        }
        let mut begin = 0;
        if is_prefixed {
            let mut first = std::mem::take(&mut scratch.first);
            first.clear();
            first.push(b' ');
            // A window that is long enough for most first parts, doubled where it is not.
            let mut window = 64;
            let end = loop {
                let known = (0..=window.min(text.len())).rev().find(|&at| is_boundary(text, at)).unwrap_or(0);
                first.truncate(1);
                first.extend_from_slice(&text[..known]);
                let end = junctions.first_part(&first, true);
                if end < first.len() || known == text.len() {
                    break end;
                }
                window *= 2;
            };
            let Scratch { parts, merger, .. } = scratch;
            let sink = &mut Placed { sink, origin: Origin { start, is_prefixed: true } };
            if S::SPANS {
                self.merge(vocabulary, tables, &first, 0..end, merger, sink);
            } else {
                parts
                    .encode_one(&first[..end], sink, |part, ids| self.merge_all(vocabulary, tables, part, merger, ids));
            }
            begin = end - 1;
            scratch.first = first;
        }
        let Scratch { parts, merger, .. } = scratch;
        if S::SPANS {
            let sink = &mut Placed { sink, origin: Origin { start, is_prefixed: false } };
            return junctions.split(text, begin, text.len(), true, |from, to| {
                self.merge(vocabulary, tables, text, from..to, merger, sink)
            });
        }
        parts.encode(junctions, text, begin..text.len(), true, sink, |part, ids| {
            self.merge_all(vocabulary, tables, part, merger, ids)
        });
    }

    fn heap_bytes(&self) -> usize {
        self.tables.get().map_or(0, |tables| tables.junctions.heap_bytes() + tables.pairs.heap_bytes())
    }
}

/// Where a text stands in the whole input.
#[derive(Debug, Clone, Copy)]
struct Origin {
    start: usize,
    /// Whether a space was put before it, so that its first byte comes from nowhere.
    is_prefixed: bool,
}

impl Tables {
    fn new(vocabulary: &Vocabulary) -> Self {
        let (mut pairs, mut byte_pairs, mut unescaped) = (Pairs::default(), TokenPairs::default(), Vec::new());
        for (text, id) in vocabulary.keys().iter().zip(0..) {
            pairs.add_characters(text, true);
            unescaped.clear();
            let mut rest = text;
            while let Some((&byte, after)) = rest.split_first() {
                let space = rest.strip_prefix(ESCAPED_SPACE);
                unescaped.push(if space.is_some() { b' ' } else { byte });
                rest = space.unwrap_or(after);
            }
            // Escaped texts have no spaces, and of equal tokens one counts.
            if !text.contains(&b' ') && (unescaped.len() != 2 || vocabulary.id(text) == Some(id)) {
                byte_pairs.add(&unescaped, rank(vocabulary.score(id)), id as Symbol);
            }
        }
        // A `▁` that is no escaped space stands beside other bytes than the tokens say.
        byte_pairs.add_unknown(ESCAPED_SPACE);
        Self { junctions: pairs.finish(), pairs: byte_pairs.finish() }
    }
}

impl Spm {
    /// Merges the characters of a part.
    fn merge_all(
        &self,
        vocabulary: &Vocabulary,
        tables: &Tables,
        part: &[u8],
        merger: &mut Merger,
        ids: &mut Vec<TokenId>,
    ) {
        self.merge(vocabulary, tables, part, 0..part.len(), merger, ids);
    }

    /// Merges the characters of `text[range]`, in which spaces may be escaped.
    fn merge<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        tables: &Tables,
        text: &[u8],
        range: Range<usize>,
        merger: &mut Merger,
        sink: &mut S,
    ) {
        let Merger { merging, memo, escaped } = merger;
        let (begin, part) = (range.start, &text[range]);
        merging.clear();
        let char = |at: usize| {
            let len = utf8::sequence_len(part[at]).min(part.len() - at);
            (Some(vocabulary.id(&part[at..at + len]).map_or(NO_SYMBOL, |id| id as Symbol)), len)
        };
        let push = |symbol, range: Range<usize>, _| merging.push(symbol, range.start, range.end);
        tables.pairs.symbols(part, &self.ascii, char, push);
        let parts = merging.run(|left, right| {
            if let &[first @ ..0x80, second @ ..0x80] = &part[left.start as usize..right.end as usize] {
                return tables.pairs.get(first, second);
            }
            memo.get(left.symbol, right.symbol, || {
                let both = escape(&part[left.start as usize..right.end as usize], escaped);
                match vocabulary.id(both) {
                    Some(id) => (rank(vocabulary.score(id)), id as u32),
                    None => (NO_RANK, NO_SYMBOL),
                }
            })
        });
        for merged in parts {
            let (start, end) = (begin + merged.start as usize, begin + merged.end as usize);
            if merged.symbol != NO_SYMBOL {
                sink.push(merged.symbol as TokenId, start..end);
                continue;
            }
            for at in start..end {
                let spelled = if text[at] == b' ' { ESCAPED_SPACE } else { &text[at..=at] };
                for &byte in spelled {
                    if let Some(id) = self.byte_tokens[usize::from(byte)].or(vocabulary.special().unk) {
                        sink.push(id, at..at + 1);
                    }
                }
            }
        }
    }
}

/// Hands tokens on with their spans led back to the whole input.
struct Placed<'a, S> {
    sink: &'a mut S,
    origin: Origin,
}

impl<S: Sink> Sink for Placed<'_, S> {
    const SPANS: bool = S::SPANS;

    fn push(&mut self, id: TokenId, span: Range<usize>) {
        let Origin { start, is_prefixed } = self.origin;
        let place = |at: usize| start + at.saturating_sub(usize::from(is_prefixed));
        self.sink.push(id, place(span.start)..place(span.end));
    }
}

/// A text with its spaces escaped.
fn escape<'a>(text: &'a [u8], escaped: &'a mut Vec<u8>) -> &'a [u8] {
    if memchr::memchr(b' ', text).is_none() {
        return text;
    }
    escaped.clear();
    for &byte in text {
        match byte {
            b' ' => escaped.extend_from_slice(ESCAPED_SPACE),
            _ => escaped.push(byte),
        }
    }
    escaped
}

/// Scores as ranks: a higher score is a lower rank, equal scores are equal ranks.
fn rank(score: f32) -> u32 {
    if score.is_nan() {
        return NO_RANK - 1;
    }
    // Adding zero makes the negative zero positive. Then bits order positive numbers as they are and negative ones the
    // other way round.
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    !ascending
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::rank;
    use crate::model::merging::symbol::NO_RANK;
    use crate::vocabulary::strings::StringIndex;
    use crate::{Definition, EncodeOptions, Scratch, Spans, Text, TokenId, Tokenizer, VocabularyError};

    const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };
    const UNKNOWN: TokenId = 0;
    /// The id of the first token behind the three that every vocabulary has.
    const FIRST: TokenId = 3;

    fn tokenizer(tokens: &[(&str, f32)], add_space_prefix: bool) -> Result<Tokenizer, VocabularyError> {
        let all = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0)].iter().chain(tokens);
        let (texts, scores): (Vec<&str>, Vec<f32>) = all.copied().unzip();
        let types: Vec<i32> = [2, 3, 3].into_iter().chain(tokens.iter().map(|_| 1)).collect();
        let (data, index) = StringIndex::concatenate(&texts).unwrap_or_default();
        Tokenizer::new(&Definition {
            model: "llama",
            tokens: Some(index.view(&data)),
            scores: Some(&scores),
            token_types: Some(&types),
            add_space_prefix: Some(add_space_prefix),
            ..Definition::default()
        })
    }

    /// Looks all neighbours through before every merge; the highest score, then the leftmost.
    fn naive(tokens: &BTreeMap<&str, (TokenId, f32)>, text: &str) -> Vec<TokenId> {
        let escaped = format!("▁{}", text.replace(' ', "▁"));
        let mut parts: Vec<String> = escaped.chars().map(String::from).collect();
        loop {
            let mut best: Option<(usize, f32)> = None;
            for at in 1..parts.len() {
                if let Some(&(_, score)) = tokens.get(parts[at - 1..=at].concat().as_str())
                    && best.is_none_or(|(_, highest)| score > highest)
                {
                    best = Some((at, score));
                }
            }
            let Some((at, _)) = best else { break };
            let right = parts.remove(at);
            parts[at - 1] += &right;
        }
        let byte = |byte: u8| tokens.get(format!("<0x{byte:02X}>").as_str()).map_or(UNKNOWN, |token| token.0);
        let ids = |part: &String| match tokens.get(part.as_str()) {
            Some(token) => vec![token.0],
            None => part.bytes().map(byte).collect(),
        };
        parts.iter().flat_map(ids).collect()
    }

    proptest! {
        #[test]
        fn ids_are_those_of_a_search_before_each_merge(
            // Few scores, so that the leftmost counts; text longer than every threshold.
            tokens in prop::collection::btree_map("[ab▁é]{1,4}|<0x(C3|A9|62)>", 0..4_u8, 0..24),
            texts in prop::collection::vec("[ab é]{1,12}|[ab ]{1,200}|[é▁]{1,150}", 1..5),
        ) {
            check(&tokens, &texts);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn what_surely_merges_may_do_so_first(
            tokens in prop::collection::btree_map("[abc▁]{2}|[abc▁]{3}", 0..6_u8, 1..24),
            texts in prop::collection::vec("[abc ]{1,14}|[abc▁ é]{1,14}", 20),
        ) {
            check(&tokens, &texts);
        }
    }

    /// Compares with [`naive`].
    fn check(tokens: &BTreeMap<String, u8>, texts: &[String]) {
        let listed: Vec<(&str, f32)> = tokens.iter().map(|(text, score)| (text.as_str(), -f32::from(*score))).collect();
        let tokenizer = tokenizer(&listed, true).expect("a vocabulary");
        let numbered = listed.iter().zip(FIRST..).map(|(&(text, score), id)| (text, (id, score))).collect();
        let mut scratch = Scratch::default();
        // The second time words may have been seen before.
        for text in texts.iter().chain(texts) {
            let mut spans = Spans::default();
            let mut ids: Vec<TokenId> = Vec::new();
            tokenizer.encode_into(Text::Str(text), PLAIN, &mut scratch, &mut spans).expect("ids");
            tokenizer.encode_into(Text::Str(text), PLAIN, &mut scratch, &mut ids).expect("ids");
            assert_eq!(&spans.ids, &naive(&numbered, text), "{text}");
            assert_eq!(&ids, &spans.ids, "{text}");
        }
    }

    #[test]
    fn the_highest_score_merges_first() -> Result<(), VocabularyError> {
        // ▁abc: "bc" (-1) before "ab" (-2); then nothing makes ▁a; with equal scores "ab", which is further left.
        let tokens = |score| [("a", -9.0), ("b", -9.0), ("c", -9.0), ("▁", -9.0), ("ab", -2.0), ("bc", score)];
        assert_eq!(tokenizer(&tokens(-1.0), true)?.encode("abc", PLAIN), Ok(vec![6, 3, 8]));
        assert_eq!(tokenizer(&tokens(-2.0), true)?.encode("abc", PLAIN), Ok(vec![6, 7, 5]));
        Ok(())
    }

    #[test]
    fn what_is_no_token_is_spelled_in_bytes_or_unknown() -> Result<(), VocabularyError> {
        let tokenizer = tokenizer(&[("a", -1.0), ("<0xC3>", 0.0), ("<0xA9>", 0.0)], false)?;
        let found = tokenizer.encode_with_spans("aéz", PLAIN).map(|found| (found.ids, found.spans));
        assert_eq!(found, Ok((vec![3, 4, 5, UNKNOWN], vec![0..1, 1..2, 2..3, 3..4])));
        Ok(())
    }

    #[test]
    fn a_first_part_of_any_length_is_whole() -> Result<(), VocabularyError> {
        let listed = [("▁", -1.0), ("▁▁", -0.5), ("▁▁▁▁▁▁▁", -0.4), ("▁▁▁▁", -0.4), ("▁▁▁▁▁▁▁▁", -0.3)];
        let tokenizer = tokenizer(&listed, true)?;
        let numbered = listed.iter().zip(FIRST..).map(|(&(text, score), id)| (text, (id, score))).collect();
        for count in 1..100 {
            let text = "▁".repeat(count);
            assert_eq!(tokenizer.encode(text.as_str(), PLAIN), Ok(naive(&numbered, &text)), "{count}");
        }
        Ok(())
    }

    #[test]
    fn a_space_goes_before_the_text_and_after_special_tokens() -> Result<(), VocabularyError> {
        let tokenizer = tokenizer(&[("a", -1.0), ("▁", -2.0), ("▁a", 0.0)], true)?;
        let options = EncodeOptions { add_special: true, parse_special: true };
        assert_eq!(tokenizer.encode("a a</s>a", options), Ok(vec![1, 5, 5, 2, 5]));
        assert_eq!(tokenizer.encode("a</s>", PLAIN).map(|ids| ids[0]), Ok(5));
        assert_eq!(tokenizer.encode("", options), Ok(vec![1]));
        Ok(())
    }

    #[test]
    fn ranks_order_scores_from_high_to_low() {
        let scores = [f32::INFINITY, 1e9, 1.5, 0.0, -1e-30, -1.0, -31741.0, f32::NEG_INFINITY];
        assert!(scores.windows(2).all(|pair| rank(pair[0]) < rank(pair[1])));
        assert_eq!(rank(0.0), rank(-0.0));
        assert!(rank(f32::NAN) < NO_RANK && rank(f32::NEG_INFINITY) < rank(f32::NAN));
    }
}
