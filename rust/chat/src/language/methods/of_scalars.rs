//! Methods and filters of numbers, booleans, None and undefined values.
//!
//! Source: the `get_builtins` of these types in `common/jinja/value.cpp` of llama.cpp. Deviations: none.

use super::super::failure::Outcome;
use super::super::show::{string, tojson};
use super::super::value::{Args, Native, Value, float_to_int};
use crate::text::{Origin, Text};

pub(crate) fn method(value: &Value, name: &[u8]) -> Option<Native> {
    use Value::{Bool, Float, Int, None, Undefined};

    Some(match (value, name) {
        (Int(..), b"abs") => |_, args| number(args, Int, |this| this.as_int().map(i64::wrapping_abs)),
        (Float(..), b"abs") => |_, args| number(args, Float, |this| this.as_float().map(absolute)),
        (Int(..) | Bool(_), b"int") => |_, args| number(args, Int, Value::as_int),
        (Float(..), b"int") => |_, args| number(args, Int, |this| this.as_float().map(float_to_int)),
        (Int(..) | Bool(_), b"float") => |_, args| number(args, Float, |this| this.as_int().map(|int| int as f64)),
        (Float(..), b"float") => |_, args| number(args, Float, Value::as_float),
        (Int(..) | Float(..), b"safe" | b"string") => tojson,
        (Bool(_) | None, b"safe") => string,
        (Undefined(_), b"first" | b"last" | b"max" | b"min") => |_, _| Ok(Value::UNDEFINED),
        (Undefined(_), b"length" | b"sum" | b"wordcount") => |_, _| Ok(Value::int(0)),
        (
            Undefined(_),
            b"capitalize" | b"join" | b"lower" | b"replace" | b"safe" | b"string" | b"strip" | b"title" | b"truncate"
            | b"upper",
        ) => |_, _| Ok(Value::string(Text::default())),
        (Undefined(_), b"list" | b"reverse" | b"sort")
        | (
            Undefined(_) | None,
            b"items" | b"map" | b"reject" | b"rejectattr" | b"select" | b"selectattr" | b"unique",
        ) => |_, _| Ok(Value::array(Vec::new())),
        _ => return Option::None,
    })
}

/// The number that is made of a value, with the value's origin.
fn number<N>(args: &Args, made: fn(N, Origin) -> Value, read: fn(&Value) -> Outcome<N>) -> Outcome<Value> {
    let this = args.at(0)?;
    Ok(made(read(this)?, this.number_origin()))
}

/// The sign of a zero or a NaN stays.
fn absolute(value: f64) -> f64 {
    if value < 0.0 { -value } else { value }
}
