//! What pairs of symbols gave lately: few pairs make up most of a language, and looking a pair up takes its text.
//!
//! A table with one slot for all pairs of a hash, of 128 KiB; nothing is allocated before the first pair. O(1).

use super::symbol::{NO_SYMBOL, Symbol};
use crate::lookup::hash::Seed;

/// The latest look-ups.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    seed: Seed,
    /// By hash; empty before the first pair.
    slots: Vec<Known>,
}

/// Two symbols, and rank and symbol of both together.
#[derive(Debug, Clone, Copy)]
struct Known {
    left: Symbol,
    right: Symbol,
    given: (u32, Symbol),
}

impl Memo {
    /// Slots, 16 bytes each; a power of two.
    const SLOTS: usize = 1 << 13;

    /// What `left` and `right` give, as `look_up` tells; the same each time, unless one of them is [`NO_SYMBOL`].
    #[inline]
    pub(crate) fn get(
        &mut self,
        left: Symbol,
        right: Symbol,
        look_up: impl FnOnce() -> (u32, Symbol),
    ) -> (u32, Symbol) {
        if left == NO_SYMBOL || right == NO_SYMBOL {
            return look_up();
        }
        let at = self.seed.hash_pair(left, right) as usize % Self::SLOTS;
        match self.slots.get(at) {
            Some(known) if (known.left, known.right) == (left, right) => known.given,
            _ => self.keep(at, left, right, look_up()),
        }
    }

    #[inline(never)]
    fn keep(&mut self, at: usize, left: Symbol, right: Symbol, given: (u32, Symbol)) -> (u32, Symbol) {
        let free = Known { left: NO_SYMBOL, right: NO_SYMBOL, given };
        self.slots.resize(Self::SLOTS, free);
        self.slots[at] = Known { left, right, given };
        given
    }
}

#[cfg(test)]
mod tests {
    use super::Memo;
    use crate::model::merging::symbol::NO_SYMBOL;

    #[test]
    fn pairs_never_mix_up() {
        let mut memo = Memo::default();
        for _ in 0..2 {
            for left in 0..300 {
                for right in 0..300 {
                    assert_eq!(memo.get(left, right, || (left, right)), (left, right));
                }
            }
        }
        assert_eq!(memo.get(0, 1, || (0, 1)), (0, 1));
        assert_eq!(memo.get(0, 1, || unreachable!("it is known")), (0, 1));
    }

    #[test]
    fn what_has_no_number_is_looked_up_each_time() {
        let mut memo = Memo::default();
        for given in [(1, 2), (3, 4)] {
            assert_eq!(memo.get(NO_SYMBOL, 1, || given), given);
            assert_eq!(memo.get(1, NO_SYMBOL, || given), given);
        }
    }
}
