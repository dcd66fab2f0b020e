//! A vocabulary as a file declares it: plain data, nothing derived.

use std::borrow::Cow;

use super::SpecialIds;
use super::strings::Strings;

/// A vocabulary as a file declares it. A field that is `None` takes llama.cpp's default for the model.
///
/// `model`, `pre`, `name` and `architecture` are only compared with known ASCII names. Bytes that are not UTF-8 may be
/// given as anything that no known name contains, such as an escape sequence.
#[derive(Debug, Clone, Copy, Default)]
pub struct Definition<'a> {
    /// The algorithm: `tokenizer.ggml.model`, for example `llama`, `gpt2`, `bert` or `t5`.
    pub model: &'a str,
    /// The pre-tokenizer of a byte-pair vocabulary: `tokenizer.ggml.pre`.
    pub pre: Option<&'a str>,
    /// Token texts in id order.
    pub tokens: Option<Strings<'a>>,
    /// Scores (log probabilities or merge priorities), one per token.
    pub scores: Option<&'a [f32]>,
    /// llama.cpp's token types (1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte), one per token.
    pub token_types: Option<&'a [i32]>,
    /// Merges, each `left right`, lowest rank first.
    pub merges: Option<Strings<'a>>,
    /// A Unigram vocabulary's precompiled character map.
    pub charsmap: Option<&'a [u8]>,
    /// The number of tokens in a file without a vocabulary.
    pub vocab_size: Option<u32>,
    /// Ids of special tokens.
    pub special: SpecialIds,
    /// Whether BOS is added.
    pub add_bos: Option<bool>,
    /// Whether EOS is added.
    pub add_eos: Option<bool>,
    /// Whether SEP is added.
    pub add_sep: Option<bool>,
    /// Whether a space is added before the text.
    pub add_space_prefix: Option<bool>,
    /// Whether a run of spaces becomes one (Unigram).
    pub remove_extra_whitespaces: Option<bool>,
    /// Whether text is lowercased (WordPiece, whitespace BPE).
    pub lowercase: Option<bool>,
    /// Whether accents are removed (WordPiece). Default: as `lowercase`.
    pub strip_accents: Option<bool>,
    /// The model's name, `general.name`, which determines some token attributes.
    pub name: &'a str,
    /// The model's architecture, `general.architecture`, which does too.
    pub architecture: &'a str,
}

/// A name in a file as text. Bytes that are not UTF-8 are written `\xFF`, which no known name contains.
pub fn escaped_name(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(name) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(name);
    }
    let chunk = |chunk: std::str::Utf8Chunk<'_>| format!("{}{}", chunk.valid(), chunk.invalid().escape_ascii());
    Cow::Owned(bytes.utf8_chunks().map(chunk).collect())
}

/// A flag that a file can set.
#[derive(Debug)]
pub struct Flag {
    /// Its name, as in [`Definition`].
    pub name: &'static str,
    /// The key, without `tokenizer.ggml.` at its start.
    pub key: &'static str,
    /// The flag, for setting it.
    pub value_mut: for<'a, 'b> fn(&'a mut Definition<'b>) -> &'a mut Option<bool>,
}

macro_rules! flags {
    ($($name:ident = $key:literal)*) => {
        /// All flags.
        pub const FLAGS: &[Flag] = &[$(
            Flag { name: stringify!($name), key: $key, value_mut: |definition| &mut definition.$name }
        ),*];
    };
}

flags! {
    add_bos = "add_bos_token"
    add_eos = "add_eos_token"
    add_sep = "add_sep_token"
    add_space_prefix = "add_space_prefix"
    remove_extra_whitespaces = "remove_extra_whitespaces"
    lowercase = "normalizer.lowercase"
    strip_accents = "normalizer.strip_accents"
}
