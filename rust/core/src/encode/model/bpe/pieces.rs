//! Encodes pieces over bytes through a queue and a cache.
//!
//! 1. The pre-tokenizer cuts the text into pieces, which wait in a [`WordQueue`].
//! 2. A full queue is looked up at once. Short pieces that are not cached are encoded together ([`NewPieces`]).
//! 3. Any other new piece is encoded by itself: whole if it is a token that skips the merges; by counting if it repeats
//!    one character; otherwise segment by segment, between the positions that no merge can cross.

use std::ops::Range;

use super::new_pieces::NewPieces;
use super::{BpeScratch, ByteTables};
use crate::encode::model::cache::WordCache;
use crate::encode::model::cache::queue::WordQueue;
use crate::encode::model::sampler::Sampler;
use crate::encode::model::{Merger, ModelScratch};
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
    scratch: &mut ModelScratch,
    sink: &mut S,
) {
    let ModelScratch { cache, queue, merger, sampler, bpe, .. } = scratch;
    let BpeScratch { learned, new_pieces, segment_ids } = bpe;
    let sink = &mut Traced { sink, text };
    let text = &text.text[..];
    let mut encoder = PieceEncoder { tables, text, merger, sampler, new_pieces, segment_ids };
    if S::SPANS {
        return splitter.split(text, learned, |start, end| {
            sink.begin_word();
            encoder.encode_new(start..end, cache, sink);
        });
    }
    queue.start(0);
    if splitter.has_long_pieces() && tables.whole_tokens.is_none() && is_mostly_ascii(text) {
        splitter.split(text, learned, |start, end| {
            let push = |_, end| {
                if queue.push(end) {
                    encoder.push_queued(queue, cache, sink);
                }
            };
            tables.split_piece(text, start..end, push);
        });
    } else {
        splitter.split(text, learned, |_, end| {
            if queue.push(end) {
                encoder.push_queued(queue, cache, sink);
            }
        });
    }
    encoder.push_queued(queue, cache, sink);
}

/// Whether at most one byte in eight is not ASCII.
fn is_mostly_ascii(text: &[u8]) -> bool {
    let num_beyond = text.chunks(128).map(|chunk| chunk.iter().map(|byte| byte >> 7).sum::<u8>()).map(usize::from);
    num_beyond.sum::<usize>() <= text.len() / 8
}

/// The encoding of one text.
struct PieceEncoder<'a> {
    tables: &'a ByteTables,
    text: &'a [u8],
    merger: &'a mut Merger,
    sampler: &'a mut Option<Sampler>,
    new_pieces: &'a mut NewPieces,
    segment_ids: &'a mut Vec<TokenId>,
}

impl PieceEncoder<'_> {
    /// Pushes the tokens of all queued pieces.
    #[inline(never)]
    fn push_queued<S: Sink>(&mut self, queue: &mut WordQueue, cache: &mut WordCache, sink: &mut S) {
        let looked_up = queue.look_up(self.text, cache);
        if looked_up.num_new() > 0 {
            self.new_pieces.learn(self.tables, &looked_up, cache);
        }
        looked_up.push_ids(cache, |piece, cache, ids| self.encode_new(piece, cache, ids), sink);
    }

    /// Pushes the tokens of the piece in this range of the text, and caches the ids of its segments.
    #[inline(never)]
    fn encode_new<S: Sink>(&mut self, Range { start, end }: Range<usize>, cache: &mut WordCache, sink: &mut S) {
        let tables = self.tables;
        let text = self.text;
        let piece = &text[start..end];
        if S::SPANS
            && let Some(sampler) = self.sampler
        {
            return tables.merge(piece, start, self.merger, Some(sampler), sink);
        }
        if let Some(id) = tables.whole_piece(piece, Key::new(text, start, end)) {
            return sink.push(id, start..end);
        }
        if tables.merge_run(piece, start, sink) {
            return;
        }
        tables.segmenter.split(text, start..end, |from, to| {
            if (from, to) == (start, end) {
                tables.merge(piece, start, self.merger, None, sink);
            } else {
                self.encode_segment(from..to, cache, sink);
            }
        });
    }

    /// Pushes the tokens of a segment of a piece, and caches them.
    fn encode_segment<S: Sink>(&mut self, Range { start, end }: Range<usize>, cache: &mut WordCache, sink: &mut S) {
        let Self { tables, text, merger, segment_ids, .. } = self;
        let segment = &text[start..end];
        if let Some(id) = tables.whole_segment(segment) {
            return sink.push(id, start..end);
        }
        if S::SPANS {
            return tables.merge(segment, start, merger, None, sink);
        }
        let probe = cache.probe_segment(text, start, end);
        if !cache.push(probe, segment, sink) {
            segment_ids.clear();
            tables.merge(segment, start, merger, None, *segment_ids);
            sink.push_all(segment_ids);
            cache.insert(probe, segment, segment_ids);
        }
    }
}
