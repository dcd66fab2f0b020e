//! Other paths through the lattice than the best one: a random one, and the best n.
//!
//! A random path is drawn by forward filtering and backward sampling: a pass over the text sums the weights of all
//! paths to each position, and a walk back from the end chooses each token with its share of the sum. Words are drawn
//! one by one if no token crosses them, which has the same result. The best n are found with the best n paths to each
//! position.
//!
//! Source: Kudo, "Subword Regularization" (2018); sentencepiece does the same. Complexity, for n bytes: O(n + matches),
//! with two exponentials for most matches; times k log k for the best k.

use super::lattice::Candidates;
use super::{Joined, Unigram, UnigramScratch};
use crate::encode::model::sampler::{Random, Sampler};
use crate::encode::model::{Fragment, ModelScratch, Task};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::sink::Sink;
use crate::error::EncodeError;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::work::interrupt::Ticker;
use crate::work::memory::{collect, fill, push};

/// How many steps the best paths of a text have together at most: 384 MiB.
const MOST_STEPS: usize = if cfg!(test) { 1 << 12 } else { 1 << 24 };
/// No further edge.
const NONE: u32 = u32::MAX;

/// A token, or an unknown character, at a place of the text.
#[derive(Debug, Clone, Copy)]
struct Edge {
    start: u32,
    token: TokenId,
    score: f64,
    /// The edge found before it that ends at the same position.
    before: u32,
}

/// A position of the text.
#[derive(Debug, Clone, Copy)]
struct Position {
    /// The last edge found that ends here.
    last: u32,
    /// The logarithm of the weights of all paths to here.
    total: f64,
}

/// All edges of a lattice.
#[derive(Debug, Default)]
pub(super) struct Paths {
    edges: Vec<Edge>,
    positions: Vec<Position>,
    /// The edges of a path, last first.
    path: Vec<Edge>,
}

impl Paths {
    /// Finds the edges of a text. `arrive` is called at the start of each character, when all edges that end there have
    /// been found, and at the end.
    fn find(&mut self, candidates: &Candidates, text: &[u8], mut arrive: impl FnMut(&mut Self, usize)) {
        self.edges.clear();
        self.positions.clear();
        fill(&mut self.positions, text.len() + 1, Position { last: NONE, total: 0.0 });
        let mut starts = candidates.long.as_ref().map(|long| long.starts(text));
        let mut start = 0;
        let mut ticker = Ticker::default();
        while start < text.len() {
            ticker.tick();
            arrive(self, start);
            let rest = &text[start..];
            let char_len = utf8::sequence_len(rest[0]).min(rest.len());
            let mut is_char_token = false;
            let mut add = |len: usize, token: u32| {
                is_char_token |= len == char_len;
                self.add(start, len, token as TokenId, candidates.score(token as TokenId));
            };
            match &mut starts {
                None => candidates.tokens.common_prefix_matches(rest).for_each(|(len, token)| add(len, token)),
                Some(starts) => starts.keys(start).for_each(|(len, token)| add(len, token)),
            }
            if !is_char_token {
                self.add(start, char_len, candidates.unknown, candidates.unknown_score.into());
            }
            start += char_len;
        }
        arrive(self, text.len());
    }

    fn add(&mut self, start: usize, len: usize, token: TokenId, score: f64) {
        let index = self.edges.len() as u32;
        let position = &mut self.positions[start + len];
        // Only damaged files have scores that are not numbers; such a token is never chosen if there is another one.
        let score = if score.is_nan() { f64::NEG_INFINITY } else { score };
        push(&mut self.edges, Edge { start: start as u32, token, score, before: position.last });
        position.last = index;
    }

    /// The edges that end at a position, last found first.
    fn edges_to(&self, at: usize) -> impl Iterator<Item = Edge> {
        let edge = |index: u32| self.edges.get(index as usize).copied();
        std::iter::successors(edge(self.positions[at].last), move |last| edge(last.before))
    }

    /// The logarithm of the weights of all paths that end with an edge.
    fn weight(&self, edge: Edge, alpha: f64) -> f64 {
        // An infinite score times an alpha of 0 is not a number.
        let weight = self.positions[edge.start as usize].total + alpha * edge.score;
        if weight.is_nan() { f64::NEG_INFINITY } else { weight }
    }

    /// Sums the weights of all paths to a position.
    fn sum(&mut self, at: usize, alpha: f64) {
        let weights = || self.edges_to(at).map(|edge| self.weight(edge, alpha));
        let highest = weights().fold(f64::NEG_INFINITY, f64::max);
        let is_one = self.edges.get(self.positions[at].last as usize).is_some_and(|edge| edge.before == NONE);
        self.positions[at].total = if is_one || highest.is_infinite() {
            highest
        } else {
            highest + weights().map(|weight| (weight - highest).exp()).sum::<f64>().ln()
        };
    }

    /// Draws a path to the end of the text.
    fn draw(&mut self, end: usize, alpha: f64, random: &mut Random) {
        self.path.clear();
        let mut at = end;
        while at > 0 {
            let mut rest = random.fraction();
            let mut chosen = None;
            for edge in self.edges_to(at) {
                chosen = Some(edge);
                rest -= (self.weight(edge, alpha) - self.positions[at].total).exp();
                if rest < 0.0 {
                    break;
                }
            }
            // Some edge ends at every position from which one starts.
            let Some(edge) = chosen else { return };
            push(&mut self.path, edge);
            at = edge.start as usize;
        }
    }
}

impl Unigram {
    /// Pushes the tokens of a random path through the lattice of a fragment, if the scratch space has a sampler.
    pub(super) fn sample<S: Sink>(&self, Task { fragment, scratch, sink, .. }: Task<'_, S>) {
        let ModelScratch { sampler, rewritten, unigram: UnigramScratch { paths, .. }, .. } = scratch;
        let Some(Sampler { amount: alpha, random, .. }) = sampler else { return };
        self.encode_normalized(fragment, rewritten, sink, |word, push| {
            paths.find(&self.candidates, word, |paths, at| {
                if at > 0 {
                    paths.sum(at, *alpha);
                }
            });
            paths.draw(word.len(), *alpha, random);
            for (number, edge) in paths.path.iter().enumerate().rev() {
                let end = if number == 0 { word.len() } else { paths.path[number - 1].start as usize };
                push(edge.token, end - edge.start as usize);
            }
        });
    }

    /// Continues the best paths through a text by those through a fragment.
    ///
    /// # Errors
    /// [`EncodeError::TooManySteps`].
    pub(crate) fn continue_best(&self, fragment: Fragment<'_>, best: &mut BestPaths) -> Result<(), EncodeError> {
        let mut normalized = Rewritten::empty(0, false);
        self.normalizer.normalize(fragment.text, fragment.continues, &mut normalized);
        let mut lists = vec![best.last.clone()];
        let mut found = Vec::new();
        let mut is_over = false;
        Paths::default().find(&self.candidates, &normalized.text, |paths, at| {
            if at == 0 || is_over {
                return;
            }
            found.clear();
            // In the order in which the best path is searched, so that the first of equal paths is the same.
            let mut edges = collect(paths.edges_to(at));
            edges.reverse();
            for edge in edges {
                let token = if edge.token == self.candidates.unknown { UNKNOWN } else { edge.token };
                for before in lists.get(edge.start as usize).cloned().unwrap_or_default() {
                    push(&mut found, Step { score: best.steps[before].score + edge.score, token, before });
                }
            }
            found.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.before.cmp(&b.before)));
            found.truncate(best.n);
            (lists.len()..at).for_each(|_| push(&mut lists, 0..0));
            push(&mut lists, best.steps.len()..best.steps.len() + found.len());
            is_over = best.steps.len() + found.len() > MOST_STEPS;
            found.iter().for_each(|&step| push(&mut best.steps, step));
        });
        best.last = lists.pop().unwrap_or_default();
        if is_over { Err(EncodeError::TooManySteps { n: best.n, most: MOST_STEPS }) } else { Ok(()) }
    }

    /// The tokens of each path and the sum of their scores, best first.
    pub(crate) fn best(&self, best: &BestPaths) -> Vec<(Vec<TokenId>, f64)> {
        let path = |last: usize| {
            let mut tokens = Vec::new();
            let mut at = last;
            while at > 0 {
                let Step { token, before, .. } = best.steps[at];
                push(&mut tokens, token);
                at = before;
            }
            let mut ids: Vec<TokenId> = Vec::new();
            let mut joined = Joined::default();
            tokens.iter().rev().for_each(|&token| joined.push(token, UNKNOWN, 0..0, &mut ids));
            joined.flush(UNKNOWN, &mut ids);
            ids.iter_mut().filter(|id| **id == UNKNOWN).for_each(|id| *id = self.candidates.unknown);
            (ids, best.steps[last].score)
        };
        collect(best.last.clone().map(path))
    }
}

/// Stands for an unknown character, because a text may also have the unknown token itself.
const UNKNOWN: TokenId = TokenId::MIN;

/// The last token of a path.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The sum of the scores so far.
    score: f64,
    token: TokenId,
    /// The step before it; the first one is the start.
    before: usize,
}

/// The best n paths through a text so far.
#[derive(Debug)]
pub(crate) struct BestPaths {
    n: usize,
    steps: Vec<Step>,
    /// The last steps of the paths, best first.
    last: std::ops::Range<usize>,
}

impl BestPaths {
    /// The empty path.
    pub(crate) fn new(n: usize) -> Self {
        Self { n, steps: vec![Step { score: 0.0, token: UNKNOWN, before: 0 }], last: 0..1 }
    }

    /// Appends a token to every path.
    pub(crate) fn append(&mut self, token: TokenId) {
        let start = self.steps.len();
        for before in self.last.clone() {
            let score = self.steps[before].score;
            push(&mut self.steps, Step { score, token, before });
        }
        self.last = start..self.steps.len();
    }
}
