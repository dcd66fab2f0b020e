//! Runs out of memory in a separate process, whose address space is limited.

#![cfg(target_os = "linux")]

use std::process::Command;

use ggtok_core::batch::{Batch, DecodeBatchError, Rows};
use ggtok_core::chunks::{Segmentable, SplitOptions};
use ggtok_core::{DecodeError, EncodeError, EncodeOptions, Parts};

#[allow(dead_code)]
mod common;

/// Set in the child.
const CHILD: &str = "GGTOK_OUT_OF_MEMORY";
/// The limit of the address space, in kilobytes, and a text of more than half of it.
const LIMIT: usize = 400 << 10;
const LONG: usize = 220 << 20;

#[test]
fn an_allocation_that_fails_is_an_error() {
    if std::env::var_os(CHILD).is_some() {
        return run_out();
    }
    let program = std::env::current_exe().expect("this program");
    let line = format!("ulimit -v {LIMIT} && exec \"$0\" --nocapture --test-threads 1");
    let child = Command::new("sh").arg("-c").arg(line).arg(program).env(CHILD, "1").output().expect("a shell");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

fn run_out() {
    let (tokenizer, options) = (common::embedded("spm"), EncodeOptions::default());
    let expected = tokenizer.encode("a b").expect("ids");
    let mut encoder = tokenizer.encoder();
    let text = "a ".repeat(LONG / 2);
    for _ in 0..2 {
        assert_eq!(encoder.encode(&text), Err(EncodeError::OutOfMemory));
        assert_eq!(encoder.encode("a b").as_ref(), Ok(&expected));
    }
    assert_eq!(tokenizer.count(&text), Err(EncodeError::OutOfMemory));
    assert_eq!(EncodeError::OutOfMemory.to_string(), "out of memory: there is not enough for this text");
    let split = SplitOptions::new(100);
    assert_eq!(encoder.split(&Segmentable::new(&text), split, options), Err(EncodeError::OutOfMemory));
    let mut parts = Parts::default();
    parts.push(&text, true);
    assert_eq!(encoder.parts(&parts, options), Err(EncodeError::OutOfMemory));
    assert_eq!(tokenizer.encode_batch(&["a", &text], options, 2), Err((1, EncodeError::OutOfMemory)));
    drop(text);
    let len = |id: &&i32| tokenizer.piece(**id, true).map_or(0, <[u8]>::len);
    let long = *tokenizer.ids_with_prefix(b"").expect("memory").iter().max_by_key(len).expect("a token");
    let piece = tokenizer.piece(long, true).expect("a piece");
    let ids = vec![long; (LIMIT << 10) / piece.len()];
    assert_eq!(tokenizer.decode(&ids), Err(DecodeError::OutOfMemory));
    let offsets = [0, ids.len() as i64];
    let rows = Rows::new(&ids, &offsets).expect("a row");
    let take = |next: &mut dyn FnMut() -> Option<_>| {
        while next().is_some() {}
        Ok::<(), ()>(())
    };
    let failed = DecodeBatchError::Row(0, DecodeError::OutOfMemory);
    assert_eq!(tokenizer.decode_batch(rows, Default::default(), 1, take), Err(failed));
    assert_eq!(tokenizer.encode("a b"), Ok(expected));
    assert_eq!(tokenizer.encode_batch(&[""; 0], options, 1), Ok(Batch { ids: Vec::new(), offsets: vec![0] }));
}
