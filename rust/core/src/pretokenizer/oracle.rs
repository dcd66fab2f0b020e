//! The oracle of the splitter's tests: the same patterns through `fancy-regex`, and llama.cpp's own splitters
//! literally.
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split`: patterns in sequence, each over every piece that the one
//! before it leaves, on collapsed text if the pattern names a category and otherwise on code points with all whitespace
//! replaced; and `unicode_regex_split_custom_*` for the patterns that have code of their own. The table is the one that
//! the splitter is compiled from. Complexity: none promised.
//!
//! Deviations: (1) empty pieces, which have no tokens, are left out.

use fancy_regex::{Regex, RegexBuilder};

use super::families::{FAMILIES, Family};
use crate::unicode::{self, Flags, utf8};

/// The compiled patterns of a family.
#[derive(Debug)]
pub(super) struct Oracle {
    matchers: Vec<Matcher>,
}

#[derive(Debug)]
enum Matcher {
    Pattern {
        regex: Regex,
        is_collapsed: bool,
    },
    /// llama.cpp's code for a pattern: the end of the piece that starts at an index.
    Code(fn(View<'_>, usize) -> usize),
    /// llama.cpp's code for digits in groups. A piece stays open across whatever is not a digit.
    Digits,
}

impl Oracle {
    pub(super) fn new(family: &Family) -> Self {
        Self { matchers: family.patterns.iter().map(|pattern| Matcher::new(pattern)).collect() }
    }

    /// The byte ranges of all pieces of a text.
    pub(super) fn split(&self, text: &[u8]) -> Vec<(usize, usize)> {
        let (mut code_points, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        while at < text.len() {
            let (code_point, len) = utf8::decode_lossy(text, at);
            code_points.push(code_point);
            starts.push(at);
            at += len;
        }
        starts.push(at);
        let mut lens = vec![code_points.len()];
        for matcher in &self.matchers {
            let mut rest = &code_points[..];
            let mut shorter = Vec::new();
            for len in lens {
                let (piece, after) = rest.split_at(len);
                shorter.extend(matcher.split(piece).into_iter().filter(|&len| len > 0));
                rest = after;
            }
            lens = shorter;
        }
        let mut end = 0;
        let range = |len| {
            end += len;
            (starts[end - len], starts[end])
        };
        lens.into_iter().filter(|&len| len > 0).map(range).collect()
    }
}

impl Matcher {
    fn new(pattern: &str) -> Self {
        let is = |family: &str| {
            FAMILIES.iter().any(|row| row.name == family && row.patterns.first().is_some_and(|first| *first == pattern))
        };
        match pattern {
            _ if is("gpt2") => Self::Code(gpt2),
            _ if is("llama3") => Self::Code(|view, at| llama3(view, at, 3, false)),
            _ if is("qwen2") => Self::Code(|view, at| llama3(view, at, 1, false)),
            _ if is("qwen35") => Self::Code(|view, at| llama3(view, at, 1, true)),
            _ if is("kimi-k2") => Self::Code(kimi_k2),
            _ if is("gemma4") => Self::Code(newlines),
            _ if is("afmoe") || is("tiny-aya") => Self::Digits,
            _ => {
                let is_collapsed = pattern.contains(r"\p{");
                let regex = RegexBuilder::new(&rewrite(pattern)).backtrack_limit(usize::MAX).build();
                Self::Pattern { regex: regex.expect("a pattern of the table"), is_collapsed }
            }
        }
    }

    /// The lengths of the pieces of a piece, in code points.
    fn split(&self, piece: &[u32]) -> Vec<usize> {
        let (mut lens, mut done) = (Vec::new(), 0);
        match self {
            Self::Pattern { regex, is_collapsed } => {
                let text: String = piece.iter().map(|&code_point| symbol(code_point, *is_collapsed)).collect();
                for found in regex.find_iter(&text) {
                    let found = found.expect("no limit");
                    let before = text[..found.start()].chars().count();
                    let len = found.as_str().chars().count();
                    lens.extend([before - done, len]);
                    done = before + len;
                }
            }
            Self::Code(end_of_piece) => {
                while done < piece.len() {
                    let end = end_of_piece(View(piece), done);
                    lens.push(end - done);
                    done = end;
                }
            }
            Self::Digits => {
                let (view, mut at) = (View(piece), 0);
                while at < piece.len() {
                    let count = view.run(at, Flags::is_number);
                    if count == 0 {
                        at += 1;
                        continue;
                    }
                    let end = at + count;
                    at += count % 3;
                    while at <= end {
                        if at > end - count {
                            lens.push(at - done);
                            done = at;
                        }
                        at += 3;
                    }
                    at = end;
                }
            }
        }
        lens.push(piece.len() - done);
        lens
    }
}

/// The character that a pattern sees instead of a code point.
fn symbol(code_point: u32, is_collapsed: bool) -> char {
    let flags = unicode::flags(code_point);
    match char::from_u32(code_point) {
        Some(char) if char.is_ascii() => char,
        _ if flags.is_whitespace() => '\u{B}',
        Some(char) if !is_collapsed => char,
        // A surrogate is not a `char`: another code point that no pattern names stands for it.
        None if !is_collapsed => '\u{E000}',
        _ if flags.is_number() => '\u{D1}',
        _ if flags.is_letter() => '\u{D2}',
        _ if flags.is_punctuation() => '\u{D3}',
        _ if flags.is_accent_mark() => '\u{D4}',
        _ if flags.is_symbol() => '\u{D5}',
        _ => '\u{D0}',
    }
}

/// A pattern with its categories and ASCII classes written out.
fn rewrite(pattern: &str) -> String {
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
                    other => panic!("{other}"),
                },
                Some('s') => r"\t-\r ",
                Some('d') => "0-9",
                Some('S') => {
                    assert!(!inside, "{pattern}");
                    rewritten.push_str(r"[^\t-\r ]");
                    continue;
                }
                Some(escaped) => {
                    rewritten.extend(['\\', escaped]);
                    continue;
                }
                None => panic!("{pattern}"),
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
    rewritten
}

/// A piece as llama.cpp's splitters see it: nothing is beyond its end.
#[derive(Clone, Copy)]
struct View<'a>(&'a [u32]);

impl View<'_> {
    fn is(self, at: usize, chars: &str) -> bool {
        self.0.get(at).is_some_and(|&code_point| chars.chars().any(|char| u32::from(char) == code_point))
    }

    fn flags(self, at: usize) -> Flags {
        self.0.get(at).map_or(Flags::from_bits(0), |&code_point| unicode::flags(code_point))
    }

    /// The number of code points of a kind, starting at `at`.
    fn run(self, at: usize, kind: impl Fn(Flags) -> bool) -> usize {
        (at..self.0.len()).take_while(|&at| kind(self.flags(at))).count()
    }

    fn newlines(self, at: usize) -> usize {
        (at..self.0.len()).take_while(|&at| self.is(at, "\r\n")).count()
    }

    /// The length of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d` at `at`; 0 if there is none.
    fn contraction(self, at: usize, fold: fn(u32) -> u32) -> usize {
        let letter = |at: usize| self.0.get(at).and_then(|&code_point| char::from_u32(fold(code_point)));
        match (self.is(at, "'"), letter(at + 1), letter(at + 2)) {
            (true, Some('s' | 't' | 'm' | 'd'), _) => 2,
            (true, Some('r' | 'v'), Some('e')) | (true, Some('l'), Some('l')) => 3,
            _ => 0,
        }
    }

    fn is_han(self, at: usize) -> bool {
        self.0.get(at).is_some_and(|code_point| {
            // The extensions A to F one by one, then the compatibility ideographs and their supplement.
            let blocks = [
                0x4E00..=0x9FFF,
                0x3400..=0x4DBF,
                0x20000..=0x2A6DF,
                0x2A700..=0x2B73F,
                0x2B740..=0x2B81F,
                0x2B820..=0x2CEAF,
                0x2CEB0..=0x2EBEF,
                0xF900..=0xFAFF,
                0x2F800..=0x2FA1F,
            ];
            blocks.iter().any(|block| block.contains(code_point))
        })
    }

    /// `\s+(?!\S)|\s+`, or one code point if there is no whitespace.
    fn spaces(self, at: usize) -> usize {
        match self.run(at, Flags::is_whitespace) {
            0 => at + 1,
            count if count > 1 && at + count < self.0.len() => at + count - 1,
            count => at + count,
        }
    }

    /// `\s*[\r\n]+`; if there is no newline, as [`View::spaces`].
    fn lines_or_spaces(self, at: usize) -> usize {
        let end = at + self.run(at, Flags::is_whitespace);
        match (at..end).rev().find(|&at| self.is(at, "\r\n")) {
            Some(last) => last + 1,
            None => self.spaces(at),
        }
    }
}

/// `unicode_regex_split_custom_gpt2`
fn gpt2(view: View<'_>, at: usize) -> usize {
    match view.contraction(at, |code_point| code_point) {
        0 => {}
        len => return at + len,
    }
    let start = at + usize::from(view.is(at, " "));
    let is_other =
        |flags: Flags| !(flags.is_whitespace() || flags.is_letter() || flags.is_number()) && flags.bits() != 0;
    for len in [view.run(start, Flags::is_letter), view.run(start, Flags::is_number), view.run(start, is_other)] {
        if len > 0 {
            return start + len;
        }
    }
    view.spaces(at)
}

/// `unicode_regex_split_custom_llama3`, `..._qwen2` and `..._qwen35`: numbers of up to `most_digits` digits, words with
/// or without marks.
fn llama3(view: View<'_>, at: usize, most_digits: usize, marks: bool) -> usize {
    match view.contraction(at, unicode::lowercase) {
        0 => {}
        len => return at + len,
    }
    let flags = view.flags(at);
    let is_word = |flags: Flags| flags.is_letter() || marks && flags.is_accent_mark();
    if !(view.is(at, "\r\n") || flags.is_number()) && (is_word(flags) || is_word(view.flags(at + 1))) {
        return at + 1 + view.run(at + 1, is_word);
    }
    if flags.is_number() {
        return at + view.run(at, Flags::is_number).min(most_digits);
    }
    let start = at + usize::from(view.is(at, " "));
    let is_other = |flags: Flags| !(flags.is_whitespace() || is_word(flags) || flags.is_number());
    if is_other(view.flags(start)) && flags.bits() != 0 {
        let end = start + view.run(start, |flags| is_other(flags) && flags.bits() != 0);
        return end + view.newlines(end);
    }
    view.lines_or_spaces(at)
}

/// `unicode_regex_split_custom_kimi_k2`
fn kimi_k2(view: View<'_>, at: usize) -> usize {
    let run = |at: usize, kind: &dyn Fn(usize) -> bool| (at..view.0.len()).take_while(|&at| kind(at)).count();
    if view.is_han(at) {
        return at + run(at, &|at| view.is_han(at));
    }
    let flags = view.flags(at);
    let is_word = |at: usize| view.flags(at).is_letter() && !view.is_han(at);
    let may_lead = !(view.is(at, "\r\n") || flags.is_letter() || flags.is_number());
    if is_word(at) || may_lead && is_word(at + 1) {
        let start = at + usize::from(may_lead);
        let end = start + run(start, &is_word);
        return end + view.contraction(end, unicode::lowercase);
    }
    if flags.is_number() {
        return at + view.run(at, Flags::is_number).min(3);
    }
    let start = at + usize::from(view.is(at, " "));
    let is_other =
        |flags: Flags| !(flags.is_whitespace() || flags.is_letter() || flags.is_number()) && flags.bits() != 0;
    match view.run(start, is_other) {
        0 => view.lines_or_spaces(at),
        len => start + len + view.newlines(start + len),
    }
}

/// `unicode_regex_split_custom_newlines`
fn newlines(view: View<'_>, at: usize) -> usize {
    let is_newline = view.is(at, "\n");
    at + (at..view.0.len()).take_while(|&at| view.is(at, "\n") == is_newline).count()
}
