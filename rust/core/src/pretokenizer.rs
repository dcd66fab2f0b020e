//! Pre-tokenizers: how a text is cut into the pieces that byte-pair merges cannot cross.
//!
//! [`families`] is the data: names, flags and patterns. A pattern is parsed ([`automaton::pattern`]), its character sets reduced
//! to a small alphabet of classes ([`automaton::alphabet`]), and compiled into a table-driven automaton ([`automaton`]) that
//! matches in one pass. Three patterns, for which llama.cpp has code of its own that no pattern describes, are in
//! [`digits`]. Common shapes of patterns are matched 64 bytes at a time ([`blocks`], [`neighbours`], [`lines`]). [`splitter`] applies the patterns of a family in sequence.

mod automaton;
mod blocks;
mod digits;
mod families;
mod lines;
mod neighbours;
#[cfg(test)]
mod oracle;
mod shape;
mod splitter;

pub use families::{FAMILIES, Family, PRE_TOKENIZERS};
pub(crate) use splitter::Splitter;

use crate::error::VocabularyError;
use crate::error::nearest::nearest;

/// One value of `tokenizer.ggml.pre` with the flags it sets.
#[derive(Debug, PartialEq, Eq)]
pub struct PreTokenizer {
    /// The name in the file.
    pub name: &'static str,
    /// The family whose patterns it uses.
    pub family: &'static str,
    /// Default of [`Settings::clean_spaces`](crate::Settings::clean_spaces).
    pub clean_spaces: bool,
    /// Default of [`Settings::ignore_merges`](crate::Settings::ignore_merges).
    pub ignore_merges: bool,
    /// Default of [`Settings::add_bos`](crate::Settings::add_bos).
    pub add_bos: bool,
    /// Default of [`Settings::add_sep`](crate::Settings::add_sep).
    pub add_sep: bool,
    /// Default of [`Settings::escape_whitespaces`](crate::Settings::escape_whitespaces).
    pub escape_whitespaces: bool,
    /// Default of [`Settings::lowercase`](crate::Settings::lowercase).
    pub lowercase: bool,
    /// Whether the model's default BOS token holds.
    pub has_bos: bool,
}

impl PreTokenizer {
    /// The row for what a file says: its model decides first, a missing name means `default`.
    ///
    /// # Errors
    /// [`VocabularyError::UnknownPreTokenizer`] for a name that is not in the table.
    pub(crate) fn select(
        model: &str,
        name: Option<&str>,
        repairs: &mut Vec<String>,
    ) -> Result<&'static Self, VocabularyError> {
        let name = match name.filter(|name| !name.is_empty()) {
            _ if model == "gemma4" => "gemma4",
            Some(name) => name,
            None => {
                repairs.push("the file names no pre-tokenizer: default used".to_owned());
                "default"
            }
        };
        PRE_TOKENIZERS.iter().find(|row| row.name == name).ok_or_else(|| VocabularyError::UnknownPreTokenizer {
            name: name.to_owned(),
            nearest: nearest(name, PRE_TOKENIZERS.iter().map(|row| row.name)),
        })
    }

    /// The patterns behind the name.
    pub fn patterns(&self) -> &'static Family {
        FAMILIES.iter().find(|family| family.name == self.family).unwrap_or(&FAMILIES[0])
    }

    /// Whether a vocabulary without merges is an error: Kimi K2 may come without.
    pub(crate) fn needs_merges(&self) -> bool {
        self.name != "kimi-k2"
    }

    /// Whether this is Gemma 4's family, which always adds BOS and looks runs of newlines up whole.
    pub(crate) fn is_gemma4(&self) -> bool {
        self.family == "gemma4"
    }
}
