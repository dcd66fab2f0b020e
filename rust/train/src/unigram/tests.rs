//! Compares the parts of the trainer with slow ones that are obviously right.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::lattice::{Lattice, UNKNOWN};
use super::pieces::Pieces;
use super::segments::{Piece, Segments};
use super::{UnigramSettings, UnigramTrainer, em, seeds};
use crate::spm::{NOT_IN_PIECES, most_frequent};
use crate::{TrainError, Trained, Words};

fn words(counts: &BTreeMap<String, u64>) -> Words {
    let mut words = Words::default();
    counts.iter().for_each(|(word, &count)| words.0.add(word.as_bytes(), count));
    words
}

fn settings(vocab_size: usize, threads: usize) -> UnigramSettings {
    let mut settings = UnigramSettings::default();
    (settings.spm.vocab_size, settings.spm.threads, settings.spm.character_coverage) = (vocab_size, threads, 1.0);
    settings
}

fn segments(counts: &BTreeMap<String, u64>, settings: &UnigramSettings) -> Segments {
    let words = words(counts);
    let alphabet = most_frequent(&words, NOT_IN_PIECES, (settings.spm.character_coverage, usize::MAX)).unwrap();
    Segments::new(&words, &alphabet, &settings.spm).unwrap()
}

fn list(segments: &Segments) -> Vec<(String, u64)> {
    let text = |(text, count): (&[u8], u64)| (String::from_utf8(text.to_vec()).unwrap(), count);
    (0..segments.len()).map(|index| text(segments.get(index))).collect()
}

fn train(counts: &BTreeMap<String, u64>, settings: UnigramSettings) -> Result<Trained, TrainError> {
    UnigramTrainer::new(settings)?.train(&words(counts), &mut |_, _, _| ControlFlow::Continue(()))
}

/// Words over few letters, some with two or three bytes, with spaces, digits and marks.
fn corpora() -> impl Strategy<Value = BTreeMap<String, u64>> {
    btree_map("▁?[abé,1あ\u{301}]{1,8}", 1..20_u64, 1..12)
}

/// All ways to segment a text, each with its score; a character without a piece is unknown.
fn ways(pieces: &BTreeMap<&str, (u32, f64)>, unknown: f64, text: &str) -> Vec<(f64, Vec<u32>)> {
    let Some(first) = text.chars().next() else { return vec![(0.0, Vec::new())] };
    let mut starts: Vec<_> =
        pieces.iter().filter(|(piece, _)| text.starts_with(**piece)).map(|(p, &s)| (*p, s)).collect();
    if !pieces.contains_key(&text[..first.len_utf8()]) {
        starts.push((&text[..first.len_utf8()], (UNKNOWN, unknown)));
    }
    let then = |(piece, (number, score)): (&str, (u32, f64))| {
        let rest = ways(pieces, unknown, &text[piece.len()..]).into_iter();
        rest.map(move |(rest, way)| (score + rest, [vec![number], way].concat())).collect::<Vec<_>>()
    };
    starts.into_iter().flat_map(then).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every stretch of a segment may be a piece, and a word is the concatenation of its segments.
    #[test]
    fn segments_are_what_no_rule_parts(counts in corpora()) {
        let segments = segments(&counts, &settings(100, 1));
        let characters = |text: &str| text.chars().count() as u64;
        let in_words: u64 = counts.iter().map(|(word, count)| characters(word) * count).sum();
        prop_assert_eq!(list(&segments).iter().map(|(text, count)| characters(text) * count).sum::<u64>(), in_words);
        for (text, _) in list(&segments) {
            prop_assert!(counts.keys().any(|word| word.contains(&text)));
            prop_assert!(!text.chars().skip(1).any(|character| character == '▁'), "{}", text);
            let letters = text.contains(['a', 'b', 'é']);
            prop_assert!(u8::from(letters) + u8::from(text.contains([',', '1'])) + u8::from(text.contains('あ')) <= 1);
        }
    }

    /// The seeds are the stretches that occur twice, except those that always continue in the same way.
    #[test]
    fn seeds_are_where_texts_branch(counts in corpora(), max_len in 2..6_usize) {
        let mut settings = settings(100, 2);
        settings.spm.max_piece_length = max_len;
        let segments = segments(&counts, &settings);
        let mut found: BTreeMap<Vec<char>, (u64, BTreeSet<Option<char>>)> = BTreeMap::new();
        for (text, count) in list(&segments) {
            let text: Vec<char> = text.chars().collect();
            for (start, end) in (0..text.len()).flat_map(|start| (start + 1..=text.len()).map(move |end| (start, end))) {
                let (sum, next) = found.entry(text[start..end].to_vec()).or_default();
                *sum += count;
                next.insert(text.get(end).copied());
            }
        }
        let branches = |text: &[char], next: &BTreeSet<Option<char>>| {
            text.len() == max_len || next.len() > 1 || next.contains(&None)
        };
        let expected: BTreeSet<String> = found
            .iter()
            .filter(|(text, (count, next))| {
                text.len() == 1 || text.len() <= max_len && *count >= 2 && branches(text, next)
            })
            .map(|(text, _)| text.iter().collect())
            .collect();
        let pieces = seeds::seeds(&segments, &settings).unwrap();
        let texts = (0..pieces.len() as u32).map(|piece| String::from_utf8(pieces.text(piece).to_vec()).unwrap());
        prop_assert_eq!(texts.collect::<BTreeSet<_>>(), expected);
    }

    /// Compares expected counts, the best way and the second best with a list of all ways.
    #[test]
    fn a_lattice_has_all_ways(text in "[abé]{1,7}", kept in vec(any::<bool>(), 28), scores in vec(-9.0..-0.1_f64, 28)) {
        let segments = segments(&BTreeMap::from([(text.clone(), 3)]), &settings(100, 1));
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let spans = |(n, &start): (usize, &usize)| places[n + 1..].iter().map(move |&end| (start, end)).collect::<Vec<_>>();
        let mut texts = BTreeMap::new();
        for (index, (start, end)) in places.iter().enumerate().flat_map(spans).enumerate() {
            if kept[index] {
                texts.insert(&text[start..end], (Piece { start: start as u32, len: (end - start) as u32 }, scores[index]));
            }
        }
        let (list, scores): (Vec<_>, Vec<_>) = texts.values().copied().unzip();
        let pieces = Pieces::new(&segments, list, scores).unwrap();
        let numbered = (0..).zip(&texts).map(|(number, (text, (_, score)))| (*text, (number, *score))).collect();
        let ways = ways(&numbered, pieces.unknown_score, &text);

        let mut lattice = Lattice::default();
        lattice.fill(&pieces, text.as_bytes());
        let mut counts = vec![0.0; pieces.len()];
        let log = lattice.marginals(|piece, visits| counts[piece as usize] += visits);
        let all: f64 = ways.iter().map(|(score, _)| score.exp()).sum();
        prop_assert!((log - all.ln()).abs() < 1e-9);
        for (number, count) in (0..).zip(counts) {
            let expected = ways.iter().map(|(score, way)| score.exp() * way.iter().filter(|&&n| n == number).count() as f64);
            prop_assert!((count - expected.sum::<f64>() / all).abs() < 1e-9);
        }

        for is_split in [false, true] {
            let others = ways.iter().filter(|(_, way)| !is_split || way.len() > 1);
            let best = others.map(|(score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
            let score = lattice.search(is_split);
            prop_assert!(score == best || (score - best).abs() < 1e-9, "{} {}", score, best);
            if best > f64::NEG_INFINITY {
                let score_of = |piece| if piece == UNKNOWN { pieces.unknown_score } else { pieces.score(piece) };
                prop_assert!((lattice.best_way().map(score_of).sum::<f64>() - best).abs() < 1e-9);
            }
        }
    }

    /// Any number of threads gives the same vocabulary, and every character of the corpus is in it.
    #[test]
    fn threads_change_nothing(counts in corpora(), more in 0..20_usize) {
        let characters: BTreeSet<char> = counts.keys().flat_map(|word| word.chars()).collect();
        let result = |threads| train(&counts, settings(3 + characters.len() + more, threads));
        match (result(1), result(3)) {
            (Ok(one), Ok(three)) => {
                prop_assert_eq!(&one, &three);
                let has = |character: &char| one.tokens.contains(&character.to_string().into_bytes());
                prop_assert!(characters.iter().all(has));
                prop_assert!(one.scores[3..].is_sorted_by(|a, b| a >= b));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

/// Fitting the scores makes the corpus likelier, up to the bias of the prior.
#[test]
fn fitting_makes_the_corpus_likelier() {
    let counts = ["▁the", "▁then", "▁other", "▁weather", "▁he", "▁her"].map(|word| (word.to_owned(), 1000));
    let segments = segments(&BTreeMap::from(counts), &settings(100, 1));
    let mut pieces = seeds::seeds(&segments, &settings(100, 1)).unwrap();
    let log_likelihood = |pieces: &Pieces<'_>| -> f64 {
        let mut lattice = Lattice::default();
        let log = |index| {
            lattice.fill(pieces, segments.get(index).0);
            lattice.marginals(|_, _| {}) * segments.get(index).1 as f64
        };
        (0..segments.len()).map(log).sum()
    };
    let mut before = log_likelihood(&pieces);
    for _ in 0..5 {
        pieces.set_scores(em::scores(&em::expect(&segments, &pieces, 1)));
        let after = log_likelihood(&pieces);
        assert!(after >= before - 1.0, "{before} {after}");
        before = after;
    }
}

#[test]
fn runs_of_spaces_are_pieces_where_they_may_be() {
    let mut settings = settings(100, 1);
    let counts = BTreeMap::from([("▁▁▁a".to_owned(), 5), ("▁▁b".to_owned(), 5)]);
    let texts = |settings: &UnigramSettings| {
        let segments = segments(&counts, settings);
        let pieces = seeds::seeds(&segments, settings).unwrap();
        (0..pieces.len() as u32)
            .map(|piece| String::from_utf8(pieces.text(piece).to_vec()).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(&settings), ["a", "b", "▁", "▁a", "▁b"]);
    settings.spm.allow_whitespace_only_pieces = true;
    assert_eq!(texts(&settings), ["a", "b", "▁", "▁a", "▁b", "▁▁", "▁▁▁"]);
    settings.spm.split_by_whitespace = false;
    assert_eq!(texts(&settings), ["a", "b", "▁", "▁a", "▁b", "▁▁", "▁▁a", "▁▁b", "▁▁▁a"]);
}

#[test]
fn extreme_lengths() {
    let counts = BTreeMap::from([(format!("▁{}", "a".repeat(10_000)), 1), ("▁aa".to_owned(), 2)]);
    let result = |vocab_size, max_piece_length| {
        let mut settings = settings(vocab_size, 1);
        settings.spm.max_piece_length = max_piece_length;
        train(&counts, settings)
    };
    assert_eq!(result(6, 1).unwrap().tokens.len(), 5);
    assert!(result(6, 2).unwrap().tokens.contains(&b"aa".to_vec()));
    assert!(result(6, usize::MAX).is_ok());
}

#[test]
fn what_is_not_a_number_is_refused_and_training_stops_when_told() {
    let refused = UnigramTrainer::new(UnigramSettings { shrinking_factor: f64::NAN, ..settings(20, 1) }).unwrap_err();
    assert_eq!(refused.to_string(), "shrinking_factor must be at least 0.5 and less than 1, not NaN");
    let mut stop = |_, _, _| ControlFlow::Break(());
    let trainer = UnigramTrainer::new(settings(6, 1)).unwrap();
    let counts = BTreeMap::from([("▁ab".to_owned(), 1)]);
    assert!(matches!(trainer.train(&words(&counts), &mut stop), Err(TrainError::Stopped)));
}
