//! A deterministic finite automaton that finds the same matches as a backtracking matcher, with one table look-up per
//! code point.
//!
//! Thompson's construction orders states by priority, and the subset construction keeps that order (as in Cox, "Regular
//! Expression Matching: the Virtual Machine Approach", and Rust's regex-automata), so the first alternative that leads
//! to a match wins, as in ECMAScript. A match is reported one symbol late, on the transition out of its end, so that
//! looking one symbol ahead (`(?!\S)`, `$`) is part of the table.
//!
//! Source: `std::regex` in ECMAScript mode as llama.cpp uses it (`src/unicode.cpp`, `unicode_regex_split_stl`).
//! Complexity: linear in the text for all patterns of the table. An attempt may run far past its match, or not match at
//! all, and the next attempt would run over the same text again. So the run and the state it stayed in are recorded
//! ([`FailedRun`]), and later attempts stop there.
//!
//! Deviations: (1) no recursion. `std::regex` recurses per character and overflows its stack on long runs.

pub(super) mod alphabet;
pub(super) mod pattern;

use std::collections::HashMap;

use crate::text::unicode::utf8;
use crate::work::interrupt::Ticker;
use alphabet::{Alphabet, ClassSet};
use pattern::{Set, Tree, parse};

/// The dead state, and its row: nothing can match any more.
pub(super) const DEAD: usize = 0;
/// The state in which an attempt starts.
const START: usize = 1;
/// Runs shorter than this, in bytes, are not worth recording.
const LONG_RUN: usize = 64;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Automaton {
    alphabet: Alphabet,
    /// `table[row + class]` is the row of the next state, doubled, plus one if a match ends before this symbol. The row
    /// of a state is its number times `stride`.
    table: Vec<u32>,
    stride: usize,
}

heap_bytes!(Automaton: table, alphabet);

/// A run of bytes that an attempt spent in one state without matching afterwards: any attempt that is in the state with
/// this row at a byte in `start..=end` fails in the same way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FailedRun {
    row: usize,
    start: usize,
    end: usize,
}

impl FailedRun {
    #[inline]
    fn record(&mut self, row: usize, start: usize, end: usize) {
        if end - start >= LONG_RUN {
            *self = Self { row, start, end };
        }
    }
}

impl Automaton {
    /// Compiles a pattern of the table; a test compiles every row.
    ///
    /// # Panics
    /// If the pattern cannot be parsed.
    pub(crate) fn new(pattern: &str) -> Self {
        let tree = parse(pattern);
        let mut sets = Vec::new();
        collect_sets(&tree, &mut sets);
        // A pattern that names a Unicode category is matched over collapsed text.
        let (alphabet, class_sets) = Alphabet::new(&sets, pattern.contains(r"\p{"));

        let mut program = Program { sets: &sets, class_sets: &class_sets, end: alphabet.end(), states: Vec::new() };
        let accept = program.push(State::Match);
        let start = program.compile(&tree, accept);
        let stride = usize::from(alphabet.end()) + 1;
        let table = determinize(&program.states, start, stride);
        Self { alphabet, table, stride }
    }

    /// Calls `piece` with the byte range of every match in `text[start..end]` and of all text between matches.
    ///
    /// `text` is canonical UTF-8 (see [`utf8`]), and the range starts and ends between characters.
    #[inline]
    pub(crate) fn split(&self, text: &[u8], start: usize, end: usize, mut piece: impl FnMut(usize, usize)) {
        let mut at = start;
        let mut failed = FailedRun::default();
        while at < end {
            let piece_end = self.piece_end(text, at, end, &mut failed);
            piece(at, piece_end);
            at = piece_end;
        }
    }

    /// The row of the state in which an attempt starts.
    pub(super) fn start_row(&self) -> usize {
        START * self.stride
    }

    /// The class of a code point.
    pub(super) fn class(&self, code_point: u32) -> u8 {
        self.alphabet.class(code_point)
    }

    /// The class of the end of the text.
    pub(super) fn end_class(&self) -> u8 {
        self.alphabet.end()
    }

    /// The row of the state after a symbol, and whether a match ends before it.
    #[inline(always)]
    pub(super) fn next(&self, row: usize, class: u8) -> (usize, bool) {
        let entry = self.table[row + usize::from(class)];
        ((entry >> 1) as usize, entry & 1 != 0)
    }

    /// Whether a match ends before whatever comes next.
    pub(super) fn is_sure(&self, row: usize) -> bool {
        (0..=self.end_class()).all(|class| self.next(row, class).1)
    }

    /// The classes whose characters are matches by themselves, whatever follows.
    pub(super) fn alone(&self) -> ClassSet {
        (0..self.end_class()).filter(|&class| self.is_sure(self.next(self.start_row(), class).0)).collect()
    }

    /// For each class, those that an attempt can take directly after it; all if what comes after it says whether a
    /// match ends there.
    pub(super) fn joined(&self) -> Vec<ClassSet> {
        let end = self.end_class();
        let mut joined = vec![ClassSet::default(); usize::from(end)];
        for row in (self.start_row()..self.table.len()).step_by(self.stride) {
            for (class, joined) in (0..).zip(&mut joined) {
                let (next, _) = self.next(row, class);
                let looks_ahead = (0..end).any(|after| self.next(next, after).1 != self.next(next, end).1);
                let is_joined = |after: &u8| looks_ahead || self.next(next, *after).0 != DEAD;
                (0..end).filter(is_joined).for_each(|after| joined.insert(after));
            }
        }
        joined
    }

    /// The end of the piece that starts at `start`: the end of the match there, or if there is none, the start of the
    /// next match. `failed` is from earlier pieces of the same text with the same end.
    pub(super) fn piece_end(&self, text: &[u8], start: usize, end: usize, failed: &mut FailedRun) -> usize {
        let mut at = start;
        while at < end {
            match self.match_end(text, at, end, failed).filter(|&matched| matched > at) {
                Some(matched) => return if at == start { matched } else { at },
                None => at += utf8::sequence_len(text[at]),
            }
        }
        end
    }

    /// The end of the match that starts at `start`.
    #[inline]
    fn match_end(&self, text: &[u8], start: usize, end: usize, failed: &mut FailedRun) -> Option<usize> {
        let mut row = self.start_row();
        let mut at = start;
        // Where the attempt entered its state or last matched.
        let mut since = start;
        let mut matched = None;
        let mut ticker = Ticker::default();
        while at < end {
            ticker.tick();
            if since == at && row == failed.row && (failed.start..=failed.end).contains(&at) {
                return matched;
            }
            let (next, ends_here, len) = self.step(text, row, at);
            if ends_here {
                matched = Some(at);
            } else if next == DEAD {
                failed.record(row, since, at);
            }
            if next == DEAD {
                return matched;
            }
            at += len;
            since = if ends_here || next != row { at } else { since };
            row = next;
        }
        if self.next(row, self.end_class()).1 {
            return Some(end);
        }
        failed.record(row, since, end);
        matched
    }

    /// Takes the character at `at`. Returns the row of the next state, whether a match ends before this character, and
    /// the character's length.
    #[inline(always)]
    fn step(&self, text: &[u8], row: usize, at: usize) -> (usize, bool, usize) {
        count_steps!(1);
        let (code_point, len) = utf8::decode_lossy(text, at);
        let (next, ends_here) = self.next(row, self.class(code_point));
        (next, ends_here, len)
    }
}

/// All sets of a tree.
fn collect_sets<'a>(node: &'a Tree, sets: &mut Vec<&'a Set>) {
    match node {
        Tree::One(set) | Tree::Ahead(set) | Tree::NotAhead(set) => {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        Tree::Sequence(nodes) | Tree::Alternatives(nodes) => nodes.iter().for_each(|node| collect_sets(node, sets)),
        Tree::Repeat(inner, ..) => collect_sets(inner, sets),
    }
}

/// A state of Thompson's machine.
#[derive(Debug)]
enum State {
    /// Takes a symbol of one of these classes.
    One(ClassSet, usize),
    /// Continues without taking the next symbol if it is in one of these classes.
    Look(ClassSet, usize),
    /// Continues with either state, preferring the first.
    Split(usize, usize),
    Match,
}

/// Thompson's construction from the end backwards: every node is compiled with the state that follows it.
struct Program<'a> {
    sets: &'a [&'a Set],
    class_sets: &'a [ClassSet],
    end: u8,
    states: Vec<State>,
}

impl Program<'_> {
    fn push(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    fn classes_of(&self, set: &Set) -> ClassSet {
        let at = self.sets.iter().position(|known| *known == set);
        at.and_then(|at| self.class_sets.get(at)).copied().unwrap_or_default()
    }

    fn compile(&mut self, node: &Tree, next: usize) -> usize {
        match node {
            Tree::One(set) => self.push(State::One(self.classes_of(set), next)),
            Tree::Ahead(set) => self.push(State::Look(self.classes_of(set), next)),
            Tree::NotAhead(set) => {
                let refused = self.classes_of(set);
                let classes = (0..=self.end).filter(|&class| !refused.contains(class)).collect();
                self.push(State::Look(classes, next))
            }
            Tree::Sequence(nodes) => nodes.iter().rev().fold(next, |next, node| self.compile(node, next)),
            Tree::Alternatives(nodes) => {
                let entries: Vec<usize> = nodes.iter().map(|node| self.compile(node, next)).collect();
                let either = entries.into_iter().rev().reduce(|later, entry| self.push(State::Split(entry, later)));
                either.unwrap_or(next)
            }
            Tree::Repeat(inner, min, max) => {
                let mut next = next;
                match max {
                    Some(max) => {
                        let after = next;
                        for _ in *min..*max {
                            let body = self.compile(inner, next);
                            next = self.push(State::Split(body, after));
                        }
                    }
                    None => {
                        let repeat = self.push(State::Split(0, next));
                        let body = self.compile(inner, repeat);
                        self.states[repeat] = State::Split(body, next);
                        next = repeat;
                    }
                }
                (0..*min).fold(next, |next, _| self.compile(inner, next))
            }
        }
    }
}

/// The subset construction over ordered lists of states.
fn determinize(states: &[State], start: usize, stride: usize) -> Vec<u32> {
    let mut numbers: HashMap<Vec<usize>, u32> = HashMap::from([(Vec::new(), DEAD as u32), (vec![start], START as u32)]);
    let mut lists = vec![Vec::new(), vec![start]];
    let mut table = vec![0; stride];
    let mut at = START;
    while at < lists.len() {
        for class in 0..stride as u8 {
            let (list, ends_here) = step(states, &lists[at], class);
            let next = lists.len() as u32;
            let number = *numbers.entry(list).or_insert_with_key(|list| {
                lists.push(list.clone());
                next
            });
            table.push((number * stride as u32) << 1 | u32::from(ends_here));
        }
        at += 1;
    }
    table
}

/// Takes one symbol. Returns the states after it, and whether a match ends before it. States of lower priority than the
/// match are dropped.
fn step(states: &[State], list: &[usize], class: u8) -> (Vec<usize>, bool) {
    let mut seen = vec![false; states.len()];
    let mut after = Vec::new();
    let mut pending: Vec<usize> = list.iter().rev().copied().collect();
    while let Some(at) = pending.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        match states[at] {
            State::One(classes, next) if classes.contains(class) && !after.contains(&next) => after.push(next),
            State::Look(classes, next) if classes.contains(class) => pending.push(next),
            State::Split(first, second) => pending.extend([second, first]),
            State::Match => return (after, true),
            State::One(..) | State::Look(..) => {}
        }
    }
    (after, false)
}
