//! PLaMo-2: the cheapest sequence of tokens for a text, by dynamic programming from its end to its start.
//!
//! 1. At each character, one of the tokens that match there is taken, or the character itself as unknown: whichever is
//!    cheapest together with the rest of the text ([`search`]). Unknown characters become byte tokens.
//! 2. A text is cut into segments between any two characters that no token has side by side. No token crosses such a
//!    place, so the text after it adds the same cost whatever tokens are taken before it. Each segment is encoded by
//!    itself, and its ids are cached.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_plamo2` and its session. Time: O(n + matches) for n bytes of
//! text and all tokens that match at its characters; the worst case is a run of one character, with a vocabulary that
//! has a token for every length of such a run. Space: 4 bytes per byte of text and 8 per byte of the longest token.
//!
//! Deviations:
//! 1. Token texts that are not UTF-8, or have overlong forms, never match. In llama.cpp they do not match either, but
//!    they can confuse its states so much that it reads beyond its arrays.

mod search;

pub(super) use search::Choices;

use std::sync::OnceLock;

use super::lengths::Lengths;
use super::segmenter::{Segmenter, SegmenterBuilder};
use super::{Fragment, Model, ModelScratch, Task};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::trie::backward::Backward;
use crate::text::unicode::utf8::{self, sure_stretches};
use crate::token::TokenId;
use crate::vocabulary::spelling::{beyond_unicode, byte_of};
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::{Ticker, once};
use crate::work::memory::collect;
use search::UNKNOWN;

/// The cost of an unknown character. Costs are negated scores in ten-thousandths.
const UNKNOWN_COST: i32 = 10_000_000;

/// A token with this cost or a higher one is never used.
const LOWEST_UNUSED_COST: i32 = 20_000_000;

/// A byte order mark. One at the start of a fragment is skipped.
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// The algorithm's tables.
#[derive(Debug)]
pub(crate) struct Plamo2 {
    /// Indexed by id.
    costs: Vec<i32>,
    /// The token of each byte.
    byte_tokens: Box<[TokenId; 256]>,
    /// Ids by text, for all tokens except byte tokens.
    automaton: Backward,
    /// Whether a token stops llama.cpp's automaton: see [`search`].
    has_stoppers: bool,
    /// A power of two, greater than the length of the longest token in bytes.
    window: usize,
    /// Where texts are cut into segments. Built on first use. With stoppers, only streamed texts are cut.
    segmenter: OnceLock<Segmenter>,
}

heap_bytes!(Plamo2: costs, byte_tokens, automaton, segmenter);

impl Model for Plamo2 {
    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let ids = 0..vocabulary.len() as TokenId;
        let is_byte = |id: &TokenId| vocabulary.attributes(*id).is_byte();
        let bytes = collect(ids.clone().filter(is_byte));
        let mut others = collect(ids.clone().filter(|id| !is_byte(id)));

        others.iter().try_for_each(|&id| match beyond_unicode(vocabulary.text(id)) {
            Some(offset) => Err(VocabularyError::BeyondUnicode { id, offset }),
            None => Ok(()),
        })?;
        others.retain(|&id| is_canonical(vocabulary.text(id)));
        let costs = collect(ids.map(|id| cost(vocabulary.score(id))));

        let automaton = Backward::new(others.iter().map(|&id| (vocabulary.text(id), id as u32)))?;
        let has_stoppers = others.iter().any(|&id| costs[id as usize] == UNKNOWN_COST);
        let window = (vocabulary.max_token_len() + 1).next_power_of_two();
        let byte_tokens = byte_tokens(vocabulary, &bytes)?;
        Ok(Self { costs, byte_tokens, automaton, has_stoppers, window, segmenter: OnceLock::new() })
    }

    fn encode<S: Sink>(&self, Task { vocabulary, fragment, scratch, sink }: Task<'_, S>) {
        let rewritten = canonical(fragment, S::SPANS);
        let text = &rewritten.text[..];
        let start = self.start(fragment, text);
        let ModelScratch { choices, cache, queue, .. } = scratch;
        if S::SPANS || self.has_stoppers {
            return self.push_cheapest(vocabulary, text, start, choices, &mut Traced { sink, text: &rewritten });
        }

        let segmenter = self.segmenter(vocabulary);
        let encode = |segment: &[u8], ids: &mut Vec<TokenId>| self.push_cheapest(vocabulary, segment, 0, choices, ids);
        queue.encode_segments(cache, segmenter, text, start..text.len(), encode, sink);
    }

    fn lengths(&self, vocabulary: &Vocabulary) -> Option<Lengths> {
        let mut lengths = Lengths::new(vocabulary.texts().iter().map(|text| Some(text.len())));
        self.byte_tokens.iter().for_each(|&id| lengths.set(id, Some(1)));
        Some(lengths)
    }

    fn first_start(&self, _: &Vocabulary, fragment: Fragment<'_>) -> isize {
        self.start(fragment, fragment.text) as isize
    }

    /// The last place that no token crosses, and where neither a stopper nor a byte order mark may start: a stopper
    /// affects the text before it, and a byte order mark would be skipped if the text were cut there.
    fn settled(&self, vocabulary: &Vocabulary, Fragment { text, is_utf8, .. }: Fragment<'_>) -> usize {
        let mut starts = self.automaton.starts(text);
        let is_stopper = |(_, id): (usize, u32)| self.costs[id as usize] == UNKNOWN_COST;
        let mut may_start_stopper =
            |at| self.has_stoppers && (starts.may_continue(at) || starts.keys(at).any(is_stopper));
        let mut accept = |at: usize| !text[at..].starts_with(BYTE_ORDER_MARK) && !may_start_stopper(at);
        let segmenter = self.segmenter(vocabulary);
        let mut stretches = sure_stretches(text, is_utf8).into_iter().rev();
        stretches.find_map(|range| segmenter.last_cut(text, range, &mut accept)).unwrap_or(0)
    }
}

impl Plamo2 {
    /// Where the tokens of a fragment start in its canonical text.
    fn start(&self, fragment: Fragment<'_>, text: &[u8]) -> usize {
        if !fragment.continues && text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
    }

    fn segmenter(&self, vocabulary: &Vocabulary) -> &Segmenter {
        once(&self.segmenter, || {
            let mut segmenter = SegmenterBuilder::new(false);
            vocabulary.keys().iter().for_each(|text| segmenter.add_characters(text));
            segmenter.finish()
        })
    }

    /// Pushes the tokens of a canonical text starting at `start`.
    fn push_cheapest<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        start: usize,
        choices: &mut Choices,
        sink: &mut S,
    ) {
        self.choose(text, start, choices);
        let mut at = start;
        let mut ticker = Ticker::default();
        while at < text.len() {
            ticker.tick();
            let id = choices.ids[at];
            if id == UNKNOWN {
                let end = text.len().min(at + utf8::sequence_len(text[at]));
                for (&byte, at) in text[at..end].iter().zip(at..) {
                    sink.push(self.byte_tokens[usize::from(byte)], at..at + 1);
                }
                at = end;
            } else {
                let end = at + vocabulary.text(id).len();
                sink.push(id, at..end);
                at = end;
            }
        }
    }
}

/// The cost of a token with this score: the negated entry of llama.cpp's table. [`LOWEST_UNUSED_COST`] if the token is
/// never used.
fn cost(score: f32) -> i32 {
    let cost = -(f64::from(score) * 1e4).round();
    // In llama.cpp a score that is too large for 32 bits wraps to the lowest number.
    if cost > f64::from(i32::MIN) && cost < LOWEST_UNUSED_COST.into() { cost as i32 } else { LOWEST_UNUSED_COST }
}

/// The token of each byte, given the ids of all byte tokens. If a byte has several, the last one wins.
fn byte_tokens(vocabulary: &Vocabulary, ids: &[TokenId]) -> Result<Box<[TokenId; 256]>, VocabularyError> {
    let mut tokens = Box::new([0; 256]);
    for &id in ids {
        if let Some(byte) = byte_of(vocabulary.text(id)) {
            tokens[usize::from(byte)] = id;
        }
    }
    match (0..=u8::MAX).find(|&byte| tokens[usize::from(byte)] == 0) {
        // As in llama.cpp, id 0 means missing.
        Some(byte) => Err(VocabularyError::MissingByteToken { byte }),
        None => Ok(tokens),
    }
}

/// Whether a token text is UTF-8, surrogates included, with every code point in its shortest form.
fn is_canonical(text: &[u8]) -> bool {
    if utf8::is_valid(text) {
        return true;
    }
    utf8::code_points(text).all(|(code_point, range)| utf8::encode(code_point, &mut [0; 4]) == &text[range])
}

/// The fragment with every code point in its shortest form, and U+FFFD for each invalid byte. Unlike in other
/// algorithms, code points beyond U+10FFFF stay as they are, and become byte tokens.
fn canonical(fragment: Fragment<'_>, keeps_origins: bool) -> Rewritten<'_> {
    let Fragment { text, start, is_utf8, .. } = fragment;
    Rewritten::canonical_except(text, start, is_utf8, keeps_origins, |_, bytes| beyond_unicode(bytes).map(|_| bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::sink::Spans;
    use crate::vocabulary::Definition;
    use crate::vocabulary::spelling::byte_text;
    use crate::vocabulary::strings::StringIndex;

    #[test]
    fn only_characters_beyond_unicode_keep_their_form() {
        let text = b"\xFF\xF0\x8F\xBF\xBD\xC1\x81\xF4\x90\x80\x80";
        let fragment = Fragment { text, start: 0, after_special: true, continues: false, is_utf8: false };
        assert_eq!(&canonical(fragment, true).text[..], b"\xEF\xBF\xBD\xEF\xBF\xBDA\xF4\x90\x80\x80");
    }

    /// A vocabulary of one normal token, the 256 byte tokens, and then `tokens`, the first of which has id 257.
    fn vocabulary(tokens: &[(Vec<u8>, f32)]) -> Vocabulary {
        let bytes = (0..=u8::MAX).map(|byte| (byte_text(byte).to_vec(), 0.0));
        let all: Vec<_> = [(b"<unk>".to_vec(), -9.0)].into_iter().chain(bytes).chain(tokens.iter().cloned()).collect();
        let texts: Vec<&[u8]> = all.iter().map(|(text, _)| &text[..]).collect();
        let scores: Vec<f32> = all.iter().map(|&(_, score)| score).collect();
        let types: Vec<i32> = (0..all.len()).map(|id| if (1..=256).contains(&id) { 6 } else { 1 }).collect();
        let (data, index) = StringIndex::concatenate(&texts).unwrap();
        let definition = Definition {
            model: "plamo2",
            tokens: Some(index.view(&data)),
            scores: Some(&scores),
            token_types: Some(&types),
            ..Definition::default()
        };
        Vocabulary::declare(&definition).unwrap()
    }

    fn encode(tokens: &[(Vec<u8>, f32)], text: &[u8]) -> Spans {
        let vocabulary = vocabulary(tokens);
        let model = Plamo2::new(&vocabulary, &Definition::default()).unwrap();
        let mut out = Spans::default();
        let mut ids = Vec::new();
        let mut scratch = ModelScratch::default();
        scratch.cache.set_limit(1 << 20);
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let fragment = Fragment { text, start: 1000, after_special: true, continues: false, is_utf8 };
        let vocabulary = &vocabulary;
        let other = Fragment { text: b"cab\xFF", is_utf8: false, ..fragment };
        model.encode(Task { vocabulary, fragment: other, scratch: &mut scratch, sink: &mut Vec::new() });
        model.encode(Task { vocabulary, fragment, scratch: &mut scratch, sink: &mut out });
        model.encode(Task { vocabulary, fragment, scratch: &mut scratch, sink: &mut ids });
        assert_eq!(ids, out.ids, "ids without spans");
        if is_utf8 {
            let lengths = model.lengths(vocabulary).unwrap();
            let mut told = Spans::default();
            assert!(lengths.push_all(&ids, fragment, model.first_start(vocabulary, fragment), &mut told));
            assert_eq!((told.ids, told.spans), (out.ids.clone(), out.spans.clone()));
        }
        out
    }

    fn owned(tokens: &[(&str, f32)]) -> Vec<(Vec<u8>, f32)> {
        tokens.iter().map(|&(text, score)| (text.into(), score)).collect()
    }

    #[test]
    fn the_cheapest_tokens_win_and_of_equals_the_longest() {
        let tokens = owned(&[("a", -3.0), ("b", -3.0), ("ab", -6.0), ("abc", -7.0), ("bc", -3.5), ("é", -1.0)]);
        let out = encode(&tokens, "ababcéc".as_bytes());
        assert_eq!(out.ids, [259, 257, 261, 262, 1 + 99]);
        assert_eq!(out.spans, [1000..1002, 1002..1003, 1003..1005, 1005..1007, 1007..1008]);
    }

    #[test]
    fn unknown_characters_become_byte_tokens() {
        // U+FEFF at the start; an invalid byte, an overlong "a", a surrogate, and a number beyond Unicode.
        let out = encode(&owned(&[("a", -1.0)]), b"\xEF\xBB\xBFz\xFF\xC1\xA1\xED\xA0\x80\xF4\x90\x80\x81");
        let bytes = |bytes: &[u8]| bytes.iter().map(|&byte| 1 + TokenId::from(byte)).collect::<Vec<_>>();
        let expected = [bytes(b"z\xEF\xBF\xBD"), vec![257], bytes(b"\xED\xA0\x80\xF4\x90\x80\x81")];
        assert_eq!(out.ids, expected.concat());
        let starts: Vec<usize> = out.spans.iter().map(|span| span.start - 1000).collect();
        assert_eq!(starts, [3, 4, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13]);
        assert_eq!(out.spans[4], 1005..1007);
    }

    #[test]
    fn an_unknown_character_of_several_bytes_costs_no_more_than_one_of_a_single_byte() {
        let out = encode(&owned(&[("abc", -1.0), ("cあ", -1.0)]), "abcあ".as_bytes());
        assert_eq!(out.ids, [257, 1 + 0xE3, 1 + 0x81, 1 + 0x82]);
    }

    #[test]
    fn no_text_is_settled_just_before_what_may_be_a_stopper() {
        let settled = |score: f32, text: &[u8]| {
            let vocabulary = vocabulary(&owned(&[("x", -1.0), ("[P]", score), ("]y", -1.0), ("yz", -1.0)]));
            let fragment = Fragment { text, start: 0, after_special: true, continues: false, is_utf8: true };
            Plamo2::new(&vocabulary, &Definition::default()).unwrap().settled(&vocabulary, fragment)
        };
        for text in [&b"x[P]yz"[..], b"x[P"] {
            assert_eq!((settled(-1.0, text), settled(-1000.0, text)), (1, 0));
        }
    }

    #[test]
    fn stoppers_hide_shorter_tokens_and_tokens_before_them() {
        let pad = ("[P]".into(), -1000.0);
        let mut tokens = owned(&[("[", -1.0), ("P", -1.0), ("]", -1.0), ("x", -1.0), ("xy", -1.0)]);
        assert_eq!(encode(&tokens, b"xyx[P]").ids, [261, 260, 257, 258, 259]);
        tokens.push(pad);
        let byte = |byte: u8| 1 + TokenId::from(byte);
        assert_eq!(encode(&tokens, b"xyx[P]").ids, [261, byte(b'x'), 262]);
    }

    #[test]
    fn costs_of_scores() {
        let unused = LOWEST_UNUSED_COST;
        let cases =
            [(0.0, 0), (-1.23456, 12_346), (2.00005, -20_001), (-1000.0, UNKNOWN_COST), (-1999.9999, 19_999_999)];
        let never = [-2000.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 214_748.4].map(|score| (score, unused));
        for (score, expected) in cases.into_iter().chain(never) {
            assert_eq!(cost(score), expected, "{score}");
        }
    }

    #[test]
    fn an_error_names_the_missing_byte() {
        let texts = ["<0x00>", "<0xgg>", "a"];
        let (data, index) = StringIndex::concatenate(&texts).unwrap();
        let tokens = Some(index.view(&data));
        let definition = Definition { model: "plamo2", tokens, token_types: Some(&[6, 6, 1]), ..Definition::default() };
        let vocabulary = Vocabulary::declare(&definition).unwrap();
        let error = Plamo2::new(&vocabulary, &Definition::default()).unwrap_err();
        assert_eq!(error, VocabularyError::MissingByteToken { byte: 0 });
    }
}
