//! The table of special tokens: one row per slot, with the keys that give its id and the texts that identify it.
//!
//! [`SpecialIds`] (what a file gives), [`SpecialTokens`] (what the loader makes of it) and [`SLOTS`] (for loops over
//! both) are generated from the rows.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `special_token_types` and the searches by text in
//! `llama_vocab::impl::load`, and `src/llama-arch.cpp` for the keys. Deviations: none.

use crate::token::TokenId;

/// A special token's place in a vocabulary.
#[derive(Debug)]
pub struct Slot {
    /// Its name, as in [`SpecialTokens`].
    pub name: &'static str,
    /// The keys that can give its id, in reading order: the last id in range wins.
    pub given: &'static [Given],
    /// The texts that identify it if the file gives no id.
    pub texts: &'static [&'static str],
    /// Its id.
    pub id: fn(&SpecialTokens) -> Option<TokenId>,
    /// Its id, for setting it.
    pub id_mut: fn(&mut SpecialTokens) -> &mut Option<TokenId>,
}

/// One key of a file that gives the id of a special token.
#[derive(Debug)]
pub struct Given {
    /// Its name, as in [`SpecialIds`].
    pub name: &'static str,
    /// The key, without `tokenizer.ggml.` at its start.
    pub key: &'static str,
    /// The id.
    pub id: fn(&SpecialIds) -> Option<u32>,
    /// The id, for setting it.
    pub id_mut: fn(&mut SpecialIds) -> &mut Option<u32>,
}

macro_rules! slots {
    ($($slot:ident: [$($given:ident = $key:literal),*] [$($text:literal),* $(,)?])*) => {
        /// Special token ids; `None` where llama.cpp has `LLAMA_TOKEN_NULL`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[allow(missing_docs)]
        pub struct SpecialTokens {
            $(pub $slot: Option<TokenId>,)*
        }

        /// Ids of special tokens as a file gives them. An id that is out of range is ignored, as in llama.cpp.
        /// `prefix`, `suffix` and `middle` are the deprecated names of `fim_pre`, `fim_suf` and `fim_mid`.
        #[derive(Debug, Clone, Copy, Default)]
        #[allow(missing_docs)]
        pub struct SpecialIds {
            $($(pub $given: Option<u32>,)*)*
        }

        /// All slots.
        pub const SLOTS: &[Slot] = &[$(
            Slot {
                name: stringify!($slot),
                given: &[$(
                    Given {
                        name: stringify!($given),
                        key: $key,
                        id: |ids| ids.$given,
                        id_mut: |ids| &mut ids.$given,
                    }
                ),*],
                texts: &[$($text),*],
                id: |special| special.$slot,
                id_mut: |special| &mut special.$slot,
            }
        ),*];
    };
}

// "seperator" is GGUF's spelling. No key gives the newline: the loader encodes one.
slots! {
    bos: [bos = "bos_token_id"] []
    eos: [eos = "eos_token_id"] []
    eot: [eot = "eot_token_id"] [
        "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
        "[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
    ]
    eom: [eom = "eom_token_id"] ["<|eom_id|>"]
    unk: [unk = "unknown_token_id"] []
    sep: [sep = "seperator_token_id"] []
    nl: [] []
    pad: [pad = "padding_token_id"] []
    mask: [mask = "mask_token_id"] []
    fim_pre: [fim_pre = "fim_pre_token_id", prefix = "prefix_token_id"] [
        "<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>",
        "<|prefix|>",
    ]
    fim_suf: [fim_suf = "fim_suf_token_id", suffix = "suffix_token_id"] [
        "<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>",
        "<|suffix|>",
    ]
    fim_mid: [fim_mid = "fim_mid_token_id", middle = "middle_token_id"] [
        "<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>",
        "<|middle|>",
    ]
    fim_pad: [fim_pad = "fim_pad_token_id"] ["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"]
    fim_rep: [fim_rep = "fim_rep_token_id"] ["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"]
    fim_sep: [fim_sep = "fim_sep_token_id"] ["<|file_sep|>"]
}
