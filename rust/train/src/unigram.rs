//! Unigram training: starts with many pieces and drops the least useful ones round by round.
//!
//! 1. Words are cut into [`segments`] that no piece can span.
//! 2. The [`seeds`] are all characters and the most promising stretches of text.
//! 3. Expectation maximization ([`em`]) fits the probability of each piece to the corpus, twice.
//! 4. A quarter of the pieces is dropped: those whose loss costs the corpus the least likelihood.
//! 5. Steps 3 and 4 repeat until there are a tenth more pieces than requested.
//! 6. Characters that were dropped come back with a low score, and the pieces with the highest scores remain.
//!
//! Source: Kudo, "Subword Regularization" (2018); sentencepiece's unigram_model_trainer.cc (0.2.3).
//!
//! Differences:
//! 1. Those of [`segments`] and [`seeds`].
//! 2. Sums are exact or in double precision and do not depend on the number of threads; sentencepiece adds floats in
//!    the order of its threads.
//! 3. In an alternative, a character whose piece was dropped is one unknown character; a piece without any other
//!    alternative is kept.
//!
//! Complexity: each round takes O(n L) time for n characters of distinct segments and pieces of at most L characters,
//! and the number of pieces falls geometrically. Space: the segments, about 40 bytes per seed, and 8 bytes per seed and
//! thread.

mod em;
mod lattice;
pub(super) mod math;
mod pieces;
mod seeds;
mod segments;

use std::collections::HashMap;

use ggtok_core::internals::interrupt;

use super::spm::{NOT_IN_PIECES, SpmSettings, SpmTrainer, most_frequent};
use super::words::{WordCounter, Words};
use super::{NORMAL, Normalize, Phase, Progress, Result, TrainError, Trained, check};
use lattice::Lattice;
use pieces::Pieces;
use segments::Segments;

/// How many more pieces than requested are left for the final choice.
const SURPLUS: f64 = 1.1;
/// The maximum number of seeds, as many as a trie can number.
const MOST_SEEDS: usize = 100_000_000;
/// How much higher each restored character scores than the one before.
const MISSING_STEP: f64 = 0.0001;

/// How to train Unigram.
#[derive(Debug, Clone)]
pub struct UnigramSettings {
    /// The settings shared with SPM. The minimum frequency of a pair does not apply, because there are no pairs.
    pub spm: SpmSettings,
    /// How many pieces to start with, not counting single characters.
    pub seed_size: usize,
    /// The share of pieces that a round keeps: at least a half, and less than 1.
    pub shrinking_factor: f64,
    /// How often the scores are fitted in a round.
    pub num_sub_iterations: usize,
}

impl Default for UnigramSettings {
    /// The defaults of sentencepiece, except for the size.
    fn default() -> Self {
        let spm = SpmSettings {
            byte_fallback: false,
            split_digits: false,
            allow_whitespace_only_pieces: false,
            remove_extra_whitespaces: true,
            ..SpmSettings::default()
        };
        Self { spm, seed_size: 1_000_000, shrinking_factor: 0.75, num_sub_iterations: 2 }
    }
}

/// Trains Unigram.
///
/// # Examples
/// ```
/// use std::ops::ControlFlow;
///
/// use ggtok_train::{UnigramSettings, UnigramTrainer};
///
/// let mut settings = UnigramSettings::default();
/// settings.spm.vocab_size = 18;
/// let trainer = UnigramTrainer::new(settings)?;
/// let mut progress = |_, _, _| ControlFlow::Continue(());
/// let mut counter = trainer.counter(None)?;
/// counter.push(&["the quick", "then quickly", "the quickest"], &mut progress)?;
/// let trained = trainer.train(&counter.finish()?, &mut progress)?;
/// assert!(trained.tokens.contains(&"▁quick".as_bytes().to_vec()));
/// # Ok::<(), ggtok_train::TrainError>(())
/// ```
#[derive(Debug)]
pub struct UnigramTrainer {
    settings: UnigramSettings,
    /// Does what both kinds have in common: special tokens, words, the alphabet.
    spm: SpmTrainer,
}

impl UnigramTrainer {
    /// Checks the settings.
    ///
    /// # Errors
    /// As [`SpmTrainer::new`], and [`TrainError::Setting`] for the numbers that only Unigram has.
    pub fn new(settings: UnigramSettings) -> Result<Self> {
        let UnigramSettings { seed_size, shrinking_factor, num_sub_iterations, .. } = &settings;
        let is_share = (0.5..1.0).contains(shrinking_factor);
        check(is_share, "shrinking_factor", shrinking_factor, "at least 0.5 and less than 1")?;
        check(*num_sub_iterations > 0, "num_sub_iterations", num_sub_iterations, "at least 1")?;
        check((1..=MOST_SEEDS).contains(seed_size), "seed_size", seed_size, "at least 1 and at most 100000000")?;
        let spm = SpmTrainer::new(settings.spm.clone())?;
        Ok(Self { settings, spm })
    }

    /// Counts the words of the corpus, as [`SpmTrainer::counter`] does.
    ///
    /// # Errors
    /// [`TrainError::TooLarge`]: there are too many special tokens.
    pub fn counter<'a>(&self, normalize: Option<Box<Normalize>>) -> Result<WordCounter<'a>> {
        self.spm.counter(normalize)
    }

    /// Trains on counted words. After the special and byte tokens come the pieces, highest score first.
    ///
    /// # Errors
    /// As [`SpmTrainer::train`].
    pub fn train(&self, words: &Words, progress: &mut Progress<'_>) -> Result<Trained> {
        let UnigramSettings { spm, shrinking_factor, num_sub_iterations, .. } = &self.settings;
        let alphabet = most_frequent(words, NOT_IN_PIECES, (spm.character_coverage, spm.limit_alphabet))?;
        self.spm.check_size(alphabet.len())?;
        let mut trained = self.spm.start();
        trained.scores = vec![0.0; trained.tokens.len()];
        let wanted = spm.vocab_size - trained.tokens.len();

        let segments = Segments::new(words, &alphabet, spm)?;
        let mut pieces = seeds::seeds(&segments, &self.settings)?;
        let num_seeds = pieces.len();
        let goal = (SURPLUS * wanted as f64) as usize;
        loop {
            for _ in 0..*num_sub_iterations {
                let counts = em::expect(&segments, &pieces, spm.threads);
                pieces.set_scores(em::scores(&counts));
                let dropped = num_seeds - pieces.num_live();
                if progress(Phase::Dropping, dropped as u64, num_seeds.saturating_sub(goal) as u64).is_break() {
                    return Err(TrainError::Stopped);
                }
            }
            let before = pieces.num_live();
            let len = goal.max((shrinking_factor * before as f64) as usize);
            let keeps = em::prune(&segments, &pieces, len, spm.threads);
            pieces = pieces.retain(&keeps)?;
            // No more can be dropped if every remaining piece is the only way to write its text.
            if pieces.len() <= goal || pieces.len() == before {
                break;
            }
        }
        for (text, score) in finish(&pieces, &alphabet, wanted) {
            trained.push(&text, NORMAL);
            trained.scores.push(score as f32);
        }
        trained.checked()
    }
}

/// The pieces with the highest scores, and all required characters.
fn finish(pieces: &Pieces<'_>, alphabet: &[char], wanted: usize) -> Vec<(Vec<u8>, f64)> {
    let mut lattice = Lattice::default();
    let mut scores: HashMap<&[u8], f64> = HashMap::new();
    for piece in 0..pieces.len() as u32 {
        interrupt::check();
        // A piece is useless if its text has a better segmentation.
        if lattice.lead(pieces, piece).is_none_or(|lead| lead >= 0.0) {
            scores.insert(pieces.text(piece), pieces.score(piece));
        }
    }

    let lowest = pieces.lowest_score();
    let mut missing = (0..).map(|number| lowest + MISSING_STEP * f64::from(number));
    let mut learned = Vec::with_capacity(alphabet.len() + scores.len());
    for character in alphabet {
        let text = character.to_string().into_bytes();
        let score = scores.remove(text.as_slice()).or_else(|| missing.next()).unwrap_or(lowest);
        learned.push((text, score));
    }
    let by_score = |a: &(Vec<u8>, f64), b: &(Vec<u8>, f64)| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0));
    let mut others: Vec<_> = scores.into_iter().map(|(text, score)| (text.to_vec(), score)).collect();
    others.sort_unstable_by(by_score);
    others.truncate(wanted - learned.len());
    learned.append(&mut others);
    learned.sort_unstable_by(by_score);
    learned
}

#[cfg(test)]
mod tests;
