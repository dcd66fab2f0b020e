//! Pre-tokenizers: a text is cut into pieces, and no merge crosses the boundary between two of them.
//!
//! [`families`] is the table: names, flags and patterns. [`splitter`] applies a family's patterns in sequence, each in one
//! of two ways. The general way is an [`automaton`]: a pattern is parsed (`automaton/pattern`), its sets of characters
//! are reduced to a small alphabet (`automaton/alphabet`), and a table is compiled that matches in one pass. The fast way
//! finds boundaries 64 bytes at a time: [`blocks`] for every pattern that has a [`shape`], [`neighbours`] and [`lines`]
//! for simpler ones. [`digits`] is for three patterns that llama.cpp has code for and no pattern describes.

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
    /// Whether the model's default BOS token applies.
    pub has_bos: bool,
}

impl PreTokenizer {
    /// The row for a file's model and name. The model decides first, and a missing name means `default`.
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

    /// The patterns of its family.
    pub fn patterns(&self) -> &'static Family {
        FAMILIES.iter().find(|family| family.name == self.family).unwrap_or(&FAMILIES[0])
    }

    /// Whether a vocabulary without merges is an error. Kimi K2 may have none.
    pub(crate) fn needs_merges(&self) -> bool {
        self.name != "kimi-k2"
    }

    /// Whether this is Gemma 4's family, which always adds BOS and looks up runs of newlines as a whole.
    pub(crate) fn is_gemma4(&self) -> bool {
        self.family == "gemma4"
    }
}
