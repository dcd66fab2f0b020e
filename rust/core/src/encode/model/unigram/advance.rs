//! Unigram part by part: by segments up to the last place where a text may be cut, or else by a search that continues
//! from part to part.
//!
//! 1. Where a text may be cut ([`Cuts`]), it may also be encoded part by part. It is cut before the last space, or at a
//!    later place between two characters that are adjacent in no token, and what is before that place is encoded as a
//!    text by itself ([`segments`](super::segments)). The rest waits.
//! 2. If a text may not be cut, because of its vocabulary, its length or its characters, all of the rest is searched.
//! 3. Adjacent unknown tokens become one, which is pushed with the first of them.
//!
//! The search finds the best path up to the last place that every path passes through:
//!
//! 1. The part of the normalized text that is certain is appended to what is left from before
//!    ([`UnigramNormalizer::normalize_part`]).
//! 2. If no token that matches in the text crosses a place, every path passes through it. The best path up to the last
//!    such place is certain. That no token crosses a place is certain if no walk through the trie has reached the end
//!    of the known text.
//! 3. The search after such a place starts with the sum of scores there, so every addition, rounding and comparison is
//!    the same as over the whole text. As long as texts may be cut, sums are exact, in whatever order they are added.
//!
//! This needs finite scores. With other scores a node may not be reached at all, so the whole fragment is searched at
//! once.
//!
//! Time: as over the whole text, with two walks through the trie for each character that is searched. Space: 4 bytes
//! per byte of the longest stretch between two such places.

use memchr::memmem;

use super::Unigram;
use super::lattice::{Candidates, Lattice};
use super::segments::is_space;
use crate::encode::model::progress::UnigramProgress;
use crate::encode::model::{Fragment, Task};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::sink::Sink;
use crate::lookup::trie::backward::SHORT;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::work::interrupt::Ticker;

/// Passes tokens on and adds up the scores of those that are known.
struct Scored<'a, S> {
    sink: &'a mut S,
    candidates: &'a Candidates,
    score: f64,
}

impl<S: Sink> Sink for Scored<'_, S> {
    const SPANS: bool = false;

    #[inline(always)]
    fn push(&mut self, id: TokenId, _: std::ops::Range<usize>) {
        self.push_all(&[id]);
    }

    #[inline(always)]
    fn push_all(&mut self, ids: &[TokenId]) {
        for &id in ids.iter().filter(|&&id| id != self.candidates.unknown) {
            self.score += self.candidates.score(id);
        }
        self.sink.push_all(ids);
    }
}

impl Unigram {
    /// As [`Model::encode_part`](super::Model::encode_part).
    pub(super) fn advance<S: Sink>(&self, task: Task<'_, S>, is_end: bool, progress: &mut UnigramProgress) -> usize {
        let Task { vocabulary, fragment, scratch, sink } = task;
        let text = fragment.text;
        if !progress.is_searched && !self.may_be_cut(fragment, progress.len) {
            progress.search();
        }
        if progress.is_searched {
            return self.search_part(vocabulary, text, is_end, progress, &mut scratch.unigram.lattice, sink);
        }
        let len = if is_end { text.len() } else { self.last_cut(text) };
        let fragment = Fragment { text: &text[..len], ..fragment };
        self.encode_segments(Task { vocabulary, fragment, scratch, sink }, progress);
        len
    }

    /// Whether a fragment, after `len_before` bytes, may be cut into segments.
    fn may_be_cut(&self, Fragment { text, is_utf8, .. }: Fragment<'_>, len_before: usize) -> bool {
        // After an escaped space in the input itself, a word need not start at a cut.
        is_utf8 && len_before + text.len() <= self.max_cut_len() && memmem::find(text, ESCAPED_SPACE).is_none()
    }

    /// The last place where a text may be cut, whatever follows; 0 if there is none. The text starts at such a place.
    fn last_cut(&self, text: &[u8]) -> usize {
        let (Some(cuts), Some(characters)) = (&self.cuts, &self.normalizer.characters) else { return 0 };
        let space = text.iter().rposition(|&byte| is_space(byte));
        let (mut cut, mut at) = space.map_or((0, 0), |space| (space, space + 1));
        let mut before = None;
        let mut ticker = Ticker::default();
        while let Some((character, len)) = utf8::decode(text, at)
            && let Some((next, _)) = utf8::decode(text, at + len)
        {
            ticker.tick();
            if !characters.keeps(character, Some(next)) {
                let Some(end) = self.normalizer.settled_chunk_end(text, at) else { break };
                (at, before) = (end, None);
                continue;
            }
            if before.is_some_and(|before| !cuts.pairs.meet(before, character)) {
                cut = at;
            }
            before = Some(character);
            at += len;
        }
        cut
    }

    /// Pushes the tokens of a part that starts and ends where the text may be cut.
    fn encode_segments<S: Sink>(&self, task: Task<'_, S>, progress: &mut UnigramProgress) {
        let Task { vocabulary, fragment, scratch, sink } = task;
        let sink = &mut Scored { sink, candidates: &self.candidates, score: 0.0 };
        (scratch.unigram.after_unknown, scratch.unigram.unknown_score) = (progress.after_unknown, 0.0);
        let part = Fragment { continues: progress.len > 0, ..fragment };
        if let Some(mut pass) = self.pass(Task { vocabulary, fragment: part, scratch, sink }) {
            pass.encode();
        }
        progress.score += sink.score + scratch.unigram.unknown_score;
        progress.after_unknown = scratch.unigram.after_unknown;
        progress.len += fragment.text.len();
    }

    /// Searches more of a text. Pushes what is certain, or everything at the end of the text, and returns how many
    /// bytes it takes.
    fn search_part<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        is_end: bool,
        progress: &mut UnigramProgress,
        lattice: &mut Lattice,
        sink: &mut S,
    ) -> usize {
        let mut out = Rewritten::owned(std::mem::take(&mut progress.normalized));
        let len = self.normalizer.normalize_part(text, is_end, &mut progress.normalizer, &mut out);
        progress.normalized = out.text.into_owned();
        progress.len += len;
        if is_end || progress.normalized.len() >= progress.goal {
            let end = if is_end { progress.normalized.len() } else { self.last_passed(&progress.normalized) };
            self.push_path(vocabulary, end, progress, lattice, sink);
            // Searched again when it is twice as long, so that the time stays linear.
            progress.goal = progress.normalized.len() * 2;
        }
        len
    }

    /// The last place of a normalized text that every path passes through, whatever follows.
    fn last_passed(&self, text: &[u8]) -> usize {
        let mut at = 0;
        let mut reach = 0;
        let mut passed = 0;
        let mut ticker = Ticker::default();
        let Candidates { tokens, long, .. } = &self.candidates;
        let mut starts = long.as_ref().filter(|_| text.len() > SHORT).map(|long| long.starts(text));
        while at < text.len() && self.is_finite {
            ticker.tick();
            if reach <= at {
                passed = at;
            }
            let rest = &text[at..];
            let len = utf8::sequence_len(rest[0]);
            let (may_continue, longest) = match &mut starts {
                None => (tokens.longest_walk(rest) == rest.len(), tokens.longest_match(rest)),
                Some(starts) => (starts.may_continue(at), starts.longest(at)),
            };
            if len > rest.len() || may_continue {
                break;
            }
            reach = reach.max(at + longest.map_or(len, |(longest, _)| longest.max(len)));
            at += len;
        }
        passed
    }

    /// Pushes the tokens of the best path to `end`, and drops that part of the text.
    fn push_path<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        end: usize,
        progress: &mut UnigramProgress,
        lattice: &mut Lattice,
        sink: &mut S,
    ) {
        if end == 0 {
            return;
        }
        let unknown = self.candidates.unknown;
        let UnigramProgress { normalized, score, after_unknown, .. } = progress;
        *score = self.candidates.best_path(vocabulary, &normalized[..end], *score, None, lattice, |token, _| {
            let is_unknown = token == unknown;
            if !(std::mem::replace(after_unknown, is_unknown) && is_unknown) {
                sink.push(token, 0..0);
            }
        });
        normalized.drain(..end);
    }
}
