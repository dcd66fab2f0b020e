//! SPM training: characters are symbols, and the most frequent pair becomes a piece; pieces follow rules about spaces,
//! digits and scripts.
//!
//! The vocabulary is, in this order: special tokens, the 256 byte tokens, pieces as they are merged, characters by
//! frequency. Scores count down from 0 over pieces and characters. Of equally frequent pairs the one with fewer
//! characters merges first, then the one whose text comes first. A pair whose text is already a piece does not merge.
//!
//! Source: sentencepiece 0.2.3 `src/bpe_model_trainer.cc` (`Trainer::Train`) and `src/trainer_interface.cc`
//! (`IsValidSentencePiece`, `LoadSentences`, `InitMetaPieces`). For time see [`merges`].
//!
//! Differences: (1) A pair that no longer occurs never becomes a piece; in sentencepiece some do at the end of a small
//! corpus. (2) Long lines, and lines with U+2585, are not skipped. (3) Scripts are Unicode's, as in `unicode-script`.
//!
//! [`merges`]: super::merges

use std::cmp::{Ordering, Reverse};
use std::collections::HashMap;

use ggtok_core::internals::interrupt::Ticker;
use ggtok_core::internals::spelling::{ESCAPED_SPACE, byte_text};

use super::merges::{Cells, Merger, Rules};
use super::scripts::{Script, is_digit, script};
use super::split::{Normalize, Spaces, Split, WordKind};
use super::symbols::{Symbol, Symbols};
use super::words::{WordCounter, Words};
use super::{BYTE, NORMAL, Progress, Result, SpecialToken, TrainError, Trained, check, check_size, check_special};

/// Marks spaces.
pub(super) const SPACE: char = '▁';
/// What no piece contains: NUL, and sentencepiece's internal word boundary.
pub(super) const NOT_IN_PIECES: &[char] = &['\0', '\u{1F}'];

/// How to train SPM. Each field works like sentencepiece's option of that name, unless noted.
#[derive(Debug, Clone)]
pub struct SpmSettings {
    /// The most tokens in total.
    pub vocab_size: usize,
    /// Special tokens; they get the first ids.
    pub special_tokens: Vec<SpecialToken>,
    /// Whether there are 256 byte tokens, which spell what no piece covers.
    pub byte_fallback: bool,
    /// The share of the corpus's characters to cover with tokens, most frequent first: above 0 and at most 1.
    pub character_coverage: f32,
    /// The most characters of the corpus that become tokens.
    pub limit_alphabet: usize,
    /// The length of the longest piece in characters.
    pub max_piece_length: usize,
    /// Pieces have spaces only at their start.
    pub split_by_whitespace: bool,
    /// Pieces do not mix scripts; Kana counts as Han.
    pub split_by_unicode_script: bool,
    /// Digits count as a script.
    pub split_by_number: bool,
    /// Each digit is its own piece.
    pub split_digits: bool,
    /// Pieces may be runs of spaces.
    pub allow_whitespace_only_pieces: bool,
    /// Whether a space goes before each text.
    pub add_dummy_prefix: bool,
    /// Whether spaces at both ends are removed, and runs of spaces become one.
    pub remove_extra_whitespaces: bool,
    /// How often a pair must occur to be merged.
    pub min_frequency: u64,
    /// The number of threads for counting.
    pub threads: usize,
}

impl Default for SpmSettings {
    fn default() -> Self {
        let special = [("<unk>", super::UNKNOWN), ("<s>", super::CONTROL), ("</s>", super::CONTROL)];
        Self {
            vocab_size: 32_000,
            special_tokens: special.map(|(text, kind)| SpecialToken { text: text.to_owned(), kind }).to_vec(),
            byte_fallback: true,
            character_coverage: 0.9995,
            limit_alphabet: usize::MAX,
            max_piece_length: 16,
            split_by_whitespace: true,
            split_by_unicode_script: true,
            split_by_number: true,
            split_digits: true,
            allow_whitespace_only_pieces: true,
            add_dummy_prefix: true,
            remove_extra_whitespaces: false,
            min_frequency: 1,
            threads: 1,
        }
    }
}

/// Trains SPM.
#[derive(Debug)]
pub struct SpmTrainer {
    settings: SpmSettings,
}

/// What the rules about pieces need to know about a symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Its length in characters.
    len: usize,
    /// The script of its first character that has one.
    first: Option<Script>,
    /// The script of its last characters, known or inherited.
    last: Option<Script>,
    /// It has no script and inherits the previous one.
    is_neutral: bool,
    pub(super) is_space: bool,
    has_digit: bool,
}

/// Which pairs may become pieces, and in which order.
pub(super) struct Pieces<'a> {
    settings: &'a SpmSettings,
    /// Indexed by symbol.
    shapes: Vec<Shape>,
}

impl<'a> Pieces<'a> {
    /// The rules for some symbols, whose texts are not empty.
    pub(super) fn new(settings: &'a SpmSettings, symbols: &Symbols) -> Self {
        let shapes = (0..symbols.len() as Symbol).filter_map(|symbol| {
            let shapes = text(symbols.text(symbol)).chars().map(|character| Shape::of(character, settings));
            shapes.reduce(Shape::join)
        });
        Self { settings, shapes: shapes.collect() }
    }
}

impl Shape {
    /// The shape of a character.
    pub(super) fn of(character: char, settings: &SpmSettings) -> Self {
        let script = script(character);
        let is_space = character == SPACE;
        let has_digit = is_digit(character);
        let has_none = is_space || has_digit && !settings.split_by_number;
        let own = script.filter(|_| !has_none);
        Self {
            len: 1,
            first: own,
            last: own,
            // A digit without a script ends the previous one.
            is_neutral: is_space || script.is_none(),
            is_space,
            has_digit,
        }
    }

    fn join(left: Self, right: Self) -> Self {
        Self {
            len: left.len + right.len,
            first: if left.is_neutral { right.first } else { left.first },
            last: if right.is_neutral { left.last } else { right.last },
            is_neutral: left.is_neutral && right.is_neutral,
            is_space: left.is_space && right.is_space,
            has_digit: left.has_digit || right.has_digit,
        }
    }

    /// A character after another one of its piece: a mark has the script of that.
    pub(super) fn after(self, before: Self) -> Self {
        let is_mark = self.is_neutral && !self.is_space;
        if is_mark { Self { last: before.last, ..self } } else { self }
    }

    /// Whether digits or scripts keep a piece from going on with `next`.
    pub(super) fn parts_from(self, next: Self, settings: &SpmSettings) -> bool {
        let two_scripts = matches!((self.last, next.first), (Some(one), Some(other)) if one != other);
        settings.split_digits && (self.has_digit || next.has_digit) || settings.split_by_unicode_script && two_scripts
    }
}

impl Rules for Pieces<'_> {
    const BY_TEXT: bool = false;

    fn allows(&self, symbols: &Symbols, left: Symbol, right: Symbol) -> bool {
        let text = symbols.text(right);
        let [left, right] = [left, right].map(|side| self.shapes[side as usize]);
        let settings = self.settings;
        let is_run = settings.allow_whitespace_only_pieces && left.is_space && right.is_space;
        // If words are not split at spaces, only the last character must not be one; otherwise all after the first.
        let bad_space = if settings.split_by_whitespace {
            text.starts_with(ESCAPED_SPACE) || left.is_space && left.len > 1
        } else {
            text.ends_with(ESCAPED_SPACE)
        };
        left.len + right.len <= settings.max_piece_length && (is_run || !bad_space) && !left.parts_from(right, settings)
    }

    /// The length in characters, and the first bytes of the text.
    fn tie(&self, symbols: &Symbols, left: Symbol, right: Symbol) -> u64 {
        let len = symbols.cells(left) + symbols.cells(right);
        let bytes = symbols.joined_bytes((left, right)).chain([0; 7]).take(7);
        bytes.fold(len.min(255) as u64, |tie, byte| tie << 8 | u64::from(byte))
    }

    fn compare(&self, symbols: &Symbols, one: (Symbol, Symbol), other: (Symbol, Symbol)) -> Ordering {
        let len = |(left, right)| symbols.cells(left) + symbols.cells(right);
        let order = len(one).cmp(&len(other));
        let order = order.then_with(|| symbols.joined_bytes(one).cmp(symbols.joined_bytes(other)));
        order.then_with(|| one.cmp(&other))
    }

    fn joined(&mut self, left: Symbol, right: Symbol, _: u64) {
        let shape = Shape::join(self.shapes[left as usize], self.shapes[right as usize]);
        self.shapes.push(shape);
    }
}

impl SpmTrainer {
    /// Checks the settings.
    ///
    /// # Errors
    /// - [`TrainError::VocabTooSmall`]: special tokens and byte tokens need more tokens.
    /// - [`TrainError::DuplicateToken`], [`TrainError::Setting`]: two special tokens are equal, one is empty or spelled
    ///   like a byte token, or a number is out of range.
    pub fn new(settings: SpmSettings) -> Result<Self> {
        check_special(&settings.special_tokens)?;
        let coverage = settings.character_coverage;
        check(coverage > 0.0 && coverage <= 1.0, "character_coverage", &coverage, "above 0 and at most 1")?;
        check(settings.max_piece_length > 0, "max_piece_length", &0, "at least 1")?;
        let trainer = Self { settings };
        trainer.start().checked()?;
        trainer.check_size(0)?;
        Ok(trainer)
    }

    /// Special tokens and byte tokens.
    pub(super) fn start(&self) -> Trained {
        let mut trained = Trained::default();
        trained.push_all(&self.settings.special_tokens);
        if self.settings.byte_fallback {
            (0..=u8::MAX).for_each(|byte| trained.push(&byte_text(byte), BYTE));
        }
        trained
    }

    pub(super) fn check_size(&self, num_characters: usize) -> Result<()> {
        let alphabet = num_characters + if self.settings.byte_fallback { 256 } else { 0 };
        check_size(self.settings.vocab_size, self.settings.special_tokens.len(), alphabet)
    }

    /// Counts the words of the corpus. Each text is normalized first, if there is a function for it.
    ///
    /// # Errors
    /// [`TrainError::TooLarge`]: there are too many special tokens.
    pub fn counter<'a>(&self, normalize: Option<Box<Normalize>>) -> Result<WordCounter<'a>> {
        let settings = &self.settings;
        let spaces = Spaces {
            normalize,
            add_prefix: settings.add_dummy_prefix,
            remove_extra: settings.remove_extra_whitespaces,
            split: settings.split_by_whitespace,
            keep_runs: settings.allow_whitespace_only_pieces,
        };
        let special = self.start().tokens;
        Ok(WordCounter::new(Split::new(WordKind::Spaces(spaces), special.iter().map(Vec::as_slice))?, settings.threads))
    }

    /// Trains on counted words.
    ///
    /// # Errors
    /// As [`BpeTrainer::train`](super::BpeTrainer::train), and [`TrainError::EmptyCorpus`]: there are no characters.
    pub fn train(&self, words: &Words, progress: &mut Progress<'_>) -> Result<Trained> {
        let characters =
            most_frequent(words, NOT_IN_PIECES, (self.settings.character_coverage, self.settings.limit_alphabet))?;
        self.check_size(characters.len())?;

        let mut symbols = Symbols::default();
        let mut numbers = HashMap::new();
        for &character in &characters {
            numbers.insert(character, symbols.add(character.encode_utf8(&mut [0; 4]).as_bytes()));
        }
        let rules = Pieces::new(&self.settings, &symbols);
        let mut cells = Cells::default();
        for (word, count) in words.iter() {
            cells.push(text(word).chars().map(|character| numbers.get(&character).copied()), count)?;
        }

        let mut trained = self.start();
        let num_symbols = self.settings.vocab_size - trained.tokens.len();
        let mut merger = Merger::new(rules, symbols, cells, self.settings.min_frequency, self.settings.threads);
        merger.run(num_symbols, progress)?;
        trained.scores = vec![0.0; trained.tokens.len()];
        let order = (characters.len()..merger.symbols.len()).chain(0..characters.len());
        for (rank, symbol) in order.enumerate() {
            trained.push(merger.symbols.text(symbol as Symbol), NORMAL);
            trained.scores.push(-(rank as f32));
        }
        trained.checked()
    }
}

/// Words are always whole characters.
pub(super) fn text(word: &[u8]) -> &str {
    std::str::from_utf8(word).unwrap_or_default()
}

/// The most frequent characters that make up a share of all, except some, and at most so many: in descending order.
pub(super) fn most_frequent(words: &Words, except: &[char], (coverage, most): (f32, usize)) -> Result<Vec<char>> {
    check(most > 0, "limit_alphabet", &0, "at least 1")?;
    let mut counts: HashMap<char, u64> = HashMap::new();
    let mut ticker = Ticker::default();
    for (word, count) in words.iter() {
        for character in text(word).chars().filter(|character| !except.contains(character)) {
            ticker.tick();
            *counts.entry(character).or_default() += count;
        }
    }
    let all: u64 = counts.values().sum();
    let mut characters: Vec<(char, u64)> = counts.into_iter().collect();
    characters.sort_unstable_by_key(|&(character, count)| (Reverse(count), character));
    let mut before = 0;
    let num_covered = characters.iter().position(|&(_, count)| {
        let share = (before as f64 / all as f64) as f32;
        before += count;
        share >= coverage
    });
    characters.truncate(num_covered.unwrap_or(characters.len()).min(most));
    if characters.is_empty() {
        return Err(TrainError::EmptyCorpus);
    }
    Ok(characters.into_iter().map(|(character, _)| character).collect())
}
