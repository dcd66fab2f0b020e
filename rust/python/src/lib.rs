//! The Python bindings of ggtok-core: conversions (with Arrow columns, and texts from JSON and lines), the GIL, signals
//! and errors.
//!
//! Methods of the tokenizer are what users call. What only the Python layer calls is a function of the module that
//! takes the tokenizer as its first argument.

#![allow(clippy::too_many_arguments, clippy::type_complexity, reason = "Python's signatures decide")]

// `doc!(Tokenizer.encode)`: the docstring that the stub `_ggtok.pyi` has for an item. See `build.rs`.
include!(concat!(env!("OUT_DIR"), "/doc.rs"));

mod arguments;
mod arrays;
mod arrow;
mod batch;
mod bytes;
mod chat;
mod chunks;
mod decoder;
mod encoder;
mod encoding;
mod errors;
mod explain;
mod ints;
mod json;
mod json_lines;
mod json_string;
mod line_columns;
mod memory;
mod metadata;
mod parts;
mod run;
mod sampling;
mod scratch;
mod tables;
mod text_lines;
mod tokenizer;
mod train;
mod usage;
mod vocabulary;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _ggtok {
    /// The version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The chat template that llama-server takes for a file without one.
    #[pymodule_export]
    const CHATML: &str = ggtok_chat::CHATML;

    #[pymodule_export]
    use super::{
        arrays::import_numpy,
        batch::{FlatBatch, count_batch, decode_batch, encode_batch},
        chat::{ChatTemplate, Rendering},
        chunks::{split, truncate},
        decoder::StreamDecoder,
        encoder::StreamEncoder,
        encoding::{_encoding, Encoding},
        explain::{RawTrace, explain, explain_trie, face, regex_matches},
        json::json_items,
        json_lines::json_lines,
        memory::Buffer,
        metadata::{Array, Metadata},
        sampling::{align, n_best, sample},
        scratch::{cache_limit, set_cache_limit},
        tables::{families, flag_keys, loader_texts, models, pretokenizers, special_keys},
        text_lines::text_lines,
        tokenizer::Tokenizer,
        train::{Trainer, apply_charsmap, compile_charsmap},
        usage::{needed_for, used_tokens, word_counts},
        vocabulary::{
            attributes, canonical_bytes, charsmap, core_of, eog_ids, id_of_piece, id_of_text, ids_with_prefix, kind,
            list_size, merges, pieces, repaired_ids, scores, settings, special_ids, texts, token, unreachable_tokens,
            unused_merges, vocab_size,
        },
    };
}
