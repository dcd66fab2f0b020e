//! Checks that different calls agree on the embedded vocabularies: one text or many, ids, spans or a count, with cold
//! and warm caches.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use ggtok_core::batch::{DecodeBatchError, Rows};
use ggtok_core::chunks::{Ends, Segmentable, Truncation};
use ggtok_core::{AsText, DecodeError, DecodeOptions, EncodeOptions, Encoder, Sink, Spans, Tokenizer};
use proptest::prelude::*;

#[allow(dead_code)]
mod common;

use common::{EMBEDDED, embedded};

const PLAIN: EncodeOptions = EncodeOptions::new().add_special(false);

static TOKENIZERS: LazyLock<Vec<Tokenizer>> = LazyLock::new(|| EMBEDDED.iter().map(|name| embedded(name)).collect());

fn encode<S: Sink + Default>(encoder: &mut Encoder<&Tokenizer>, text: impl AsText, options: EncodeOptions) -> S {
    let mut sink = S::default();
    encoder.encode_into(text, options, &mut sink).expect("a vocabulary that needs nothing");
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

fn check_one(warm: &mut Encoder<&Tokenizer>, bytes: &[u8], options: EncodeOptions) {
    let tokenizer = *warm.tokenizer();
    let ids = tokenizer.encoder().encode_with(bytes, options).expect("a vocabulary that needs nothing");
    for _ in 0..2 {
        assert_eq!(encode::<Vec<i32>>(warm, bytes, options), ids);
        let spans: Spans = encode(warm, bytes, options);
        assert_eq!(spans.ids, ids);
        assert!(spans.spans.iter().all(|span| span.start <= span.end && span.end <= bytes.len()));
        assert_eq!(warm.count_with(bytes, options), Ok(ids.len()));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert_eq!(warm.encode_with(text, options).as_ref(), Ok(&ids));
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
        let options = EncodeOptions::new().add_special(add_special).parse_special(parse_special);
        for tokenizer in TOKENIZERS.iter() {
            let mut warm = tokenizer.encoder();
            for text in &texts {
                check_one(&mut warm, text, options);
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
                texts.iter().map(|&text| tokenizer.encode_with(text, options).expect("ids")).collect();
            for threads in [0, 1, 2, 3, 16] {
                let batch = tokenizer.encode_batch(&texts, options, threads).expect("ids");
                assert_eq!(batch.ids, single.concat(), "{name}, {threads} threads");
                assert_eq!(batch.offsets.len(), texts.len() + 1);
                let lens: Vec<usize> = batch.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).collect();
                assert_eq!(lens, single.iter().map(Vec::len).collect::<Vec<_>>());
                assert_eq!(tokenizer.count_batch(&texts, options, threads).expect("counts"), lens);
            }
        }
        let nothing = tokenizer.encode_batch(&[""; 0], PLAIN, 4).expect("nothing");
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
    let expected: Vec<Vec<u8>> = ids.iter().map(|&id| tokenizer.decode_bytes(&[id]).expect("a token")).collect();
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
fn any_text_can_be_encoded_and_decoded_where_possible() {
    let tokenizer = &TOKENIZERS[1];
    let (string, text) = ("é ü".to_owned(), "é ü");
    let cow = Cow::Borrowed(text);
    let ids = tokenizer.encode(text).expect("ids");
    let all = [
        tokenizer.encode(&string),
        tokenizer.encode(string),
        tokenizer.encode(&cow),
        tokenizer.encode(cow),
        tokenizer.encode(text.as_bytes()),
        tokenizer.encode(text.as_bytes().to_vec()),
        tokenizer.encode(b"\xC3\xA9 \xC3\xBC"),
    ];
    assert!(all.iter().all(|found| found.as_ref() == Ok(&ids)));
    assert_eq!(tokenizer.decode(&ids).as_deref(), Ok(text));

    let half =
        [&b"a"[..], b"\xC3"].map(|piece| tokenizer.id_of_piece(piece).expect("memory").expect("a byte is a token"));
    assert_eq!(tokenizer.decode(&half), Err(DecodeError::NotUtf8 { at: 1 }));
    assert_eq!(tokenizer.decode_bytes(&half).as_deref(), Ok(&b"a\xC3"[..]));
    let size = tokenizer.vocabulary().len();
    for id in [-1, size as i32, i32::MAX] {
        assert_eq!(tokenizer.decode(&[ids[0], id]), Err(DecodeError::UnknownId { id: id.into(), size }));
    }
}

#[test]
fn an_encoder_keeps_a_shared_tokenizer_and_moves_between_threads() {
    let tokenizer = Arc::new(embedded("bpe"));
    let expected = tokenizer.encode("What is LoRA?").expect("ids");
    let mut encoder = Encoder::new(Arc::clone(&tokenizer));
    drop(tokenizer);
    let ids = std::thread::spawn(move || (encoder.encode("What is LoRA?"), encoder.count("What is LoRA?")));
    assert_eq!(ids.join().expect("no panic"), (Ok(expected.clone()), Ok(expected.len())));
}

fn check_ends(text: &str, max_tokens: usize, options: EncodeOptions) {
    let text = Segmentable::new(text);
    for tokenizer in &*TOKENIZERS {
        for side in [Truncation::Right, Truncation::Left, Truncation::Middle] {
            let whole = Ends { head: text.clone(), tail: text.clone(), is_whole: true };
            let expected = tokenizer.encoder().truncate_ends(&whole, max_tokens, side, options);
            let expected = expected.expect("a large budget").expect("a whole text");
            let found = tokenizer.encoder().truncate(&text, max_tokens, side, options).expect("a large budget");
            assert_eq!((found.start, found.end), expected, "{side:?}");
        }
    }
}

#[test]
fn a_long_word_that_is_unknown_is_one_token_at_the_end_of_a_text() {
    let word = format!("\u{FB01}{}", "1234".repeat(10_000));
    for before in ["", "a word, ", &"some words ".repeat(2000)] {
        for max_tokens in [3, 4, 10] {
            check_ends(&format!("{before}{word}"), max_tokens, EncodeOptions::new());
        }
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
        check_ends(&text, max_tokens, EncodeOptions::new().parse_special(parse_special));
    }
}
