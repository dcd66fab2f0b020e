//! Which methods and filters a value has.

use super::failure::{Outcome, failed};
use super::value::{Native, Value};
use super::{on_arrays, on_objects, on_scalars, on_strings};

/// The method or filter of a name that a value has. An error for what never has any.
pub(crate) fn method(value: &Value, name: &[u8]) -> Outcome<Option<Native>> {
    Ok(match value {
        Value::Undefined(_) => on_scalars::of_undefined(name),
        Value::None => on_scalars::of_none(name),
        Value::Bool(_) => on_scalars::of_bool(name),
        Value::Int(..) | Value::Float(_) => on_scalars::of_number(name),
        Value::String(_) => on_strings::method(name),
        Value::Array(_) => on_arrays::method(name),
        Value::Object(object) if object.has_builtins => on_objects::method(name),
        Value::Object(_) => None,
        Value::Function(_) | Value::KwArg(_) => return failed(format!("{} has no methods", value.type_name())),
    })
}

/// Whether any value except an undefined one has a method or filter of this name.
pub(crate) fn is_known(name: &[u8]) -> bool {
    use on_scalars::{of_bool, of_none, of_number};

    let tables = [of_none, of_bool, of_number, on_strings::method, on_arrays::method, on_objects::method];
    tables.iter().any(|table| table(name).is_some())
}
