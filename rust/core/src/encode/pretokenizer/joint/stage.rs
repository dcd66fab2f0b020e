//! The stages of a family, each taking characters one at a time and passing them on as pieces.
//!
//! A stage holds a character until it is settled whether a piece ends before it: an attempt of an automaton holds the
//! characters that the next attempt would start with if this one ended now. Each stage takes what the one before passes
//! on, so all of them walk through the text together.
//!
//! Complexity: an attempt that fails is repeated from the next character, so one character may take time quadratic in
//! the number of characters held, which is at most [`MAX_HELD`].

use crate::encode::pretokenizer::automaton::{Automaton, DEAD};
use crate::text::unicode;

/// The most characters that the stages hold in total.
pub(super) const MAX_HELD: usize = 64;

/// One step of the sequence.
#[derive(Debug)]
pub(crate) enum Stage {
    Pattern(Box<Automaton>),
    /// Cuts numbers into groups of three digits from the right.
    Digits,
}

impl Stage {
    /// The class of a code point in this stage.
    pub(in crate::encode::pretokenizer) fn class(&self, code_point: u32) -> u8 {
        match self {
            Self::Pattern(automaton) => automaton.class(code_point),
            Self::Digits => unicode::flags(code_point).is_number().into(),
        }
    }
}

heap_bytes!(Stage { Self::Pattern(automaton) => automaton, Self::Digits => &0_u8 });

/// What a stage takes and passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A character of this joint class.
    Char(u8),
    /// The piece ends.
    End,
}

/// The state of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct StageState {
    /// The row of the automaton's state.
    row: usize,
    /// Whether characters of a piece have been passed on, but not its end.
    is_open: bool,
    /// Whether these characters are a match of the current attempt, which may become longer.
    has_matched: bool,
    /// The characters not passed on.
    held: Vec<u8>,
}

impl StageState {
    /// The state of a stage at the start of a piece.
    pub(super) fn new(stage: &Stage) -> Self {
        let row = match stage {
            Stage::Pattern(automaton) => automaton.start_row(),
            Stage::Digits => 0,
        };
        Self { row, is_open: false, has_matched: false, held: Vec::new() }
    }
}

/// One event on its way through all stages.
pub(super) struct Walk<'a> {
    pub stages: &'a [Stage],
    /// For each joint class, the class in each stage.
    pub classes: &'a [Vec<u8>],
    pub states: &'a mut [StageState],
    /// How many characters the last stage has passed on, and where among them pieces end.
    pub num_passed: usize,
    pub ends: Vec<usize>,
}

impl Walk<'_> {
    /// The number of characters that the stages hold.
    pub(super) fn num_held(&self) -> usize {
        self.states.iter().map(|state| state.held.len()).sum()
    }

    /// Gives an event to the stage with this number.
    pub(super) fn take(&mut self, at: usize, event: Event) {
        match (self.stages.get(at), event) {
            (Some(Stage::Pattern(automaton)), _) => self.take_pattern(at, automaton, event),
            (Some(Stage::Digits), _) => self.take_digits(at, event),
            (None, Event::Char(_)) => self.num_passed += 1,
            (None, Event::End) => self.ends.push(self.num_passed),
        }
    }

    /// As `Automaton::split`.
    fn take_pattern(&mut self, at: usize, automaton: &Automaton, event: Event) {
        let class = match event {
            Event::Char(class) => self.classes[usize::from(class)][at],
            Event::End => automaton.end_class(),
        };
        let (next, ends_here) = automaton.next(self.states[at].row, class);
        // An empty match does not count.
        if ends_here && !self.states[at].held.is_empty() {
            self.pass_match(at);
        }
        let state = &mut self.states[at];
        if let Event::Char(class) = event
            && next != DEAD
        {
            state.row = next;
            state.held.push(class);
            if automaton.is_sure(next) {
                self.pass_match(at);
            }
            return;
        }

        // The attempt is over. The next one starts after its match, or else after its first character.
        state.row = automaton.start_row();
        let mut held = std::mem::take(&mut state.held);
        if std::mem::take(&mut state.has_matched) {
            self.pass(at, Event::End);
        } else if held.is_empty() {
            return self.pass(at, event);
        } else {
            let first = held.remove(0);
            self.pass(at, Event::Char(first));
        }
        held.into_iter().for_each(|class| self.take(at, Event::Char(class)));
        self.take(at, event);
    }

    /// Passes on the characters held, which are a match or extend one.
    fn pass_match(&mut self, at: usize) {
        if !std::mem::replace(&mut self.states[at].has_matched, true) {
            self.pass(at, Event::End);
        }
        for class in std::mem::take(&mut self.states[at].held) {
            self.pass(at, Event::Char(class));
        }
    }

    /// As `numbers::split_groups`.
    fn take_digits(&mut self, at: usize, event: Event) {
        if let Event::Char(class) = event
            && self.classes[usize::from(class)][at] != 0
        {
            return self.states[at].held.push(class);
        }
        let run = std::mem::take(&mut self.states[at].held);
        for (before, &class) in run.iter().enumerate() {
            if before > 0 && (run.len() - before).is_multiple_of(3) {
                self.pass(at, Event::End);
            }
            self.pass(at, Event::Char(class));
        }
        if !run.is_empty() {
            self.pass(at, Event::End);
        }
        self.pass(at, event);
    }

    /// Gives an event to the next stage. The end of an empty piece is dropped.
    fn pass(&mut self, at: usize, event: Event) {
        let was_open = std::mem::replace(&mut self.states[at].is_open, event != Event::End);
        if was_open || event != Event::End {
            self.take(at + 1, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StageState;

    impl StageState {
        pub(in crate::encode::pretokenizer) fn bytes(&self) -> usize {
            size_of::<Self>() + self.held.capacity()
        }
    }
}
