//! Checks the memory that a tokenizer reports with an allocator that counts. It has no test harness, which allocates in a
//! thread beside that of the test.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use ggtok_core::stream::StreamEncoder;
use ggtok_core::{Count, EncodeOptions, Tokenizer};

#[allow(dead_code)]
mod common;

use common::{EMBEDDED, embedded_bytes, shared};

/// The system's allocator, which counts the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator does the work, under the contract of this one.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Compares what a tokenizer reports with what it takes.
fn check(name: &str, bytes: &[u8]) {
    let before = IN_USE.load(Ordering::Relaxed);
    let Ok(tokenizer) = Tokenizer::from_bytes(bytes) else { return };
    let compare = |when: &str| {
        tokenizer.clear_cache();
        let (used, reported) = (IN_USE.load(Ordering::Relaxed) - before, tokenizer.heap_bytes());
        // The size of a group of buckets depends on the processor.
        assert!(used.abs_diff(reported) < 64, "{name} {when}: {used} bytes are in use, {reported} are reported");
    };
    compare("as it is opened");

    // Tables that are built on first use.
    let text = "What is LoRA? 中文 1234\n\n    <|im_end|>";
    let _ = tokenizer.encoder().encode_with_spans(text, EncodeOptions::default());
    let mut stream = StreamEncoder::new(&tokenizer, EncodeOptions::default()).expect("no special token is missing");
    for part in text.split_inclusive(' ') {
        stream.push(part, &mut Count::default()).expect("a short text");
    }
    drop(stream);
    assert!(
        tokenizer.id_of_piece(b"a").expect("memory").is_some_and(|id| tokenizer.decode_bytes(&[id]).is_ok()),
        "{name}"
    );
    compare("in use");
}

fn main() {
    for name in EMBEDDED {
        check(name, &embedded_bytes(name));
    }
    let Ok(folder) = fs::read_dir(shared().join("vocabs")) else { return };
    for path in folder.flatten().map(|entry| entry.path()) {
        check(&path.to_string_lossy(), &fs::read(&path).unwrap_or_default());
    }
}
