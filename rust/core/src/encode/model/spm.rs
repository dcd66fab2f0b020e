//! SentencePiece BPE: adjacent symbols merge into tokens, highest score first, leftmost first among equal scores.
//!
//! A text is cut into segments between any two characters that no token has side by side: with most vocabularies,
//! before every word. Each segment merges by itself, with scores as ranks, and its ids are cached.
//!
//! Source: Kudo and Richardson, "SentencePiece" (2018); llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_spm_session`.
//! Complexity: O(n log n) for a segment of n bytes, O(1) for a cached one; the worst case is a vocabulary whose tokens
//! join any two characters, so that the whole text is one segment.
//!
//! Deviations: (1) a byte that is not a token, on which llama.cpp aborts, becomes the unknown token, or nothing if
//! there is none; (2) NaN is the lowest score.

use std::sync::OnceLock;

use super::lengths::Lengths;
use super::merging::sure_pairs::{Ends, SurePairs, SurePairsBuilder};
use super::merging::symbol::{Merge, NO_MERGE, NO_RANK, NO_SYMBOL, Symbol};
use super::merging::symbol_tokens::SymbolTokens;
use super::merging::{Decision, SymbolSpan, runs};
use super::sampler::Sampler;
use super::segmenter::{Segmenter, SegmenterBuilder};
use super::{Fragment, Merger, Model, ModelScratch, Task};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::text::unicode::utf8::{self, sure_stretches};
use crate::token::TokenId;
use crate::vocabulary::spelling::{ESCAPED_SPACE, escape_spaces, unescape_spaces};
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::once;

/// SentencePiece BPE with one vocabulary.
#[derive(Debug)]
pub(crate) struct Spm {
    /// Bytes that are not tokens are unknown.
    tokens: SymbolTokens,
    /// The token of each ASCII character, or [`NO_SYMBOL`]. A space is `▁`.
    ascii: [Symbol; 128],
    /// Built on first use.
    tables: OnceLock<Tables>,
}

/// What the texts of all tokens say about pairs of characters.
#[derive(Debug)]
struct Tables {
    segmenter: Segmenter,
    pairs: SurePairs,
}

heap_bytes!(Spm: tokens, tables; Tables: segmenter, pairs);

impl Model for Spm {
    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let ascii = std::array::from_fn(|byte| {
            let character = [byte as u8];
            let id = vocabulary.id(if byte as u8 == b' ' { ESCAPED_SPACE } else { &character });
            id.map_or(NO_SYMBOL, |id| id as Symbol)
        });
        Ok(Self { tokens: tokens(vocabulary), ascii, tables: OnceLock::new() })
    }

    fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        self.tokens = tokens(vocabulary);
    }

    fn encode<S: Sink>(&self, Task { vocabulary, fragment, scratch, sink }: Task<'_, S>) {
        let Fragment { text, start, .. } = fragment;
        let ModelScratch { cache, queue, merger, sampler, rewritten: prefixed, .. } = scratch;
        let is_prefixed = self.is_prefixed(vocabulary, fragment);
        let is_utf8 = fragment.is_utf8 || utf8::is_valid(text);
        let rewritten;
        let text = if !is_utf8 {
            // A lead byte may swallow the space after it, or part of that space once it is escaped.
            rewritten = Rewritten::escaped(text, start, is_prefixed, S::SPANS);
            &rewritten
        } else if is_prefixed {
            prefixed.reset(start, S::SPANS);
            prefixed.push(b" ", 0..0);
            prefixed.push_kept(text, 0);
            &*prefixed
        } else {
            rewritten = Rewritten::unchanged(text, start);
            &rewritten
        };

        let tables = once(&self.tables, || Tables::new(vocabulary));
        let bytes = &text.text[..];
        let sink = &mut Traced { sink, text };
        let mut pass = SegmentMerging { spm: self, vocabulary, tables, merger, sampler };
        if S::SPANS || !is_utf8 {
            tables.segmenter.split(bytes, 0..bytes.len(), |start, end| pass.merge(&bytes[start..end], start, sink));
        } else {
            let merge = |segment: &[u8], ids: &mut Vec<TokenId>| pass.merge(segment, 0, ids);
            queue.encode_segments(cache, &tables.segmenter, bytes, 0..bytes.len(), merge, sink);
        }
    }

    fn lengths(&self, vocabulary: &Vocabulary) -> Option<Lengths> {
        // A space that is not a token is spelled as the three bytes of an escaped one.
        if self.ascii[usize::from(b' ')] == NO_SYMBOL {
            return None;
        }
        let mut lengths = Lengths::of_escaped(vocabulary);
        self.tokens.spelled.iter().flatten().for_each(|&id| lengths.set(id, Some(1)));
        Some(lengths)
    }

    fn first_start(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>) -> isize {
        -isize::from(self.is_prefixed(vocabulary, fragment))
    }

    /// The last place that no token crosses, in text whose characters are certain.
    fn settled(&self, vocabulary: &Vocabulary, Fragment { text, is_utf8, .. }: Fragment<'_>) -> usize {
        let segmenter = &once(&self.tables, || Tables::new(vocabulary)).segmenter;
        let mut stretches = sure_stretches(text, is_utf8).into_iter().rev();
        stretches.find_map(|range| segmenter.last_cut(text, range, |_| true)).unwrap_or(0)
    }
}

impl Tables {
    fn new(vocabulary: &Vocabulary) -> Self {
        let mut segmenter = SegmenterBuilder::new(true);
        let mut pairs = SurePairsBuilder::new();
        let mut unescaped = Vec::new();
        for (text, id) in vocabulary.keys().iter().zip(0..) {
            segmenter.add_characters(text);
            unescaped.clear();
            unescape_spaces(text, &mut unescaped);
            // Escaped texts have no spaces, and only one of several equal tokens is found.
            if !text.contains(&b' ')
                && let Some(ends) = Ends::of(&unescaped)
                && ends.pair().is_none_or(|pair| pair.is_ascii() && vocabulary.id(text) == Some(id))
            {
                pairs.add(ends, Merge { rank: rank(vocabulary.score(id)), symbol: id as Symbol });
            }
        }
        // A `▁` in the text itself may have neighbours that the unescaped tokens do not show.
        pairs.add_unknown(ESCAPED_SPACE);
        Self { segmenter: segmenter.finish(), pairs: pairs.finish(NO_RANK) }
    }
}

/// The merging of one text.
struct SegmentMerging<'a> {
    spm: &'a Spm,
    vocabulary: &'a Vocabulary,
    tables: &'a Tables,
    merger: &'a mut Merger,
    sampler: &'a mut Option<Sampler>,
}

impl SegmentMerging<'_> {
    /// Merges the characters of a segment, in which spaces may be escaped. The segment starts at byte `start` of the
    /// text.
    fn merge<S: Sink>(&mut self, segment: &[u8], start: usize, sink: &mut S) {
        let Self { spm, vocabulary, tables, .. } = *self;
        let Merger { merging, memo, escaped } = &mut *self.merger;
        let merge_of = |text: &[u8], escaped: &mut Vec<u8>| match vocabulary.id(escape(text, escaped)) {
            Some(id) => Merge { rank: rank(vocabulary.score(id)), symbol: id as Symbol },
            None => NO_MERGE,
        };
        let char = |at: usize| match segment[at] {
            byte @ 0..0x80 => (spm.ascii[usize::from(byte)], 1),
            lead => {
                let len = utf8::sequence_len(lead).min(segment.len() - at);
                (vocabulary.id(&segment[at..at + len]).map_or(NO_SYMBOL, |id| id as Symbol), len)
            }
        };
        let merge_texts = |left: Symbol, right: Symbol| {
            let text = |symbol: Symbol| vocabulary.keys().get(symbol as usize);
            memo.get(left, right, || merge_of(&[text(left), text(right)].concat(), escaped))
        };
        if self.sampler.is_none()
            && let Some(merged) = runs::merge_piece(segment, char, merge_texts)
        {
            return merged.for_each(|span| spm.tokens.push(span, segment, start, sink));
        }

        let merge = |left: &SymbolSpan, right: &SymbolSpan| {
            let both = &segment[left.start as usize..right.end as usize];
            match *both {
                [first @ ..0x80, second @ ..0x80] => tables.pairs.get(first, second),
                _ => memo.get(left.symbol, right.symbol, || merge_of(both, escaped)),
            }
        };
        if self.sampler.is_some() {
            merging.fill(segment, char);
        } else {
            merging.clear();
            let mut at = 0;
            let mut walk = tables.pairs.walk(segment);
            while let Some(&byte) = segment.get(at) {
                let (symbol, len) = if byte >= 0x80 {
                    let (symbol, len) = char(at);
                    walk.skip_to(at + len);
                    (symbol, len)
                } else {
                    walk.next_sure(at).map_or((spm.ascii[usize::from(byte)], 1), |both| (both, 2))
                };
                merging.push(symbol, at, at + len);
                at += len;
            }
        }
        let symbols = merging.run(merge, self.sampler.as_mut().map(|sampler| sampler.decide(Decision::Drop)));
        symbols.iter().for_each(|&span| spm.tokens.push(span, segment, start, sink));
    }
}

impl Spm {
    /// Whether a space is put before a fragment.
    fn is_prefixed(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>) -> bool {
        vocabulary.settings().add_space_prefix && fragment.after_special && !fragment.continues
    }
}

/// The tokens of symbols, with the unknown token for a byte that has none.
fn tokens(vocabulary: &Vocabulary) -> SymbolTokens {
    let unknown = vocabulary.special().unk;
    SymbolTokens::of_bytes(vocabulary, true, |byte| vocabulary.byte_token(byte).or(unknown))
}

/// A text with its spaces escaped.
fn escape<'a>(text: &'a [u8], escaped: &'a mut Vec<u8>) -> &'a [u8] {
    if memchr::memchr(b' ', text).is_none() {
        return text;
    }
    escaped.clear();
    escape_spaces(text, escaped);
    escaped
}

/// A score as a rank: a higher score is a lower rank, equal scores are equal ranks.
pub(super) fn rank(score: f32) -> u32 {
    if score.is_nan() {
        return NO_RANK - 1;
    }
    // Adding zero makes the negative zero positive. Then positive numbers are in the order of their bits, and negative
    // ones in reverse order.
    let bits = (score + 0.0).to_bits();
    let ascending = if bits >> 31 == 0 { bits | 1 << 31 } else { !bits };
    !ascending
}

#[cfg(test)]
mod tests {
    use super::rank;
    use crate::encode::model::merging::symbol::NO_RANK;
    use crate::vocab::Definition;
    use crate::vocabulary::strings::StringIndex;
    use crate::{EncodeOptions, TokenId, Tokenizer, VocabularyError};

    const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false, continues: false };
    const UNKNOWN: TokenId = 0;

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

    #[test]
    fn the_highest_score_merges_first() -> Result<(), VocabularyError> {
        // ▁abc: "bc" (-1) before "ab" (-2); then nothing makes ▁a; with equal scores "ab", which is further left.
        let tokens = |score| [("a", -9.0), ("b", -9.0), ("c", -9.0), ("▁", -9.0), ("ab", -2.0), ("bc", score)];
        assert_eq!(tokenizer(&tokens(-1.0), true)?.encode_with("abc", PLAIN), Ok(vec![6, 3, 8]));
        assert_eq!(tokenizer(&tokens(-2.0), true)?.encode_with("abc", PLAIN), Ok(vec![6, 7, 5]));
        Ok(())
    }

    #[test]
    fn what_is_not_a_token_is_spelled_in_bytes_or_unknown() -> Result<(), VocabularyError> {
        let tokenizer = tokenizer(&[("a", -1.0), ("<0xC3>", 0.0), ("<0xA9>", 0.0)], false)?;
        let found = tokenizer.encoder().encode_with_spans("aéz", PLAIN).map(|found| (found.ids, found.spans));
        assert_eq!(found, Ok((vec![3, 4, 5, UNKNOWN], vec![0..1, 1..2, 2..3, 3..4])));
        Ok(())
    }

    #[test]
    fn a_space_goes_before_the_text_and_after_special_tokens() -> Result<(), VocabularyError> {
        let tokenizer = tokenizer(&[("a", -1.0), ("▁", -2.0), ("▁a", 0.0)], true)?;
        let options = EncodeOptions { parse_special: true, ..EncodeOptions::default() };
        assert_eq!(tokenizer.encode_with("a a</s>a", options), Ok(vec![1, 5, 5, 2, 5]));
        assert_eq!(tokenizer.encode_with("a</s>", PLAIN).map(|ids| ids[0]), Ok(5));
        assert_eq!(tokenizer.encode_with("", options), Ok(vec![1]));
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
