//! The errors of loading a vocabulary, encoding a text and decoding ids.

pub(crate) mod nearest;

use crate::token::TokenId;

/// Defines an enum as a table: each variant with its fields and its message.
#[doc(hidden)]
#[macro_export]
macro_rules! messages {
    ($(#[$attribute:meta])* pub enum $error:ident {
        $($(#[$doc:meta])* $variant:ident
            $({ $($(#[$field_doc:meta])* $field:ident: $kind:ty),+ $(,)? })?
            $(($($held:ident: $held_kind:ty),+))?
            => $message:literal $(, $value:expr)*;)+
    }) => {
        $(#[$attribute])*
        pub enum $error {
            $($(#[$doc])* $variant $({ $($(#[$field_doc])* $field: $kind),+ })? $(($($held_kind),+))?,)+
        }

        impl std::fmt::Display for $error {
            #[allow(unused_variables, reason = "a message need not name every field")]
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant $({ $($field),+ })? $(($($held),+))? => write!(f, $message $(, $value)*),)+
                }
            }
        }
    };
}

/// Defines an error in the same way.
macro_rules! errors {
    ($(#[$attribute:meta])* pub enum $error:ident { $($variants:tt)+ }) => {
        $crate::error::messages! { $(#[$attribute])* pub enum $error { $($variants)+ } }

        impl std::error::Error for $error {}
    };
}
pub(crate) use {errors, messages};

errors! {
    /// Why a vocabulary cannot be used.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum VocabularyError {
        /// `tokenizer.ggml.model` is not an algorithm that llama.cpp has; known names, nearest first.
        UnknownModel { name: String, nearest: Vec<&'static str> } =>
            "unknown tokenizer model {}; the nearest known are {}", quoted(name), nearest.join(", ");
        /// `tokenizer.ggml.pre` is not a pre-tokenizer that llama.cpp has; known names, nearest first.
        UnknownPreTokenizer { name: String, nearest: Vec<&'static str> } =>
            "unknown pre-tokenizer {}; the nearest known are {}", quoted(name), nearest.join(", ");
        /// The file has no list of tokens.
        MissingTokens => "the vocabulary has no list of tokens, tokenizer.ggml.tokens";
        /// A byte-pair vocabulary has no list of merges.
        MissingMerges =>
            "a byte-pair vocabulary needs a list of merges, tokenizer.ggml.merges, and the file has none";
        /// There are more tokens than ids, which are positive 32-bit integers.
        TooManyTokens { count: usize } => "{count} tokens are more than 32-bit ids can number";
        /// Two ids share one text; `is_cut` says that one has more after a NUL byte, where llama.cpp ends it.
        DuplicateToken { text: Vec<u8>, first: TokenId, second: TokenId, is_cut: bool } =>
            "tokens {first} and {second} share the text {:?}{}", String::from_utf8_lossy(text),
            if *is_cut { ": llama.cpp ends a token's text at its first NUL byte" } else { "" };
        /// A list with one entry per token (`"scores"` or `"token types"`) is shorter than the list of tokens.
        TooShort { what: &'static str, len: usize, tokens: usize } =>
            "the list of {what} has {len} entries for {tokens} tokens";
        /// A byte token's text is not of the form `<0xXX>`.
        ByteToken { id: TokenId, text: Vec<u8> } =>
            "byte token {id} has the text {:?}, not <0xXX>", String::from_utf8_lossy(text);
        /// A WordPiece vocabulary has a byte token, whatever its text.
        WordPieceByte { id: TokenId } => "token {id} is a byte token, which WordPiece does not have";
        /// A token's text, if read as characters, has one beyond U+10FFFF at this byte.
        BeyondUnicode { id: TokenId, offset: usize } =>
            "token {id} has a character beyond U+10FFFF at byte {offset} of its text";
        /// PLaMo-2 needs a token for each of the 256 bytes.
        MissingByteToken { byte: u8 } => "no token stands for the byte 0x{byte:02X}";
        /// No token has a text that llama.cpp looks up without checking.
        MissingToken { text: &'static str } => "no token has the text {text:?}";
        /// RWKV and test vocabularies need a token for a newline.
        MissingNewline => "the vocabulary has no token for a newline";
        /// The precompiled character map is damaged at this byte.
        Charsmap { offset: usize, damage: CharsmapDamage } =>
            "the character map is damaged at byte {offset}: {damage}";
        /// A vocabulary without texts declares too many tokens to list: more than 1,048,576.
        Unlisted { count: usize } =>
            "the file declares {count} tokens and has no texts for them: they cannot be listed";
        /// A structure is too large for its 32-bit offsets.
        TooLarge { what: &'static str } => "too large: {what}";
        /// There is not enough memory for the vocabulary.
        OutOfMemory => "out of memory: there is not enough for this vocabulary";
    }
}

errors! {
    /// What is wrong with a precompiled character map.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[allow(missing_docs)]
    #[non_exhaustive]
    pub enum CharsmapDamage {
        Empty => "it is empty";
        NoLength => "it is too short for the length of its array";
        NoReplacements => "it ends before its replacements start";
        ChildrenOutside => "a unit's children are outside the array";
        ReplacementOutside => "a replacement is outside the map";
        EndlessReplacement => "a replacement has no end";
    }
}

/// A name in quotes, escaped except for backslashes: those come from bytes that are not UTF-8 (see `Definition`).
fn quoted(name: &str) -> String {
    let escaped: Vec<String> = name.split('\\').map(|text| text.escape_debug().to_string()).collect();
    format!("\"{}\"", escaped.join("\\"))
}

errors! {
    /// Why a text cannot be encoded, or cut to a budget of tokens.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum EncodeError {
        /// The file has no vocabulary (`tokenizer.ggml.model` is `none`).
        NoVocabulary => "the file declares that it has no vocabulary, so it cannot tokenize";
        /// A special token must be added (`"BOS"`, `"EOS"` or `"SEP"`) and the vocabulary has none.
        MissingSpecial { what: &'static str } => "the vocabulary asks for a {what} token to be added and has none";
        /// The text's length in bytes does not fit in 32 bits, llama.cpp's limit too.
        TextTooLong { len: usize } => "a text of {len} bytes is longer than the 2147483647 that one call takes";
        /// The vocabulary itself reads the control token `id` in a part of a text that does not allow it, at this byte
        /// of the joined parts.
        Control { id: TokenId, at: usize } =>
            "this vocabulary reads the control token {id} in every text, and a part that does not allow it contains \
             it at byte {at}";
        /// The budget is 0, or leaves no room beside the tokens added to every text.
        Budget { max_tokens: usize, num_added: usize } => "max_tokens {}", match max_tokens {
            0 => "must be at least 1, not 0".to_owned(),
            _ => format!("is {max_tokens}, but {num_added} tokens are added to every text"),
        };
        /// The overlap is not smaller than what the budget leaves for text.
        Overlap { overlap: usize, room: usize } =>
            "overlap is {overlap}, but must be less than the {room} tokens that a chunk has for text";
        /// The code point at byte `at` alone is over the budget. `count` includes added tokens.
        Character { at: usize, count: usize, max_tokens: usize } =>
            "the character at byte {at} has {count} tokens by itself, more than max_tokens ({max_tokens})";
        /// This kind of vocabulary is not sampled in this way.
        NotSampled { way: &'static str, kinds: &'static str } =>
            "{way} is for {kinds} vocabularies, and this is another kind";
        /// The best `n` paths through the text have more steps together than are kept.
        TooManySteps { n: usize, most: usize } =>
            "the {n} best ways to cut the text have more than {most} steps together: ask for fewer, or about a \
             shorter text";
        /// There is not enough memory for the text or its tokens.
        OutOfMemory => "{OutOfMemory}";
    }
}

errors! {
    /// Why ids cannot be decoded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum DecodeError {
        /// The vocabulary, which has `size` tokens, does not have this id.
        UnknownId { id: i64, size: usize } => "token id {id} is outside the vocabulary of {size} tokens";
        /// The text is not UTF-8 from this byte on.
        NotUtf8 { at: usize } => "the decoded text is not UTF-8 at byte {at}";
        /// A prompt follows ids that were already decoded.
        LatePrompt => "a prompt comes before the first id that is decoded";
        /// There is not enough memory for the text.
        OutOfMemory => "{OutOfMemory}";
    }
}

/// There was not enough memory for a buffer. Inside the crate, this is the payload of an unwinding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory;

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
