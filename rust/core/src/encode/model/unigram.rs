//! Unigram: the segmentation of a normalized text with the highest sum of token scores.
//!
//! A Viterbi search finds it ([`lattice`]). A character that is not a token scores ten below the lowest token; adjacent
//! unknown tokens become one. A text is handled in one of three ways, all with the same result:
//!
//! 1. With most vocabularies it is cut into segments that no token crosses, and their ids are cached ([`segments`]).
//! 2. If the vocabulary or the text rules out the first way, the whole text is normalized. If no token crosses the
//!    start of a word (a space after anything but spaces), each word is searched by itself, starting from the sum of
//!    the words before it: every addition and comparison is the same as over the whole text, and the lattice stays
//!    small.
//! 3. Otherwise the whole text is one lattice.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm` and `llm_tokenizer_ugm_session::tokenize` (llama-vocab.cpp).
//!
//! Deviations: none beyond those of the normalizer.
//!
//! Time: O(n + matches) for n bytes and all tokens that match in them. Space: 4 bytes per byte of the longest text
//! searched at once.

mod advance;
mod cuts;
mod lattice;
pub(crate) mod sampled;
mod segments;

use std::ops::Range;

use crate::encode::model::progress::{Progress, UnigramProgress};
use crate::encode::model::{Fragment, Model, ModelScratch, Task};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::normalizer::unigram::UnigramNormalizer;
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::trie::backward::Backward;
use crate::lookup::trie::{DoubleArray, TrieError};
use crate::text::unicode::utf8;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::memory::{collect, with_capacity};
use crate::work::threads::join;
use cuts::Cuts;
use lattice::{Candidates, Lattice};
use sampled::Paths;
use segments::{Pass, SpanTracker};

/// How much lower than any normal token an unknown character scores.
pub(crate) const UNKNOWN_PENALTY: f32 = 10.0;

/// The Unigram algorithm for one vocabulary.
#[derive(Debug)]
pub(crate) struct Unigram {
    normalizer: UnigramNormalizer,
    /// Tokens that the file declares normal, user-defined or unused. Scores are zero for those that are user-defined
    /// after the loader's repairs.
    candidates: Candidates,
    /// Whether no token crosses the start of a word.
    splits_words: bool,
    /// Where a text may be cut into segments; `None` if that could change its tokens.
    cuts: Option<Cuts>,
    /// Whether all scores are finite.
    is_finite: bool,
}

heap_bytes!(Unigram: normalizer, candidates, cuts);

/// Scratch space of [`Unigram`].
#[derive(Debug, Default)]
pub(super) struct UnigramScratch {
    lattice: Lattice,
    /// The segment that is being searched, in normalized form, and its ids.
    segment: Vec<u8>,
    ids: Vec<TokenId>,
    /// Whether the last token was unknown.
    after_unknown: bool,
    /// The sum of the scores of unknown tokens, unless it was rounded.
    unknown_score: f64,
    tracer: SpanTracker,
    paths: Paths,
}

impl Model for Unigram {
    fn new(vocabulary: &Vocabulary, _: &Definition<'_>) -> Result<Self, VocabularyError> {
        let mut ids = with_capacity(vocabulary.len());
        let mut lowest = f32::MAX;
        for id in (0..).take(vocabulary.len()) {
            let attributes = vocabulary.attributes(id);
            if attributes.is_normal() {
                lowest = lowest.min(vocabulary.score(id));
            }
            if attributes.is_normal() || attributes.is_user_defined() || attributes.is_unused() {
                ids.push(id);
            }
        }
        let unknown_score = lowest - UNKNOWN_PENALTY;

        let keys = ids.iter().map(|&id| (vocabulary.text(id), id as u32));
        let build_trie = || Ok((DoubleArray::build(keys.clone())?, Backward::of_long(keys.clone())?));
        let build_others = || {
            let normalizer = UnigramNormalizer::new(vocabulary)?;
            let tokens = ids.iter().map(|&id| (vocabulary.text(id), vocabulary.score(id)));
            let splits_words = tokens.clone().all(|(text, score)| score.is_finite() && !crosses_words(text));
            let cuts = if splits_words { Cuts::new(tokens, unknown_score, &normalizer) } else { None };
            Ok((normalizer, splits_words, cuts))
        };
        let (tries, others) = join(build_trie, build_others);
        let (normalizer, splits_words, cuts) = others.map_err(|error: VocabularyError| error)?;
        let (tokens, long) = tries.map_err(|error: TrieError| error)?;
        let candidates = Candidates { tokens, long, scores: Vec::new(), unknown: NULL_TOKEN, unknown_score };
        let mut model = Self { normalizer, candidates, splits_words, cuts, is_finite: false };
        model.apply_repairs(vocabulary);
        Ok(model)
    }

    fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        let score = |id| {
            if vocabulary.attributes(id).is_user_defined() {
                self.cuts = None;
                0.0
            } else {
                vocabulary.score(id)
            }
        };
        self.candidates.scores = collect((0..).take(vocabulary.len()).map(score));
        self.candidates.unknown = vocabulary.special().unk.unwrap_or(NULL_TOKEN);
        let Candidates { scores, unknown_score, .. } = &self.candidates;
        self.is_finite = unknown_score.is_finite() && scores.iter().all(|score| score.is_finite());
    }

    fn encode<S: Sink>(&self, Task { vocabulary, fragment, scratch, sink }: Task<'_, S>) {
        let text = fragment.text;
        if scratch.sampler.is_some() {
            return self.sample(Task { vocabulary, fragment, scratch, sink });
        }
        if text.len() <= self.max_cut_len()
            && (fragment.is_utf8 || utf8::is_valid(text))
            && let Some(mut pass) = self.pass(Task { vocabulary, fragment, scratch, sink })
        {
            pass.scratch.unigram.after_unknown = false;
            return pass.encode();
        }
        self.encode_whole(Task { vocabulary, fragment, scratch, sink });
    }

    /// See [`advance`].
    fn encode_part<S: Sink>(&self, task: Task<'_, S>, is_end: bool, progress: &mut Progress) -> usize {
        let progress = progress.unigram.get_or_insert_with(|| Box::new(UnigramProgress::new(&self.normalizer)));
        self.advance(task, is_end, progress)
    }
}

impl Unigram {
    /// The longest text that may be cut into segments, in bytes; 0 if none may.
    fn max_cut_len(&self) -> usize {
        self.cuts.as_ref().map_or(0, |cuts| cuts.max_len)
    }

    /// The encoding of a fragment by segments, if the vocabulary allows it.
    #[inline(always)]
    fn pass<'a, S: Sink>(&'a self, task: Task<'a, S>) -> Option<Pass<'a, S>> {
        let (cuts, characters) = (self.cuts.as_ref()?, self.normalizer.characters.as_ref()?);
        let Task { vocabulary, fragment, scratch, sink } = task;
        Some(Pass { model: self, characters, cuts, vocabulary, fragment, scratch, sink })
    }

    /// Normalizes a fragment as a whole, and pushes its tokens.
    fn encode_whole<S: Sink>(&self, Task { vocabulary, fragment, scratch, sink }: Task<'_, S>) {
        let ModelScratch { rewritten, unigram: UnigramScratch { lattice, .. }, .. } = scratch;
        let mut score = 0.0;
        self.encode_normalized(fragment, rewritten, sink, |word, push| {
            score = self.candidates.best_path(vocabulary, word, score, None, lattice, push);
        });
    }

    /// Normalizes a fragment, and pushes the tokens of each word, or of all at once if a token crosses words. `find`
    /// finds them, with their lengths in bytes.
    fn encode_normalized<S: Sink>(
        &self,
        fragment: Fragment<'_>,
        normalized: &mut Rewritten<'_>,
        sink: &mut S,
        mut find: impl FnMut(&[u8], &mut dyn FnMut(TokenId, usize)),
    ) {
        normalized.reset(fragment.start, S::SPANS);
        self.normalizer.normalize(fragment.text, fragment.continues, normalized);
        let sink = &mut Traced { sink, text: normalized };
        let unknown = self.candidates.unknown;
        let mut joined = Joined::default();
        let mut at = 0;
        let mut ticker = Ticker::default();
        while let Some(rest) = normalized.text.get(at..).filter(|rest| !rest.is_empty()) {
            ticker.tick();
            let word = if self.splits_words { &rest[..word_len(rest)] } else { rest };
            find(word, &mut |token, len| {
                joined.push(token, unknown, at..at + len, sink);
                at += len;
            });
        }
        joined.flush(unknown, sink);
    }
}

/// Joins adjacent unknown tokens.
#[derive(Debug, Default)]
struct Joined {
    /// The span of the unknown tokens since the last other one.
    unknowns: Option<Range<usize>>,
}

impl Joined {
    /// Pushes a token; an unknown one waits for the end of its span.
    #[inline]
    fn push<S: Sink>(&mut self, token: TokenId, unknown: TokenId, span: Range<usize>, sink: &mut S) {
        if token == unknown {
            self.unknowns = Some(self.unknowns.take().map_or(span.start, |before| before.start)..span.end);
        } else {
            self.flush(unknown, sink);
            sink.push(token, span);
        }
    }

    /// Pushes the unknown token that waits, if there is one.
    #[inline(always)]
    fn flush<S: Sink>(&mut self, unknown: TokenId, sink: &mut S) {
        if let Some(span) = self.unknowns.take() {
            sink.push(unknown, span);
        }
    }
}

/// Length of the first word of a normalized text: any spaces, and everything after them up to the next one.
fn word_len(text: &[u8]) -> usize {
    let mut len = 0;
    let mut in_word = false;
    let mut ticker = Ticker::default();
    while len < text.len() {
        ticker.tick();
        if text[len] == ESCAPED_SPACE[0] && text[len..].starts_with(ESCAPED_SPACE) {
            if in_word {
                return len;
            }
            len += ESCAPED_SPACE.len();
        } else {
            in_word = true;
            len += utf8::sequence_len(text[len]);
        }
    }
    text.len()
}

/// Whether `token` could match across the start of a word: from inside one word into the space before the next.
fn crosses_words(token: &[u8]) -> bool {
    let space = ESCAPED_SPACE;
    let spaces_len = token.chunks(space.len()).take_while(|chunk| *chunk == space).count() * space.len();
    let Some(rest) = token.get(spaces_len + 1..).filter(|rest| rest.contains(&space[0])) else { return false };
    (0..rest.len()).any(|at| rest[at..].starts_with(space) || space.starts_with(&rest[at..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encode::normalizer::charsmap::Charsmap;
    use crate::encode::sink::Spans;
    use crate::vocabulary::SpecialIds;
    use crate::vocabulary::strings::StringIndex;

    const NORMAL: i32 = 1;
    const CONTROL: i32 = 3;
    const USER_DEFINED: i32 = 4;

    /// A vocabulary of `(id, text, score, type)`. Of the ids that are not given, 2 is the unknown token and
    /// the others are control tokens.
    fn vocabulary(tokens: &[(usize, &str, f32, i32)], merge_spaces: bool) -> (Vocabulary, Unigram) {
        let charsmap = Charsmap::bytes_of(&[("\t", " "), ("\n", " "), ("\r", " ")]);
        let len = tokens.iter().map(|token| token.0 + 1).max().unwrap_or(0).max(3);
        let mut texts = (0..len).map(|id| format!("<control {id}>")).collect::<Vec<_>>();
        let mut scores = vec![0.0; len];
        let mut types = vec![CONTROL; len];
        types[2] = 2;
        for &(id, text, score, kind) in tokens {
            (texts[id], scores[id], types[id]) = (text.to_owned(), score, kind);
        }
        let (data, index) = StringIndex::concatenate(&texts).expect("a few strings");
        let definition = Definition {
            model: "t5",
            tokens: Some(index.view(&data)),
            scores: Some(&scores),
            token_types: Some(&types),
            special: SpecialIds { unk: Some(2), ..SpecialIds::default() },
            add_space_prefix: Some(true),
            remove_extra_whitespaces: Some(merge_spaces),
            charsmap: Some(&charsmap),
            ..Definition::default()
        };
        let vocabulary = Vocabulary::declare(&definition).expect("a vocabulary");
        let model = Unigram::new(&vocabulary, &definition).expect("a model");
        (vocabulary, model)
    }

    /// Encodes a text part by part.
    fn encode_parts((vocabulary, model): (&Vocabulary, &Unigram), text: &[u8], len: usize) -> (Vec<TokenId>, f64) {
        let mut ids = Vec::new();
        let mut scratch = ModelScratch::default();
        scratch.cache.set_limit(1 << 20);
        let mut progress = Progress::default();
        let mut waiting = Vec::new();
        let mut push = |text: &[u8], is_end: bool| {
            let complete = if is_end { text } else { &text[..utf8::complete_len(text)] };
            let is_utf8 = std::str::from_utf8(complete).is_ok();
            let fragment = Fragment { text, start: 0, after_special: true, continues: false, is_utf8 };
            let task = Task { vocabulary, fragment, scratch: &mut scratch, sink: &mut ids };
            model.encode_part(task, is_end, &mut progress)
        };
        for part in text.chunks(len) {
            waiting.extend_from_slice(part);
            waiting.drain(..push(&waiting, false));
        }
        assert_eq!(push(&waiting, true), waiting.len());
        (ids, progress.unigram.map_or(0.0, |progress| progress.score))
    }

    /// Tokens and spans of a text. Segments must give the same as the whole text, with and without spans, with the
    /// cache cold and warm, and for a text that continues another. So must parts, and the same sum of scores.
    fn encode((vocabulary, model): &(Vocabulary, Unigram), text: &[u8]) -> Spans {
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let fragment = |continues| Fragment { text, start: 100, after_special: true, continues, is_utf8 };
        let [spans, _] = [false, true].map(|continues| {
            let mut spans = Spans::default();
            let mut scratch = ModelScratch::default();
            scratch.cache.set_limit(1 << 20);
            let fragment = fragment(continues);
            model.encode_whole(Task { vocabulary, fragment, scratch: &mut scratch, sink: &mut spans });
            for cache in ["cold", "warm"] {
                let mut ids: Vec<TokenId> = Vec::new();
                let mut found = Spans::default();
                model.encode(Task { vocabulary, fragment, scratch: &mut scratch, sink: &mut ids });
                assert_eq!(ids, spans.ids, "cache {cache}");
                model.encode(Task { vocabulary, fragment, scratch: &mut scratch, sink: &mut found });
                assert_eq!((&found.ids, &found.spans), (&spans.ids, &spans.spans), "cache {cache}");
            }
            if !continues {
                let mut score = 0.0;
                if !scratch.rewritten.text.is_empty() {
                    let ModelScratch { rewritten: normalized, unigram: UnigramScratch { lattice, .. }, .. } =
                        &mut scratch;
                    normalized.reset(100, false);
                    model.normalizer.normalize(text, false, normalized);
                    score = model.candidates.best_path(vocabulary, &normalized.text, 0.0, None, lattice, |_, _| ());
                }
                for len in [1, 2, 5, 17, 64, 1000] {
                    let parts = encode_parts((vocabulary, model), text, len);
                    assert_eq!(parts, (spans.ids.clone(), score), "parts of {len} bytes");
                }
            }
            spans
        });
        spans
    }

    #[test]
    fn adjacent_unknown_characters_are_one_token() {
        let model = vocabulary(&[(3, "▁", -1.0, NORMAL), (4, "h", -1.0, NORMAL)], true);
        assert_eq!(encode(&model, "éé héé\u{1F600}".as_bytes()).ids, [3, 2, 3, 4, 2]);
        assert_eq!(encode(&model, "éé".as_bytes()).spans, [100..100, 100..104]);
        assert_eq!(encode(&model, b"\xFF\xFE").ids, [3, 2]);
        assert!(encode(&model, b"  ").ids.is_empty());
        // Without a space in the vocabulary, this holds across words too.
        let model = vocabulary(&[(3, "a", -1.0, NORMAL)], true);
        assert_eq!(encode(&model, b"xa x a").ids, [2, 3, 2, 3]);
        assert_eq!(encode(&model, b"xa x a").spans, [100..101, 101..102, 102..105, 105..106]);
    }

    #[test]
    fn the_first_of_equal_paths_wins() {
        let tokens = [("a", -1.0), ("b", -1.0), ("ab", -2.0), ("bc", -1.5), ("c", -1.0), ("▁", -1.0)];
        let tokens = Vec::from_iter((3..).zip(tokens).map(|(id, (text, score))| (id, text, score, NORMAL)));
        assert_eq!(encode(&vocabulary(&tokens, true), b"ab").ids, [8, 5]);
        assert_eq!(encode(&vocabulary(&tokens, true), b"abc").ids, [8, 3, 6]);
    }

    #[test]
    fn tokens_may_be_longer_than_the_window() {
        let long = "a".repeat(300);
        let tokens = [(3, "▁", -1.0, NORMAL), (4, "a", -1.0, NORMAL), (5, &long[..], -2.0, NORMAL)];
        for splits_words in [true, false] {
            let mut model = vocabulary(&tokens, true);
            model.1.splits_words &= splits_words;
            let ids = encode(&model, format!("{} {long}é{long}", "a".repeat(902)).as_bytes()).ids;
            assert_eq!(ids, [3, 4, 4, 5, 5, 5, 3, 5, 2, 5]);
        }
    }

    #[test]
    fn user_defined_tokens_score_zero() {
        let tokens = [(3, "▁", -1.0, NORMAL), (4, "a", -1.0, NORMAL), (5, "aa", -100.0, USER_DEFINED)];
        assert_eq!(encode(&vocabulary(&tokens, true), b"aaa").ids, [3, 4, 5]);
    }

    #[test]
    fn unreachable_text_is_one_unknown_token() {
        // "a" is a token and so not unknown, but a score that is not a number is never better than another.
        let model = vocabulary(&[(3, "▁", -1.0, NORMAL), (4, "a", f32::NAN, NORMAL)], true);
        assert!(!model.1.splits_words && model.1.cuts.is_none());
        assert_eq!(encode(&model, b"a").ids, [2]);
        assert_eq!(encode(&model, b"bc a b").ids, [2]);
    }

    #[test]
    fn tokens_that_cross_words() {
        for token in ["a▁", "a▁b", "▁a▁b", "▁▁a▁"] {
            assert!(crosses_words(token.as_bytes()), "{token}");
        }
        assert!(crosses_words(b"a\xE2\x96"));
        for token in ["", "a", "▁", "▁a", "▁▁", "▁▁▁a", "é\u{2591}"] {
            assert!(!crosses_words(token.as_bytes()), "{token}");
        }
    }

    proptest! {
        #[test]
        fn words_one_by_one_equal_the_whole_text(
            texts in proptest::collection::vec("(▁){0,2}[abé]{0,3}", 1..20),
            scores in proptest::collection::vec(-20.0f32..-0.1, 20),
            input in "[abcé ▁]{0,40}",
            merge_spaces: bool,
        ) {
            let mut texts = texts;
            texts.sort();
            texts.dedup();
            let tokens = texts.iter().filter(|text| !text.is_empty()).zip(3..).zip(&scores);
            let tokens = tokens.map(|((text, id), &score)| (id, text.as_str(), score, NORMAL)).collect::<Vec<_>>();
            let mut model = vocabulary(&tokens, merge_spaces);
            prop_assert!(model.1.splits_words);
            let words = encode(&model, input.as_bytes());
            model.1.splits_words = false;
            let whole = encode(&model, input.as_bytes());
            prop_assert_eq!((words.ids, words.spans), (whole.ids, whole.spans));
        }
    }
}
