//! Checks that different calls agree on the embedded vocabularies: one text or many, ids, spans or a count, with cold
//! and warm caches.

use std::sync::LazyLock;

use ggtok_core::{
    Count, DecodeBatchError, DecodeOptions, EncodeOptions, Ends, Rows, Scratch, Segmentable, Sink, Spans, Text,
    Tokenizer, Truncation,
};
use proptest::prelude::*;

#[allow(dead_code)]
mod common;

use common::{EMBEDDED, embedded};

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false, continues: false };

static TOKENIZERS: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| EMBEDDED.iter().map(|name| embedded(name)).collect());

fn with_scratch<S: Sink + Default>(
    tokenizer: &Tokenizer,
    text: Text<'_>,
    options: EncodeOptions,
    scratch: &mut Scratch,
) -> S {
    let mut sink = S::default();
    tokenizer.encode_into(text, options, scratch, &mut sink).expect("a vocabulary that needs nothing");
    sink
}

/// All kinds of input: prose, code, scripts, special tokens, runs, and bytes that are not UTF-8.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let thing = prop_oneof![
        6 => prop::sample::select(vec![
            "the ", " of", "What is LoRA?", "don't", "\n\n", "    ", "1234", "é", "e\u{301}", "中文", "カタカナ", "한국어", "العربية",
            "ﬁ", "½", "😀", "\u{3000}", "\u{AD}", "<|im_end|>", "<s>", "</s>", "[SEP]", "<unk>", "▁", "\u{378}", "\0", "if x[0] == 'y':",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        2 => any::<char>().prop_map(|char| char.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ];
    let times = prop_oneof![8 => 1..2_usize, 1 => 2..80_usize];
    let stretch = (thing, times).prop_map(|(thing, times)| thing.repeat(times));
    prop::collection::vec(stretch, 0..30).prop_map(|stretches| stretches.concat())
}

fn check_one(tokenizer: &Tokenizer, bytes: &[u8], options: EncodeOptions, warm: &mut Scratch) {
    let text = Text::Bytes(bytes);
    let ids = tokenizer.encode(bytes, options).expect("a vocabulary that needs nothing");
    for _ in 0..2 {
        assert_eq!(with_scratch::<Vec<i32>>(tokenizer, text, options, warm), ids);
        let spans: Spans = with_scratch(tokenizer, text, options, warm);
        assert_eq!(spans.ids, ids);
        assert!(spans.spans.iter().all(|span| span.start <= span.end && span.end <= bytes.len()));
        assert_eq!(with_scratch::<Count>(tokenizer, text, options, warm).0, ids.len());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(tokenizer.encode(text, options).as_ref(), Ok(&ids));
    }
    assert!(ids.iter().all(|&id| tokenizer.check_id(id).is_ok()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_way_gives_the_same_ids(
        texts in prop::collection::vec(any_bytes(), 1..8),
        add_special: bool,
        parse_special: bool,
    ) {
        let options = EncodeOptions { add_special, parse_special, continues: false };
        for tokenizer in TOKENIZERS.iter() {
            let mut warm = Scratch::default();
            for text in &texts {
                check_one(tokenizer, text, options, &mut warm);
            }
        }
    }
}

#[test]
fn many_texts_are_as_one_by_one() {
    // Sizes around what a thread takes at a time; empty texts first, last and in between.
    let words = "It was the best of times, it was the worst of times; ".repeat(2500);
    let lens = [0, 5, 1 << 16, 0, 0, (1 << 16) - 1, 1, 130_000, 17, 40_000, 40_000, 40_000, 0];
    let texts: Vec<&str> = lens.iter().map(|&len| &words[..len]).collect();
    for (name, tokenizer) in EMBEDDED.iter().zip(TOKENIZERS.iter()) {
        for options in [PLAIN, EncodeOptions::default()] {
            let single: Vec<Vec<i32>> =
                texts.iter().map(|&text| tokenizer.encode(text, options).expect("ids")).collect();
            let handed: Vec<Text<'_>> = texts.iter().map(|&text| text.into()).collect();
            for threads in [0, 1, 2, 3, 16] {
                let batch = tokenizer.encode_batch(&handed, options, threads).expect("ids");
                assert_eq!(batch.ids, single.concat(), "{name}, {threads} threads");
                assert_eq!(batch.offsets.len(), texts.len() + 1);
                let lens: Vec<usize> = batch.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).collect();
                assert_eq!(lens, single.iter().map(Vec::len).collect::<Vec<_>>());
                assert_eq!(tokenizer.count_batch(&handed, options, threads).expect("counts"), lens);
            }
        }
        let nothing = tokenizer.encode_batch(&[], PLAIN, 4).expect("nothing");
        assert_eq!((nothing.ids.len(), &nothing.offsets[..]), (0, &[0][..]));
    }
}

#[test]
fn decoded_rows_are_taken_in_order_until_one_fails() {
    let tokenizer = &TOKENIZERS[1];
    let size = tokenizer.vocabulary().len() as i32;
    let mut ids: Vec<i32> = (0..40_000).map(|place| place % 7000 % size).collect();
    let offsets: Vec<i64> = (0..=40_000).collect();
    let decode = |ids: &[i32], threads, most| {
        let mut texts = Vec::new();
        let rows = Rows::new(ids, &offsets).expect("one id per row");
        let result = tokenizer.decode_batch(rows, DecodeOptions::default(), threads, |next| {
            while let Some(rows) = next() {
                texts.extend(rows.iter().map(<[u8]>::to_vec));
                if texts.len() > most {
                    return Err("enough");
                }
            }
            Ok(())
        });
        (result, texts)
    };
    let expected: Vec<Vec<u8>> =
        ids.iter().map(|&id| tokenizer.decode(&[id], DecodeOptions::default()).expect("a token").to_vec()).collect();
    for threads in [1, 2, 4] {
        assert_eq!(decode(&ids, threads, usize::MAX), (Ok(()), expected.clone()));
        assert_eq!(decode(&ids, threads, 9000).0, Err(DecodeBatchError::NotTaken("enough")));
    }
    (ids[30_000], ids[35_000]) = (size, size);
    for threads in [1, 2, 4] {
        let (result, texts) = decode(&ids, threads, usize::MAX);
        assert!(matches!(result, Err(DecodeBatchError::Row(30_000, _))), "{result:?}");
        assert_eq!(texts, expected[..texts.len()]);
    }
}

#[test]
fn a_scratch_space_of_another_vocabulary_is_replaced() {
    let mut scratch = Scratch::default();
    for _ in 0..2 {
        for tokenizer in TOKENIZERS.iter() {
            let text = "What is LoRA?";
            let ids: Vec<i32> = with_scratch(tokenizer, text.into(), PLAIN, &mut scratch);
            assert_eq!(tokenizer.encode(text, PLAIN).as_ref(), Ok(&ids));
        }
    }
}

#[test]
fn memory_is_counted() {
    for (name, tokenizer) in EMBEDDED.iter().zip(TOKENIZERS.iter()) {
        let vocabulary = tokenizer.vocabulary();
        let texts: usize = (0..vocabulary.len() as i32).map(|id| vocabulary.text(id).len()).sum();
        // At least the texts themselves; at most a few hundred bytes per token.
        assert!(vocabulary.heap_bytes() >= texts, "{name}");
        assert!(tokenizer.heap_bytes() > vocabulary.heap_bytes(), "{name}");
        assert!(tokenizer.heap_bytes() < 512 * vocabulary.len(), "{name}: {}", tokenizer.heap_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 12 } else { 200 }))]
    #[test]
    fn the_ends_of_a_text_are_truncated_as_all_of_it(
        bytes in any_bytes(),
        more in any_bytes(),
        max_tokens in 2..200_usize,
        parse_special: bool,
    ) {
        let (text, more) = (String::from_utf8_lossy(&bytes), String::from_utf8_lossy(&more));
        let text = [text.repeat(1 + 20_000 / (1 + text.len())), more.repeat(1 + 20_000 / (1 + more.len()))].concat();
        let (text, mut scratch) = (Segmentable::new(&text), Scratch::default());
        let options = EncodeOptions { parse_special, ..EncodeOptions::default() };
        for tokenizer in &*TOKENIZERS {
            for side in [Truncation::Right, Truncation::Left, Truncation::Middle] {
                let whole = Ends { head: text, tail: text, is_whole: true };
                let expected = tokenizer.truncate_ends(&whole, max_tokens, side, options, &mut scratch);
                let expected = expected.expect("a large budget").expect("a whole text");
                let found = tokenizer.truncate(&text, max_tokens, side, options, &mut scratch).expect("a large budget");
                prop_assert_eq!((found.start, found.end), expected);
            }
        }
    }
}
