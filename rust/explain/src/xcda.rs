//! The XCDA of a character map: a trie of the texts that a Unigram vocabulary replaces, in an array of 32-bit units.
//!
//! A walk starts with BASE of the root, unit 0. For each byte, the child is at BASE XOR the byte, and exists if its
//! LCHECK is the byte. If LEAF is set, a key ends, and the unit at this node's BASE has the position of the
//! replacement. The longest key wins.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_ugm_session::normalize_prefix` and `xcda_array_view`; the
//! array is that of Kanda (2018), which builds on the double array of Aoe (1989).
//! Complexity: O(m) for a longest key of m bytes.

use ggtok_core::internals::Unit;

use super::Result;
use super::limit::Limit;
use super::trace::{XcdaHeader, XcdaStep};

/// An XCDA as bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Xcda<'a> {
    units: &'a [[u8; 4]],
    /// Texts, each with a zero byte at its end.
    replacements: &'a [u8],
}

impl<'a> Xcda<'a> {
    /// Reads a character map: the length of its array in bytes, the array, the replacements.
    pub(super) fn new(charsmap: &'a [u8]) -> Option<Self> {
        let (len, rest) = charsmap.split_first_chunk()?;
        let (array, replacements) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        Some(Self::of_units(array.as_chunks().0, replacements))
    }

    pub(super) fn of_units(units: &'a [[u8; 4]], replacements: &'a [u8]) -> Self {
        Self { units, replacements }
    }

    pub(super) fn header(&self) -> XcdaHeader {
        let root_base = self.unit(0).map_or(0, |root| root.base() as u32);
        XcdaHeader { num_units: self.units.len(), root_base, replacements_len: self.replacements.len() }
    }

    fn unit(&self, node: usize) -> Option<Unit> {
        self.units.get(node).map(|unit| Unit(u32::from_le_bytes(*unit)))
    }

    /// The replacement with this value.
    pub(super) fn replacement(&self, value: usize) -> &'a [u8] {
        let rest = self.replacements.get(value..).unwrap_or_default();
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    /// Walks along a text as long as keys continue. Appends the steps, and returns the length and the value of the
    /// longest key.
    pub(super) fn walk(
        &self,
        text: &[u8],
        steps: &mut Vec<XcdaStep>,
        limit: &mut Limit,
    ) -> Result<Option<(usize, usize)>> {
        let mut longest = None;
        let Some(root) = self.unit(0) else { return Ok(None) };
        let mut node = root.base();
        // No key has a zero byte.
        for (&byte, len) in text.iter().take_while(|byte| **byte != 0).zip(1..) {
            limit.step(0)?;
            node ^= usize::from(byte);
            let found = self.unit(node);
            let unit = found.unwrap_or(Unit(0));
            let matched = unit.label() == u32::from(byte);
            let is_node = unit.label() <= u32::from(u8::MAX);
            let value = self.unit(node ^ unit.base()).filter(|_| matched && unit.is_leaf()).map(Unit::value);
            steps.push(XcdaStep {
                byte,
                node,
                unit: found.map(|unit| unit.0),
                base: if is_node { unit.base() as u32 } else { 0 },
                lcheck: unit.label(),
                leaf: is_node && unit.is_leaf(),
                value: value.map(|value| value as u32),
                matched,
            });
            if !matched {
                break;
            }
            longest = value.map(|value| (len, value)).or(longest);
            node ^= unit.base();
        }
        Ok(longest)
    }
}
