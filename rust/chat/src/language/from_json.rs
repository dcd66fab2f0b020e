//! Makes values of the template language from JSON.
//!
//! Source: `global_from_json` in `common/jinja/value.cpp` of llama.cpp. Deviations: 1. Numbers have the origin of the
//! nearest key around them.

use super::value::{Entries, Str, Value, held};
use crate::budget::Budget;
use crate::error::Error;
use crate::json::{self, Json};
use crate::text::{Origin, Text};

/// What a value costs beside its text, in bytes.
const VALUE_BYTES: usize = 64;

impl Value {
    /// The value that a template sees. `near` is the origin of numbers that are not inside an object.
    pub(crate) fn from_json(json: Json, near: Origin, budget: &mut Budget) -> Result<Self, Error> {
        Maker { budget, keys: Vec::new() }.value(json, near)
    }
}

struct Maker<'a> {
    budget: &'a mut Budget,
    /// Keys that the rules wrote: messages share them, so each is one value.
    keys: Vec<(&'static [u8], Value)>,
}

impl Maker<'_> {
    fn value(&mut self, json: Json, near: Origin) -> Result<Value, Error> {
        Ok(match json {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(value),
            Json::Int(value) => Value::Int(value, near),
            Json::Unsigned(value) => Value::Int(value as i64, near),
            Json::Float(value) => Value::float_of(value, near),
            Json::String(text) => self.string(text)?,
            Json::Array(items) => {
                self.budget.bytes(VALUE_BYTES * (1 + items.len()))?;
                let items = items.into_iter().map(|item| self.value(item, near));
                Value::array(items.collect::<Result<_, _>>()?)
            }
            Json::Object(object) => self.object(object, near)?,
        })
    }

    fn string(&mut self, text: Text) -> Result<Value, Error> {
        self.budget.string(Str::cost(text.len(), text.num_runs()), held())?;
        Ok(Value::string(text))
    }

    fn object(&mut self, object: json::Object, near: Origin) -> Result<Value, Error> {
        self.budget.bytes(2 * VALUE_BYTES * (1 + object.len()))?;
        let mut entries = Entries::with_capacity(object.len());
        let message = object.message;
        for (key, value) in object {
            let near = if key.first_origin().is_caller() { key.first_origin() } else { near };
            let value = self.value(value, near)?;
            let key = self.key(key)?;
            // A string can always be a key.
            let _ = entries.set(key, value);
        }
        Ok(Value::object_with(entries, true, message))
    }

    fn key(&mut self, key: Text) -> Result<Value, Error> {
        let Some(bytes) = key.as_static() else { return self.string(key) };
        if let Some((_, known)) = self.keys.iter().find(|(known, _)| std::ptr::eq(*known, bytes)) {
            return Ok(known.clone());
        }
        let value = self.string(key)?;
        self.keys.push((bytes, value.clone()));
        Ok(value)
    }
}
