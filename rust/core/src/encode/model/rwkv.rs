//! RWKV: greedy longest match from left to right over bytes, by a walk through a trie of the tokens.
//!
//! Each step of a walk waits for the step before it. So the first steps of a walk, over two ASCII characters or the
//! bytes of one other character, come from a table: see [`WalkStarts`]. Token texts are written with escapes, because
//! they may contain any bytes; the trie holds the bytes.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_unescape_rwkv_token`, `llm_tokenizer_rwkv` and
//! `llm_tokenizer_rwkv_session`. Time: O(n) for n bytes of text, however often a long token starts and is never completed
//! ([`Backward`]). Space: the tables, and nothing per call with short tokens.
//!
//! Deviations:
//! 1. If a byte starts tokens but the text completes none of them, the byte is unknown, like one that starts no token.
//!    llama.cpp returns to the start of the text there, and loops forever.

mod starts;

use crate::encode::model::progress::Progress;
use crate::encode::model::{Fragment, Model, Task};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::trie::DoubleArray;
use crate::lookup::trie::backward::{Backward, SHORT};
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::spelling::unescape_rwkv;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::memory::collect;
use starts::WalkStarts;

/// The algorithm's tables.
#[derive(Debug)]
pub(crate) struct Rwkv {
    /// Ids by unescaped text; if two tokens have the same text, the last one wins.
    tokens: DoubleArray,
    /// The same if some are long.
    long: Option<Backward>,
    starts: WalkStarts,
}

heap_bytes!(Rwkv: tokens, long, starts);

impl Model for Rwkv {
    fn new(vocabulary: &Vocabulary, _definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let mut texts = Vec::new();
        let ends = (0..vocabulary.len()).map(|id| {
            unescape_rwkv(vocabulary.text(id as TokenId), &mut texts);
            texts.len()
        });
        let ends = collect(ends);

        let starts = [0].into_iter().chain(ends.iter().copied());
        let keys = starts.zip(&ends).map(|(start, &end)| &texts[start..end]).zip(0..);
        // A token that is a lone backslash has an empty text, and never matches.
        let keys = keys.filter(|(text, _)| !text.is_empty());
        let long = Backward::of_long(keys.clone())?;
        let tokens = DoubleArray::build(keys)?;
        Ok(Self { starts: WalkStarts::new(&tokens), tokens, long })
    }

    fn encode<S: Sink>(&self, task: Task<'_, S>) {
        self.encode_part(task, true, &mut Progress::default());
    }

    /// Up to the first token that later text may make longer.
    fn encode_part<S: Sink>(&self, task: Task<'_, S>, is_end: bool, _: &mut Progress) -> usize {
        let Task { vocabulary, fragment, sink, .. } = task;
        let Fragment { text, .. } = fragment;
        let unknown = vocabulary.special().unk.unwrap_or(NULL_TOKEN);
        let Some(long) = self.long.as_ref().filter(|_| text.len() > SHORT) else {
            return push_longest(fragment, sink, |at| self.longest(text, at, unknown, is_end));
        };
        let mut starts = long.starts(text);
        push_longest(fragment, sink, |at| {
            let is_settled = is_end || !starts.may_continue(at);
            let longest = starts.longest(at).map_or((at + 1, unknown), |(len, id)| (at + len, id as TokenId));
            is_settled.then_some(longest)
        })
    }
}

impl Rwkv {
    /// The end of the longest token at `at`, and the token; `None` if later text may make it longer.
    #[inline(always)]
    fn longest(&self, text: &[u8], at: usize, unknown: TokenId, is_end: bool) -> Option<(usize, TokenId)> {
        let mut token = (at + 1, unknown);
        let mut node = self.tokens.root();
        let mut next = at;
        // The table does not say whether a walk over all of the text has ended.
        if let Some((start, len)) = self.starts.get(&text[at..])
            && (is_end || at + len < text.len())
        {
            if start.len > 0 {
                token = (at + start.len as usize, start.id);
            }
            (node, next) = (start.node, at + len);
        }

        while let Some(&byte) = text.get(next) {
            let Some(child) = self.tokens.step(node, byte) else { return Some(token) };
            (node, next) = (child, next + 1);
            if let Some(id) = self.tokens.value(node) {
                token = (next, id as TokenId);
            }
        }
        is_end.then_some(token)
    }
}

/// Pushes the tokens of a fragment up to the first one that may become longer. Returns where they end.
#[inline(always)]
fn push_longest<S: Sink>(
    Fragment { text, start, .. }: Fragment<'_>,
    sink: &mut S,
    mut longest: impl FnMut(usize) -> Option<(usize, TokenId)>,
) -> usize {
    let mut at = 0;
    let mut ticker = Ticker::default();
    while at < text.len()
        && let Some((end, id)) = longest(at)
    {
        ticker.tick();
        sink.push(id, start + at..start + end);
        at = end;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::model::ModelScratch;
    use crate::encode::sink::Spans;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;

    fn encode(tokens: &[&[u8]], text: &[u8]) -> Spans {
        let (data, index) = StringIndex::concatenate(tokens).unwrap();
        let definition = Definition { model: "rwkv", tokens: Some(index.view(&data)), ..Definition::default() };
        let vocabulary = Vocabulary::declare(&definition).unwrap();
        let mut out = Spans::default();
        let fragment = Fragment { text, start: 100, after_special: true, continues: false, is_utf8: false };
        let scratch = &mut ModelScratch::default();
        let task = Task { vocabulary: &vocabulary, fragment, scratch, sink: &mut out };
        Rwkv::new(&vocabulary, &definition).unwrap().encode(task);
        out
    }

    #[test]
    fn the_longest_token_is_taken() {
        let tokens: [&[u8]; 6] = [b"a", b"ab", b"abcd", b"b", b"\\xe4", b"\\xe4\\xbd"];
        let out = encode(&tokens, b"abcabcdb\xe4\xbd\xe4");
        assert_eq!(out.ids, [1, NULL_TOKEN, 2, 3, 5, 4]);
        assert_eq!(out.spans, [100..102, 102..103, 103..107, 107..108, 108..110, 110..111]);
    }

    #[test]
    fn an_incomplete_token_is_unknown() {
        let tokens: [&[u8]; 2] = [b"xyz", b"y"];
        assert_eq!(encode(&tokens, b"yxyxyz").ids, [1, NULL_TOKEN, 1, 0]);
    }

    #[test]
    fn of_two_tokens_with_one_text_the_last_one_wins() {
        let tokens: [&[u8]; 4] = [b"\\n", b"\n", b"a", b"\\"];
        assert_eq!(encode(&tokens, b"\na\\").ids, [1, 2, NULL_TOKEN]);
    }
}
