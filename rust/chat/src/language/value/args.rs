//! The arguments of a call.

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

    /// The argument at a place, keyword or not.
    pub(crate) fn at(&self, at: usize) -> Outcome<&Value> {
        match self.values.get(at) {
            Some(value) => Ok(value),
            None => failed(format!(
                "Function '{}' expected at least {} arguments, got {}",
                self.name.text,
                at + 1,
                self.len()
            )),
        }
    }

    /// That there are enough and not too many arguments.
    pub(crate) fn check_len(&self, min: usize, max: usize) -> Outcome<()> {
        if (min..=max).contains(&self.len()) {
            return Ok(());
        }
        failed(format!("Function '{}' expected between {min} and {max} arguments, got {}", self.name.text, self.len()))
    }

    /// The argument at a place, a string.
    pub(crate) fn text(&self, at: usize) -> Outcome<&Text> {
        match self.at(at)? {
            Value::String(string) => Ok(&string.text),
            value => self.expected("a string", value),
        }
    }

    /// The argument at a place, a whole number.
    pub(crate) fn int(&self, at: usize) -> Outcome<i64> {
        match self.at(at)? {
            Value::Int(value, _) => Ok(*value),
            value => self.expected("a whole number", value),
        }
    }

    /// The argument at a place, an array.
    pub(crate) fn array(&self, at: usize) -> Outcome<&Array> {
        match self.at(at)? {
            Value::Array(array) => Ok(array),
            value => self.expected("an array", value),
        }
    }

    /// The argument at a place, an object.
    pub(crate) fn object(&self, at: usize) -> Outcome<&Object> {
        match self.at(at)? {
            Value::Object(object) => Ok(object),
            value => self.expected("an object", value),
        }
    }

    pub(crate) fn expected<T>(&self, what: &str, value: &Value) -> Outcome<T> {
        let name = &self.name.text;
        failed(format!("Function '{name}' expected {what}, got {}", value.type_name()))
    }
}
