//! The errors of loading a vocabulary, encoding a text and decoding ids.

pub(crate) mod nearest;

use std::fmt;

use crate::token::TokenId;

/// Why a vocabulary cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields say what they are")]
#[rustfmt::skip]
pub enum VocabularyError {
    /// `tokenizer.ggml.model` is not an algorithm that llama.cpp has; known names, nearest first.
    UnknownModel { name: String, nearest: Vec<&'static str> },
    /// `tokenizer.ggml.pre` is not a pre-tokenizer that llama.cpp has; known names, nearest first.
    UnknownPreTokenizer { name: String, nearest: Vec<&'static str> },
    /// The file has no list of tokens.
    MissingTokens,
    /// A byte-pair vocabulary has no list of merges.
    MissingMerges,
    /// There are more tokens than ids, which are positive 32-bit integers.
    TooManyTokens { count: usize },
    /// Two ids share one text; `is_cut` says that one has more after a NUL byte, where llama.cpp ends it.
    DuplicateToken { text: Vec<u8>, first: TokenId, second: TokenId, is_cut: bool },
    /// A list with one entry per token (`"scores"` or `"token types"`) is shorter than the list of tokens.
    TooShort { what: &'static str, len: usize, tokens: usize },
    /// A byte token's text is not of the form `<0xXX>`.
    ByteToken { id: TokenId, text: Vec<u8> },
    /// A token's text, if read as characters, has one beyond U+10FFFF at this byte.
    BeyondUnicode { id: TokenId, offset: usize },
    /// PLaMo-2 needs a token for each of the 256 bytes.
    MissingByteToken { byte: u8 },
    /// No token has a text that llama.cpp looks up without checking.
    MissingToken { text: &'static str },
    /// RWKV and test vocabularies need a token for a newline.
    MissingNewline,
    /// The precompiled character map is damaged at this byte.
    Charsmap { offset: usize, damage: CharsmapDamage },
    /// A vocabulary without texts declares too many tokens to list: more than 1,048,576.
    Unlisted { count: usize },
    /// A structure is too large for its 32-bit offsets.
    TooLarge { what: &'static str },
    /// There is not enough memory for the vocabulary.
    OutOfMemory,
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownModel { name, nearest } => {
                write!(f, "unknown tokenizer model {}; the nearest known are {}", quoted(name), nearest.join(", "))
            }
            Self::UnknownPreTokenizer { name, nearest } => {
                write!(f, "unknown pre-tokenizer {}; the nearest known are {}", quoted(name), nearest.join(", "))
            }
            Self::MissingTokens => f.write_str("the vocabulary has no list of tokens, tokenizer.ggml.tokens"),
            Self::MissingMerges => f.write_str(
                "a byte-pair vocabulary needs a list of merges, tokenizer.ggml.merges, and the file has none",
            ),
            Self::TooManyTokens { count } => write!(f, "{count} tokens are more than 32-bit ids can number"),
            Self::DuplicateToken { text, first, second, is_cut } => {
                let cut = if *is_cut { ": llama.cpp ends a token's text at its first NUL byte" } else { "" };
                write!(f, "tokens {first} and {second} share the text {:?}{cut}", String::from_utf8_lossy(text))
            }
            Self::TooShort { what, len, tokens } => {
                write!(f, "the list of {what} has {len} entries for {tokens} tokens")
            }
            Self::ByteToken { id, text } => {
                write!(f, "byte token {id} has the text {:?}, not <0xXX>", String::from_utf8_lossy(text))
            }
            Self::BeyondUnicode { id, offset } => {
                write!(f, "token {id} has a character beyond U+10FFFF at byte {offset} of its text")
            }
            Self::MissingByteToken { byte } => write!(f, "no token stands for the byte 0x{byte:02X}"),
            Self::MissingToken { text } => write!(f, "no token has the text {text:?}"),
            Self::MissingNewline => f.write_str("the vocabulary has no token for a newline"),
            Self::Charsmap { offset, damage } => write!(f, "the character map is damaged at byte {offset}: {damage}"),
            Self::Unlisted { count } => {
                write!(f, "the file declares {count} tokens and has no texts for them: they cannot be listed")
            }
            Self::TooLarge { what } => write!(f, "too large: {what}"),
            Self::OutOfMemory => f.write_str("out of memory: there is not enough for this vocabulary"),
        }
    }
}

impl std::error::Error for VocabularyError {}

/// What is wrong with a precompiled character map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum CharsmapDamage {
    Empty,
    /// It is too short for the length of its array.
    NoLength,
    /// It ends before its replacements start.
    NoReplacements,
    /// A unit's children are outside the array.
    ChildrenOutside,
    ReplacementOutside,
    EndlessReplacement,
}

impl fmt::Display for CharsmapDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "it is empty",
            Self::NoLength => "it is too short for the length of its array",
            Self::NoReplacements => "it ends before its replacements start",
            Self::ChildrenOutside => "a unit's children are outside the array",
            Self::ReplacementOutside => "a replacement is outside the map",
            Self::EndlessReplacement => "a replacement has no end",
        })
    }
}

/// A name in quotes, escaped except for backslashes: those come from bytes that are not UTF-8 (see `Definition`).
fn quoted(name: &str) -> String {
    let escaped: Vec<String> = name.split('\\').map(|text| text.escape_debug().to_string()).collect();
    format!("\"{}\"", escaped.join("\\"))
}

/// Why a text cannot be encoded, or cut to a budget of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields say what they are")]
#[rustfmt::skip]
pub enum EncodeError {
    /// The file has no vocabulary (`tokenizer.ggml.model` is `none`).
    NoVocabulary,
    /// A special token must be added (`"BOS"`, `"EOS"` or `"SEP"`) and the vocabulary has none.
    MissingSpecial { what: &'static str },
    /// The text's length in bytes does not fit in 32 bits, llama.cpp's limit too.
    TextTooLong { len: usize },
    /// The vocabulary itself reads the control token `id` in a part of a text that does not allow it, at this byte of
    /// the joined parts.
    Control { id: TokenId, at: usize },
    /// The budget is 0, or leaves no room beside the tokens added to every text.
    Budget { max_tokens: usize, num_added: usize },
    /// The overlap is not smaller than what the budget leaves for text.
    Overlap { overlap: usize, room: usize },
    /// The code point at byte `at` alone is over the budget. `count` includes added tokens.
    Character { at: usize, count: usize, max_tokens: usize },
    /// This kind of vocabulary is not sampled in this way.
    NotSampled { way: &'static str, kinds: &'static str },
    /// The best `n` paths through the text have more steps together than are kept.
    TooManySteps { n: usize, most: usize },
    /// There is not enough memory for the text or its tokens.
    OutOfMemory,
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVocabulary => f.write_str("the file declares that it has no vocabulary, so it cannot tokenize"),
            Self::MissingSpecial { what } => {
                write!(f, "the vocabulary asks for a {what} token to be added and has none")
            }
            Self::TextTooLong { len } => {
                write!(f, "a text of {len} bytes is longer than the 2147483647 that one call takes")
            }
            Self::Control { id, at } => write!(
                f,
                "this vocabulary reads the control token {id} in every text, and a part that does not allow it contains \
                 it at byte {at}"
            ),
            Self::Budget { max_tokens: 0, .. } => f.write_str("max_tokens must be at least 1, not 0"),
            Self::Budget { max_tokens, num_added } => {
                write!(f, "max_tokens is {max_tokens}, but {num_added} tokens are added to every text")
            }
            Self::Overlap { overlap, room } => {
                write!(f, "overlap is {overlap}, but must be less than the {room} tokens that a chunk has for text")
            }
            Self::Character { at, count, max_tokens } => {
                write!(
                    f,
                    "the character at byte {at} has {count} tokens by itself, more than max_tokens ({max_tokens})"
                )
            }
            Self::NotSampled { way, kinds } => write!(f, "{way} is for {kinds} vocabularies, and this is another kind"),
            Self::TooManySteps { n, most } => write!(
                f,
                "the {n} best ways to cut the text have more than {most} steps together: ask for fewer, or about a \
                 shorter text"
            ),
            Self::OutOfMemory => OutOfMemory.fmt(f),
        }
    }
}

impl std::error::Error for EncodeError {}

/// Why ids cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "fields say what they are")]
#[rustfmt::skip]
pub enum DecodeError {
    /// The vocabulary, which has `size` tokens, does not have this id.
    UnknownId { id: i64, size: usize },
    /// The text is not UTF-8 from this byte on.
    NotUtf8 { at: usize },
    /// A prompt follows ids that were already decoded.
    LatePrompt,
    /// There is not enough memory for the text.
    OutOfMemory,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownId { id, size } => write!(f, "token id {id} is outside the vocabulary of {size} tokens"),
            Self::NotUtf8 { at } => write!(f, "the decoded text is not UTF-8 at byte {at}"),
            Self::LatePrompt => f.write_str("a prompt comes before the first id that is decoded"),
            Self::OutOfMemory => OutOfMemory.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

/// There was not enough memory for a buffer. Inside the crate, this is the payload of an unwinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory: there is not enough for this text")
    }
}

impl std::error::Error for OutOfMemory {}

/// The variant of an error that stands for it.
macro_rules! from_out_of_memory {
    ($($error:ident),+) => {
        $(impl From<OutOfMemory> for $error {
            fn from(_: OutOfMemory) -> Self {
                Self::OutOfMemory
            }
        })+
    };
}
from_out_of_memory!(VocabularyError, EncodeError, DecodeError);

/// The variants of an error that hold other errors.
macro_rules! from {
    ($whole:ident: $($error:ident => $variant:ident),+) => {
        $(impl From<$error> for $whole {
            fn from(error: $error) -> Self {
                Self::$variant(error.into())
            }
        })+
    };
}
pub(crate) use {from, from_out_of_memory};
