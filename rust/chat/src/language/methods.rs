//! Which methods and filters a value has, and what several types share of them.
//!
//! Source: the `get_builtins` of the types in `common/jinja/value.cpp` of llama.cpp. Deviations: see each type's file.

mod of_arrays;
mod of_objects;
mod of_scalars;
mod of_strings;

use super::failure::{Outcome, failed};
use super::show::tojson;
use super::value::{Args, Native, Run, Value};

/// The method or filter of a name that a value has. An error for what never has any.
pub(crate) fn method(value: &Value, name: &[u8]) -> Outcome<Option<Native>> {
    let own = match value {
        Value::Undefined(_) => return Ok(of_scalars::of_undefined(name)),
        Value::None => of_scalars::of_none(name),
        Value::Bool(_) => of_scalars::of_bool(name),
        Value::Int(..) | Value::Float(..) => of_scalars::of_number(name),
        Value::String(_) => of_strings::method(name),
        Value::Array(_) => of_arrays::method(name),
        Value::Object(object) if !object.has_builtins => return Ok(None),
        Value::Object(_) => return Ok(of_objects::method(name)),
        Value::Function(_) | Value::KwArg(_) => return failed(format!("{} has no methods", value.type_name())),
    };
    Ok(own.or_else(|| of_all(name)))
}

/// What is the same for all values except objects and undefined ones.
fn of_all(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"default" => default,
        b"string" => string,
        b"tojson" => tojson,
        _ => return None,
    })
}

/// Whether any value except an undefined one has a method or filter of this name.
pub(crate) fn is_known(name: &[u8]) -> bool {
    use of_scalars::{of_bool, of_none, of_number};

    let tables = [of_all, of_none, of_bool, of_number, of_strings::method, of_arrays::method, of_objects::method];
    tables.iter().any(|table| table(name).is_some())
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

/// The value as a string.
fn string(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let this = args.at(0)?;
    run.note_deeply(this, 0)?;
    Ok(Value::string(this.as_text(run)?.into_owned()))
}

/// The places that `start:stop:step` means in something of this length. A bound that is left out is an argument with an
/// empty name.
fn places(args: &Args, len: usize) -> Outcome<impl Iterator<Item = usize> + Clone + use<>> {
    args.check_len(2, 4)?;
    let len = len as i64;
    let part = |at: usize, default: i64| match args.at(at)? {
        Value::KwArg(left_out) if left_out.name.text.is_empty() => Ok(default),
        _ if at == 1 => args.int(at),
        value => value.as_int(),
    };
    let step = part(3, 1)?;
    if step == 0 {
        return failed("the step of a slice must not be zero");
    }
    let (first, last) = if step < 0 { (len - 1, -1) } else { (0, len) };
    let from_end = |place: i64, lowest: i64| {
        if place < lowest { (len + place).max(lowest) } else { place.min(first.max(last)) }
    };
    let start = from_end(part(1, first)?, 0);
    let stop = from_end(part(2, last)?, last.min(0));
    let places = std::iter::successors(Some(start), move |place| place.checked_add(step));
    let places = places.take_while(move |&place| if step > 0 { place < stop } else { place > stop });
    Ok(places.filter(move |place| (0..len).contains(place)).map(|place| place as usize))
}
