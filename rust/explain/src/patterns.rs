//! Applies pre-tokenizer patterns with a regex engine, and records what each cuts and by which alternative.
//!
//! A family's patterns apply in sequence, each to every piece left by the one before it. Text that a pattern does not
//! match stays a piece. A pattern that names a category sees *collapsed* text: each code point beyond ASCII becomes one
//! character that stands for its category. Any other pattern sees code points, but all whitespace beyond ASCII as one
//! character. For some patterns llama.cpp has hand-written [`code`], which takes precedence.
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`. The splitter is compiled from the same table, and its
//! tests compare it with this. Time: that of a backtracking engine, quadratic for some patterns and texts.
//!
//! Deviations: none in the tokens. Empty pieces, which have none, are left out; if the engine gives up, so does this.

mod code;
#[cfg(test)]
mod splitter_tests;

use fancy_regex::{Regex, RegexBuilder};
use ggtok_core::internals::interrupt::Ticker;
use ggtok_core::unicode::{self, utf8};
use ggtok_core::vocab::{FAMILIES, Family};

use super::trace::{Cut, Pass};
use super::{ExplainError, Result};
use code::View;

/// The backtracking limit of one match. Only a text on which the engine's time is not linear needs more.
const MAX_STEPS_BACK: usize = 20_000_000;

/// The compiled patterns of a family, in sequence.
#[derive(Debug)]
pub(crate) struct Patterns(pub Vec<Pattern>);

/// A pattern.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// As written in llama.cpp.
    text: &'static str,
    /// The parts between top-level bars.
    alternatives: Vec<&'static str>,
    is_collapsed: bool,
    code: Option<HandWritten>,
    /// `None` if only code can say what the pattern means.
    regex: Option<Regex>,
    /// Each alternative by itself, anchored to a given place.
    alternative_regexes: Vec<Regex>,
}

/// llama.cpp's code for a pattern.
#[derive(Debug)]
enum HandWritten {
    /// The end of the piece that starts at an index.
    End(fn(View<'_>, usize) -> usize),
    /// The lengths of all pieces.
    Lengths(fn(View<'_>) -> Vec<usize>),
}

impl Patterns {
    pub(crate) fn new(family: &Family) -> Self {
        Self(family.patterns.iter().copied().map(Pattern::new).collect())
    }

    /// The pieces after each pattern, and which of its alternatives matched them.
    pub(crate) fn passes(&self, text: &[u8]) -> Result<Vec<Vec<Cut>>> {
        self.cut(text, true)
    }

    /// The byte ranges of all pieces of a text.
    #[cfg(test)]
    pub(crate) fn split(&self, text: &[u8]) -> Result<Vec<(usize, usize)>> {
        let pieces = self.cut(text, false)?.pop().unwrap_or_default();
        Ok(pieces.into_iter().map(|cut| (cut.start, cut.end)).collect())
    }

    fn cut(&self, text: &[u8], with_alternatives: bool) -> Result<Vec<Vec<Cut>>> {
        let (mut code_points, mut starts, mut at) = (Vec::new(), vec![0], 0);
        while at < text.len() {
            let (code_point, len) = utf8::decode_lossy(text, at);
            at += len;
            code_points.push(code_point);
            starts.push(at);
        }
        // Lengths in code points.
        let (mut lens, mut passes) = (vec![code_points.len()], Vec::new());
        for pattern in &self.0 {
            let (mut rest, mut shorter, mut cuts) = (&code_points[..], Vec::new(), Vec::new());
            for len in lens {
                let (piece, after) = rest.split_at(len);
                rest = after;
                let seen: String = piece.iter().map(|&code_point| pattern.seen(code_point)).collect();
                let (mut first, mut seen_at) = (code_points.len() - after.len() - len, 0);
                for len in pattern.split(piece, &seen)?.into_iter().filter(|&len| len > 0) {
                    let (from, end) = (seen_at, first + len);
                    seen_at += seen[from..].chars().take(len).map(char::len_utf8).sum::<usize>();
                    let alternative = if with_alternatives { pattern.alternative(&seen, from, seen_at)? } else { None };
                    cuts.push(Cut { start: starts[first], end: starts[end], alternative });
                    shorter.push(len);
                    first = end;
                }
            }
            lens = shorter;
            passes.push(cuts);
        }
        Ok(passes)
    }
}

impl Pattern {
    fn new(text: &'static str) -> Self {
        let is = |family: &str| {
            FAMILIES.iter().any(|row| row.name == family && row.patterns.first().is_some_and(|first| *first == text))
        };
        let code = match text {
            _ if is("gpt2") => Some(HandWritten::End(code::gpt2)),
            _ if is("llama3") => Some(HandWritten::End(|view, at| code::llama3(view, at, 3, false))),
            _ if is("qwen2") => Some(HandWritten::End(|view, at| code::llama3(view, at, 1, false))),
            _ if is("qwen35") => Some(HandWritten::End(|view, at| code::llama3(view, at, 1, true))),
            _ if is("kimi-k2") => Some(HandWritten::End(code::kimi_k2)),
            _ if is("gemma4") => Some(HandWritten::End(code::newlines)),
            _ if is("afmoe") || is("tiny-aya") => Some(HandWritten::Lengths(code::digits)),
            _ => None,
        };
        let alternatives = alternatives(text);
        let anchored = alternatives.iter().map(|alternative| compile(&format!(r"\G(?:{})", rewrite(alternative)?)));
        Self {
            text,
            is_collapsed: text.contains(r"\p{"),
            code,
            regex: rewrite(text).and_then(|regex| compile(&regex)),
            alternative_regexes: anchored.collect::<Option<_>>().unwrap_or_default(),
            alternatives,
        }
    }

    /// A pass without cuts.
    pub(crate) fn pass(&self) -> Pass {
        let applied_to = match (&self.code, self.is_collapsed) {
            (Some(_), _) => "code",
            (None, true) => "collapsed",
            (None, false) => "code_points",
        };
        Pass { pattern: self.text, alternatives: self.alternatives.clone(), applied_to, cuts: Vec::new() }
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
            _ if flags.is_number() => '\u{D1}',
            _ if flags.is_letter() => '\u{D2}',
            _ if flags.is_punctuation() => '\u{D3}',
            _ if flags.is_accent_mark() => '\u{D4}',
            _ if flags.is_symbol() => '\u{D5}',
            _ => '\u{D0}',
        }
    }

    /// The lengths of the pieces into which the pattern cuts a piece, in code points, given what it sees.
    fn split(&self, piece: &[u32], seen: &str) -> Result<Vec<usize>> {
        let (mut lens, mut done, mut ticker) = (Vec::new(), 0, Ticker::default());
        match (&self.code, &self.regex) {
            (Some(HandWritten::Lengths(lengths)), _) => return Ok(lengths(View(piece))),
            (Some(HandWritten::End(end_of_piece)), _) => {
                while done < piece.len() {
                    ticker.tick();
                    let end = end_of_piece(View(piece), done);
                    lens.push(end - done);
                    done = end;
                }
            }
            (None, Some(regex)) => {
                let mut end = 0;
                for found in regex.find_iter(seen) {
                    ticker.tick();
                    let found = found.map_err(|_| ExplainError::PatternTooSlow)?;
                    let (before, len) = (seen[end..found.start()].chars().count(), found.as_str().chars().count());
                    lens.extend([before, len]);
                    (done, end) = (done + before + len, found.end());
                }
            }
            (None, None) => {}
        }
        lens.push(piece.len() - done);
        Ok(lens)
    }

    /// The first alternative that matches at byte `start` of a piece, if that match ends at `end`.
    fn alternative(&self, seen: &str, start: usize, end: usize) -> Result<Option<usize>> {
        for (index, regex) in self.alternative_regexes.iter().enumerate() {
            if let Some(found) = regex.find_from_pos(seen, start).map_err(|_| ExplainError::PatternTooSlow)? {
                return Ok((found.end() == end).then_some(index));
            }
        }
        Ok(None)
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).backtrack_limit(MAX_STEPS_BACK).build().ok()
}

/// The byte ranges of a regex's matches in a short text, or `None` if it is not valid or takes too long.
#[must_use]
pub fn regex_matches(regex: &str, text: &str) -> Option<Vec<(usize, usize)>> {
    let regex = RegexBuilder::new(regex).backtrack_limit(MAX_STEPS_BACK / 200).build().ok()?;
    regex.find_iter(text).map(|found| found.ok().map(|found| (found.start(), found.end()))).collect()
}

/// The parts of a pattern between the bars outside brackets and parentheses.
fn alternatives(pattern: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut in_class, mut is_escaped) = (Vec::new(), 0, 0, false, false);
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

/// A pattern with its categories and ASCII classes written out; `None` if a regex cannot say what it means.
fn rewrite(pattern: &str) -> Option<String> {
    let (mut rewritten, mut inside) = (String::new(), false);
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        let members = match char {
            '\\' => match chars.next() {
                Some('p') => match chars.by_ref().take_while(|&char| char != '}').collect::<String>().as_str() {
                    "{N" => "\u{D1}0-9",
                    "{L" | "{Lu" | "{Ll" | "{Lt" | "{Lm" | "{Lo" => "\u{D2}A-Za-z",
                    "{P" => r"\u{D3}!-#%-*,-/:;?@\[\\\]_{}",
                    "{M" => "\u{D4}",
                    "{S" => r"\u{D5}$+<=>\^`|~",
                    _ => return None,
                },
                Some('s') => r"\t-\r ",
                Some('d') => "0-9",
                Some('S') if inside => return None,
                Some('S') => {
                    rewritten.push_str(r"[^\t-\r ]");
                    continue;
                }
                Some(escaped) => {
                    rewritten.extend(['\\', escaped]);
                    continue;
                }
                None => return None,
            },
            _ => {
                match char {
                    '[' if inside => rewritten.push('\\'),
                    '[' => inside = true,
                    ']' => inside = false,
                    _ => {}
                }
                rewritten.push(char);
                continue;
            }
        };
        let (open, close) = if inside { ("", "") } else { ("[", "]") };
        rewritten.extend([open, members, close]);
    }
    Some(rewritten)
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use ggtok_core::vocab::{FAMILIES, Family};
    use proptest::prelude::*;

    use super::Patterns;
    use crate::trace::Cut;

    static ALL: LazyLock<Vec<(&Family, Patterns)>> =
        LazyLock::new(|| FAMILIES.iter().map(|family| (family, Patterns::new(family))).collect());

    fn patterns(name: &str) -> &'static Patterns {
        &ALL.iter().find(|(family, _)| family.name == name).expect("a family").1
    }

    #[test]
    fn every_pattern_has_a_regex_or_code_and_is_its_alternatives() {
        for (family, patterns) in ALL.iter() {
            for pattern in &patterns.0 {
                assert!(pattern.regex.is_some() || pattern.code.is_some(), "{}: {}", family.name, pattern.text);
                assert_eq!(pattern.alternatives.join("|"), pattern.text);
                if pattern.regex.is_some() {
                    assert_eq!(pattern.alternative_regexes.len(), pattern.alternatives.len(), "{}", family.name);
                }
            }
        }
    }

    #[test]
    fn pieces_know_their_alternatives() {
        let cut = |start, end, alternative| Cut { start, end, alternative };
        let patterns = patterns("starcoder");
        assert_eq!((patterns.0[1].alternatives.len(), patterns.0[1].alternatives[10]), (11, r"\s+(?!\S)"));
        let found = patterns.passes("it's é1".as_bytes()).unwrap();
        assert_eq!(found[0], [cut(0, 7, None), cut(7, 8, Some(0))]);
        // Cutting before a space that does not match is a quirk of llama.cpp's code.
        assert_eq!(found[1], [cut(0, 2, Some(7)), cut(2, 4, Some(0)), cut(4, 7, Some(7)), cut(7, 8, Some(8)),]);
        let found = self::patterns("bloom").passes(b"a, b").unwrap();
        assert_eq!(found, [[cut(0, 1, Some(0)), cut(1, 2, None), cut(2, 4, Some(0))]]);
    }

    proptest! {
        #[test]
        fn cuts_tile_the_text_and_matches_are_named(text in "[a-cA-C0-9 .,'\n中é\u{301}]{0,30}") {
            for (family, patterns) in ALL.iter() {
                for (pattern, cuts) in patterns.0.iter().zip(patterns.passes(text.as_bytes()).expect("short")) {
                    let ends = cuts.iter().map(|cut| cut.end);
                    let starts: Vec<_> = [0].into_iter().chain(ends).take(cuts.len()).collect();
                    prop_assert_eq!(cuts.iter().map(|cut| cut.start).collect::<Vec<_>>(), starts);
                    prop_assert_eq!(cuts.last().map_or(0, |cut| cut.end), text.len());
                    // Two adjacent stretches without a match would be one.
                    let unmatched = |pair: &[Cut]| pair.iter().all(|cut| cut.alternative.is_none());
                    let is_sure = pattern.code.is_none() && family.patterns.len() == 1;
                    prop_assert!(!is_sure || !cuts.windows(2).any(unmatched), "{}: {:?}", family.name, cuts);
                }
            }
        }
    }
}
