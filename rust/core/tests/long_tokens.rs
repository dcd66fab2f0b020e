//! Vocabularies that are made against their texts: a long token starts at every place of a text and is never completed.
//! Every kind takes linear time, with tokens that are searched before all others and with normal ones.

use ggtok_core::stream::StreamEncoder;
use ggtok_core::vocab::{Definition, SpecialIds, StringIndex};
use ggtok_core::{EncodeOptions, TokenId, Tokenizer};

const PLAIN: EncodeOptions = EncodeOptions::new().add_special(false).parse_special(true);
const NORMAL: i32 = 1;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// As many bytes as no algorithm reads again for each of them: a search from every place would take 10^11 steps.
const LEN: usize = 400_000;

/// A vocabulary of `model` with `a`, `b` and what the model needs, and two tokens that are a run of `a` with a `b`
/// after or before it.
fn tokenizer(model: &'static str, kind: i32, run: usize) -> Tokenizer {
    let spelled = |text: &str| text.replace(' ', if model == "rwkv" { " " } else { "\u{2581}" });
    let mut tokens: Vec<(String, i32, f32)> = Vec::new();
    for (text, kind) in [("<unk>", 2), ("\n", NORMAL), (" ", NORMAL), ("a", NORMAL), ("b", NORMAL), (" a", NORMAL)] {
        tokens.push((spelled(text), kind, -1.0));
    }
    for byte in (0..=u8::MAX).filter(|_| matches!(model, "llama" | "plamo2")) {
        tokens.push((format!("<0x{byte:02X}>"), BYTE, 0.0));
    }
    tokens.push((format!("{}b", "a".repeat(run)), kind, -2.0));
    tokens.push((format!("b{}", "a".repeat(run)), kind, -2.0));
    let texts: Vec<&str> = tokens.iter().map(|(text, ..)| text.as_str()).collect();
    let (data, index) = StringIndex::concatenate(&texts).expect("few tokens");
    let (none, no_merges) = StringIndex::concatenate::<&str>(&[]).expect("no merges");
    let scores: Vec<f32> = tokens.iter().map(|&(.., score)| score).collect();
    let types: Vec<i32> = tokens.iter().map(|&(_, kind, _)| kind).collect();
    let definition = Definition {
        model,
        pre: Some("default"),
        tokens: Some(index.view(&data)),
        scores: Some(&scores),
        token_types: Some(&types),
        merges: Some(no_merges.view(&none)),
        special: SpecialIds { unk: Some(0), ..SpecialIds::default() },
        add_space_prefix: Some(false),
        ..Definition::default()
    };
    Tokenizer::new(&definition).unwrap_or_else(|error| panic!("{model}: {error}"))
}

fn streamed(tokenizer: &Tokenizer, text: &str, part: usize) -> Vec<TokenId> {
    let mut ids = Vec::new();
    let mut encoder = StreamEncoder::new(tokenizer, PLAIN).expect("a vocabulary");
    for part in text.as_bytes().chunks(part) {
        encoder.push(part, &mut ids).expect("a text");
    }
    encoder.finish(&mut ids).expect("a text");
    ids
}

#[test]
fn a_long_token_that_is_never_completed_costs_nothing() {
    for model in ["llama", "gpt2", "bert", "t5", "rwkv", "plamo2"] {
        for kind in [NORMAL, USER_DEFINED] {
            let tokenizer = tokenizer(model, kind, LEN / 4);
            let id = |text: &str| tokenizer.vocabulary().id(text.as_bytes()).expect("a token");
            let (a, long) = (id("a"), id(&format!("{}b", "a".repeat(LEN / 4))));
            // A text without the long token, and one that has it at its end.
            let run = "a".repeat(LEN);
            let cases = [(run.clone(), LEN, false), (format!("{run}b"), LEN - LEN / 4 + 1, true)];
            for (text, num_tokens, has_long) in cases {
                let mut encoder = tokenizer.encoder();
                let ids = encoder.encode_with(&text, PLAIN).expect("ids");
                assert_eq!(streamed(&tokenizer, &text, 10_000), ids, "{model} {kind}");
                let spans = encoder.encode_with_spans(&text, PLAIN).expect("ids");
                assert_eq!(spans.ids, ids, "{model} {kind}");
                // A normal token of SPM and BPE must be merged, greedy kinds take `a` before they get there, and the
                // word of WordPiece starts with another token.
                let finds_all = kind == USER_DEFINED || matches!(model, "t5" | "plamo2");
                if finds_all {
                    assert_eq!((ids.len(), ids[ids.len() - 1] == long), (num_tokens, has_long), "{model} {kind}");
                    assert!(ids[..ids.len() - 1].iter().skip(1).all(|&id| id == a), "{model} {kind}");
                }
                assert_eq!(encoder.count_with(&text, PLAIN), Ok(ids.len()));
            }
        }
    }
}
