//! Which characters stand next to each other inside some token: where two do not, every segmentation has a cut.
//!
//! Pairs of ASCII characters are known exactly. All others share a Bloom filter with one bit per pair: where it says
//! that two characters never meet they do not, and the other way round it may err, which costs a cut but no exactness.
//!
//! Time: O(1) per question, O(n) to learn n bytes of tokens. Space: 130 KB, of which the questions of one script touch
//! a small part.

use crate::unicode::utf8;

/// Bits of the filter as a power of two. The 150,000 pairs of a vocabulary for a hundred languages set one bit in seven.
const FILTER_BITS: u32 = 20;
/// Bits of a word of the filter as a power of two.
const WORD_BITS: u32 = u64::BITS.trailing_zeros();

/// Pairs of characters inside tokens.
#[derive(Debug)]
pub(super) struct Joins {
    /// Bit `b` of entry `a`, in two halves: `b` follows `a`.
    ascii: Box<[[u64; 2]; 128]>,
    filter: Box<[u64; 1 << (FILTER_BITS - WORD_BITS)]>,
}

impl Joins {
    /// Learns the pairs inside tokens, if all of them are UTF-8.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let filter = vec![0; 1 << (FILTER_BITS - WORD_BITS)].try_into().ok()?;
        let mut joins = Self { ascii: Box::new([[0; 2]; 128]), filter };
        for token in tokens {
            joins.learn(token)?;
        }
        Some(joins)
    }

    fn learn(&mut self, token: &[u8]) -> Option<()> {
        let mut before = None;
        let mut at = 0;
        while at < token.len() {
            let (character, len) = utf8::decode(token, at)?;
            at += len;
            if let Some(before) = before.replace(character) {
                if before | character < 0x80 {
                    self.ascii[before as usize][character as usize / 64] |= 1 << (character % 64);
                } else {
                    let (word, bit) = Self::bit(before, character);
                    self.filter[word] |= bit;
                }
            }
        }
        Some(())
    }

    #[inline(always)]
    fn bit(first: u32, second: u32) -> (usize, u64) {
        let pair = u64::from(first) << 32 | u64::from(second);
        let hash = pair.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - FILTER_BITS);
        (hash as usize / 64, 1 << (hash % 64))
    }

    /// Whether some token may have the second character after the first.
    #[inline(always)]
    pub(super) fn meet(&self, first: u32, second: u32) -> bool {
        if first | second < 0x80 {
            return self.ascii[first as usize][second as usize / 64] >> (second % 64) & 1 != 0;
        }
        let (word, bit) = Self::bit(first, second);
        self.filter[word] & bit != 0
    }

    /// Memory held outside the value itself, in bytes.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.ascii) + size_of_val(&*self.filter)
    }
}

#[cfg(test)]
mod tests {
    use super::Joins;

    #[test]
    fn what_stands_together_meets() {
        let joins = Joins::new(["ab", "é,", "中国人", "1.5", "x"].map(str::as_bytes).into_iter()).expect("UTF-8");
        for (first, second) in [('a', 'b'), ('é', ','), ('中', '国'), ('国', '人'), ('1', '.'), ('.', '5')] {
            assert!(joins.meet(first.into(), second.into()), "{first}{second}");
        }
        for (first, second) in [('b', 'a'), (',', 'é'), ('国', '中'), ('.', '1'), ('b', '1'), ('a', 'é')] {
            assert!(!joins.meet(first.into(), second.into()), "{first}{second}");
        }
        assert!(Joins::new([&b"a\xFF"[..]].into_iter()).is_none());
    }
}
