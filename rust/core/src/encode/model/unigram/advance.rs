//! Unigram part by part: the best path through an unfinished text, up to the last place that every path passes through.
//!
//! 1. The part of the normalized text that is certain is appended to what is left from before
//!    ([`UnigramNormalizer::normalize_settled`]).
//! 2. If no token that matches in the text crosses a place, every path passes through it. The best path up to the last
//!    such place is certain. That no token crosses a place is certain if no walk through the trie has reached the end
//!    of the known text.
//! 3. The search after such a place starts with the sum of scores there, so every addition, rounding and comparison is
//!    the same as over the whole text.
//! 4. Adjacent unknown tokens become one, which is pushed once a known token follows.
//!
//! This needs finite scores. With other scores a node may not be reached at all, so the whole fragment is searched at
//! once.
//!
//! Time: as over the whole text, with two walks through the trie for each character. Space: 4 bytes per byte of the
//! longest stretch between two such places.

use super::Unigram;
use super::lattice::Lattice;
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::normalizer::unigram::{NormalizerProgress, UnigramNormalizer};
use crate::encode::sink::Sink;
use crate::text::unicode::utf8;
use crate::vocabulary::Vocabulary;
use crate::work::interrupt::Ticker;

/// The state of a fragment between parts.
#[derive(Debug, Clone)]
pub(crate) struct UnigramProgress {
    normalizer: NormalizerProgress,
    /// What is left of the normalized text.
    normalized: Vec<u8>,
    /// How long that has to be before it is searched again.
    goal: usize,
    /// The sum of scores at its start.
    score: f64,
    /// Whether the tokens before it are unknown, and not pushed yet.
    after_unknown: bool,
}

impl UnigramProgress {
    pub(super) fn new(normalizer: &UnigramNormalizer) -> Self {
        Self { normalizer: normalizer.start(), normalized: Vec::new(), goal: 0, score: 0.0, after_unknown: false }
    }
}

impl Unigram {
    /// As [`Model::encode_part`](super::Model::encode_part).
    pub(super) fn advance<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        is_end: bool,
        progress: &mut UnigramProgress,
        lattice: &mut Lattice,
        sink: &mut S,
    ) -> usize {
        let mut out = Rewritten::owned(std::mem::take(&mut progress.normalized));
        let len = match is_end {
            true => {
                self.normalizer.normalize_rest(text, &mut progress.normalizer, &mut out);
                text.len()
            }
            false => self.normalizer.normalize_settled(text, &mut progress.normalizer, &mut out),
        };
        progress.normalized = out.text.into_owned();
        if is_end {
            self.push_path(vocabulary, progress.normalized.len(), progress, lattice, sink);
            if std::mem::take(&mut progress.after_unknown) {
                sink.push(self.candidates.unknown, 0..0);
            }
        } else if progress.normalized.len() >= progress.goal {
            let end = self.last_passed(&progress.normalized);
            self.push_path(vocabulary, end, progress, lattice, sink);
            // Searched again when it is twice as long, so that the time stays linear.
            progress.goal = progress.normalized.len() * 2;
        }
        len
    }

    /// The last place of a normalized text that every path passes through, whatever follows.
    fn last_passed(&self, text: &[u8]) -> usize {
        let (mut at, mut reach, mut passed, mut ticker) = (0, 0, 0, Ticker::default());
        while at < text.len() && self.is_finite {
            ticker.tick();
            if reach <= at {
                passed = at;
            }
            let rest = &text[at..];
            let len = utf8::sequence_len(rest[0]);
            if len > rest.len() || self.candidates.tokens.longest_walk(rest) == rest.len() {
                break;
            }
            let longest = self.candidates.tokens.longest_match(rest).map_or(0, |(len, _)| len);
            reach = reach.max(at + longest.max(len));
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
            if token == unknown {
                *after_unknown = true;
                return;
            }
            if std::mem::take(after_unknown) {
                sink.push(unknown, 0..0);
            }
            sink.push(token, 0..0);
        });
        normalized.drain(..end);
    }
}
