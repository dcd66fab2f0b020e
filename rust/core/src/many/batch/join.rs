//! Joins the ids of groups into one array, in the order of the groups, while other groups are still being encoded.
//!
//! A group is appended once all groups before it are. One thread at a time does that: the others leave their groups and
//! go on. What has no room is appended at the end. O(ids).

use std::sync::{Mutex, PoisonError};

use crate::error::EncodeError;
use crate::many::batch::Batch;
use crate::token::TokenId;
use crate::work::in_order::InOrder;
use crate::work::memory;
use crate::work::threads::lock;

/// Memory for more ids than this is returned to the system if they do not fill it. Allocators keep less for the next
/// batch, and page it in once.
const LARGE: usize = 1 << 23;

/// The ids of a group, and where those of each text end: also if they were only counted, and there are none.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub ids: Vec<TokenId>,
    pub ends: Vec<usize>,
}

/// A batch that groups are appended to.
#[derive(Default)]
pub(super) struct Join {
    groups: InOrder<Group>,
    batch: Mutex<Batch>,
}

impl Batch {
    fn has_room_for(&self, group: &Group) -> bool {
        let Self { ids, offsets } = self;
        group.ids.len() <= ids.capacity() - ids.len() && group.ends.len() <= offsets.capacity() - offsets.len()
    }

    fn append(&mut self, group: &Group) {
        let before = self.offsets.last().copied().unwrap_or_default();
        memory::append(&mut self.ids, &group.ids);
        memory::extend(&mut self.offsets, group.ends.iter().map(|&end| before + end as i64));
    }
}

impl Join {
    /// Makes room for this many ids and texts, if there is as much memory.
    pub(super) fn reserve(&self, num_ids: usize, num_texts: usize) {
        let mut batch = lock(&self.batch);
        if batch.offsets.try_reserve_exact(num_texts + 1).is_ok() {
            batch.offsets.push(0);
            let _ = batch.ids.try_reserve_exact(num_ids);
        }
        drop(batch);
        self.append_groups();
    }

    /// Takes a group. Returns memory for another one, if there is any.
    pub(super) fn put(&self, number: usize, group: Group) -> Group {
        self.groups.put(number, group);
        self.append_groups()
    }

    /// Appends the groups that come next and have room, unless another thread is doing so. Returns the memory of one.
    fn append_groups(&self) -> Group {
        let mut spare = Group::default();
        if let Ok(mut batch) = self.batch.try_lock() {
            while let Some(group) = self.groups.take_if(|group| batch.has_room_for(group)) {
                batch.append(&group);
                spare = group;
            }
        }
        spare.ids.clear();
        spare.ends.clear();
        spare
    }

    /// The batch, with the groups that have not been appended yet.
    ///
    /// # Errors
    /// The first text for which there is no memory.
    pub(super) fn into_batch(self) -> Result<Batch, (usize, EncodeError)> {
        let mut batch = self.batch.into_inner().unwrap_or_else(PoisonError::into_inner);
        let result = memory::catch(|| {
            if batch.offsets.is_empty() {
                memory::push(&mut batch.offsets, 0);
            }
            while let Some(mut group) = self.groups.take() {
                if batch.ids.is_empty() {
                    std::mem::swap(&mut batch.ids, &mut group.ids);
                }
                batch.append(&group);
            }
        });
        if batch.ids.capacity() > LARGE {
            batch.ids.shrink_to_fit();
        }
        match result {
            Ok(()) => Ok(batch),
            Err(error) => Err((batch.offsets.len().saturating_sub(1), error.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Join};
    use crate::many::batch::Batch;

    #[test]
    fn groups_arrive_in_any_order_and_need_not_fit() {
        let groups = [(vec![1, 2, 3], vec![1, 3]), (vec![], vec![0]), (vec![4], vec![1, 1]), (vec![5, 6], vec![2])];
        let expected = Batch { ids: vec![1, 2, 3, 4, 5, 6], offsets: vec![0, 1, 3, 3, 4, 4, 6] };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            for (reserved_after, capacity) in [(0, 6), (2, 6), (4, 6), (0, 3), (2, 4), (4, 0), (5, 0)] {
                let join = Join::default();
                for (count, &number) in order.iter().enumerate() {
                    if count == reserved_after {
                        join.reserve(capacity, 6);
                    }
                    let (ids, ends) = groups[number].clone();
                    join.put(number, Group { ids, ends });
                }
                if reserved_after == order.len() {
                    join.reserve(capacity, 6);
                }
                assert_eq!(join.into_batch().as_ref(), Ok(&expected), "{order:?} {reserved_after} {capacity}");
            }
        }
    }
}
