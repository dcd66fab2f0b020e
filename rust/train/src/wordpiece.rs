//! WordPiece training: letters are symbols, with different symbols for a letter at the start of a word and inside one,
//! and pairs become symbols by likelihood or by frequency.
//!
//! Likelihood picks the pair whose merge makes the words most likely if symbols are drawn independently: the one with
//! the highest count(ab) / (count(a) · count(b)). That favours rare letters that are always together, so it needs a
//! minimum frequency. Frequency picks the most frequent pair, as huggingface/tokenizers does. Ties go to the pair with
//! the smaller left symbol, then the smaller right one. Letters at the start of words have lower numbers than letters
//! inside them, each in the order of code points.
//!
//! Tokens are spelled as in llama.cpp: `▁` starts words, and other tokens have no `##`. Letters that occur only inside
//! words, and words of one character such as punctuation, are tokens in the form in which they occur.
//!
//! Source: Schuster & Nakajima 2012 (likelihood); huggingface/tokenizers `src/models/wordpiece/trainer.rs` (frequency).
//! For time see [`merges`]; with likelihood, each merge also visits all pairs of its two symbols.
//!
//! [`merges`]: super::merges

use std::collections::{BTreeSet, HashSet};

use ggtok_core::internals::interrupt;
use ggtok_core::internals::spelling::ESCAPED_SPACE;
use ggtok_core::vocab::Settings;

use super::merges::{Cells, Merger, Rules};
use super::split::{Split, WordKind};
use super::spm::{SPACE, most_frequent, text};
use super::symbols::{Symbol, Symbols};
use super::words::{WordCounter, Words};
use super::{NORMAL, Progress, Result, SpecialToken, Trained, check_size, check_special};

/// How to train WordPiece.
#[derive(Debug, Clone)]
pub struct WordPieceSettings {
    /// How many tokens, special ones included.
    pub vocab_size: usize,
    /// Special tokens; they get the first ids.
    pub special_tokens: Vec<SpecialToken>,
    /// How pairs are chosen.
    pub by: Likelihood,
    /// How often a pair must occur to be merged.
    pub min_frequency: u64,
    /// The length of the longest token in characters, without `▁`.
    pub max_token_length: usize,
    /// The most characters that become tokens, the most frequent first. Words with others stay unknown.
    pub limit_alphabet: usize,
    /// Whether letters become lowercase, as in the encoder.
    pub lowercase: bool,
    /// Whether accents are dropped.
    pub strip_accents: bool,
    /// The number of threads for counting.
    pub threads: usize,
}

/// How pairs of a WordPiece vocabulary are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likelihood {
    /// By how often the pair occurs.
    Frequency,
    /// By that, divided by how often each of its symbols occurs.
    Gain,
}

impl Default for WordPieceSettings {
    fn default() -> Self {
        let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
        Self {
            vocab_size: 30_522,
            special_tokens: special.map(|text| SpecialToken { text: text.to_owned(), kind: super::CONTROL }).to_vec(),
            by: Likelihood::Frequency,
            min_frequency: 2,
            max_token_length: usize::MAX,
            limit_alphabet: usize::MAX,
            lowercase: true,
            strip_accents: true,
            threads: 1,
        }
    }
}

/// Trains WordPiece.
#[derive(Debug)]
pub struct WordPieceTrainer {
    settings: WordPieceSettings,
}

/// Pairs by frequency, or by gain if `BY_GAIN`.
struct Pairs<const BY_GAIN: bool> {
    max_len: usize,
}

impl<const BY_GAIN: bool> Rules for Pairs<BY_GAIN> {
    const BY_TEXT: bool = true;
    const BY_PARTS: bool = BY_GAIN;

    fn allows(&self, symbols: &Symbols, left: Symbol, right: Symbol) -> bool {
        symbols.cells(left) + symbols.cells(right) <= self.max_len
    }

    /// Positive floats have the order of their bits.
    fn priority(&self, count: u64, [left, right]: [u64; 2]) -> u64 {
        if !BY_GAIN {
            count
        } else if left == 0 || right == 0 {
            0
        } else {
            (count as f64 / (left as f64 * right as f64)).to_bits()
        }
    }
}

impl WordPieceTrainer {
    /// Checks the settings.
    ///
    /// # Errors
    /// - [`VocabTooSmall`](crate::TrainError::VocabTooSmall): the special tokens need more tokens.
    /// - [`DuplicateToken`](crate::TrainError::DuplicateToken): two special tokens are equal.
    /// - [`Setting`](crate::TrainError::Setting): one is empty.
    pub fn new(settings: WordPieceSettings) -> Result<Self> {
        check_special(&settings.special_tokens)?;
        check_size(settings.vocab_size, settings.special_tokens.len(), 0)?;
        Ok(Self { settings })
    }

    /// Counts the words of the corpus.
    ///
    /// # Errors
    /// [`TooLarge`](crate::TrainError::TooLarge): there are too many special tokens.
    pub fn counter<'a>(&self) -> Result<WordCounter<'a>> {
        let WordPieceSettings { lowercase, strip_accents, .. } = self.settings;
        let kind = WordKind::wordpiece(&Settings { lowercase, strip_accents, ..Settings::default() });
        let special = self.settings.special_tokens.iter().map(|token| token.text.as_bytes());
        Ok(WordCounter::new(Split::new(kind, special)?, self.settings.threads))
    }

    /// Trains on counted words.
    ///
    /// # Errors
    /// As [`BpeTrainer::train`](super::BpeTrainer::train).
    pub fn train(&self, words: &Words, progress: &mut Progress<'_>) -> Result<Trained> {
        match self.settings.by {
            Likelihood::Frequency => self.train_by::<false>(words, progress),
            Likelihood::Gain => self.train_by::<true>(words, progress),
        }
    }

    fn train_by<const BY_GAIN: bool>(&self, words: &Words, progress: &mut Progress<'_>) -> Result<Trained> {
        // In byte order, which is that of code points. Letters that start words come first.
        let known = HashSet::<char>::from_iter(most_frequent(words, &[SPACE], (1.0, self.settings.limit_alphabet))?);
        let is_known = |letter: &&[u8]| text(letter).chars().all(|letter| letter == SPACE || known.contains(&letter));
        let mut alphabet = [BTreeSet::new(), BTreeSet::new()];
        let all_letters = words.iter().flat_map(|(word, _)| letters(word));
        for letter in interrupt::ticking(all_letters.filter(is_known)) {
            alphabet[usize::from(!letter.starts_with(ESCAPED_SPACE))].insert(letter);
        }
        let num_special = self.settings.special_tokens.len();
        check_size(self.settings.vocab_size, num_special, alphabet.iter().map(BTreeSet::len).sum())?;

        let mut symbols = Symbols::default();
        alphabet.iter().flatten().for_each(|letter| {
            symbols.add(letter);
        });
        let mut cells = Cells::default();
        for (word, count) in words.iter() {
            cells.push(letters(word).map(|letter| symbols.find(letter)), count)?;
        }

        let WordPieceSettings { vocab_size, max_token_length: max_len, min_frequency, threads, .. } = self.settings;
        let mut merger = Merger::new(Pairs::<BY_GAIN> { max_len }, symbols, cells, min_frequency, threads);
        merger.run(vocab_size - num_special, progress)?;
        let mut trained = Trained::default();
        trained.push_all(&self.settings.special_tokens);
        for symbol in 0..merger.symbols.len() as Symbol {
            trained.push(merger.symbols.text(symbol), NORMAL);
        }
        trained.checked()
    }
}

/// The characters of a word, the first one with its `▁`.
pub(super) fn letters(word: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_start = |&at: &usize| at == word.len() || at > ESCAPED_SPACE.len() && word[at] & 0xC0 != 0x80;
    let mut start = 0;
    (ESCAPED_SPACE.len() + 1..=word.len()).filter(move |at| is_start(at)).map(move |end| {
        let letter = &word[start..end];
        start = end;
        letter
    })
}
