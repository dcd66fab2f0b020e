//! A reorder buffer: threads put results in any order, and they leave in the order of their numbers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::work::threads::lock;

/// Numbered results.
#[derive(Debug)]
pub(crate) struct InOrder<T>(Mutex<Results<T>>);

#[derive(Debug)]
struct Results<T> {
    /// The number of the next one to leave.
    next: usize,
    waiting: BTreeMap<usize, T>,
}

impl<T> Default for InOrder<T> {
    fn default() -> Self {
        Self(Mutex::new(Results { next: 0, waiting: BTreeMap::new() }))
    }
}

impl<T> InOrder<T> {
    /// Takes a result. Numbers start at 0, and each is used once.
    pub(crate) fn put(&self, number: usize, result: T) {
        lock(&self.0).waiting.insert(number, result);
    }

    /// Whether the next `count` results are here.
    pub(crate) fn has(&self, count: usize) -> bool {
        let Results { next, waiting } = &*lock(&self.0);
        waiting.range(next..&(next + count)).count() == count
    }

    /// The next result, if it is here.
    pub(crate) fn take(&self) -> Option<T> {
        self.take_if(|_| true)
    }

    /// The next result, if it is here and fits.
    pub(crate) fn take_if(&self, fits: impl FnOnce(&T) -> bool) -> Option<T> {
        let Results { next, waiting } = &mut *lock(&self.0);
        let first = waiting.first_entry().filter(|entry| entry.key() == next && fits(entry.get()))?;
        *next += 1;
        Some(first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::InOrder;

    #[test]
    fn results_leave_in_order() {
        let results = InOrder::default();
        results.put(1, 'b');
        assert!(results.has(0) && !results.has(1) && results.take().is_none());
        results.put(0, 'a');
        assert!(results.has(2) && !results.has(3) && results.take_if(|&result| result == 'b').is_none());
        assert_eq!([results.take(), results.take(), results.take()], [Some('a'), Some('b'), None]);
        results.put(2, 'c');
        assert!(results.has(1) && results.take() == Some('c'));
    }
}
