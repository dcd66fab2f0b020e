//! Unigram: the segmentation of a normalized text with the highest sum of token scores.
//!
//! A Viterbi search finds it ([`lattice`]). A character that is no token scores ten below the lowest token; adjacent
//! unknown tokens become one. A text takes one of three ways, all with the same result:
//!
//! 1. With most vocabularies it is cut into segments that no token crosses, and their ids are cached ([`segments`]).
//! 2. Where the vocabulary or the text rules out the first way, the whole text is normalized. If no token crosses the
//!    start of a word (a space after anything but spaces), each word is searched by itself, starting with the sum of the
//!    words before it: every addition and comparison is the same as over the whole text, and the lattice stays small.
//! 3. Otherwise the whole text is one lattice.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm` and `llm_tokenizer_ugm_session::tokenize` (llama-vocab.cpp).
//!
//! Deviations: none beyond those of the normalizer.
//!
//! Time: O(n L) for n bytes and tokens of at most L bytes. Space: 4 bytes per byte of the longest text searched at
//! once.

pub(super) mod advance;
mod lattice;
mod segments;
mod spans;

use std::ops::Range;

use crate::encode::model::cache::WordCache;
use crate::encode::model::{Fragment, Model, ModelScratch, Progress};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::normalizer::unigram::UnigramNormalizer;
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::trie::DoubleArray;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::threads::join;
use lattice::{Candidates, Lattice};
use segments::{Pass, Words, word_len};

/// How much lower than any normal token an unknown character scores.
const UNKNOWN_PENALTY: f32 = 10.0;

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
    words: Option<Words>,
    /// Whether all scores are finite.
    is_finite: bool,
}

/// Scratch space of [`Unigram`].
#[derive(Debug, Default)]
pub(crate) struct UnigramScratch {
    normalized: Rewritten<'static>,
    lattice: Lattice,
    words: segments::Scratch,
}

impl ModelScratch for UnigramScratch {
    fn cache(&mut self) -> Option<&mut WordCache> {
        Some(&mut self.words.cache)
    }
}

impl Model for Unigram {
    type Scratch = UnigramScratch;

    fn new(vocabulary: &Vocabulary, _: &Definition<'_>) -> Result<Self, VocabularyError> {
        let mut ids = Vec::with_capacity(vocabulary.len());
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

        let build_trie = || DoubleArray::build(ids.iter().map(|&id| (vocabulary.text(id), id as u32)));
        let (tokens, without_trie) = join(build_trie, || WithoutTrie::new(vocabulary, &ids, unknown_score));
        let WithoutTrie { normalizer, splits_words, words } = without_trie?;
        let (scores, unknown) = (Vec::new(), NULL_TOKEN);
        let candidates = Candidates { tokens: tokens?, scores, unknown, unknown_score };
        let mut model = Self { normalizer, candidates, splits_words, words, is_finite: false };
        model.apply_repairs(vocabulary);
        Ok(model)
    }

    fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        let score = |id| match vocabulary.attributes(id).is_user_defined() {
            true => {
                self.words = None;
                0.0
            }
            false => vocabulary.score(id),
        };
        self.candidates.scores = (0..).take(vocabulary.len()).map(score).collect();
        self.candidates.unknown = vocabulary.special().unk.unwrap_or(NULL_TOKEN);
        let Candidates { scores, unknown_score, .. } = &self.candidates;
        self.is_finite = unknown_score.is_finite() && scores.iter().all(|score| score.is_finite());
    }

    fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) {
        let UnigramScratch { normalized, lattice, words: scratch } = scratch;
        let text = fragment.text;
        if let Some(words) = &self.words
            && let Some(characters) = self.normalizer.characters()
            && fragment.is_utf8
            && text.len() <= words.max_len()
        {
            let (candidates, normalizer) = (&self.candidates, &self.normalizer);
            let Fragment { start: offset, continues, .. } = fragment;
            return Pass {
                vocabulary,
                candidates,
                normalizer,
                characters,
                words,
                text,
                offset,
                continues,
                scratch,
                sink,
            }
            .encode(normalized);
        }
        self.encode_whole(vocabulary, fragment, normalized, lattice, sink);
    }

    /// The sum of scores goes on from part to part, see [`advance`].
    fn advance<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        progress: &mut Progress,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) -> usize {
        let progress = progress.unigram(&self.normalizer);
        self.advance_part(vocabulary, fragment.text, progress, &mut scratch.lattice, sink)
    }

    fn finish<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        progress: &mut Progress,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) {
        let progress = progress.unigram(&self.normalizer);
        self.finish_part(vocabulary, fragment.text, progress, &mut scratch.lattice, sink);
    }

    fn heap_bytes(&self) -> usize {
        let Candidates { tokens, scores, .. } = &self.candidates;
        let words = self.words.as_ref().map_or(0, Words::heap_bytes);
        self.normalizer.heap_bytes() + tokens.heap_bytes() + size_of_val(&scores[..]) + words
    }
}

impl Unigram {
    /// Normalizes a fragment as a whole, and pushes its tokens.
    fn encode_whole<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        normalized: &mut Rewritten<'static>,
        lattice: &mut Lattice,
        sink: &mut S,
    ) {
        normalized.reset(fragment.start, S::SPANS);
        self.normalizer.normalize(fragment.text, fragment.continues, normalized);
        let sink = &mut Traced { sink, text: normalized };
        let unknown = self.candidates.unknown;
        // The span of the unknown tokens before `at`.
        let mut unknowns = None;
        let mut score = 0.0;
        let (mut at, mut ticker) = (0, Ticker::default());
        while let Some(rest) = normalized.text.get(at..).filter(|rest| !rest.is_empty()) {
            ticker.tick();
            let word = if self.splits_words { &rest[..word_len(rest, self.normalizer.space())] } else { rest };
            score = self.candidates.best_path(vocabulary, word, score, None, lattice, |token, len| {
                let span = at..at + len;
                at += len;
                if token == unknown {
                    let start = unknowns.take().map_or(span.start, |before: Range<usize>| before.start);
                    unknowns = Some(start..span.end);
                    return;
                }
                if let Some(span) = unknowns.take() {
                    sink.push(unknown, span);
                }
                sink.push(token, span);
            });
        }
        if let Some(span) = unknowns {
            sink.push(unknown, span);
        }
    }
}

/// Everything that is built without the trie of tokens, on a thread of its own.
struct WithoutTrie {
    normalizer: UnigramNormalizer,
    splits_words: bool,
    words: Option<Words>,
}

impl WithoutTrie {
    fn new(vocabulary: &Vocabulary, ids: &[TokenId], unknown_score: f32) -> Result<Self, VocabularyError> {
        let normalizer = UnigramNormalizer::new(vocabulary)?;
        let tokens = ids.iter().map(|&id| (vocabulary.text(id), vocabulary.score(id)));
        let space = normalizer.space();
        let splits_words = tokens.clone().all(|(text, score)| score.is_finite() && !crosses_words(text, space));
        let words = if splits_words { Words::new(tokens, unknown_score, &normalizer) } else { None };
        Ok(Self { normalizer, splits_words, words })
    }
}

/// Whether `token` could match across the start of a word: from inside one word into the `space` before the next.
fn crosses_words(token: &[u8], space: &[u8]) -> bool {
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

    /// A vocabulary of `(id, text, score, type)`. Of the ids that are not given, 2 is unknown, the others control
    /// tokens.
    fn vocabulary(tokens: &[(usize, &str, f32, i32)], merge_spaces: bool) -> (Vocabulary, Unigram) {
        mapped(tokens, merge_spaces, &[])
    }

    /// The same with a character map.
    fn mapped(
        tokens: &[(usize, &str, f32, i32)],
        merge_spaces: bool,
        charsmap: &[(&str, &str)],
    ) -> (Vocabulary, Unigram) {
        let whitespace = [("\t", " "), ("\n", " "), ("\r", " ")];
        let charsmap = Charsmap::bytes_of(&[&whitespace[..], charsmap].concat());
        let len = tokens.iter().map(|token| token.0 + 1).max().unwrap_or(0).max(3);
        let mut texts = (0..len).map(|id| format!("<control {id}>")).collect::<Vec<_>>();
        let (mut scores, mut types) = (vec![0.0; len], vec![CONTROL; len]);
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

    /// Tokens and spans of a text. By segments both must be the same as over the whole text, with the cache cold and
    /// warm, and so must the tokens without spans; and so for a text that continues another.
    fn encode((vocabulary, model): &(Vocabulary, Unigram), text: &[u8]) -> Spans {
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let fragment = |continues| Fragment { text, start: 100, after_special: true, continues, is_utf8 };
        let [spans, _] = [false, true].map(|continues| {
            let (mut spans, mut scratch) = (Spans::default(), UnigramScratch::default());
            let UnigramScratch { normalized, lattice, .. } = &mut scratch;
            model.encode_whole(vocabulary, fragment(continues), normalized, lattice, &mut spans);
            for cache in ["cold", "warm"] {
                let (mut ids, mut found): (Vec<TokenId>, _) = (Vec::new(), Spans::default());
                model.encode(vocabulary, fragment(continues), &mut scratch, &mut ids);
                assert_eq!(ids, spans.ids, "cache {cache}");
                model.encode(vocabulary, fragment(continues), &mut scratch, &mut found);
                assert_eq!((&found.ids, &found.spans), (&spans.ids, &spans.spans), "cache {cache}");
            }
            spans
        });
        spans
    }

    /// The tokens that match in "What is LoRA?", with T5's ids and scores, as a debugger shows them in llama.cpp.
    const WHAT_IS_LORA: [(usize, &str, f32, i32); 15] = [
        (3, "▁", -2.012_292_9, NORMAL),
        (549, "▁W", -8.927_786, NORMAL),
        (363, "▁What", -8.488_649, NORMAL),
        (518, "W", -8.869_575, NORMAL),
        (107, "h", -7.254_32, NORMAL),
        (1024, "ha", -9.529_377, NORMAL),
        (23, "i", -5.469_858, NORMAL),
        (7, "s", -4.6, NORMAL),
        (19, "▁is", -5.283_425_3, NORMAL),
        (301, "▁L", -8.301_084, NORMAL),
        (1815, "▁Lo", -10.040_734, NORMAL),
        (448, "R", -8.722_309, NORMAL),
        (4763, "RA", -10.944_782, NORMAL),
        (188, "A", -7.9, NORMAL),
        (58, "?", -6.585_888, NORMAL),
    ];

    #[test]
    fn the_lattice_of_what_is_lora() {
        let (vocabulary, model) = vocabulary(&WHAT_IS_LORA, true);
        let mut lattice = Lattice::default();
        let text = "▁What▁is▁LoRA?".as_bytes();
        model.candidates.best_path(&vocabulary, text, 0.0, None, &mut lattice, |_, _| ());
        //  0  ▁ 3  W 4  h 5  a 6  t 7  ▁ 10  i 11  s 12  ▁ 15  L 16  o 17  R 18  A 19  ? 20
        //  |----------- 363 --------|------ 19 ------|------- 1815 ------|--- 4763 --|- 58 -|
        let expected = [
            (3, 3, -2.012_292_86),
            (4, 549, -8.927_785_87),
            (5, 107, -16.182_106),
            (6, 1024, -18.457_162_9),
            (7, 363, -8.488_649_37),
            (10, 3, -10.500_942_2),
            (11, 23, -15.970_800_4),
            (12, 19, -13.772_074_7),
            (15, 3, -15.784_367_6),
            (16, 301, -22.073_158_3),
            (17, 1815, -23.812_809),
            (18, 448, -32.535_118_1),
            (19, 4763, -34.757_591_2),
            (20, 58, -41.343_479_2),
        ];
        for (at, token, score) in expected {
            let node = lattice.nodes[at];
            assert_eq!(node.token, token, "at {at}");
            assert!((node.score - score).abs() < 1e-5, "at {at}: {} instead of {score}", node.score);
        }
        let spans = encode(&(vocabulary, model), b"What is LoRA?");
        assert_eq!(spans.ids, [363, 19, 1815, 4763, 58]);
        assert_eq!(spans.spans, [100..104, 104..107, 107..110, 110..112, 112..113]);
    }

    #[test]
    fn adjacent_unknown_characters_are_one_token() {
        let model = vocabulary(&WHAT_IS_LORA, true);
        assert_eq!(encode(&model, "éé héé\u{1F600}".as_bytes()).ids, [3, 2, 3, 107, 2]);
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
        assert!(!model.1.splits_words && model.1.words.is_none());
        assert_eq!(encode(&model, b"a").ids, [2]);
        assert_eq!(encode(&model, b"bc a b").ids, [2]);
    }

    #[test]
    fn tokens_that_cross_words() {
        for token in ["a▁", "a▁b", "▁a▁b", "▁▁a▁"] {
            assert!(crosses_words(token.as_bytes(), "▁".as_bytes()), "{token}");
        }
        assert!(crosses_words(b"a\xE2\x96", "▁".as_bytes()));
        for token in ["", "a", "▁", "▁a", "▁▁", "▁▁▁a", "é\u{2591}"] {
            assert!(!crosses_words(token.as_bytes(), "▁".as_bytes()), "{token}");
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

        #[test]
        fn segments_equal_the_whole_text(
            texts in proptest::collection::btree_set(
                "(▁){0,2}([ab]{1,3}|[1,.]{1,2}|[,.]{2}|é[aé]|[中国人\u{20000}]{1,2}|à)",
                1..24,
            ),
            scores in proptest::collection::vec(-2000i32..=-1, 24),
            input in proptest::collection::vec(
                "[ab]{1,4}|[ab]{14,17}|[ab]{63,66}|[ \t\n]{1,3}|[1,.]|é|[中国人\u{20000}]{1,3}|\
                 a\u{300}|b\u{301}\u{302}?|ﷺ|\u{1}|[▁Ａ]",
                0..40,
            ),
        ) {
            let tokens = texts.iter().zip(3..).zip(&scores);
            // Few different scores make equal paths, scores of many bits show whether a sum is rounded.
            let score = |n: i32| if n % 2 == 0 { (n / 200) as f32 } else { n as f32 / 131_072.0 };
            let tokens = tokens.map(|((text, id), &n)| (id, text.as_str(), score(n), NORMAL)).collect::<Vec<_>>();
            let charsmap = [("a\u{300}", "à"), ("\u{1}", ""), ("ﷺ", "a b"), ("Ａ", "a"), ("b\u{301}\u{302}", "é")];
            let model = mapped(&tokens, true, &charsmap);
            prop_assert!(model.1.words.is_some());
            encode(&model, input.concat().as_bytes());
        }
    }
}
