//! Byte-level BPE training: all 256 bytes are symbols, and the most frequent pair of neighbours becomes one, over and
//! over.
//!
//! Ties are broken as in huggingface/tokenizers: by the smaller left symbol, then the smaller right one. Bytes are
//! numbered in the order of their GPT-2 characters, then merges as they are made. A pair whose text is already a token
//! (`ab` + `c` after `a` + `bc`) becomes a merge without a new token.
//!
//! SuperBPE (Liu et al. 2025): after `transition` tokens, merging continues on pieces that are not cut at spaces. They
//! are first encoded with the merges so far, as llama.cpp will do. A pair whose text is a token of the first stage does
//! not merge.
//!
//! With `whole_characters`, every character of the corpus is first made from its bytes, and pairs are counted after
//! that. These merges of bytes do not cross characters, so an encoder that merges by rank does the same.
//!
//! Source: huggingface/tokenizers `src/models/bpe/trainer.rs` (`BpeTrainer::do_train`). For time see [`merges`].
//!
//! Differences: (1) A merge of exactly `max_token_length` is made; huggingface makes only shorter ones. (2) Special
//! tokens written in a text are not trained on.
//!
//! [`merges`]: super::merges

use std::collections::{BTreeSet, HashMap};

use ggtok_core::internals::interrupt;
use ggtok_core::internals::spelling::byte_level::{spell, unspell};
use ggtok_core::internals::{Splitter, nearest};
use ggtok_core::vocab::{Definition, PRE_TOKENIZERS, StringIndex};
use ggtok_core::{EncodeOptions, TokenId, Tokenizer};

use super::merges::{Cells, Merger, Rules};
use super::split::{Split, WordKind};
use super::symbols::{Symbol, Symbols};
use super::words::{WordCounter, Words};
use super::{NORMAL, Progress, Result, SpecialToken, TrainError, Trained, check, check_size, check_special};

/// How to train byte-level BPE.
#[derive(Debug, Clone)]
pub struct BpeSettings {
    /// The most tokens, including special ones.
    pub vocab_size: usize,
    /// The name of the pre-tokenizer: one of `PRE_TOKENIZERS`, with a family that merges bytes.
    pub pre: String,
    /// Special tokens.
    pub special_tokens: Vec<SpecialToken>,
    /// Whether their ids come first. Otherwise they come last.
    pub special_first: bool,
    /// How often a pair must occur to be merged.
    pub min_frequency: u64,
    /// The length of the longest token in bytes; in characters with `whole_characters`.
    pub max_token_length: usize,
    /// Whether every character of the corpus is a token, made from its bytes before pairs are counted.
    pub whole_characters: bool,
    /// For SuperBPE: the number of tokens after which merging continues across words, and the pre-tokenizer until then.
    pub transition: Option<(usize, String)>,
    /// The number of threads for counting.
    pub threads: usize,
}

impl Default for BpeSettings {
    fn default() -> Self {
        Self {
            vocab_size: 32_000,
            pre: "qwen2".to_owned(),
            special_tokens: Vec::new(),
            special_first: false,
            min_frequency: 2,
            max_token_length: usize::MAX,
            whole_characters: false,
            transition: None,
            threads: 1,
        }
    }
}

/// Trains byte-level BPE.
#[derive(Debug)]
pub struct BpeTrainer {
    settings: BpeSettings,
}

/// Pairs by count, ties by their symbols.
struct ByCount {
    max_len: usize,
    /// Whether lengths are in characters, as with `whole_characters`. Otherwise they are in bytes.
    by_character: bool,
}

impl Rules for ByCount {
    const BY_TEXT: bool = true;

    fn allows(&self, symbols: &Symbols, left: Symbol, right: Symbol) -> bool {
        let [left, right] = [left, right].map(|side| {
            let text = symbols.text(side);
            if self.by_character { String::from_utf8_lossy(text).chars().count() } else { text.len() }
        });
        left + right <= self.max_len
    }
}

impl BpeTrainer {
    /// Checks the settings.
    ///
    /// # Errors
    /// - [`TrainError::UnknownPreTokenizer`]: the name is unknown.
    /// - [`TrainError::VocabTooSmall`]: special tokens and bytes need more tokens.
    /// - [`TrainError::DuplicateToken`], [`TrainError::Setting`]: two special tokens are equal, one is empty, a limit
    ///   is 0, the pre-tokenizer is for merges of characters, or the transition is not within the vocabulary's size.
    pub fn new(settings: BpeSettings) -> Result<Self> {
        check_special(&settings.special_tokens)?;
        splitter(&settings.pre)?;
        let special = settings.special_tokens.len();
        check_size(settings.vocab_size, special, 256)?;
        if let Some((size, pre)) = &settings.transition {
            splitter(pre)?;
            let is_between = (special + 256..=settings.vocab_size).contains(size);
            check(is_between, "transition", size, "a number of tokens between those of the alphabet and all")?;
        }
        check(settings.max_token_length > 0, "max_token_length", &0, "at least 1")?;
        Ok(Self { settings })
    }

    /// Counts the words of the corpus: pieces of the pre-tokenizer; for SuperBPE, of the first one.
    ///
    /// # Errors
    /// [`TrainError::TooLarge`]: there are too many special tokens.
    pub fn counter<'a>(&self) -> Result<WordCounter<'a>> {
        self.counter_of(self.settings.transition.as_ref().map_or(&self.settings.pre, |(_, pre)| pre))
    }

    /// For SuperBPE, counts the pieces of the corpus after the transition.
    ///
    /// # Errors
    /// [`TrainError::TooLarge`]: there are too many special tokens.
    pub fn second_counter<'a>(&self) -> Result<Option<WordCounter<'a>>> {
        self.settings.transition.as_ref().map(|_| self.counter_of(&self.settings.pre)).transpose()
    }

    fn counter_of<'a>(&self, pre: &str) -> Result<WordCounter<'a>> {
        let special = self.settings.special_tokens.iter().map(|token| token.text.as_bytes());
        Ok(WordCounter::new(Split::new(WordKind::Pieces(splitter(pre)?), special)?, self.settings.threads))
    }

    /// Trains on counted words, and on those of the second counter if there is one.
    ///
    /// # Errors
    /// - [`TrainError::VocabTooSmall`]: special tokens, bytes and characters or letters need more tokens.
    /// - [`TrainError::DuplicateToken`]: a special token is spelled like another token.
    /// - [`TrainError::TooLarge`]: the words have more than 2³² bytes or characters.
    /// - [`TrainError::Stopped`]: `progress` stopped the training.
    pub fn train(&self, words: &Words, second: Option<&Words>, progress: &mut Progress<'_>) -> Result<Trained> {
        let settings = &self.settings;
        let mut numbers = [0; 256];
        let mut symbols = Symbols::default();
        for byte in
            (0..=u8::MAX).map(char::from).chain('\u{100}'..'\u{144}').filter_map(|spelled| unspell(spelled.into()))
        {
            numbers[usize::from(byte)] = symbols.add(&[byte]);
        }

        let mut merges = Vec::new();
        if settings.whole_characters {
            merges = whole_characters(words, &numbers, &mut symbols);
            check_size(settings.vocab_size, settings.special_tokens.len(), symbols.len())?;
            symbols.flatten();
        }
        let mut cells = Cells::default();
        for (word, count) in words.iter() {
            match std::str::from_utf8(word) {
                Ok(word) if settings.whole_characters => {
                    let symbol = |character: char| symbols.find(character.encode_utf8(&mut [0; 4]).as_bytes());
                    cells.push(word.chars().map(symbol), count)?;
                }
                _ => cells.push(word.iter().map(|&byte| Some(numbers[usize::from(byte)])), count)?,
            }
        }

        let num_symbols = settings.vocab_size - settings.special_tokens.len();
        let first_size = match (&settings.transition, second) {
            (Some((size, _)), Some(_)) => size - settings.special_tokens.len(),
            _ => num_symbols,
        };
        let (mut symbols, further) = self.merge(symbols, cells, first_size, progress)?;
        merges.extend(further);
        if let (Some(second), true) = (second, first_size < num_symbols) {
            let encoder = encoder(&symbols, &merges, &settings.pre)?;
            symbols.flatten();
            let options = EncodeOptions::new().add_special(false);
            let cells =
                Cells::of(second, |texts| encode(&encoder, texts, options, settings.threads, |id| id as Symbol))?;
            let (after, further) = self.merge(symbols, cells, num_symbols, progress)?;
            symbols = after;
            merges.extend(further);
        }
        self.trained(&symbols, &merges)
    }

    /// Merges words until there are `num_symbols` symbols. Returns these and the merges.
    fn merge(
        &self,
        symbols: Symbols,
        cells: Cells,
        num_symbols: usize,
        progress: &mut Progress<'_>,
    ) -> Result<(Symbols, Vec<(Symbol, Symbol)>)> {
        let BpeSettings { max_token_length: max_len, whole_characters: by_character, .. } = self.settings;
        let rules = ByCount { max_len, by_character };
        let mut merger = Merger::new(rules, symbols, cells, self.settings.min_frequency, self.settings.threads);
        merger.run(num_symbols, progress)?;
        Ok((merger.symbols, merger.merges))
    }

    /// Spells the result as a vocabulary.
    fn trained(&self, symbols: &Symbols, merges: &[(Symbol, Symbol)]) -> Result<Trained> {
        let mut trained = Trained::default();
        if self.settings.special_first {
            trained.push_all(&self.settings.special_tokens);
        }
        for symbol in 0..symbols.len() as Symbol {
            trained.push(&spelled(symbols.text(symbol)), NORMAL);
        }
        if !self.settings.special_first {
            trained.push_all(&self.settings.special_tokens);
        }
        trained.merges = merge_rules(symbols, merges, spelled);
        trained.checked()
    }
}

/// The splitter of a pre-tokenizer whose vocabularies merge bytes.
fn splitter(pre: &str) -> Result<Splitter> {
    let row = PRE_TOKENIZERS.iter().find(|row| row.name == pre).ok_or_else(|| TrainError::UnknownPreTokenizer {
        name: pre.to_owned(),
        nearest: nearest(pre, PRE_TOKENIZERS.iter().map(|row| row.name)),
    })?;
    let is_of_bytes = row.family.byte_encode;
    check(is_of_bytes, "pre", &format!("{pre:?}"), "a pre-tokenizer of byte-level vocabularies")?;
    Ok(Splitter::new(row.family))
}

/// Adds the characters of the words as symbols, in the order of code points. Returns the merges that make them from
/// their bytes, which characters with the same first bytes share.
fn whole_characters(words: &Words, bytes: &[Symbol; 256], symbols: &mut Symbols) -> Vec<(Symbol, Symbol)> {
    let texts = interrupt::ticking(words.iter()).filter_map(|(word, _)| std::str::from_utf8(word).ok());
    let mut merges = Vec::new();
    for character in texts.flat_map(str::chars).collect::<BTreeSet<char>>() {
        let mut buffer = [0; 4];
        let encoded = character.encode_utf8(&mut buffer).as_bytes();
        let mut left = bytes[usize::from(encoded[0])];
        for (at, &byte) in encoded.iter().enumerate().skip(1) {
            left = symbols.find(&encoded[..=at]).unwrap_or_else(|| {
                merges.push((left, bytes[usize::from(byte)]));
                symbols.join(left, bytes[usize::from(byte)])
            });
        }
    }
    merges
}

/// Bytes as GPT-2's characters.
fn spelled(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(2 * bytes.len());
    for &byte in bytes {
        let (character, len) = spell(byte);
        text.extend_from_slice(&character[..len]);
    }
    text
}

/// Merges as in a file. Of equal ones the last one wins, as in tokenizers: a pair that has merged before merges again
/// when a later merge recreates it.
pub(super) fn merge_rules(
    symbols: &Symbols,
    merges: &[(Symbol, Symbol)],
    spelled: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<Vec<u8>> {
    let last: HashMap<_, _> = merges.iter().zip(0_u32..).collect();
    let kept = merges.iter().zip(0..).filter(|(merge, at)| last[merge] == *at);
    kept.map(|(&(left, right), _)| [left, right].map(|side| spelled(symbols.text(side))).join(&b' ')).collect()
}

/// The encoder of the tokens so far. Its ids are symbols.
fn encoder(symbols: &Symbols, merges: &[(Symbol, Symbol)], pre: &str) -> Result<Tokenizer> {
    let tokens: Vec<_> = (0..symbols.len() as Symbol).map(|symbol| spelled(symbols.text(symbol))).collect();
    let merges = merge_rules(symbols, merges, spelled);
    let too_large = |_| TrainError::TooLarge { symbols: tokens.len() };
    let (token_data, token_index) = StringIndex::concatenate(&tokens).map_err(too_large)?;
    let (merge_data, merge_index) = StringIndex::concatenate(&merges).map_err(too_large)?;
    let definition = Definition {
        model: "gpt2",
        pre: Some(pre),
        tokens: Some(token_index.view(&token_data)),
        merges: Some(merge_index.view(&merge_data)),
        ..Definition::default()
    };
    Tokenizer::new(&definition).map_err(|_| TrainError::TooLarge { symbols: tokens.len() })
}

/// The ids of texts as symbols.
pub(super) fn encode(
    encoder: &Tokenizer,
    texts: &[&[u8]],
    options: EncodeOptions,
    threads: usize,
    symbol: impl Fn(TokenId) -> Symbol,
) -> Result<Vec<Vec<Symbol>>> {
    let batch = encoder.encode_batch(texts, options, threads);
    let batch = batch.map_err(|(text, _)| TrainError::TooLarge { symbols: texts[text].len() })?;
    let rows = batch.offsets.windows(2).map(|ends| &batch.ids[ends[0] as usize..ends[1] as usize]);
    Ok(rows.map(|ids| ids.iter().map(|&id| symbol(id)).collect()).collect())
}
