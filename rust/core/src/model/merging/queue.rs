//! The pairs that wait to be merged: lowest rank first, leftmost first among equals.
//!
//! A heap of streams. A stream holds places of one rank from left to right, and only its first one stands in the heap.
//! Places mostly come from left to right, so a stream takes them at its end in O(1), and a run of one symbol needs as
//! many streams as its pairs have ranks. O(log n) for n streams, which is what an ordinary heap has for n places; that
//! is the case where hardly any two pairs are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::NONE;
use super::symbol::NO_RANK;

/// Streams that can take places at their ends, by a hash of their ranks; a power of two.
const OPEN: usize = 128;
/// Stands for a stream that takes none.
const CLOSED: End = End { entry: NONE, rank: 0, at: NONE };

/// A place in a stream.
#[derive(Debug, Clone, Copy)]
struct Entry {
    at: u32,
    /// The next entry of the stream, or of the free ones.
    next: u32,
}

/// The end of a stream.
#[derive(Debug, Clone, Copy)]
struct End {
    entry: u32,
    rank: u32,
    at: u32,
}

/// Where the end of the stream of a rank is, else where it can be: one of two places.
#[inline]
fn slot(ends: &[End; OPEN], rank: u32) -> usize {
    // Scores as ranks differ in their high bits only.
    let first = (rank.wrapping_mul(0x9E37_79B1) >> (u32::BITS - OPEN.trailing_zeros())) as usize;
    let second = first ^ 1;
    let is_open = |at: usize| ends[at].entry != NONE;
    let holds = |at: usize| is_open(at) && ends[at].rank == rank;
    // The first place can have become free after the stream took the second one.
    if holds(second) || is_open(first) && !is_open(second) && !holds(first) { second } else { first }
}

/// A priority queue of ranks and places.
#[derive(Debug)]
pub(super) struct Queue {
    /// For each stream rank and place of its first entry, and which that is.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    entries: Vec<Entry>,
    free: u32,
    ends: [End; OPEN],
}

impl Default for Queue {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), entries: Vec::new(), free: NONE, ends: [CLOSED; OPEN] }
    }
}

impl Queue {
    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.entries.clear();
        self.free = NONE;
        self.ends = [CLOSED; OPEN];
    }

    /// Adds a place, unless its pair does not merge.
    #[inline(always)]
    pub(super) fn push(&mut self, rank: u32, at: u32) {
        if rank == NO_RANK {
            return;
        }
        let mut entry = self.free;
        match self.entries.get_mut(entry as usize) {
            Some(free) => self.free = std::mem::replace(free, Entry { at, next: NONE }).next,
            None => {
                entry = self.entries.len() as u32;
                self.entries.push(Entry { at, next: NONE });
            }
        }
        let slot = slot(&self.ends, rank);
        let end = &mut self.ends[slot];
        if end.rank == rank && end.at < at {
            self.entries[end.entry as usize].next = entry;
        } else {
            self.heap.push(Reverse((u64::from(rank) << 32 | u64::from(at), entry)));
        }
        *end = End { entry, rank, at };
    }

    /// Takes the lowest rank and its leftmost place.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<(u32, u32)> {
        let mut first = self.heap.peek_mut()?;
        let Reverse((key, entry)) = *first;
        let (rank, at) = ((key >> 32) as u32, key as u32);
        let next = std::mem::replace(&mut self.entries[entry as usize].next, self.free);
        self.free = entry;
        match self.entries.get(next as usize) {
            Some(following) => *first = Reverse((u64::from(rank) << 32 | u64::from(following.at), next)),
            None => {
                PeekMut::pop(first);
                let slot = slot(&self.ends, rank);
                if self.ends[slot].entry == entry {
                    self.ends[slot] = CLOSED;
                }
            }
        }
        Some((rank, at))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{OPEN, Queue};

    #[test]
    fn a_stream_in_its_second_place_is_closed_after_the_first_is_free() {
        let mut queue = Queue::default();
        // Both ranks have the same first place.
        for at in 0..2 {
            queue.push(0, at);
            queue.push(233, at);
            assert_eq!([queue.pop(), queue.pop()], [Some((0, at)), Some((233, at))]);
        }
    }

    proptest! {
        #[test]
        fn pairs_come_in_order(
            // Few ranks, and more than there are open streams; `None` takes a pair out.
            steps in prop::collection::vec(
                prop::option::weighted(0.6, (prop_oneof![0..3_u32, 0..3 * OPEN as u32], 0..40_u32)),
                0..300,
            ),
        ) {
            let (mut queue, mut expected) = (Queue::default(), BTreeSet::new());
            for step in steps {
                match step {
                    Some((rank, at)) if expected.insert((rank, at)) => queue.push(rank, at),
                    Some(_) => {}
                    None => prop_assert_eq!(queue.pop(), expected.pop_first()),
                }
            }
            for pair in expected {
                prop_assert_eq!(queue.pop(), Some(pair));
            }
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
