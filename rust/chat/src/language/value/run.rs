//! What a rendering is given besides its variables: the time, and what it may spend.

use super::super::failure::Outcome;
use super::{Array, Value, check_depth, mark};
use crate::budget::Budget;
use crate::clock::Now;

/// What functions and the machine share.
pub(crate) struct Run<'p> {
    pub(crate) now: &'p Now,
    pub(crate) budget: &'p mut Budget,
    pub(crate) changed: &'p mut Changed,
}

/// The arrays and objects that were given others to hold: only these can hold themselves, and would never be freed. So
/// they are emptied in the end.
#[derive(Default)]
pub(crate) struct Changed(Vec<Value>);

impl Drop for Changed {
    fn drop(&mut self) {
        for value in &self.0 {
            match value {
                Value::Array(array) => drop(array.items.take()),
                Value::Object(object) => drop(object.entries.take()),
                _ => {}
            }
        }
    }
}

impl Run<'_> {
    /// Notes that a container gets an item.
    pub(crate) fn change(&mut self, container: &Value, item: &Value) -> Outcome<()> {
        check_depth(item.depth())?;
        if item.depth() > 0 && container.marks() & mark::CHANGED == 0 {
            self.budget.bytes(2 * size_of::<Value>())?;
            container.note(mark::CHANGED);
            self.changed.0.push(container.clone());
        }
        Ok(())
    }

    /// Pays for an array of so many items.
    pub(crate) fn charge_items(&mut self, count: usize) -> Outcome<()> {
        self.budget.steps(count)?;
        Ok(self.budget.bytes(size_of::<Array>().saturating_add(count.saturating_mul(size_of::<Value>())))?)
    }
}
