//! Builds a double array from sorted keys in one pass: children before parents, first fit in blocks.
//!
//! Between one key and the next, all nodes below their common prefix become complete. A complete node gets its base at
//! once, so every slot is written once. Besides the array there are only two stacks: the open nodes on the path of the
//! current key, and the complete nodes below them. The suffix of a key that no other key shares bypasses both; it is
//! placed from its last byte upwards.
//!
//! A node with several children tries only the newest block, 64 bases at a time with bit masks, and leaves holes. Only
//! children, which are two thirds of the nodes of a natural vocabulary, fill these holes, starting in the oldest block.
//! Trying eight blocks instead of one saved 0.3 % of space. Trying bases one by one was a fifth slower, and giving up
//! after a few tries took up to four times the space.
//!
//! Source: the order of construction is as for minimal automata from sorted words (Daciuk et al., 2000).
//! Complexity: O(n log n) to sort n keys, then linear in the number of nodes. For a quarter of a million keys with
//! 780,000 nodes, sorting takes two fifths of the time and placement half.

use super::{DoubleArray, Node, TrieError, sorted};
use crate::work::interrupt;
use crate::work::memory::{push, reserve};

/// Slots in a block: the children of a node differ in their lowest eight bits.
const BLOCK_LEN: usize = 256;

pub(super) fn build<'a>(pairs: impl Iterator<Item = (&'a [u8], u32)>) -> Result<DoubleArray, TrieError> {
    let keys = sorted::sort(pairs)?;
    let mut array = ArrayBuilder::new()?;
    // The nodes on the path of the current key, by depth.
    let mut path = vec![Open { label: 0, value: Node::NO_VALUE, first_child: 0 }];
    let mut complete = Vec::new();
    let mut shared_before = 0;

    for (at, key) in interrupt::ticking(&keys).enumerate() {
        let mut buffer = [0; 16];
        let bytes = key.bytes(&mut buffer);
        let shared_after = keys.get(at + 1).map_or(0, |next| key.common_prefix_len(next));
        let shared = shared_before.max(shared_after);

        for &label in &bytes[shared_before..shared] {
            push(&mut path, Open { label, value: Node::NO_VALUE, first_child: complete.len() });
        }

        match &bytes[shared..] {
            [] => path[shared].value = key.value,
            [label, tail @ ..] => {
                let leaf = Node::new(Node::NO_LABEL, Node::NO_CHILDREN, key.value);
                let top = tail.iter().rev().try_fold(leaf, |node, &label| {
                    let base = array.place_one(node.with_label(label))?;
                    Ok(Node::new(Node::NO_LABEL, base, Node::NO_VALUE))
                })?;
                push(&mut complete, top.with_label(*label));
            }
        }

        for open in path.drain(shared_after + 1..).rev() {
            let base = array.place(&complete[open.first_child..])?;
            complete.truncate(open.first_child);
            push(&mut complete, Node::new(open.label.into(), base, open.value));
        }
        shared_before = shared_after;
    }

    let base = array.place(&complete)?;
    array.slots[0] = Node::new(Node::NO_LABEL, base, path[0].value);
    array.slots.shrink_to_fit();
    Ok(DoubleArray { nodes: array.slots.into() })
}

/// A node on the path of the current key.
struct Open {
    label: u8,
    value: u32,
    /// The index of its first child among the complete nodes. Its children end where those of the next open node start.
    first_child: usize,
}

/// The array while it is being built.
struct ArrayBuilder {
    slots: Vec<Node>,
    blocks: Vec<Block>,
    /// The oldest block that may have room for an only child.
    oldest: usize,
}

impl ArrayBuilder {
    /// An array in which slot 0 is taken by the root and base 0 by nodes without children.
    fn new() -> Result<Self, TrieError> {
        let mut array = Self { slots: Vec::new(), blocks: Vec::new(), oldest: 0 };
        array.add_block()?;
        array.blocks[0].take(0);
        array.blocks[0].use_base(0);
        Ok(array)
    }

    /// Puts `children` into slots with a common base, and returns the base.
    fn place(&mut self, children: &[Node]) -> Result<usize, TrieError> {
        match children {
            [] => return Ok(Node::NO_CHILDREN),
            [child] => return self.place_one(*child),
            _ => {}
        }
        let base = match self.blocks.last().and_then(|block| block.fit(children)) {
            Some(base) => base,
            None => {
                self.add_block()?;
                // In an empty block every base fits.
                0
            }
        };
        let newest = self.blocks.len() - 1;
        let start = newest * BLOCK_LEN;
        self.blocks[newest].use_base(base);
        for &child in children {
            let slot = base ^ child.label() as usize;
            self.blocks[newest].take(slot);
            self.slots[start + slot] = child;
        }
        Ok(start + base)
    }

    /// Puts an only child into the first slot with a free base for it, and returns the base.
    #[inline(always)]
    fn place_one(&mut self, child: Node) -> Result<usize, TrieError> {
        loop {
            if self.oldest == self.blocks.len() {
                self.add_block()?;
            }
            let block = &mut self.blocks[self.oldest];
            for word in 0..4 {
                let mut free = block.free[word];
                while free != 0 {
                    let slot = word * 64 + free.trailing_zeros() as usize;
                    let base = slot ^ child.label() as usize;
                    if block.is_unused(base) {
                        block.use_base(base);
                        block.take(slot);
                        let start = self.oldest * BLOCK_LEN;
                        self.slots[start + slot] = child;
                        return Ok(start + base);
                    }
                    free &= free - 1;
                }
            }
            self.oldest += 1;
        }
    }

    fn add_block(&mut self) -> Result<(), TrieError> {
        let len = self.slots.len() + BLOCK_LEN;
        if len > Node::MAX_BASE {
            return Err(TrieError::TooLarge);
        }
        reserve(&mut self.slots, BLOCK_LEN);
        self.slots.resize(len, Node::FREE);
        push(&mut self.blocks, Block { free: [u64::MAX; 4], unused: [u64::MAX; 4] });
        Ok(())
    }
}

/// What is still free in a block, one bit per slot or base.
struct Block {
    /// Slots without a node.
    free: [u64; 4],
    /// Unused bases.
    unused: [u64; 4],
}

impl Block {
    fn take(&mut self, slot: usize) {
        self.free[slot / 64] &= !(1 << (slot % 64));
    }

    fn use_base(&mut self, base: usize) {
        self.unused[base / 64] &= !(1 << (base % 64));
    }

    fn is_unused(&self, base: usize) -> bool {
        self.unused[base / 64] >> (base % 64) & 1 != 0
    }

    /// An unused base that puts all `children` into free slots.
    fn fit(&self, children: &[Node]) -> Option<usize> {
        let (first, others) = children.split_first()?;
        let first = first.label() as usize;
        for word in 0..4 {
            // Slots for the first child for which the slots of the others are free too.
            let mut slots = self.free[word];
            for other in others {
                let distance = first ^ other.label() as usize;
                slots &= exchange(self.free[word ^ (distance / 64)], distance % 64);
                if slots == 0 {
                    break;
                }
            }
            while slots != 0 {
                let base = (word * 64 + slots.trailing_zeros() as usize) ^ first;
                if self.is_unused(base) {
                    return Some(base);
                }
                slots &= slots - 1;
            }
        }
        None
    }
}

/// The word whose bit `i` is bit `i ^ distance` of `word`.
fn exchange(word: u64, distance: usize) -> u64 {
    /// For each bit of a distance, the positions without that bit.
    const LOWER: [u64; 6] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0F0F_0F0F_0F0F_0F0F,
        0x00FF_00FF_00FF_00FF,
        0x0000_FFFF_0000_FFFF,
        0x0000_0000_FFFF_FFFF,
    ];
    LOWER.iter().enumerate().fold(word, |word, (bit, lower)| {
        let shift = 1 << bit;
        let exchanged = word >> shift & lower | (word & lower) << shift;
        if distance & shift == 0 { word } else { exchanged }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchange_moves_every_bit() {
        let word = 0x0123_4567_89AB_CDEF;
        for distance in 0..64 {
            let expected = (0..64).fold(0, |sum, bit| sum | (word >> (bit ^ distance) & 1) << bit);
            assert_eq!(exchange(word, distance), expected, "distance {distance}");
        }
    }
}
