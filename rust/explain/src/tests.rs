//! Checks that traces end in the tokens and spans of the algorithms in `model`, for any vocabulary and any bytes, and
//! reproduces the tables of published notes whose vocabularies can be constructed.

use std::sync::Arc;

use ggtok_core::internals::spelling::{byte_level, byte_text};
use ggtok_core::vocab::{Definition, SpecialIds, StringIndex, Strings};
use ggtok_core::{EncodeOptions, TokenId, Tokenizer};
use ggtok_train::NormalizationRules;
use proptest::prelude::*;

use super::trace::{Best, Steps, Trace};
use super::{ExplainError, Explainer};

const NORMAL: i32 = 1;
const UNKNOWN: i32 = 2;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const BYTE: i32 = 6;

/// The longest text of which every part is asked about.
const MAX_ASKED: usize = 64;

const NOT_UTF8: [&[u8]; 5] = [b"\xFF", b"\xE2\x96", b"\xC1\xA1", b"\xED\xA0\x80", b"\xF4\x90\x80\x81"];

/// Text, score and type of a token.
pub(crate) type TestToken = (Vec<u8>, f32, i32);

pub(crate) fn tokenizer(definition: &Definition<'_>, tokens: &[TestToken]) -> Arc<Tokenizer> {
    let (data, index) = StringIndex::concatenate(&Vec::from_iter(tokens.iter().map(|token| &token.0))).unwrap();
    let scores = Vec::from_iter(tokens.iter().map(|token| token.1));
    let types = Vec::from_iter(tokens.iter().map(|token| token.2));
    let tokens = Some(index.view(&data));
    let scores = Some(&scores[..]);
    let token_types = Some(&types[..]);
    Arc::new(Tokenizer::new(&Definition { tokens, scores, token_types, ..*definition }).expect("a vocabulary"))
}

/// Checks that traces end in the tokens and spans of `encode`.
fn check(tokenizer: &Arc<Tokenizer>, texts: &[Vec<u8>]) -> Result<(), TestCaseError> {
    check_merges(tokenizer, None, texts)
}

/// The same with merge rules. `why` has an answer for every short part of a short text.
fn check_merges(
    tokenizer: &Arc<Tokenizer>,
    merges: Option<Strings<'_>>,
    texts: &[Vec<u8>],
) -> Result<(), TestCaseError> {
    let explainer = Explainer::new(Arc::clone(tokenizer), merges);
    let mut encoder = tokenizer.encoder();
    for (text, continues) in texts.iter().flat_map(|text| [(text, false), (text, true)]) {
        let options = EncodeOptions::new().add_special(false).continues(continues);
        let trace = explainer.explain(&text[..], options).expect("a trace");
        let traced = Vec::from_iter(trace.tokens.iter().map(|token| token.id));
        let traced_spans = Vec::from_iter(trace.tokens.iter().map(|token| token.start..token.end));
        // The second time, words are cached.
        for round in 0..2 {
            let ids = encoder.encode_with(text, options).expect("tokens");
            let spans = encoder.encode_with_spans(text, options).expect("tokens");
            prop_assert_eq!(&ids, &traced, "continues {}, round {}", continues, round);
            prop_assert_eq!((&spans.ids, &spans.spans), (&traced, &traced_spans), "continues {}", continues);
        }
        let ends = |start| (start + 1..=text.len().min(start + 3)).map(move |end| (start, end));
        for (start, end) in (0..text.len()).flat_map(ends).filter(|_| text.len() <= MAX_ASKED) {
            let why = explainer.why(&trace, start..end).expect("a range inside");
            prop_assert!(!why.reasons.is_empty(), "{}..{}", start, end);
        }
    }
    Ok(())
}

/// Different texts with few distinct scores, so that many ways are equally good.
fn tokens(pattern: &'static str) -> impl Strategy<Value = Vec<TestToken>> {
    let score = prop::sample::select(&[-1000.0_f32, -3.0, -2.0, -1.5, -1.0, -0.5, 0.25, -2500.0, f32::NAN][..]);
    let kind = prop::sample::select(&[NORMAL, NORMAL, NORMAL, USER_DEFINED, CONTROL, 5][..]);
    let texts = prop::collection::btree_map(pattern, (score, kind), 1..24);
    texts.prop_map(|all| all.into_iter().map(|(text, (score, kind))| (text.into_bytes(), score, kind)).collect())
}

/// Letters, characters with a special meaning, and bytes that are not UTF-8; and texts of UTF-8 that are longer than
/// a cache's key, a block of 64 bytes, or what merges side by side.
fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let part = prop_oneof![
        "[abéÅ ]{1,4}".prop_map(String::into_bytes),
        "[aA \u{301}中\u{2581}\u{FEFF}\u{FFFD}\t\n!$ﬁ\u{AD}😀\u{0}]".prop_map(String::into_bytes),
        prop::sample::select(&NOT_UTF8[..]).prop_map(<[u8]>::to_vec),
    ];
    let short = prop::collection::vec(part, 0..10).prop_map(|parts| parts.concat());
    let part = "[ab]{1,20}|[abc]{2,14}|[ab7.]{12,18}|[ab]{60,70}|(ab){0,40}|a{0,120}| {0,120}|\n{1,30}|[é中]{1,30}|\
                [ab é中\u{301}]{0,40}|[▁a ]{1,40}|[ab ]{1,100}|[ .\u{1}\u{7F}]{1,3}";
    let long = prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat().into_bytes());
    prop::collection::vec(prop_oneof![short, long], 1..6)
}

/// Rules between texts: `picks` are pairs of indices of the texts so far.
fn rules(texts: &[&[u8]], picks: &[(usize, usize)]) -> (Vec<TestToken>, Vec<Vec<u8>>) {
    let mut known = Vec::from_iter(texts.iter().map(|text| text.to_vec()));
    let mut merges = Vec::new();
    for &(left, right) in picks {
        let left = known[left % known.len()].clone();
        let right = known[right % known.len()].clone();
        let both = [&left[..], &right].concat();
        if both.len() <= 24 {
            merges.push([&left[..], b" ", &right].concat());
            if !known.contains(&both) {
                known.push(both);
            }
        }
    }
    // Some are not tokens.
    let tokens = known.into_iter().enumerate().filter(|(place, _)| place % 7 != 5);
    (tokens.map(|(_, text)| (text, 0.0, NORMAL)).collect(), merges)
}

/// How many cases are tried, unless `PROPTEST_CASES` asks for more.
fn at_least(cases: u32) -> ProptestConfig {
    ProptestConfig::with_cases(ProptestConfig::default().cases.max(cases))
}

/// A character map that replaces some texts by others.
fn charsmap<'a>(replaced: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let hex = |text: &str| Vec::from_iter(text.chars().map(|char| format!("{:X}", u32::from(char)))).join(" ");
    let rules: String = replaced.map(|(key, value)| format!("{}\t{}\n", hex(key), hex(value))).collect();
    NormalizationRules::from_tsv(&rules).and_then(|rules| rules.compile()).expect("few rules")
}

proptest! {
    // A mutant of its search needs more than the usual 256 cases to be caught.
    #![proptest_config(at_least(2000))]
    #[test]
    fn plamo2(tokens in tokens("[abé\u{FEFF}中]{1,5}"), texts in texts()) {
        let unknown = (b"<unk>".to_vec(), -9.0, UNKNOWN);
        let bytes = (0..=u8::MAX).map(|byte| (byte_text(byte).to_vec(), 0.0, BYTE));
        let tokens = Vec::from_iter([unknown].into_iter().chain(bytes).chain(tokens));
        check(&tokenizer(&Definition { model: "plamo2", ..Definition::default() }, &tokens), &texts)?;
    }
}

proptest! {
    #![proptest_config(at_least(512))]
    #[test]
    fn spm(tokens in tokens("[ab▁é]{1,4}|[abc▁]{2,3}|<0x(C3|A9|62|E2)>|<a>"), texts in texts(), prefix: bool) {
        let head = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)];
        let head = head.into_iter().map(|(text, kind)| (text.as_bytes().to_vec(), 0.0, kind));
        let definition = Definition { model: "llama", add_space_prefix: Some(prefix), ..Definition::default() };
        check(&tokenizer(&definition, &head.chain(tokens).collect::<Vec<_>>()), &texts)?;
    }

    #[test]
    fn bpe(
        picks in prop::collection::vec(any::<(usize, usize)>(), 0..40),
        pre in prop::sample::select(&["gpt-2", "llama-bpe", "default", "gemma4", "whitespace", "superbpe"][..]),
        is_word_model: bool,
        texts in texts(),
    ) {
        let is_spelled = !matches!(pre, "gemma4" | "whitespace");
        let spell = |byte| {
            let (spelled, len) = byte_level::spell(byte);
            spelled[..len].to_vec()
        };
        let bytes = Vec::from_iter((0..=u8::MAX).map(spell));
        let mut symbols = Vec::from_iter("ab é中".bytes().map(|byte| &bytes[usize::from(byte)][..]));
        if !is_spelled {
            symbols = ["a", "b", "▁", "é", "中", "\n", "<0xC3>", "<0xE2>"].map(str::as_bytes).to_vec();
        }
        let (tokens, merges) = rules(&symbols, &picks);
        let (data, index) = StringIndex::concatenate(&merges).expect("few");
        let merges = Some(index.view(&data));
        let model = if is_word_model { "whitespace" } else { "gpt2" };
        let definition = Definition { model, pre: Some(pre), merges, ..Definition::default() };
        check_merges(&tokenizer(&definition, &tokens), merges, &texts)?;
    }

    #[test]
    fn wordpiece(
        words in prop::collection::btree_set("▁?[abeé!中a\u{301}]{1,4}|▁?[ab7.]{1,3}|▁", 1..24),
        // Tokens that cut the phantom, and characters.
        cut in prop::collection::btree_set(prop::collection::vec(prop::sample::select(
            &b"\xE2\x96\x81ab\xC3\xA9"[..]), 1..4), 0..8),
        texts in texts(),
        lowercase: bool,
        strip_accents: bool,
    ) {
        let special = [(b"[UNK]".to_vec(), 0.0, UNKNOWN), (b"[SEP]".to_vec(), 0.0, CONTROL)];
        let words = words.into_iter().map(String::into_bytes).filter(|word| !cut.contains(word));
        let words = cut.iter().cloned().chain(words).map(|word| (word, 0.0, NORMAL));
        let lowercase = Some(lowercase);
        let strip_accents = Some(strip_accents);
        let tokens = Vec::from_iter(special.into_iter().chain(words));
        let special = SpecialIds { unk: Some(0), sep: Some(1), ..SpecialIds::default() };
        let definition = Definition { model: "bert", lowercase, strip_accents, special, ..Definition::default() };
        check(&tokenizer(&definition, &tokens), &texts)?;
    }

    #[test]
    fn unigram(
        tokens in tokens("(▁){0,2}[abé中]{0,3}[ab]|▁|fi|<\\|im_end\\|>|</s>"),
        texts in texts(),
        merge: bool,
        prefix: bool,
        keys in prop::collection::btree_map("[aAbéﬁ\t]{1,3}", "[ab ]{0,3}", 0..6),
    ) {
        let charsmap = charsmap(keys.iter().map(|(key, value)| (&key[..], &value[..])));
        let special = SpecialIds { unk: Some(0), eos: Some(0), ..SpecialIds::default() };
        let definition = Definition {
            model: "t5",
            charsmap: (!keys.is_empty()).then_some(&charsmap),
            remove_extra_whitespaces: Some(merge),
            add_space_prefix: Some(prefix),
            special,
            ..Definition::default()
        };
        let unknown = (b"<unk>".to_vec(), 0.0, UNKNOWN);
        let tokens = Vec::from_iter(std::iter::once(unknown).chain(tokens));
        let texts = Vec::from_iter(texts.iter().map(|text| [&text[..], b"<|im_end|>", text].concat()));
        check(&tokenizer(&definition, &tokens), &texts)?;
    }

    /// With vocabularies that allow cuts: no score is rounded, and no token crosses words or is user-defined.
    #[test]
    fn unigram_by_segments(
        tokens in prop::collection::btree_map(
            "(▁){0,2}([ab]{1,3}|[1,.]{1,2}|[,.]{2}|é[aé]|[中国人\u{20000}]{1,2}|à)",
            -2000i32..=-1,
            1..24,
        ),
        texts in prop::collection::vec(prop::collection::vec(
            "[ab]{1,4}|[ab]{14,17}|[ab]{63,66}|[ \t\n]{1,3}|[1,.]|é|[中国人\u{20000}]{1,3}|\
             a\u{300}|b\u{301}\u{302}?|ﷺ|\u{1}|[▁Ａ]",
            0..40,
        ), 1..4),
    ) {
        // Few different scores make equal paths, scores of many bits show whether a sum is rounded.
        let score = |n: i32| if n % 2 == 0 { (n / 200) as f32 } else { n as f32 / 131_072.0 };
        let tokens = tokens.into_iter().map(|(text, n)| (text.into_bytes(), score(n), NORMAL));
        let tokens = Vec::from_iter(std::iter::once((b"<unk>".to_vec(), 0.0, UNKNOWN)).chain(tokens));
        let keys = [("a\u{300}", "à"), ("\u{1}", ""), ("ﷺ", "a b"), ("Ａ", "a"), ("b\u{301}\u{302}", "é")];
        let charsmap = charsmap(keys.into_iter().chain(["\t", "\n", "\r"].map(|space| (space, " "))));
        let special = SpecialIds { unk: Some(0), ..SpecialIds::default() };
        let definition = Definition {
            model: "t5",
            charsmap: Some(&charsmap),
            remove_extra_whitespaces: Some(true),
            add_space_prefix: Some(true),
            special,
            ..Definition::default()
        };
        let texts = Vec::from_iter(texts.into_iter().map(|text| text.concat().into_bytes()));
        check(&tokenizer(&definition, &tokens), &texts)?;
    }

    #[test]
    fn rwkv(tokens in tokens("[abé ]{1,5}|\\\\xe4|\\\\xc3|\\\\x80|\\\\t|\\\\"), texts in texts()) {
        let newline = (b"\\n".to_vec(), 0.0, NORMAL);
        let definition = Definition { model: "rwkv", ..Definition::default() };
        check(&tokenizer(&definition, &[&[newline][..], &tokens].concat()), &texts)?;
    }

    #[test]
    fn hashed(texts in texts(), num_tokens in 1_u32..500) {
        let tokens = Vec::from_iter((0..num_tokens).map(|id| (format!("t{id}").into_bytes(), 0.0, NORMAL)));
        check(&tokenizer(&Definition { model: "test", ..Definition::default() }, &tokens), &texts)?;
    }
}

/// The trace of a text, without special tokens.
fn explained(tokenizer: &Arc<Tokenizer>, text: &[u8]) -> Result<Trace, ExplainError> {
    let options = EncodeOptions::new().add_special(false);
    Explainer::new(Arc::clone(tokenizer), None).explain(text, options)
}

/// The pieces and scores that the note on Unigram (seeds 000 and 001) shows.
const UNIGRAM_NOTE: [(usize, &str, f32); 15] = [
    (3, "▁", -2.012_292_9),
    (7, "s", -4.6),
    (19, "▁is", -5.283_425_3),
    (23, "i", -5.469_858),
    (58, "?", -6.585_888),
    (107, "h", -7.254_32),
    (188, "A", -7.9),
    (301, "▁L", -8.301_084),
    (363, "▁What", -8.488_649),
    (448, "R", -8.722_309),
    (518, "W", -8.869_575),
    (549, "▁W", -8.927_786),
    (1024, "ha", -9.529_377),
    (1815, "▁Lo", -10.040_734),
    (4763, "RA", -10.944_782),
];

#[test]
fn the_score_table_of_the_note_on_unigram() {
    let mut tokens = Vec::from_iter((0..=4763).map(|id| (format!("<control {id}>").into_bytes(), 0.0, CONTROL)));
    tokens[2] = (b"<unk>".to_vec(), 0.0, UNKNOWN);
    for (id, text, score) in UNIGRAM_NOTE {
        tokens[id] = (text.into(), score, NORMAL);
    }
    let definition = Definition { model: "t5", remove_extra_whitespaces: Some(true), ..Definition::default() };
    let trace = explained(&tokenizer(&definition, &tokens), b"What is LoRA?").expect("a trace");
    let Some(Steps::Unigram(steps)) = &trace.fragments[0].steps else { panic!("Unigram") };
    assert_eq!(steps.normalized.0, "▁What▁is▁LoRA?".as_bytes());

    // Place, token, where it starts, sum of scores: `tokenization_results`.
    let reached: [(usize, TokenId, usize, f64); 14] = [
        (3, 3, 0, -2.012_292_86),
        (4, 549, 0, -8.927_785_87),
        (5, 107, 4, -16.182_106),
        (6, 1024, 4, -18.457_162_9),
        (7, 363, 0, -8.488_649_37),
        (10, 3, 7, -10.500_942_2),
        (11, 23, 10, -15.970_800_4),
        (12, 19, 7, -13.772_074_7),
        (15, 3, 12, -15.784_367_6),
        (16, 301, 12, -22.073_158_3),
        (17, 1815, 12, -23.812_809),
        (18, 448, 17, -32.535_118_1),
        (19, 4763, 17, -34.757_591_2),
        (20, 58, 19, -41.343_479_2),
    ];
    assert_eq!(steps.best.len(), 21);
    assert_eq!(steps.best[0], Best { at: 0, token: Some(2), from: 0, score_sum: Some(0.0) });
    for (at, best) in steps.best.iter().enumerate().skip(1) {
        assert_eq!(best.at, at);
        match (reached.iter().find(|row| row.0 == at), best.score_sum) {
            (Some(&(_, token, from, score_sum)), Some(found)) => {
                assert_eq!((best.token, best.from), (Some(token), from), "at {at}");
                assert!((found - score_sum).abs() < 1e-5, "at {at}: {found} instead of {score_sum}");
            }
            // Inside a character, or where no token ends.
            (None, None) => assert_eq!((best.token, best.from), (None, 0), "at {at}"),
            other => panic!("at {at}: {other:?}"),
        }
    }

    // From the start, the note finds `▁`, `▁W` and `▁What`, and from byte 3 `W`, which does not win.
    let candidates = |place: usize| {
        let position = &steps.positions[place];
        let found = position.candidates.iter().map(|candidate| (candidate.token, candidate.wins));
        (position.at, found.collect::<Vec<_>>())
    };
    assert_eq!(candidates(0), (0, vec![(3, true), (549, true), (363, true)]));
    assert_eq!(candidates(1), (3, vec![(518, false)]));

    let path = Vec::from_iter(steps.path.iter().map(|step| (step.token, step.from, step.to)));
    assert_eq!(path, [(58, 19, 20), (4763, 17, 19), (1815, 12, 17), (19, 7, 12), (363, 0, 7)]);
    let spans = Vec::from_iter(trace.tokens.iter().map(|token| (token.id, token.start, token.end)));
    assert_eq!(spans, [(363, 0, 4), (19, 4, 7), (1815, 7, 10), (4763, 10, 12), (58, 12, 13)]);
}

#[test]
fn a_huge_token_makes_no_huge_trace() {
    // Short enough to list its characters, and long enough for a quadratic number of steps.
    let huge = vec![b'a'; 1 << 16];
    let unknown = (b"<unk>".to_vec(), 0.0, UNKNOWN);
    let newline = (b"\\n".to_vec(), -1.0, NORMAL);
    let [begun, ended] = [[&huge[..], b"b"].concat(), [&b"b"[..], &huge].concat()].map(|text| (text, -1.0, NORMAL));
    let bytes = (0..=u8::MAX).map(|byte| (byte_text(byte).to_vec(), 0.0, BYTE));
    let tokens = Vec::from_iter([unknown, newline, begun, ended].into_iter().chain(bytes));
    for model in ["bert", "t5", "rwkv", "plamo2"] {
        let num_tokens = if model == "plamo2" { tokens.len() } else { tokens.len() - 256 };
        let tokenizer = tokenizer(&Definition { model, ..Definition::default() }, &tokens[..num_tokens]);
        assert!(matches!(explained(&tokenizer, &huge), Err(ExplainError::TooManySteps { .. })), "{model}");
        assert!(explained(&tokenizer, b"ab").is_ok(), "{model}");
    }
}
