//! Normalization rules, and their compilation into a Unigram vocabulary's character map.
//!
//! A rule replaces a sequence of characters with another one, or with nothing. A text is replaced from left to right,
//! the longest matching sequence first, and replacements are not replaced again. The named rules come from Unicode's
//! data (`unicode`); others are read from lines of code points. A compiled map is a double array over the bytes of the
//! sequences (`array`), followed by the replacements.
//!
//! Source: sentencepiece's `Builder` (builder.cc); [`Charsmap`] has the form.
//! Complexity: O(n log n) for n bytes of rules.

mod array;
mod unicode;

use std::collections::BTreeMap;

use ggtok_core::internals::Charsmap;
use ggtok_core::internals::interrupt::{self, Ticker};
use ggtok_core::{VocabularyError, messages};

use super::Normalize;

/// The longest sequence of a rule, in bytes.
const MAX_LEN: usize = 255;

/// Rules: sequences of characters with their replacements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalizationRules {
    rules: BTreeMap<String, String>,
}

messages! {
    /// Why rules cannot be used.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum RulesError {
        /// There are no rules of this name.
        UnknownName { name: String } =>
            "unknown normalization {name:?}; known names are {}", NormalizationRules::NAMES.join(", ");
        /// A line, counted from 1, has a word that is not a code point.
        CodePoint { line: usize, word: String } =>
            "line {line} of the rules: {word:?} is not a code point in hexadecimal other than 0";
        /// A line has no sequence to replace.
        Empty { line: usize } => "line {line} of the rules has no code points before the tab";
        /// Two lines replace the same sequence.
        Duplicate { line: usize, sequence: String } =>
            "line {line} of the rules replaces {sequence:?}, and so does an earlier one";
        /// A sequence has more than 255 bytes.
        TooLong { line: usize, len: usize } =>
            "line {line} of the rules replaces {len} bytes of UTF-8; at most {MAX_LEN} are possible";
        /// The double array needs more units than 21 bits can number.
        TooLarge => "there are too many rules for a character map";
    }
}

impl std::error::Error for RulesError {}

impl NormalizationRules {
    /// The names that [`NormalizationRules::named`] knows.
    pub const NAMES: [&str; 5] = ["identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"];

    /// sentencepiece's rules of this name, of Unicode 17: NFKC, with case folding (`_cf`), and with the spaces and
    /// control characters that machine translation wants (`nmt_`).
    ///
    /// # Errors
    /// [`RulesError::UnknownName`].
    ///
    /// # Examples
    /// ```
    /// use ggtok_train::NormalizationRules;
    ///
    /// let rules = NormalizationRules::named("nfkc_cf")?;
    /// assert_eq!(rules.apply("Ｔe\u{301} ①"), "té 1");
    /// # Ok::<(), ggtok_train::RulesError>(())
    /// ```
    pub fn named(name: &str) -> Result<Self, RulesError> {
        let mut rules = match name {
            "identity" => BTreeMap::new(),
            "nfkc" | "nfkc_cf" => unicode::nfkc(),
            "nmt_nfkc" | "nmt_nfkc_cf" => unicode::nmt(unicode::nfkc()),
            _ => return Err(RulesError::UnknownName { name: name.to_owned() }),
        };
        if name.ends_with("_cf") {
            rules = unicode::folded(rules);
        }
        Ok(Self { rules })
    }

    /// Reads rules, one per line: code points in hexadecimal with spaces between them, a tab, and the code points that
    /// replace them, if any. Anything after a second tab is ignored, and so are empty lines.
    ///
    /// # Errors
    /// [`RulesError::CodePoint`], [`RulesError::Empty`], [`RulesError::Duplicate`] and [`RulesError::TooLong`].
    ///
    /// # Examples
    /// ```
    /// use ggtok_train::NormalizationRules;
    ///
    /// let rules = NormalizationRules::from_tsv("41 42\t43\nU+0044\n")?;
    /// assert_eq!(rules.apply("ABAD"), "CA");
    /// # Ok::<(), ggtok_train::RulesError>(())
    /// ```
    pub fn from_tsv(tsv: &str) -> Result<Self, RulesError> {
        let mut rules = BTreeMap::new();
        let lines = (1..).zip(tsv.lines()).filter(|(_, text)| !text.trim().is_empty());
        for (line, text) in interrupt::ticking(lines) {
            let character = |word: &str| {
                let digits = word.strip_prefix("U+").unwrap_or(word);
                let code_point = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
                let character = code_point.and_then(char::from_u32).filter(|&character| character != '\0');
                character.ok_or_else(|| RulesError::CodePoint { line, word: word.to_owned() })
            };
            let mut fields = text.split('\t').map(|field| field.split_whitespace().map(character).collect());
            let mut field = || fields.next().unwrap_or(Ok(String::new()));
            let sequence = field()?;
            let replacement = field()?;
            match sequence.len() {
                0 => return Err(RulesError::Empty { line }),
                1..=MAX_LEN => {}
                len => return Err(RulesError::TooLong { line, len }),
            }
            if rules.contains_key(&sequence) {
                return Err(RulesError::Duplicate { line, sequence });
            }
            rules.insert(sequence, replacement);
        }
        Ok(Self { rules })
    }

    /// The map as `tokenizer.ggml.precompiled_charsmap`: empty for no rules.
    ///
    /// # Errors
    /// [`RulesError::TooLarge`]: the array would have more than 2²¹ units.
    pub fn compile(&self) -> Result<Vec<u8>, RulesError> {
        let mut replacements: BTreeMap<&str, u32> = BTreeMap::new();
        for text in interrupt::ticking(self.rules.values()) {
            replacements.insert(text, 0);
        }
        let mut texts = Vec::new();
        for (text, offset) in &mut replacements {
            *offset = u32::try_from(texts.len()).ok().filter(|at| at >> 31 == 0).ok_or(RulesError::TooLarge)?;
            texts.extend_from_slice(text.as_bytes());
            texts.push(0);
        }
        if self.rules.is_empty() {
            return Ok(Vec::new());
        }
        let units = array::build(self.rules.iter().map(|(key, text)| (key.as_bytes(), replacements[text.as_str()])))?;
        let mut map = ((units.len() * size_of::<u32>()) as u32).to_le_bytes().to_vec();
        map.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        map.append(&mut texts);
        Ok(map)
    }

    /// `text` with all sequences replaced.
    pub fn apply(&self, text: &str) -> String {
        let longest = self.rules.keys().map(String::len).max().unwrap_or(0);
        apply(&self.rules, text, longest)
    }
}

/// Replaces the longest sequences of at most `longest` bytes first.
fn apply(rules: &BTreeMap<String, String>, text: &str, longest: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        let rest = &text[at..];
        let ends = (1..=longest.min(rest.len())).rev().filter(|&end| rest.is_char_boundary(end));
        match ends.into_iter().find_map(|end| Some((end, rules.get(&rest[..end])?))) {
            Some((len, replacement)) => {
                out.push_str(replacement);
                at += len;
            }
            None => {
                out.push(character);
                at += character.len_utf8();
            }
        }
    }
    out
}

/// How a vocabulary with this character map changes a text, for [`UnigramTrainer::counter`].
///
/// # Errors
/// [`VocabularyError::Charsmap`] if the map is damaged.
///
/// [`UnigramTrainer::counter`]: super::UnigramTrainer::counter
pub fn normalizer(charsmap: &[u8]) -> Result<Option<Box<Normalize>>, VocabularyError> {
    if charsmap.is_empty() {
        return Ok(None);
    }
    let map = Charsmap::new(charsmap)?;
    Ok(Some(Box::new(move |text, out| {
        let mut rest = text.as_bytes();
        let mut ticker = Ticker::default();
        while let Some(&first) = rest.first() {
            ticker.tick();
            let (len, replacement) = map.longest_prefix(rest).unwrap_or_else(|| {
                let len = ggtok_core::unicode::utf8::sequence_len(first).min(rest.len());
                (len, &rest[..len])
            });
            out.extend_from_slice(replacement);
            rest = &rest[len..];
        }
    })))
}

#[cfg(test)]
mod tests;
