//! Fails each allocation of each public call in turn: the call returns an error, and the next call works. Small
//! allocations always succeed. There is no test harness, which would allocate too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ggtok_core::batch::{DecodeBatchError, Padding, Rows, Side};
use ggtok_core::chunks::{Boundary, Segmentable, SplitOptions, Truncation};
use ggtok_core::gguf::{GgufError, LoadError, Problem};
use ggtok_core::stream::{StopStrings, StreamDecodeOptions, StreamDecoder, StreamEncoder};
use ggtok_core::{
    Count, DecodeError, DecodeOptions, EncodeError, EncodeOptions, Error, Parts, Tokenizer, VocabularyError,
};

#[allow(dead_code)]
mod common;

use common::{EMBEDDED, embedded_bytes, shared};

/// The least number of bytes of an allocation that fails: for a call with a tokenizer, and for opening one, which has
/// many small tables of a fixed size.
const SMALL: usize = 1 << 10;
const SMALL_AT_LOAD: usize = 1 << 12;

/// The system's allocator, which fails once it has been asked often enough.
struct Failing;

static LEAST: AtomicUsize = AtomicUsize::new(SMALL);
/// How many allocations succeed before one fails.
static NUM_LEFT: AtomicUsize = AtomicUsize::new(usize::MAX);
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

fn fails(size: usize) -> bool {
    let fails = size >= LEAST.load(Ordering::Relaxed) && NUM_LEFT.fetch_sub(1, Ordering::Relaxed) == 0;
    if fails {
        HAS_FAILED.store(true, Ordering::Relaxed);
    }
    fails
}

// SAFETY: the system's allocator does the work, under the contract of this one, or returns null.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if fails(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if new_size > layout.size() && fails(new_size) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// An error that may stand for running out of memory.
trait Memory: Debug {
    fn is_out_of_memory(&self) -> bool;
}

macro_rules! memory {
    ($($error:ty: $pattern:pat),+ $(,)?) => {
        $(impl Memory for $error {
            fn is_out_of_memory(&self) -> bool {
                matches!(self, $pattern)
            }
        })+
    };
}

memory!(
    Error: Error::Load(LoadError::Gguf(GgufError { problem: Problem::OutOfMemory, .. }))
        | Error::Load(LoadError::Vocabulary(VocabularyError::OutOfMemory))
        | Error::Encode(EncodeError::OutOfMemory),
    EncodeError: EncodeError::OutOfMemory,
    DecodeError: DecodeError::OutOfMemory,
    (usize, EncodeError): (0..3, EncodeError::OutOfMemory),
    DecodeBatchError<()>: DecodeBatchError::Row(0..3, DecodeError::OutOfMemory),
    ggtok_core::stream::StopStringsError: ggtok_core::stream::StopStringsError::OutOfMemory,
    ggtok_core::batch::PaddingError: ggtok_core::batch::PaddingError::TooLarge { .. },
);

/// Makes a call with a new tokenizer, and fails its first allocation, then its second, and so on, until it succeeds.
fn check<R: PartialEq + Debug, E: Memory>(name: &str, bytes: &[u8], call: impl Fn(&Tokenizer) -> Result<R, E>) {
    let expected = call(&Tokenizer::from_bytes(bytes).expect("a vocabulary")).expect(name);
    for num_before in 0.. {
        let tokenizer = Tokenizer::from_bytes(bytes).expect("a vocabulary");
        // Compiles the patterns of the vocabulary, whatever their size.
        let mut stream = StreamEncoder::new(&tokenizer, EncodeOptions::default()).expect("a stream");
        stream.push("a \u{4E2D} a", &mut Count::default()).and_then(|()| tokenizer.count("\u{4E2D}")).expect("ids");
        tokenizer.clear_cache();
        fail_one(name, num_before, &expected, || call(&tokenizer));
        assert_eq!(call(&tokenizer).expect(name), expected, "{name} after {num_before}");
        if !HAS_FAILED.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Opens a file and encodes a text, and fails the first allocation, then the second, and so on.
fn check_load(name: &str, bytes: &[u8], text: &str) {
    LEAST.store(SMALL_AT_LOAD, Ordering::Relaxed);
    let call = || Ok::<_, Error>(Tokenizer::from_bytes(bytes)?.encode(text)?);
    let expected = call().expect(name);
    let num_failed = (0..).take_while(|&num_before| {
        fail_one(name, num_before, &expected, call);
        HAS_FAILED.load(Ordering::Relaxed)
    });
    assert!(num_failed.count() > 10, "{name}");
    assert_eq!(call().expect(name), expected, "{name}");
    LEAST.store(SMALL, Ordering::Relaxed);
}

/// Makes a call of which one allocation fails, if there are as many.
fn fail_one<R: PartialEq + Debug, E: Memory>(
    name: &str,
    num_before: usize,
    expected: &R,
    call: impl FnOnce() -> Result<R, E>,
) {
    HAS_FAILED.store(false, Ordering::Relaxed);
    NUM_LEFT.store(num_before, Ordering::Relaxed);
    let result = call();
    NUM_LEFT.store(usize::MAX, Ordering::Relaxed);
    match result {
        // Some allocations are only for speed.
        Ok(result) => assert_eq!(result, *expected, "{name} {num_before}"),
        Err(error) => assert!(error.is_out_of_memory(), "{name} {num_before}: {error:?}"),
    }
}

fn main() {
    let words = "What is LoRA? \u{4E2D}\u{6587} it 's 1234\n\n'' , <s> a\u{301}! # b\n\n```\nc\n```\n";
    let text = &words.repeat(40);
    let damaged = &[text.as_bytes(), b"\xED\xA0\x80\xFF "].concat();
    let long = &"ab".repeat(3_000);
    let texts = [text, "a", text];
    let options = EncodeOptions::default().parse_special(true);
    // The kinds of which none is embedded.
    for name in ["plamo2-small", "rwkv-world", "hybriddna-gpt2", "whitespace-lower-small"] {
        match std::fs::read(shared().join("vocabs").join(name).with_extension("gguf")) {
            Ok(bytes) => check_load(name, &bytes, text),
            Err(_) => eprintln!("SKIPPED: no vocabulary {name}; set GGTOK_SHARED"),
        }
    }
    for name in EMBEDDED {
        let bytes = &embedded_bytes(name);
        check_load(name, bytes, text);
        let all = Tokenizer::from_bytes(bytes).expect("a vocabulary").encode(text).expect("ids");
        let offsets = [0, 1, 5, all.len() as i64];
        let rows = || Rows::new(&all, &offsets).expect("rows");

        check("encode", bytes, |tokenizer| tokenizer.encode_with(text, options));
        check("encode long", bytes, |tokenizer| tokenizer.encode_with(long, options));
        check("encode damaged", bytes, |tokenizer| tokenizer.encode_with(damaged, options));
        check("count", bytes, |tokenizer| tokenizer.count(text));
        check("encoder", bytes, |tokenizer| tokenizer.encoder().encode(text));
        check("spans", bytes, |tokenizer| {
            let mut spans = tokenizer.encoder().encode_with_spans(text, options)?;
            spans.to_characters(text.as_bytes());
            Ok::<_, EncodeError>((spans.ids, spans.spans))
        });
        check("parts", bytes, |tokenizer| {
            let mut parts = Parts::default();
            parts.push(text, true);
            parts.push(text, false);
            tokenizer.encoder().parts(&parts, options).or_else(|error| match error {
                EncodeError::Control { .. } => Ok(Vec::new()),
                other => Err(other),
            })
        });
        check("words", bytes, |tokenizer| {
            let mut parts = Parts::default();
            parts.push(text, true);
            tokenizer.encoder().words(&parts, options)
        });
        check("pair", bytes, |tokenizer| tokenizer.encoder().encode_pair(text, text, options));
        if name == "unigram" {
            check("n best", bytes, |tokenizer| tokenizer.encoder().n_best(text, 20, options));
        }
        check("stream", bytes, |tokenizer| {
            let (mut stream, mut ids) = (StreamEncoder::new(tokenizer, options)?, Vec::new());
            text.as_bytes().chunks(7).try_for_each(|part| stream.push(part, &mut ids))?;
            stream.finish(&mut ids).map(|()| ids)
        });

        check("decode", bytes, |tokenizer| tokenizer.decode(&all));
        let cleaned = DecodeOptions::default().clean_spaces(true);
        check("decode cleaned", bytes, |tokenizer| tokenizer.decode_with(&all, cleaned));
        check("piece", bytes, |tokenizer| tokenizer.piece(3, true).map(<[u8]>::to_vec));
        check("id of piece", bytes, |tokenizer| tokenizer.id_of_piece(b"a"));
        check("prefix", bytes, |tokenizer| tokenizer.ids_with_prefix(b"a").map(<[_]>::len));
        check("stop strings", bytes, |_| StopStrings::new([text]).map(|strings| strings.is_empty()));
        check("stream of ids", bytes, |tokenizer| {
            let stop = Arc::new(StopStrings::new([text]).map_err(|_| DecodeError::OutOfMemory)?);
            let options = StreamDecodeOptions::default().decode(cleaned).text(true).stop(stop);
            let (mut decoder, mut out) = (StreamDecoder::new(tokenizer, options), Vec::new());
            decoder.prime(&all[..4])?;
            all.iter().try_for_each(|&id| decoder.push(&[id], &mut out))?;
            decoder.finish(&mut out).map(|stopped| (stopped, out))
        });

        for threads in [1, 3] {
            check("batch", bytes, |tokenizer| tokenizer.encode_batch(&texts, options, threads));
            check("counts", bytes, |tokenizer| tokenizer.count_batch(&texts, options, threads));
            check("decoded batch", bytes, |tokenizer| {
                let mut out = Vec::new();
                let take = |next: &mut dyn FnMut() -> Option<ggtok_core::batch::DecodedRows>| {
                    while let Some(rows) = next() {
                        out.extend(rows.iter().map(<[u8]>::len));
                    }
                    Ok(())
                };
                tokenizer.decode_batch(rows(), cleaned, threads, take).map(|()| out)
            });
        }
        check("padding", bytes, |_| rows().pad(Padding { value: 0, side: Side::Left, length: None, multiple_of: 8 }));

        let boundaries = Boundary::ALL.map(|(_, boundary)| boundary).to_vec();
        check("split", bytes, |tokenizer| {
            let split = SplitOptions::new(100).overlap(20).boundaries(boundaries.clone()).prefix(b"b: ".to_vec());
            tokenizer.encoder().split(&Segmentable::new(text), split, options)
        });
        check("split damaged", bytes, |tokenizer| {
            tokenizer.encoder().split(&Segmentable::of_bytes(damaged), SplitOptions::new(100), options)
        });
        for side in [Truncation::Left, Truncation::Middle, Truncation::Right] {
            check("truncate", bytes, |tokenizer| {
                tokenizer.encoder().truncate(&Segmentable::of_bytes(damaged), 50, side, options)
            });
        }
    }
}
