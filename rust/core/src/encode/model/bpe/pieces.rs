//! Encodes pieces over bytes through a queue and a cache.
//!
//! 1. The pre-tokenizer cuts the text into pieces, which wait in a [`WordQueue`].
//! 2. A full queue drains: cached pieces cost a look-up each, made together; short new ones are learned together
//!    ([`NewPieces`]).
//! 3. Any other piece is encoded by itself: whole if it is a token that skips the merges, by counting if it repeats one
//!    character, and else segment by segment between the places that no merge can cross.

use std::ops::Range;

use super::new_pieces::NewPieces;
use super::{ByteTables, Merger, Scratch};
use crate::encode::model::cache::WordCache;
use crate::encode::model::cache::queue::{Batch, WordEncoder, WordQueue};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::pretokenizer::Splitter;
use crate::encode::sink::Sink;
use crate::lookup::key::Key;
use crate::token::TokenId;

/// Pushes the tokens of a text of canonical UTF-8.
pub(super) fn encode<S: Sink>(
    tables: &ByteTables,
    splitter: &Splitter,
    text: &Rewritten<'_>,
    Scratch { learned, queue, merger, new_pieces, segment_ids }: &mut Scratch,
    sink: &mut S,
) {
    let (bytes, sink) = (&text.text[..], &mut Traced { sink, text });
    let mut encoder = PieceEncoder { tables, merger, new_pieces, segment_ids };
    if S::SPANS {
        return splitter.split(bytes, learned, |start, end| {
            encoder.encode_new(bytes, start..end, &mut queue.cache, sink);
        });
    }
    queue.start(0);
    splitter.split(bytes, learned, |_, end| {
        if queue.push(end) {
            drain(queue, bytes, &mut encoder, sink);
        }
    });
    drain(queue, bytes, &mut encoder, sink);
}

#[inline(never)]
fn drain<S: Sink>(queue: &mut WordQueue, text: &[u8], encoder: &mut PieceEncoder<'_>, sink: &mut S) {
    queue.drain(text, encoder, sink);
}

/// Encodes pieces that are not cached.
struct PieceEncoder<'a> {
    tables: &'a ByteTables,
    merger: &'a mut Merger,
    new_pieces: &'a mut NewPieces,
    segment_ids: &'a mut Vec<TokenId>,
}

impl PieceEncoder<'_> {
    fn encode_new<S: Sink>(&mut self, text: &[u8], range: Range<usize>, cache: &mut WordCache, sink: &mut S) {
        let (tables, Range { start, end }) = (self.tables, range);
        let piece = &text[start..end];
        if let Some(id) = tables.whole_piece(piece, Key::new(text, start, end)) {
            return sink.push(id, start..end);
        }
        if tables.merge_run(piece, start, sink) {
            return;
        }
        tables.junctions.split(text, start..end, |from, to| {
            if (from, to) == (start, end) {
                tables.merge(piece, start, self.merger, sink);
            } else {
                self.encode_segment(text, from..to, cache, sink);
            }
        });
    }

    /// Encodes a segment of a piece, and caches its ids.
    fn encode_segment<S: Sink>(&mut self, text: &[u8], range: Range<usize>, cache: &mut WordCache, sink: &mut S) {
        let Range { start, end } = range;
        let segment = &text[start..end];
        if let Some(id) = self.tables.whole_segment(segment) {
            return sink.push(id, start..end);
        }
        let Self { tables, merger, segment_ids, .. } = self;
        let key = if S::SPANS { None } else { Key::new(text, start, end) };
        let Some(key) = key.map(|key| key.marked(true)) else {
            return tables.merge(segment, start, merger, sink);
        };
        let probe = cache.probe(key);
        if cache.push(probe, sink) {
            return;
        }
        segment_ids.clear();
        tables.merge(segment, start, merger, *segment_ids);
        sink.push_all(segment_ids);
        cache.insert(probe, segment_ids);
    }
}

impl WordEncoder for PieceEncoder<'_> {
    fn learn(&mut self, words: Batch<'_>, new: &[u32], cache: &mut WordCache) {
        self.new_pieces.learn(self.tables, words, new, cache);
    }

    #[inline(never)]
    fn encode(&mut self, text: &[u8], range: Range<usize>, cache: &mut WordCache, ids: &mut Vec<TokenId>) {
        self.encode_new(text, range, cache, ids);
    }
}
