//! The variables of a template, as slots that scopes save and restore.
//!
//! Time: O(1) for setting a variable, and O(variables that it set) for closing a scope.

use super::super::ast::NameId;
use super::super::value::Value;

/// The variables.
#[derive(Default)]
pub(super) struct Scopes {
    pub(super) slots: Vec<Value>,
    /// The scope in which each slot was last set.
    set_in: Vec<u32>,
    /// Slots to be restored, and to what.
    saved: Vec<(NameId, Value, u32)>,
    /// The number of the innermost scope.
    current: u32,
}

impl Scopes {
    pub(super) fn new(slots: Vec<Value>) -> Self {
        Self { set_in: vec![0; slots.len()], slots, ..Self::default() }
    }

    pub(super) fn set(&mut self, name: NameId, value: Value) {
        let at = name as usize;
        let old = std::mem::replace(&mut self.slots[at], value);
        if self.set_in[at] != self.current {
            self.saved.push((name, old, self.set_in[at]));
            self.set_in[at] = self.current;
        }
    }

    /// Opens a scope. Returns how to close it.
    pub(super) fn open(&mut self) -> usize {
        self.current += 1;
        self.saved.len()
    }

    pub(super) fn close(&mut self, opened: usize) {
        self.current -= 1;
        for (name, value, scope) in self.saved.drain(opened..).rev() {
            self.slots[name as usize] = value;
            self.set_in[name as usize] = scope;
        }
    }
}
