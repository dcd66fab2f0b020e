//! The binary operators, and the comparison that tests, `sort`, `min` and `max` use.
//!
//! Source: `binary_expression::execute_impl` in `common/jinja/runtime.cpp` and `value_compare` in `value.cpp` of
//! llama.cpp. Deviations: 1. A number computed from a caller's number has its origin.
//!
//! Whole numbers are added and multiplied as floating-point ones, and what does not fit becomes the lowest number.

use memchr::memmem;

use super::failure::{Outcome, failed};
use super::value::{Run, Str, Value, check_depth, float_to_int};
use crate::text::Text;

/// An operator between two values, as it is written.
pub(crate) type Operator = &'static str;

/// The operators by how closely they bind: the loosest first, and a place for `not`, which has a single operand.
pub(crate) const LEVELS: [&[Operator]; 6] =
    [&["or"], &["and"], &[], &["not in", "in", "==", "!=", "<", ">", "<=", ">="], &["+", "-", "~"], &["*", "/", "%"]];

/// Whether it can make a string out of two values.
pub(crate) fn joins(op: Operator) -> bool {
    matches!(op, "+" | "~")
}

/// Whether a comparison holds. Nothing for other operators.
fn holds<T: PartialOrd + ?Sized>(op: Operator, a: &T, b: &T) -> Option<bool> {
    Some(match op {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        ">" => a > b,
        "<=" => a <= b,
        ">=" => a >= b,
        _ => return None,
    })
}

/// Evaluates an operator.
pub(crate) fn binary(run: &mut Run<'_>, op: Operator, left: Value, right: Value) -> Outcome<Value> {
    use Value::{Array, Float, Int, None, Object, String, Undefined};

    let is_membership = matches!(op, "in" | "not in");
    let membership = |is_member: bool| Ok(Value::Bool(is_member == (op == "in")));
    match (&left, &right) {
        _ if matches!(op, "==" | "!=") => Ok(Value::Bool(equal(run, &left, &right)? == (op == "=="))),

        (_, Undefined(_)) if is_membership => membership(false),
        (None, right) if is_membership && !matches!(right, None) => membership(contains(run, &left, right)?),
        // Beside a string, nothing is an empty string.
        (String(string), None | Undefined(_)) | (None | Undefined(_), String(string)) if joins(op) => {
            run.budget.string(string.text.num_bytes())?;
            Ok(Value::string(string.text.clone()))
        }
        (Undefined(_), _) | (_, Undefined(_)) => failed(format!("'{}' cannot take undefined values", op)),
        (None, _) | (_, None) => failed(format!("'{}' cannot take None", op)),

        (Int(..) | Float(..), Int(..) | Float(..)) if !is_membership && op != "~" => arithmetic(op, &left, &right),
        (Array(a), Array(b)) if op == "+" => {
            run.charge_items(a.items.borrow().len() + b.items.borrow().len())?;
            Ok(Value::array([a.items.borrow().as_slice(), b.items.borrow().as_slice()].concat()))
        }
        (String(_), _) | (_, String(_)) if joins(op) => {
            let left = match left {
                String(left) => left,
                left => Str::new(left.as_text(run)?.into_owned()),
            };
            let right = right.as_text(run)?;
            run.budget.string(left.text.num_bytes() + right.num_bytes())?;
            Ok(String(Str::appended(left, &right)))
        }
        (String(string), Int(count, _)) | (Int(count, _), String(string)) if op == "*" => {
            repeat(run, &string.text, *count)
        }
        (Array(_), Array(_)) => unknown(op, &left, &right),
        (_, Array(_) | Object(_)) | (String(_), String(_)) if is_membership => {
            membership(contains(run, &left, &right)?)
        }
        _ => unknown(op, &left, &right),
    }
}

fn unknown<T>(op: Operator, left: &Value, right: &Value) -> Outcome<T> {
    failed(format!("'{}' cannot take {} and {}", op, left.type_name(), right.type_name()))
}

fn arithmetic(op: Operator, left: &Value, right: &Value) -> Outcome<Value> {
    let a = left.as_float()?;
    let b = right.as_float()?;
    if let Some(holds) = holds(op, &a, &b) {
        return Ok(Value::Bool(holds));
    }
    let value = match op {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" => a / b,
        "%" => a % b,
        _ => return unknown(op, left, right),
    };
    // The sign of a NaN is printed. It is the sign of an operand, or a minus if the processor makes the NaN.
    let nan = [a, b].into_iter().find(|operand| operand.is_nan()).unwrap_or(f64::NAN.copysign(-1.0));
    let value = if value.is_nan() { nan } else { value };
    let origins = [left.number_origin(), right.number_origin()];
    let origin = origins.into_iter().find(|origin| origin.is_caller()).unwrap_or_default();
    Ok(match (left, right) {
        (Value::Int(..), Value::Int(..)) if op != "/" => Value::Int(float_to_int(value), origin),
        _ => Value::Float(value, origin),
    })
}

fn repeat(run: &mut Run<'_>, text: &Text, count: i64) -> Outcome<Value> {
    let count = if text.is_empty() { 0 } else { usize::try_from(count).unwrap_or(0) };
    run.budget.steps(count)?;
    run.budget.string(text.num_bytes().saturating_mul(count))?;
    let mut repeated = Text::default();
    for _ in 0..count {
        repeated.append(text);
    }
    Ok(Value::string(repeated))
}

/// Whether two values are equal: `==`. Arrays and objects are only if they are hashable.
pub(crate) fn equal(run: &mut Run<'_>, a: &Value, b: &Value) -> Outcome<bool> {
    if let (Value::String(a), Value::String(b)) = (a, b) {
        run.budget.steps(1 + a.text.len().min(b.text.len()) / 64)?;
    }
    let hold_values = matches!((a, b), (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)));
    if hold_values && !(is_hashable(run, a, 0)? && is_hashable(run, b, 0)?) {
        return Ok(false);
    }
    Ok(a == b)
}

/// Whether a value can be looked up. Arrays and objects can if everything in them can: inside others, they can only if
/// nothing changes them.
///
/// Pays for comparing or hashing the value: one step for everything in it, once per level that it is at. Tuples that
/// share their items can be larger by far than the memory they take.
pub(crate) fn is_hashable(run: &mut Run<'_>, value: &Value, depth: usize) -> Outcome<bool> {
    check_depth(depth)?;
    run.budget.steps(1 + depth)?;
    let inner: Vec<Value> = match value {
        Value::String(string) => return Ok(run.budget.steps(string.text.len() / 64).map(|()| true)?),
        Value::Undefined(_) | Value::Function(_) => return Ok(false),
        Value::Array(array) if depth > 0 && !array.is_tuple => return Ok(false),
        Value::Object(_) if depth > 0 => return Ok(false),
        Value::Array(array) => array.items.borrow().clone(),
        Value::Object(object) => {
            object.entries.borrow().iter().flat_map(|(key, value)| [key, value]).cloned().collect()
        }
        _ => return Ok(true),
    };
    for value in &inner {
        if !is_hashable(run, value, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// That a value can be a key, and so what can be inside a hashable one.
pub(crate) fn check_key(run: &mut Run<'_>, key: &Value) -> Outcome<()> {
    if is_hashable(run, key, 1)? {
        Ok(())
    } else {
        failed(format!("Object key of unhashable type: {}", key.type_name()))
    }
}

/// Whether a value is in an array, a key of an object, or a part of a string.
pub(crate) fn contains(run: &mut Run<'_>, needle: &Value, haystack: &Value) -> Outcome<bool> {
    match haystack {
        Value::Undefined(_) => Ok(false),
        Value::Array(array) => {
            for item in array.items.borrow().iter() {
                run.budget.steps(1)?;
                if equal(run, needle, item)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::String(haystack) => {
            let Value::String(needle) = needle else {
                return failed(format!("'in' a string needs a string, not {}", needle.type_name()));
            };
            run.budget.steps(1 + (haystack.text.len() + needle.text.len()) / 16)?;
            Ok(memmem::find(haystack.text.as_bytes(), needle.text.as_bytes()).is_some())
        }
        Value::Object(object) => {
            check_key(run, needle)?;
            Ok(object.entries.borrow().get(needle).is_some())
        }
        _ => failed(format!("'in' needs something with items, not {}", haystack.type_name())),
    }
}

/// Whether a comparison holds. It never does for values that cannot be compared, not even `!=`.
///
/// A number and a string compare as strings. Booleans are equal or not; to order them is an error.
pub(crate) fn compare(run: &mut Run<'_>, a: &Value, b: &Value, op: Operator) -> Outcome<bool> {
    use Value::{Bool, Float, Int, String};

    run.budget.steps(1)?;
    let holds = match (a, b) {
        (Int(..) | Float(..), Int(..) | Float(..)) => holds(op, &a.as_float()?, &b.as_float()?),
        (String(_) | Int(..) | Float(..), String(_) | Int(..) | Float(..)) => {
            let (a, b) = (a.as_text(run)?, b.as_text(run)?);
            run.budget.steps(a.len().min(b.len()) / 64)?;
            holds(op, a.as_bytes(), b.as_bytes())
        }
        (Bool(a), Bool(b)) if matches!(op, "==" | "!=") => holds(op, a, b),
        (Bool(_), Bool(_)) => return failed("booleans have no order"),
        _ => None,
    };
    Ok(holds.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::super::tests::render;
    use super::*;

    #[test]
    fn as_llama_cpp_does() {
        let cases = [
            ("9007199254740993 + 0", "-9223372036854775808"),
            ("5 % 0", "-9223372036854775808"),
            ("7 / 2", "3.5"),
            ("0.0 / 0", "-nan"),
            ("'a' ~ none ~ missing ~ 1 ~ [2]", "a1[2]"),
            ("'ab' * 2 ~ 'c' * -1", "abab"),
            ("[1] + (2, 3)", "[1, 2, 3]"),
            ("(1, 2.0) == (true, 2)", "True"),
            ("(1, 2) == [1, 2]", "False"),
            ("1 in missing", "False"),
            ("none in [none]", "True"),
            ("'b' not in 'abc'", "False"),
            ("1.0 in {1: 2}", "True"),
            ("test_is_in(x=0 {})", "False"),
            ("none is ne(1)", "False"),
            ("2 is lt('10')", "False"),
        ];
        for (expression, expected) in cases {
            let text = render(&format!("{{{{ ({expression})|string }}}}"), Value::None).unwrap();
            assert_eq!(text, expected, "{expression}");
        }
        let errors = ["1 ~ 2", "[1] in [[1]]", "none + 1", "missing in []", "1 in 2", "true is gt(false)", "'a' < 'b'"];
        for expression in errors {
            assert!(render(&format!("{{{{ {expression} }}}}"), Value::None).is_err(), "{expression}");
        }
    }
}
