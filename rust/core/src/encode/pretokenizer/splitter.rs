//! A family's patterns, each applied to the pieces left by the one before it.
//!
//! If all of them together have a fast way, a [`Shape`], [`lines`] or [`numbers`], it is used. Otherwise they go through
//! the text in one pass, with a table that is learned on the way ([`Joint`]).
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`. Complexity: linear in the text.

use super::automaton::Automaton;
use super::joint::{Joint, Learned, Stage};
use super::lines;
use super::numbers;
use super::shape::{Shape, matched_patterns};
use crate::vocabulary::families::{Family, LINES, NUMBERS, THOUSANDS, WORDS};

/// The compiled patterns of a family.
#[derive(Debug)]
pub struct Splitter(Patterns);

heap_bytes!(Splitter: 0);

#[derive(Debug)]
enum Patterns {
    Shape(Shape, Vec<Automaton>),
    Lines,
    Numbers,
    /// As `Joint`, and a word without whitespace is one piece.
    Words(Joint),
    Joint(Joint),
}

heap_bytes!(Patterns {
    Self::Shape(_, automata) => automata,
    Self::Lines | Self::Numbers => &0_u8,
    Self::Words(joint) | Self::Joint(joint) => joint
});

impl Splitter {
    /// Compiles the patterns of a family.
    ///
    /// llama.cpp has hand-written code for some patterns. If the code and the pattern differ, this follows the code.
    pub fn new(family: &Family) -> Self {
        let patterns = matched_patterns(family.patterns);
        if let Some(shape) = Shape::of(patterns) {
            return Self(Patterns::Shape(shape, patterns.iter().map(|pattern| Automaton::new(pattern)).collect()));
        }
        Self(match *patterns {
            [LINES] => Patterns::Lines,
            [NUMBERS, THOUSANDS] => Patterns::Numbers,
            [WORDS] => Patterns::Words(Joint::new(stages(family))),
            _ => Patterns::Joint(Joint::new(stages(family))),
        })
    }

    /// Whether a piece is usually longer than a word, because nothing but a number ends one.
    pub(crate) fn has_long_pieces(&self) -> bool {
        matches!(self.0, Patterns::Numbers)
    }

    /// Calls `piece` with the byte range of every piece of `text`, in order. `text` is canonical UTF-8, and `learned`
    /// must always be used with the same splitter.
    #[inline]
    pub fn split(&self, text: &[u8], learned: &mut Learned, piece: impl FnMut(usize, usize)) {
        match &self.0 {
            Patterns::Shape(shape, automata) => shape.split(automata, text, piece),
            Patterns::Lines => lines::split(text, piece),
            Patterns::Numbers => numbers::split(text, piece),
            Patterns::Words(joint) | Patterns::Joint(joint) => joint.split(text, learned, piece),
        }
    }

    /// The same for each word of a text. Words lie end to end, and if there are several, none has whitespace.
    #[inline]
    pub(crate) fn split_words(
        &self,
        text: &[u8],
        ends: &[usize],
        learned: &mut Learned,
        mut piece: impl FnMut(usize, usize),
    ) {
        let mut word = 0;
        for &end in ends {
            match &self.0 {
                Patterns::Words(_) if ends.len() > 1 => piece(word, end),
                _ => self.split(&text[word..end], learned, |from, to| piece(word + from, word + to)),
            }
            word = end;
        }
    }
}

/// The patterns of a family, except [`THOUSANDS`]: [`numbers`] cuts into groups what the pattern before it cuts out.
pub(super) fn stages(family: &Family) -> Vec<Stage> {
    let patterns = matched_patterns(family.patterns).iter().filter(|&&pattern| pattern != THOUSANDS);
    let stages = patterns.map(|&pattern| match pattern {
        // Code of llama.cpp that matches no pattern.
        r"\p{AFMoE_digits}" | r"\d{1,3}(?=(?:\d{3})*\b)" => Stage::Digits,
        _ => Stage::Pattern(Box::new(Automaton::new(pattern))),
    });
    stages.collect()
}

#[cfg(test)]
pub(super) mod tests;
