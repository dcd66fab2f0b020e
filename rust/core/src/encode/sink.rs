//! Sinks: the output side of every algorithm.
//!
//! Algorithms are generic over [`Sink`]. The compiler makes three instances: one writes ids, one counts them, one
//! records spans. None pays for the others.

mod characters;

use std::ops::Range;

use crate::token::TokenId;
use crate::work::memory::{push, reserve};

/// Receives the tokens of a text in order.
pub trait Sink {
    /// Whether [`Sink::push`] uses its span. If not, an algorithm may pass an empty span, and may use caches that hold
    /// ids without spans.
    const SPANS: bool;
    /// Whether the sink has to know where words start, for which each is encoded by itself.
    const WORDS: bool = false;

    /// The next token starts a word: a piece of the pre-tokenizer, a word of WordPiece, a fragment or a special token.
    #[inline(always)]
    fn begin_word(&mut self) {}

    /// Takes the next token and its byte range in the input.
    fn push(&mut self, id: TokenId, span: Range<usize>);

    /// Takes several tokens at once, with one span for each.
    fn push_spanned(&mut self, ids: &[TokenId], spans: impl Iterator<Item = Range<usize>>) {
        ids.iter().zip(spans).for_each(|(&id, span)| self.push(id, span));
    }

    /// Takes several tokens at once, without spans. Only called if [`Sink::SPANS`] is false.
    #[inline(always)]
    fn push_all(&mut self, ids: &[TokenId]) {
        ids.iter().for_each(|&id| self.push(id, 0..0));
    }
}

impl Sink for Vec<TokenId> {
    const SPANS: bool = false;

    #[inline(always)]
    fn push(&mut self, id: TokenId, _span: Range<usize>) {
        reserve(self, 1);
        self.push(id);
    }

    #[inline(always)]
    fn push_all(&mut self, ids: &[TokenId]) {
        reserve(self, ids.len());
        match *ids {
            [id] => self.push(id),
            _ => self.extend_from_slice(ids),
        }
    }
}

/// Counts tokens without keeping them.
#[derive(Debug, Default, Clone, Copy)]
pub struct Count(
    /// Tokens seen so far.
    pub usize,
);

impl Sink for Count {
    const SPANS: bool = false;

    #[inline(always)]
    fn push(&mut self, _id: TokenId, _span: Range<usize>) {
        self.0 += 1;
    }

    #[inline(always)]
    fn push_all(&mut self, ids: &[TokenId]) {
        self.0 += ids.len();
    }
}

/// Keeps ids and spans.
#[derive(Debug, Default, Clone)]
pub struct Spans {
    /// One id per token.
    pub ids: Vec<TokenId>,
    /// The byte range of each token in the input.
    pub spans: Vec<Range<usize>>,
}

impl Spans {
    /// Room for as many tokens as a text of this length in bytes is likely to have, up to a million.
    pub fn with_room_for(num_bytes: usize) -> Self {
        let num_tokens = (num_bytes / 3).min(1 << 20) + 8;
        let mut spans = Self::default();
        // If there is not that much memory, a smaller buffer may still be enough.
        let _ = spans.ids.try_reserve_exact(num_tokens);
        let _ = spans.spans.try_reserve_exact(num_tokens);
        spans
    }
}

impl Sink for Spans {
    const SPANS: bool = true;

    #[inline]
    fn push(&mut self, id: TokenId, span: Range<usize>) {
        push(&mut self.ids, id);
        push(&mut self.spans, span);
    }

    #[inline]
    fn push_spanned(&mut self, ids: &[TokenId], spans: impl Iterator<Item = Range<usize>>) {
        reserve(&mut self.ids, ids.len());
        reserve(&mut self.spans, ids.len());
        self.ids.extend_from_slice(ids);
        self.spans.extend(spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_of_single_tokens_gets_every_token_of_several() {
        struct Reversed(Vec<TokenId>);

        impl Sink for Reversed {
            const SPANS: bool = false;

            fn push(&mut self, id: TokenId, _span: Range<usize>) {
                self.0.insert(0, id);
            }
        }

        let mut sink = Reversed(vec![1]);
        sink.push_all(&[2, 3]);
        assert_eq!(sink.0, [3, 2, 1]);
    }
}
