//! Makes values of the template language from JSON.
//!
//! Source: `global_from_json` in `common/jinja/value.cpp` of llama.cpp. Deviations: 1. Numbers have the origin of the
//! nearest key around them.

use super::value::{Entries, Value};
use crate::budget::Budget;
use crate::error::Error;
use crate::json::Json;
use crate::text::Origin;

/// What a value costs beside its text, in bytes.
const VALUE_BYTES: usize = 64;

impl Value {
    /// The value that a template sees. `near` is the origin of numbers that are not inside an object.
    pub(crate) fn from_json(json: Json, near: Origin, budget: &mut Budget) -> Result<Self, Error> {
        Ok(match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(value),
            Json::Int(value) => Self::Int(value, near),
            Json::Unsigned(value) => Self::Int(value as i64, near),
            Json::Float(value) => Self::Float(value, near),
            Json::String(text) => {
                budget.string(text.num_bytes())?;
                Self::string(text)
            }
            Json::Array(items) => {
                budget.bytes(VALUE_BYTES * (1 + items.len()))?;
                let items = items.into_iter().map(|item| Self::from_json(item, near, budget));
                Self::array(items.collect::<Result<_, _>>()?)
            }
            Json::Object(object) => {
                budget.bytes(2 * VALUE_BYTES * (1 + object.entries.len()))?;
                let mut entries = Entries::with_capacity(object.entries.len());
                let message = object.message;
                for (key, value) in object.entries {
                    let near = if key.first_origin().is_caller() { key.first_origin() } else { near };
                    let value = Self::from_json(value, near, budget)?;
                    entries.set(Self::from_json(key.into(), near, budget)?, value);
                }
                Self::object_with(entries, true, message)
            }
        })
    }
}
