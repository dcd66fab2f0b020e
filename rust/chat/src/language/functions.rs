//! Functions and tests, and the tables in which names are looked up.
//!
//! Source: `global_builtins` in `common/jinja/value.cpp` of llama.cpp. Deviations: 1. Division by zero in `divisibleby`
//! is an error; llama.cpp crashes. 2. Equal floating-point numbers are one to `sameas`.

use super::failure::{Failure, Outcome, failed};
use super::operators::{self, Operator, compare, contains};
use super::show::tojson;
use super::value::{Args, Entries, Native, Run, Value, same};
use crate::clock::strftime;
use crate::text::Text;

/// The function of a name.
pub(crate) fn global(name: &[u8]) -> Option<Native> {
    if let Some(name) = name.strip_prefix(b"test_is_") {
        return test(name);
    }
    Some(match name {
        b"raise_exception" => raise_exception,
        b"dict" | b"namespace" => to_object,
        b"strftime_now" => strftime_now,
        b"range" => range,
        b"tojson" => tojson,
        _ => return None,
    })
}

/// The test of a name.
pub(crate) fn test(name: &[u8]) -> Option<Native> {
    use Value::{Array, Bool, Float, Function, Int, None, Object, String, Undefined};

    Some(match name {
        b"boolean" => |_, args| is(args, |value| matches!(value, Bool(_))),
        b"callable" => |_, args| is(args, |value| matches!(value, Function(_))),
        b"defined" => |_, args| is(args, |value| !value.is_undefined()),
        b"false" => |_, args| is(args, |value| matches!(value, Bool(false))),
        b"float" => |_, args| is(args, |value| matches!(value, Float(..))),
        b"integer" => |_, args| is(args, |value| matches!(value, Int(..))),
        b"mapping" => |_, args| is(args, |value| matches!(value, Object(_))),
        b"none" => |_, args| is(args, |value| matches!(value, None)),
        b"number" => |_, args| is(args, |value| matches!(value, Int(..) | Float(..))),
        b"string" => |_, args| is(args, |value| matches!(value, String(_))),
        b"true" => |_, args| is(args, |value| matches!(value, Bool(true))),
        b"undefined" => |_, args| is(args, Value::is_undefined),
        b"iterable" | b"sequence" => {
            |_, args| is(args, |value| matches!(value, Object(_) | Array(_) | String(_) | Undefined(_)))
        }

        b"eq" | b"equalto" => |run, args| compares(run, args, "=="),
        b"ge" => |run, args| compares(run, args, ">="),
        b"gt" | b"greaterthan" => |run, args| compares(run, args, ">"),
        b"lt" | b"lessthan" => |run, args| compares(run, args, "<"),
        b"ne" => |run, args| compares(run, args, "!="),

        b"odd" => |_, args| Ok(Value::Bool(args.int(0)? % 2 != 0)),
        b"even" => |_, args| Ok(Value::Bool(args.int(0)? % 2 == 0)),
        b"divisibleby" => |_, args| match args.int(0)?.checked_rem(args.int(1)?) {
            Some(remainder) => Ok(Value::Bool(remainder == 0)),
            Option::None => failed("cannot divide by this number"),
        },
        b"lower" => |_, args| Ok(Value::Bool(!args.text(0)?.as_bytes().iter().any(u8::is_ascii_uppercase))),
        b"upper" => |_, args| Ok(Value::Bool(!args.text(0)?.as_bytes().iter().any(u8::is_ascii_lowercase))),
        b"in" => |run, args| {
            args.check_len(2, 999)?;
            Ok(Value::Bool(contains(run, args.at(0)?, args.at(1)?)?))
        },
        b"test" => |_, args| Ok(Value::Bool(test(args.text(0)?.as_bytes()).is_some())),
        b"sameas" => |_, args| Ok(Value::Bool(is_same(args.at(0)?, args.at(1)?))),
        b"escaped" => |_, _| failed("llama.cpp does not have the test 'escaped'"),
        b"filter" => |_, _| failed("llama.cpp does not have the test 'filter'"),
        _ => return Option::None,
    })
}

/// The test of a name that a template gives. An error if there is none.
pub(crate) fn known_test(name: &Text) -> Outcome<Native> {
    test(name.as_bytes()).map_or_else(|| failed(format!("unknown test '{name}'")), Ok)
}

fn is(args: &Args, test: fn(&Value) -> bool) -> Outcome<Value> {
    Ok(Value::Bool(test(args.at(0)?)))
}

fn compares(run: &mut Run<'_>, args: &Args, comparison: Operator) -> Outcome<Value> {
    args.check_len(2, 2)?;
    Ok(Value::Bool(compare(run, args.at(0)?, args.at(1)?, comparison)?))
}

/// Whether Python would say that two values are one and the same.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        // Python keeps one object for each of the small numbers.
        (Value::Int(a, _), Value::Int(b, _)) => a == b && (-5..=256).contains(a),
        (Value::Float(a, _), Value::Float(b, _)) => a.to_bits() == b.to_bits(),
        _ => same(a, b),
    }
}

fn raise_exception(_: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    Err(Box::new(Failure::Raised(args.text(0)?.to_string())))
}

/// `dict(pairs or object, key=value, ...)`
fn to_object(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let mut entries = Entries::default();
    let mut add = |key: &Value, value: &Value| -> Outcome<()> {
        run.budget.bytes(64)?;
        operators::check_key(run, key)?;
        entries.set(key.clone(), value.clone());
        Ok(())
    };
    for (at, value) in args.values.iter().enumerate() {
        match value {
            Value::Array(pairs) if at == 0 => {
                for pair in pairs.items.borrow().iter() {
                    let Value::Array(pair) = pair else {
                        return failed(format!("{} is not a pair of a key and a value", pair.type_name()));
                    };
                    let [key, value] = &pair.items.borrow()[..] else {
                        return failed("an array that is not a pair of a key and a value");
                    };
                    add(key, value)?;
                }
            }
            Value::Object(object) if at == 0 => {
                object.entries.borrow().iter().try_for_each(|(key, value)| add(key, value))?;
            }
            Value::KwArg(argument) => add(&Value::String(argument.name.clone()), &argument.value)?,
            _ => return args.expected("keyword arguments", &value.type_name()),
        }
    }
    Ok(Value::object(entries))
}

fn strftime_now(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let format = args.text(0)?.as_bytes();
    // A conversion writes at most about sixteen times its bytes.
    run.budget.bytes(format.len().saturating_mul(16))?;
    match strftime(format.split(|&byte| byte == 0).next().unwrap_or_default(), run.now) {
        Some(text) => Ok(Value::string(Text::template(text))),
        None => failed("the time in this format is empty or too long, or the format is unknown"),
    }
}

/// `range(stop)`, `range(start, stop)`, `range(start, stop, step)`
fn range(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 3)?;
    let first = args.int(0)?;
    let (start, stop) = if args.len() == 1 { (0, first) } else { (first, args.at(1)?.as_int()?) };
    let step = if args.len() == 3 { args.at(2)?.as_int()? } else { 1 };
    if step == 0 {
        return failed("the step of a range must not be zero");
    }
    let distance = (i128::from(stop) - i128::from(start)) * i128::from(step.signum());
    let count = distance.max(0).unsigned_abs().div_ceil(step.unsigned_abs().into()) as usize;
    run.charge_items(count)?;
    Ok(Value::array((0..count as i64).map(|at| Value::int(start + at * step)).collect()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::render;
    use super::*;

    #[test]
    fn what_is_too_much_is_refused() {
        let templates = [
            "{{ range(1000000000000) }}",
            "{{ range(-9223372036854775807, 9223372036854775807) }}",
            "{{ 'ab' * 10000000000 }}",
            "{{ 'a'|indent(100000000000) }}",
            "{{ [1]|tojson(indent=2147483647) }}",
            "{% set n = namespace(t=(1, 1)) %}{% for i in range(99) %}{% set n.t = (n.t, n.t) %}{% endfor %}{{ TEST }}",
            "{% set n = namespace(t=[1]) %}{% for i in range(99) %}{% set n.t = [n.t, n.t] %}{% endfor %}{{ TEST }}",
            "{% set a = [] %}{% set b = a.append(a) %}{{ a|string }}",
            "{% set a = [] %}{% set b = a.append(a) %}{{ a|tojson }}",
        ];
        for template in templates {
            for test in ["n.t|string", "n.t|tojson", "n.t == n.t", "n.t in [n.t]"] {
                if test.contains("==") && template.contains("[n.t") {
                    break;
                }
                assert!(render(&template.replace("TEST", test), Value::None).is_err(), "{template} {test}");
            }
        }
        assert_eq!(render(&templates[6].replace("TEST", "n.t == n.t"), Value::None).unwrap(), "False");
    }

    #[test]
    fn ranges_stop_where_numbers_end() {
        let last = "{{ range(9223372036854775800, 9223372036854775807, 4)|last }}";
        assert_eq!(render(last, Value::None).unwrap(), "9223372036854775804");
        let down = "{{ range(5, -9223372036854775807, -9223372036854775807)|string }}";
        assert_eq!(render(down, Value::None).unwrap(), "[5, -9223372036854775802]");
    }
}
