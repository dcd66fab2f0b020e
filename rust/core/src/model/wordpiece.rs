//! WordPiece: text is cut into normalized words, and each word into the longest tokens from left to right.
//!
//! Source: llama.cpp, `src/llama-vocab.cpp`: `llm_tokenizer_wpm_session` (`preprocess`, `is_chinese_char`, `tokenize`).
//! Time O(n · m) and space O(longest word) for n bytes of text and a longest token of m bytes; the worst case is a word
//! in which every token is the beginning of a much longer one that the text does not complete.
//!
//! A word is preceded by a phantom "▁", so a token "▁low" begins words and a token "er" continues them. A word that
//! tokens do not cover to its end is one unknown token. llama.cpp looks up each substring from the longest possible
//! length down; no token is longer than that, so the last value on a walk through a trie is the same token. It tries
//! every byte, so tokens may begin and end inside a character.
//!
//! Deviations:
//! 1. What decodes beyond U+10FFFF counts as U+FFFD and is dropped: llama.cpp's process ends there.

use std::ops::Range;

use super::cache::recent::{Probe, RecentWords};
use crate::error::VocabularyError;
use crate::lookup::key::{KEY_LEN, Key, MAX_LEN};
use crate::model::{Fragment, Model};
use crate::normalizer::rewritten::Rewritten;
use crate::normalizer::wordpiece::{Class, WordPieceNormalizer};
use crate::scan::masks::WordClasses;
use crate::scan::{BLOCK as BLOCK_LEN, padded};
use crate::sink::{NULL_TOKEN, Sink, TokenId};
use crate::trie::{DoubleArray, Node, TrieError};
use crate::vocabulary::{Definition, Settings, Vocabulary};

/// What comes before each word: "▁".
const PHANTOM: [u8; 3] = [0xE2, 0x96, 0x81];

/// The algorithm's tables.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Ids by token text.
    tokens: DoubleArray,
    /// Where a match stands at the word's first byte if it began at the phantom's byte 0, 1 or 2, and, last, where every
    /// match begins that has no byte of the phantom.
    starts: [Start; PHANTOM.len() + 1],
    normalizer: WordPieceNormalizer,
    unknown: TokenId,
}

/// A match that has gone through the phantom.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// The trie's node, if any token continues.
    node: Option<Node>,
    /// The longest token inside the phantom, and its length in bytes.
    longest: Option<(TokenId, usize)>,
}

/// Buffers of one call, and what words became.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Ids by the bytes of the text.
    cache: RecentWords,
    word: Word,
    probes: Probes,
}

/// The words of a block: how they are looked for, and where they begin.
#[derive(Debug)]
struct Probes([(Probe, u32); BLOCK_LEN]);

impl Default for Probes {
    fn default() -> Self {
        Self([Default::default(); BLOCK_LEN])
    }
}

/// A word as it is looked up, and what it becomes.
#[derive(Debug, Default)]
struct Word {
    text: Rewritten<'static>,
    ids: Vec<TokenId>,
    /// Where each token ends, in bytes from the beginning of the phantom.
    ends: Vec<usize>,
}

impl Model for WordPiece {
    type Scratch = Scratch;

    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let ids = 0..vocabulary.len() as TokenId;
        let tokens = ids.map(|id| (vocabulary.text(id), id as u32));
        Self::from_tokens(tokens, vocabulary.settings())
            .map_err(|_| VocabularyError::TooLarge { what: "trie of tokens" })
    }

    fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        self.normalize_as(vocabulary.settings(), vocabulary.special().unk.unwrap_or(NULL_TOKEN));
    }

    fn encode<S: Sink>(&self, _: &Vocabulary, fragment: Fragment<'_>, scratch: &mut Scratch, sink: &mut S) {
        self.text(fragment.text, fragment.start, scratch, sink);
    }

    fn heap_bytes(&self) -> usize {
        self.tokens.heap_bytes() + self.normalizer.heap_bytes()
    }
}

impl WordPiece {
    fn from_tokens<'a>(
        tokens: impl IntoIterator<Item = (&'a [u8], u32)>,
        settings: &Settings,
    ) -> Result<Self, TrieError> {
        let tokens = DoubleArray::build(tokens)?;
        let starts = std::array::from_fn(|from| {
            let mut start = Start { node: Some(tokens.root()), longest: None };
            for (at, &byte) in PHANTOM[from..].iter().enumerate() {
                start.node = start.node.and_then(|node| tokens.step(node, byte));
                let id = start.node.and_then(|node| tokens.value(node));
                start.longest = id.map(|id| (id as TokenId, at + 1)).or(start.longest);
            }
            start
        });
        Ok(Self { tokens, starts, normalizer: WordPieceNormalizer::new(settings), unknown: NULL_TOKEN })
    }

    /// Sets what may change after the tokens are known.
    fn normalize_as(&mut self, settings: &Settings, unknown: TokenId) {
        self.unknown = unknown;
        let mut normalizer = WordPieceNormalizer::new(settings);
        let mut word = Word::default();
        normalizer.fill(|code_point| {
            word.text.reset(0, false);
            word.text.push_code_point(code_point, 0..0);
            self.look_up(&mut word);
            if let [id] = word.ids[..] { Some(id) } else { None }
        });
        self.normalizer = normalizer;
    }

    /// Cuts a text into words; it begins at byte `offset` of the whole input.
    #[inline]
    fn text<S: Sink>(&self, text: &[u8], offset: usize, scratch: &mut Scratch, sink: &mut S) {
        let mut at = 0;
        let mut buffer = [b' '; BLOCK_LEN + KEY_LEN];
        while !S::SPANS && at < text.len() {
            let block = padded(&text[at..], &mut buffer);
            at = self.block(text, at, block, scratch, sink);
        }
        while at < text.len() {
            at = self.word(text, at, offset, scratch, sink);
        }
    }

    /// Appends the tokens of the words that begin in the block at byte `start` of `text`, but for one that begins behind
    /// that and goes on behind the block, and gives where that was. `block` may go on with spaces behind the text.
    #[inline(always)]
    fn block<S: Sink>(
        &self,
        text: &[u8],
        start: usize,
        block: &[u8; BLOCK_LEN + KEY_LEN],
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> usize {
        let Some(bytes) = block.first_chunk() else { return text.len() };
        let classes = WordClasses::new(bytes);
        let alphanumeric = classes.letter | classes.digit;
        let len_at = |at: usize| ((!(alphanumeric >> at)).trailing_zeros() as usize).max(1);
        let mut words = !classes.space;
        loop {
            // The words up to one that is not short and ASCII.
            let Scratch { cache, probes: Probes(probes), .. } = scratch;
            let mut num = 0;
            let mut other = None;
            while words != 0 {
                let at = words.trailing_zeros() as usize;
                let len = len_at(at);
                let end = at + len;
                let is_other = ((classes.other >> at) | (classes.other >> (end % BLOCK_LEN))) & 1 != 0;
                let Some(bytes) = block[at..].first_chunk() else { break };
                if is_other | (end >= BLOCK_LEN) | (len > MAX_LEN) {
                    other = Some(at);
                    break;
                }
                probes[num % BLOCK_LEN] = (cache.probe(Key::of(bytes, len)), at as u32);
                num += 1;
                words &= u64::MAX << end;
            }
            for n in 0..num {
                let (probe, at) = scratch.probes.0[n % BLOCK_LEN];
                match scratch.cache.get(probe) {
                    Some(ids) => ids.for_each(|id| sink.push(id, 0..0)),
                    None => {
                        let at = at as usize;
                        self.tokens(&block[at..at + len_at(at)], 0, Some(probe), scratch, sink);
                    }
                }
            }
            let Some(at) = other else { return start + BLOCK_LEN };
            if at > 0 && at + len_at(at) >= BLOCK_LEN {
                return start + at;
            }
            let end = self.word(text, start + at, 0, scratch, sink) - start;
            if end >= BLOCK_LEN {
                return start + end;
            }
            words &= u64::MAX << end;
        }
    }

    /// Appends the tokens of the word at `start`, if one begins there, and of those that follow it without a space or
    /// an ASCII character. Gives where they end.
    fn word<S: Sink>(&self, text: &[u8], start: usize, offset: usize, scratch: &mut Scratch, sink: &mut S) -> usize {
        let mut end = start;
        loop {
            let start = end;
            let (first, len) = self.normalizer.character(text, start);
            end += len;
            match first.class() {
                Class::Space | Class::Dropped => {}
                Class::Token => sink.push(first.payload() as TokenId, offset + start..offset + end),
                class => {
                    if class == Class::Plain {
                        end = self.word_end(text, end);
                    }
                    let bytes = text[start..].first_chunk().filter(|_| !S::SPANS && end - start <= MAX_LEN);
                    let probe = bytes.map(|bytes| scratch.cache.probe(Key::of(bytes, end - start)));
                    match probe.and_then(|probe| scratch.cache.get(probe)) {
                        Some(ids) => ids.for_each(|id| sink.push(id, 0..0)),
                        None => self.tokens(&text[start..end], offset + start, probe, scratch, sink),
                    }
                }
            }
            if text.get(end).is_none_or(u8::is_ascii) {
                return end;
            }
        }
    }

    /// Where the word ends that goes on at `at`.
    #[inline]
    fn word_end(&self, text: &[u8], mut at: usize) -> usize {
        while at < text.len() {
            let (character, len) = self.normalizer.character(text, at);
            if character.ends_word() {
                break;
            }
            at += len;
        }
        at
    }

    /// Appends the tokens of one word, which begins at byte `offset` of the whole input, and keeps their ids.
    fn tokens<S: Sink>(&self, text: &[u8], offset: usize, probe: Option<Probe>, scratch: &mut Scratch, sink: &mut S) {
        let Scratch { cache, word, .. } = scratch;
        word.text.reset(offset, S::SPANS);
        let mut at = 0;
        while at < text.len() {
            let (character, len) = self.normalizer.character(text, at);
            if character.class() != Class::Dropped {
                word.text.push_code_point(character.payload(), at..at + len);
            }
            at += len;
        }
        self.look_up(word);
        if let Some(probe) = probe {
            cache.insert(probe, &word.ids);
        }
        let mut from = 0;
        for (&id, &end) in word.ids.iter().zip(&word.ends) {
            sink.push(id, word.span(from, end));
            from = end;
        }
    }

    /// Finds the tokens of a word: none if it is empty.
    fn look_up(&self, word: &mut Word) {
        word.ids.clear();
        word.ends.clear();
        if word.text.text.is_empty() {
            return;
        }
        let len = PHANTOM.len() + word.text.text.len();
        let mut from = 0;
        while from < len {
            let Some((id, token_len)) = self.longest_match(&word.text.text, from) else {
                word.ids.clear();
                word.ends.clear();
                word.ids.push(self.unknown);
                word.ends.push(len);
                return;
            };
            from += token_len;
            word.ids.push(id);
            word.ends.push(from);
        }
    }

    /// The longest token at byte `from` of the phantom and the word.
    #[inline]
    fn longest_match(&self, word: &[u8], from: usize) -> Option<(TokenId, usize)> {
        let Start { node, mut longest } = self.starts[from.min(PHANTOM.len())];
        let Some(mut node) = node else { return longest };
        let in_phantom = PHANTOM.len().saturating_sub(from);
        let rest = &word[from.saturating_sub(PHANTOM.len())..];
        for (at, &byte) in rest.iter().enumerate() {
            let Some(next) = self.tokens.step(node, byte) else {
                break;
            };
            node = next;
            if let Some(value) = self.tokens.value(node) {
                longest = Some((value as TokenId, in_phantom + at + 1));
            }
        }
        longest
    }
}

impl Word {
    /// The span of the input that a range of the phantom and the word came from.
    fn span(&self, start: usize, end: usize) -> Range<usize> {
        let [start, end] = [start, end].map(|at| at.saturating_sub(PHANTOM.len()));
        let span = self.text.span(start..end.max(start + 1));
        if end > start { span } else { span.start..span.start }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scratch, WordPiece};
    use crate::normalizer::wordpiece::is_chinese;
    use crate::sink::{NULL_TOKEN, Spans, TokenId};
    use crate::unicode::{base_letter, flags, lowercase, utf8};
    use crate::vocabulary::Settings;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn build<T: AsRef<[u8]>>(tokens: &[T], unknown: TokenId, lowercase: bool, strip_accents: bool) -> WordPiece {
        let settings = Settings { lowercase, strip_accents, ..Settings::default() };
        let tokens = (0..).zip(tokens).map(|(id, text)| (text.as_ref(), id));
        let mut model = WordPiece::from_tokens(tokens, &settings).unwrap();
        model.normalize_as(&settings, unknown);
        model
    }

    fn encode(model: &WordPiece, text: &[u8]) -> Spans {
        let mut out = Spans::default();
        model.text(text, 0, &mut Scratch::default(), &mut out);
        let mut scratch = Scratch::default();
        for cache in ["cold", "warm"] {
            let mut ids = Vec::new();
            model.text(text, 0, &mut scratch, &mut ids);
            assert_eq!(ids, out.ids, "ids without spans, cache {cache}");
        }
        out
    }

    /// llama.cpp's way: all words first, then every substring from the longest down.
    fn naive(tokens: &[Vec<u8>], unknown: TokenId, lower: bool, strip: bool, text: &[u8]) -> Vec<TokenId> {
        let mut words = vec![Vec::new()];
        let mut at = 0;
        while at < text.len() {
            let (code_point, len) = utf8::decode_lossy(text, at);
            at += len;
            let code_point = if strip { base_letter(code_point) } else { code_point };
            let class = flags(code_point);
            if class.is_whitespace() {
                words.push(Vec::new());
                continue;
            }
            if code_point == 0 || code_point == 0xFFFD || class.is_control() || strip && class.is_accent_mark() {
                continue;
            }
            let mut buffer = [0; 4];
            let bytes = utf8::encode(if lower { lowercase(code_point) } else { code_point }, &mut buffer);
            if class.is_punctuation() || code_point < 0x7F && class.is_symbol() || is_chinese(code_point) {
                words.extend([bytes.to_vec(), Vec::new()]);
            } else {
                words.last_mut().unwrap().extend_from_slice(bytes);
            }
        }
        let ids: HashMap<&[u8], TokenId> = tokens.iter().map(Vec::as_slice).zip(0..).collect();
        let mut output = Vec::new();
        for word in words.into_iter().filter(|word| !word.is_empty()) {
            let word = ["▁".as_bytes(), &word].concat();
            let before = output.len();
            let mut from = 0;
            while from < word.len() {
                let Some(end) = (from + 1..=word.len()).rev().find(|&end| ids.contains_key(&word[from..end])) else {
                    output.truncate(before);
                    break;
                };
                output.push(ids[&word[from..end]]);
                from = end;
            }
            if output.len() == before {
                output.push(unknown);
            }
        }
        output
    }

    const TOKENS: [&str; 11] = ["[UNK]", "▁what", "▁is", "▁lo", "ra", "▁?", "▁a", "▁un", "aff", "able", "▁中"];

    #[test]
    fn words_are_split_and_matched() {
        let model = build(&TOKENS, 0, true, true);
        let cases: [(&str, &[TokenId]); 10] = [
            ("", &[]),
            (" \t\u{3000}", &[]),
            ("\0\u{FFFD}\u{301}", &[]),
            ("What is LoRA?", &[1, 2, 3, 4, 5]),
            ("unaffable a\u{301}", &[7, 8, 9, 6]),
            ("Å á", &[6, 6]),
            ("wh\u{AD}at\u{7}", &[1]),
            ("isn't", &[0, 0, 0]),
            ("is中is", &[2, 10, 2]),
            ("unaffix is", &[0, 2]),
        ];
        for (text, ids) in cases {
            assert_eq!(encode(&model, text.as_bytes()).ids, ids, "{text:?}");
        }
    }

    #[test]
    fn case_and_accents_are_kept_unless_asked() {
        let tokens = ["▁é", "▁É", "▁e", "▁E"];
        for (lower, strip, ids) in
            [(false, false, [1, 0]), (true, false, [0, 0]), (false, true, [3, 2]), (true, true, [2, 2])]
        {
            assert_eq!(encode(&build(&tokens, NULL_TOKEN, lower, strip), "É é".as_bytes()).ids, ids);
        }
    }

    #[test]
    fn spans_are_those_of_the_original_text() {
        let model = build(&["▁", "is", "▁a", "ra", "▁?"], 9, true, true);
        type Case = (&'static str, &'static [TokenId], &'static [(usize, usize)]);
        let cases: [Case; 4] = [
            (" is", &[0, 1], &[(1, 1), (1, 3)]),
            ("Á\u{AD}rÁ?", &[2, 3, 4], &[(0, 2), (4, 7), (7, 8)]),
            ("\u{AD}i\u{AD}S", &[0, 1], &[(2, 2), (2, 6)]),
            ("x\u{301}yé z", &[9, 9], &[(0, 6), (7, 8)]),
        ];
        for (text, ids, spans) in cases {
            let out = encode(&model, text.as_bytes());
            assert_eq!(out.ids, ids, "{text:?}");
            assert_eq!(out.spans, spans.iter().map(|&(start, end)| start..end).collect::<Vec<_>>(), "{text:?}");
        }
        let mut out = Spans::default();
        model.text(b"a is", 100, &mut Scratch::default(), &mut out);
        assert_eq!(out.spans, [100..101, 102..102, 102..104]);
    }

    #[test]
    fn tokens_may_cut_the_phantom_and_characters() {
        let model = build(&[&b"\xE2"[..], b"\x96\x81a\xC3", b"\xA9", b"\x96", b"\x81", b"a"], 7, false, false);
        assert_eq!(encode(&model, "aé".as_bytes()).ids, [0, 1, 2]);
        assert_eq!(encode(&model, b"a a").ids, [0, 3, 4, 5, 0, 3, 4, 5]);
        assert_eq!(encode(&model, b"b").ids, [7]);
    }

    #[test]
    fn numbers_beyond_unicode_are_dropped() {
        let model = build(&TOKENS, 0, true, true);
        assert_eq!(encode(&model, b"wh\xF4\x90\x80\x80at \xF7\xBF\xBF\xBF").ids, [1]);
    }

    #[test]
    fn one_long_word_is_one_unknown() {
        let model = build(&["▁a", "a"], 5, false, false);
        assert_eq!(encode(&model, &[b'a'; 1000]).ids.len(), 1000);
        assert_eq!(encode(&model, &[&[b'a'; 1000][..], b"b"].concat()).ids, [5]);
    }

    /// Text in which every class of character meets every other.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let few = "aAbé É\u{301}\u{345}\u{AD}\u{FFFD}\0\t\u{7F}.$€中\u{2B820}\u{2F800}각İK\u{2028}▁";
        let piece = prop_oneof![
            8 => prop::sample::select(few.chars().collect::<Vec<_>>()).prop_map(|char| char.to_string().into_bytes()),
            1 => any::<char>().prop_map(|char| char.to_string().into_bytes()),
            1 => any::<u8>().prop_map(|byte| vec![byte]),
            1 => (0x82u8..0x90).prop_map(|byte| vec![0xF4, byte, 0x80, 0x80]),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn equals_the_literal_algorithm(
            tokens in prop::collection::hash_set("▁?[aAbeé.$中\u{1100}]{0,4}", 0..24),
            cut in prop::collection::hash_set(prop::collection::vec(prop::sample::select(
                &b"\xE2\x96\x81ab\xC3\xA9"[..]), 1..4), 0..8),
            text in text(),
            lower: bool,
            strip: bool,
        ) {
            let tokens: Vec<Vec<u8>> = tokens.into_iter().map(String::into_bytes).filter(|t| !t.is_empty())
                .chain(cut).collect::<std::collections::BTreeSet<_>>().into_iter().collect();
            let model = build(&tokens, 99, lower, strip);
            let out = encode(&model, &text);
            prop_assert_eq!(&out.ids, &naive(&tokens, 99, lower, strip, &text));
            for pair in out.spans.windows(2) {
                prop_assert!(pair[0].start <= pair[1].start && pair[1].end <= text.len());
            }
        }

        #[test]
        fn words_anywhere_in_a_block(
            tokens in prop::collection::hash_set("▁?[aAb7.é]{1,4}", 0..24),
            pieces in prop::collection::vec("[aAb7]{1,3}|[aAb7]{10,20}|[ab]{60,70}|[ .\u{1}\u{7F}]|é|中", 0..60),
            spaces in prop::collection::vec(0_usize..3, 60),
        ) {
            let tokens: Vec<Vec<u8>> = tokens.into_iter().map(String::into_bytes).collect();
            let model = build(&tokens, 99, true, false);
            let text: String = pieces.iter().zip(spaces).map(|(piece, num)| piece.to_owned() + &" ".repeat(num)).collect();
            let expected = naive(&tokens, 99, true, false, text.as_bytes());
            prop_assert_eq!(encode(&model, text.as_bytes()).ids, expected);
        }
    }
}
