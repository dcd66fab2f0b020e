//! The lattice of one segment: every way to write it as pieces. It answers three questions:
//!
//! 1. What is the expected count of each piece, and how likely is the segment? Forward sums in log space give the
//!    probability of the text before each position; going back, each edge takes its share of the visits to its end. The
//!    shares are ratios of forward sums, so no backward sums are needed.
//! 2. Which way is the most likely (Viterbi)?
//! 3. Which way is the most likely without a given edge?
//!
//! Source: Kudo, "Subword Regularization" (2018); sentencepiece's `Lattice` (unigram_model.cc).
//! Complexity: O(n L) time and space for n characters and pieces of at most L characters.

use ggtok_core::unicode::utf8;

use super::math::{exp, ln};
use super::pieces::Pieces;

/// Stands for the piece of an edge for a character without one.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// One piece at one position.
#[derive(Debug, Clone, Copy)]
struct Edge {
    start: u32,
    end: u32,
    /// The piece, or [`UNKNOWN`].
    piece: u32,
    score: f64,
}

/// The lattice of one segment; the next one reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Lattice {
    /// The length of the segment.
    len: usize,
    /// Ordered by their starts.
    edges: Vec<Edge>,
    /// For each position, the logarithm of the sum over all ways to it, as a maximum and a sum of exponentials.
    forward: Vec<(f64, f64)>,
    /// For each position, the probability that a way goes through it.
    visits: Vec<f64>,
    /// For each position, the highest score of a way to it, and the last edge of that way.
    best: Vec<(f64, u32)>,
}

impl Lattice {
    /// Puts all pieces in `text`, which is valid UTF-8, into the lattice.
    pub(super) fn fill(&mut self, pieces: &Pieces<'_>, text: &[u8]) {
        self.edges.clear();
        let mut start = 0;
        while start < text.len() {
            let character = utf8::sequence_len(text[start]);
            let mut is_known = false;
            for (len, piece) in pieces.starting(&text[start..]) {
                let score = pieces.score(piece);
                if score > f64::NEG_INFINITY {
                    is_known |= len == character;
                    self.edges.push(Edge { start: start as u32, end: (start + len) as u32, piece, score });
                }
            }
            if !is_known {
                let end = (start + character) as u32;
                self.edges.push(Edge { start: start as u32, end, piece: UNKNOWN, score: pieces.unknown_score });
            }
            start += character;
        }
        self.len = text.len();
    }

    /// The logarithm of the segment's probability. Passes each edge's piece and probability to `expect`.
    pub(super) fn marginals(&mut self, mut expect: impl FnMut(u32, f64)) -> f64 {
        let Self { len, edges, forward, visits, .. } = self;
        forward.clear();
        forward.resize(*len + 1, (f64::NEG_INFINITY, 0.0));
        forward[0] = (0.0, 1.0);
        for edge in edges.iter() {
            let start = settle(&mut forward[edge.start as usize]);
            let log = start + edge.score;
            let (highest, sum) = &mut forward[edge.end as usize];
            if log <= *highest {
                *sum += exp(log - *highest);
            } else {
                *sum = *sum * exp(*highest - log) + 1.0;
                *highest = log;
            }
        }

        let whole = settle(&mut forward[*len]);
        visits.clear();
        visits.resize(*len + 1, 0.0);
        visits[*len] = 1.0;
        for edge in edges.iter().rev() {
            let share = exp(forward[edge.start as usize].0 + edge.score - forward[edge.end as usize].0);
            let visits_of_edge = visits[edge.end as usize] * share;
            visits[edge.start as usize] += visits_of_edge;
            if edge.piece != UNKNOWN {
                expect(edge.piece, visits_of_edge);
            }
        }
        whole
    }

    /// The score of the best way, which [`Lattice::best_way`] then lists. If `is_split`, excludes the edge that spans
    /// the whole segment; the result is minus infinity if no other way is left.
    pub(super) fn search(&mut self, is_split: bool) -> f64 {
        let Self { len, edges, best, .. } = self;
        best.clear();
        best.resize(*len + 1, (f64::NEG_INFINITY, 0));
        best[0].0 = 0.0;
        for (index, edge) in edges.iter().enumerate() {
            if is_split && edge.start == 0 && edge.end as usize == *len {
                continue;
            }
            let score = best[edge.start as usize].0 + edge.score;
            if score > best[edge.end as usize].0 {
                best[edge.end as usize] = (score, index as u32);
            }
        }
        best[*len].0
    }

    /// The pieces of the best way, last to first, after a [`Lattice::search`] that found one.
    pub(super) fn best_way(&self) -> impl Iterator<Item = u32> {
        let mut place = self.len;
        std::iter::from_fn(move || {
            let edge = (place > 0).then(|| &self.edges[self.best[place].1 as usize])?;
            place = edge.start as usize;
            Some(edge.piece)
        })
    }

    /// Fills the lattice with a piece's own text, and returns by how much the piece beats the best alternative; `None`
    /// if every alternative has an unknown character.
    pub(super) fn lead(&mut self, pieces: &Pieces<'_>, piece: u32) -> Option<f64> {
        self.fill(pieces, pieces.text(piece));
        let other = self.search(true);
        let is_known = other > f64::NEG_INFINITY && self.best_way().all(|piece| piece != UNKNOWN);
        is_known.then(|| pieces.score(piece) - other)
    }
}

/// The logarithm of the sum, from its maximum and sum of exponentials.
fn settle((highest, sum): &mut (f64, f64)) -> f64 {
    if *sum != 1.0 {
        *highest += ln(*sum);
        *sum = 1.0;
    }
    *highest
}
