//! The steps of the algorithms that merge: SPM and byte-pair encoding.

use ggtok_core::TokenId;
use serde::Serialize;

use super::{Origin, Range};
use crate::bytes::Bytes;

/// A symbol: a part of a text that merges with its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Symbol {
    /// Its index.
    pub index: usize,
    /// The symbol before it; -1 at the start.
    pub prev: i64,
    /// The symbol after it; -1 at the end.
    pub next: i64,
    /// Its text.
    pub text: Bytes,
    /// The length of its text in bytes; 0 after it merged into the symbol before it.
    pub n: usize,
}

/// Two neighbouring symbols that can merge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bigram {
    /// The index of the left symbol.
    pub left: usize,
    /// The index of the right symbol.
    pub right: usize,
    /// The text of both.
    pub text: Bytes,
    /// The length of the text in bytes.
    pub size: usize,
    /// SPM: the score of the token with this text. The highest merges first.
    pub score: Option<f32>,
    /// BPE: the rank of the merge. The lowest merges first.
    pub rank: Option<usize>,
    /// The token with this text, if there is one.
    pub token: Option<TokenId>,
}

/// A bigram taken from the queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pop {
    /// The bigram.
    pub bigram: Bigram,
    /// Why it did not merge: `left_gone`, `right_gone` (merged into another symbol) or `text_changed` (one of the two
    /// has grown). None if it merged.
    pub stale: Option<&'static str>,
    /// The new bigrams added to the queue: with the left neighbour, then the right.
    pub added: Vec<Bigram>,
}

/// Symbols that merge until no pair can.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Merging {
    /// The symbols before the first merge.
    pub symbols: Vec<Symbol>,
    /// The queue before the first merge, in the order in which it would be emptied.
    pub queue: Vec<Bigram>,
    /// Every bigram taken from the queue, in order.
    pub pops: Vec<Pop>,
    /// The symbols after the last merge.
    pub merged: Vec<Symbol>,
}

/// SPM: characters merge, the pair with the highest score first, and the leftmost of equal scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spm {
    /// Whether a space was added before the fragment.
    pub space_prefix: bool,
    /// The fragment with `▁` for each space. All positions here refer to it.
    pub escaped: Bytes,
    /// The origins of the text in the fragment.
    pub origins: Vec<Origin>,
    /// The merges.
    pub merging: Merging,
    /// For each text that could merge, the two symbols that it was last made of, ordered by text. llama.cpp looks up
    /// symbols here that are not tokens; it finds none, because every text here is a token.
    pub rev_merge: Vec<RevMerge>,
    /// How each remaining symbol became tokens.
    pub symbols: Vec<SymbolTokens>,
}

/// SPM: the two symbols that a text was made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RevMerge {
    /// The text of both.
    pub text: Bytes,
    /// The index of the left symbol.
    pub left: usize,
    /// The index of the right symbol.
    pub right: usize,
}

/// BPE: pieces, in which symbols merge, the pair with the lowest rank first, and the leftmost of equal ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bpe {
    /// The family of the pre-tokenizer.
    pub family: &'static str,
    /// How the text was rewritten before it was cut: `replaced` (bytes that are not UTF-8), `escaped` (spaces became
    /// `▁`), `lowercased`, `whitespace_dropped`, in this order.
    pub rewritten: Vec<&'static str>,
    /// The text that was cut. All positions here refer to it.
    pub text: Bytes,
    /// The origins of the text, in the fragment or in the text of [`HybridDna`].
    pub origins: Vec<Origin>,
    /// What was cut separately: the whole text, or each word if whitespace was dropped.
    pub words: Vec<Range>,
    /// One pass per pattern, over all pieces so far.
    pub passes: Vec<Pass>,
    /// The pieces after the last pass.
    pub pieces: Vec<Piece>,
}

/// BPE: what one pattern did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pass {
    /// The pattern as written in llama.cpp.
    pub pattern: &'static str,
    /// Its alternatives, in order.
    pub alternatives: Vec<&'static str>,
    /// What the pattern was applied to: `code_points`; `collapsed` if it names a category, so that every character
    /// beyond ASCII becomes one that stands for its category; `code` if llama.cpp has hand-written code, which takes
    /// precedence.
    pub applied_to: &'static str,
    /// The pieces after it.
    pub cuts: Vec<Cut>,
}

/// BPE: a piece after a pattern.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cut {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Which of the alternatives matched; none for text between two matches, and for a piece of llama.cpp's code that
    /// the pattern as written does not give.
    pub alternative: Option<usize>,
}

/// BPE: a piece on its way to tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its text.
    pub text: Bytes,
    /// Its text as the vocabulary spells it: one character of GPT-2's alphabet per byte, if the family does so.
    pub spelled: Bytes,
    /// For each byte of that, where the byte that it stands for is.
    #[serde(skip)]
    pub(crate) places: Vec<usize>,
    /// The token that is the whole piece, if the vocabulary takes it without merging (`ignore_merges`, or a run of
    /// newlines in Gemma 4).
    pub whole: Option<TokenId>,
    /// The merges; empty if the piece is a token as a whole.
    pub merging: Merging,
    /// How each remaining symbol became tokens.
    pub symbols: Vec<SymbolTokens>,
}

/// A symbol after the last merge, and its tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SymbolTokens {
    /// Its text.
    pub text: Bytes,
    /// The token with this text.
    pub token: Option<TokenId>,
    /// If there is none: each byte of the text with its token. BPE drops a byte without a token; SPM writes the unknown
    /// token for it, if the vocabulary has one.
    pub bytes: Vec<ByteToken>,
}

/// A byte and the token that stands for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ByteToken {
    /// The byte as the vocabulary spells it.
    pub text: Bytes,
    /// The token; none if the vocabulary has none.
    pub token: Option<TokenId>,
}

/// Hybrid DNA: stretches of text and of DNA.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HybridDna {
    /// The text that is searched for tags. All positions here refer to it.
    pub text: Bytes,
    /// The origins of the text in the fragment.
    pub origins: Vec<Origin>,
    /// The stretches, in order.
    pub stretches: Vec<Stretch>,
}

/// Hybrid DNA: text, a tag, or DNA.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The tag, if it is one.
    pub tag: Option<TokenId>,
    /// The k-mers, if it is DNA.
    pub kmers: Vec<Kmer>,
    /// The steps of byte-pair encoding, if it is text.
    pub bpe: Option<Bpe>,
}

/// Hybrid DNA: six letters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Kmer {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// The letters as capitals, padded with A.
    pub text: Bytes,
    /// The token: `<oov>` if the k-mer is not one.
    pub token: TokenId,
    /// Whether the k-mer is a token.
    pub is_known: bool,
}
