//! Joins the ids of runs into one array, in the order of the runs, while other runs are still being encoded.
//!
//! A run gets its place once all runs before it have theirs, because only then is it known how many ids come before. The
//! thread that has found this out copies it, so threads copy at the same time. What does not fit is appended at the
//! end, by one thread. O(ids).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::many::batch::Batch;
use crate::token::TokenId;
use crate::work::memory;
use crate::work::shared_vec::{Rest, SharedVec, Stretch};

/// Memory for more ids than this is returned to the system if they do not fill it. Allocators keep less for the next
/// batch, and page it in once.
const LARGE: usize = 1 << 23;

/// The ids of a run, and where those of each text end.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub ids: Vec<TokenId>,
    pub ends: Vec<usize>,
}

/// The memory of a batch.
pub(super) struct Memory {
    ids: SharedVec<TokenId>,
    offsets: SharedVec<i64>,
}

/// Runs on their way into a batch.
pub(super) struct Join<'a>(Mutex<State<'a>>);

struct State<'a> {
    /// Memory for ids and offsets, once it is known how much is needed.
    rest: Option<(Rest<'a, TokenId>, Rest<'a, i64>)>,
    /// Runs without a place, by number.
    waiting: BTreeMap<usize, Run>,
    /// The number of the next run to get a place, and the ids before it.
    next: usize,
    num_ids: usize,
}

/// A run with its place.
struct Placed<'a> {
    run: Run,
    ids: Stretch<'a, TokenId>,
    offsets: Stretch<'a, i64>,
    /// Ids before those of the run.
    before: usize,
}

impl Memory {
    pub(super) fn new() -> Self {
        Self { ids: SharedVec::new(), offsets: SharedVec::new() }
    }

    /// The batch of the runs that have their places, and of the `others`.
    pub(super) fn into_batch(self, others: Vec<Run>) -> Batch {
        let mut batch = Batch { ids: self.ids.into_vec(), offsets: self.offsets.into_vec() };
        if batch.offsets.is_empty() {
            memory::push(&mut batch.offsets, 0);
        }
        for run in others {
            let before = batch.ids.len();
            memory::extend(&mut batch.offsets, run.ends.iter().map(|end| (before + end) as i64));
            match before {
                0 => batch.ids = run.ids,
                _ => memory::append(&mut batch.ids, &run.ids),
            }
        }
        if batch.ids.capacity() > LARGE {
            batch.ids.shrink_to_fit();
        }
        batch
    }
}

impl<'a> Join<'a> {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State { rest: None, waiting: BTreeMap::new(), next: 0, num_ids: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for so many ids and texts.
    pub(super) fn reserve(&self, memory: &'a mut Memory, num_ids: usize, num_texts: usize) {
        let mut offsets = memory.offsets.rest(num_texts + 1);
        if let Some(first) = offsets.split_off(1) {
            first.fill([0].into_iter());
            self.lock().rest = Some((memory.ids.rest(num_ids), offsets));
            self.place();
        }
    }

    /// Takes a run. Returns memory for another one, if there is any.
    pub(super) fn put(&self, number: usize, run: Run) -> Run {
        self.lock().waiting.insert(number, run);
        self.place()
    }

    /// Copies the runs that can have their places. Returns the memory of one.
    fn place(&self) -> Run {
        let mut spare = Run::default();
        loop {
            let placed = self.lock().place();
            let Some(Placed { run, ids, offsets, before }) = placed else { return spare };
            ids.fill(run.ids.iter().copied());
            offsets.fill(run.ends.iter().map(|end| (before + end) as i64));
            spare = run;
            spare.ids.clear();
            spare.ends.clear();
        }
    }

    /// The runs without a place, in order.
    pub(super) fn into_waiting(self) -> Vec<Run> {
        let state = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.waiting.into_values().collect()
    }
}

impl<'a> State<'a> {
    /// Gives the next run its place, if it is here and fits.
    fn place(&mut self) -> Option<Placed<'a>> {
        let (ids, offsets) = self.rest.as_mut()?;
        let next = self.waiting.first_entry().filter(|run| *run.key() == self.next)?;
        let (num_ids, num_texts) = (next.get().ids.len(), next.get().ends.len());
        if num_ids > ids.len() || num_texts > offsets.len() {
            return None;
        }
        let before = self.num_ids;
        self.next += 1;
        self.num_ids += num_ids;
        Some(Placed {
            ids: ids.split_off(num_ids)?,
            offsets: offsets.split_off(num_texts)?,
            run: next.remove(),
            before,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Join, Memory, Run};
    use crate::many::batch::Batch;

    #[test]
    fn runs_arrive_in_any_order_and_need_not_fit() {
        let runs = [(vec![1, 2, 3], vec![1, 3]), (vec![], vec![0]), (vec![4], vec![1, 1]), (vec![5, 6], vec![2])];
        let expected = Batch { ids: vec![1, 2, 3, 4, 5, 6], offsets: vec![0, 1, 3, 3, 4, 4, 6] };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            for (reserved_after, capacity) in [(0, 6), (2, 6), (4, 6), (0, 3), (2, 4), (4, 0), (5, 0)] {
                let (mut memory, join) = (Memory::new(), Join::new());
                let mut lent = Some(&mut memory);
                for (count, &number) in order.iter().enumerate() {
                    if count == reserved_after {
                        lent.take().into_iter().for_each(|memory| join.reserve(memory, capacity, 6));
                    }
                    let (ids, ends) = runs[number].clone();
                    join.put(number, Run { ids, ends });
                }
                if reserved_after == order.len() {
                    lent.take().into_iter().for_each(|memory| join.reserve(memory, capacity, 6));
                }
                let others = join.into_waiting();
                assert_eq!(memory.into_batch(others), expected, "{order:?} {reserved_after} {capacity}");
            }
        }
    }
}
