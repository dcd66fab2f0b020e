//! Stop strings: searches for several strings in a text that arrives part by part, and holds back only what may still
//! become one of them.
//!
//! An Aho-Corasick automaton over bytes. Its state stands for the longest end of the text that begins a stop string,
//! which is held back.
//!
//! The match that starts first wins, and among those the one that ends first. A complete match is reported once no
//! earlier one can still be completed: with `abcd` and `bc`, after `abc` only if no `d` follows.
//!
//! Source: Aho and Corasick 1975. Time: O(length of the strings) to build, amortized O(1) per byte to search. Space:
//! about 20 bytes per byte of the strings.

use std::collections::VecDeque;

use crate::error::{OutOfMemory, errors};
use crate::lookup::trie::backward::{Backward, ROOT};
use crate::work::memory::{self, push, push_back};

errors! {
    /// Why stop strings cannot be searched for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum StopStringsError {
        /// A stop string is empty: it would match everywhere.
        Empty {
            /// Its position among the stop strings.
            index: usize,
        } => "stop string {index} is empty";
        /// Together they have more bytes than the automaton can number.
        TooLarge => "the stop strings are too long";
        /// There is not enough memory for the automaton.
        OutOfMemory => "{OutOfMemory}";
    }
}

/// Strings that end a text, prepared for the search.
#[derive(Debug, Default)]
pub struct StopStrings(Backward);

impl StopStrings {
    /// Prepares the search for `strings`.
    ///
    /// # Errors
    /// - [`StopStringsError::Empty`]: a string is empty.
    /// - [`StopStringsError::TooLarge`]: they have more than about 100 MB.
    /// - [`StopStringsError::OutOfMemory`].
    pub fn new<S: AsRef<[u8]>>(strings: impl IntoIterator<Item = S>) -> Result<Self, StopStringsError> {
        let strings: Vec<S> = strings.into_iter().collect();
        if let Some(index) = strings.iter().position(|string| string.as_ref().is_empty()) {
            return Err(StopStringsError::Empty { index });
        }
        // Of equal strings, the first one wins here, and the last one in a trie.
        let keys = strings.iter().enumerate().rev().map(|(index, string)| (string.as_ref(), index as u32));
        let automaton = memory::catch(|| Backward::of_reversed(keys)).map_err(|_| StopStringsError::OutOfMemory)?;
        automaton.map(Self).map_err(|_| StopStringsError::TooLarge)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A search in one text.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    state: u32,
    /// The state's text.
    held: VecDeque<u8>,
    /// The first stop string that is complete, and where it starts in `held`.
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
    pub(super) fn push(&mut self, StopStrings(strings): &StopStrings, text: &[u8], out: &mut Vec<u8>) {
        for &byte in text {
            if self.stopped.is_some() {
                return;
            }
            self.state = strings.step(self.state, byte);
            if self.state == ROOT && self.held.is_empty() {
                push(out, byte);
                continue;
            }
            push_back(&mut self.held, byte);
            if let Some((len, stop)) = strings.keys(self.state).next() {
                let start = self.held.len() - len;
                if self.found.is_none_or(|(found, _)| start < found) {
                    self.found = Some((start, stop));
                }
            }
            self.release(self.held.len() - strings.len(self.state), out);
        }
    }

    /// Releases what cannot become a stop string given that the text continues with one of `nexts`, whole or in part.
    pub(super) fn expect(&mut self, StopStrings(strings): &StopStrings, nexts: [&[u8]; 2], out: &mut Vec<u8>) {
        if self.stopped.is_some() {
            return;
        }
        let len_with = |next: &[u8]| {
            let state = next.iter().fold(self.state, |state, &byte| strings.step(state, byte));
            strings.len(state).saturating_sub(next.len())
        };
        let len = nexts.map(len_with).into_iter().max().unwrap_or(0);
        while strings.len(self.state) > len {
            self.state = strings.fallback(self.state);
        }
        self.release(self.held.len() - len, out);
    }

    /// Appends this many bytes, which no longer begin a stop string, but only those before the match if it starts among
    /// them: then the text ends.
    #[inline(always)]
    fn release(&mut self, count: usize, out: &mut Vec<u8>) {
        let mut end = count;
        if let Some((start, stop)) = &mut self.found {
            if *start <= count {
                (end, self.stopped) = (*start, Some(*stop));
            } else {
                *start -= count;
            }
        }
        for _ in 0..end {
            push(out, self.held.pop_front().unwrap_or_default());
        }
    }

    /// Ends the text and appends what was held back.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        if self.stopped.is_none() {
            self.release(self.held.len(), out);
        }
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
            let mut search = Search::default();
            let mut out = Vec::new();
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
            search.flush(&mut out);
            let (end, index) = naive(&strings, &text).unzip();
            prop_assert_eq!(&out[..], &text.as_bytes()[..end.unwrap_or(text.len())]);
            prop_assert_eq!(search.stopped(), index);
        }
    }

    #[test]
    fn a_long_string_that_almost_occurs_costs_no_more_than_the_text() {
        let stops = StopStrings::new([format!("{}b", "a".repeat(10_000))]).expect("not empty");
        let mut search = Search::default();
        let mut out = Vec::new();
        for _ in 0..1_000_000 {
            search.push(&stops, b"a", &mut out);
        }
        assert_eq!(out.len(), 990_000);
        search.push(&stops, b"b", &mut out);
        assert_eq!((out.len(), search.stopped()), (990_000, Some(0)));
    }
}
