//! The search for the way through a piece of text with the highest sum of scores.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm_session::tokenize` (llama-vocab.cpp), a Viterbi search as in SentencePiece.
//!
//! From each character on, all tokens that the text goes on with are found in one walk of a trie, and each position
//! keeps the best way to reach it; of equal ways the first found. A character that is no token by itself can always
//! be an unknown token. Following the best ways back from the end gives the tokens.
//!
//! Deviations: none. With [`Bounds`] a position is passed over if nothing that may follow it can beat the best way to
//! the end that is already known. A way over such a position could at most equal the one that stays, so the result is
//! the same, as long as sums are exact. Most words are one token, and of those nearly all positions are passed over.
//!
//! Time: O(n L) for n bytes and tokens of at most L bytes. Space: 16 bytes per byte of the longest piece.

use crate::sink::TokenId;
use crate::trie::DoubleArray;
use crate::unicode::utf8;

/// What there is to choose from.
#[derive(Debug)]
pub(super) struct Candidates {
    /// Ids by text.
    pub(super) tokens: DoubleArray,
    /// By id.
    pub(super) scores: Vec<f32>,
    pub(super) unknown: TokenId,
    pub(super) unknown_score: f32,
}

/// The best ways through one piece.
#[derive(Debug, Default)]
pub(super) struct Lattice {
    /// For each position in the piece the best way to reach it.
    pub(super) best: Vec<Step>,
    /// The tokens of the best way to the end and their lengths in bytes, last first.
    pub(super) path: Vec<(TokenId, usize)>,
}

/// The last token of a way through the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The sum of all scores on the way.
    pub(super) score: f64,
    pub(super) token: TokenId,
    /// Bytes in the token; where there is no way yet, [`Step::TO_THE_START`].
    len: u32,
}

impl Step {
    /// As many bytes as there are: following such a step back ends the search, as it does in llama.cpp.
    const TO_THE_START: u32 = u32::MAX;

    /// Takes the way over `token` from a position `len` bytes before if that is better.
    #[inline(always)]
    fn challenge(&mut self, score: f64, token: TokenId, len: usize) {
        if score > self.score {
            *self = Self { score, token, len: len as u32 };
        }
    }
}

impl Candidates {
    /// Finds the best way through `piece`, which is not empty, and the sum of scores at its end, given that at its
    /// start.
    #[inline]
    pub(super) fn segment(&self, piece: &[u8], score: f64, bounds: Option<&Bounds>, lattice: &mut Lattice) -> f64 {
        let Lattice { best, path } = lattice;
        best.clear();
        best.resize(piece.len() + 1, Step { score: f64::MIN, token: self.unknown, len: Step::TO_THE_START });
        best[0].score = score;

        let mut start = 0;
        while start < piece.len() {
            let rest = &piece[start..];
            let score = best[start].score;
            let character_len = utf8::sequence_len(rest[0]).min(rest.len());
            let known = best[piece.len()].score;
            if known > f64::MIN && bounds.is_some_and(|bounds| score + bounds.highest(rest) <= known) {
                start += character_len;
                continue;
            }
            let mut is_character_token = false;
            let mut node = self.tokens.root();
            for (len, &byte) in (1..).zip(rest) {
                let Some(child) = self.tokens.step(node, byte) else { break };
                node = child;
                if let Some(token) = self.tokens.value(node) {
                    is_character_token |= len == character_len;
                    let token_score = self.scores[token as usize];
                    best[start + len].challenge(score + f64::from(token_score), token as TokenId, len);
                }
            }
            if !is_character_token {
                let score = score + f64::from(self.unknown_score);
                best[start + character_len].challenge(score, self.unknown, character_len);
            }
            start += character_len;
        }

        path.clear();
        let mut end = piece.len();
        while end > 0 {
            let Step { token, len, .. } = best[end];
            let len = end.min(len as usize);
            path.push((token, len));
            end -= len;
        }
        best[piece.len()].score
    }
}

/// By a text's first byte and its length how high it can score at most.
#[derive(Debug)]
pub(super) struct Bounds(Box<[[f64; Bounds::MAX_LEN + 1]; 256]>);

impl Bounds {
    /// The longest text that they say something about, in bytes.
    pub(super) const MAX_LEN: usize = 24;

    /// Bounds for tokens with their scores, and a score for each unknown character.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (&'a [u8], f32)>, unknown_score: f32) -> Self {
        let mut single = vec![[f64::NEG_INFINITY; Self::MAX_LEN + 1]; 256];
        for (first, row) in (0..=u8::MAX).zip(&mut single) {
            row[utf8::sequence_len(first)] = unknown_score.into();
        }
        for (text, score) in tokens {
            if let [first, ..] = text
                && let Some(highest) = single[usize::from(*first)].get_mut(text.len())
            {
                *highest = highest.max(score.into());
            }
        }
        // One token and, if it is shorter, anything after it.
        let mut bounds = Box::new([[f64::NEG_INFINITY; Self::MAX_LEN + 1]; 256]);
        let mut anything = [f64::NEG_INFINITY; Self::MAX_LEN + 1];
        anything[0] = 0.0;
        for len in 1..=Self::MAX_LEN {
            for (row, single) in bounds.iter_mut().zip(&single) {
                let ways = (1..=len).map(|first| single[first] + anything[len - first]);
                row[len] = ways.fold(f64::NEG_INFINITY, f64::max);
                anything[len] = anything[len].max(row[len]);
            }
        }
        Self(bounds)
    }

    /// The highest that `text`, which is not empty, can score.
    #[inline(always)]
    fn highest(&self, text: &[u8]) -> f64 {
        self.0[usize::from(text[0])].get(text.len()).copied().unwrap_or(f64::INFINITY)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}
