//! The tokens of a normalized word: the longest one that matches, over and over, by walks through a trie.
//!
//! A word is preceded by a phantom `▁`: the token `▁low` starts words, and the token `er` continues them. llama.cpp
//! looks up every substring that starts where the last token ends, longest first, byte by byte. The last token on a
//! walk is the same one, and may end inside a character too. The walks over the phantom are the same for every word, so
//! where they end is in a table ([`PhantomMatch`]).

use std::ops::Range;

use crate::encode::normalizer::rewritten::Rewritten;
use crate::lookup::trie::backward::{Backward, SHORT};
use crate::lookup::trie::{DoubleArray, Node, TrieError};
use crate::token::TokenId;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::work::interrupt::Ticker;
use crate::work::memory::push;

/// The length of the phantom in bytes.
pub(super) const PHANTOM_LEN: usize = ESCAPED_SPACE.len();

/// Finds the tokens of words.
#[derive(Debug)]
pub(super) struct Matcher {
    /// Ids by token text.
    tokens: DoubleArray,
    /// The same if some are long, for long words.
    long: Option<Backward>,
    /// For each byte of the phantom, the state after the phantom of a match that starts at that byte. The last one is
    /// for a match that starts in the word.
    phantom_matches: [PhantomMatch; PHANTOM_LEN + 1],
}

heap_bytes!(Matcher: tokens, long);

/// A match that has passed the phantom.
#[derive(Debug, Clone, Copy)]
struct PhantomMatch {
    /// Where the walk is, if any token continues.
    node: Option<Node>,
    /// The longest token so far, and its length in bytes.
    longest: Option<(TokenId, usize)>,
}

/// A normalized word, and its tokens.
#[derive(Debug, Default)]
pub(in crate::encode::model) struct NormalizedWord {
    pub text: Rewritten<'static>,
    pub ids: Vec<TokenId>,
    /// Where each token ends, in bytes from the start of the phantom.
    pub ends: Vec<usize>,
}

impl Matcher {
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (&'a [u8], u32)> + Clone) -> Result<Self, TrieError> {
        let long = Backward::of_long(tokens.clone())?;
        let tokens = DoubleArray::build(tokens)?;
        let phantom_matches = std::array::from_fn(|start| {
            let mut state = PhantomMatch { node: Some(tokens.root()), longest: None };
            for (&byte, len) in ESCAPED_SPACE[start..].iter().zip(1..) {
                state.node = state.node.and_then(|node| tokens.step(node, byte));
                let id = state.node.and_then(|node| tokens.value(node));
                state.longest = id.map(|id| (id as TokenId, len)).or(state.longest);
            }
            state
        });
        Ok(Self { tokens, long, phantom_matches })
    }

    /// Finds the tokens of a word from byte `from` of the phantom on. An empty word has none, and a word that tokens do
    /// not cover to its end is `unknown`.
    pub(super) fn find_tokens(&self, word: &mut NormalizedWord, from: usize, unknown: TokenId) {
        if !self.match_tokens(word, from) {
            let NormalizedWord { text, ids, ends } = word;
            ids.clear();
            ends.clear();
            ids.push(unknown);
            ends.push(PHANTOM_LEN + text.text.len());
        }
    }

    /// Finds the tokens of a word up to a position where none matches. Returns whether they cover it to its end.
    pub(super) fn match_tokens(&self, word: &mut NormalizedWord, from: usize) -> bool {
        let NormalizedWord { text, ids, ends } = word;
        let text = &text.text[..];
        ids.clear();
        ends.clear();
        if text.is_empty() {
            return true;
        }
        match self.long.as_ref().filter(|_| text.len() > SHORT) {
            None => tile(text.len(), ids, ends, from, |start| self.longest_match(text, start)),
            Some(long) => {
                let with_phantom = [ESCAPED_SPACE, text].concat();
                let mut starts = long.starts(&with_phantom);
                let longest = |start| starts.longest(start).map(|(len, id)| (id as TokenId, len));
                tile(text.len(), ids, ends, from, longest)
            }
        }
    }

    /// The longest token at byte `start` of the phantom and the word, and its length.
    #[inline]
    fn longest_match(&self, word: &[u8], start: usize) -> Option<(TokenId, usize)> {
        let PhantomMatch { node, mut longest } = self.phantom_matches[start.min(PHANTOM_LEN)];
        let Some(mut node) = node else { return longest };
        let in_phantom = PHANTOM_LEN.saturating_sub(start);
        let rest = &word[start.saturating_sub(PHANTOM_LEN)..];
        for (at, &byte) in rest.iter().enumerate() {
            let Some(next) = self.tokens.step(node, byte) else { break };
            node = next;
            if let Some(value) = self.tokens.value(node) {
                longest = Some((value as TokenId, in_phantom + at + 1));
            }
        }
        longest
    }
}

/// Appends the longest token at `from`, the longest one after it, and so on to the end of a word of `len` bytes. Returns
/// false if there is a position without one.
#[inline(always)]
fn tile(
    len: usize,
    ids: &mut Vec<TokenId>,
    ends: &mut Vec<usize>,
    from: usize,
    mut longest: impl FnMut(usize) -> Option<(TokenId, usize)>,
) -> bool {
    let mut start = from;
    let mut ticker = Ticker::default();
    while start < PHANTOM_LEN + len {
        ticker.tick();
        let Some((id, token_len)) = longest(start) else { return false };
        start += token_len;
        push(ids, id);
        push(ends, start);
    }
    true
}

impl NormalizedWord {
    /// The span in the input of a range of the phantom and the word.
    pub(super) fn span(&self, start: usize, end: usize) -> Range<usize> {
        let [start, end] = [start, end].map(|at| at.saturating_sub(PHANTOM_LEN));
        let span = self.text.span(start..end.max(start + 1));
        if end > start { span } else { span.start..span.start }
    }
}
