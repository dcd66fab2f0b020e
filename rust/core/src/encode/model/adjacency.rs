//! Adjacency: the pairs of characters that are side by side in some token.
//!
//! Pairs of ASCII characters are exact: one bit each. All others are in a Bloom filter with one bit per pair: it finds
//! every pair that was added, and some others by accident.
//!
//! Time: O(1) per pair. Space: 2 KiB and the filter.

use crate::lookup::hash::SPREAD;
use crate::work::memory::{array, filled, push};

/// A character, as its code point or as its bytes with the first one lowest. ASCII is the same in both.
pub(crate) type Char = u32;

/// The numbers of two ASCII bytes are below this.
const ASCII_PAIRS: usize = 1 << 15;

/// For each ASCII character, a bit for each ASCII character after it.
pub(super) type AsciiPairs = [[u64; 2]; 128];

/// A set of pairs of characters. It has every pair that was added, and some others in which a character is not ASCII.
#[derive(Debug)]
pub(crate) struct CharPairs {
    pub(super) ascii: Box<AsciiPairs>,
    filter: Vec<u64>,
    /// 64 minus the number of bits of a position in the filter.
    shift: u32,
}

heap_bytes!(CharPairs: ascii, filter);

impl CharPairs {
    /// Whether a token may have `right` directly after `left`.
    #[inline(always)]
    pub(crate) fn meet(&self, left: Char, right: Char) -> bool {
        if left | right < 0x80 {
            return self.ascii_meet(left as u8, right as u8);
        }
        let at = place(left, right, self.shift);
        self.filter.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }

    #[inline(always)]
    pub(super) fn ascii_meet(&self, left: u8, right: u8) -> bool {
        self.ascii[usize::from(left) % 128][usize::from(right / 64) % 2] >> (right % 64) & 1 != 0
    }
}

#[inline(always)]
fn place(left: Char, right: Char, shift: u32) -> usize {
    // The high bits of the product depend on all bits of both characters.
    ((u64::from(left) << 32 | u64::from(right)).wrapping_mul(SPREAD) >> shift) as usize
}

/// Collects [`CharPairs`].
#[derive(Debug)]
pub(crate) struct CharPairsBuilder {
    /// Whether a pair of ASCII characters was added, by both bytes as a number, the first one lowest.
    ascii: Box<[bool; ASCII_PAIRS]>,
    others: Vec<(Char, Char)>,
}

impl CharPairsBuilder {
    /// No pairs.
    pub(crate) fn new() -> Self {
        Self { ascii: array(false), others: Vec::new() }
    }

    /// How many pairs were added in which a character is not ASCII.
    pub(super) fn num_others(&self) -> usize {
        self.others.len()
    }

    #[inline]
    pub(crate) fn add(&mut self, left: Char, right: Char) {
        if left | right < 0x80 {
            self.add_ascii(&[left as u8, right as u8]);
        } else {
            push(&mut self.others, (left, right));
        }
    }

    /// Adds the pairs of a text of ASCII.
    #[inline(always)]
    pub(super) fn add_ascii(&mut self, text: &[u8]) {
        for pair in text.windows(2) {
            self.ascii[usize::from(u16::from_le_bytes([pair[0], pair[1]])) % ASCII_PAIRS] = true;
        }
    }

    /// The pairs, with a filter of this many bits, a power of two, at least 64. A larger filter errs less often, but
    /// less of it fits in L2.
    pub(crate) fn finish(self, num_bits: usize) -> CharPairs {
        let is_added = |left: usize, right: usize| u64::from(self.ascii[right << 8 | left]);
        let bits = |left, first| (0..64).fold(0, |bits, at: usize| bits | is_added(left, first + at) << at);
        let ascii = Box::new(std::array::from_fn(|left| [bits(left, 0), bits(left, 64)]));
        let shift = u64::BITS - num_bits.trailing_zeros();
        let mut filter = filled(num_bits / 64, 0);
        for (left, right) in self.others {
            let at = place(left, right, shift);
            filter[at / 64] |= 1 << (at % 64);
        }
        CharPairs { ascii, filter, shift }
    }
}

#[cfg(test)]
mod tests {
    use super::CharPairsBuilder;

    #[test]
    fn every_pair_that_was_added_meets() {
        let chars = "aZ9 .\u{80}é中国𠀀".chars().map(u32::from).collect::<Vec<_>>();
        let pairs =
            || chars.iter().enumerate().flat_map(|(at, &left)| chars[at..].iter().map(move |&right| (left, right)));
        let mut builder = CharPairsBuilder::new();
        pairs().for_each(|(left, right)| builder.add(left, right));
        let found = builder.finish(64);
        assert!(pairs().all(|(left, right)| found.meet(left, right)));
        assert!(!found.meet('9'.into(), 'Z'.into()) && !found.meet('.'.into(), 'a'.into()));
    }
}
