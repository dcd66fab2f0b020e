//! The builder's keys in order: an array of key heads, each the first bytes of a key as an integer.
//!
//! Most keys of a natural vocabulary are no longer than [`HEAD_LEN`] bytes, so sorting and building read one array from
//! front to back and rarely follow a pointer.
//!
//! Complexity: O(n log n) comparisons of integers for n keys, and of whole keys among those with equal heads. Space: 40
//! bytes per key.

use super::{Node, TrieError};
use crate::work::interrupt;
use crate::work::memory::{push, with_capacity};

/// The bytes of a key in its head.
const HEAD_LEN: usize = 15;

/// A key and its value, in the order of the keys.
#[derive(Clone, Copy)]
pub(super) struct SortedKey<'a> {
    /// The first [`HEAD_LEN`] bytes in big-endian order, padded with zeros, and a last byte with the length, or
    /// [`HEAD_LEN`] plus one for a longer key: heads compare as keys do. Two halves, for the sake of alignment.
    head: [u64; 2],
    key: &'a [u8],
    pub(super) value: u32,
    /// The index of the pair, which says which of equal keys is the last.
    index: u32,
}

/// All pairs sorted by key, equal keys in the order given.
pub(super) fn sort<'a>(pairs: impl Iterator<Item = (&'a [u8], u32)>) -> Result<Vec<SortedKey<'a>>, TrieError> {
    let mut keys = with_capacity(pairs.size_hint().0);
    for (key, value) in interrupt::ticking(pairs) {
        if value >= Node::NO_VALUE {
            return Err(TrieError::Value(value));
        }
        let index = u32::try_from(keys.len()).map_err(|_| TrieError::TooLarge)?;
        push(&mut keys, SortedKey { head: head(key), key, value, index });
    }
    interrupt::sort_unstable_by(&mut keys, |a, b| a.head().cmp(&b.head()));
    for alike in keys.chunk_by_mut(|a, b| a.head == b.head).filter(|alike| alike.len() > 1) {
        alike.sort_unstable_by_key(|key| (key.key, key.index));
    }
    Ok(keys)
}

fn head(key: &[u8]) -> [u64; 2] {
    let mut bytes = [0; HEAD_LEN + 1];
    match key.first_chunk() {
        Some(start) => bytes = *start,
        None => bytes[..key.len()].copy_from_slice(key),
    }
    bytes[HEAD_LEN] = key.len().min(HEAD_LEN + 1) as u8;
    let head = u128::from_be_bytes(bytes);
    [(head >> 64) as u64, head as u64]
}

impl SortedKey<'_> {
    fn head(&self) -> u128 {
        u128::from(self.head[0]) << 64 | u128::from(self.head[1])
    }

    /// The key; a short one is copied into `buffer`.
    pub(super) fn bytes<'b>(&'b self, buffer: &'b mut [u8; HEAD_LEN + 1]) -> &'b [u8] {
        if self.key.len() > HEAD_LEN {
            return self.key;
        }
        *buffer = self.head().to_be_bytes();
        &buffer[..self.key.len()]
    }

    /// The length of the prefix that both keys share.
    pub(super) fn common_prefix_len(&self, other: &Self) -> usize {
        let common = (self.head() ^ other.head()).leading_zeros() as usize / 8;
        if common < HEAD_LEN {
            // The padding may be equal too.
            return common.min(self.key.len()).min(other.key.len());
        }
        self.key.iter().zip(other.key).take_while(|(a, b)| a == b).count()
    }
}
