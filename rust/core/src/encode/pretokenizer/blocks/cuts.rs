//! Finds one piece at a time, for pieces whose end the masks of a block do not decide.
//!
//! An automaton matches the last pattern of a shape. The patterns before it have cut out numbers and runs of isolated
//! characters, so the automaton must not look past the next such cut. A pattern after it cuts numbers again; they are
//! cut here directly, so that the automaton does not run through a whole number for each of its pieces.
//!
//! Complexity: linear in the text for all calls in total. The starts of the calls ascend, so both look-aheads only move
//! forward.

use crate::encode::pretokenizer::automaton::Automaton;
use crate::encode::pretokenizer::shape::{Digits, Shape};
use crate::text::unicode::{self, utf8};

/// A character that is cut out before the pattern sees the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Number,
    Isolated,
}

/// The cuts of a text found so far.
pub(super) struct Cuts<'a> {
    shape: Shape,
    automaton: &'a Automaton,
    text: &'a [u8],
    /// The first cut at or after the last start, or the end of the text.
    next: usize,
    /// The end of the latest run of isolated characters.
    run_end: usize,
}

impl<'a> Cuts<'a> {
    /// `automaton` matches the pattern of `shape`; `text` is canonical UTF-8.
    pub(super) fn new(shape: Shape, automaton: &'a Automaton, text: &'a [u8]) -> Self {
        Self { shape, automaton, text, next: 0, run_end: 0 }
    }

    /// The end of the piece that starts at `start`.
    #[inline(never)]
    pub(super) fn piece_end(&mut self, start: usize) -> usize {
        if !self.shape.digits_first && !self.shape.words.isolates_first() {
            return self.automaton.piece_end(self.text, start, self.text.len());
        }

        let next = self.next_cut(start);
        if next > start {
            let number_end = self.number_end(start, next);
            return number_end.unwrap_or_else(|| self.automaton.piece_end(self.text, start, next));
        }

        match self.cut_at(start) {
            Some((Cut::Isolated, _)) => {
                let run_end = self.run_end(start);
                self.automaton.piece_end(self.text, start, run_end)
            }
            _ => self.digits_end(start),
        }
    }

    /// The first cut at or after `start`, or the end of the text.
    fn next_cut(&mut self, start: usize) -> usize {
        self.next = self.next.max(start);
        while self.next < self.text.len() && self.cut_at(self.next).is_none() {
            self.next += utf8::sequence_len(self.text[self.next]);
        }
        self.next
    }

    /// The end of the run of isolated characters around `start`.
    fn run_end(&mut self, start: usize) -> usize {
        self.run_end = self.run_end.max(start);
        while let Some((Cut::Isolated, len)) = self.cut_at(self.run_end) {
            self.run_end += len;
        }
        self.run_end
    }

    /// The end of the digits that are cut out together, starting at `start`.
    fn digits_end(&self, start: usize) -> usize {
        let max_digits = if self.shape.digits == Digits::Single { 1 } else { 3 };
        let mut at = start;
        for _ in 0..max_digits {
            match self.cut_at(at) {
                Some((Cut::Number, len)) => at += len,
                _ => break,
            }
        }
        at
    }

    /// What the character at `at` is if it is cut out before the pattern sees the text, and its length.
    fn cut_at(&self, at: usize) -> Option<(Cut, usize)> {
        count_steps!(1);
        let (code_point, len) = utf8::decode_valid(self.text, at)?;
        if self.shape.digits_first && unicode::flags(code_point).is_number() {
            Some((Cut::Number, len))
        } else {
            let is_isolated = self.shape.words.isolates_first() && self.shape.words.isolates(code_point);
            is_isolated.then_some((Cut::Isolated, len))
        }
    }

    /// The end of the piece that starts at `start`, if it is a number, or a space before one, that is split further
    /// after the pattern has matched it. `end` is the next cut.
    fn number_end(&self, start: usize, end: usize) -> Option<usize> {
        let text = &self.text[..end];
        let number_len = |at| {
            count_steps!(1);
            let (code_point, len) = utf8::decode_valid(text, at)?;
            unicode::flags(code_point).is_number().then_some(len)
        };
        let has_three =
            |at: usize| text[at..].first_chunk::<3>().is_some_and(|three| three.iter().all(u8::is_ascii_digit));

        let mut at = start + usize::from(text[start] == b' ');
        let has_space = at > start;
        if self.shape.digits_first || number_len(at).is_none() {
            return None;
        }

        // For Falcon, the space stays with a number only if the number does not start with three ASCII digits.
        let keeps_space = self.shape.digits == Digits::RunsThenThrees;
        if has_space && (!keeps_space || has_three(at)) {
            return Some(at);
        }

        if has_three(at) {
            return Some(at + 3);
        }
        while let Some(len) = number_len(at).filter(|_| !has_three(at)) {
            at += len;
        }
        Some(at)
    }
}
