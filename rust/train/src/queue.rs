//! A binary heap whose order is passed to each call, because it depends on tables that change between calls.
//!
//! O(log n) to push and to pop; a push compares twice on average.

/// Entries; the first one comes before all others.
#[derive(Debug)]
pub(super) struct Queue<T>(Vec<T>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Queue<T> {
    /// Adds an entry. `before` says whether one comes before another.
    pub(super) fn push(&mut self, entry: T, before: impl Fn(&T, &T) -> bool) {
        let mut at = self.0.len();
        self.0.push(entry);
        while at > 0 {
            let parent = (at - 1) / 2;
            if !before(&entry, &self.0[parent]) {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = entry;
    }

    /// Removes the first entry.
    pub(super) fn pop(&mut self, before: impl Fn(&T, &T) -> bool) -> Option<T> {
        let last = self.0.pop()?;
        let Some(&first) = self.0.first() else { return Some(last) };
        // Down to a leaf along the better children, then up to where the last entry belongs, which is usually near a
        // leaf.
        let mut at = 0;
        while 2 * at + 1 < self.0.len() {
            let mut child = 2 * at + 1;
            if child + 1 < self.0.len() && before(&self.0[child + 1], &self.0[child]) {
                child += 1;
            }
            self.0[at] = self.0[child];
            at = child;
        }
        while at > 0 && before(&last, &self.0[(at - 1) / 2]) {
            self.0[at] = self.0[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        self.0[at] = last;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Queue;

    proptest! {
        #[test]
        fn entries_leave_in_order(entries in prop::collection::vec((0..20_u32, any::<u32>()), 0..200)) {
            let mut queue = Queue::default();
            for (at, &entry) in entries.iter().enumerate() {
                queue.push(entry, |one, other| one > other);
                if at % 3 == 2 {
                    let first = queue.pop(|one, other| one > other);
                    prop_assert_eq!(first, queue.0.iter().copied().chain(first).max());
                }
            }
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop(|one, other| one > other)).collect();
            prop_assert!(rest.is_sorted_by(|one, other| one >= other));
            prop_assert_eq!(rest.len(), entries.len() - entries.len() / 3);
        }
    }
}
