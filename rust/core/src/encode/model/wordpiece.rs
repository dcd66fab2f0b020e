//! WordPiece: greedy longest match from left to right in each normalized word.
//!
//! 1. A block of 64 bytes is cut into words by class masks. A word of ASCII is a run of letters and digits, or one
//!    other character.
//! 2. Words up to the first one that is long, cut off by the block or not ASCII are looked up in the cache together, by
//!    their bytes before normalization.
//! 3. That first other word, and all words after it up to the next ASCII character, are taken one by one.
//! 4. A word that is not cached is normalized, and its tokens are found by walks through a trie ([`matcher`]).
//! 5. The tokens of an ASCII word tile it, so their lengths tell their spans ([`WordSpans`]).
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_wpm_session` (`preprocess`, `is_chinese_char`, `tokenize`).
//! Time: O(n) for n bytes of text. Space: O(longest word), and the cache.
//!
//! Deviations:
//! 1. A character that decodes beyond U+10FFFF is treated as U+FFFD and dropped; llama.cpp aborts there.

mod matcher;

pub(super) use matcher::NormalizedWord;

use std::ops::Range;

use super::cache::Probe;
use crate::encode::model::{Fragment, Model, ModelScratch, Task};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::normalizer::wordpiece::{Class, WordPieceNormalizer};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::key::{KEY_LEN, Key, MAX_LEN};
use crate::text::scan::masks::{Classified, WordClasses};
use crate::text::scan::{BLOCK as BLOCK_LEN, padded};
use crate::text::unicode::utf8;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::memory::collect;
use matcher::{Matcher, PHANTOM_LEN};

/// The algorithm's tables.
#[derive(Debug)]
pub(crate) struct WordPiece {
    matcher: Matcher,
    normalizer: WordPieceNormalizer,
    unknown: TokenId,
    /// Indexed by id: the length of the token's text, or 255 if it is longer.
    lengths: Vec<u8>,
}

heap_bytes!(WordPiece: matcher, normalizer, lengths);

impl Model for WordPiece {
    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let ids = 0..vocabulary.len() as TokenId;
        let tokens = ids.map(|id| (vocabulary.text(id), id as u32));
        let length = |(text, _): (&[u8], u32)| text.len().min(usize::from(u8::MAX)) as u8;
        let lengths = collect(tokens.clone().map(length));
        let normalizer = WordPieceNormalizer::default();
        Ok(Self { matcher: Matcher::new(tokens)?, normalizer, unknown: NULL_TOKEN, lengths })
    }

    /// Sets the normalizer and the unknown token.
    fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        self.unknown = vocabulary.special().unk.unwrap_or(NULL_TOKEN);
        let mut normalizer = WordPieceNormalizer::new(vocabulary.settings());
        let mut word = NormalizedWord::default();
        normalizer.fill(|code_point| {
            word.text.reset(0, false);
            word.text.push_code_point(code_point, 0..0);
            self.matcher.find_tokens(&mut word, 0, self.unknown);
            if let [id] = word.ids[..] { Some(id) } else { None }
        });
        self.normalizer = normalizer;
    }

    fn encode<S: Sink>(&self, Task { fragment, scratch, sink, .. }: Task<'_, S>) {
        let Fragment { text, start, continues, .. } = fragment;
        // A text that continues an earlier one may start with the rest of a word, which has no phantom before it.
        let rest_len = if continues { self.word_end(text, 0) } else { 0 };
        if rest_len > 0 {
            self.encode_word(&text[..rest_len], start, PHANTOM_LEN, None, scratch, sink);
        }
        self.encode_text(&text[rest_len..], start + rest_len, scratch, sink);
    }

    /// After the last character that ends words: each word is encoded by itself.
    fn settled(&self, _: &Vocabulary, Fragment { text, .. }: Fragment<'_>) -> usize {
        utf8::last_end(text, |at| {
            let (character, len) = self.normalizer.character(text, at);
            (character.ends_word(), len)
        })
    }
}

impl WordPiece {
    /// Pushes the tokens of a text that starts at byte `offset` of the whole input.
    #[inline]
    fn encode_text<S: Sink>(&self, text: &[u8], offset: usize, scratch: &mut ModelScratch, sink: &mut S) {
        let mut at = 0;
        let mut buffer = [b' '; BLOCK_LEN + KEY_LEN];
        let mut ticker = Ticker::default();
        while at < text.len() {
            ticker.tick();
            let block = padded(&text[at..], b' ', &mut buffer);
            at = self.encode_block(text, at, offset, block, scratch, sink);
        }
    }

    /// Pushes the tokens of the words in the block at byte `start` of `text`, and returns where the next block starts.
    /// A word that the block cuts off is left to the next block, unless the block starts with it. `block` is padded
    /// with spaces at the end of the text.
    #[inline(always)]
    fn encode_block<S: Sink>(
        &self,
        text: &[u8],
        start: usize,
        offset: usize,
        block: &[u8; BLOCK_LEN + KEY_LEN],
        scratch: &mut ModelScratch,
        sink: &mut S,
    ) -> usize {
        let Some(bytes) = block.first_chunk() else { return text.len() };
        let classes = WordClasses::new(bytes);
        let alphanumeric = classes.letter | classes.digit;
        let len_at = |at: usize| ((!(alphanumeric >> at)).trailing_zeros() as usize).max(1);
        let mut words = !classes.space;
        loop {
            // Start the look-ups of the words before the first one that is long, cut off or not ASCII.
            let ModelScratch { cache, probes: queue, .. } = scratch;
            queue.clear();
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
                queue.push(cache, Key::of(bytes, len), at);
                words &= u64::MAX << end;
            }

            for word in 0..scratch.probes.len() {
                sink.begin_word();
                let (probe, at) = scratch.probes.get(word);
                let len = probe.key.word_len();
                let is_cached = if S::SPANS {
                    let start = offset + start + at;
                    scratch.cache.push(probe, &[], &mut WordSpans { model: self, start, len, at: 0, sink })
                } else {
                    scratch.cache.push(probe, &[], sink)
                };
                if !is_cached {
                    self.encode_word(&block[at..at + len], offset + start + at, 0, Some(probe), scratch, sink);
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
        scratch: &mut ModelScratch,
        sink: &mut S,
    ) -> usize {
        let mut end = start;
        loop {
            let start = end;
            let (first, len) = self.normalizer.character(text, start);
            end += len;
            sink.begin_word();
            match first.class() {
                Class::Space | Class::Dropped => {}
                Class::Token => sink.push(first.payload() as TokenId, offset + start..offset + end),
                class => {
                    if class == Class::Plain {
                        end = self.word_end(text, end);
                    }
                    let bytes = text[start..].first_chunk().filter(|_| !S::SPANS && end - start <= MAX_LEN);
                    let probe = bytes.map(|bytes| scratch.cache.probe(Key::of(bytes, end - start)));
                    if probe.is_none_or(|probe| !scratch.cache.push(probe, &[], sink)) {
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

    /// The tokens that a word matches from left to right, up to a place where no token matches.
    pub(crate) fn matched(&self, text: &[u8]) -> Vec<TokenId> {
        let mut word = NormalizedWord::default();
        self.normalize(text, &mut word.text);
        self.matcher.match_tokens(&mut word, 0);
        word.ids
    }

    /// Appends the characters of a word.
    fn normalize(&self, text: &[u8], word: &mut Rewritten<'_>) {
        let mut at = 0;
        let mut ticker = Ticker::default();
        while at < text.len() {
            ticker.tick();
            let (character, len) = self.normalizer.character(text, at);
            if character.class() != Class::Dropped {
                word.push_code_point(character.payload(), at..at + len);
            }
            at += len;
        }
    }

    /// Pushes the tokens of one word, which starts at byte `offset` of the whole input, and caches their ids. Matches
    /// start at byte `from` of the phantom.
    fn encode_word<S: Sink>(
        &self,
        text: &[u8],
        offset: usize,
        from: usize,
        probe: Option<Probe>,
        scratch: &mut ModelScratch,
        sink: &mut S,
    ) {
        let ModelScratch { cache, word, .. } = scratch;
        word.text.reset(offset, S::SPANS);
        self.normalize(text, &mut word.text);
        self.matcher.find_tokens(word, from, self.unknown);
        if let Some(probe) = probe {
            cache.insert(probe, &[], &word.ids);
        }

        let mut start = from;
        for (&id, &end) in word.ids.iter().zip(&word.ends) {
            sink.push(id, word.span(start, end));
            start = end;
        }
    }
}

/// A sink that finds the spans of an ASCII word's cached ids. The word is as long as its normal form.
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

#[cfg(test)]
mod tests {
    use super::{Definition, Model, ModelScratch, Vocabulary, WordPiece};
    use crate::encode::sink::Spans;
    use crate::token::{NULL_TOKEN, TokenId};
    use crate::vocabulary::SpecialIds;
    use crate::vocabulary::strings::StringIndex;

    fn build<T: AsRef<[u8]>>(tokens: &[T], unknown: TokenId, lowercase: bool, strip_accents: bool) -> WordPiece {
        // The unknown token may be one of some others.
        let others = (tokens.len() as TokenId..=unknown).map(|id| format!("<other {id}>").into_bytes());
        let texts: Vec<Vec<u8>> = tokens.iter().map(|text| text.as_ref().to_vec()).chain(others).collect();
        let (data, index) = StringIndex::concatenate(&texts).unwrap();
        let definition = Definition {
            model: "bert",
            tokens: Some(index.view(&data)),
            special: SpecialIds { unk: u32::try_from(unknown).ok(), ..SpecialIds::default() },
            lowercase: Some(lowercase),
            strip_accents: Some(strip_accents),
            ..Definition::default()
        };
        let mut vocabulary = Vocabulary::declare(&definition).unwrap();
        let mut model = WordPiece::new(&vocabulary, &definition).unwrap();
        vocabulary.repair(&definition).unwrap();
        model.apply_repairs(&vocabulary);
        model
    }

    /// Tokens and spans of a text, word by word. Block by block must give the same.
    fn encode(model: &WordPiece, text: &[u8]) -> Spans {
        let mut out = Spans::default();
        let mut at = 0;
        while at < text.len() {
            at = model.encode_words(text, at, 0, &mut ModelScratch::default(), &mut out);
        }
        let mut scratch = ModelScratch::default();
        scratch.cache.set_limit(1 << 20);
        for cache in ["cold", "warm"] {
            let mut ids = Vec::new();
            let mut spans = Spans::default();
            model.encode_text(text, 0, &mut scratch, &mut ids);
            assert_eq!(ids, out.ids, "ids without spans, cache {cache}");
            model.encode_text(text, 0, &mut scratch, &mut spans);
            assert_eq!((&spans.ids, &spans.spans), (&out.ids, &out.spans), "cache {cache}");
        }
        out
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
        model.encode_text(b"a is", 100, &mut ModelScratch::default(), &mut out);
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
}
