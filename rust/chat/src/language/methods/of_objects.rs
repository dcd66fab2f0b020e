//! Methods and filters of objects.
//!
//! Source: `value_object_t::get_builtins` in `common/jinja/value.cpp` of llama.cpp. Deviations: none.

use ggtok_core::internals::introsort_by;

use super::super::failure::{Outcome, failed};
use super::super::operators::compare;
use super::super::value::{Args, Array, Entries, Native, Run, Value};

pub(crate) fn method(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"get" => get,
        b"keys" => |run, args| list(run, args, |(key, _)| key.clone()),
        b"values" => |run, args| list(run, args, |(_, value)| value.clone()),
        b"items" => |run, args| list(run, args, |(key, value)| Value::sequence(vec![key.clone(), value.clone()], true)),
        b"length" => |_, args| Ok(Value::size(args.object(0)?.entries.borrow().len())),
        b"dictsort" => dictsort,
        b"join" => |_, _| failed("llama.cpp cannot join objects"),
        _ => return None,
    })
}

/// `get(object, key, default)`
fn get(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(2, 3)?;
    run.budget.steps(1 + args.text(1)?.len() / 64)?;
    let value = args.object(0)?.entries.borrow().get(args.at(1)?).cloned();
    Ok(value.or_else(|| args.values.get(2).cloned()).unwrap_or(Value::None))
}

/// A list of what is made of each entry. Pays for pairs, whatever that is.
fn list(run: &mut Run<'_>, args: &Args, part: fn(&(Value, Value)) -> Value) -> Outcome<Value> {
    let entries = args.object(0)?.entries.borrow();
    run.budget.bytes(entries.len().saturating_mul(size_of::<Array>() + 3 * size_of::<Value>()))?;
    Ok(Value::array(entries.iter().map(part).collect()))
}

/// `dictsort(object, case_sensitive, by, reverse)`: always case-sensitive.
fn dictsort(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let comparison = if args.named("reverse", 3).as_bool()? { ">" } else { "<" };
    let by_value = matches!(args.named("by", 2), Value::String(by) if by.text == "value");
    let entries = args.object(0)?.entries.borrow();
    run.budget.bytes(64 * entries.len())?;
    let mut pairs: Vec<&(Value, Value)> = entries.iter().collect();
    let by: fn(&(Value, Value)) -> &Value = if by_value { |pair| &pair.1 } else { |pair| &pair.0 };
    introsort_by(&mut pairs, |a, b| compare(run, by(a), by(b), comparison))?;
    let mut sorted = Entries::with_capacity(pairs.len());
    for (key, value) in pairs {
        sorted.push(key.clone(), value.clone());
    }
    Ok(Value::object(sorted))
}
