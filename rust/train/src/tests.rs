//! Compares the merging loop with a naive one for every kind of rules, and checks what only some kinds have.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use ggtok_core::vocab::{Definition, StringIndex};
use ggtok_core::{Interrupted, Tokenizer, interruptible};
use proptest::prelude::*;

use super::{
    BpeSettings, BpeTrainer, Extender, Likelihood, Phase, SpecialToken, SpmSettings, SpmTrainer, TrainError, Trained,
    WordCounter, WordPieceSettings, WordPieceTrainer, Words,
};

fn go_on(_: Phase, _: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn count(mut counter: WordCounter<'_>, texts: &[&str]) -> Result<Words, TrainError> {
    counter.push(texts, &mut go_on)?;
    counter.finish()
}

fn bpe(settings: BpeSettings, texts: &[&str]) -> Result<Trained, TrainError> {
    let trainer = BpeTrainer::new(settings)?;
    let second = trainer.second_counter()?.map(|counter| count(counter, texts)).transpose()?;
    trainer.train(&count(trainer.counter()?, texts)?, second.as_ref(), &mut go_on)
}

fn spm(settings: SpmSettings, texts: &[&str]) -> Result<Trained, TrainError> {
    let trainer = SpmTrainer::new(settings)?;
    trainer.train(&count(trainer.counter(None)?, texts)?, &mut go_on)
}

fn wordpiece(settings: WordPieceSettings, texts: &[&str]) -> Result<Trained, TrainError> {
    let trainer = WordPieceTrainer::new(settings)?;
    trainer.train(&count(trainer.counter()?, texts)?, &mut go_on)
}

fn strings(texts: &[Vec<u8>]) -> Vec<String> {
    texts.iter().map(|text| String::from_utf8(text.clone()).unwrap()).collect()
}

/// The state of a naive trainer: how often each symbol occurs, and its number, letters first.
#[derive(Default)]
struct Seen {
    totals: HashMap<String, u64>,
    numbers: HashMap<String, usize>,
}

/// Merges by recounting all pairs each time, until there are `num_symbols`. `key` is lowest for the pair to merge, and
/// `None` for one that must not merge. Returns the sides of each merge.
fn naive<K: Ord>(
    words: &[(Vec<String>, u64)],
    alphabet: &[String],
    num_symbols: usize,
    key: impl Fn((&str, &str), u64, &Seen) -> Option<K>,
) -> Vec<(String, String)> {
    let mut words = words.to_vec();
    let mut merges = Vec::<(String, String)>::new();
    let mut seen = Seen { numbers: alphabet.iter().cloned().zip(0..).collect(), ..Seen::default() };
    while seen.numbers.len() < num_symbols {
        let mut pairs: HashMap<(&String, &String), u64> = HashMap::new();
        seen.totals.clear();
        for (symbols, count) in &words {
            for symbol in symbols {
                *seen.totals.entry(symbol.clone()).or_insert(0) += count;
            }
            for two in symbols.windows(2) {
                *pairs.entry((&two[0], &two[1])).or_insert(0) += count;
            }
        }
        // A pair that has merged before merges again at once.
        let is_new = |left: &String, right: &String| !merges.iter().any(|(l, r)| (l, r) == (left, right));
        let keyed = pairs.iter().filter_map(|(&(left, right), &count)| {
            key((left, right), count, &seen).map(|key| ((is_new(left, right), key), left, right))
        });
        let Some((_, left, right)) = keyed.min_by(|one, other| one.0.cmp(&other.0)) else { break };
        let left = left.clone();
        let right = right.clone();
        for (symbols, _) in &mut words {
            let mut at = 0;
            while at + 1 < symbols.len() {
                if symbols[at] == left && symbols[at + 1] == right {
                    symbols[at] = format!("{left}{right}");
                    symbols.remove(at + 1);
                }
                at += 1;
            }
        }
        let number = seen.numbers.len();
        seen.numbers.entry(format!("{left}{right}")).or_insert(number);
        merges.push((left, right));
    }
    merges
}

/// By count, then by the numbers of the symbols.
fn by_numbers((left, right): (&str, &str), count: u64, key: u64, seen: &Seen) -> Option<(u64, usize, usize)> {
    (count >= 2).then_some((u64::MAX - key, seen.numbers[left], seen.numbers[right]))
}

/// The texts that merges make, each once.
fn made(merges: &[(String, String)]) -> Vec<String> {
    let mut seen = HashSet::new();
    let texts = merges.iter().map(|(left, right)| format!("{left}{right}"));
    texts.filter(|text| seen.insert(text.clone())).collect()
}

/// The words as symbols.
fn words_of(words: &Words, symbols: impl Fn(&str) -> Vec<String>) -> Vec<(Vec<String>, u64)> {
    words.iter().map(|(word, count)| (symbols(std::str::from_utf8(word).unwrap()), count)).collect()
}

/// The words themselves, in order.
fn sorted(words: Words) -> Vec<(String, u64)> {
    let mut all: Vec<_> =
        words.iter().map(|(word, count)| (String::from_utf8(word.to_vec()).unwrap(), count)).collect();
    all.sort();
    all
}

fn letters(word: &str) -> Vec<String> {
    word.chars().map(String::from).collect()
}

proptest! {
    #[test]
    fn bpe_merges_as_a_naive_one(texts in prop::collection::vec("[abc]{0,9}( [abc]{1,4}){0,3}", 1..9), wanted in 4..30_usize) {
        let settings = |vocab_size| BpeSettings { vocab_size, pre: "gpt-2".into(), threads: 2, ..BpeSettings::default() };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let Ok(words) = count(BpeTrainer::new(settings(256)).unwrap().counter().unwrap(), &texts) else { return Ok(()) };
        let words = words_of(&words, |word| letters(&word.replace(' ', "Ġ")));
        let merges = naive(&words, &["a", "b", "c", "Ġ"].map(String::from), wanted, |pair, count, seen| {
            by_numbers(pair, count, count, seen)
        });
        // Of equal lines the last one wins.
        let mut lines: Vec<String> = merges.iter().map(|(left, right)| format!("{left} {right}")).collect();
        let mut seen = HashSet::new();
        lines.reverse();
        lines.retain(|line| seen.insert(line.clone()));
        lines.reverse();
        let trained = bpe(settings(256 + made(&merges).len()), &texts).unwrap();
        prop_assert_eq!(strings(&trained.merges), lines);
        prop_assert_eq!(&strings(&trained.tokens)[256..], made(&merges));
    }

    #[test]
    fn wordpiece_merges_as_a_naive_one(
        texts in prop::collection::vec("[abc]{1,9}( [abc]{1,4}){0,3}", 1..9),
        wanted in 0..30_usize,
        by_gain: bool,
    ) {
        let settings = |vocab_size| WordPieceSettings {
            vocab_size,
            special_tokens: Vec::new(),
            by: if by_gain { Likelihood::Gain } else { Likelihood::Frequency },
            ..WordPieceSettings::default()
        };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let words = count(WordPieceTrainer::new(settings(0)).unwrap().counter().unwrap(), &texts).unwrap();
        let words = words_of(&words, |word| {
            let mut letters = letters(word.trim_start_matches('▁'));
            letters[0].insert(0, '▁');
            letters
        });
        let mut alphabet: Vec<String> = words.iter().flat_map(|(word, _)| word.clone()).collect();
        alphabet.sort_by_key(|letter| (!letter.starts_with('▁'), letter.clone()));
        alphabet.dedup();
        let merges = naive(&words, &alphabet, wanted, |(left, right), count, seen| {
            let gain = count as f64 / (seen.totals[left] as f64 * seen.totals[right] as f64);
            by_numbers((left, right), count, if by_gain { gain.to_bits() } else { count }, seen)
        });
        let trained = wordpiece(settings(alphabet.len() + made(&merges).len()), &texts).unwrap();
        prop_assert_eq!(strings(&trained.tokens), [alphabet, made(&merges)].concat());
    }

    #[test]
    fn spm_merges_as_a_naive_one(texts in prop::collection::vec("[abя]{0,9}( [ab]{1,4}){0,3}", 1..9), wanted in 0..30_usize) {
        let settings = |vocab_size| SpmSettings {
            vocab_size,
            special_tokens: Vec::new(),
            byte_fallback: false,
            character_coverage: 1.0,
            split_by_unicode_script: false,
            allow_whitespace_only_pieces: false,
            max_piece_length: 5,
            min_frequency: 2,
            ..SpmSettings::default()
        };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let Ok(words) = count(SpmTrainer::new(settings(0)).unwrap().counter(None).unwrap(), &texts) else { return Ok(()) };
        let words = words_of(&words, letters);
        let alphabet: HashSet<&String> = words.iter().flat_map(|(word, _)| word).collect();
        let merges = naive(&words, &[], wanted, |(left, right), count, seen| {
            let text = format!("{left}{right}");
            let len = text.chars().count();
            let is_allowed = count >= 2 && len <= 5 && !right.starts_with('▁') && !seen.numbers.contains_key(&text);
            is_allowed.then_some((u64::MAX - count, len, text))
        });
        let trained = spm(settings(alphabet.len() + merges.len()), &texts).unwrap();
        prop_assert_eq!(&strings(&trained.tokens)[..merges.len()], made(&merges));
    }

    #[test]
    fn a_file_is_the_same_in_any_blocks(text in "([a-c ]{0,30}\r?\n){0,20}[a-c]{0,3}", cut in 1..200_usize) {
        let trainer = SpmTrainer::new(SpmSettings::default()).unwrap();
        let words = |len: usize| {
            let mut counter = trainer.counter(None).unwrap();
            let mut from = 0;
            let mut to = 0;
            loop {
                to = text.len().min(to + len);
                let is_last = to == text.len();
                // Blocks smaller than a line split it.
                let last_line = text[from..to].rfind('\n').is_some() || is_last;
                if last_line {
                    from += counter.push_file(&text[from..to], 1, is_last, &mut go_on).unwrap();
                }
                if is_last && from == to {
                    break;
                }
            }
            counter.finish().map(sorted).ok()
        };
        let lines: Vec<&str> = text.lines().collect();
        let expected = count(trainer.counter(None).unwrap(), &lines).map(sorted).ok();
        prop_assert_eq!(words(cut), expected.clone());
        prop_assert_eq!(words(text.len().max(1)), expected);
    }
}

/// The note on BPE. Every pair occurs once, so the numbers of the symbols decide, left one first: H, W, d, e, l, o, r, Ġ,
/// He, ...
#[test]
fn hello_world_merges_step_by_step() {
    let trained = |vocab_size, min_frequency| {
        let pre = "gpt-2".into();
        bpe(BpeSettings { vocab_size, pre, min_frequency, ..BpeSettings::default() }, &["Hello World!"])
    };
    let steps = ["H e", "W o", "l d", "l l", "r ld", "Ġ Wo", "He ll", "ĠWo rld", "Hell o"];
    assert_eq!(strings(&trained(265, 1).unwrap().merges), steps);
    assert_eq!([trained(266, 1), trained(257, 2)].map(|trained| trained.unwrap().tokens.len()), [265, 256]);
}

#[test]
fn pieces_keep_to_the_rules_of_spm() {
    let corpus = ["  ab12 ab12 あ漢ー あ漢ー яab яab é\u{301}é\u{301} a１b a１b"; 3];
    let pieces =
        |settings: SpmSettings| strings(&spm(SpmSettings { vocab_size: 1000, ..settings }, &corpus).unwrap().tokens);
    let has = |pieces: &[String], text: &str| pieces.iter().any(|piece| piece == text);
    let usual = pieces(SpmSettings::default());
    assert!(has(&usual, "▁ab") && has(&usual, "▁あ漢ー") && has(&usual, "▁▁") && has(&usual, "<0x00>"));
    assert!(has(&usual, "é\u{301}é\u{301}") || has(&usual, "▁é\u{301}é\u{301}"));
    assert!(!usual.iter().any(|piece| piece.ends_with("12") || piece.contains("яa") || piece.starts_with("▁▁a")));
    let digits = pieces(SpmSettings { split_digits: false, ..SpmSettings::default() });
    assert!(has(&digits, "12") && !has(&digits, "▁ab12") && !has(&digits, "a１"));
    let numbers = pieces(SpmSettings { split_digits: false, split_by_number: false, ..SpmSettings::default() });
    assert!(has(&numbers, "▁ab12") && has(&numbers, "▁a１b"));
    let scripts = pieces(SpmSettings { split_by_unicode_script: false, ..SpmSettings::default() });
    assert!(has(&scripts, "▁яab"));
    let whole = pieces(SpmSettings { split_by_whitespace: false, byte_fallback: false, ..SpmSettings::default() });
    assert!(!has(&whole, "<0x00>") && !whole.iter().any(|piece| piece.ends_with("b▁")));
    assert!(whole.iter().any(|piece| piece.trim_start_matches('▁').contains('▁')));
    let short = pieces(SpmSettings { max_piece_length: 2, ..SpmSettings::default() });
    assert!(short.iter().all(|piece| piece.chars().count() <= 2 || piece.starts_with('<')));
}

#[test]
fn rare_characters_are_not_covered() {
    let corpus = ["aaaaaaaaab", "a▁a"];
    let settings = SpmSettings { vocab_size: 3 + 4, byte_fallback: false, ..SpmSettings::default() };
    let error = spm(SpmSettings { vocab_size: 5, ..settings.clone() }, &corpus).unwrap_err();
    assert!(matches!(error, TrainError::VocabTooSmall { size: 5, special: 3, alphabet: 3 }), "{error}");
    let trained = spm(SpmSettings { character_coverage: 0.7, ..settings }, &corpus).unwrap();
    assert_eq!(strings(&trained.tokens)[3..], ["aa", "aaaa", "aaaaa", "a"]);
}

#[test]
fn special_tokens_are_not_trained_on() {
    let special = |kind| vec![SpecialToken { text: "<|x|>".into(), kind }];
    let settings =
        BpeSettings { vocab_size: 259, special_tokens: special(3), pre: "gpt-2".into(), ..Default::default() };
    let corpus = ["ab<|x|>ab<|x|>cd<|x|>cd<|x|>cd"];
    let trained = bpe(settings.clone(), &corpus).unwrap();
    assert_eq!(strings(&trained.tokens)[256..], ["cd", "ab", "<|x|>"]);
    assert_eq!(trained.types[255..], [1, 1, 1, 3]);
    let trained = bpe(BpeSettings { special_first: true, ..settings.clone() }, &corpus).unwrap();
    assert_eq!((strings(&trained.tokens)[0].as_str(), trained.types[0]), ("<|x|>", 3));
    let error = bpe(BpeSettings { vocab_size: 256, ..settings }, &corpus).unwrap_err();
    assert!(matches!(error, TrainError::VocabTooSmall { size: 256, special: 1, alphabet: 256 }), "{error}");
}

#[test]
fn whole_characters_are_made_from_their_bytes_first() {
    let settings =
        BpeSettings { vocab_size: 256 + 5, pre: "gpt-2".into(), whole_characters: true, ..BpeSettings::default() };
    // ä is c3 a4, ö is c3 b6, 한 is ed 95 9c.
    let trained = bpe(settings.clone(), &["ä한ö ä한"]).unwrap();
    assert_eq!(strings(&trained.merges), ["Ã ¤", "Ã ¶", "í ķ", "íķ ľ", "Ã¤ íķľ"]);
    let short = BpeSettings { max_token_length: 1, ..settings.clone() };
    assert_eq!(bpe(short, &["ä€ ä€"]).unwrap().tokens.len(), 259);
    let small = BpeSettings { vocab_size: 256 + 3, ..settings };
    let error = bpe(small, &["äö€"]).unwrap_err();
    assert!(matches!(error, TrainError::VocabTooSmall { size: 259, special: 0, alphabet: 260 }), "{error}");
}

#[test]
fn superbpe_merges_across_words_after_the_transition() {
    let settings = BpeSettings {
        vocab_size: 266,
        pre: "superbpe".into(),
        transition: Some((264, "gpt-2".into())),
        ..BpeSettings::default()
    };
    let trained = bpe(settings, &["by the way by the way by the way 12"]).unwrap();
    let merges = strings(&trained.merges);
    assert_eq!(merges.len(), 10);
    assert!(merges[..8].iter().all(|merge| !merge.trim_start_matches('Ġ').contains('Ġ')), "{merges:?}");
    assert!(merges[8..].iter().any(|merge| merge.trim_start_matches('Ġ').contains('Ġ')), "{merges:?}");
}

/// What `tests/test_train.py` does not check.
#[test]
fn settings_are_checked() {
    let refused = |change: fn(&mut SpmSettings)| {
        let mut settings = SpmSettings::default();
        change(&mut settings);
        SpmTrainer::new(settings).unwrap_err().to_string()
    };
    assert_eq!(refused(|s| s.character_coverage = 0.0), "character_coverage must be above 0 and at most 1, not 0");
    assert_eq!(
        refused(|s| s.character_coverage = f32::NAN),
        "character_coverage must be above 0 and at most 1, not NaN"
    );
    assert_eq!(refused(|s| s.max_piece_length = 0), "max_piece_length must be at least 1, not 0");
    assert_eq!(
        refused(|s| s.special_tokens[1].text.clear()),
        "special_tokens must be texts that are not empty and have no NUL byte, not \"\""
    );
    assert_eq!(refused(|s| s.special_tokens[1].text = "<unk>".into()), "tokens 0 and 1 would share the text \"<unk>\"");
    let error = BpeTrainer::new(BpeSettings { max_token_length: 0, ..BpeSettings::default() }).unwrap_err();
    assert_eq!(error.to_string(), "max_token_length must be at least 1, not 0");
    for corpus in [&[][..], &[""], &["\0"]] {
        let error = spm(SpmSettings { add_dummy_prefix: false, ..SpmSettings::default() }, corpus).unwrap_err();
        assert!(matches!(error, TrainError::EmptyCorpus), "{error}");
    }
    let error = wordpiece(WordPieceSettings { vocab_size: 6, ..WordPieceSettings::default() }, &["ab"]).unwrap_err();
    assert!(matches!(error, TrainError::VocabTooSmall { size: 6, special: 5, alphabet: 2 }), "{error}");
}

#[test]
fn training_stops_when_told() {
    let texts: Vec<String> = (0..5000).map(|number| format!("{number} {}", number * 7919)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let trainer =
        BpeTrainer::new(BpeSettings { vocab_size: 400, pre: "gpt-2".into(), ..BpeSettings::default() }).unwrap();
    let words = count(trainer.counter().unwrap(), &texts).unwrap();
    let mut calls = 0;
    let mut stop = |phase: Phase, done: u64, total: u64| {
        assert_eq!((phase.name(), done, total), ("merging", calls, 144));
        calls += 1;
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(matches!(trainer.train(&words, None, &mut stop), Err(TrainError::Stopped)));
    assert_eq!(calls, 3);
    let mut counter = trainer.counter().unwrap();
    let stopped = counter.push(&texts, &mut |_, _, _| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(TrainError::Stopped)));
    let interrupted = interruptible(|| true, || trainer.train(&words, None, &mut go_on).map(drop).unwrap());
    assert_eq!(interrupted, Err(Interrupted));
}

#[test]
fn what_cannot_be_extended() {
    let problem = |model, text: &[u8], score, num_tokens| {
        let (data, index) = StringIndex::concatenate(&[b"a", text]).unwrap();
        let (tokens, scores) = (Some(index.view(&data)), Some(&[0.0, score][..]));
        let base = Tokenizer::new(&Definition { model, tokens, scores, ..Definition::default() }).unwrap();
        Extender::new(Arc::new(base), None, num_tokens, 1).err().map(|error| error.to_string())
    };
    assert_eq!(problem("llama", b"b", -1.0, 1), None);
    for (model, text, score, num_tokens, expected) in [
        ("llama", &b"b"[..], -1.0, 0, "num_tokens must be at least 1, not 0"),
        ("rwkv", b"b", -1.0, 1, "base must be a vocabulary of a kind that is trained, not rwkv"),
        ("llama", b"\xFF", -1.0, 1, "base must be a vocabulary whose tokens are UTF-8, not one with other bytes"),
        (
            "llama",
            b"b",
            f32::INFINITY,
            1,
            "base must be a vocabulary whose scores are finite and have room below, not one with other scores",
        ),
    ] {
        assert_eq!(problem(model, text, score, num_tokens).as_deref(), Some(expected));
    }
}
