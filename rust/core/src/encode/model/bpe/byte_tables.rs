//! The tables of byte-pair encoding over bytes, and how one piece is looked up and merged with them.

use std::ops::Range;

use super::whole_chars::WholeChars;
use super::whole_tokens::WholeTokens;
use crate::encode::model::Merger;
use crate::encode::model::merging::ranks::MergeRanks;
use crate::encode::model::merging::sure_pairs::SurePairs;
use crate::encode::model::merging::symbol::{Merge, NO_SYMBOL, Symbol};
use crate::encode::model::merging::symbol_tokens::SymbolTokens;
use crate::encode::model::merging::{Decision, SymbolSpan, runs};
use crate::encode::model::sampler::Sampler;
use crate::encode::model::segmenter::Segmenter;
use crate::encode::sink::Sink;
use crate::lookup::key::{Key, MAX_LEN};
use crate::text::unicode::utf8;
use crate::token::TokenId;

/// Everything derived from a vocabulary whose symbols start as bytes.
#[derive(Debug)]
pub(super) struct ByteTables {
    pub ranks: MergeRanks,
    /// The symbol of each byte.
    pub bytes: [Symbol; 256],
    pub pairs: SurePairs,
    /// Present if pieces that are tokens skip the merges.
    pub whole_tokens: Option<WholeTokens>,
    pub whole_chars: WholeChars,
    pub segmenter: Segmenter,
    pub tokens: SymbolTokens,
}

heap_bytes!(ByteTables: ranks, pairs, whole_tokens, whole_chars, segmenter, tokens);

impl ByteTables {
    /// The token of a piece that skips the merges, given the piece's key if it is short.
    #[inline]
    pub(super) fn whole_piece(&self, piece: &[u8], key: Option<Key>) -> Option<TokenId> {
        self.whole_tokens.as_ref()?.get(piece, key)
    }

    /// Calls `segment` with the start and end of every segment of a piece. A short piece is one segment.
    #[inline(always)]
    pub(super) fn split_piece(&self, text: &[u8], piece: Range<usize>, mut segment: impl FnMut(usize, usize)) {
        if piece.len() <= MAX_LEN {
            segment(piece.start, piece.end)
        } else {
            self.segmenter.split(text, piece, segment)
        }
    }

    /// The token of a segment that is a single character and may start as a token.
    #[inline]
    pub(super) fn whole_segment(&self, segment: &[u8]) -> Option<TokenId> {
        if segment.len() > 3 {
            return None;
        }
        let (code_point, len) = utf8::decode_lossy(segment, 0);
        let symbol = self.whole_chars.get(code_point);
        (len == segment.len() && self.ranks.is_token(symbol)).then_some(symbol as TokenId)
    }

    /// Pushes the symbols that a piece starts as, after merging every sure pair of ASCII. Each comes with its byte
    /// range, and with the merge of the symbol before and this one, if it is known without a look-up.
    #[inline(always)]
    pub(super) fn symbols(&self, piece: &[u8], mut push: impl FnMut(Symbol, Range<usize>, Option<Merge>)) {
        let mut at = 0;
        let mut known = None;
        let mut walk = self.pairs.walk(piece);
        while let Some(&byte) = piece.get(at) {
            if byte >= 0x80 {
                let (whole, len) = self.whole_char(piece, at);
                if whole != NO_SYMBOL {
                    push(whole, at..at + len, None);
                    known = None;
                } else {
                    for at in at..at + len {
                        push(self.bytes[usize::from(piece[at])], at..at + 1, known);
                        known = piece.get(at + 1).map(|&next| self.pairs.get(piece[at], next));
                    }
                }
                at += len;
                walk.skip_to(at);
            } else if let Some(both) = walk.next_sure(at) {
                push(both, at..at + 2, None);
                (at, known) = (at + 2, None);
            } else {
                push(self.bytes[usize::from(byte)], at..at + 1, known);
                (at, known) = (at + 1, Some(walk.merge_before()));
            }
        }
    }

    /// The symbol that the character at byte `at` may start as, or [`NO_SYMBOL`] if it starts as bytes, and its length.
    #[inline]
    fn whole_char(&self, piece: &[u8], at: usize) -> (Symbol, usize) {
        let (code_point, len) = utf8::decode_lossy(piece, at);
        let is_crossed = |at: usize| at > 0 && at < piece.len() && self.segmenter.is_crossed(piece, at);
        let symbol = self.whole_chars.get(code_point);
        let is_whole = symbol != NO_SYMBOL && !is_crossed(at) && !is_crossed(at + len);
        (if is_whole { symbol } else { NO_SYMBOL }, len)
    }

    /// Merges a piece that repeats one character, if counting is enough. Returns whether it is.
    pub(super) fn merge_run<S: Sink>(&self, piece: &[u8], start: usize, sink: &mut S) -> bool {
        let char = |at: usize| match piece[at] {
            byte @ 0..0x80 => (self.bytes[usize::from(byte)], 1),
            _ => self.whole_char(piece, at),
        };
        let merged = runs::merge_piece(piece, char, |left, right| self.ranks.get(left, right));
        let Some(merged) = merged else { return false };
        merged.for_each(|span| self.tokens.push(span, piece, start, sink));
        true
    }

    /// Merges a piece or a segment, which starts at byte `start` of the text; with dropout, if there is a sampler.
    pub(super) fn merge<S: Sink>(
        &self,
        piece: &[u8],
        start: usize,
        merger: &mut Merger,
        sampler: Option<&mut Sampler>,
        sink: &mut S,
    ) {
        let Merger { merging, memo, .. } = merger;
        let merge = |left: &SymbolSpan, right: &SymbolSpan| match right.end - left.start {
            2 => self.pairs.get(piece[left.start as usize], piece[right.start as usize]),
            _ => memo.get(left.symbol, right.symbol, || self.ranks.get(left.symbol, right.symbol)),
        };
        if sampler.is_some() {
            merging.fill(piece, |at| (self.bytes[usize::from(piece[at])], 1));
        } else {
            merging.clear();
            self.symbols(piece, |symbol, range, _| merging.push(symbol, range.start, range.end));
        }
        let symbols = merging.run(merge, sampler.map(|sampler| sampler.decide(Decision::Delay)));
        symbols.iter().for_each(|&span| self.tokens.push(span, piece, start, sink));
    }
}
