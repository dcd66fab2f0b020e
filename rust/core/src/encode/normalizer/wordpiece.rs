//! The normalizer of WordPiece vocabularies: a table that says how each code point affects the word around it.
//!
//! The table covers the Basic Multilingual Plane and is filled once; code points beyond it take a few loads from the
//! Unicode tables.
//!
//! Source: llama.cpp's `llm_tokenizer_wpm_session::preprocess` and `is_chinese_char` (llama-vocab.cpp).
//!
//! Deviations: none beyond those of [`utf8`].
//!
//! Time: O(1) per code point, one load for those in the table. Space: 256 KiB.

use crate::text::unicode::{base_letter, flags, lowercase, utf8};
use crate::token::TokenId;
use crate::vocabulary::Settings;
use crate::work::memory::collect;

/// Code points in the table.
const TABLE_LEN: u32 = 0x10000;

/// How a code point affects the word around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It belongs to the word.
    Plain,
    /// It is removed from the word.
    Dropped,
    /// It ends the word.
    Space,
    /// It is a word by itself.
    Single,
    /// It is a word by itself and that word is a token; not ASCII.
    Token,
}

impl Class {
    /// The class of a code point after [`base_letter`], if `strip_accents`. Never [`Class::Token`].
    pub fn of(code_point: u32, strip_accents: bool) -> Self {
        let flags = flags(code_point);
        let is_invalid = code_point == 0 || code_point == utf8::REPLACEMENT;
        if flags.is_whitespace() {
            Self::Space
        } else if is_invalid || flags.is_control() || strip_accents && flags.is_accent_mark() {
            Self::Dropped
        } else if flags.is_punctuation() || code_point < 0x7F && flags.is_symbol() || is_chinese(code_point) {
            Self::Single
        } else {
            Self::Plain
        }
    }
}

/// A code point's class in the lowest three bits; above them the token for [`Class::Token`], otherwise the normalized
/// code point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Character(u32);

impl Character {
    const CLASS_BITS: u32 = 3;

    fn new(class: Class, payload: u32) -> Self {
        Self(class as u32 | payload << Self::CLASS_BITS)
    }

    #[inline(always)]
    pub fn class(self) -> Class {
        match self.0 & ((1 << Self::CLASS_BITS) - 1) {
            0 => Class::Plain,
            1 => Class::Dropped,
            2 => Class::Space,
            3 => Class::Single,
            _ => Class::Token,
        }
    }

    /// Whether a word before it ends here.
    #[inline(always)]
    pub(crate) fn ends_word(self) -> bool {
        self.0 & ((1 << Self::CLASS_BITS) - 1) >= Class::Space as u32
    }

    /// The bits above the class.
    #[inline(always)]
    pub fn payload(self) -> u32 {
        self.0 >> Self::CLASS_BITS
    }
}

/// How a vocabulary treats code points.
#[derive(Debug, Default)]
pub struct WordPieceNormalizer {
    lowercase: bool,
    strip_accents: bool,
    /// By code point; empty until it is filled.
    table: Vec<Character>,
}

heap_bytes!(Character; WordPieceNormalizer: table);

impl WordPieceNormalizer {
    /// A normalizer with an empty table: until [`WordPieceNormalizer::fill`], every look-up reads the Unicode tables.
    pub fn new(settings: &Settings) -> Self {
        Self { lowercase: settings.lowercase, strip_accents: settings.strip_accents, table: Vec::new() }
    }

    /// Fills the table. `token` returns the token of a word that is one code point, if there is one.
    pub fn fill(&mut self, mut token: impl FnMut(u32) -> Option<TokenId>) {
        let character = |code_point| {
            let character = self.compute(code_point);
            let token = (code_point >= 0x80 && character.class() == Class::Single)
                .then(|| token(character.payload()))
                .flatten();
            match token.and_then(|id| u32::try_from(id).ok()) {
                Some(id) if id <= u32::MAX >> Character::CLASS_BITS => Character::new(Class::Token, id),
                _ => character,
            }
        };
        self.table = collect((0..TABLE_LEN).map(character));
    }

    /// The character at byte `at`, which is inside `text`, and its length in bytes.
    #[inline(always)]
    pub fn character(&self, text: &[u8], at: usize) -> (Character, usize) {
        let (code_point, len) = match text[at] {
            byte @ 0..0x80 => (u32::from(byte), 1),
            _ => utf8::decode_lossy(text, at),
        };
        (self.table.get(code_point as usize).copied().unwrap_or_else(|| self.compute(code_point)), len)
    }

    #[cold]
    fn compute(&self, code_point: u32) -> Character {
        let base = if self.strip_accents { base_letter(code_point) } else { code_point };
        let class = Class::of(base, self.strip_accents);
        Character::new(class, if self.lowercase { lowercase(base) } else { base })
    }
}

/// Whether a code point counts as Chinese. llama.cpp and Hugging Face's tokenizers have the gap before U+2B920 too.
fn is_chinese(code_point: u32) -> bool {
    matches!(code_point,
        0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF
        | 0x20000..=0x2A6DF | 0x2A700..=0x2B81F | 0x2B920..=0x2CEAF | 0x2F800..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chinese_has_a_gap() {
        assert!(is_chinese(0x4E2D) && is_chinese(0x2B81F) && is_chinese(0x2B920));
        assert!(!is_chinese(0x2B820) && !is_chinese(0x3041));
    }

    #[test]
    fn the_table_changes_nothing() {
        for (lowercase, strip_accents) in [(false, false), (false, true), (true, false), (true, true)] {
            let settings = Settings { lowercase, strip_accents, ..Settings::default() };
            let mut filled = WordPieceNormalizer::new(&settings);
            filled.fill(|code_point| (code_point % 2 == 0).then_some(7));
            let empty = WordPieceNormalizer::new(&settings);
            for code_point in (0..0x30000).filter_map(char::from_u32) {
                let text = code_point.to_string();
                let found = filled.character(text.as_bytes(), 0);
                let expected = empty.character(text.as_bytes(), 0);
                assert_eq!(found.1, expected.1);
                match found.0.class() {
                    Class::Token => {
                        assert_eq!((found.0.payload(), expected.0.class()), (7, Class::Single));
                        assert_eq!(expected.0.payload() % 2, 0);
                    }
                    _ => assert_eq!(found.0, expected.0),
                }
                assert_eq!(found.0.ends_word(), matches!(expected.0.class(), Class::Space | Class::Single));
            }
        }
    }

    #[test]
    fn ascii_words_are_letters_and_digits() {
        for strip_accents in [false, true] {
            let settings = Settings { strip_accents, ..Settings::default() };
            let normalizer = WordPieceNormalizer::new(&settings);
            for byte in 0..0x80_u8 {
                let class = normalizer.character(&[byte], 0).0.class();
                let is_space = matches!(byte, b'\t'..=b'\r' | b' ');
                let expected = match byte {
                    _ if byte.is_ascii_alphanumeric() => Class::Plain,
                    _ if is_space => Class::Space,
                    _ if byte.is_ascii_control() => Class::Dropped,
                    _ => Class::Single,
                };
                assert_eq!(class, expected, "{byte:#x}");
            }
        }
    }
}
