//! The steps of the algorithms that choose among tokens: WordPiece, Unigram, RWKV, PLaMo-2 and the test vocabulary.

use ggtok_core::TokenId;
use serde::Serialize;

use super::Origin;
use crate::bytes::Bytes;

/// WordPiece: words, each split into the longest matching tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WordPiece {
    /// What happened to each code point of the fragment.
    pub code_points: Vec<NormalizedCodePoint>,
    /// The words.
    pub words: Vec<Word>,
    /// The longest text that was looked up, in bytes.
    pub max_token_len: usize,
}

/// WordPiece: a code point on its way into a word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NormalizedCodePoint {
    /// Where it starts in the fragment.
    pub start: usize,
    /// Where it ends in the fragment.
    pub end: usize,
    /// Its number.
    pub code_point: u32,
    /// The code point without its accent; the same if accents are kept or there is none.
    pub nfd: u32,
    /// That code point in lower case; the same if case is kept.
    pub lowercase: u32,
    /// The classes of `nfd`: `undefined`, `number`, `letter`, `separator`, `accent_mark`, `punctuation`, `symbol`,
    /// `control`, `whitespace`, `lowercase`, `uppercase`, `nfd`.
    pub classes: Vec<&'static str>,
    /// What happened to it: `space` (ends a word), `dropped`, `word_alone` (is a word by itself) or `word`.
    pub role: &'static str,
}

/// WordPiece: a word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Word {
    /// The word with `▁` in front, except if its letters continue the text before the fragment.
    pub text: Bytes,
    /// Where its first character starts in the fragment.
    pub start: usize,
    /// Where its last character ends in the fragment.
    pub end: usize,
    /// Every text that was looked up, in order.
    pub attempts: Vec<Attempt>,
    /// Its tokens; the unknown token alone if a part of the word has none.
    pub tokens: Vec<TokenId>,
    /// Whether the word is unknown.
    pub is_unknown: bool,
}

/// WordPiece: a text that was looked up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// Where it starts in the word, in bytes.
    pub start: usize,
    /// Where it ends in the word, in bytes.
    pub end: usize,
    /// The text.
    pub text: Bytes,
    /// The token with this text.
    pub token: Option<TokenId>,
}

/// Unigram: the tokens with the highest sum of scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unigram {
    /// The character map; none if the vocabulary has none.
    pub charsmap: Option<XcdaHeader>,
    /// How the fragment was normalized, from left to right.
    pub prefixes: Vec<Prefix>,
    /// The normalized text. All positions below refer to it.
    pub normalized: Bytes,
    /// The origins of the normalized text in the fragment.
    pub origins: Vec<Origin>,
    /// The score of an unknown character.
    pub unknown_score: f32,
    /// The positions at which a character starts, each with the tokens that start there.
    pub positions: Vec<LatticePosition>,
    /// The best way to each position, from 0 to the length of the normalized text. llama.cpp's `tokenization_results`.
    pub best: Vec<Best>,
    /// The way back, from the end to the start.
    pub path: Vec<PathStep>,
}

/// Unigram: a part of the text that was normalized in one step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prefix {
    /// Where it starts in the fragment.
    pub start: usize,
    /// Where it ends in the fragment.
    pub end: usize,
    /// What it was: `user_defined` (a token that is kept), `replaced` (found in the character map), `copied`, or
    /// `invalid` (a byte that is not UTF-8 becomes U+FFFD).
    pub outcome: &'static str,
    /// The walk through the character map's double array, byte by byte.
    pub walk: Vec<XcdaStep>,
    /// What it became, before spaces are escaped and merged.
    pub replacement: Bytes,
    /// What it added to the normalized text.
    pub appended: Bytes,
}

/// An XCDA, the compact double array of a character map, as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct XcdaHeader {
    /// The number of 32-bit units.
    pub num_units: usize,
    /// BASE of the root, unit 0: every walk starts from it.
    pub root_base: u32,
    /// The length of all replacements, each zero-terminated.
    pub replacements_len: usize,
}

/// A step through an XCDA, the compact double array of a character map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct XcdaStep {
    /// The byte that leads from a node to its child.
    pub byte: u8,
    /// The node's position in the array: BASE of the previous node XOR the byte.
    pub node: usize,
    /// The array's 32 bits there; none beyond its end.
    pub unit: Option<u32>,
    /// BASE: a child is at this position XOR its byte; 0 in a unit that is a value and not a node.
    pub base: u32,
    /// LCHECK: the byte that leads to this node; bit 31 is set in a unit that is a value and not a node.
    pub lcheck: u32,
    /// LEAF: whether a key ends here.
    pub leaf: bool,
    /// Where the replacement starts among all replacements, if a key ends here.
    pub value: Option<u32>,
    /// Whether the byte leads here: LCHECK equals it. If not, the walk ends.
    pub matched: bool,
}

/// Unigram: the tokens that start at a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatticePosition {
    /// The position.
    pub at: usize,
    /// The best sum of scores up to here; none if no token reaches the position.
    pub score_sum: Option<f64>,
    /// The tokens, shortest first.
    pub candidates: Vec<Candidate>,
    /// The unknown token for one character, if no token is exactly that character.
    pub unknown: Option<Candidate>,
}

/// Unigram: a token that may continue the best way to a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Candidate {
    /// The token.
    pub token: TokenId,
    /// Its text.
    pub text: Bytes,
    /// Where it ends.
    pub end: usize,
    /// Its score; 0 for a user-defined token.
    pub score: f64,
    /// The sum of scores with it; none at a position that no token reaches.
    pub score_sum: Option<f64>,
    /// The best sum at its end before; none if nothing had reached it.
    pub champion: Option<f64>,
    /// Whether it became the best.
    pub wins: bool,
}

/// Unigram: the best way to a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// The position.
    pub at: usize,
    /// The last token on the way; none at a position that no token reaches.
    pub token: Option<TokenId>,
    /// Where that token starts.
    pub from: usize,
    /// The sum of scores; none at a position that no token reaches.
    pub score_sum: Option<f64>,
}

/// Unigram: a step of the way back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathStep {
    /// Where the token starts.
    pub from: usize,
    /// Where the token ends.
    pub to: usize,
    /// The token.
    pub token: TokenId,
    /// Whether it joins the unknown token after it, and is not written again.
    pub joins_next: bool,
}

/// RWKV: the longest token at each position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rwkv {
    /// The matches, in order.
    pub matches: Vec<Match>,
}

/// RWKV: one walk through the trie of tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Match {
    /// Where it starts in the fragment.
    pub start: usize,
    /// Where the token ends in the fragment.
    pub end: usize,
    /// The walk, byte by byte, as long as a token continues.
    pub walk: Vec<TrieStep>,
    /// The token: the last one met on the walk, or the unknown token.
    pub token: TokenId,
    /// Whether no token matched.
    pub is_unknown: bool,
}

/// A step through a trie of tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrieStep {
    /// The byte.
    pub byte: u8,
    /// The token whose text ends here.
    pub token: Option<TokenId>,
    /// Whether the trie has a node for the byte. If not, the walk ends.
    pub matched: bool,
}

/// PLaMo-2: the tokens with the lowest sum of costs, found from the end to the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plamo2 {
    /// Whether a byte order mark was skipped.
    pub skipped_bom: bool,
    /// The text with U+FFFD for each byte that is not UTF-8, including the byte order mark. All positions here refer to
    /// it.
    pub text: Bytes,
    /// The origins of the text in the fragment.
    pub origins: Vec<Origin>,
    /// The positions at which a character starts, from the last to the first.
    pub positions: Vec<CostPosition>,
    /// The way from the start to the end.
    pub path: Vec<CostStep>,
}

/// PLaMo-2: the tokens that may start at a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostPosition {
    /// The position.
    pub at: usize,
    /// The state of llama.cpp's automaton: the longest text from here that is a suffix of a token, or a shorter one if
    /// the previous state hid that.
    pub state: Bytes,
    /// The tokens that are prefixes of `state`, longest first, and finally the unknown character. A token that costs as
    /// much as an unknown character hides those after it.
    pub candidates: Vec<CostCandidate>,
    /// The lowest cost from here to the end.
    pub cost: i64,
}

/// PLaMo-2: a token that may start at a position.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostCandidate {
    /// The token; none for an unknown character.
    pub token: Option<TokenId>,
    /// Its text.
    pub text: Bytes,
    /// Its own cost, in ten-thousandths.
    pub cost: i64,
    /// The cost from here to the end with it.
    pub total: i64,
    /// Whether it was taken.
    pub wins: bool,
}

/// PLaMo-2: a token of the result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostStep {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The token; none for an unknown character.
    pub token: Option<TokenId>,
    /// The byte tokens of an unknown character.
    pub bytes: Vec<TokenId>,
}

/// The test vocabulary: a hash of every five bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Test {
    /// The groups of five bytes.
    pub groups: Vec<HashedGroup>,
}

/// The test vocabulary: five bytes, or fewer at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HashedGroup {
    /// Where it starts in the fragment.
    pub start: usize,
    /// Where it ends in the fragment.
    pub end: usize,
    /// The hash.
    pub hash: u64,
    /// The hash modulo the number of tokens.
    pub token: TokenId,
}
