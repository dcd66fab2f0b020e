//! Benchmarks of each stage from text to tokens and back, with ordinary texts and with the stage's worst case.
//!
//! Stages are reached through the public interface: a vocabulary without merges leaves only splitting, and an unbroken
//! run of letters only merging. Every answer is checked before it is measured. Throughput is in bytes of text.
//!
//! Run `cargo bench -p ggtok-benches`, with a filter such as `-- split/` to select some.

#[path = "../core/tests/common/mod.rs"]
mod common;

use std::hint::black_box;

use common::{EMBEDDED, boundary, corpus, embedded};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use ggtok_core::vocab::{Definition, StringIndex};
use ggtok_core::{Count, EncodeOptions, Encoder, Tokenizer};

/// Length of a document, in bytes.
const DOCUMENT: usize = 4096;
/// How much of a corpus is used, in bytes.
const CORPUS: usize = 256 << 10;
const LONG_RUN: usize = 256 << 10;

const PLAIN: EncodeOptions = EncodeOptions::new().add_special(false);
const PARSED: EncodeOptions = EncodeOptions::new().add_special(false).parse_special(true);

fn main() {
    let mut criterion = Criterion::default().sample_size(20).configure_from_args();
    split(&mut criterion);
    special(&mut criterion);
    merge(&mut criterion);
    encode(&mut criterion);
    decode(&mut criterion);
    criterion.final_summary();
}

/// The corpora that exist, as documents.
fn corpora() -> Vec<(&'static str, Vec<String>)> {
    let named = |name| corpus(name, CORPUS).map(|text| (name, documents(&text)));
    ["en", "code", "multi", "cjk"].into_iter().filter_map(named).collect()
}

fn documents(text: &str) -> Vec<String> {
    let mut documents = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (document, after) = rest.split_at(boundary(rest, DOCUMENT));
        documents.push(document.to_owned());
        rest = after;
    }
    documents
}

/// A tokenizer and the heading of its measurements.
struct Group<'a> {
    criterion: &'a mut Criterion,
    name: String,
    tokenizer: &'a Tokenizer,
    options: EncodeOptions,
    /// Whether every pass starts with a new encoder and so empty caches.
    is_first_pass: bool,
}

impl Group<'_> {
    /// Measures counting the tokens of documents, after checking that counting and encoding agree.
    fn measure(&mut self, case: &str, documents: &[String]) {
        let Self { tokenizer, options, .. } = *self;
        let count_all = |encoder: &mut Encoder<&Tokenizer>, documents: &[String]| {
            let mut count = Count::default();
            for document in documents {
                encoder.encode_into(document, options, &mut count).expect("a vocabulary");
            }
            count.0
        };
        let mut warm = tokenizer.encoder();
        for document in documents {
            let spans = tokenizer.encoder().encode_with_spans(document, options).expect("a vocabulary");
            assert_eq!(tokenizer.encode_with(document, options).as_ref(), Ok(&spans.ids), "{} {case}", self.name);
            assert_eq!(count_all(&mut warm, std::slice::from_ref(document)), spans.ids.len(), "{} {case}", self.name);
        }
        let mut group = self.criterion.benchmark_group(&self.name);
        group.throughput(Throughput::Bytes(documents.iter().map(|document| document.len() as u64).sum()));
        group.bench_with_input(BenchmarkId::from_parameter(case), documents, |bencher, documents| {
            if self.is_first_pass {
                let pass = |encoder: &mut Encoder<&Tokenizer>| count_all(encoder, black_box(documents));
                bencher.iter_batched_ref(|| tokenizer.encoder(), pass, BatchSize::PerIteration);
            } else {
                bencher.iter(|| count_all(&mut warm, black_box(documents)));
            }
        });
        group.finish();
    }
}

/// Byte-pair encoding with a vocabulary of these tokens and no merges.
fn bare(pre: &str, tokens: &[String], types: &[i32]) -> Tokenizer {
    let (data, index) = StringIndex::concatenate(tokens).expect("few tokens");
    let none = StringIndex::default();
    let definition = Definition {
        model: "gpt2",
        pre: Some(pre),
        tokens: Some(index.view(&data)),
        token_types: Some(types),
        merges: Some(none.view(b"")),
        ..Definition::default()
    };
    Tokenizer::new(&definition).expect("a vocabulary")
}

fn split(criterion: &mut Criterion) {
    let corpora = corpora();
    // The class changes at every byte, so that no run makes branches predictable.
    let mixed: String = (0..CORPUS).map(|at| char::from(b"a1. \n'Z"[at * at / 7 % 7])).collect();
    let spaces = " ".repeat(LONG_RUN) + "x";
    for pre in ["llama-bpe", "qwen2", "gpt-2", "deepseek-v3", "gpt-4o", "deepseek-llm", "default"] {
        let tokenizer = &bare(pre, &["x".to_owned()], &[1]);
        let name = format!("split/{pre}");
        let mut group = Group { criterion, name, tokenizer, options: PLAIN, is_first_pass: false };
        for (corpus, documents) in &corpora {
            group.measure(corpus, documents);
        }
        group.measure("worst: mixed", &documents(&mixed));
        group.measure("worst: spaces", std::slice::from_ref(&spaces));
    }
}

fn special(criterion: &mut Criterion) {
    // As many special texts as in the largest vocabularies.
    let texts: Vec<String> = (0..6000).map(|number| format!("<|special_{number:04}|>")).collect();
    let tokenizer = &bare("gpt-2", &texts, &vec![4; texts.len()]);
    let name = "special".to_owned();
    let mut group = Group { criterion, name, tokenizer, options: PARSED, is_first_pass: false };
    group.measure("none", &documents(&"<|no special text, though it begins like one>".repeat(CORPUS / 45)));
    group.measure("one", &documents(&texts[1234].repeat(CORPUS / 16)));
    group.measure("worst: all of them", &[texts.concat()]);
}

fn merge(criterion: &mut Criterion) {
    // Distinct words of ten letters, and the same letters without spaces.
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"etaoinshrdlucmfwypvb"[(state >> 33) as usize % 20])
    };
    let letters: String = (0..LONG_RUN).map(letter).collect();
    let words: Vec<String> = letters.as_bytes().chunks(10).map(|word| String::from_utf8_lossy(word).into()).collect();
    let words = documents(&words.join(" "));
    for vocabulary in ["bpe", "spm"] {
        let tokenizer = &embedded(vocabulary);
        let name = format!("merge/{vocabulary}");
        let mut group = Group { criterion, name, tokenizer, options: PLAIN, is_first_pass: true };
        group.measure("short", &words);
        group.measure("long", std::slice::from_ref(&letters));
        group.measure("worst: one letter", &["a".repeat(LONG_RUN)]);
    }
}

fn encode(criterion: &mut Criterion) {
    let corpora = corpora();
    for vocabulary in EMBEDDED {
        let tokenizer = &embedded(vocabulary);
        for (is_first_pass, pass) in [(true, "first pass"), (false, "second pass")] {
            let name = format!("encode/{vocabulary}/{pass}");
            let mut group = Group { criterion, name, tokenizer, options: EncodeOptions::default(), is_first_pass };
            for (corpus, documents) in &corpora {
                group.measure(corpus, documents);
            }
            group.measure("worst: one word of marks", &["e\u{301}".repeat(LONG_RUN / 3)]);
            if !is_first_pass {
                group.measure("hello", &["Hello world".to_owned()]);
            }
        }
    }
}

fn decode(criterion: &mut Criterion) {
    let corpora = corpora();
    for name in EMBEDDED {
        let tokenizer = embedded(name);
        let bytes: Vec<i32> = (0..=u8::MAX).filter_map(|byte| tokenizer.vocabulary().byte_token(byte)).collect();
        let ids = |text: &str| tokenizer.encode_with(text, PLAIN).expect("a vocabulary");
        let mut cases: Vec<_> = corpora.iter().map(|(corpus, documents)| (*corpus, ids(&documents.concat()))).collect();
        if !bytes.is_empty() {
            cases.push(("worst: bytes", bytes.repeat(LONG_RUN / bytes.len())));
        }
        let mut group = criterion.benchmark_group(format!("decode/{name}"));
        for (case, ids) in cases {
            let text = tokenizer.decode_bytes(&ids).expect("ids of this vocabulary");
            assert!(text.len() >= ids.len() / 2, "{name} {case}");
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_with_input(BenchmarkId::from_parameter(case), &ids, |bencher, ids| {
                bencher.iter(|| tokenizer.decode_bytes(black_box(ids)));
            });
        }
        group.finish();
    }
}
