//! Properties that must hold for any vocabulary and any text.

use std::ops::ControlFlow;
use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use ggtok_core::chunks::{Boundary, Segmentable, SplitOptions, Truncation};
use ggtok_core::stream::{StopStrings, StreamDecodeOptions, StreamDecoder, StreamEncoder};
use ggtok_core::vocab::PRE_TOKENIZERS;
use ggtok_core::{DecodeOptions, EncodeOptions, Encoder, Spans, TokenId, Tokenizer, gguf};
use ggtok_explain::{ExplainError, Explainer};
use ggtok_train::{
    BpeSettings, BpeTrainer, NormalizationRules, Phase, SpmSettings, SpmTrainer, TrainError, Trained, UnigramSettings,
    UnigramTrainer, WordPieceSettings, WordPieceTrainer, normalizer,
};

use super::memory::measured;
use super::texts;
use super::vocabulary::{self, Declared, spelled};

const PLAIN: EncodeOptions = EncodeOptions::new().add_special(false);

fn options(u: &mut Unstructured<'_>) -> Result<EncodeOptions> {
    let [add_special, parse_special, continues] = u.arbitrary()?;
    Ok(EncodeOptions::new().add_special(add_special).parse_special(parse_special).continues(continues))
}

/// Ids, spans and counts agree with each other and with a trace.
fn encodes(warm: &mut Encoder<&Tokenizer>, explainer: &Explainer, text: &[u8], options: EncodeOptions) {
    let mut cold = warm.tokenizer().encoder();
    let ids = cold.encode_with(text, options);
    let spans = cold.encode_with_spans(text, options);
    match explainer.explain(text, options) {
        Ok(trace) => {
            let traced: Vec<TokenId> = trace.tokens.iter().map(|token| token.id).collect();
            assert_eq!(ids.as_ref(), Ok(&traced), "ids");
            let traced: Vec<_> = trace.tokens.iter().map(|token| token.start..token.end).collect();
            assert_eq!(spans.as_ref().map(|spans| &spans.spans), Ok(&traced), "spans");
        }
        Err(ExplainError::Encode(error)) => assert_eq!(ids, Err(error)),
        Err(_) => {}
    }
    let Ok(ids) = ids else { return };
    let Spans { ids: with_spans, spans } = spans.expect("ids, so spans");
    assert_eq!(with_spans, ids, "ids with spans");
    assert!(spans.iter().all(|span| span.start <= span.end && span.end <= text.len()), "{spans:?}");
    for _ in 0..2 {
        let (again, count) = (warm.encode_with(text, options), warm.count_with(text, options));
        assert_eq!((again.as_ref(), count), (Ok(&ids), Ok(ids.len())), "with a used encoder");
    }
    if let Ok(text) = std::str::from_utf8(text) {
        assert_eq!(warm.encode_with(text, options).as_ref(), Ok(&ids), "as UTF-8");
    }
}

/// Encodes texts with a vocabulary of one kind.
pub fn encode(u: &mut Unstructured<'_>, declare: fn(&mut Unstructured<'_>) -> Result<Declared>) -> Result<()> {
    let Some((tokenizer, explainer)) = declare(u)?.open() else { return Ok(()) };
    let mut warm = tokenizer.encoder();
    for _ in 0..3 {
        let text = texts::bytes(u, 30)?;
        encodes(&mut warm, &explainer, &text, options(u)?);
    }
    Ok(())
}

/// Opens the bytes of a file.
pub fn gguf(u: &mut Unstructured<'_>) -> Result<()> {
    let data = u.bytes(u.len())?;
    let header = gguf::read_header(data).expect("bytes can be read");
    let (whole, from_header) = (Tokenizer::from_bytes(data), Tokenizer::from_bytes(&header));
    assert_eq!(whole.as_ref().err().map(ToString::to_string), from_header.err().map(|error| error.to_string()));
    let Ok(tokenizer) = whole else { return Ok(()) };
    // What a file only counts takes no memory.
    let (_, needed, _) =
        measured(|| (tokenizer.piece(0, true).is_ok(), tokenizer.ids_with_prefix(b"a").map(<[_]>::len)));
    assert!(needed as usize <= 100 * data.len() + (1 << 26), "{needed} bytes for {}", data.len());
    let text = "What is LoRA? <s> a\u{301}\n\u{FFFD}ab";
    if let Ok(ids) = tokenizer.encode(text) {
        let known: Vec<TokenId> = ids.into_iter().filter(|&id| tokenizer.check_id(id).is_ok()).collect();
        assert!(tokenizer.decode_bytes(&known).is_ok());
    }
    Ok(())
}

/// A stream of ids gives what decoding all ids gives, and stops at a stop string that is really there.
pub fn decode(u: &mut Unstructured<'_>) -> Result<()> {
    let Some((tokenizer, _)) = vocabulary::any(u)?.open() else { return Ok(()) };
    let [remove_special, unparse_special, clean_spaces, is_text] = u.arbitrary()?;
    let decode = DecodeOptions::default()
        .remove_special(remove_special)
        .unparse_special(unparse_special)
        .clean_spaces(clean_spaces);
    let size = tokenizer.vocabulary().len() as TokenId;
    let mut ids = Vec::new();
    for _ in 0..u.int_in_range(0..=40)? {
        ids.push(u.int_in_range(-1..=size)?);
    }
    let Ok(mut whole) = tokenizer.decode_with(&ids, decode) else {
        assert!(ids.iter().any(|&id| tokenizer.check_id(id).is_err()));
        return Ok(());
    };
    if is_text {
        whole = String::from_utf8_lossy(&whole).into_owned().into_bytes();
    }
    let mut strings = Vec::new();
    for _ in 0..u.int_in_range(0..=3)? {
        strings.push(texts::token(u)?);
    }
    let stop = Arc::new(StopStrings::new(&strings).expect("no empty string"));
    let mut decoder =
        StreamDecoder::new(&*tokenizer, StreamDecodeOptions::default().decode(decode).text(is_text).stop(stop));
    let (mut out, mut rest) = (Vec::new(), &ids[..]);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(u.int_in_range(1..=rest.len())?);
        decoder.push(part, &mut out).expect("ids that exist");
        rest = after;
    }
    match decoder.finish(&mut out).expect("enough memory") {
        Some(index) => {
            assert!(whole.starts_with(&out), "{out:?} of {whole:?}");
            assert!(whole[out.len()..].starts_with(&strings[index]), "no {:?} after {out:?}", strings[index]);
        }
        None => {
            assert_eq!(out, whole);
            let found = strings.iter().find(|string| whole.windows(string.len()).any(|window| window == &string[..]));
            assert_eq!(found, None, "in {whole:?}");
        }
    }
    Ok(())
}

/// A stream of text gives the ids of the whole.
pub fn stream(u: &mut Unstructured<'_>) -> Result<()> {
    let Some((tokenizer, _)) = vocabulary::any(u)?.open() else { return Ok(()) };
    let (text, mut options) = (texts::bytes(u, 60)?, options(u)?);
    options.continues = false;
    let expected = tokenizer.encode_with(&text, options);
    let mut encoder = match StreamEncoder::new(&*tokenizer, options) {
        Ok(encoder) => encoder,
        Err(error) => {
            assert_eq!(expected, Err(error));
            return Ok(());
        }
    };
    let (mut ids, mut rest) = (Vec::new(), &text[..]);
    while !rest.is_empty() {
        let (part, after) = rest.split_at(u.int_in_range(1..=rest.len())?);
        encoder.push(part, &mut ids).expect("a short text");
        rest = after;
    }
    encoder.finish(&mut ids).expect("a short text");
    assert_eq!(Ok(ids), expected);
    Ok(())
}

/// Pieces are those that a regex engine finds. All neighbours merge, except where the pre-tokenizer separates them.
pub fn patterns(u: &mut Unstructured<'_>) -> Result<()> {
    let row = u.choose(PRE_TOKENIZERS)?;
    if !row.family.byte_encode {
        return Ok(());
    }
    let text = texts::utf8(u, 40)?;
    let mut declared = Declared { model: "gpt2", pre: Some(row.name), ..Declared::default() };
    declared.tokens = (0..=255).map(spelled).collect();
    let mut last = text.as_bytes();
    while let [left, rest @ ..] = last {
        if let Some(right) = rest.first() {
            let (left, right) = (spelled(*left), spelled(*right));
            let both = [&left[..], &right].concat();
            if !declared.tokens.contains(&both) {
                declared.merges.push([&left[..], b" ", &right].concat());
                declared.tokens.push(both);
            }
        }
        last = rest;
    }
    declared.types = vec![1; declared.tokens.len()];
    let Some((tokenizer, explainer)) = declared.open() else { return Ok(()) };
    encodes(&mut tokenizer.encoder(), &explainer, text.as_bytes(), PLAIN);
    let ids = tokenizer.encode_with(&text, PLAIN).expect("ids");
    assert_eq!(tokenizer.decode(&ids).as_deref(), Ok(&*text), "round trip");
    Ok(())
}

/// Chunks and truncated texts keep their guarantees.
pub fn chunks(u: &mut Unstructured<'_>) -> Result<()> {
    let Some((tokenizer, _)) = vocabulary::any(u)?.open() else { return Ok(()) };
    let (text, mut options, mut encoder) = (texts::utf8(u, 60)?, options(u)?, tokenizer.encoder());
    options.continues = false;
    let (max_tokens, overlap) = (u.int_in_range(0..=20)?, u.int_in_range(0..=4)?);
    let all = Boundary::ALL.map(|(_, kind)| kind);
    let boundaries = all[u.int_in_range(0..=all.len())?..].to_vec();
    let segmentable = Segmentable::new(&text);

    let split = SplitOptions::new(max_tokens).overlap(overlap).boundaries(boundaries);
    if let Ok(chunks) = encoder.split(&segmentable, split, options) {
        let mut covered = 0;
        for chunk in &chunks {
            assert!(chunk.start <= covered && chunk.end > covered, "{chunks:?}");
            assert!(overlap > 0 || chunk.start == covered, "{chunks:?}");
            let count = encoder.count_with(&text[chunk.start..chunk.end], options);
            assert_eq!(count, Ok(chunk.count));
            assert!(chunk.count <= max_tokens, "{chunks:?}");
            covered = chunk.end;
        }
        assert_eq!(covered, text.len());
    }
    for side in [Truncation::Right, Truncation::Left, Truncation::Middle] {
        if let Ok(removed) = encoder.truncate(&segmentable, max_tokens, side, options) {
            let kept = format!("{}{}", &text[..removed.start], &text[removed.end..]);
            let count = encoder.count_with(&kept, options).expect("a text that was counted");
            assert!(count <= max_tokens, "{side:?}: {removed:?} of {text:?} leaves {count} tokens");
        }
    }
    Ok(())
}

fn go_on(_: Phase, _: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Trains with one of four trainers.
fn trained(
    kind: usize,
    corpus: &[&str],
    vocab_size: usize,
    threads: usize,
) -> std::result::Result<Trained, TrainError> {
    match kind {
        0 => {
            let settings = BpeSettings { vocab_size, threads, min_frequency: 1, ..BpeSettings::default() };
            let trainer = BpeTrainer::new(settings)?;
            let mut counter = trainer.counter()?;
            counter.push(corpus, &mut go_on)?;
            trainer.train(&counter.finish()?, None, &mut go_on)
        }
        1 => {
            let trainer = SpmTrainer::new(SpmSettings { vocab_size, threads, ..SpmSettings::default() })?;
            let mut counter = trainer.counter(None)?;
            counter.push(corpus, &mut go_on)?;
            trainer.train(&counter.finish()?, &mut go_on)
        }
        2 => {
            let settings = WordPieceSettings { vocab_size, threads, min_frequency: 1, ..WordPieceSettings::default() };
            let trainer = WordPieceTrainer::new(settings)?;
            let mut counter = trainer.counter()?;
            counter.push(corpus, &mut go_on)?;
            trainer.train(&counter.finish()?, &mut go_on)
        }
        _ => {
            let mut settings = UnigramSettings::default();
            (settings.spm.vocab_size, settings.spm.threads) = (vocab_size, threads);
            let trainer = UnigramTrainer::new(settings)?;
            let mut counter = trainer.counter(None)?;
            counter.push(corpus, &mut go_on)?;
            trainer.train(&counter.finish()?, &mut go_on)
        }
    }
}

/// A trained vocabulary can be opened, and does not depend on the number of threads.
pub fn train(u: &mut Unstructured<'_>) -> Result<()> {
    let kind = u.int_in_range(0..=3)?;
    let least = [256, 260, 5, 3][kind];
    let vocab_size = u.int_in_range(least..=least + 40)?;
    let mut corpus = Vec::new();
    for _ in 0..u.int_in_range(1..=5)? {
        corpus.push(texts::utf8(u, 30)?);
    }
    let corpus: Vec<&str> = corpus.iter().map(|text| &**text).collect();
    let Ok(made) = trained(kind, &corpus, vocab_size, 1) else { return Ok(()) };
    assert!(made.tokens.len() <= vocab_size);
    assert_eq!(trained(kind, &corpus, vocab_size, 3).expect("as with one thread"), made);
    let (model, pre) = [("gpt2", Some("qwen2")), ("llama", None), ("bert", None), ("t5", None)][kind];
    let (tokenizer, explainer) = Declared::trained(model, pre, made).open().expect("a trained vocabulary is sound");
    encodes(&mut tokenizer.encoder(), &explainer, corpus[0].as_bytes(), PLAIN);
    Ok(())
}

/// Damaged character maps are rejected or used without a panic; compiled rules do what the rules do.
pub fn charsmap(u: &mut Unstructured<'_>) -> Result<()> {
    if u.arbitrary()? {
        let mut declared = vocabulary::unigram(u)?;
        for _ in 0..u.int_in_range(0..=4)? {
            let (at, byte) = (u.choose_index(declared.charsmap.len().max(1))?, u.arbitrary()?);
            declared.charsmap.get_mut(at).into_iter().for_each(|place| *place = byte);
        }
        if u.ratio(1, 4)? {
            declared.charsmap = texts::bytes(u, 200)?;
        }
        let Some((tokenizer, explainer)) = declared.open() else { return Ok(()) };
        encodes(&mut tokenizer.encoder(), &explainer, &texts::bytes(u, 30)?, PLAIN);
        return Ok(());
    }
    let text = texts::utf8(u, 30)?.replace('\0', "");
    let tsv = String::from_utf8_lossy(u.bytes(u.len())?).into_owned();
    let Ok(rules) = NormalizationRules::from_tsv(&tsv) else { return Ok(()) };
    let map = rules.compile().expect("few rules");
    let mut normalized = Vec::new();
    match normalizer(&map).expect("a map that was just made") {
        Some(normalize) => normalize(&text, &mut normalized),
        None => normalized.extend_from_slice(text.as_bytes()),
    }
    assert_eq!(String::from_utf8_lossy(&normalized), rules.apply(&text));
    Ok(())
}
