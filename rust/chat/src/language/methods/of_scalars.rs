//! Methods and filters of numbers, booleans, None and undefined values.
//!
//! Source: the `get_builtins` of these types in `common/jinja/value.cpp` of llama.cpp. Deviations: none.

use super::super::failure::Outcome;
use super::super::show::tojson;
use super::super::value::{Args, Native, Run, Value, float_to_int};
use super::{default, string};
use crate::text::{Origin, Text};

pub(crate) fn of_number(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"abs" => |_, args| match args.at(0)? {
            Value::Int(value, origin) => Ok(Value::Int(value.wrapping_abs(), *origin)),
            this => map_float(this, |value| if value < 0.0 { -value } else { value }),
        },
        b"int" => |_, args| match args.at(0)? {
            Value::Float(value, origin) => Ok(Value::Int(float_to_int(*value), *origin)),
            int => Ok(int.clone()),
        },
        b"float" => |_, args| match args.at(0)? {
            Value::Int(value, origin) => Ok(Value::Float(*value as f64, *origin)),
            this => map_float(this, |value| value),
        },
        b"safe" | b"string" => tojson,
        _ => return None,
    })
}

fn map_float(this: &Value, function: fn(f64) -> f64) -> Outcome<Value> {
    Ok(Value::Float(function(this.as_float()?), this.number_origin()))
}

pub(crate) fn of_bool(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"int" => |_, args| Ok(Value::int(args.at(0)?.as_int()?)),
        b"float" => |_, args| Ok(Value::Float(args.at(0)?.as_int()? as f64, Origin::TEMPLATE)),
        b"safe" => string,
        _ => return None,
    })
}

pub(crate) fn of_none(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"safe" => string,
        b"items" | b"map" | b"reject" | b"rejectattr" | b"select" | b"selectattr" | b"unique" => empty_array,
        _ => return None,
    })
}

pub(crate) fn of_undefined(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"default" => default,
        b"first" | b"last" | b"max" | b"min" => |_, _| Ok(Value::UNDEFINED),
        b"length" | b"sum" | b"wordcount" => |_, _| Ok(Value::int(0)),
        b"capitalize" | b"join" | b"lower" | b"replace" | b"safe" | b"string" | b"strip" | b"title" | b"truncate"
        | b"upper" => |_, _| Ok(Value::string(Text::default())),
        b"items" | b"list" | b"map" | b"reject" | b"rejectattr" | b"reverse" | b"select" | b"selectattr" | b"sort"
        | b"unique" => empty_array,
        _ => return None,
    })
}

fn empty_array(_: &mut Run<'_>, _: &Args) -> Outcome<Value> {
    Ok(Value::array(Vec::new()))
}
