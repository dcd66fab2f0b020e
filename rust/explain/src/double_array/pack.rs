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

/// A node whose children have no units yet.
struct Pending<'a> {
    index: usize,
    /// The remainders of the words that continue here, with their values.
    words: Vec<(&'a [u8], usize)>,
    text: &'a [u8],
}

/// Packs words. Of equal words the first one wins. Returns the units in use, and all as little-endian bytes.
pub(super) fn pack(words: &[&[u8]], limit: &mut Limit) -> Result<(PackedXcda, Vec<[u8; 4]>)> {
    let mut units = BTreeMap::from([(0, (Unit(0), Bytes::default()))]);
    let mut places = HashSet::new();
    let all = words.iter().copied().zip(0..).collect();
    let mut pending = VecDeque::from([Pending { index: 0, words: all, text: b"" }]);
    while let Some(Pending { index, words: rests, text }) = pending.pop_front() {
        // By byte; 0 for words that end here.
        let mut children: BTreeMap<u8, Vec<(&[u8], usize)>> = BTreeMap::new();
        for (rest, value) in rests {
            limit.step(0)?;
            let (label, rest) = rest.split_first().map_or((0, rest), |(&label, rest)| (label, rest));
            children.entry(label).or_default().push((rest, value));
        }
        let mut place = 1;
        let is_taken = |place: usize| {
            let mut labels = children.keys().map(|&label| place ^ usize::from(label));
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
        let leaf = u32::from(children.contains_key(&0)) << 8;
        if let Some((unit, _)) = units.get_mut(&index) {
            unit.0 |= base << 10 | leaf;
        }
        for (label, rests) in children {
            let cell = place ^ usize::from(label);
            let (first, value) = rests[0];
            if label == 0 {
                units.insert(cell, (Unit(1 << 31 | value as u32), Bytes::from(text)));
                continue;
            }
            let word = words[value];
            let text = &word[..word.len() - first.len()];
            limit.step(text.len())?;
            units.insert(cell, (Unit(label.into()), Bytes::from(text)));
            pending.push_back(Pending { index: cell, words: rests, text });
        }
    }

    let num_units = units.last_key_value().map_or(0, |(last, _)| last + 1).next_multiple_of(BLOCK);
    let mut array = vec![[0; 4]; num_units];
    for (&index, (unit, _)) in &units {
        array[index] = unit.0.to_le_bytes();
    }
    let units = units.into_iter().map(|(index, (unit, text))| packed(index, unit, text)).collect();
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
