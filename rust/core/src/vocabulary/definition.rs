//! What a file says about its vocabulary, before anything is made of it.

use crate::vocabulary::strings::Strings;

/// A vocabulary as its source declares it. Everything that is `None` takes llama.cpp's default for the model.
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
    /// How many nameless tokens a file without a vocabulary has.
    pub vocab_size: Option<u32>,
    /// Ids of special tokens.
    pub special: SpecialIds,
    /// Whether BOS is added.
    pub add_bos: Option<bool>,
    /// Whether EOS is added.
    pub add_eos: Option<bool>,
    /// Whether SEP is added.
    pub add_sep: Option<bool>,
    /// Whether a space is put before the text.
    pub add_space_prefix: Option<bool>,
    /// Whether runs of spaces are merged (Unigram).
    pub remove_extra_whitespaces: Option<bool>,
    /// Whether text is lowercased (WordPiece, whitespace BPE).
    pub lowercase: Option<bool>,
    /// Whether accents are dropped (WordPiece); by default as `lowercase`.
    pub strip_accents: Option<bool>,
    /// The model's name, `general.name`: llama.cpp knows some models' token attributes by it.
    pub name: &'a str,
    /// The model's architecture, `general.architecture`, for the same reason.
    pub architecture: &'a str,
}

/// Ids of special tokens as the source gives them. One that is out of range is passed over, as llama.cpp does.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)]
pub struct SpecialIds {
    pub bos: Option<u32>,
    pub eos: Option<u32>,
    pub eot: Option<u32>,
    pub eom: Option<u32>,
    pub unk: Option<u32>,
    pub sep: Option<u32>,
    pub pad: Option<u32>,
    pub mask: Option<u32>,
    pub fim_pre: Option<u32>,
    pub fim_suf: Option<u32>,
    pub fim_mid: Option<u32>,
    pub fim_pad: Option<u32>,
    pub fim_rep: Option<u32>,
    pub fim_sep: Option<u32>,
    /// Deprecated name of `fim_pre`, read after it.
    pub prefix: Option<u32>,
    /// Deprecated name of `fim_suf`, read after it.
    pub suffix: Option<u32>,
    /// Deprecated name of `fim_mid`, read after it.
    pub middle: Option<u32>,
}
