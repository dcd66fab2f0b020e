//! Which methods and filters a value has, and what several types share of them.
//!
//! Source: the `get_builtins` of the types in `common/jinja/value.cpp` of llama.cpp. Deviations: see each type's file.

mod of_arrays;
mod of_objects;
mod of_scalars;
mod of_strings;

use super::failure::{Outcome, failed};
use super::show::{string, tojson};
use super::value::{Args, Entries, Native, Run, Value};

/// The method or filter of a name that a value has. An error for what never has any.
pub(crate) fn method(value: &Value, name: &[u8]) -> Outcome<Option<Native>> {
    let own = match value {
        Value::String(_) => of_strings::method(name),
        Value::Array(_) => of_arrays::method(name),
        Value::Object(object) if !object.has_builtins => return Ok(None),
        Value::Object(_) => of_objects::method(name),
        Value::Function(_) | Value::KwArg(_) => return failed(format!("{} has no methods", value.type_name())),
        _ => of_scalars::method(value, name),
    };
    Ok(own.or(match (value, name) {
        (Value::Undefined(_), b"tojson") | (Value::Object(_), b"default") => None,
        (_, b"default") => Some(default),
        (_, b"string") => Some(string),
        (_, b"tojson") => Some(tojson),
        _ => None,
    }))
}

/// Whether any value except an undefined one has a method or filter of this name.
pub(crate) fn is_known(name: &[u8]) -> bool {
    let (array, object) = (Value::array(Vec::new()), Value::object(Entries::default()));
    let values = [Value::None, Value::Bool(true), Value::int(0), Value::string(""), array, object];
    values.iter().any(|value| method(value, name).is_ok_and(|method| method.is_some()))
}

/// `default(value, instead, boolean)`: of values that are undefined or None, or else not true.
fn default(_: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(2, 3)?;
    let value = args.at(0)?;
    let is_missing = if args.named("boolean", 2).as_bool()? {
        !value.as_bool()?
    } else {
        matches!(value, Value::Undefined(_) | Value::None)
    };
    Ok(if is_missing { args.at(1)?.clone() } else { value.clone() })
}

/// The places that `start:stop:step` means in something of this length.
fn places(args: &Args, len: usize) -> Outcome<impl Iterator<Item = usize> + Clone + use<>> {
    args.check_len(2, 4)?;
    let len = len as i64;
    let step = args.at(3)?.as_int()?;
    if step == 0 {
        return failed("the step of a slice must not be zero");
    }
    let (first, last) = if step < 0 { (len - 1, -1) } else { (0, len) };
    let from_end = |place: i64, lowest: i64| {
        if place < lowest { (len + place).max(lowest) } else { place.min(first.max(last)) }
    };
    let start = from_end(args.int(1)?, 0);
    let stop = from_end(args.at(2)?.as_int()?, last.min(0));
    let places = std::iter::successors(Some(start), move |place| place.checked_add(step));
    let places = places.take_while(move |&place| if step > 0 { place < stop } else { place > stop });
    Ok(places.filter(move |place| (0..len).contains(place)).map(|place| place as usize))
}
