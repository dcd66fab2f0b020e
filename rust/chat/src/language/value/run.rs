//! What a rendering is given besides its variables: the time, and what it may spend.

use super::super::failure::Outcome;
use super::{Array, Str, Value, check_depth, held, mark};
use crate::budget::Budget;
use crate::clock::Now;
use crate::text::Text;

/// What functions and the machine share.
pub(crate) struct Run<'p> {
    pub(crate) now: &'p Now,
    pub(crate) budget: &'p mut Budget,
    /// The bytes of the texts that are being written.
    pub(crate) written: usize,
    /// What was paid for since something was begun: it is not yet a string.
    pub(crate) begun: usize,
    pub(crate) changed: &'p mut Changed,
}

/// The arrays and objects that were given others to hold: only these can hold themselves, and would never be freed. So
/// they are emptied in the end.
#[derive(Default)]
pub(crate) struct Changed(Vec<Value>);

impl Drop for Changed {
    fn drop(&mut self) {
        self.0.iter().for_each(Value::empty);
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

    /// Pays for so many bytes of strings.
    pub(crate) fn charge_held(&mut self, cost: usize) -> Outcome<()> {
        self.budget.string(cost, held() + self.written + self.begun)?;
        self.begun += cost;
        Ok(())
    }

    /// Pays for a string of `len` bytes and `num_runs` runs.
    pub(crate) fn charge_string(&mut self, len: usize, num_runs: usize) -> Outcome<()> {
        self.charge_held(Str::cost(len, num_runs))
    }

    /// Pays for a copy of a text.
    pub(crate) fn charge_text(&mut self, text: &Text) -> Outcome<()> {
        self.charge_string(text.len(), text.num_runs())
    }

    /// Pays for an array of so many items.
    pub(crate) fn charge_items(&mut self, count: usize) -> Outcome<()> {
        self.budget.steps(count)?;
        Ok(self.budget.bytes(size_of::<Array>().saturating_add(count.saturating_mul(size_of::<Value>())))?)
    }
}
