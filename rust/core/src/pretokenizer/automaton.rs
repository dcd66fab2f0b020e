//! A pattern compiled into a deterministic automaton that finds what a backtracking matcher would.
//!
//! Thompson's construction gives states in order of priority; the subset construction keeps that order (as in Cox,
//! "Regular Expression Matching: the Virtual Machine Approach", and Rust's regex-automata), so the first alternative
//! that leads to a match wins, as in ECMAScript. A match is reported one symbol late, on the transition out of its
//! end, which is what makes looking one symbol ahead (`(?!\S)`, `$`) part of the table.
//!
//! Source: `std::regex` in ECMAScript mode as llama.cpp uses it (`src/unicode.cpp`, `unicode_regex_split_stl`).
//! Complexity: one table look-up per code point. Where an attempt runs far beyond its match, or to no match, the state
//! it stayed in is remembered, so that later attempts do not run there again: linear in the text for all patterns of
//! the table. `std::regex` recurses per character instead.
//!
//! Deviations: (1) no stack to overflow.

pub(super) mod alphabet;
pub(super) mod pattern;

use std::collections::HashMap;

use crate::unicode::utf8;
use alphabet::{ClassSet, Classes};
use pattern::{Node, PatternError, Set, is_collapsed, parse};

/// The state from which nothing matches any more.
const DEAD: usize = 0;
/// The state in which an attempt begins.
const START: usize = 1;
/// Runs of fewer bytes than this are not worth remembering.
const LONG_RUN: usize = 64;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct Automaton {
    classes: Classes,
    /// `table[row + class]`, where a state's row is its number times `stride`: the row of the next state, doubled, plus one
    /// where a match ends before this symbol.
    table: Vec<u32>,
    stride: usize,
    /// Whether a match may begin with this byte.
    begins: Box<[bool; 256]>,
}

/// What earlier attempts in the same stretch of text learnt: in the state with this row, from any byte of `from..=to`, no
/// match ends.
#[derive(Debug, Clone, Copy, Default)]
struct Barren {
    row: usize,
    from: usize,
    to: usize,
}

impl Automaton {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`PatternError`] where the pattern cannot be read.
    pub(crate) fn new(pattern: &str) -> Result<Self, PatternError> {
        let tree = parse(pattern)?;
        let mut sets = Vec::new();
        collect_sets(&tree, &mut sets);
        let (classes, class_sets) = Classes::new(&sets, is_collapsed(pattern));
        let mut program = Program { sets: &sets, class_sets: &class_sets, end: classes.end(), states: Vec::new() };
        let accept = program.push(State::Match);
        let start = program.compile(&tree, accept);
        let stride = usize::from(classes.end()) + 1;
        let table = determinize(&program.states, start, stride);
        let mut begins = Box::new([true; 256]);
        for byte in 0..0x80 {
            begins[usize::from(byte)] = table[START * stride + usize::from(classes.ascii(byte))] > 1;
        }
        Ok(Self { classes, table, stride, begins })
    }

    /// Calls `piece` with the byte range of every match in `text[begin..end]` and of every stretch between matches.
    ///
    /// `text` is canonical UTF-8 (see [`utf8`]) and the range lies on its boundaries.
    #[inline]
    pub(crate) fn split(&self, text: &[u8], begin: usize, end: usize, mut piece: impl FnMut(usize, usize)) {
        let mut barren = Barren::default();
        let (mut unmatched, mut at) = (begin, begin);
        while at < end {
            if !self.begins[usize::from(text[at])] {
                at += 1;
                continue;
            }
            match self.match_end(text, at, end, &mut barren) {
                Some(match_end) if match_end > at => {
                    if unmatched < at {
                        piece(unmatched, at);
                    }
                    piece(at, match_end);
                    (unmatched, at) = (match_end, match_end);
                }
                _ => at += utf8::sequence_len(text[at]),
            }
        }
        if unmatched < end {
            piece(unmatched, end);
        }
    }

    /// Where the piece that begins at `begin` ends: with a match, or else where the next one begins.
    pub(crate) fn piece_end(&self, text: &[u8], begin: usize, end: usize) -> usize {
        let (mut barren, mut at) = (Barren::default(), begin);
        while at < end {
            match self.match_end(text, at, end, &mut barren).filter(|&matched| matched > at) {
                Some(matched) => return if at == begin { matched } else { at },
                None => at += utf8::sequence_len(text[at]),
            }
        }
        end
    }

    /// Where the match that begins at `begin` ends.
    #[inline]
    fn match_end(&self, text: &[u8], begin: usize, end: usize, barren: &mut Barren) -> Option<usize> {
        let (mut row, mut at) = (START * self.stride, begin);
        let mut matched = None;
        // Most attempts are over before it is worth asking what was learnt.
        let near = &text[..end.min(begin + LONG_RUN)];
        while at < near.len() {
            let (next, ends_here, len) = self.step(near, text, row, at);
            matched = if ends_here { Some(at) } else { matched };
            if next == DEAD {
                return matched;
            }
            (row, at) = (next, at + len);
        }
        if at < end { self.far_end(text, at, end, row, matched, barren) } else { self.last(row, end, matched) }
    }

    /// The same, for an attempt that has come to `at`, far from where it began.
    #[inline(never)]
    fn far_end(
        &self,
        text: &[u8],
        mut at: usize,
        end: usize,
        mut row: usize,
        mut matched: Option<usize>,
        barren: &mut Barren,
    ) -> Option<usize> {
        // Since when the attempt has been in its state without a match.
        let mut since = at;
        while at < end {
            if since == at && row == barren.row && (barren.from..=barren.to).contains(&at) {
                return matched;
            }
            let (next, ends_here, len) = self.step(text, text, row, at);
            if ends_here {
                matched = Some(at);
            } else if next == DEAD {
                remember(barren, row, since, at);
            }
            if next == DEAD {
                return matched;
            }
            at += len;
            since = if ends_here || next != row { at } else { since };
            row = next;
        }
        let last = self.last(row, end, matched);
        if last != Some(end) {
            remember(barren, row, since, end);
        }
        last
    }

    /// Takes the character at `at`, which is in `near`, the beginning of `text`: the row of the next state, whether a match
    /// ends before this character, and its length.
    #[inline(always)]
    fn step(&self, near: &[u8], text: &[u8], row: usize, at: usize) -> (usize, bool, usize) {
        let (class, len) = match near[at] {
            byte @ 0..0x80 => (self.classes.ascii(byte), 1),
            _ => self.beyond_ascii(text, at),
        };
        let entry = self.table[row + usize::from(class)];
        ((entry >> 1) as usize, entry & 1 != 0, len)
    }

    #[inline(always)]
    fn beyond_ascii(&self, text: &[u8], at: usize) -> (u8, usize) {
        let (code_point, len) = utf8::decode_lossy(text, at);
        (self.classes.beyond_ascii(code_point), len)
    }

    /// Where the match ends of an attempt that has come to the end of the text.
    #[inline]
    fn last(&self, row: usize, end: usize, matched: Option<usize>) -> Option<usize> {
        let ends_here = self.table[row + usize::from(self.classes.end())] & 1 != 0;
        if ends_here { Some(end) } else { matched }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.table.capacity() * size_of::<u32>() + size_of_val(&*self.begins) + self.classes.heap_bytes()
    }
}

#[inline]
fn remember(barren: &mut Barren, row: usize, from: usize, to: usize) {
    if to - from >= LONG_RUN {
        *barren = Barren { row, from, to };
    }
}

/// All sets of a tree.
fn collect_sets<'a>(node: &'a Node, sets: &mut Vec<&'a Set>) {
    match node {
        Node::One(set) | Node::Ahead(set) | Node::NotAhead(set) => {
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        Node::End => {}
        Node::Sequence(parts) | Node::Alternatives(parts) => parts.iter().for_each(|part| collect_sets(part, sets)),
        Node::Repeat(inner, ..) => collect_sets(inner, sets),
    }
}

/// A state of Thompson's machine.
#[derive(Debug)]
enum State {
    /// Takes a symbol of one of these classes.
    One(ClassSet, usize),
    /// Goes on without taking the next symbol if that is of one of these classes.
    Look(ClassSet, usize),
    /// Goes on either way, the first by preference.
    Split(usize, usize),
    Match,
}

/// Thompson's construction, from the end backwards: every part is given the state that follows it.
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

    fn compile(&mut self, node: &Node, next: usize) -> usize {
        match node {
            Node::One(set) => {
                let classes = self.classes_of(set);
                self.push(State::One(classes, next))
            }
            Node::Ahead(set) => {
                let classes = self.classes_of(set);
                self.push(State::Look(classes, next))
            }
            Node::NotAhead(set) => {
                let (refused, mut classes) = (self.classes_of(set), ClassSet::default());
                (0..=self.end).filter(|&class| !refused.contains(class)).for_each(|class| classes.insert(class));
                self.push(State::Look(classes, next))
            }
            Node::End => {
                let mut classes = ClassSet::default();
                classes.insert(self.end);
                self.push(State::Look(classes, next))
            }
            Node::Sequence(parts) => parts.iter().rev().fold(next, |next, part| self.compile(part, next)),
            Node::Alternatives(parts) => {
                let entries: Vec<usize> = parts.iter().map(|part| self.compile(part, next)).collect();
                let either = entries.into_iter().rev().reduce(|later, entry| self.push(State::Split(entry, later)));
                either.unwrap_or(next)
            }
            Node::Repeat(inner, least, most) => {
                let mut next = next;
                match most {
                    Some(most) => {
                        let after = next;
                        for _ in *least..*most {
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
                (0..*least).fold(next, |next, _| self.compile(inner, next))
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

/// Takes one symbol: the states after it, and whether a match ends before it. States that come after the match in
/// order of priority are dropped.
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
