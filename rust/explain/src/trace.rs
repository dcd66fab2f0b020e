//! What a trace holds: plain data, one structure per table that a reader of the algorithm would draw.
//!
//! Positions are byte offsets. Those named `start` and `end` of fragments and tokens count from the start of the text;
//! those inside [`Steps`] count from the start of the text that the structure names. With `serde` every structure
//! becomes a JSON object with the names of its fields, every enumeration an object with its variant in `kind`.

use ggtok_core::TokenId;
use serde::Serialize;

use super::bytes::Bytes;

/// Every step from a text to its tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trace {
    /// The version of this schema; it grows when a field changes its meaning or goes.
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
    /// Special tokens that are written in the text and were not read, because `parse_special` is off.
    pub unread: Vec<SpecialMatch>,
    /// The searches for special tokens that found something, in their order: the longest special text first.
    pub special: Vec<SpecialMatch>,
    /// What the special tokens leave of the text, and the special tokens, in the order of the text.
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
    /// Its number; U+FFFD for a byte that is not UTF-8.
    pub code_point: u32,
}

/// A special token that is written in the text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SpecialMatch {
    /// The token.
    pub token: TokenId,
    /// Its text.
    pub text: Bytes,
    /// What it is: `control`, `unknown` or `user_defined`.
    pub attribute: &'static str,
    /// Where it starts, with the whitespace that it removes.
    pub start: usize,
    /// Where it ends, with the whitespace that it removes.
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
    /// Its place in [`Trace::fragments`]; none for an added token.
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
    /// The length of its text in bytes; 0 once it was merged into the symbol before it.
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

/// A bigram that was taken from the queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pop {
    /// The bigram.
    pub bigram: Bigram,
    /// Why it did not merge: `left_gone`, `right_gone` (merged into another symbol) or `text_changed` (one of the two
    /// has grown). None if it merged.
    pub stale: Option<&'static str>,
    /// What the merge made possible, and thus what was added to the queue: with the left neighbour, then the right.
    pub added: Vec<Bigram>,
}

/// A stretch of a text that was rewritten, and the bytes of the fragment that it stands for: byte for byte if both have
/// one length, and else as a whole. A text that stayed as it is has one stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Where it comes from starts in the fragment.
    pub from: usize,
    /// Where it comes from ends in the fragment.
    pub to: usize,
}

/// Symbols that merge until no pair is left that can.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Merging {
    /// The symbols before the first merge.
    pub symbols: Vec<Symbol>,
    /// The queue before the first merge, in the order in which it would be emptied.
    pub queue: Vec<Bigram>,
    /// Every bigram that was taken from the queue, in order.
    pub pops: Vec<Pop>,
    /// The symbols after the last merge.
    pub merged: Vec<Symbol>,
}

/// SPM: characters merge, the pair of the highest score first, the leftmost first of equal scores.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spm {
    /// Whether a space was put before the fragment.
    pub space_prefix: bool,
    /// The fragment with `▁` for each space: the text that all positions here count in.
    pub escaped: Bytes,
    /// Where the text comes from in the fragment.
    pub origins: Vec<Origin>,
    /// The merges.
    pub merging: Merging,
    /// For each text that could merge, the two symbols that it was last made of, in the order of the texts. llama.cpp
    /// looks up symbols here that are no tokens; it finds none, because every text here is a token.
    pub rev_merge: Vec<RevMerge>,
    /// How each symbol that is left became tokens.
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

/// BPE: pieces, in which symbols merge, the pair of the lowest rank first, the leftmost first of equal ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bpe {
    /// The family of the pre-tokenizer.
    pub family: &'static str,
    /// What was done to the text before it was cut: `replaced` (bytes that are not UTF-8), `escaped` (spaces became
    /// `▁`), `lowercased`, `whitespace_dropped`, in this order.
    pub rewritten: Vec<&'static str>,
    /// The text that was cut: all positions here count in it.
    pub text: Bytes,
    /// Where the text comes from: in the fragment, or in the text of [`HybridDna`].
    pub origins: Vec<Origin>,
    /// What was cut by itself: the whole text, or each word where whitespace was dropped.
    pub words: Vec<Range>,
    /// One pass over all pieces so far per pattern.
    pub passes: Vec<Pass>,
    /// The pieces after the last pass.
    pub pieces: Vec<Piece>,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Range {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

/// BPE: what one pattern did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pass {
    /// The pattern as written in llama.cpp.
    pub pattern: &'static str,
    /// Its alternatives, in order.
    pub alternatives: Vec<&'static str>,
    /// What the pattern was applied to: `code_points`, or `collapsed` where it names a category and every character
    /// beyond ASCII becomes one that stands for its category; `code` where llama.cpp has code of its own, which goes
    /// before the pattern.
    pub applied_to: &'static str,
    /// The pieces that it leaves.
    pub cuts: Vec<Cut>,
}

/// BPE: a piece that a pattern leaves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cut {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Which of the alternatives matched; none for text between two matches, and for a piece of llama.cpp's own code
    /// that the pattern as written does not give.
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
    /// Its text as the vocabulary spells it: one character of GPT-2's alphabet per byte where the family does so.
    pub spelled: Bytes,
    /// The token that is the whole piece, where the vocabulary takes it without merging (`ignore_merges`, or a run of
    /// newlines in Gemma 4).
    pub whole: Option<TokenId>,
    /// The merges; empty where the piece is a token as a whole.
    pub merging: Merging,
    /// How each symbol that is left became tokens.
    pub symbols: Vec<SymbolTokens>,
}

/// A symbol that is left after the last merge, and its tokens.
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
    /// The token; none where the vocabulary has none.
    pub token: Option<TokenId>,
}

/// Hybrid DNA: stretches of text and of DNA.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HybridDna {
    /// The text in which tags are looked for: all positions here count in it.
    pub text: Bytes,
    /// Where the text comes from in the fragment.
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
    /// The token: `<oov>` where the k-mer is none.
    pub token: TokenId,
    /// Whether the k-mer is a token.
    pub is_known: bool,
}

/// WordPiece: words, in which the longest token is taken again and again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WordPiece {
    /// What became of each code point of the fragment.
    pub code_points: Vec<NormalizedCodePoint>,
    /// The words.
    pub words: Vec<Word>,
    /// The longest text that is looked up, in bytes.
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
    /// The code point without its accent; the same where accents stay or there is none.
    pub nfd: u32,
    /// That code point in lower case; the same where case stays.
    pub lowercase: u32,
    /// The classes of `nfd`: `undefined`, `number`, `letter`, `separator`, `accent_mark`, `punctuation`, `symbol`,
    /// `control`, `whitespace`, `lowercase`, `uppercase`, `nfd`.
    pub classes: Vec<&'static str>,
    /// What became of it: `space` (ends a word), `dropped`, `word_alone` (is a word by itself) or `word`.
    pub role: &'static str,
}

/// WordPiece: a word.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Word {
    /// The word with `▁` before it, except for letters that continue the text before the fragment.
    pub text: Bytes,
    /// Where its first character starts in the fragment.
    pub start: usize,
    /// Where its last character ends in the fragment.
    pub end: usize,
    /// Every text that was looked up, in order.
    pub attempts: Vec<Attempt>,
    /// Its tokens; the unknown token alone where a part of the word has none.
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
    /// The normalized text: all positions below count in it.
    pub normalized: Bytes,
    /// Where the normalized text comes from in the fragment.
    pub origins: Vec<Origin>,
    /// The score of an unknown character.
    pub unknown_score: f32,
    /// The places at which a character starts, each with the tokens that start there.
    pub positions: Vec<LatticePosition>,
    /// The best way to each place, from 0 to the length of the normalized text. llama.cpp's `tokenization_results`.
    pub best: Vec<Best>,
    /// The way back, from the end to the start.
    pub path: Vec<PathStep>,
}

/// Unigram: a part of the text that was normalized at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prefix {
    /// Where it starts in the fragment.
    pub start: usize,
    /// Where it ends in the fragment.
    pub end: usize,
    /// What it was: `user_defined` (a token that stays as it is), `replaced` (found in the character map), `copied`, or
    /// `invalid` (a byte that is not UTF-8 becomes U+FFFD).
    pub outcome: &'static str,
    /// The walk through the character map's double array, byte by byte.
    pub walk: Vec<XcdaStep>,
    /// What it became, before spaces are escaped and merged.
    pub replacement: Bytes,
    /// What was appended to the normalized text for it.
    pub appended: Bytes,
}

/// An XCDA, the compact double array of a character map, as a whole.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct XcdaHeader {
    /// The number of 32-bit units.
    pub num_units: usize,
    /// BASE of the root, unit 0: every walk starts from it.
    pub root_base: u32,
    /// The length of all replacements, each with a zero byte at its end.
    pub replacements_len: usize,
}

/// A step through an XCDA, the compact double array of a character map.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct XcdaStep {
    /// The byte that leads from a node to its child.
    pub byte: u8,
    /// The node: its place in the array, BASE of the node before it and the byte, by exclusive or.
    pub node: usize,
    /// The array's 32 bits there; none beyond its end.
    pub unit: Option<u32>,
    /// BASE: what leads on from the node, by exclusive or; 0 in a unit that is a value and no node.
    pub base: u32,
    /// LCHECK: the byte that leads to this node; bit 31 is set in a unit that is a value and no node.
    pub lcheck: u32,
    /// LEAF: whether a key ends here.
    pub leaf: bool,
    /// Where the replacement starts among all replacements, if a key ends here.
    pub value: Option<u32>,
    /// Whether the byte leads here: LCHECK equals it. The walk ends where it does not.
    pub matched: bool,
}

/// Unigram: the tokens that start at a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatticePosition {
    /// The place.
    pub at: usize,
    /// The best sum of scores up to here; none if no token reaches the place.
    pub score_sum: Option<f64>,
    /// The tokens, shortest first.
    pub candidates: Vec<Candidate>,
    /// The unknown token for one character, where no token is exactly that character.
    pub unknown: Option<Candidate>,
}

/// Unigram: a token that may continue the best way to a place.
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
    /// The sum of scores with it; none at a place that no token reaches.
    pub score_sum: Option<f64>,
    /// The best sum at its end before; none if nothing had reached it.
    pub champion: Option<f64>,
    /// Whether it became the best.
    pub wins: bool,
}

/// Unigram: the best way to a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// The place.
    pub at: usize,
    /// The last token on the way; none at a place that no token reaches.
    pub token: Option<TokenId>,
    /// Where that token starts.
    pub from: usize,
    /// The sum of scores; none at a place that no token reaches.
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

/// RWKV: the longest token, again and again.
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
    /// The walk, byte by byte, as far as a token goes on.
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
    /// Whether the trie has a node for the byte. The walk ends where it has none.
    pub matched: bool,
}

/// PLaMo-2: the tokens with the lowest sum of costs, found from the end to the start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plamo2 {
    /// Whether a byte order mark was skipped.
    pub skipped_bom: bool,
    /// The text with U+FFFD for each byte that is not UTF-8: all positions here count in it. The byte order mark is
    /// part of it.
    pub text: Bytes,
    /// Where the text comes from in the fragment.
    pub origins: Vec<Origin>,
    /// The places at which a character starts, from the last to the first.
    pub positions: Vec<CostPosition>,
    /// The way from the start to the end.
    pub path: Vec<CostStep>,
}

/// PLaMo-2: what may start at a place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostPosition {
    /// The place.
    pub at: usize,
    /// The state of llama.cpp's automaton: the longest text from here that a token ends with. Where the state before
    /// it hid that text, a shorter one.
    pub state: Bytes,
    /// The tokens that `state` starts with, longest first, and at last the unknown character. What comes after a token
    /// that costs as much as an unknown character is hidden by it.
    pub candidates: Vec<CostCandidate>,
    /// The lowest cost from here to the end.
    pub cost: i64,
}

/// PLaMo-2: a token that may start at a place.
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
    /// Whether it is the one taken.
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

/// Why characters did not become one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Why {
    /// Where the characters start in the text.
    pub start: usize,
    /// Where they end.
    pub end: usize,
    /// The tokens that they became, as places in [`Trace::tokens`].
    pub tokens: Vec<usize>,
    /// The reasons, the most important first.
    pub reasons: Vec<Reason>,
}

/// One reason why characters did not become one token.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reason {
    /// What kind of reason it is: `one_token` (they did), `special_not_parsed`, `special_boundary`, `piece_boundary`,
    /// `word_boundary`, `normalized`, `not_in_vocabulary`, `merge_missing` (the token exists, but no merges lead to it
    /// from these symbols), `merge_lost` (a neighbour was merged first), `score_lost` (other tokens have a higher sum
    /// or a lower cost), `longer_match` (a longer token was taken), `unknown_word`.
    pub kind: &'static str,
    /// The reason in a sentence.
    pub message: String,
    /// The place in the text that it is about, if it is about one.
    pub at: Option<usize>,
    /// The token that it is about, if it is about one.
    pub token: Option<TokenId>,
}
