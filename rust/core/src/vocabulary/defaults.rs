//! Tables of llama.cpp's defaults: the algorithm and special ids of each `tokenizer.ggml.model`, and settings by
//! algorithm and pre-tokenizer.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, the first half of `llama_vocab::impl::load`. Deviations: none.

use super::{Kind, Settings, SpecialTokens};
use crate::error::VocabularyError;
use crate::error::nearest::nearest;
use crate::vocabulary::families::PreTokenizer;

/// The model names of the variants of byte-pair encoding.
pub(crate) const HYBRID_DNA: &str = "hybriddna";
pub(crate) const WHITESPACE: &str = "whitespace";

/// One row per value of `tokenizer.ggml.model` that llama.cpp accepts.
#[derive(Debug)]
pub(crate) struct ModelRow {
    pub name: &'static str,
    pub kind: Kind,
    /// bos, eos, unk, sep, pad, mask.
    special: [Option<i32>; 6],
}

const fn row(name: &'static str, kind: Kind, special: [Option<i32>; 6]) -> ModelRow {
    ModelRow { name, kind, special }
}

/// All models, in the order in which llama.cpp tests them.
#[rustfmt::skip]
pub(crate) const MODELS: &[ModelRow] = &[
    //                                      bos        eos        unk        sep        pad        mask
    row("no_vocab",   Kind::None,      [None     , None     , None     , None     , None     , None]),
    row("none",       Kind::None,      [None     , None     , None     , None     , None     , None]),
    row("llama",      Kind::Spm,       [Some(1)  , Some(2)  , Some(0)  , None     , None     , None]),
    row("bert",       Kind::WordPiece, [Some(101), None     , Some(100), Some(102), Some(0)  , Some(103)]),
    row("gpt2",       Kind::Bpe,       [Some(11) , Some(11) , None     , None     , None     , None]),
    row(HYBRID_DNA,   Kind::Bpe,       [Some(11) , Some(11) , None     , None     , None     , None]),
    row(WHITESPACE,   Kind::Bpe,       [Some(11) , Some(11) , None     , None     , None     , None]),
    row("t5",         Kind::Unigram,   [None     , Some(1)  , Some(2)  , None     , Some(0)  , None]),
    row("rwkv",       Kind::Rwkv,      [None     , None     , None     , None     , None     , None]),
    row("test",       Kind::Test,      [None     , None     , None     , None     , None     , None]),
    row("plamo2",     Kind::Plamo2,    [Some(1)  , Some(2)  , Some(0)  , None     , Some(3)  , None]),
    row("gemma4",     Kind::Bpe,       [None     , None     , None     , None     , None     , None]),
];

/// The row of a model name.
///
/// # Errors
/// [`VocabularyError::UnknownModel`] if there is none.
pub(crate) fn model(name: &str) -> Result<&'static ModelRow, VocabularyError> {
    MODELS.iter().find(|row| row.name == name).ok_or_else(|| VocabularyError::UnknownModel {
        name: name.to_owned(),
        nearest: nearest(name, MODELS.iter().map(|row| row.name)),
    })
}

/// Special ids and settings of a model with its pre-tokenizer.
pub(crate) fn defaults(model: &ModelRow, pre: Option<&PreTokenizer>) -> (SpecialTokens, Settings) {
    let [bos, eos, unk, sep, pad, mask] = model.special;
    let mut special = SpecialTokens { bos, eos, unk, sep, pad, mask, ..SpecialTokens::default() };
    let mut settings =
        Settings { escape_whitespaces: true, lowercase: true, strip_accents: true, ..Settings::default() };
    match model.kind {
        Kind::Spm => (settings.add_space_prefix, settings.add_bos) = (true, true),
        Kind::WordPiece => (settings.clean_spaces, settings.add_bos, settings.add_sep) = (true, true, true),
        Kind::Unigram => settings.add_eos = true,
        Kind::Bpe | Kind::Rwkv | Kind::Plamo2 | Kind::Test | Kind::None => {}
    }
    if let Some(pre) = pre {
        settings.clean_spaces = pre.clean_spaces;
        settings.ignore_merges = pre.ignore_merges;
        settings.add_bos = pre.add_bos;
        settings.add_sep = pre.add_sep;
        settings.escape_whitespaces = pre.escape_whitespaces;
        settings.lowercase = pre.lowercase;
        if !pre.has_bos {
            special.bos = None;
        }
    }
    (special, settings)
}
