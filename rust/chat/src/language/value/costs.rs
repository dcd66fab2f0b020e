//! What values cost, and noting that they were read.

use super::super::failure::Outcome;
use super::Run;
use super::{Array, Str, Value, check_depth, mark};
use crate::text::Text;

/// Pays for a string of `len` bytes and `num_runs` runs.
pub(crate) fn charge_string(run: &mut Run<'_>, len: usize, num_runs: usize) -> Outcome<()> {
    run.charge_string(Str::cost(len, num_runs))
}

/// Pays for a copy of a text.
pub(crate) fn charge_text(run: &mut Run<'_>, text: &Text) -> Outcome<()> {
    charge_string(run, text.len(), text.num_runs())
}

/// Pays for an array of so many items.
pub(crate) fn charge_items(run: &mut Run<'_>, count: usize) -> Outcome<()> {
    run.charge_steps(count)?;
    run.charge_bytes(size_of::<Array>().saturating_add(count.saturating_mul(size_of::<Value>())))
}

/// Notes that a value and everything in it was read, if that is wanted.
pub(crate) fn note_deeply(run: &mut Run<'_>, value: &Value, depth: usize) -> Outcome<()> {
    if !run.notes {
        return Ok(());
    }
    check_depth(depth)?;
    run.charge_steps(1)?;
    value.note(mark::USED);
    match value {
        Value::Array(array) => array.items.borrow().iter().try_for_each(|item| note_deeply(run, item, depth + 1)),
        Value::Object(object) => object.entries.borrow().iter().try_for_each(|(key, value)| {
            note_deeply(run, key, depth + 1)?;
            note_deeply(run, value, depth + 1)
        }),
        _ => Ok(()),
    }
}
