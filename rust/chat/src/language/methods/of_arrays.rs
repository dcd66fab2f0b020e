//! Methods and filters of lists and tuples.
//!
//! Source: `value_array_t::get_builtins` in `common/jinja/value.cpp` of llama.cpp. Deviations: 1. Strings keep their
//! origins when they are joined.

use ggtok_core::internals::introsort_by;

use super::super::failure::{Outcome, failed};
use super::super::functions::known_test;
use super::super::operators::{self, Operator, compare};
use super::super::value::{Args, Array, Native, Run, Str, Value};
use super::places;
use crate::text::Text;

pub(crate) fn method(name: &[u8]) -> Option<Native> {
    Some(match name {
        b"list" => |run, args| copy(run, args.array(0)?).map(Value::array),
        b"first" => |_, args| Ok(args.array(0)?.items.borrow().first().cloned().unwrap_or(Value::UNDEFINED)),
        b"last" => |_, args| Ok(args.array(0)?.items.borrow().last().cloned().unwrap_or(Value::UNDEFINED)),
        b"length" => |_, args| Ok(Value::size(args.array(0)?.items.borrow().len())),
        b"slice" => slice,
        b"select" | b"selectattr" => |run, args| select(run, args, true),
        b"reject" | b"rejectattr" => |run, args| select(run, args, false),
        b"join" => join,
        b"map" => map,
        b"append" => append,
        b"pop" => pop,
        b"sort" => sort,
        b"reverse" => |run, args| {
            let mut items = copy(run, args.array(0)?)?;
            items.reverse();
            Ok(Value::sequence(items, args.array(0)?.is_tuple))
        },
        b"min" => |run, args| extreme(run, args, "<"),
        b"max" => |run, args| extreme(run, args, ">"),
        b"unique" => |_, _| failed("llama.cpp does not have 'unique'"),
        _ => return None,
    })
}

/// A copy of the items.
fn copy(run: &mut Run<'_>, array: &Array) -> Outcome<Vec<Value>> {
    run.charge_items(array.items.borrow().len())?;
    Ok(array.items.borrow().clone())
}

impl Value {
    /// The item of an array or an object that an attribute names.
    pub(crate) fn attribute(&self, name: &Self) -> Option<Self> {
        match (self, name) {
            (_, Self::Undefined(_)) => None,
            (Self::Array(array), Self::Int(..) | Self::Bool(_)) => array.item(name.as_int().ok()?),
            (Self::Array(array), Self::String(string)) => digits(string).and_then(|index| array.item(index)),
            (Self::Object(object), _) => object.entries.borrow().get(name).cloned(),
            _ => None,
        }
    }
}

/// The item of an array or an object that an attribute names, or `missing`.
fn attribute_of(run: &mut Run<'_>, value: &Value, attribute: &Value, missing: &Value) -> Outcome<Value> {
    let is_read = matches!((value, attribute), (Value::Object(_), _) | (Value::Array(_), Value::String(_)));
    if is_read && !attribute.is_undefined() {
        operators::check_key(run, attribute)?;
    }
    Ok(value.attribute(attribute).unwrap_or_else(|| missing.clone()))
}

/// What an item is joined or ordered by: an attribute of it, or the item itself if none is named.
fn key_of(run: &mut Run<'_>, item: &Value, attribute: &Value) -> Outcome<Value> {
    let missing = if attribute.is_undefined() { item } else { &Value::UNDEFINED };
    attribute_of(run, item, attribute, missing)
}

/// A string of digits as a number.
fn digits(string: &Str) -> Option<i64> {
    let text = std::str::from_utf8(string.text.as_bytes()).ok()?;
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

/// `slice(array, start, stop, step)`
fn slice(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    let array = args.array(0)?;
    let items = array.items.borrow();
    let places = places(args, items.len())?;
    run.charge_items(places.clone().count())?;
    Ok(Value::sequence(places.map(|place| items[place].clone()).collect(), array.is_tuple))
}

/// `selectattr(array, attribute, test, argument)`, `select(array, test, argument)` or `selectattr(array, attribute)`:
/// the number of arguments says which.
fn select(run: &mut Run<'_>, args: &Args, wanted: bool) -> Outcome<Value> {
    args.check_len(2, 4)?;
    let items = args.array(0)?.items.borrow();
    run.charge_items(items.len())?;
    args.text(1)?;
    let test = match args.len() {
        2 => None,
        count => Some((known_test(args.text(count - 2)?)?, args.at(count - 1)?)),
    };
    let mut selected = Vec::new();
    for item in items.iter() {
        let value = match args.len() {
            3 => item.clone(),
            _ => attribute_of(run, item, args.at(1)?, &Value::UNDEFINED)?,
        };
        let holds = match test {
            Some((test, argument)) => {
                test(run, &Args { name: args.name.clone(), values: vec![value, argument.clone()] })?.as_bool()?
            }
            None => value.as_bool()?,
        };
        if holds == wanted {
            selected.push(item.clone());
        }
    }
    Ok(Value::array(selected))
}

/// `join(array, d, attribute)`
fn join(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 3)?;
    let items = args.array(0)?.items.borrow();
    let separator = args.named_or("d", 1, Value::string("")).as_text(run)?.into_owned();
    let attribute = args.named("attribute", 2);
    let mut joined = Text::default();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            run.budget.bytes(separator.num_bytes())?;
            joined.extend_with(&separator);
        }
        let item = key_of(run, item, &attribute)?;
        if !matches!(item, Value::String(_) | Value::Int(..) | Value::Float(..)) {
            return failed(format!("join takes strings and numbers, not {}", item.type_name()));
        }
        let text = item.as_text(run)?;
        run.budget.bytes(text.num_bytes())?;
        joined.extend_with(&text);
    }
    Ok(Value::string(joined))
}

/// `map(array, attribute=..., default=...)`
fn map(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(2, 999)?;
    let array = args.array(0)?;
    if !matches!(args.at(1)?, Value::KwArg(_)) {
        return failed("llama.cpp's map takes attributes and not filters");
    }
    let attribute = args.named("attribute", 1);
    let missing = args.keyword(b"default").cloned().unwrap_or(Value::UNDEFINED);
    let mut items = copy(run, array)?;
    for item in &mut items {
        *item = attribute_of(run, item, &attribute, &missing)?;
    }
    Ok(Value::sequence(items, array.is_tuple))
}

/// `append(array, item)`
fn append(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(2, 999)?;
    let array = args.array(0)?;
    if array.is_tuple {
        return failed("a tuple cannot be changed");
    }
    // A growing vector doubles.
    run.budget.bytes(4 * size_of::<Value>())?;
    run.change(args.at(0)?, args.at(1)?)?;
    array.items.borrow_mut().push(args.at(1)?.clone());
    Ok(args.at(0)?.clone())
}

/// `pop(array, index)`
fn pop(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 2)?;
    let array = args.array(0)?;
    let index = if args.len() == 2 { args.at(1)?.as_int()? } else { -1 };
    let len = array.items.borrow().len();
    let Some(place) = array.place(index).filter(|_| !array.is_tuple) else {
        return failed(format!("cannot take item {index} out of {len}"));
    };
    run.budget.steps(1 + (len - place) / 4)?;
    Ok(array.items.borrow_mut().remove(place))
}

/// `sort(array, reverse, case_sensitive, attribute)`: always case-sensitive.
fn sort(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 4)?;
    let array = args.array(0)?;
    let comparison = if args.named("reverse", 1).as_bool()? { ">" } else { "<" };
    let attribute = args.named("attribute", 3);
    let items = array.items.borrow();
    run.charge_items(2 * items.len())?;
    let mut sorted: Vec<&Value> = items.iter().collect();
    introsort_by(&mut sorted, |a, b| compare_keys(run, a, b, &attribute, comparison))?;
    Ok(Value::sequence(sorted.into_iter().cloned().collect(), array.is_tuple))
}

/// Whether a comparison holds for what two items are ordered by.
fn compare_keys(run: &mut Run<'_>, a: &Value, b: &Value, attribute: &Value, comparison: Operator) -> Outcome<bool> {
    let [a, b] = [key_of(run, a, attribute)?, key_of(run, b, attribute)?];
    compare(run, &a, &b, comparison)
}

/// `min(array, case_sensitive, attribute)`, `max`: always case-sensitive.
fn extreme(run: &mut Run<'_>, args: &Args, comparison: Operator) -> Outcome<Value> {
    args.check_len(1, 4)?;
    let attribute = args.named("attribute", 2);
    let items = args.array(0)?.items.borrow();
    let mut best = items.first().unwrap_or(&Value::UNDEFINED);
    // The first item is compared with itself, which fails if it is a boolean.
    for item in items.iter() {
        if compare_keys(run, item, best, &attribute, comparison)? {
            best = item;
        }
    }
    Ok(best.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::language::tests::render;

    #[test]
    fn slices_as_python_does_and_not() {
        let cases = [
            ("[:]", "(1, 2, 3, 4)"),
            ("[1:-1]", "(2, 3)"),
            ("[-100:100:3]", "(1, 4)"),
            ("[::-1]", "(4, 3, 2, 1)"),
            ("[3:0:-2]", "(4, 2)"),
            ("[::9223372036854775807]", "(1,)"),
            ("[2:-1:-1]", "(3, 2, 1)"),
        ];
        for (slice, expected) in cases {
            let text = render(&format!("{{{{ (1, 2, 3, 4){slice}|string }}}}"), Value::None).unwrap();
            assert_eq!(text, expected, "{slice}");
        }
        assert!(render("{{ [1][::0] }}", Value::None).is_err());
        assert!(render("{{ [1][([]|first):] }}", Value::None).is_err());
        let step_first = "{% set n = [0, 3, -1] %}{{ [1, 2, 3, 4][n.pop():n.pop():n.pop()]|string }}";
        assert_eq!(render(step_first, Value::None).unwrap(), "[4, 3, 2]");
    }

    #[test]
    fn a_boolean_has_no_minimum() {
        assert!(render("{{ [true]|min }}", Value::None).is_err());
        assert!(render("{{ [true]|sort }}", Value::None).is_ok());
        assert!(render("{{ [true, true]|sort }}", Value::None).is_err());
    }
}
