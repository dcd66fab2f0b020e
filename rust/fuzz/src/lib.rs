//! The bodies of the fuzz targets. `tests/fuzz_seeds.rs` of the core runs them on the seeds with any compiler.
//!
//! Bytes become a small vocabulary and texts (`vocabulary`, `texts`). Then fast paths are compared with slow ones
//! (`checks`): ids with those of a trace, a stream with the whole, chunks with their guarantees. Or they become a chat
//! template and a conversation (`templates`), whose text and cost are checked (`chats`).

mod chats;
mod checks;
mod memory;
mod templates;
mod texts;
mod vocabulary;

use arbitrary::{Result, Unstructured};

/// A target: its name and body.
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
    ("template", chats::template),
    ("chat", chats::request),
];

/// Runs a target. Panics if something is wrong; bytes that do not make an input are fine.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|target| target.0 == name).expect("a target");
    let _ = target(&mut Unstructured::new(data));
}
