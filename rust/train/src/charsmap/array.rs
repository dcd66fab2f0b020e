//! Builds the compact double array of a character map, in which equal parts of the trie are stored once.
//!
//! 1. Keys are sorted, so between one and the next all nodes below their common prefix become complete. A complete
//!    node's *state*, which is its value and its children, is looked up among earlier ones, so equal states are shared.
//! 2. Each state gets its own place in the array: its child with a label is at the place XOR the label, its value at
//!    the place itself. The first place near the end that fits is taken.
//! 3. A unit holds its label, whether its state has a value, and its own index XOR the place of its state. That is
//!    relative, so that several units can share a state.
//!
//! Sharing is what makes maps small: the 11,172 Hangul syllables are spelled in more than 200,000 ways.
//!
//! Source: Daciuk et al., "Incremental construction of minimal acyclic finite-state automata" (2000); the units are
//! Darts-clone's, see [`Charsmap`](ggtok_core::internals::Charsmap).
//! Complexity: O(n) look-ups for n bytes of keys; O(m) tries of a place for each state with at most m tries.

use std::collections::HashMap;

use ggtok_core::internals::interrupt::{self, Ticker};

use super::RulesError;

/// Units in a block: the children of a state differ in their lowest eight bits.
const BLOCK: usize = 256;
/// How many blocks at the end of the array are searched for a place.
const OPEN_BLOCKS: usize = 16;
/// Marks a unit that is not a child: no label has this bit.
const FREE: u32 = 1 << 31;
/// How far, in units, the 21 bits of a distance reach.
const MAX_UNITS: usize = 1 << 21;

/// A node's value, and its labels with states.
type TrieState = (Option<u32>, Vec<(u8, u32)>);

/// The units for `keys`, which are sorted, not empty and without zero bytes, each with a value below 2³¹.
pub(super) fn build<'a>(keys: impl Iterator<Item = (&'a [u8], u32)>) -> Result<Vec<u32>, RulesError> {
    let (states, root) = minimize(keys);
    let mut array = ArrayBuilder::default();
    let mut places: Vec<Option<usize>> = vec![None; states.len()];
    array.add_block()?;
    // The root is unit 0, which is not a child. Its place must be another, or sentencepiece rejects the array.
    array.is_taken[0] = true;
    array.is_place[0] = true;
    let mut waiting = vec![root];
    let mut ticker = Ticker::default();
    while let Some(state) = waiting.pop() {
        ticker.tick();
        if places[state as usize].is_none() {
            let (value, children) = &states[state as usize];
            let place = array.place(value.is_some(), children)?;
            if let Some(value) = value {
                array.units[place] = FREE | value;
            }
            places[state as usize] = Some(place);
            waiting.extend(children.iter().rev().map(|&(_, child)| child));
        }
    }

    let mut link = |unit: usize, label: u8, state: u32| {
        let distance = unit ^ places[state as usize].unwrap_or_default();
        let has_value = u32::from(states[state as usize].0.is_some());
        array.units[unit] = (distance as u32) << 10 | has_value << 8 | u32::from(label);
    };
    link(0, 0, root);
    for ((_, children), place) in interrupt::ticking(states.iter().zip(&places)) {
        for &(label, child) in children {
            link(place.unwrap_or_default() ^ usize::from(label), label, child);
        }
    }
    Ok(array.units)
}

/// All distinct states, and the root's.
fn minimize<'a>(keys: impl Iterator<Item = (&'a [u8], u32)>) -> (Vec<TrieState>, u32) {
    let mut numbers: HashMap<TrieState, u32> = HashMap::new();
    // The nodes on the path of the last key, each with the label that leads to it.
    let mut path: Vec<(u8, TrieState)> = vec![(0, TrieState::default())];
    let mut close = |path: &mut Vec<(u8, TrieState)>, len: usize| {
        while path.len() > len
            && let Some((label, state)) = path.pop()
        {
            let next = numbers.len() as u32;
            let number = *numbers.entry(state).or_insert(next);
            if let Some((_, parent)) = path.last_mut() {
                parent.1.push((label, number));
            }
        }
    };
    for (key, value) in interrupt::ticking(keys) {
        let shared = path[1..].iter().zip(key).take_while(|((label, _), byte)| label == *byte).count();
        close(&mut path, shared + 1);
        path.extend(key[shared..].iter().map(|&byte| (byte, TrieState::default())));
        if let Some((_, state)) = path.last_mut() {
            state.0 = Some(value);
        }
    }
    close(&mut path, 0);
    // The root is completed last, and no other state equals it, because it is deeper.
    let root = numbers.len() as u32 - 1;
    let mut states = vec![TrieState::default(); numbers.len()];
    for (state, number) in interrupt::ticking(numbers) {
        states[number as usize] = state;
    }
    (states, root)
}

/// The array while it is being filled.
#[derive(Default)]
struct ArrayBuilder {
    units: Vec<u32>,
    /// Whether an index holds a child or a value.
    is_taken: Vec<bool>,
    /// Whether an index is the place of a state.
    is_place: Vec<bool>,
    /// The first block to search.
    first_open: usize,
}

impl ArrayBuilder {
    /// Takes the units of a state, including its value's if `has_value`.
    fn place(&mut self, has_value: bool, children: &[(u8, u32)]) -> Result<usize, RulesError> {
        let labels = || has_value.then_some(0).into_iter().chain(children.iter().map(|&(label, _)| usize::from(label)));
        loop {
            for place in self.first_open * BLOCK..self.units.len() {
                if !self.is_place[place] && labels().all(|label| !self.is_taken[place ^ label]) {
                    self.is_place[place] = true;
                    labels().for_each(|label| self.is_taken[place ^ label] = true);
                    return Ok(place);
                }
            }
            self.add_block()?;
        }
    }

    fn add_block(&mut self) -> Result<(), RulesError> {
        let len = self.units.len() + BLOCK;
        if len > MAX_UNITS {
            return Err(RulesError::TooLarge);
        }
        self.units.resize(len, FREE);
        self.is_taken.resize(len, false);
        self.is_place.resize(len, false);
        self.first_open = (len / BLOCK).saturating_sub(OPEN_BLOCKS);
        Ok(())
    }
}
