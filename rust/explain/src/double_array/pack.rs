//! Packs words as an XCDA, the form of a Unigram vocabulary's character map.
//!
//! Each child of a node is at the node's cell XOR its BASE XOR the byte that leads to the child. If the first two give
//! a different position for every node, CHECK needs only that byte, LCHECK. A word's value is the child for the byte 0.
//!
//! Source: Kanda (2018); the bits are those that llama.cpp reads (`src/llama-vocab.cpp`, `xcda_array_view`).
//! Complexity: O(units · children) to find a position.

use std::collections::{BTreeMap, HashSet, VecDeque};

use ggtok_core::internals::Unit;

use super::super::bytes::Bytes;
use super::super::limit::{Limit, MAX_STEPS};
use super::super::{ExplainError, Result};
use super::{PackedUnit, PackedXcda};

/// The units of a block: the cells that differ only in the byte.
const BLOCK: usize = 256;

/// Packs words. Of equal words the first one wins. Returns the units in use, and all as little-endian bytes.
pub(super) fn pack(words: &[&[u8]], limit: &mut Limit) -> Result<(PackedXcda, Vec<[u8; 4]>)> {
    let mut values = BTreeMap::new();
    for (&word, value) in words.iter().zip(0..) {
        values.entry(word).or_insert(value);
    }
    let words = Vec::from_iter(values);
    let mut units = BTreeMap::from([(0, (Unit(0), &b""[..]))]);
    let mut places = HashSet::new();
    // The nodes whose children have no units yet, each with the words that continue there and the length of its text.
    let mut pending = VecDeque::from([(0, &words[..], 0)]);
    while let Some((index, words, len)) = pending.pop_front() {
        words.iter().try_for_each(|_| limit.step(0))?;
        // By byte; 0 for the word that ends here, which is the first one.
        let label = |word: &[u8]| word.get(len).copied().unwrap_or(0);
        let children = words.chunk_by(|(one, _), (other, _)| label(one) == label(other));
        let children = Vec::from_iter(children.map(|words| (label(words[0].0), words)));
        let mut place = 1;
        let is_taken = |place: usize| {
            let mut labels = children.iter().map(|(label, _)| place ^ usize::from(*label));
            places.contains(&place) || labels.any(|cell| units.contains_key(&cell))
        };
        while is_taken(place) {
            limit.step(0)?;
            place += 1;
        }
        places.insert(place);

        let base = u32::try_from(index ^ place)
            .ok()
            .filter(|base| base >> 21 == 0)
            .ok_or(ExplainError::TooManySteps { limit: MAX_STEPS })?;
        let leaf = u32::from(children.iter().any(|(label, _)| *label == 0)) << 8;
        if let Some((unit, _)) = units.get_mut(&index) {
            unit.0 |= base << 10 | leaf;
        }
        for (label, words) in children {
            let cell = place ^ usize::from(label);
            let (word, value) = words[0];
            if label == 0 {
                units.insert(cell, (Unit(1 << 31 | value), word));
                continue;
            }
            limit.step(len)?;
            units.insert(cell, (Unit(label.into()), &word[..=len]));
            pending.push_back((cell, words, len + 1));
        }
    }

    let num_units = units.last_key_value().map_or(0, |(last, _)| last + 1).next_multiple_of(BLOCK);
    let mut array = vec![[0; 4]; num_units];
    for (&index, (unit, _)) in &units {
        array[index] = unit.0.to_le_bytes();
    }
    let units = units.into_iter().map(|(index, (unit, text))| packed(index, unit, Bytes::from(text))).collect();
    Ok((PackedXcda { num_units, units }, array))
}

/// What the bits of a unit say.
fn packed(index: usize, unit: Unit, text: Bytes) -> PackedUnit {
    let is_value = unit.0 >> 31 != 0;
    let node = (!is_value).then_some(unit);
    PackedUnit {
        index,
        text,
        role: match index {
            _ if is_value => "value",
            0 => "root",
            _ => "node",
        },
        unit: unit.0,
        base: node.map(|unit| unit.base() as u32),
        is_wide: node.map(|unit| unit.0 >> 9 & 1 != 0),
        leaf: node.map(Unit::is_leaf),
        lcheck: node.map(Unit::label),
        value: is_value.then_some(unit.value() as u32),
    }
}
