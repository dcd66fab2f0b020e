//! A bounded cache from pairs of symbols to their merges: direct-mapped, 128 KiB, so that it fits in L2.
//!
//! A few pairs make up most of a language, and the look-up that this cache saves reads slow memory (byte-pair encoding)
//! or hashes a text (SPM). A new pair replaces the one in its slot. Nothing is allocated before the first pair. O(1).

use super::symbol::{Merge, NO_SYMBOL, Symbol};
use crate::lookup::hash::Seed;
use crate::work::memory;

/// The merges looked up most recently.
#[derive(Debug, Default)]
pub(crate) struct PairMemo {
    seed: Seed,
    /// Indexed by hash; empty before the first pair.
    slots: Vec<KnownMerge>,
}

#[derive(Debug, Clone, Copy)]
struct KnownMerge {
    left: Symbol,
    right: Symbol,
    merge: Merge,
}

impl PairMemo {
    /// A power of two.
    const NUM_SLOTS: usize = 1 << 13;

    /// The merge of two symbols, from `look_up` if it is not cached. A pair with [`NO_SYMBOL`], which stands for
    /// many texts, is never cached.
    #[inline]
    pub(crate) fn get(&mut self, left: Symbol, right: Symbol, look_up: impl FnOnce() -> Merge) -> Merge {
        if left == NO_SYMBOL || right == NO_SYMBOL {
            return look_up();
        }
        let at = self.seed.hash_pair(left, right) as usize % Self::NUM_SLOTS;
        match self.slots.get(at) {
            Some(slot) if (slot.left, slot.right) == (left, right) => slot.merge,
            _ => self.keep(at, left, right, look_up()),
        }
    }

    #[inline(never)]
    fn keep(&mut self, at: usize, left: Symbol, right: Symbol, merge: Merge) -> Merge {
        memory::fill(&mut self.slots, Self::NUM_SLOTS, KnownMerge { left: NO_SYMBOL, right: NO_SYMBOL, merge });
        self.slots[at] = KnownMerge { left, right, merge };
        merge
    }
}

#[cfg(test)]
mod tests {
    use super::{Merge, NO_SYMBOL, PairMemo};

    #[test]
    fn pairs_never_mix_up() {
        let mut memo = PairMemo::default();
        for _ in 0..2 {
            for left in 0..300 {
                for right in 0..300 {
                    let merge = Merge { rank: left, symbol: right };
                    assert_eq!(memo.get(left, right, || merge), merge);
                }
            }
        }
        let merge = Merge { rank: 0, symbol: 1 };
        assert_eq!(memo.get(0, 1, || merge), merge);
        assert_eq!(memo.get(0, 1, || unreachable!("it is cached")), merge);
    }

    #[test]
    fn a_pair_without_a_number_is_looked_up_each_time() {
        let mut memo = PairMemo::default();
        for merge in [(1, 2), (3, 4)].map(|(rank, symbol)| Merge { rank, symbol }) {
            assert_eq!(memo.get(NO_SYMBOL, 1, || merge), merge);
            assert_eq!(memo.get(1, NO_SYMBOL, || merge), merge);
        }
    }
}
