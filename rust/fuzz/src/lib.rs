//! What the fuzz targets do with their bytes. `tests/fuzz_seeds.rs` of the core does it with the seeds, on any compiler.
//!
//! Bytes become a small vocabulary and texts (`vocabulary`, `texts`). Then fast ways are compared with slow ones: ids
//! with those of a trace, a stream with the whole, chunks with what they promise (`checks`).

mod checks;
mod texts;
mod vocabulary;

use arbitrary::{Result, Unstructured};

/// A target: what it is called, and what it does.
type Target = (&'static str, fn(&mut Unstructured<'_>) -> Result<()>);

/// All targets.
pub const TARGETS: &[Target] = &[
    ("gguf", checks::gguf),
    ("spm", |u| checks::encode(u, vocabulary::spm)),
    ("bpe", |u| checks::encode(u, vocabulary::bpe)),
    ("wordpiece", |u| checks::encode(u, vocabulary::wordpiece)),
    ("unigram", |u| checks::encode(u, vocabulary::unigram)),
    ("rwkv", |u| checks::encode(u, vocabulary::rwkv)),
    ("plamo2", |u| checks::encode(u, vocabulary::plamo2)),
    ("decode", checks::decode),
    ("stream", checks::stream),
    ("patterns", checks::patterns),
    ("chunks", checks::chunks),
    ("train", checks::train),
    ("charsmap", checks::charsmap),
];

/// Runs a target. Panics where something is wrong; bytes that make no input are fine.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|target| target.0 == name).expect("a target");
    let _ = target(&mut Unstructured::new(data));
}
