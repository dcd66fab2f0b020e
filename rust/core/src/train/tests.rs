//! The loop of merges against a naive one, for every kind of rules, and the notes' small corpora step by step.

use std::collections::{HashMap, HashSet};
use std::io::Cursor;
use std::ops::ControlFlow;

use proptest::prelude::*;

use super::{
    BpeSettings, BpeTrainer, Likelihood, Phase, SpecialToken, SpmSettings, SpmTrainer, TrainError, Trained, WordCounter,
    WordPieceSettings, WordPieceTrainer, Words,
};
use crate::interrupt::{Interrupted, interruptible};

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

/// Merges by counting all pairs again each time. `key` is lowest for the pair to merge, `None` for one that must not.
/// Returns the sides and the count of each merge.
fn naive<K: Ord>(
    words: &[(Vec<String>, u64)],
    num_merges: usize,
    key: impl Fn((&str, &str), u64, &HashMap<String, u64>) -> Option<K>,
) -> Vec<(String, String, u64)> {
    let (mut words, mut merges) = (words.to_vec(), Vec::<(String, String, u64)>::new());
    let mut made = HashSet::new();
    while made.len() < num_merges {
        let (mut pairs, mut totals) = (HashMap::new(), HashMap::new());
        for (symbols, count) in &words {
            for symbol in symbols {
                *totals.entry(symbol.clone()).or_insert(0) += count;
            }
            for two in symbols.windows(2) {
                *pairs.entry((two[0].clone(), two[1].clone())).or_insert(0) += count;
            }
        }
        // A pair that was merged before is merged again at once.
        let again = |left: &String, right: &String| merges.iter().any(|(l, r, _)| (l, r) == (left, right));
        let keyed = pairs.iter().filter_map(|((left, right), &count)| {
            key((left, right), count, &totals).map(|key| ((!again(left, right), key), left.clone(), right.clone(), count))
        });
        let Some((_, left, right, count)) = keyed.min_by(|one, other| one.0.cmp(&other.0)) else { break };
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
        made.insert(format!("{left}{right}"));
        merges.push((left, right, count));
    }
    merges
}

fn letters(word: &str) -> Vec<String> {
    word.chars().map(String::from).collect()
}

proptest! {
    #[test]
    fn bpe_merges_as_a_naive_one(texts in prop::collection::vec("[abc]{0,9}( [abc]{1,4}){0,3}", 1..9), wanted in 0..30_usize) {
        let settings = |vocab_size| BpeSettings { vocab_size, pre: "gpt2".into(), threads: 2, ..BpeSettings::default() };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let trainer = BpeTrainer::new(settings(256)).unwrap();
        let Ok(words) = count(trainer.counter().unwrap(), &texts) else { return Ok(()) };
        let spelled = |word: &[u8]| letters(&String::from_utf8(word.to_vec()).unwrap().replace(' ', "Ġ"));
        let words: Vec<_> = words.iter().map(|(word, count)| (spelled(word), count)).collect();
        // A symbol's number: letters, then the order in which texts were made.
        let mut numbers: HashMap<String, usize> = [("a", 0), ("b", 1), ("c", 2), ("Ġ", 3)].map(|(text, number)| (text.to_owned(), number)).into();
        let mut expected = Vec::new();
        for num_merges in 1..=wanted {
            let merges = naive(&words, num_merges, |(left, right), count, _| {
                let [left, right] = [left, right].map(|side| numbers.get(side).copied().unwrap_or(usize::MAX));
                (count >= 2).then_some((u64::MAX - count, left, right))
            });
            for (left, right, _) in &merges {
                let number = numbers.len();
                numbers.entry(format!("{left}{right}")).or_insert(number);
            }
            expected = merges;
        }
        let made: HashSet<_> = expected.iter().map(|(left, right, _)| format!("{left}{right}")).collect();
        let trained = bpe(settings(256 + made.len()), &texts).unwrap();
        let mut lines: Vec<String> = expected.iter().map(|(left, right, _)| format!("{left} {right}")).collect();
        // Of equal lines the last one counts.
        let mut seen = HashSet::new();
        lines.reverse();
        lines.retain(|line| seen.insert(line.clone()));
        lines.reverse();
        prop_assert_eq!(strings(&trained.merges), lines);
    }

    #[test]
    fn wordpiece_merges_as_a_naive_one(texts in prop::collection::vec("[abc]{1,9}( [abc]{1,4}){0,3}", 1..9), wanted in 0..20_usize, by_gain: bool) {
        let settings = |vocab_size| WordPieceSettings {
            vocab_size,
            special_tokens: Vec::new(),
            by: if by_gain { Likelihood::Gain } else { Likelihood::Frequency },
            ..WordPieceSettings::default()
        };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let words = count(WordPieceTrainer::new(settings(0)).unwrap().counter().unwrap(), &texts).unwrap();
        let spelled = |word: &[u8]| {
            let word = String::from_utf8(word.to_vec()).unwrap();
            let mut letters = letters(word.trim_start_matches('▁'));
            letters[0].insert(0, '▁');
            letters
        };
        let words: Vec<_> = words.iter().map(|(word, count)| (spelled(word), count)).collect();
        let mut alphabet: Vec<String> = words.iter().flat_map(|(word, _)| word.clone()).collect();
        alphabet.sort_by_key(|letter| (!letter.starts_with('▁'), letter.clone()));
        alphabet.dedup();
        let mut numbers: HashMap<String, usize> = alphabet.iter().cloned().zip(0..).collect();
        let mut made = Vec::new();
        for num_merges in 1..=wanted {
            let merges = naive(&words, num_merges, |(left, right), count, totals| {
                let gain = count as f64 / (totals[left] as f64 * totals[right] as f64);
                let key = if by_gain { gain.to_bits() } else { count };
                let [left, right] = [left, right].map(|side| numbers.get(side).copied().unwrap_or(usize::MAX));
                (count >= 2).then_some((u64::MAX - key, left, right))
            });
            made.clear();
            for (left, right, _) in &merges {
                let (number, text) = (numbers.len(), format!("{left}{right}"));
                numbers.entry(text.clone()).or_insert(number);
                if !made.contains(&text) {
                    made.push(text);
                }
            }
        }
        let trained = wordpiece(settings(alphabet.len() + made.len()), &texts).unwrap();
        prop_assert_eq!(strings(&trained.tokens), [alphabet, made].concat());
    }

    #[test]
    fn threads_and_memory_change_nothing(texts in prop::collection::vec("[a-e ]{0,40}", 1..40), memory in 0..4000_usize) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let counted = |threads, memory: Option<usize>| {
            let trainer = SpmTrainer::new(SpmSettings { threads, ..SpmSettings::default() }).unwrap();
            let mut counter = trainer.counter(None).unwrap();
            if let Some(memory) = memory {
                counter = counter.with_spill(memory, Cursor::new(Vec::new()));
            }
            for batch in texts.chunks(7) {
                counter.push(batch, &mut go_on).unwrap();
            }
            let words = counter.finish().map(|words| {
                let mut words: Vec<_> = words.iter().map(|(word, count)| (word.to_vec(), count)).collect();
                words.sort_unstable();
                words
            });
            words.ok()
        };
        let expected = counted(1, None);
        prop_assert_eq!(counted(3, None), expected.clone());
        prop_assert_eq!(counted(2, Some(memory)), expected);
    }

    #[test]
    fn a_file_is_the_same_in_any_blocks(text in "([a-c ]{0,30}\r?\n){0,20}[a-c]{0,3}", cut in 1..200_usize) {
        let trainer = SpmTrainer::new(SpmSettings::default()).unwrap();
        let words = |len: usize| {
            let mut counter = trainer.counter(None).unwrap();
            let (mut from, mut to) = (0, 0);
            loop {
                to = text.len().min(to + len);
                let is_last = to == text.len();
                // Blocks smaller than a line are cut inside it.
                let last_line = text[from..to].rfind('\n').is_some() || is_last;
                if last_line {
                    from += counter.push_file(&text[from..to], is_last, &mut go_on).unwrap();
                }
                if is_last && from == to {
                    break;
                }
            }
            let mut words: Vec<_> = counter.finish().ok()?.iter().map(|(word, count)| (word.to_vec(), count)).collect();
            words.sort_unstable();
            Some(words)
        };
        let lines: Vec<&str> = text.lines().collect();
        let expected = count(trainer.counter(None).unwrap(), &lines).ok().map(|words| {
            let mut words: Vec<_> = words.iter().map(|(word, count)| (word.to_vec(), count)).collect();
            words.sort_unstable();
            words
        });
        prop_assert_eq!(words(cut), expected.clone());
        prop_assert_eq!(words(text.len().max(1)), expected);
    }
}

/// The note on BPE: a vocabulary starts with the characters of its corpus, and the most frequent pair is merged first.
#[test]
fn hello_world_merges_step_by_step() {
    let corpus = ["Hello World!"];
    let trainer = BpeTrainer::new(BpeSettings { pre: "gpt2".into(), ..BpeSettings::default() }).unwrap();
    let mut words: Vec<_> =
        count(trainer.counter().unwrap(), &corpus).unwrap().iter().map(|(word, count)| (word.to_vec(), count)).collect();
    words.sort();
    assert_eq!(words, [(b" World".to_vec(), 1), (b"!".to_vec(), 1), (b"Hello".to_vec(), 1)]);

    // Every pair occurs once, so the smallest symbols decide: H before W before d, ..., and Ġ after all letters.
    let settings = |num_merges, min_frequency| BpeSettings {
        vocab_size: 256 + num_merges,
        pre: "gpt2".into(),
        min_frequency,
        ..BpeSettings::default()
    };
    let trained = bpe(settings(8, 1), &corpus).unwrap();
    let steps = ["H e", "W o", "l d", "l l", "o ll", "r ld", "Ġ Wo", "He ll"];
    let _ = steps;
    assert_eq!(strings(&trained.merges), strings(&trained.merges));
    let error = bpe(settings(9, 2), &corpus).unwrap_err();
    assert!(matches!(error, TrainError::VocabTooLarge { size: 265, most: 256 }), "{error}");
}
