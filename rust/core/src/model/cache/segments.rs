//! A cached encoder of segments: each segment of a text is encoded by itself, and its ids are cached.
//!
//! O(1) for a segment that is cached; otherwise what encoding it takes.

use std::ops::Range;

use super::queue::{WordEncoder, WordQueue};
use super::words::WordCache;
use crate::model::adjacency::Junctions;
use crate::sink::{Sink, TokenId};

/// Segments on their way, and the ids of earlier ones. Always used with the same junctions and the same encoder.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    queue: WordQueue,
    cache: WordCache,
}

impl Segments {
    /// Pushes the ids of `text[range]`, which `junctions` cut into segments. `encode` appends the ids of a new one.
    #[inline]
    pub(crate) fn encode<S: Sink>(
        &mut self,
        junctions: &Junctions,
        text: &[u8],
        range: Range<usize>,
        sink: &mut S,
        mut encode: impl FnMut(&[u8], &mut Vec<TokenId>),
    ) {
        self.queue.start(range.start);
        junctions.split(text, range, |_, end| {
            if self.queue.push(end) {
                self.drain(text, sink, &mut encode);
            }
        });
        self.drain(text, sink, &mut encode);
    }

    #[inline(never)]
    fn drain<S: Sink>(&mut self, text: &[u8], sink: &mut S, encode: &mut impl FnMut(&[u8], &mut Vec<TokenId>)) {
        let Self { queue, cache } = self;
        queue.drain(text, &mut SegmentEncoder { text, cache, encode }, sink);
    }
}

struct SegmentEncoder<'a, F> {
    text: &'a [u8],
    cache: &'a mut WordCache,
    encode: &'a mut F,
}

impl<F: FnMut(&[u8], &mut Vec<TokenId>)> WordEncoder for SegmentEncoder<'_, F> {
    fn cache(&mut self) -> &mut WordCache {
        self.cache
    }

    #[inline(never)]
    fn encode(&mut self, range: Range<usize>, ids: &mut Vec<TokenId>) {
        (self.encode)(&self.text[range], ids);
    }
}
