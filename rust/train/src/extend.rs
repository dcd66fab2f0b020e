//! Extending: trains on texts and adds tokens to a vocabulary. The old tokens keep their ids, and a text in which no new
//! token appears keeps all of its ids.
//!
//! 1. Words are counted as the base's trainer would count them.
//! 2. Characters that the base cannot express and that are frequent become tokens.
//! 3. The base encodes the words, and merging continues from its tokens: the most frequent pair becomes a token, over
//!    and over ([`merges`]). A pair whose text the base already has does not merge.
//! 4. Each kind writes the new tokens so that they win over their parts, and only over those.
//!
//! Why the ids of other texts stay:
//!
//! - **BPE.** New merges rank last, so all old ones are done before the first of them. A new symbol has a text that is
//!   neither an old token nor a side or the result of an old merge, so no old merge takes it. Whatever a new merge
//!   touches ends as a new token; without one, the symbols are the old ones.
//! - **SPM.** New pieces score below all old ones, so again all old merges come first. A new piece and its neighbour
//!   could spell an old token `t`. If merging makes `t` out of its own text, they cannot: both ends of that stretch are
//!   boundaries of symbols, no merge has crossed them, so the merges inside were those of `t` alone, and `t` would be
//!   one symbol. So only tokens that merging does not make out of their texts matter, and no new piece is the beginning
//!   or the end of one of those.
//! - **WordPiece.** The longest match at a position is a new token, or it is the old match. What is left to show is that
//!   a word does not become unknown when a new token ends inside of an old one. The rest of the old token can then be
//!   written letter by letter: every letter that a token has after its first one is a token that continues words. Where
//!   the base lacks such a letter, it is added first. (A token that no normalized word contains does not count.)
//! - **Unigram.** The lattice of a text gains edges and loses those of unknown characters that are tokens now, which
//!   cost more. So the best score up to each position cannot fall, and along a best path without new edges it is the old
//!   one. Then the old path is the same, also among equal scores, since edges are compared in the same order. No new
//!   score is below the old minimum, because an unknown character costs that score less 10.
//!
//! Source: Liu et al. 2025 (SuperBPE) for training that continues on encoded words. Time and space: encoding the
//! distinct words, and [`merges`].
//!
//! [`merges`]: super::merges

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use ggtok_core::internals::interrupt;
use ggtok_core::internals::spelling::ESCAPED_SPACE;
use ggtok_core::internals::{Class, Splitter, WordPieceNormalizer, split_rule};
use ggtok_core::tables::loader_texts;
use ggtok_core::vocab::{Definition, Kind, SpecialIds, StringIndex, Strings, Vocabulary};
use ggtok_core::{EncodeOptions, TokenId, Tokenizer};

use super::bpe::{encode, merge_rules};
use super::charsmap::normalizer;
use super::merges::{Cells, Merger, Rules};
use super::pairs::BREAK;
use super::split::{Spaces, Split, WordKind};
use super::spm::{Pieces, text};
use super::symbols::{Symbol, Symbols};
use super::table::WordTable;
use super::unigram::math::ln;
use super::wordpiece::letters;
use super::words::{WordCounter, Words};
use super::{CONTROL, NORMAL, Progress, Result, SpmSettings, TrainError, Trained, UnigramSettings, check};

/// The share of the texts' characters that new tokens should cover, as for a new vocabulary.
const COVERAGE: f64 = 0.9995;
/// How often a character or a pair must occur.
const MIN_FREQUENCY: u64 = 2;

/// Adds tokens to a vocabulary.
#[derive(Debug)]
pub struct Extender {
    base: Arc<Tokenizer>,
    num_tokens: usize,
    threads: usize,
    /// Texts that a new token must not have, besides those of old tokens.
    reserved: HashSet<Vec<u8>>,
    /// The lowest score that counts for new ones: of all tokens for SPM, of the normal ones for Unigram.
    lowest: f32,
}

impl Extender {
    /// Checks the base and the number of tokens. `merges` are those of the base, as in its file.
    ///
    /// # Errors
    /// [`TrainError::Setting`]: the number is 0, the base is not of a kind that is trained, or it has a text that is not
    /// UTF-8 or a score that is not finite.
    pub fn new(base: Arc<Tokenizer>, merges: Option<Strings<'_>>, num_tokens: usize, threads: usize) -> Result<Self> {
        check(num_tokens > 0, "num_tokens", &0, "at least 1")?;
        let vocabulary = base.vocabulary();
        let kind = vocabulary.kind();
        let is_trained = matches!(kind, Kind::Spm | Kind::Bpe | Kind::WordPiece | Kind::Unigram);
        check(is_trained, "base", &kind.name(), "a vocabulary of a kind that is trained")?;
        let is_utf8 = ids(vocabulary).all(|id| std::str::from_utf8(vocabulary.text(id)).is_ok());
        check(is_utf8, "base", &"one with other bytes", "a vocabulary whose tokens are UTF-8")?;
        let counts = |&id: &TokenId| match kind {
            Kind::Unigram => vocabulary.declared_attributes(id).is_normal(),
            _ => kind == Kind::Spm,
        };
        let scores = ids(vocabulary).filter(counts).map(|id| vocabulary.score(id));
        // Far enough from infinity that every new token can score below the one before.
        let is_sound = scores.clone().all(|score| score.abs() < 1e37);
        check(is_sound, "base", &"one with other scores", "a vocabulary whose scores are finite and have room below")?;
        let lowest = scores.fold(f32::MAX, f32::min);

        let mut reserved: HashSet<Vec<u8>> =
            loader_texts().flat_map(|(_, texts)| texts).map(|text| text.as_bytes().to_vec()).collect();
        for (left, right) in merges.iter().flat_map(Strings::iter).filter_map(split_rule) {
            let texts = [left.to_vec(), right.to_vec(), [left, right].concat()];
            reserved.extend(texts.into_iter().filter(|text| vocabulary.id(text).is_none()));
        }
        Ok(Self { num_tokens, threads, reserved, lowest, base })
    }

    /// Counts the words of the texts.
    ///
    /// # Errors
    /// [`TrainError::TooLarge`]: there are too many special tokens.
    pub fn counter<'a>(&self) -> Result<WordCounter<'a>> {
        let vocabulary = self.base.vocabulary();
        let settings = vocabulary.settings();
        let kind = match (vocabulary.kind(), vocabulary.pre()) {
            (Kind::WordPiece, _) => WordKind::wordpiece(settings),
            (Kind::Bpe, Some(pre)) if pre.family.byte_encode || !settings.escape_whitespaces => {
                WordKind::Pieces(Splitter::new(pre.family))
            }
            _ => WordKind::Spaces(Spaces {
                normalize: normalizer(vocabulary.charsmap()).unwrap_or_default(),
                add_prefix: settings.add_space_prefix,
                remove_extra: settings.remove_extra_whitespaces,
                split: true,
                keep_runs: vocabulary.kind() != Kind::Unigram,
            }),
        };
        let special = vocabulary.special_order().iter().map(|&id| vocabulary.text(id));
        Ok(WordCounter::new(Split::new(kind, special)?, self.threads))
    }

    /// Trains on counted words, and returns the new tokens, with the merges or the scores that they have.
    ///
    /// # Errors
    /// - [`TrainError::NothingToAdd`]: no character is missing, and no pair occurs twice.
    /// - [`TrainError::Setting`]: WordPiece needs more letters than tokens were asked for.
    /// - [`TrainError::TooLarge`]: the words have more than 2³² tokens.
    /// - [`TrainError::Stopped`]: `progress` stopped the training.
    pub fn extend(&self, words: &Words, progress: &mut Progress<'_>) -> Result<Trained> {
        let vocabulary = self.base.vocabulary();
        let kind = vocabulary.kind();
        let old = vocabulary.len();
        let characters = self.characters(words)?;
        let texts: Vec<&[u8]> = ids(vocabulary)
            .map(|id| vocabulary.text(id))
            .chain(characters.iter().map(|(text, _)| text.as_slice()))
            .collect();
        let own = (kind != Kind::Bpe).then(|| self.encoder(&texts)).transpose()?;
        let encoder = own.as_ref().unwrap_or(&self.base);
        let options = EncodeOptions::new().add_special(false).continues(kind != Kind::WordPiece);

        let mut symbols = Symbols::default();
        for text in &texts {
            symbols.add(text);
        }
        let is_text = |id: TokenId| id >= old as TokenId || vocabulary.attributes(id).is_normal();
        let mark = if kind == Kind::WordPiece { ESCAPED_SPACE.len() } else { 0 };
        let cells = Cells::of(words, |words| {
            let words: Vec<&[u8]> = words.iter().map(|word| &word[mark..]).collect();
            encode(encoder, &words, options, self.threads, |id| if is_text(id) { id as Symbol } else { BREAK })
        })?;
        let num_occurrences = cells.num_occurrences();

        let mut reserved = self.reserved.clone();
        if kind == Kind::Spm {
            reserved.extend(ends_of_unmade(encoder, &texts[..old], self.threads)?);
        }
        let settings = if kind == Kind::Unigram { UnigramSettings::default().spm } else { SpmSettings::default() };
        let is_of_bytes = vocabulary.pre().is_some_and(|pre| pre.family.byte_encode);
        let pieces = (kind != Kind::WordPiece && !is_of_bytes).then(|| Pieces::new(&settings, &symbols));
        let rules = Extension { pieces, reserved, made: Vec::new() };
        let mut merger = Merger::new(rules, symbols, cells, MIN_FREQUENCY, self.threads);
        merger.run(texts.len() + self.num_tokens, progress)?;

        // Both lists begin with what saves most. A character is worth its bytes for SPM, and otherwise more than any pair.
        let made = &merger.rules.made;
        let is_worth = |&(place, (text, count)): &(usize, &(Vec<u8>, u64))| {
            let rival = made.get(self.num_tokens - 1 - place);
            kind != Kind::Spm || rival.is_none_or(|pair| saving(text, *count) >= pair.2)
        };
        let num_characters = characters.iter().take(self.num_tokens).enumerate().take_while(is_worth).count();
        let num_pairs = made.len().min(self.num_tokens - num_characters);
        let added = (old..old + num_characters).chain(texts.len()..texts.len() + num_pairs);

        let mut trained = Trained::default();
        for symbol in added.clone() {
            trained.push(merger.symbols.text(symbol as Symbol), NORMAL);
        }
        if trained.tokens.is_empty() {
            return Err(TrainError::NothingToAdd);
        }
        match kind {
            Kind::Bpe => trained.merges = merge_rules(&merger.symbols, &merger.merges, <[u8]>::to_vec),
            Kind::Spm => trained.scores = self.scores_below().take(trained.tokens.len()).collect(),
            Kind::Unigram => {
                let scores = self.likelihoods(&characters, made, num_occurrences);
                trained.scores = added.map(|symbol| scores[symbol]).collect();
            }
            _ => {}
        }
        Ok(trained)
    }

    /// The characters that could be added, with their counts. For WordPiece, those that start words have `▁`.
    fn characters(&self, words: &Words) -> Result<Vec<(Vec<u8>, u64)>> {
        let vocabulary = self.base.vocabulary();
        let kind = vocabulary.kind();
        if kind == Kind::Bpe {
            return Ok(Vec::new());
        }
        let mut counts = WordTable::default();
        for (word, count) in interrupt::ticking(words.iter()) {
            let mut add = |character: &[u8]| counts.add(character, count);
            if kind == Kind::WordPiece {
                letters(word).for_each(add);
            } else {
                text(word).chars().for_each(|character| add(character.encode_utf8(&mut [0; 4]).as_bytes()));
            }
        }
        let all = counts.iter().filter(|&(_, count)| count >= MIN_FREQUENCY);
        let mut all: Vec<(Vec<u8>, u64)> = all.map(|(text, count)| (text.to_vec(), count)).collect();
        all.sort_unstable_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let covered = all.iter().map(|&(_, count)| count).sum::<u64>() as f64 * COVERAGE;

        let needed = if kind == Kind::WordPiece { missing_letters(vocabulary) } else { BTreeSet::new() };
        let expected = "at least the number of letters that keep known words known and that the base lacks";
        check(needed.len() <= self.num_tokens, "num_tokens", &self.num_tokens, expected)?;
        let is_missing = |character: &[u8]| {
            let is_byte = kind == Kind::Spm && character.len() == 1 && vocabulary.byte_token(character[0]).is_some();
            let is_control = text(character).contains(char::is_control);
            vocabulary.id(character).is_none() && !is_byte && !is_control && !needed.contains(character)
        };
        let mut before = 0;
        all.retain(|(character, count)| {
            before += count;
            ((before - count) as f64) < covered && is_missing(character)
        });
        let mut characters: Vec<_> = needed.iter().map(|text| (text.clone(), 0)).chain(all).collect();
        if kind == Kind::Spm {
            characters.sort_by_key(|(text, count)| Reverse(saving(text, *count)));
        }
        Ok(characters)
    }

    /// Scores for SPM, each below the one before.
    fn scores_below(&self) -> impl Iterator<Item = f32> {
        std::iter::successors(Some(self.lowest), |score| Some((score - 1.0).min(score.next_down()))).skip(1)
    }

    /// The scores of all symbols for Unigram. New ones say how likely each is in the texts, but it is more likely than its
    /// two parts, and none is below the lowest score.
    fn likelihoods(
        &self,
        characters: &[(Vec<u8>, u64)],
        made: &[(Symbol, Symbol, u64)],
        num_occurrences: u64,
    ) -> Vec<f32> {
        let vocabulary = self.base.vocabulary();
        let likelihood = |count: u64| (ln(count as f64 / num_occurrences as f64) as f32).max(self.lowest);
        let mut scores: Vec<f32> = ids(vocabulary).map(|id| vocabulary.score(id)).collect();
        scores.extend(characters.iter().map(|&(_, count)| likelihood(count)));
        for &(left, right, count) in made {
            let [left, right] = [left, right].map(|side| f64::from(scores[side as usize]));
            scores.push(likelihood(count).max(((left + right) as f32).next_up()));
        }
        scores
    }

    /// The base with further tokens, for words that are normalized. It searches a text for no special tokens.
    fn encoder(&self, texts: &[&[u8]]) -> Result<Tokenizer> {
        let base = self.base.vocabulary();
        let too_large = || TrainError::TooLarge { symbols: texts.len() };
        let (token_data, token_index) = StringIndex::concatenate(texts).map_err(|_| too_large())?;
        let token_type = |id| if base.declared_attributes(id).is_normal() { NORMAL } else { CONTROL };
        let mut token_types: Vec<i32> = ids(base).map(token_type).collect();
        token_types.resize(texts.len(), NORMAL);
        let mut scores: Vec<f32> = ids(base).map(|id| base.score(id)).collect();
        scores.resize(texts.len(), self.lowest);
        let definition = Definition {
            model: base.model(),
            tokens: Some(token_index.view(&token_data)),
            scores: Some(&scores),
            token_types: Some(&token_types),
            special: SpecialIds { unk: base.special().unk.map(|id| id as u32), ..SpecialIds::default() },
            add_space_prefix: Some(false),
            lowercase: Some(false),
            ..Definition::default()
        };
        Tokenizer::new(&definition).map_err(|_| too_large())
    }
}

/// How many tokens a character saves: SPM spells one that it does not have in bytes.
fn saving(text: &[u8], count: u64) -> u64 {
    count * (text.len() as u64 - 1)
}

/// Which pairs become tokens.
struct Extension<'a> {
    pieces: Option<Pieces<'a>>,
    /// Texts that no token may have.
    reserved: HashSet<Vec<u8>>,
    /// The sides of each new token, and how often it was made.
    made: Vec<(Symbol, Symbol, u64)>,
}

impl Rules for Extension<'_> {
    const BY_TEXT: bool = true;

    fn allows(&self, symbols: &Symbols, left: Symbol, right: Symbol) -> bool {
        let text: Vec<u8> = symbols.joined_bytes((left, right)).collect();
        let is_piece = |pieces: &Pieces<'_>| pieces.allows(symbols, left, right) && !text.contains(&b'\n');
        self.pieces.as_ref().is_none_or(is_piece) && !self.reserved.contains(&text)
    }

    fn joined(&mut self, left: Symbol, right: Symbol, count: u64) {
        self.pieces.iter_mut().for_each(|pieces| pieces.joined(left, right, count));
        self.made.push((left, right, count));
    }
}

fn ids(vocabulary: &Vocabulary) -> impl Iterator<Item = TokenId> + Clone + use<> {
    0..vocabulary.len() as TokenId
}

/// The beginnings and ends, as long as a piece may be, of the tokens that merging does not make out of their texts.
fn ends_of_unmade(encoder: &Tokenizer, tokens: &[&[u8]], threads: usize) -> Result<HashSet<Vec<u8>>> {
    let options = EncodeOptions::new().add_special(false).continues(true);
    let most_characters = SpmSettings::default().max_piece_length;
    let mut ends = HashSet::new();
    let encoded = encode(encoder, tokens, options, threads, |id| id as Symbol)?;
    for (_, token) in (0..).zip(tokens).filter(|&(id, _)| encoded[id as usize] != [id]) {
        let cuts: Vec<usize> = text(token).char_indices().map(|(at, _)| at).skip(1).collect();
        ends.extend(cuts.iter().take(most_characters).map(|&at| token[..at].to_vec()));
        ends.extend(cuts.iter().rev().take(most_characters).map(|&at| token[at..].to_vec()));
    }
    Ok(ends)
}

/// The letters that tokens have after their first one, and that are no tokens that continue words.
fn missing_letters(vocabulary: &Vocabulary) -> BTreeSet<Vec<u8>> {
    let normalizer = WordPieceNormalizer::new(vocabulary.settings());
    let mut is_letter = vec![false; char::MAX as usize + 1];
    for character in (0..=u32::from(char::MAX)).filter_map(char::from_u32) {
        let (character, _) = normalizer.character(character.encode_utf8(&mut [0; 4]).as_bytes(), 0);
        if character.class() == Class::Plain {
            is_letter[character.payload() as usize] = true;
        }
    }
    let mut missing = BTreeSet::new();
    for token in ids(vocabulary).map(|id| text(vocabulary.text(id))) {
        let word = token.strip_prefix('▁').unwrap_or(token);
        if word.chars().all(|letter| is_letter[letter as usize]) {
            missing.extend(word.chars().skip(1).map(|letter| letter.to_string().into_bytes()));
        }
    }
    missing.retain(|letter| vocabulary.id(letter).is_none());
    missing
}
