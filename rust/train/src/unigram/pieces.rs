//! The pieces of a Unigram model during training: their texts, their scores, and a trie to find them.

use ggtok_core::trie::DoubleArray;

use super::segments::{Piece, Segments};
use crate::{Result, TrainError};

/// How far below the lowest piece a character without a piece scores.
const UNKNOWN_PENALTY: f64 = 10.0;

/// Pieces with their scores.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    segments: &'a Segments,
    /// In the order of their texts.
    pieces: Vec<Piece>,
    /// The logarithm of each piece's probability; minus infinity for a piece that was dropped.
    scores: Vec<f64>,
    /// The score of a character without a piece.
    pub(super) unknown_score: f64,
    trie: DoubleArray,
}

impl<'a> Pieces<'a> {
    /// Pieces in the order of their texts.
    ///
    /// # Errors
    ///
    /// [`TrainError::TooLarge`]: they do not fit into a trie.
    pub(super) fn new(segments: &'a Segments, pieces: Vec<Piece>, scores: Vec<f64>) -> Result<Self> {
        let texts = pieces.iter().map(|&piece| segments.piece(piece));
        let trie = DoubleArray::build(texts.zip(0..)).map_err(|_| TrainError::TooLarge { symbols: pieces.len() })?;
        let mut pieces = Self { segments, pieces, scores: Vec::new(), unknown_score: 0.0, trie };
        pieces.set_scores(scores);
        Ok(pieces)
    }

    /// Gives each piece a score.
    pub(super) fn set_scores(&mut self, scores: Vec<f64>) {
        self.scores = scores;
        self.unknown_score = self.lowest_score() - UNKNOWN_PENALTY;
    }

    /// The pieces for which `keeps` is true, with their scores.
    pub(super) fn retain(self, keeps: &[bool]) -> Result<Self> {
        let kept = |index: &usize| keeps[*index];
        let pieces = (0..self.pieces.len()).filter(kept).map(|index| self.pieces[index]).collect();
        let scores = (0..self.pieces.len()).filter(kept).map(|index| self.scores[index]).collect();
        Self::new(self.segments, pieces, scores)
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The number of pieces in use.
    pub(super) fn num_live(&self) -> usize {
        self.scores.iter().filter(|&&score| score > f64::NEG_INFINITY).count()
    }

    pub(super) fn text(&self, piece: u32) -> &'a [u8] {
        self.segments.piece(self.pieces[piece as usize])
    }

    #[inline(always)]
    pub(super) fn score(&self, piece: u32) -> f64 {
        self.scores[piece as usize]
    }

    /// The lowest score of a piece in use.
    pub(super) fn lowest_score(&self) -> f64 {
        let live = self.scores.iter().copied().filter(|&score| score > f64::NEG_INFINITY);
        live.reduce(f64::min).unwrap_or(0.0)
    }

    /// Length and number of each piece that `text` starts with, shortest first.
    #[inline(always)]
    pub(super) fn starting<'b>(&'b self, text: &'b [u8]) -> impl Iterator<Item = (usize, u32)> + 'b {
        self.trie.common_prefix_matches(text)
    }
}
