//! Applies pre-tokenizer patterns with a regex engine, and records what each cuts and by which alternative.
//!
//! A family's patterns apply in sequence, each to every piece left by the one before it. Text that a pattern does not
//! match stays a piece. A pattern that names a category sees *collapsed* text: each code point beyond ASCII becomes one
//! character that stands for its category. Any other pattern sees code points, but all whitespace beyond ASCII as one
//! character. For some patterns llama.cpp has hand-written code. It cuts as the pattern says, except for Kimi K2
//! ([`KIMI_K2`]) and for the digits of AfMoE and Tiny Aya ([`groups_of_digits`]).
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`. The splitter is compiled from the same table, and its
//! tests compare it with this. Time: that of a backtracking engine, quadratic for some patterns and texts.
//!
//! Deviations: none in the tokens. Empty pieces, which have none, are left out; if the engine gives up, so does this.

use std::iter::repeat_n;

use fancy_regex::{Regex, RegexBuilder};
use ggtok_core::internals::interrupt;
use ggtok_core::unicode::{self, utf8};
use ggtok_core::vocab::{FAMILIES, Family};

use super::limit::Limit;
use super::trace::{Cut, Pass, Range};
use super::{ExplainError, Result};

/// The backtracking limit of one match. Only a text on which the engine's time is not linear needs more.
const MAX_STEPS_BACK: usize = 20_000_000;

/// The families whose first pattern llama.cpp has code for.
const HAND_WRITTEN: [&str; 8] = ["gpt2", "llama3", "qwen2", "qwen35", "kimi-k2", "gemma4", "afmoe", "tiny-aya"];

/// What llama.cpp's code for Kimi K2's pattern, `\p{Han}+`, matches. `\p{L-Han}` are all letters but Han.
const KIMI_K2: &str = r"\p{Han}+|[^\r\n\p{L}\p{N}]?\p{L-Han}+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The compiled patterns of a family, in sequence.
#[derive(Debug)]
pub(crate) struct Patterns(Vec<Pattern>);

/// A pattern.
#[derive(Debug)]
struct Pattern {
    /// As written in llama.cpp.
    text: &'static str,
    /// The parts between top-level bars.
    alternatives: Vec<&'static str>,
    is_hand_written: bool,
    is_collapsed: bool,
    /// Whether collapsed text tells Han from other characters.
    sees_han: bool,
    /// A group for each alternative; `None` if digits are grouped.
    regex: Option<Regex>,
}

impl Patterns {
    pub(crate) fn new(family: &Family) -> Self {
        Self(family.patterns.iter().copied().map(Pattern::new).collect())
    }

    /// A pass for each pattern, over the words of a text and the pieces so far.
    pub(crate) fn passes(&self, text: &[u8], words: &[Range], limit: &mut Limit) -> Result<Vec<Pass>> {
        let mut code_points = Vec::new();
        let mut starts = vec![0];
        for (code_point, range) in utf8::code_points(text) {
            code_points.push(code_point);
            starts.push(range.end);
        }
        // Pieces are in code points.
        let place = |at: usize| starts.partition_point(|start| *start < at);
        let mut pieces = Vec::from_iter(words.iter().map(|word| place(word.start)..place(word.end)));
        let mut passes = Vec::new();
        for pattern in &self.0 {
            let mut shorter = Vec::new();
            let mut cuts = Vec::new();
            for piece in pieces {
                let mut start = piece.start;
                for (len, alternative) in pattern.split(&code_points[piece])? {
                    limit.step(0)?;
                    let end = start + len;
                    cuts.push(Cut { start: starts[start], end: starts[end], alternative });
                    shorter.push(start..end);
                    start = end;
                }
            }
            pieces = shorter;
            passes.push(pattern.pass(cuts));
        }
        Ok(passes)
    }
}

impl Pattern {
    fn new(text: &'static str) -> Self {
        let is = |name: &&str| {
            let mut families = FAMILIES.iter().filter(|family| family.name == *name);
            families.any(|family| family.patterns.first() == Some(&text))
        };
        let hand_written = HAND_WRITTEN.iter().copied().find(is);
        let matched = if hand_written == Some("kimi-k2") { KIMI_K2 } else { text };
        let grouped = |(at, part): (usize, &str)| format!("(?<a{at}>{})", rewrite(part));
        let groups_digits = matches!(hand_written, Some("afmoe" | "tiny-aya"));
        let groups = Vec::from_iter(alternatives(matched).into_iter().enumerate().map(grouped)).join("|");
        Self {
            text,
            alternatives: alternatives(text),
            is_hand_written: hand_written.is_some(),
            is_collapsed: text.contains(r"\p{"),
            sees_han: matched == KIMI_K2,
            regex: compile(&groups, MAX_STEPS_BACK).filter(|_| !groups_digits),
        }
    }

    fn pass(&self, cuts: Vec<Cut>) -> Pass {
        let applied_to = match (self.is_hand_written, self.is_collapsed) {
            (true, _) => "code",
            (false, true) => "collapsed",
            (false, false) => "code_points",
        };
        Pass { pattern: self.text, alternatives: self.alternatives.clone(), applied_to, cuts }
    }

    /// The character that it sees instead of a code point.
    fn seen(&self, code_point: u32) -> char {
        let flags = unicode::flags(code_point);
        match char::from_u32(code_point) {
            Some(char) if char.is_ascii() => char,
            _ if flags.is_whitespace() => '\u{B}',
            Some(char) if !self.is_collapsed => char,
            // A surrogate is not a `char`, so another code point that no pattern names stands for it.
            None if !self.is_collapsed => '\u{E000}',
            _ if self.sees_han && unicode::is_han(code_point) && flags.is_letter() => '\u{D6}',
            _ if self.sees_han && unicode::is_han(code_point) => '\u{D7}',
            _ if flags.is_number() => '\u{D1}',
            _ if flags.is_letter() => '\u{D2}',
            _ if flags.is_punctuation() => '\u{D3}',
            _ if flags.is_accent_mark() => '\u{D4}',
            _ if flags.is_symbol() => '\u{D5}',
            _ => '\u{D0}',
        }
    }

    /// The lengths of the pieces into which the pattern cuts a piece, in code points, and the alternatives that match
    /// them.
    fn split(&self, piece: &[u32]) -> Result<Vec<(usize, Option<usize>)>> {
        let Some(regex) = &self.regex else {
            return Ok(groups_of_digits(piece).into_iter().map(|len| (len, None)).collect());
        };
        let seen: String = piece.iter().map(|&code_point| self.seen(code_point)).collect();
        let mut lens = Vec::new();
        let mut end = 0;
        for found in interrupt::ticking(regex.captures_iter(&seen)) {
            let found = found.map_err(|_| ExplainError::PatternTooSlow)?;
            let Some(whole) = found.get(0) else { continue };
            let matches = |at: &usize| found.name(&format!("a{at}")).is_some();
            lens.push((seen[end..whole.start()].chars().count(), None));
            lens.push((whole.as_str().chars().count(), (0..self.alternatives.len()).find(matches)));
            end = whole.end();
        }
        lens.push((seen[end..].chars().count(), None));
        lens.retain(|(len, _)| *len > 0);
        Ok(lens)
    }
}

/// The lengths of pieces that end after every third digit, counted from the last one of a run. A piece goes on over
/// anything that is not a digit.
///
/// Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split_custom_afmoe`.
fn groups_of_digits(piece: &[u32]) -> Vec<usize> {
    let is_digit = |code_point: &u32| unicode::flags(*code_point).is_number();
    let mut lens = Vec::new();
    let mut open = 0;
    for run in piece.chunk_by(|one, other| is_digit(one) == is_digit(other)) {
        open += run.len();
        if is_digit(&run[0]) {
            let full = (run.len() - 1) / 3;
            lens.push(open - 3 * full);
            lens.extend(repeat_n(3, full));
            open = 0;
        }
    }
    lens.extend((open > 0).then_some(open));
    lens
}

fn compile(pattern: &str, limit: usize) -> Option<Regex> {
    RegexBuilder::new(pattern).backtrack_limit(limit).build().ok()
}

/// The byte ranges of a regex's matches in a short text, or `None` if it is not valid or takes too long.
#[must_use]
pub fn regex_matches(regex: &str, text: &str) -> Option<Vec<(usize, usize)>> {
    let regex = compile(regex, MAX_STEPS_BACK / 200)?;
    regex.find_iter(text).map(|found| found.ok().map(|found| (found.start(), found.end()))).collect()
}

/// The parts of a pattern between the bars outside brackets and parentheses.
fn alternatives(pattern: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0;
    let mut in_class = false;
    let mut is_escaped = false;
    for (at, char) in pattern.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ']' => in_class = false,
            _ if in_class => {}
            '[' => in_class = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&pattern[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&pattern[start..]);
    parts
}

/// A pattern with its categories and ASCII classes written out as sets, which may be inside another set.
fn rewrite(pattern: &str) -> String {
    const SETS: [(&[&str], &str); 10] = [
        (&[r"\p{N}"], "[\u{D1}0-9]"),
        (&[r"\p{Han}"], "[\u{D6}\u{D7}]"),
        (&[r"\p{L-Han}"], "[\u{D2}A-Za-z]"),
        (&[r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}"], "[\u{D2}\u{D6}A-Za-z]"),
        (&[r"\p{P}"], r"[\u{D3}!-#%-*,-/:;?@\[\\\]_{}]"),
        (&[r"\p{M}"], "[\u{D4}]"),
        (&[r"\p{S}"], r"[\u{D5}$+<=>\^`|~]"),
        (&[r"\s"], r"[\t-\r ]"),
        (&[r"\S"], r"[^\t-\r ]"),
        (&[r"\d"], "[0-9]"),
    ];
    let classes = SETS.iter().flat_map(|(classes, set)| classes.iter().map(move |class| (class, set)));
    classes.fold(pattern.to_owned(), |pattern, (class, set)| pattern.replace(class, set))
}

#[cfg(test)]
mod tests;
