//! A text encoded part by part, where each part is encoded by itself and what it became is remembered.

use std::ops::Range;

use crate::model::adjacency::Junctions;
use crate::model::cache::queue::{Known, Word, WordQueue};
use crate::model::cache::words::WordCache;
use crate::sink::{Sink, TokenId};

/// The parts of texts, and what they became. What encodes them has to be the same for all.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    queue: WordQueue,
    cache: WordCache,
}

impl Parts {
    /// Encodes the parts of `text[begin..end]`, which `junctions` tell (for `escaped_spaces` see [`Junctions::split`]).
    /// `encode` appends the ids of a part.
    #[inline]
    pub(crate) fn encode<S: Sink>(
        &mut self,
        junctions: &Junctions,
        text: &[u8],
        Range { start: begin, end }: Range<usize>,
        escaped_spaces: bool,
        sink: &mut S,
        mut encode: impl FnMut(&[u8], &mut Vec<TokenId>),
    ) {
        self.queue.start(begin);
        junctions.split(text, begin, end, escaped_spaces, |_, to| {
            if self.queue.push(to) {
                self.drain(text, sink, &mut encode);
            }
        });
        self.drain(text, sink, &mut encode);
    }

    /// Encodes one part.
    pub(crate) fn encode_one<S: Sink>(
        &mut self,
        part: &[u8],
        sink: &mut S,
        encode: impl FnOnce(&[u8], &mut Vec<TokenId>),
    ) {
        self.cache.push_word(part, 0, part.len(), sink, encode);
    }

    /// Encodes the parts that wait.
    #[inline(never)]
    fn drain<S: Sink>(&mut self, text: &[u8], sink: &mut S, encode: &mut impl FnMut(&[u8], &mut Vec<TokenId>)) {
        let Self { queue, cache } = self;
        queue.drain(text, &mut KnownParts { text, cache, encode }, sink);
    }
}

/// The parts of a text, and what they become.
struct KnownParts<'a, F> {
    text: &'a [u8],
    cache: &'a mut WordCache,
    encode: &'a mut F,
}

impl<F: FnMut(&[u8], &mut Vec<TokenId>)> Known for KnownParts<'_, F> {
    fn cache(&self) -> &WordCache {
        self.cache
    }

    fn encode<S: Sink>(&mut self, part: &Word, sink: &mut S) {
        self.cache.push_word(self.text, part.begin, part.end, sink, &mut *self.encode);
    }
}
