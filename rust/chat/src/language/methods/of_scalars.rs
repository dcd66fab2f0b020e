//! Methods and filters of numbers, booleans, None and undefined values.
//!
//! Source: the `get_builtins` of these types in `common/jinja/value.cpp` of llama.cpp. Deviations: none.

use super::super::failure::Outcome;
use super::super::show::{string, tojson};
use super::super::value::{Native, Value, float_to_int};
use crate::text::{Origin, Text};

pub(crate) fn method(value: &Value, name: &[u8]) -> Option<Native> {
    use Value::{Bool, Float, Int, None, Undefined};

    Some(match (value, name) {
        (Int(..) | Float(..), b"abs") => |_, args| match args.at(0)? {
            Int(value, origin) => Ok(Int(value.wrapping_abs(), *origin)),
            this => map_float(this, |value| if value < 0.0 { -value } else { value }),
        },
        (Int(..) | Float(..), b"int") => |_, args| match args.at(0)? {
            Float(value, origin) => Ok(Int(float_to_int(*value), *origin)),
            int => Ok(int.clone()),
        },
        (Int(..) | Float(..), b"float") => |_, args| match args.at(0)? {
            Int(value, origin) => Ok(Float(*value as f64, *origin)),
            this => map_float(this, |value| value),
        },
        (Int(..) | Float(..), b"safe" | b"string") => tojson,
        (Bool(_), b"int") => |_, args| Ok(Value::int(args.at(0)?.as_int()?)),
        (Bool(_), b"float") => |_, args| Ok(Float(args.at(0)?.as_int()? as f64, Origin::TEMPLATE)),
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

fn map_float(this: &Value, function: fn(f64) -> f64) -> Outcome<Value> {
    Ok(Value::Float(function(this.as_float()?), this.number_origin()))
}
