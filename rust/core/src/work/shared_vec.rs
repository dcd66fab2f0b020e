//! A vector that several threads fill, each its own stretch of it.
//!
//! [`SharedVec::rest`] lends the memory of a vector, and [`Rest::split_off`] hands it out from the front, without gaps.
//! Each stretch is filled once, by any thread. The vector gets its length at the end, if all of them were.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A vector to be filled.
#[derive(Default)]
pub(crate) struct SharedVec<T> {
    /// Empty; it has only a capacity.
    items: Vec<T>,
    /// Items in the stretches that were handed out: the first ones of the capacity.
    num_given: usize,
    /// Items in those of them that were filled.
    num_filled: AtomicUsize,
}

impl<T: Copy> SharedVec<T> {
    /// The memory, with room for `capacity` items if there is enough memory. Forgets what was handed out before.
    pub(crate) fn rest(&mut self, capacity: usize) -> Rest<'_, T> {
        // If the allocation fails, the vector has no room.
        let _ = self.items.try_reserve_exact(capacity);
        self.num_given = 0;
        *self.num_filled.get_mut() = 0;
        Rest { items: self.items.spare_capacity_mut(), num_given: &mut self.num_given, num_filled: &self.num_filled }
    }

    /// The vector of all stretches.
    ///
    /// # Panics
    /// If one of them was not filled.
    pub(crate) fn into_vec(self) -> Vec<T> {
        let Self { mut items, num_given, num_filled } = self;
        assert_eq!(num_filled.into_inner(), num_given, "all stretches are filled");
        // SAFETY: stretches are disjoint, and together are the first `num_given` items of the capacity. Each is counted
        // at most once, after all of its items were written, so all items were. `T` is `Copy`, so nothing is dropped.
        // The test `a_stretch_that_was_not_filled` fails without the assertion.
        unsafe { items.set_len(num_given) };
        items
    }
}

/// The memory that is not handed out yet.
pub(crate) struct Rest<'a, T> {
    items: &'a mut [MaybeUninit<T>],
    num_given: &'a mut usize,
    num_filled: &'a AtomicUsize,
}

impl<'a, T: Copy> Rest<'a, T> {
    /// Room for how many items is left.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// How many items were handed out.
    pub(crate) fn num_given(&self) -> usize {
        *self.num_given
    }

    /// Hands out the next `len` items.
    ///
    /// # Panics
    /// If there is no room for them.
    pub(crate) fn split_off(&mut self, len: usize) -> Stretch<'a, T> {
        let items = self.items.split_off_mut(..len).expect("there is room");
        *self.num_given += len;
        Stretch { items, num_filled: self.num_filled }
    }
}

/// Some items of the vector, to be filled.
pub(crate) struct Stretch<'a, T> {
    items: &'a mut [MaybeUninit<T>],
    num_filled: &'a AtomicUsize,
}

impl<T: Copy> Stretch<'_, T> {
    /// Writes the items.
    ///
    /// # Panics
    /// If there are fewer than the stretch has room for.
    pub(crate) fn fill(self, items: impl Iterator<Item = T>) {
        let mut num_written = 0;
        for (place, item) in self.items.iter_mut().zip(items) {
            place.write(item);
            num_written += 1;
        }
        assert_eq!(num_written, self.items.len(), "an item for every place");
        self.num_filled.fetch_add(num_written, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::SharedVec;

    #[test]
    fn threads_fill_their_stretches() {
        let mut vec = SharedVec::default();
        let mut rest = vec.rest(100);
        let stretches: Vec<_> = (0..10).map(|len| (len, rest.split_off(len))).collect();
        assert!(rest.len() >= 55 && rest.num_given() == 45);
        thread::scope(|scope| {
            for (len, stretch) in stretches {
                scope.spawn(move || stretch.fill([len].into_iter().cycle()));
            }
        });
        let expected: Vec<usize> = (0..10).flat_map(|len| vec![len; len]).collect();
        assert_eq!(vec.into_vec(), expected);
    }

    #[test]
    fn without_memory_there_is_no_room() {
        let mut vec = SharedVec::<u64>::default();
        // The optimizer would leave out an allocation that nothing can see.
        assert_eq!(std::hint::black_box(vec.rest(usize::MAX / 16)).len(), 0);
        assert!(vec.into_vec().is_empty());
    }

    #[test]
    #[should_panic(expected = "all stretches are filled")]
    fn a_stretch_that_was_not_filled() {
        let mut vec = SharedVec::<u8>::default();
        vec.rest(8).split_off(8);
        vec.into_vec();
    }
}
