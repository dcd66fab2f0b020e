//! The contents of a trace: plain data, one structure per table that you would draw of the algorithm.
//!
//! Positions are byte offsets. Those named `start` and `end` of fragments and tokens count from the start of the text;
//! those inside [`Steps`] count from the start of the text that the structure names. With `serde` every structure
//! becomes a JSON object with the names of its fields, every enumeration an object with its variant in `kind`.

mod choosing;
mod merging;

pub use choosing::*;
pub use merging::*;

use ggtok_core::TokenId;
use serde::Serialize;

use super::bytes::Bytes;

/// Every step from a text to its tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    /// The version of this schema. It increases if a field is removed or changes its meaning.
    pub schema: u32,
    /// The algorithm: `spm`, `bpe`, `wordpiece`, `unigram`, `rwkv`, `plamo2` or `test`.
    pub algorithm: &'static str,
    /// The text.
    pub text: Bytes,
    /// Whether BOS, EOS and SEP were added.
    pub add_special: bool,
    /// Whether control tokens in the text were read as tokens.
    pub parse_special: bool,
    /// Whether the text continued an earlier one.
    pub continues: bool,
    /// The text as code points.
    pub code_points: Vec<CodePoint>,
    /// Special tokens written in the text that were not read, because `parse_special` is off.
    pub unread: Vec<SpecialMatch>,
    /// The special tokens found, in search order: the longest special text first.
    pub special: Vec<SpecialMatch>,
    /// The special tokens and the text between them, in text order.
    pub fragments: Vec<Fragment>,
    /// The token added before the text.
    pub added_before: Option<TokenId>,
    /// The token added after the text.
    pub added_after: Option<TokenId>,
    /// The result: the ids of `encode`.
    pub tokens: Vec<Token>,
}

/// A character of the text, or a byte that is not part of one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodePoint {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its code point; U+FFFD for a byte that is not UTF-8.
    pub code_point: u32,
}

/// A special token written in the text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpecialMatch {
    /// The token.
    pub token: TokenId,
    /// Its text.
    pub text: Bytes,
    /// What it is: `control`, `unknown` or `user_defined`.
    pub attribute: &'static str,
    /// Where it starts, including the whitespace that it removes.
    pub start: usize,
    /// Where it ends, including the whitespace that it removes.
    pub end: usize,
}

/// A special token, or the text between two of them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fragment {
    /// Where it starts in the text.
    pub start: usize,
    /// Where it ends in the text.
    pub end: usize,
    /// The special token; none for text.
    pub token: Option<TokenId>,
    /// What the algorithm did with the text; none for a special token.
    pub steps: Option<Steps>,
    /// The first of its tokens in [`Trace::tokens`].
    pub first_token: usize,
    /// How many tokens it became.
    pub num_tokens: usize,
}

/// A token of the result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// The bytes that it decodes to.
    pub piece: Bytes,
    /// Its text in the vocabulary.
    pub text: Bytes,
    /// Where it starts in the text.
    pub start: usize,
    /// Where it ends in the text.
    pub end: usize,
    /// Its index in [`Trace::fragments`]; none for an added token.
    pub fragment: Option<usize>,
}

/// What an algorithm did with a fragment.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Steps {
    /// SentencePiece BPE.
    Spm(Spm),
    /// Byte-pair encoding, with all its variants.
    Bpe(Bpe),
    /// Byte-pair encoding with k-mers between `<dna>` and `</dna>`.
    HybridDna(HybridDna),
    /// WordPiece.
    WordPiece(WordPiece),
    /// Unigram.
    Unigram(Unigram),
    /// RWKV.
    Rwkv(Rwkv),
    /// PLaMo-2.
    Plamo2(Plamo2),
    /// llama.cpp's test vocabulary.
    Test(Test),
}

/// A stretch of a rewritten text, and the bytes of the fragment that it stands for: byte for byte if both have the same
/// length, otherwise as a whole. An unchanged text has one stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Where its origin starts in the fragment.
    pub from: usize,
    /// Where its origin ends in the fragment.
    pub to: usize,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Range {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// Why characters did not become one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// Where the characters start in the text.
    pub start: usize,
    /// Where they end.
    pub end: usize,
    /// The tokens that they became, as indices of [`Trace::tokens`].
    pub tokens: Vec<usize>,
    /// The reasons, most important first.
    pub reasons: Vec<Reason>,
}

/// One reason why characters did not become one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// The kind of reason: `one_token` (they did), `special_not_parsed`, `special_boundary`, `piece_boundary`,
    /// `word_boundary`, `normalized`, `not_in_vocabulary`, `merge_missing` (the token exists, but no merges lead to it
    /// from these symbols), `merge_lost` (a neighbour was merged first), `score_lost` (other tokens have a higher sum
    /// or a lower cost), `longer_match` (a longer token was taken), `unknown_word`, `one_with_space` (with a space
    /// before them they are).
    pub kind: &'static str,
    /// The reason in a sentence.
    pub message: String,
    /// The position in the text that it is about, if any.
    pub at: Option<usize>,
    /// The token that it is about, if any.
    pub token: Option<TokenId>,
}
