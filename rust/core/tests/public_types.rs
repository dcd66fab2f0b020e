//! Checks that every public type can be shared between threads and across panics, and implements `Debug`.

use std::fmt::Debug;
use std::panic::{RefUnwindSafe, UnwindSafe};

use ggtok_core::{
    Attributes, Batch, Count, DecodeOptions, Definition, EncodeError, EncodeOptions, Family, Kind, Parts, PreTokenizer,
    Scratch, Settings, Spans, SpecialIds, SpecialTokens, StringIndex, Strings, StringsError, Text, TokenIndexError,
    Tokenizer, Vocabulary, VocabularyError, trie, unicode,
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
    assert::<Family>();
    assert::<Kind>();
    assert::<Parts>();
    assert::<PreTokenizer>();
    assert::<Scratch>();
    assert::<Settings>();
    assert::<Spans>();
    assert::<SpecialIds>();
    assert::<SpecialTokens>();
    assert::<StringIndex>();
    assert::<Strings<'_>>();
    assert::<StringsError>();
    assert::<Text<'_>>();
    assert::<TokenIndexError>();
    assert::<Tokenizer>();
    assert::<Vocabulary>();
    assert::<VocabularyError>();
    assert::<trie::DoubleArray>();
    assert::<unicode::Flags>();
}

#[test]
fn errors_are_errors() {
    const fn assert<T: std::error::Error + Send + Sync + 'static>() {}
    assert::<EncodeError>();
    assert::<StringsError>();
    assert::<TokenIndexError>();
    assert::<VocabularyError>();
}
