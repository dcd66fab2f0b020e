//! Encodes pieces over bytes through a queue and a cache.
//!
//! 1. The pre-tokenizer cuts the text into pieces, which wait in a [`WordQueue`].
//! 2. A full queue drains: cached pieces cost a look-up each, made together; short new ones are learned together
//!    ([`NewWords`]).
//! 3. Any other piece is encoded by itself: whole if it is a token that skips the merges, by counting if it repeats one
//!    character, and else segment by segment between the places that no merge can cross.

use std::ops::Range;

use super::new_words::NewWords;
use super::{Merger, Tables};
use crate::lookup::key::Key;
use crate::model::cache::queue::{Batch, WordEncoder, WordQueue};
use crate::model::cache::words::WordCache;
use crate::normalizer::rewritten::{Rewritten, Traced};
use crate::pretokenizer::Splitter;
use crate::sink::{Sink, TokenId};

/// Scratch space for texts.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    queue: WordQueue,
    encoder: PieceScratch,
}

/// Scratch space for pieces.
#[derive(Debug, Default)]
struct PieceScratch {
    merger: Merger,
    cache: WordCache,
    new_words: NewWords,
    /// The ids of a segment on their way into the cache.
    segment_ids: Vec<TokenId>,
}

/// Pushes the tokens of a text of canonical UTF-8.
pub(super) fn encode<S: Sink>(
    tables: &Tables,
    splitter: &Splitter,
    text: &Rewritten<'_>,
    Scratch { queue, encoder }: &mut Scratch,
    sink: &mut S,
) {
    let (bytes, sink) = (&text.text[..], &mut Traced { sink, text });
    let mut pass = Pass { tables, text: bytes, scratch: encoder };
    if S::SPANS {
        return splitter.split(bytes, |start, end| pass.encode_new(start..end, sink));
    }
    queue.start(0);
    splitter.split(bytes, |_, end| {
        if queue.push(end) {
            pass.drain(queue, sink);
        }
    });
    pass.drain(queue, sink);
}

/// One text on its way.
struct Pass<'a> {
    tables: &'a Tables,
    text: &'a [u8],
    scratch: &'a mut PieceScratch,
}

impl Pass<'_> {
    #[inline(never)]
    fn drain<S: Sink>(&mut self, queue: &mut WordQueue, sink: &mut S) {
        queue.drain(self.text, self, sink);
    }

    /// Encodes a piece that is not cached.
    fn encode_new<S: Sink>(&mut self, Range { start, end }: Range<usize>, sink: &mut S) {
        let (tables, text) = (self.tables, self.text);
        let piece = &text[start..end];
        if let Some(id) = tables.whole_piece(piece, Key::new(text, start, end)) {
            return sink.push(id, start..end);
        }
        if tables.merge_run(piece, start, sink) {
            return;
        }
        tables.junctions.split(text, start..end, |from, to| {
            if (from, to) == (start, end) {
                tables.merge(piece, start, &mut self.scratch.merger, sink);
            } else {
                self.encode_segment(from, to, sink);
            }
        });
    }

    /// Encodes a segment of a piece, and caches its ids.
    fn encode_segment<S: Sink>(&mut self, start: usize, end: usize, sink: &mut S) {
        let segment = &self.text[start..end];
        if let Some(id) = self.tables.whole_segment(segment) {
            return sink.push(id, start..end);
        }
        let PieceScratch { merger, cache, segment_ids, .. } = &mut *self.scratch;
        let key = if S::SPANS { None } else { Key::new(self.text, start, end) };
        let Some(key) = key.map(|key| key.marked(true)) else {
            return self.tables.merge(segment, start, merger, sink);
        };
        let probe = cache.probe(key);
        if cache.push(probe, sink) {
            return;
        }
        segment_ids.clear();
        self.tables.merge(segment, start, merger, segment_ids);
        sink.push_all(segment_ids);
        cache.insert(probe, segment_ids);
    }
}

impl WordEncoder for Pass<'_> {
    #[inline(always)]
    fn cache(&mut self) -> &mut WordCache {
        &mut self.scratch.cache
    }

    fn learn(&mut self, words: Batch<'_>, new: &[u32]) {
        let PieceScratch { new_words, cache, .. } = &mut *self.scratch;
        new_words.learn(self.tables, words, new, cache);
    }

    #[inline(never)]
    fn encode(&mut self, range: Range<usize>, ids: &mut Vec<TokenId>) {
        self.encode_new(range, ids);
    }
}
