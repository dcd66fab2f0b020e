//! Embedded vocabularies and texts for benchmarks and for tests of the whole crate.
//!
//! The crate knows nothing of files, so this module reads the one kind that embedded vocabularies have: GGUF version 3,
//! little endian, undamaged. Anything else panics. Source: the GGUF specification (`docs/gguf.md` of ggml).

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use ggtok_core::{Definition, SpecialIds, StringIndex, Tokenizer};

/// The embedded vocabularies, one for each kind.
pub const EMBEDDED: [&str; 4] = ["spm", "bpe", "wordpiece", "unigram"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The first `len` bytes, or a few less, of a shared corpus; `None` and a message if it does not exist.
pub fn corpus(name: &str, len: usize) -> Option<String> {
    let shared = root().join(std::env::var("GGTOK_SHARED").unwrap_or_else(|_| "../shared".into()));
    let Ok(mut text) = fs::read_to_string(shared.join("corpora").join(name).with_extension("txt")) else {
        eprintln!("SKIPPED: no corpus {name} under {}; set GGTOK_SHARED", shared.display());
        return None;
    };
    text.truncate(boundary(&text, len));
    Some(text)
}

/// The last character boundary up to byte `len`.
pub fn boundary(text: &str, len: usize) -> usize {
    (0..=len.min(text.len())).rfind(|&at| text.is_char_boundary(at)).unwrap_or_default()
}

/// An embedded vocabulary with its algorithm.
pub fn embedded(name: &str) -> Tokenizer {
    let path = root().join("python/ggtok/vocabularies").join(name).with_extension("gguf");
    let data = fs::read(&path).expect("an embedded vocabulary");
    let metadata = Metadata::read(&data);
    let strings = |key| metadata.array(key).map(|(_, count, at)| strings(&data, at, count).0);
    let words = |key| {
        let (_, count, at) = metadata.array(key)?;
        Some(data[at..at + 4 * count].as_chunks::<4>().0)
    };
    let scores: Option<Vec<f32>> =
        words("scores").map(|all| all.iter().map(|&word| f32::from_le_bytes(word)).collect());
    let types: Option<Vec<i32>> =
        words("token_type").map(|all| all.iter().map(|&word| i32::from_le_bytes(word)).collect());
    let (tokens, merges) = (strings("tokens"), strings("merges"));
    let id = |key: &str| metadata.number(&format!("{key}_token_id"));
    let flag = |key| metadata.number(key).map(|flag| flag != 0);
    let definition = Definition {
        model: metadata.text("model").expect("a model"),
        pre: metadata.text("pre"),
        tokens: tokens.as_ref().map(|index| index.view(&data)),
        scores: scores.as_deref(),
        token_types: types.as_deref(),
        merges: merges.as_ref().map(|index| index.view(&data)),
        charsmap: metadata.array("precompiled_charsmap").map(|(_, count, at)| &data[at..at + count]),
        special: SpecialIds {
            bos: id("bos"),
            eos: id("eos"),
            eot: id("eot"),
            unk: id("unknown"),
            sep: id("seperator"),
            pad: id("padding"),
            mask: id("mask"),
            ..SpecialIds::default()
        },
        add_bos: flag("add_bos_token"),
        add_eos: flag("add_eos_token"),
        add_space_prefix: flag("add_space_prefix"),
        remove_extra_whitespaces: flag("remove_extra_whitespaces"),
        lowercase: flag("normalizer.lowercase"),
        strip_accents: flag("normalizer.strip_accents"),
        ..Definition::default()
    };
    Tokenizer::new(&definition).expect("an embedded vocabulary is whole")
}

/// The index of an array of strings, and its end.
fn strings(data: &[u8], at: usize, count: usize) -> (StringIndex, usize) {
    let index = StringIndex::length_prefixed(data, at, count, false).expect("an array of strings");
    let end = index.end();
    (index, end)
}

enum Value<'a> {
    Number(u32),
    Text(&'a str),
    /// Type, count and start of the elements.
    Array(u32, usize, usize),
}

/// The metadata whose keys begin with `tokenizer.ggml.`, by the rest of their keys.
struct Metadata<'a>(HashMap<&'a str, Value<'a>>);

impl<'a> Metadata<'a> {
    fn read(data: &'a [u8]) -> Self {
        let word = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().expect("eight bytes")) as usize;
        let text = |at: usize| std::str::from_utf8(&data[at + 8..at + 8 + long(at)]).expect("UTF-8");
        assert!(data.starts_with(b"GGUF\x03\0\0\0"));
        let mut values = HashMap::new();
        let mut at = 24;
        for _ in 0..long(16) {
            let key = text(at);
            at += 8 + key.len();
            let kind = word(at);
            at += 4;
            let value = match kind {
                STRING => Value::Text(text(at)),
                ARRAY => Value::Array(word(at), long(at + 4), at + 12),
                _ => Value::Number(if SIZES[kind as usize] == 1 { data[at].into() } else { word(at) }),
            };
            at = match value {
                Value::Text(text) => at + 8 + text.len(),
                Value::Array(STRING, count, at) => strings(data, at, count).1,
                Value::Array(kind, count, at) => at + count * SIZES[kind as usize],
                Value::Number(_) => at + SIZES[kind as usize],
            };
            if let Some(key) = key.strip_prefix("tokenizer.ggml.") {
                values.insert(key, value);
            }
        }
        Self(values)
    }

    fn number(&self, key: &str) -> Option<u32> {
        self.0.get(key).map(|value| if let Value::Number(number) = value { *number } else { panic!("{key}") })
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(|value| if let Value::Text(text) = value { *text } else { panic!("{key}") })
    }

    fn array(&self, key: &str) -> Option<(u32, usize, usize)> {
        let array = |value: &Value<'_>| {
            if let Value::Array(kind, count, at) = *value { (kind, count, at) } else { panic!("{key}") }
        };
        self.0.get(key).map(array)
    }
}

const STRING: u32 = 8;
const ARRAY: u32 = 9;
/// Bytes of a value by its type: u8, i8, u16, i16, u32, i32, f32, bool, (string, array,) u64, i64, f64.
const SIZES: [usize; 13] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
