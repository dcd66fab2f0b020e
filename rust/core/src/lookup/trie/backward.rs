//! Finds the keys that start at each position of a text, in linear time: an Aho-Corasick automaton over reversed keys,
//! which reads the text from its end to its start.
//!
//! A walk through a trie from each position takes O(n m) steps for n bytes and keys of m bytes: with the key `aaa…b`, a
//! run of `a` walks most of the key from every position. Here the state at a position is the longest start of the text
//! there that ends a key, and its links lead to the keys that start there, longest first. [`Starts`] gives the states
//! in the order of the text, for as many bytes at once as the longest key has.
//!
//! It takes more memory than a trie. Where only the longest key matters, a walk is faster as long as keys are short:
//! then it is made only if a key is longer than [`SHORT`], and used only for texts that are.
//!
//! Source: Aho and Corasick 1975. Time: O(total length of the keys) to build; O(n + matches) for n bytes of text, and
//! O(n) if only the longest key at each position is asked for. Space: 20 bytes per byte of the keys, and 4 per byte of
//! the longest key for a search.

use super::{DoubleArray, Node, TrieError};
use crate::work::interrupt::{self, Ticker};
use crate::work::memory::{extend, fill, filled, push};

/// Keys of up to this many bytes are short: at most this many steps per byte of text.
pub(crate) const SHORT: usize = 256;

/// The least number of positions for which [`Starts`] finds the states at once.
const PLACES_AT_ONCE: usize = 1 << 12;

/// The state at the end of a text.
pub(crate) const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;

/// The keys of a trie, reversed, with the links between them.
#[derive(Debug)]
pub(crate) struct Backward {
    keys: DoubleArray,
    /// By the slot of a node, which is the number of its state.
    links: Vec<Link>,
    /// The length of the longest key in bytes.
    max_len: usize,
}

/// What is known about the text of a state.
#[derive(Debug, Clone, Copy, Default)]
struct Link {
    /// The state of the longest other text that starts it.
    fallback: u32,
    /// Its length in bytes.
    len: u32,
    /// The longest key that starts it, as a state; [`ROOT`] if there is none.
    key: u32,
}

impl Default for Backward {
    /// The automaton of no keys.
    fn default() -> Self {
        Self { keys: DoubleArray::default(), links: vec![Link::default()], max_len: 0 }
    }
}

heap_bytes!(Backward: keys, links; Link);

impl Backward {
    /// The automaton for `keys`, of which none is empty; `None` if all are short. Of equal keys, the last one wins.
    ///
    /// # Errors
    /// As [`DoubleArray::build`].
    pub(crate) fn of_long<'a>(keys: impl Iterator<Item = (&'a [u8], u32)> + Clone) -> Result<Option<Self>, TrieError> {
        keys.clone().any(|(key, _)| key.len() > SHORT).then(|| Self::new(keys)).transpose()
    }

    /// The automaton for `keys`, as [`Backward::of_long`], whatever their lengths.
    ///
    /// # Errors
    /// As [`DoubleArray::build`].
    pub(crate) fn new<'a>(keys: impl Iterator<Item = (&'a [u8], u32)>) -> Result<Self, TrieError> {
        let (mut reversed, mut ends) = (Vec::new(), Vec::new());
        for (key, value) in keys {
            extend(&mut reversed, key.iter().rev().copied());
            push(&mut ends, (reversed.len(), value));
        }
        let starts = [0].into_iter().chain(ends.iter().map(|&(end, _)| end));
        Self::of_reversed(starts.zip(&ends).map(|(start, &(end, value))| (&reversed[start..end], value)))
    }

    /// The automaton for keys that are reversed. So it reads a text forwards, and finds the keys that end at a place, if
    /// they are not reversed.
    ///
    /// # Errors
    /// As [`DoubleArray::build`].
    pub(crate) fn of_reversed<'a>(keys: impl Iterator<Item = (&'a [u8], u32)> + Clone) -> Result<Self, TrieError> {
        let max_len = keys.clone().map(|(key, _)| key.len()).max().unwrap_or(0);
        let keys = DoubleArray::build(keys)?;
        let links = filled(keys.nodes.len(), Link::default());
        let mut automaton = Self { keys, links, max_len };
        automaton.link();
        Ok(automaton)
    }

    /// Sets the links, shortest texts first.
    fn link(&mut self) {
        // Linked lists of children: the first one, by the base of its parent, and each child's next.
        let num_slots = self.links.len();
        let mut first_child = filled(num_slots, NONE);
        let mut next_child = filled(num_slots, NONE);
        for (slot, node) in self.keys.nodes.iter().enumerate().filter(|(_, node)| node.label() != Node::NO_LABEL) {
            next_child[slot] = std::mem::replace(&mut first_child[slot ^ node.label() as usize], slot as u32);
        }

        let mut queue = vec![ROOT];
        let mut next = 0;
        let mut ticker = Ticker::default();
        while let Some(&parent) = queue.get(next) {
            next += 1;
            ticker.tick();
            let Link { fallback, len, .. } = self.links[parent as usize];
            let mut child = first_child[self.keys.nodes[parent as usize].base()];
            while child != NONE {
                let node = self.keys.nodes[child as usize];
                let fallback = if parent == ROOT { ROOT } else { self.step(fallback, node.label() as u8) };
                let is_key = self.keys.value(node).is_some();
                let key = if is_key { child } else { self.links[fallback as usize].key };
                self.links[child as usize] = Link { fallback, len: len + 1, key };
                push(&mut queue, child);
                child = next_child[child as usize];
            }
        }
    }

    /// The state at the position before the one with `state`, where the text has this byte.
    #[inline]
    pub(crate) fn step(&self, mut state: u32, byte: u8) -> u32 {
        loop {
            count_steps!(1);
            let child = self.keys.nodes[state as usize].base() ^ usize::from(byte);
            if self.keys.nodes.get(child).is_some_and(|node| node.label() == u64::from(byte)) {
                return child as u32;
            }
            if state == ROOT {
                return ROOT;
            }
            state = self.links[state as usize].fallback;
        }
    }

    /// Length and value of the keys at a position, longest first.
    #[inline]
    pub(crate) fn keys(&self, state: u32) -> impl Iterator<Item = (usize, u32)> {
        let mut link = self.links[state as usize];
        std::iter::from_fn(move || {
            let key = link.key as usize;
            let value = self.keys.value(self.keys.nodes[key])?;
            let len = self.links[key].len as usize;
            link = self.links[self.links[key].fallback as usize];
            Some((len, value))
        })
    }

    /// The length of a state's text in bytes.
    pub(crate) fn len(&self, state: u32) -> usize {
        self.links[state as usize].len as usize
    }

    /// The state of the longest other text that starts a state's text.
    pub(crate) fn fallback(&self, state: u32) -> u32 {
        self.links[state as usize].fallback
    }

    /// Whether there are no keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys in a text, to be read from its start.
    pub(crate) fn starts<'a>(&'a self, text: &'a [u8]) -> Starts<'a> {
        Starts { keys: self, text, first: 0, states: Vec::new() }
    }
}

/// The keys that start at the positions of a text.
pub(crate) struct Starts<'a> {
    keys: &'a Backward,
    text: &'a [u8],
    /// The states at the positions from this one on.
    first: usize,
    states: Vec<u32>,
}

impl Starts<'_> {
    /// Length and value of the keys at `at`, longest first. Fast if positions ascend.
    #[inline]
    pub(crate) fn keys(&mut self, at: usize) -> impl Iterator<Item = (usize, u32)> {
        if at.wrapping_sub(self.first) >= self.states.len() {
            self.read(at);
        }
        self.keys.keys(self.states[at - self.first])
    }

    /// Length and value of the longest key at `at`.
    #[inline]
    pub(crate) fn longest(&mut self, at: usize) -> Option<(usize, u32)> {
        self.keys(at).next()
    }

    /// Whether more text could make a key at `at` that is not there yet, judged by the length of the longest key.
    pub(crate) fn may_continue(&self, at: usize) -> bool {
        self.text.len() - at <= self.keys.max_len
    }

    /// Finds the states from `at` on.
    #[cold]
    fn read(&mut self, at: usize) {
        let len = self.keys.max_len.max(PLACES_AT_ONCE).min(self.text.len() - at);
        // No key that starts before `at + len` reaches further.
        let end = self.text.len().min(at + len + self.keys.max_len);
        fill(&mut self.states, len, ROOT);
        self.states.truncate(len);
        self.first = at;
        let mut state = ROOT;
        for (place, &byte) in interrupt::ticking(self.text[at..end].iter().enumerate().rev()) {
            state = self.keys.step(state, byte);
            if let Some(found) = self.states.get_mut(place) {
                *found = state;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Backward, DoubleArray};
    use crate::work::heap::HeapBytes;
    use crate::work::steps;

    proptest! {
        #[test]
        fn keys_are_those_that_walks_find(
            keys in prop::collection::vec("[ab]{1,6}|a{0,40}b|é{1,3}", 0..12),
            text in "[ab]{0,40}(a{0,400}|é)b?[abé]{0,9}",
        ) {
            let pairs = || keys.iter().map(String::as_bytes).zip(0..);
            let trie = DoubleArray::build(pairs()).expect("few keys");
            prop_assert!(Backward::of_long(pairs()).expect("few keys").is_none());
            let backward = Backward::new(pairs()).expect("few keys");
            let mut state = super::ROOT;
            for at in (0..text.len()).rev() {
                state = backward.step(state, text.as_bytes()[at]);
                let mut found: Vec<(usize, u32)> = backward.keys(state).collect();
                found.reverse();
                let expected: Vec<(usize, u32)> = trie.common_prefix_matches(&text.as_bytes()[at..]).collect();
                prop_assert_eq!(found, expected);
            }
            let mut starts = backward.starts(text.as_bytes());
            for at in (0..text.len()).step_by(1 + text.len() % 3) {
                prop_assert_eq!(starts.longest(at), trie.longest_match(&text.as_bytes()[at..]));
            }
        }
    }

    #[test]
    fn a_text_costs_a_few_steps_per_byte_whatever_the_keys() {
        let long = "a".repeat(100_000);
        let keys = [format!("{long}b"), "a".into(), format!("c{long}")];
        let backward = Backward::of_long(keys.iter().map(String::as_bytes).zip(0..)).expect("few keys");
        let backward = backward.expect("a long key");
        assert!(backward.heap_bytes() < 30 * 200_000 && backward.max_len == 100_001);
        for text in [long.repeat(3), format!("{long}c{long}").repeat(2), "a".into()] {
            let steps = steps::of(|| {
                let mut starts = backward.starts(text.as_bytes());
                assert!(
                    (0..text.len()).filter_map(|at| starts.longest(at)).all(|(len, value)| (len > 1) == (value != 1))
                );
            });
            assert!(steps <= 5 * text.len(), "{steps} steps");
        }
    }
}
