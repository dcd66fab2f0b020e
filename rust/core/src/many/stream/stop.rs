//! Stop strings: searches for several strings in a text that arrives part by part, and holds back only what may still
//! become one of them.
//!
//! An Aho-Corasick automaton over bytes. Its state stands for the longest end of the text that begins a stop string,
//! which is held back. The state alone identifies these bytes, so they need not be stored.
//!
//! The match that starts first wins, and among those the one that ends first. A complete match is reported once no
//! earlier one can still be completed: with `abcd` and `bc`, after `abc` only if no `d` follows.
//!
//! Source: Aho and Corasick 1975. Time: O(length of the strings) to build, amortized O(1) per byte to search. Space:
//! about 30 bytes per byte of the strings.

use crate::work::memory::{append, push};

/// Marks the absence of a state or a stop string.
const NONE: u32 = u32::MAX;
/// The state in which no stop string has begun.
const ROOT: u32 = 0;

/// A stop string may not be empty: it would match everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptyStopString {
    /// Its position among the stop strings.
    pub index: usize,
}

impl std::fmt::Display for EmptyStopString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "stop string {} is empty", self.index)
    }
}

impl std::error::Error for EmptyStopString {}

/// One state: a start of a stop string.
#[derive(Debug)]
struct State {
    /// The last byte of its text.
    byte: u8,
    /// The first state that is one byte longer, and the next state that differs only in the last byte.
    child: u32,
    sibling: u32,
    /// The state of the longest proper suffix of its text.
    fallback: u32,
    /// The length of its text, and a stop string that starts with it.
    len: u32,
    string: u32,
    /// The longest stop string that is a suffix of its text, or [`NONE`].
    stop: u32,
}

/// Strings that end a text, prepared for the search.
#[derive(Debug)]
pub struct StopStrings {
    strings: Vec<Box<[u8]>>,
    states: Vec<State>,
    /// The states of one byte; [`ROOT`] if no string starts with it.
    first: Box<[u32; 256]>,
}

impl Default for StopStrings {
    /// No strings.
    fn default() -> Self {
        let root = State { byte: 0, child: NONE, sibling: NONE, fallback: ROOT, len: 0, string: NONE, stop: NONE };
        Self { strings: Vec::new(), states: vec![root], first: Box::new([ROOT; 256]) }
    }
}

impl StopStrings {
    /// Prepares the search for `strings`.
    ///
    /// # Errors
    /// [`EmptyStopString`]: a string is empty.
    pub fn new<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Result<Self, EmptyStopString> {
        let mut stops = Self::default();
        for (index, string) in strings.into_iter().enumerate() {
            let string = string.as_ref();
            if string.is_empty() {
                return Err(EmptyStopString { index });
            }
            stops.insert(string, index as u32);
            stops.strings.push(string.into());
        }
        stops.link();
        Ok(stops)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    fn insert(&mut self, string: &[u8], index: u32) {
        let mut state = ROOT;
        for (&byte, len) in string.iter().zip(1..) {
            state = self.child(state, byte).unwrap_or_else(|| {
                let new = self.states.len() as u32;
                let sibling = std::mem::replace(&mut self.states[state as usize].child, new);
                self.states.push(State { byte, child: NONE, sibling, fallback: ROOT, len, string: index, stop: NONE });
                if state == ROOT {
                    self.first[usize::from(byte)] = new;
                }
                new
            });
        }
        let stop = &mut self.states[state as usize].stop;
        *stop = index.min(*stop);
    }

    /// Sets the fallbacks and the stops that they lead to, shortest texts first.
    fn link(&mut self) {
        let mut queue = Vec::with_capacity(self.states.len());
        queue.push(ROOT);
        let mut next = 0;
        while let Some(&parent) = queue.get(next) {
            next += 1;
            let mut child = self.states[parent as usize].child;
            while child != NONE {
                let State { byte, sibling, stop, .. } = self.states[child as usize];
                let fallback = match parent {
                    ROOT => ROOT,
                    _ => self.step(self.states[parent as usize].fallback, byte),
                };
                let inherited = self.states[fallback as usize].stop;
                let state = &mut self.states[child as usize];
                state.fallback = fallback;
                if stop == NONE {
                    state.stop = inherited;
                }
                queue.push(child);
                child = sibling;
            }
        }
    }

    fn child(&self, state: u32, byte: u8) -> Option<u32> {
        if state == ROOT {
            let child = self.first[usize::from(byte)];
            return (child != ROOT).then_some(child);
        }
        let mut child = self.states[state as usize].child;
        while child != NONE {
            let State { byte: found, sibling, .. } = self.states[child as usize];
            if found == byte {
                return Some(child);
            }
            child = sibling;
        }
        None
    }

    /// The state after one more byte.
    #[inline]
    fn step(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            match self.child(state, byte) {
                Some(child) => return child,
                None if state == ROOT => return ROOT,
                None => state = self.states[state as usize].fallback,
            }
        }
    }

    /// The text of a state.
    fn text(&self, state: u32) -> &[u8] {
        let State { string, len, .. } = self.states[state as usize];
        self.strings.get(string as usize).map_or(&[], |string| &string[..len as usize])
    }

    fn len(&self, state: u32) -> usize {
        self.states[state as usize].len as usize
    }
}

/// A search in one text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Search {
    state: u32,
    /// The first stop string that is complete, and where it starts in the state's text.
    found: Option<(usize, u32)>,
    /// The stop string that ended the text.
    stopped: Option<u32>,
}

impl Search {
    /// The stop string that ended the text.
    #[inline]
    pub(super) fn stopped(&self) -> Option<usize> {
        self.stopped.map(|index| index as usize)
    }

    /// Takes more of the text and appends what is not part of a stop string.
    pub(super) fn push(&mut self, stops: &StopStrings, text: &[u8], out: &mut Vec<u8>) {
        if self.stopped.is_some() {
            return;
        }
        for byte in text {
            let old = self.state;
            self.state = stops.step(old, *byte);
            let (old_len, len) = (stops.len(old), stops.len(self.state));
            // The bytes of the old state's text, and this one, that no longer begin a stop string.
            let mut released = old_len + 1 - len;

            let stop = stops.states[self.state as usize].stop;
            if stop != NONE {
                let start = old_len + 1 - stops.strings[stop as usize].len();
                if self.found.is_none_or(|(found, _)| start < found) {
                    self.found = Some((start, stop));
                }
            }
            released = self.release(released);
            append(out, &stops.text(old)[..released.min(old_len)]);
            if released > old_len {
                push(out, *byte);
            }
            if self.stopped.is_some() {
                return;
            }
        }
    }

    /// Releases what cannot become a stop string given that the text continues with one of `nexts`, whole or in part.
    pub(super) fn expect(&mut self, stops: &StopStrings, nexts: [&[u8]; 2], out: &mut Vec<u8>) {
        if self.stopped.is_some() || self.state == ROOT {
            return;
        }
        let len_with = |next: &[u8]| {
            let state = next.iter().fold(self.state, |state, &byte| stops.step(state, byte));
            stops.len(state).saturating_sub(next.len())
        };
        let len = nexts.map(len_with).into_iter().max().unwrap_or(0);
        let old = self.state;
        while stops.len(self.state) > len {
            self.state = stops.states[self.state as usize].fallback;
        }

        let released = self.release(stops.len(old) - len);
        append(out, &stops.text(old)[..released]);
    }

    /// Records that this many bytes no longer begin a stop string. Returns how many of them are output: those before
    /// the match, if it starts among them.
    #[inline(always)]
    fn release(&mut self, released: usize) -> usize {
        match self.found {
            Some((start, stop)) if start <= released => {
                self.stopped = Some(stop);
                start
            }
            Some((start, stop)) => {
                self.found = Some((start - released, stop));
                released
            }
            None => released,
        }
    }

    /// Ends the text and appends what was held back.
    pub(super) fn flush(&mut self, stops: &StopStrings, out: &mut Vec<u8>) {
        if self.stopped.is_some() {
            return;
        }
        let held = stops.text(self.state);
        let end = self.found.map_or(held.len(), |(start, _)| start);
        append(out, &held[..end]);
        *self = Self { stopped: self.found.map(|(_, stop)| stop), ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Search, StopStrings};

    /// Where the first match starts, and the string: the shortest one, then the first one given.
    fn naive(strings: &[String], text: &str) -> Option<(usize, usize)> {
        let starts = strings.iter().enumerate().filter_map(|(index, string)| Some((text.find(string)?, string, index)));
        starts
            .min_by_key(|&(start, string, index)| (start, string.len(), index))
            .map(|(start, _, index)| (start, index))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn the_text_ends_before_the_first_stop_string(
            strings in prop::collection::vec("[ab]{1,5}|[abc]{1,3}", 0..5),
            text in "[ab]{0,14}|[abcd]{0,14}",
        ) {
            let stops = StopStrings::new(&strings).expect("no string is empty");
            let (mut search, mut out) = (Search::default(), Vec::new());
            for at in 0..text.len() {
                search.push(&stops, &text.as_bytes()[at..=at], &mut out);
                let so_far = &text[..=at];
                if search.stopped().is_none() {
                    // Only the longest end that begins a stop string is held back.
                    let held = (0..=so_far.len()).find(|&from| strings.iter().any(|s| s.starts_with(&so_far[from..])));
                    let held = held.unwrap_or(so_far.len());
                    prop_assert_eq!(&out[..], &so_far.as_bytes()[..held]);
                    // A complete match can wait only for one that starts earlier.
                    prop_assert!(naive(&strings, so_far).is_none_or(|(start, _)| start > held));
                }
            }
            search.flush(&stops, &mut out);
            let (end, index) = naive(&strings, &text).unzip();
            prop_assert_eq!(&out[..], &text.as_bytes()[..end.unwrap_or(text.len())]);
            prop_assert_eq!(search.stopped(), index);
        }
    }

    #[test]
    fn a_long_string_that_almost_occurs_costs_no_more_than_the_text() {
        let stops = StopStrings::new([format!("{}b", "a".repeat(10_000))]).expect("not empty");
        let (mut search, mut out) = (Search::default(), Vec::new());
        for _ in 0..1_000_000 {
            search.push(&stops, b"a", &mut out);
        }
        assert_eq!(out.len(), 990_000);
        search.push(&stops, b"b", &mut out);
        assert_eq!((out.len(), search.stopped()), (990_000, Some(0)));
    }
}
