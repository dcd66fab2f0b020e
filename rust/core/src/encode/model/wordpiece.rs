//! WordPiece: greedy longest match from left to right in each normalized word, by walks through a trie of the tokens.
//!
//! A word is preceded by a phantom `▁`: the token `▁low` starts words, the token `er` continues them. A word that
//! tokens do not cover to its end is one unknown token. llama.cpp looks up every substring that starts where the last
//! token ends, longest first, byte by byte. The last token on a walk is the same one, and may end inside a character
//! too.
//!
//! The walks over the phantom are the same for every word, so their ends are in a table ([`PhantomMatch`]). The words of
//! 64 bytes are found at once, and all their cache look-ups start before the first one is used ([`WordCache`]). The
//! tokens of an ASCII word tile it, so their lengths tell their spans ([`WordSpans`]).
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_wpm_session` (`preprocess`, `is_chinese_char`, `tokenize`).
//! Time: O(n · m) for n bytes of text and a longest token of m bytes; the worst case is a word in which every token is
//! the start of a much longer one that the text does not complete. Space: O(longest word), and the cache.
//!
//! Deviations:
//! 1. A character that decodes beyond U+10FFFF counts as U+FFFD and is dropped; llama.cpp's process ends there.

use std::ops::Range;

use super::cache::{Probe, WordCache};
use crate::encode::model::{Fragment, Model, ModelScratch};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::normalizer::wordpiece::{Class, WordPieceNormalizer};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::key::{KEY_LEN, Key, MAX_LEN};
use crate::lookup::trie::{DoubleArray, Node, TrieError};
use crate::text::scan::masks::WordClasses;
use crate::text::scan::{BLOCK as BLOCK_LEN, padded};
use crate::text::unicode::utf8::complete_len;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::{Definition, Settings, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::memory::push;

/// The length of the phantom in bytes.
const PHANTOM_LEN: usize = ESCAPED_SPACE.len();

/// The algorithm's tables.
#[derive(Debug)]
pub(crate) struct WordPiece {
    /// Ids by token text.
    tokens: DoubleArray,
    /// By the byte of the phantom at which a match starts, its state after the phantom. The last one is that of a match
    /// that starts in the word.
    phantom_matches: [PhantomMatch; PHANTOM_LEN + 1],
    normalizer: WordPieceNormalizer,
    unknown: TokenId,
    /// By id the length of the token's text, or 255 if it is longer.
    lengths: Vec<u8>,
}

/// A match that has passed the phantom.
#[derive(Debug, Clone, Copy)]
struct PhantomMatch {
    /// Where the walk is, if any token continues.
    node: Option<Node>,
    /// The longest token so far, and its length in bytes.
    longest: Option<(TokenId, usize)>,
}

/// Scratch space: buffers, and a cache of words.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Ids by the bytes of a word before it is normalized.
    cache: WordCache,
    word: NormalizedWord,
    probes: BlockProbes,
}

impl ModelScratch for Scratch {
    fn cache(&mut self) -> Option<&mut WordCache> {
        Some(&mut self.cache)
    }
}

/// The cache look-ups of the words in a block, each with the place where the word starts.
#[derive(Debug)]
struct BlockProbes([(Probe, u32); BLOCK_LEN]);

impl Default for BlockProbes {
    fn default() -> Self {
        Self([Default::default(); BLOCK_LEN])
    }
}

/// A normalized word, and its tokens.
#[derive(Debug, Default)]
struct NormalizedWord {
    text: Rewritten<'static>,
    ids: Vec<TokenId>,
    /// Where each token ends, in bytes from the start of the phantom.
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
        self.set_normalizer(vocabulary.settings(), vocabulary.special().unk.unwrap_or(NULL_TOKEN));
    }

    fn encode<S: Sink>(&self, _: &Vocabulary, fragment: Fragment<'_>, scratch: &mut Scratch, sink: &mut S) {
        let Fragment { text, start, continues, .. } = fragment;
        let rest_len = if continues { self.encode_rest_of_word(text, start, scratch, sink) } else { 0 };
        self.encode_text(&text[rest_len..], start + rest_len, scratch, sink);
    }

    /// After the last character that ends words: each word is encoded by itself.
    fn settled(&self, _: &Vocabulary, text: &[u8]) -> usize {
        let (mut at, mut settled, mut ticker) = (0, 0, Ticker::default());
        let end = complete_len(text);
        while at < end {
            ticker.tick();
            let (character, len) = self.normalizer.character(text, at);
            at += len;
            if character.ends_word() {
                settled = at;
            }
        }
        settled
    }

    fn heap_bytes(&self) -> usize {
        self.tokens.heap_bytes() + self.normalizer.heap_bytes() + self.lengths.capacity()
    }
}

impl WordPiece {
    fn from_tokens<'a>(
        tokens: impl IntoIterator<Item = (&'a [u8], u32)>,
        settings: &Settings,
    ) -> Result<Self, TrieError> {
        let mut lengths = Vec::new();
        let length = |text: &[u8]| text.len().min(usize::from(u8::MAX)) as u8;
        let tokens = DoubleArray::build(tokens.into_iter().inspect(|(text, _)| lengths.push(length(text))))?;
        let phantom_matches = std::array::from_fn(|start| {
            let mut state = PhantomMatch { node: Some(tokens.root()), longest: None };
            for (&byte, len) in ESCAPED_SPACE[start..].iter().zip(1..) {
                state.node = state.node.and_then(|node| tokens.step(node, byte));
                let id = state.node.and_then(|node| tokens.value(node));
                state.longest = id.map(|id| (id as TokenId, len)).or(state.longest);
            }
            state
        });
        let normalizer = WordPieceNormalizer::new(settings);
        Ok(Self { tokens, phantom_matches, normalizer, unknown: NULL_TOKEN, lengths })
    }

    /// Sets the normalizer and the unknown token, which repairs may change.
    fn set_normalizer(&mut self, settings: &Settings, unknown: TokenId) {
        self.unknown = unknown;
        let mut normalizer = WordPieceNormalizer::new(settings);
        let mut word = NormalizedWord::default();
        normalizer.fill(|code_point| {
            word.text.reset(0, false);
            word.text.push_code_point(code_point, 0..0);
            self.find_tokens(&mut word, 0);
            if let [id] = word.ids[..] { Some(id) } else { None }
        });
        self.normalizer = normalizer;
    }

    /// Pushes the tokens of a text that starts at byte `offset` of the whole input.
    #[inline]
    fn encode_text<S: Sink>(&self, text: &[u8], offset: usize, scratch: &mut Scratch, sink: &mut S) {
        let mut at = 0;
        let (mut buffer, mut ticker) = ([b' '; BLOCK_LEN + KEY_LEN], Ticker::default());
        while at < text.len() {
            ticker.tick();
            let block = padded(&text[at..], &mut buffer);
            at = self.encode_block(text, at, offset, block, scratch, sink);
        }
    }

    /// Pushes the tokens of the words in the block at byte `start` of `text`, and returns where the next block starts.
    /// A word that the block cuts off is left to the next one, unless the block starts with it. `block` is padded with
    /// spaces at the end of the text.
    #[inline(always)]
    fn encode_block<S: Sink>(
        &self,
        text: &[u8],
        start: usize,
        offset: usize,
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
            // Start to look up the words before the first one that is long, cut off or not ASCII.
            let Scratch { cache, probes: BlockProbes(probes), .. } = scratch;
            let mut num_words = 0;
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
                probes[num_words % BLOCK_LEN] = (cache.probe(Key::of(bytes, len)), at as u32);
                num_words += 1;
                words &= u64::MAX << end;
            }

            for word in 0..num_words {
                let (probe, at) = scratch.probes.0[word % BLOCK_LEN];
                let at = at as usize;
                let is_cached = if S::SPANS {
                    let (start, len) = (offset + start + at, len_at(at));
                    scratch.cache.push(probe, &mut WordSpans { model: self, start, len, at: 0, sink })
                } else {
                    scratch.cache.push(probe, sink)
                };
                if !is_cached {
                    let word = &block[at..at + len_at(at)];
                    self.encode_word(word, offset + start + at, 0, Some(probe), scratch, sink);
                }
            }

            let Some(at) = other else { return start + BLOCK_LEN };
            if at > 0 && at + len_at(at) >= BLOCK_LEN {
                return start + at;
            }
            let end = self.encode_words(text, start + at, offset, scratch, sink) - start;
            if end >= BLOCK_LEN {
                return start + end;
            }
            words &= u64::MAX << end;
        }
    }

    /// Pushes the tokens of the word at `start`, if one starts there, and of all words after it up to the next ASCII
    /// character. Returns where they end.
    fn encode_words<S: Sink>(
        &self,
        text: &[u8],
        start: usize,
        offset: usize,
        scratch: &mut Scratch,
        sink: &mut S,
    ) -> usize {
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
                    if probe.is_none_or(|probe| !scratch.cache.push(probe, sink)) {
                        self.encode_word(&text[start..end], offset + start, 0, probe, scratch, sink);
                    }
                }
            }
            if text.get(end).is_none_or(u8::is_ascii) {
                return end;
            }
        }
    }

    /// The end of a word that reaches at least to `at`.
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

    /// Pushes the tokens of the letters at the start of a text that continues an earlier one: the rest of a word, so no
    /// phantom is before it. Returns where it ends.
    fn encode_rest_of_word<S: Sink>(&self, text: &[u8], offset: usize, scratch: &mut Scratch, sink: &mut S) -> usize {
        let mut start = 0;
        while start < text.len() {
            let (character, len) = self.normalizer.character(text, start);
            match character.class() {
                Class::Dropped => start += len,
                Class::Plain => {
                    let end = self.word_end(text, start);
                    self.encode_word(&text[start..end], offset + start, PHANTOM_LEN, None, scratch, sink);
                    return end;
                }
                Class::Space | Class::Single | Class::Token => break,
            }
        }
        start
    }

    /// Pushes the tokens of one word, which starts at byte `offset` of the whole input, and caches their ids. Matches
    /// start at byte `from` of the phantom.
    fn encode_word<S: Sink>(
        &self,
        text: &[u8],
        offset: usize,
        from: usize,
        probe: Option<Probe>,
        scratch: &mut Scratch,
        sink: &mut S,
    ) {
        let Scratch { cache, word, .. } = scratch;
        word.text.reset(offset, S::SPANS);
        let (mut at, mut ticker) = (0, Ticker::default());
        while at < text.len() {
            ticker.tick();
            let (character, len) = self.normalizer.character(text, at);
            if character.class() != Class::Dropped {
                word.text.push_code_point(character.payload(), at..at + len);
            }
            at += len;
        }

        self.find_tokens(word, from);
        if let Some(probe) = probe {
            cache.insert(probe, &word.ids);
        }

        let mut start = from;
        for (&id, &end) in word.ids.iter().zip(&word.ends) {
            sink.push(id, word.span(start, end));
            start = end;
        }
    }

    /// Finds the tokens of a word from byte `from` of the phantom on. An empty word has none.
    fn find_tokens(&self, word: &mut NormalizedWord, from: usize) {
        word.ids.clear();
        word.ends.clear();
        if word.text.text.is_empty() {
            return;
        }

        let len = PHANTOM_LEN + word.text.text.len();
        let (mut start, mut ticker) = (from, Ticker::default());
        while start < len {
            ticker.tick();
            let Some((id, token_len)) = self.longest_match(&word.text.text, start) else {
                word.ids.clear();
                word.ends.clear();
                word.ids.push(self.unknown);
                word.ends.push(len);
                return;
            };
            start += token_len;
            push(&mut word.ids, id);
            push(&mut word.ends, start);
        }
    }

    /// The longest token at byte `start` of the phantom and the word, and its length.
    #[inline]
    fn longest_match(&self, word: &[u8], start: usize) -> Option<(TokenId, usize)> {
        let PhantomMatch { node, mut longest } = self.phantom_matches[start.min(PHANTOM_LEN)];
        let Some(mut node) = node else { return longest };
        let in_phantom = PHANTOM_LEN.saturating_sub(start);
        let rest = &word[start.saturating_sub(PHANTOM_LEN)..];
        for (at, &byte) in rest.iter().enumerate() {
            let Some(next) = self.tokens.step(node, byte) else { break };
            node = next;
            if let Some(value) = self.tokens.value(node) {
                longest = Some((value as TokenId, in_phantom + at + 1));
            }
        }
        longest
    }
}

/// A sink for the cached ids of an ASCII word, which its normal form is as long as. Finds their spans.
struct WordSpans<'a, S> {
    model: &'a WordPiece,
    /// Where the word starts in the whole input, and its length.
    start: usize,
    len: usize,
    /// Where the next token starts, in bytes from the start of the phantom.
    at: usize,
    sink: &'a mut S,
}

impl<S: Sink> Sink for WordSpans<'_, S> {
    const SPANS: bool = false;

    #[inline(always)]
    fn push(&mut self, id: TokenId, _: Range<usize>) {
        let end = self.at + self.model.lengths.get(id as usize).map_or(0, |&length| length.into());
        let [from, to] = [self.at, end].map(|at| self.start + at.saturating_sub(PHANTOM_LEN));
        self.sink.push(id, from..to);
        self.at = end;
    }

    #[inline(always)]
    fn push_all(&mut self, ids: &[TokenId]) {
        match *ids {
            // An unknown word, or a word that is a token.
            [id] => self.sink.push(id, self.start..self.start + self.len),
            _ => ids.iter().for_each(|&id| self.push(id, 0..0)),
        }
    }
}

impl NormalizedWord {
    /// The span in the input of a range of the phantom and the word.
    fn span(&self, start: usize, end: usize) -> Range<usize> {
        let [start, end] = [start, end].map(|at| at.saturating_sub(PHANTOM_LEN));
        let span = self.text.span(start..end.max(start + 1));
        if end > start { span } else { span.start..span.start }
    }
}

#[cfg(test)]
mod tests {
    use super::{Scratch, WordPiece};
    use crate::encode::normalizer::wordpiece::is_chinese;
    use crate::encode::sink::Spans;
    use crate::text::unicode::{base_letter, flags, lowercase, utf8};
    use crate::token::{NULL_TOKEN, TokenId};
    use crate::vocabulary::Settings;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn build<T: AsRef<[u8]>>(tokens: &[T], unknown: TokenId, lowercase: bool, strip_accents: bool) -> WordPiece {
        let settings = Settings { lowercase, strip_accents, ..Settings::default() };
        let tokens = (0..).zip(tokens).map(|(id, text)| (text.as_ref(), id));
        let mut model = WordPiece::from_tokens(tokens, &settings).unwrap();
        model.set_normalizer(&settings, unknown);
        model
    }

    /// Tokens and spans of a text, word by word. Block by block they must be the same.
    fn encode(model: &WordPiece, text: &[u8]) -> Spans {
        let (mut out, mut at) = (Spans::default(), 0);
        while at < text.len() {
            at = model.encode_words(text, at, 0, &mut Scratch::default(), &mut out);
        }
        let mut scratch = Scratch::default();
        for cache in ["cold", "warm"] {
            let (mut ids, mut spans) = (Vec::new(), Spans::default());
            model.encode_text(text, 0, &mut scratch, &mut ids);
            assert_eq!(ids, out.ids, "ids without spans, cache {cache}");
            model.encode_text(text, 0, &mut scratch, &mut spans);
            assert_eq!((&spans.ids, &spans.spans), (&out.ids, &out.spans), "cache {cache}");
        }
        out
    }

    /// As llama.cpp does it: first all words, then every substring, longest first.
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
    fn case_and_accents_are_kept_by_default() {
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
        model.encode_text(b"a is", 100, &mut Scratch::default(), &mut out);
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
    fn code_points_beyond_unicode_are_dropped() {
        let model = build(&TOKENS, 0, true, true);
        assert_eq!(encode(&model, b"wh\xF4\x90\x80\x80at \xF7\xBF\xBF\xBF").ids, [1]);
    }

    #[test]
    fn a_long_word_that_ends_unknown_is_one_unknown_token() {
        let model = build(&["▁a", "a"], 5, false, false);
        assert_eq!(encode(&model, &[b'a'; 1000]).ids.len(), 1000);
        assert_eq!(encode(&model, &[&[b'a'; 1000][..], b"b"].concat()).ids, [5]);
    }

    /// Text with all classes of characters side by side.
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
        fn equals_the_naive_algorithm(
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
            let padded = pieces.iter().zip(spaces).map(|(piece, num)| piece.to_owned() + &" ".repeat(num));
            let text: String = padded.collect();
            let expected = naive(&tokens, 99, true, false, text.as_bytes());
            prop_assert_eq!(encode(&model, text.as_bytes()).ids, expected);
        }
    }
}
