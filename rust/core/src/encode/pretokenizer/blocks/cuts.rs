//! Finds one piece at a time, for pieces whose end the masks of a block do not decide.
//!
//! The first patterns of some shapes cut out numbers and runs of isolated characters, and the others must not look past
//! the next such cut. Each of these finds its first piece in the first piece of the one before it; that of the last one
//! is the result.
//!
//! Complexity: linear in the text for all calls in total. The starts of the calls ascend, the look-aheads only move
//! forward, and no pattern looks at a piece again before the start is past it.

use crate::encode::pretokenizer::automaton::{Automaton, FailedRun};
use crate::encode::pretokenizer::shape::Shape;
use crate::text::unicode::{self, utf8};

/// The most patterns that find pieces between cuts.
const MAX_PATTERNS: usize = 3;

/// A character that is cut out before other patterns see the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Number,
    Isolated,
}

/// The cuts of a text found so far.
pub(super) struct Cuts<'a> {
    shape: Shape,
    automata: &'a [Automaton],
    text: &'a [u8],
    /// The first cut at or after the last start, or the end of the text.
    next: usize,
    /// The end of the latest run of isolated characters.
    run_end: usize,
    /// For each pattern between cuts, the end of its latest piece.
    ends: [usize; MAX_PATTERNS],
}

impl<'a> Cuts<'a> {
    /// `automata` match the patterns of `shape`; `text` is canonical UTF-8.
    pub(super) fn new(shape: Shape, automata: &'a [Automaton], text: &'a [u8]) -> Self {
        Self { shape, automata, text, next: 0, run_end: 0, ends: [0; MAX_PATTERNS] }
    }

    /// The end of the piece that starts at `start`.
    #[inline(never)]
    pub(super) fn piece_end(&mut self, start: usize) -> usize {
        let Shape { digits_first, words, .. } = self.shape;
        let num_cutting = usize::from(digits_first) + usize::from(words.isolates_first());
        let mut end = self.text.len();
        if num_cutting > 0 {
            end = match self.cut_at(start) {
                Some((Cut::Number, _)) => {
                    return self.automata[0].piece_end(self.text, start, end, &mut FailedRun::default());
                }
                Some((Cut::Isolated, _)) => self.run_end(start),
                None => self.next_cut(start),
            };
        }
        for (automaton, last) in self.automata[num_cutting..].iter().zip(&mut self.ends) {
            if *last <= start {
                *last = automaton.piece_end(self.text, start, end, &mut FailedRun::default());
            }
            end = *last;
        }
        end
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

    /// What the character at `at` is if it is cut out before other patterns see the text, and its length.
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
}
