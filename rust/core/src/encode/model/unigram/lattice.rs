//! A Viterbi search: the path through a text with the highest sum of token scores.
//!
//! The nodes of the lattice are the positions of the text, its edges the tokens that match between them. One walk
//! through a trie from each character finds all tokens that start there, and each node keeps the last token of the best
//! path to it; among equal paths, of the first one found. A character that is not a token may be an unknown token.
//! Following the last tokens back from the end yields the path.
//!
//! No token reaches back further than the longest one. So scores are kept only for a window of the text, and only the
//! last tokens for all of it.
//!
//! [`Bounds`] prune the search: a node is skipped if no path through it can beat the best path to the end so far. Such
//! a path could at most equal that one, and among equal paths the first one wins; so the result is the same as long as
//! sums are exact. Most words are one token, and nearly all of their nodes are skipped.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm_session::tokenize` (llama-vocab.cpp); SentencePiece does the same.
//!
//! Time: O(n + matches) for n bytes and all tokens that match in them: with tokens of at most L bytes at most O(n L),
//! for a run of one letter if every shorter run is a token. Space: 4 bytes per byte of the longest text.
//!
//! Deviations: none.

use std::mem::replace;

use crate::lookup::trie::DoubleArray;
use crate::lookup::trie::backward::{Backward, SHORT, Starts};
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::Vocabulary;
use crate::work::interrupt::Ticker;
use crate::work::memory::{array, filled, reserve};

/// How many positions are searched before the window moves on.
const WINDOW: usize = if cfg!(test) { 24 } else { 1 << 14 };

/// The tokens of a vocabulary with their scores.
#[derive(Debug)]
pub(super) struct Candidates {
    /// Ids by text.
    pub(super) tokens: DoubleArray,
    /// The same if some are long.
    pub(super) long: Option<Backward>,
    /// Indexed by id.
    pub(super) scores: Vec<f32>,
    pub(super) unknown: TokenId,
    /// The score of a character that is not a token.
    pub(super) unknown_score: f32,
}

/// The best paths through one text.
#[derive(Debug, Default)]
pub(super) struct Lattice {
    /// The best paths to the positions of the window, which covers all of a short text.
    pub(super) nodes: Vec<BestPath>,
    /// For each position of a longer text, the last token of the best path to it, or `!n` for an unknown token of n
    /// bytes.
    steps: Vec<TokenId>,
    /// The tokens of the best path through a short text and their lengths in bytes, last first.
    path: Vec<(TokenId, usize)>,
}

/// The best path to a position of the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct BestPath {
    /// The sum of all scores on the path.
    pub(super) score: f64,
    /// The last token of the path.
    pub(super) token: TokenId,
    /// Bytes of the last token; [`BestPath::UNREACHED`] if no path has been found.
    len: u32,
}

impl BestPath {
    /// More bytes than a text has: an unreached node's token spans everything before it, as in llama.cpp.
    const UNREACHED: u32 = TokenId::MAX as u32;

    /// Takes the path whose last token is `token`, of `len` bytes, if it is better.
    #[inline(always)]
    fn relax(&mut self, score: f64, token: TokenId, len: usize) {
        if score > self.score {
            *self = Self { score, token, len: len as u32 };
        }
    }
}

impl Candidates {
    /// The score of a token.
    #[inline(always)]
    pub(super) fn score(&self, token: TokenId) -> f64 {
        self.scores.get(token as usize).copied().unwrap_or_default().into()
    }

    /// Finds the best path through `text`, which is not empty, and pushes its tokens with their lengths in bytes.
    /// `score` is the sum of scores at its start; returns the sum at its end.
    #[inline]
    pub(super) fn best_path(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        score: f64,
        bounds: Option<&Bounds>,
        lattice: &mut Lattice,
        mut push: impl FnMut(TokenId, usize),
    ) -> f64 {
        if text.len() > if self.long.is_some() { WINDOW.min(SHORT) } else { WINDOW } {
            return self.best_path_of_long(vocabulary, text, score, bounds, lattice, &mut push);
        }
        let Lattice { nodes, path, .. } = lattice;
        nodes.clear();
        self.add_nodes(nodes, text.len() + 1);
        nodes[0].score = score;
        self.search(text, WINDOW, bounds, nodes, None);

        path.clear();
        reserve(path, text.len());
        let mut end = text.len();
        while end > 0 {
            let BestPath { token, len, .. } = nodes[end];
            let len = end.min(len as usize);
            path.push((token, len));
            end -= len;
        }
        path.iter().rev().for_each(|&(token, len)| push(token, len));
        nodes[text.len()].score
    }

    /// As `best_path`, with a window that moves over the text.
    #[cold]
    fn best_path_of_long(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        score: f64,
        bounds: Option<&Bounds>,
        lattice: &mut Lattice,
        push: &mut dyn FnMut(TokenId, usize),
    ) -> f64 {
        let Lattice { nodes, steps, .. } = lattice;
        let ahead = vocabulary.max_token_len().max(utf8::MAX_LEN);
        // The nodes ahead are moved with each window, so a window is not shorter.
        let window = WINDOW.max(ahead);
        let mut starts = self.long.as_ref().map(|long| long.starts(text));
        nodes.clear();
        self.add_nodes(nodes, 1);
        nodes[0].score = score;
        steps.clear();
        reserve(steps, text.len() + 1);
        let step = |node: BestPath| if node.token == self.unknown { !(node.len as TokenId) } else { node.token };
        let mut rest = text;
        while !rest.is_empty() {
            self.add_nodes(nodes, rest.len().min(window + ahead) + 1);
            let starts = starts.as_mut().map(|starts| (starts, text.len() - rest.len()));
            let passed = self.search(rest, window, bounds, nodes, starts);
            steps.extend(nodes.drain(..passed).map(step));
            rest = &rest[passed..];
        }
        steps.push(step(nodes[0]));
        self.follow(vocabulary, steps, push);
        nodes[0].score
    }

    /// Makes room for more positions.
    fn add_nodes(&self, nodes: &mut Vec<BestPath>, num_nodes: usize) {
        reserve(nodes, num_nodes - nodes.len());
        nodes.resize(num_nodes, BestPath { score: f64::MIN, token: self.unknown, len: BestPath::UNREACHED });
    }

    /// Finds the tokens that start in the first `window` bytes of `text`, whose nodes are given. With long tokens,
    /// `starts` has those of the whole text, in which `text` starts at the position beside it. Returns where the window
    /// ends.
    #[inline(always)]
    fn search(
        &self,
        text: &[u8],
        window: usize,
        bounds: Option<&Bounds>,
        nodes: &mut [BestPath],
        mut starts: Option<(&mut Starts<'_>, usize)>,
    ) -> usize {
        let mut start = 0;
        let mut ticker = Ticker::default();
        while start < text.len().min(window) {
            ticker.tick();
            let rest = &text[start..];
            let score = nodes[start].score;
            let char_len = utf8::sequence_len(rest[0]).min(rest.len());
            let end_score = nodes.get(text.len()).map_or(f64::MIN, |end| end.score);
            if end_score > f64::MIN && bounds.is_some_and(|bounds| score + bounds.highest(rest) <= end_score) {
                start += char_len;
                continue;
            }

            let mut is_char_token = false;
            let mut relax = |len: usize, token: u32| {
                is_char_token |= len == char_len;
                let token_score = self.scores[token as usize];
                nodes[start + len].relax(score + f64::from(token_score), token as TokenId, len);
            };
            match &mut starts {
                None => {
                    let mut trie_node = self.tokens.root();
                    for (len, &byte) in (1..).zip(rest) {
                        let Some(child) = self.tokens.step(trie_node, byte) else { break };
                        trie_node = child;
                        if let Some(token) = self.tokens.value(trie_node) {
                            relax(len, token);
                        }
                    }
                }
                Some((starts, before)) => starts.keys(*before + start).for_each(|(len, token)| relax(len, token)),
            }
            if !is_char_token {
                let score = score + f64::from(self.unknown_score);
                nodes[start + char_len].relax(score, self.unknown, char_len);
            }
            start += char_len;
        }
        start
    }

    /// Pushes the tokens of the best path through a long text. First turns `steps` around, from the last token before a
    /// position to the first one after it.
    #[cold]
    fn follow(&self, vocabulary: &Vocabulary, steps: &mut [TokenId], push: &mut dyn FnMut(TokenId, usize)) {
        let len = |step: TokenId| if step < 0 { !step as usize } else { vocabulary.text(step).len() };
        let end = steps.len() - 1;
        let mut at = end;
        let mut step = steps[end];
        let mut ticker = Ticker::default();
        while at > 0 {
            ticker.tick();
            let len = at.min(len(step));
            at -= len;
            step = replace(&mut steps[at], if step < 0 { !(len as TokenId) } else { step });
        }
        while at < end {
            ticker.tick();
            let step = steps[at];
            let len = len(step);
            push(if step < 0 { self.unknown } else { step }, len);
            at += len;
        }
    }
}

/// Upper bounds for the score of a text, by its first byte and its length.
#[derive(Debug)]
pub(super) struct Bounds(Box<[[f64; Bounds::MAX_LEN + 1]; 256]>);

heap_bytes!(Candidates: tokens, long, scores; Bounds: 0);

impl Bounds {
    /// The longest text with a bound, in bytes.
    pub(super) const MAX_LEN: usize = 24;

    /// The bounds that follow from the scores of tokens and of unknown characters.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (&'a [u8], f32)>, unknown_score: f32) -> Self {
        let mut single = filled(256, [f64::NEG_INFINITY; Self::MAX_LEN + 1]);
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

        // A text is one token, or a shorter one with any text after it.
        let mut bounds = array([f64::NEG_INFINITY; Self::MAX_LEN + 1]);
        let mut any = [f64::NEG_INFINITY; Self::MAX_LEN + 1];
        any[0] = 0.0;
        for len in 1..=Self::MAX_LEN {
            for (row, single) in bounds.iter_mut().zip(&single) {
                let sums = (1..=len).map(|first| single[first] + any[len - first]);
                row[len] = sums.fold(f64::NEG_INFINITY, f64::max);
                any[len] = any[len].max(row[len]);
            }
        }
        Self(bounds)
    }

    /// The bound of `text`, which is not empty.
    #[inline(always)]
    fn highest(&self, text: &[u8]) -> f64 {
        self.0[usize::from(text[0])].get(text.len()).copied().unwrap_or(f64::INFINITY)
    }
}
