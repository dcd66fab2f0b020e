//! What a rendering is given besides its variables: the time, and what it may spend.

use super::super::failure::{Failure, Outcome};
use super::{Value, held, mark};
use crate::budget::Budget;
use crate::clock::Now;

/// What functions and the machine share.
pub(crate) struct Run<'p> {
    pub(crate) now: &'p Now,
    /// Whether what is done to values is noted.
    pub(crate) notes: bool,
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
    /// Pays for steps.
    pub(crate) fn charge_steps(&mut self, count: usize) -> Outcome<()> {
        self.budget.steps(count).map_err(|error| Box::new(Failure::At(error)))
    }

    /// Notes what is done to a value, if that is wanted.
    pub(crate) fn note(&self, value: &Value, marks: u8) {
        if self.notes {
            value.note(marks);
        }
    }

    /// Notes that a container gets an item.
    pub(crate) fn change(&mut self, container: &Value, item: &Value) -> Outcome<()> {
        if item.is_nested() && container.marks() & mark::CHANGED == 0 {
            self.charge_bytes(2 * size_of::<Value>())?;
            container.note(mark::CHANGED);
            self.changed.0.push(container.clone());
        }
        Ok(())
    }

    /// Pays for a string, whose bytes [`Str::cost`](super::Str::cost) computes.
    pub(crate) fn charge_string(&mut self, cost: usize) -> Outcome<()> {
        let held = held() + self.written + self.begun;
        self.budget.string(cost, held).map_err(|error| Box::new(Failure::At(error)))?;
        self.begun += cost;
        Ok(())
    }

    /// Pays for memory that is about to be allocated.
    pub(crate) fn charge_bytes(&mut self, count: usize) -> Outcome<()> {
        self.budget.bytes(count).map_err(|error| Box::new(Failure::At(error)))
    }
}
