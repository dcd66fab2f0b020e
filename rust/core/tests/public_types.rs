//! Checks that the public types below can be shared between threads and across panics, and implements `Debug`.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};

use ggtok_core::batch::Batch;
use ggtok_core::vocab::{
    Attributes, Definition, Family, Kind, PreTokenizer, Settings, SpecialIds, SpecialTokens, StringIndex, Strings,
    StringsError, Vocabulary,
};
use ggtok_core::{
    Count, DecodeError, DecodeOptions, EncodeError, EncodeOptions, Encoder, Error, Parts, Spans, Text, Tokenizer,
    VocabularyError, trie, unicode,
};

const fn assert<T: Send + Sync + UnwindSafe + RefUnwindSafe + Unpin + Debug>() {}

#[test]
fn public_types_are_send_sync_and_unwind_safe() {
    assert::<Attributes>();
    assert::<Batch>();
    assert::<Count>();
    assert::<DecodeOptions>();
    assert::<Definition<'_>>();
    assert::<EncodeError>();
    assert::<EncodeOptions>();
    assert::<Error>();
    assert::<Family>();
    assert::<Kind>();
    assert::<Parts>();
    assert::<PreTokenizer>();
    assert::<Encoder<&Tokenizer>>();
    assert::<Encoder<std::sync::Arc<Tokenizer>>>();
    assert::<Settings>();
    assert::<Spans>();
    assert::<SpecialIds>();
    assert::<SpecialTokens>();
    assert::<StringIndex>();
    assert::<Strings<'_>>();
    assert::<StringsError>();
    assert::<Text<'_>>();
    assert::<DecodeError>();
    assert::<Tokenizer>();
    assert::<Vocabulary>();
    assert::<VocabularyError>();
    assert::<trie::DoubleArray>();
    assert::<unicode::Flags>();
}

#[test]
fn errors_are_errors() {
    const fn assert<T: std::error::Error + Send + Sync + 'static>() {}
    assert::<DecodeError>();
    assert::<EncodeError>();
    assert::<Error>();
    assert::<StringsError>();
    assert::<VocabularyError>();
}
