//! Joins the ids of groups into one array, in the order of the groups, while other groups are still being encoded.
//!
//! The position of a group is known once those of all groups before it are. The thread that puts the last missing group
//! copies those after it, so threads copy at the same time. What does not fit is appended at the end, by one thread.
//! O(ids).

use std::sync::Mutex;

use crate::error::EncodeError;
use crate::many::batch::Batch;
use crate::token::TokenId;
use crate::work::in_order::InOrder;
use crate::work::memory;
use crate::work::shared_vec::{Rest, SharedVec};
use crate::work::threads::lock;

/// Memory for more ids than this is returned to the system if they do not fill it. Allocators keep less for the next
/// batch, and page it in once.
const LARGE: usize = 1 << 23;

/// The ids of a group, and where those of each text end.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub ids: Vec<TokenId>,
    pub ends: Vec<usize>,
}

/// The memory of a batch.
#[derive(Default)]
pub(super) struct Memory {
    ids: SharedVec<TokenId>,
    offsets: SharedVec<i64>,
}

/// Runs on their way into a batch.
pub(super) struct Join<'a> {
    groups: InOrder<Group>,
    /// Memory for ids and offsets, once it is known how much is needed.
    rest: Mutex<Option<(Rest<'a, TokenId>, Rest<'a, i64>)>>,
}

impl Memory {
    /// The batch of the groups that were copied, and of the other `groups`.
    ///
    /// # Errors
    /// The first text for which there is no memory.
    pub(super) fn into_batch(self, groups: &InOrder<Group>) -> Result<Batch, (usize, EncodeError)> {
        let mut batch = Batch { ids: self.ids.into_vec(), offsets: self.offsets.into_vec() };
        let result = memory::catch(|| {
            if batch.offsets.is_empty() {
                memory::push(&mut batch.offsets, 0);
            }
            while let Some(group) = groups.take() {
                let before = batch.ids.len();
                match before {
                    0 => batch.ids = group.ids,
                    _ => memory::append(&mut batch.ids, &group.ids),
                }
                memory::extend(&mut batch.offsets, group.ends.iter().map(|end| (before + end) as i64));
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

impl<'a> Join<'a> {
    pub(super) fn new() -> Self {
        Self { groups: InOrder::new(), rest: Mutex::new(None) }
    }

    /// Makes room for this many ids and texts.
    pub(super) fn reserve(&self, memory: &'a mut Memory, num_ids: usize, num_texts: usize) {
        let mut offsets = memory.offsets.rest(num_texts + 1);
        if offsets.len() > num_texts {
            offsets.split_off(1).fill([0].into_iter());
            *lock(&self.rest) = Some((memory.ids.rest(num_ids), offsets));
            self.copy_groups();
        }
    }

    /// Takes a group. Returns memory for another one, if there is any.
    pub(super) fn put(&self, number: usize, group: Group) -> Group {
        self.groups.put(number, group);
        self.copy_groups()
    }

    /// Copies the groups whose positions are known. Returns the memory of one.
    fn copy_groups(&self) -> Group {
        let mut spare = Group::default();
        loop {
            let mut rest = lock(&self.rest);
            let Some((ids, offsets)) = &mut *rest else { return spare };
            let fits = |group: &Group| group.ids.len() <= ids.len() && group.ends.len() <= offsets.len();
            let Some(group) = self.groups.take_if(fits) else { return spare };
            let before = ids.num_given();
            let ids = ids.split_off(group.ids.len());
            let offsets = offsets.split_off(group.ends.len());
            drop(rest);

            ids.fill(group.ids.iter().copied());
            offsets.fill(group.ends.iter().map(|end| (before + end) as i64));
            spare = group;
            spare.ids.clear();
            spare.ends.clear();
        }
    }

    /// The groups that were not copied.
    pub(super) fn into_groups(self) -> InOrder<Group> {
        self.groups
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Join, Memory};
    use crate::many::batch::Batch;

    #[test]
    fn groups_arrive_in_any_order_and_need_not_fit() {
        let groups = [(vec![1, 2, 3], vec![1, 3]), (vec![], vec![0]), (vec![4], vec![1, 1]), (vec![5, 6], vec![2])];
        let expected = Batch { ids: vec![1, 2, 3, 4, 5, 6], offsets: vec![0, 1, 3, 3, 4, 4, 6] };
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            for (reserved_after, capacity) in [(0, 6), (2, 6), (4, 6), (0, 3), (2, 4), (4, 0), (5, 0)] {
                let mut memory = Memory::default();
                let join = Join::new();
                let mut lent = Some(&mut memory);
                for (count, &number) in order.iter().enumerate() {
                    if count == reserved_after {
                        lent.take().into_iter().for_each(|memory| join.reserve(memory, capacity, 6));
                    }
                    let (ids, ends) = groups[number].clone();
                    join.put(number, Group { ids, ends });
                }
                if reserved_after == order.len() {
                    lent.take().into_iter().for_each(|memory| join.reserve(memory, capacity, 6));
                }
                let groups = join.into_groups();
                assert_eq!(memory.into_batch(&groups).as_ref(), Ok(&expected), "{order:?} {reserved_after} {capacity}");
            }
        }
    }
}
