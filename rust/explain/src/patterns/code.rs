//! llama.cpp's hand-written splitters for some patterns, literally. They take precedence over the patterns.
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split_custom_*`. Complexity: O(n) for a piece of n code points,
//! except for runs of whitespace without a match, which are read again at each position. Deviations: none.

use ggtok_core::unicode::{self, Flags};

/// A piece as llama.cpp's splitters see it: they see nothing beyond its end.
#[derive(Clone, Copy)]
pub(super) struct View<'a>(pub &'a [u32]);

impl View<'_> {
    fn is(self, at: usize, chars: &str) -> bool {
        self.0.get(at).is_some_and(|&code_point| chars.chars().any(|char| u32::from(char) == code_point))
    }

    fn flags(self, at: usize) -> Flags {
        self.0.get(at).map_or(Flags::from_bits(0), |&code_point| unicode::flags(code_point))
    }

    /// The number of code points of a kind, starting at `at`.
    pub(super) fn run(self, at: usize, kind: impl Fn(Flags) -> bool) -> usize {
        (at..self.0.len()).take_while(|&at| kind(self.flags(at))).count()
    }

    /// The number of digits at `at`, up to `most`.
    fn digits(self, at: usize, most: usize) -> usize {
        (at..self.0.len()).take(most).take_while(|&at| self.flags(at).is_number()).count()
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
        // With the extensions A, B, and C to F; then the compatibility ideographs and their supplement.
        matches!(
            self.0.get(at),
            Some(0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x20000..=0x2A6DF | 0x2A700..=0x2EBEF)
                | Some(0xF900..=0xFAFF | 0x2F800..=0x2FA1F)
        )
    }

    /// `\s+(?!\S)|\s+`, or one code point if that is not whitespace.
    fn spaces(self, at: usize) -> usize {
        match self.run(at, Flags::is_whitespace) {
            0 => at + 1,
            count if count > 1 && at + count < self.0.len() => at + count - 1,
            count => at + count,
        }
    }

    /// `\s*[\r\n]+`; without a newline, as [`View::spaces`].
    fn lines_or_spaces(self, at: usize) -> usize {
        let end = at + self.run(at, Flags::is_whitespace);
        match (at..end).rev().find(|&at| self.is(at, "\r\n")) {
            Some(last) => last + 1,
            None => self.spaces(at),
        }
    }
}

/// `unicode_regex_split_custom_gpt2`
pub(super) fn gpt2(view: View<'_>, at: usize) -> usize {
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
pub(super) fn llama3(view: View<'_>, at: usize, most_digits: usize, marks: bool) -> usize {
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
        return at + view.digits(at, most_digits);
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
pub(super) fn kimi_k2(view: View<'_>, at: usize) -> usize {
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
        return at + view.digits(at, 3);
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
pub(super) fn newlines(view: View<'_>, at: usize) -> usize {
    let is_newline = view.is(at, "\n");
    at + (at..view.0.len()).take_while(|&at| view.is(at, "\n") == is_newline).count()
}

/// `unicode_regex_split_custom_afmoe`: the lengths of the pieces of a text, digits in groups of three from the right. A
/// piece stays open across anything that is not a digit.
pub(super) fn digits(view: View<'_>) -> Vec<usize> {
    let (mut lens, mut done, mut at) = (Vec::new(), 0, 0);
    while at < view.0.len() {
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
    lens.push(view.0.len() - done);
    lens
}
