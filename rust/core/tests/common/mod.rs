//! Embedded vocabularies and texts for benchmarks and for tests of the whole crate.

use std::fs;
use std::path::PathBuf;

use ggtok_core::Tokenizer;

/// The embedded vocabularies, one for each kind.
pub const EMBEDDED: [&str; 4] = ["spm", "bpe", "wordpiece", "unigram"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder with shared material, which may be missing.
pub fn shared() -> PathBuf {
    root().join(std::env::var("GGTOK_SHARED").unwrap_or_else(|_| "../shared".into()))
}

/// The first `len` bytes, or a few less, of a shared corpus; `None` and a message if it does not exist.
pub fn corpus(name: &str, len: usize) -> Option<String> {
    let shared = shared();
    let Ok(mut text) = fs::read_to_string(shared.join("corpora").join(name).with_extension("txt")) else {
        eprintln!("SKIPPED: no corpus {name} under {}; set GGTOK_SHARED", shared.display());
        return None;
    };
    text.truncate(boundary(&text, len));
    Some(text)
}

/// The last character boundary at or before byte `len`.
pub fn boundary(text: &str, len: usize) -> usize {
    (0..=len.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or_default()
}

/// An embedded vocabulary with its algorithm.
pub fn embedded(name: &str) -> Tokenizer {
    Tokenizer::from_bytes(&embedded_bytes(name)).expect("an embedded vocabulary is whole")
}

/// The file of an embedded vocabulary.
pub fn embedded_bytes(name: &str) -> Vec<u8> {
    let path = root().join("python/ggtok/vocabularies").join(name).with_extension("gguf");
    fs::read(&path).expect("an embedded vocabulary")
}
