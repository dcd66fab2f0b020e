//! A seeded hash of byte strings: 128-bit products with their halves folded, as in wyhash.
//!
//! It takes a handful of instructions for strings as short as tokens. The seed is drawn once per process, so no file
//! can be crafted to make its tokens collide. No result of ggtok depends on it.
//!
//! Source: wyhash (Wang Yi, 2019). Complexity: linear in the length.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Spreads a small number over all bits: 2⁶⁴ divided by the golden ratio.
pub(crate) const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

static SEED: LazyLock<Seed> = LazyLock::new(|| {
    let state = RandomState::new();
    // Odd, so that no multiplication by it loses bits.
    Seed(state.hash_one(1_u8) | 1, state.hash_one(2_u8) | 1)
});

/// The two random words that every hash of this process uses.
#[derive(Debug, Clone, Copy)]
pub struct Seed(u64, u64);

impl Default for Seed {
    fn default() -> Self {
        *SEED
    }
}

impl Seed {
    /// Hashes `bytes`.
    #[inline]
    pub fn hash(self, bytes: &[u8]) -> u64 {
        match packed(bytes) {
            Some((low, high)) => self.hash_words(low, high),
            None => self.hash_long(bytes),
        }
    }

    #[inline(never)]
    fn hash_long(self, bytes: &[u8]) -> u64 {
        let mut state = self.0 ^ (bytes.len() as u64).wrapping_mul(SPREAD);
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            state = self.mix(state, *block);
        }
        // The last block overlaps the one before it; the first state depends on the length.
        let last = if rest.is_empty() { None } else { bytes.last_chunk::<16>() };
        let state = last.map_or(state, |last| self.mix(state, *last));
        // With one product, strings that differ only in their last digits would cluster in its low bits.
        fold(state, SPREAD)
    }

    /// Adds a block to the state of a hash.
    #[inline(always)]
    fn mix(self, state: u64, block: [u8; 16]) -> u64 {
        let block = u128::from_le_bytes(block);
        fold(state ^ block as u64, self.1 ^ (block >> 64) as u64)
    }

    /// Hashes two words.
    #[inline(always)]
    pub(crate) fn hash_words(self, low: u64, high: u64) -> u64 {
        fold(low ^ self.0, high ^ self.1)
    }

    /// Hashes a pair of symbols.
    #[inline]
    pub(crate) fn hash_pair(self, left: u32, right: u32) -> u64 {
        fold((u64::from(left) << 32 | u64::from(right)) ^ self.0, self.1)
    }
}

/// The longest string that [`packed`] takes: one of the 16 bytes holds the length.
pub(crate) const MAX_PACKED: usize = 15;

/// Up to 15 bytes as two numbers: the bytes, zeros, and the length in the last byte. Two overlapping reads, one from
/// either end, get the bytes.
#[inline]
pub(crate) fn packed(bytes: &[u8]) -> Option<(u64, u64)> {
    let len = bytes.len();
    let (low, high) = if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        if len > MAX_PACKED {
            return None;
        }
        let above = if len == 8 { 0 } else { u64::from_le_bytes(*last) >> (8 * (16 - len)) };
        (u64::from_le_bytes(*first), above)
    } else if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let [first, last] = [first, last].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        (first | last << (8 * (len - 4)), 0)
    } else {
        (bytes.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte)), 0)
    };
    Some((low, high | (len as u64) << 56))
}

#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::Seed;
    use std::collections::HashSet;

    #[test]
    fn similar_strings_have_different_hashes() {
        let seed = Seed::default();
        let mut seen = HashSet::new();
        for len in 0..40 {
            for position in 0..len {
                for byte in [1_u8, 2, 128, 255] {
                    let mut text = vec![0; len];
                    text[position] = byte;
                    assert!(seen.insert(seed.hash(&text)), "length {len}, position {position}, byte {byte}");
                }
            }
            assert!(seen.insert(seed.hash(&vec![0; len])));
        }
    }
}
