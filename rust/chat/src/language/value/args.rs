//! The arguments of a call.

use std::fmt;
use std::rc::Rc;

use super::super::failure::{Outcome, failed};
use super::{Array, Object, Str, Value};
use crate::text::Text;

/// The arguments of a call, the value that a method is bound to among them.
pub(crate) struct Args {
    /// The function's name, for errors.
    pub(crate) name: Rc<Str>,
    pub(crate) values: Vec<Value>,
}

impl Args {
    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The value of a keyword argument, whatever it is.
    pub(crate) fn keyword(&self, name: &[u8]) -> Option<&Value> {
        self.values.iter().find_map(|value| match value {
            Value::KwArg(argument) if argument.name.text.as_bytes() == name => Some(&argument.value),
            _ => None,
        })
    }

    /// The value of a keyword argument, or else of the argument at a place unless that is a keyword one.
    pub(crate) fn named(&self, name: impl AsRef<[u8]>, at: usize) -> Value {
        let named = self.keyword(name.as_ref()).filter(|value| !value.is_undefined());
        let placed = || self.values.get(at).filter(|value| !matches!(value, Value::KwArg(_)));
        named.or_else(placed).cloned().unwrap_or(Value::UNDEFINED)
    }

    /// The same, or another value if it is undefined.
    pub(crate) fn named_or(&self, name: &str, at: usize, default: Value) -> Value {
        Some(self.named(name, at)).filter(|value| !value.is_undefined()).unwrap_or(default)
    }

    /// The argument at a place, keyword or not.
    pub(crate) fn at(&self, at: usize) -> Outcome<&Value> {
        let too_few = || self.expected(&format!("at least {} arguments", at + 1), &self.len());
        self.values.get(at).map_or_else(too_few, Ok)
    }

    /// That there are enough and not too many arguments.
    pub(crate) fn check_len(&self, min: usize, max: usize) -> Outcome<()> {
        if (min..=max).contains(&self.len()) {
            return Ok(());
        }
        self.expected(&format!("between {min} and {max} arguments"), &self.len())
    }

    /// The argument at a place, a string.
    pub(crate) fn text(&self, at: usize) -> Outcome<&Text> {
        self.of_type(at, "a string", |value| if let Value::String(string) = value { Some(&string.text) } else { None })
    }

    /// The argument at a place, a whole number.
    pub(crate) fn int(&self, at: usize) -> Outcome<i64> {
        self.of_type(at, "a whole number", |value| if let Value::Int(int, _) = value { Some(*int) } else { None })
    }

    /// The argument at a place, an array.
    pub(crate) fn array(&self, at: usize) -> Outcome<&Array> {
        self.of_type(at, "an array", |value| if let Value::Array(array) = value { Some(&**array) } else { None })
    }

    /// The argument at a place, an object.
    pub(crate) fn object(&self, at: usize) -> Outcome<&Object> {
        self.of_type(at, "an object", |value| if let Value::Object(object) = value { Some(&**object) } else { None })
    }

    fn of_type<'a, T>(&'a self, at: usize, what: &str, typed: fn(&'a Value) -> Option<T>) -> Outcome<T> {
        let value = self.at(at)?;
        typed(value).map_or_else(|| self.expected(what, &value.type_name()), Ok)
    }

    pub(crate) fn expected<T>(&self, what: &str, got: &dyn fmt::Display) -> Outcome<T> {
        failed(format!("Function '{}' expected {what}, got {got}", self.name.text))
    }
}
