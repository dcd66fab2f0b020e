//! What a caller passes: JSON whose strings know who wrote them.
//!
//! The rules of llama-server read and rewrite this; the template language gets its [values](crate::language) from it.
//! Objects keep the order in which keys were added.

mod dump;
mod parse;

use crate::error::Error;
use crate::text::{Origin, Text};

/// A value of JSON. Strings are bytes.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Json {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number above [`i64::MAX`]. Templates see the `i64` with the same bits, as in llama.cpp.
    Unsigned(u64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Text),
    /// An array.
    Array(Vec<Json>),
    /// An object.
    Object(Object),
}

impl Json {
    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&Text> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The items, if it is an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items) } else { None }
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// The value of a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.as_object()?.get(key)
    }

    /// The string of a key, if this is an object that has one there.
    pub fn text(&self, key: &str) -> Option<&Text> {
        self.as_object()?.text(key)
    }

    /// Whether this is an object with a key that has this string.
    pub(crate) fn is(&self, key: &str, text: &str) -> bool {
        self.as_object().is_some_and(|object| object.is(key, text))
    }

    /// The objects among values.
    pub(crate) fn objects(values: &mut [Self]) -> impl Iterator<Item = &mut Object> {
        values.iter_mut().filter_map(|value| if let Self::Object(object) = value { Some(object) } else { None })
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether there is nothing in it: `null`, `false`, or empty.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) => true,
            Self::String(text) => text.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::Object(object) => object.entries.is_empty(),
            _ => false,
        }
    }

    /// What the value is, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Unsigned(_) | Self::Float(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// An error about this value, in a field that must be something else.
    pub(crate) fn is_not(&self, expected: &str, field: &str) -> Error {
        Error::request(field, format!("expected {expected}, got {}", self.kind()))
    }

    /// The items of a field that must be an array.
    pub(crate) fn items(&self, field: &str) -> Result<&[Self], Error> {
        self.as_array().ok_or_else(|| self.is_not("an array", field))
    }

    /// The string that the keys of a path lead to, such as `function.name`, if there is a value. It must be a string.
    pub(crate) fn string(&self, path: &str) -> Result<Option<&Text>, Error> {
        let value = path.split('.').try_fold(self, Self::get);
        value.map(|value| value.as_text().ok_or_else(|| value.is_not("a string", path))).transpose()
    }

    /// What is read from each of several values. Errors name the value.
    pub(crate) fn each<'v, T>(
        values: impl IntoIterator<Item = &'v Self>,
        field: &str,
        mut read: impl FnMut(usize, &'v Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let read = |(at, value)| read(at, value).map_err(|error| error.inside(&format!("{field}[{at}]")));
        values.into_iter().enumerate().map(read).collect()
    }

    /// Says who wrote the strings and keys in it.
    pub(crate) fn set_origin(&mut self, origin: Origin) {
        match self {
            Self::String(text) => text.set_origin(origin),
            Self::Array(items) => items.iter_mut().for_each(|item| item.set_origin(origin)),
            Self::Object(object) => object.set_origins(origin, |_| origin),
            _ => {}
        }
    }

    /// About how many bytes it has.
    pub(crate) fn num_bytes(&self) -> usize {
        let inside: usize = match self {
            Self::String(text) => text.len(),
            Self::Array(items) => items.iter().map(Self::num_bytes).sum(),
            Self::Object(object) => object.entries.iter().map(|(key, value)| 8 + key.len() + value.num_bytes()).sum(),
            _ => 0,
        };
        8 + inside
    }
}

/// The keys and values of an object of JSON, in order.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Object {
    /// The entries, in order. No two keys are equal.
    pub entries: Vec<(Text, Json)>,
    /// The message of the caller's that this is, by its number. It stays when fields change.
    pub message: Option<usize>,
}

impl Object {
    /// An object with these entries, whose keys differ: a message of the caller's, a part of one, or neither.
    pub fn with<const N: usize>(message: Option<usize>, entries: [(&'static str, Json); N]) -> Self {
        Self { entries: entries.into_iter().map(|(key, value)| (key.into(), value)).collect(), message }
    }

    /// The value of a key. O(keys).
    pub fn get(&self, key: &str) -> Option<&Json> {
        self.entries.iter().find(|entry| entry.0 == key).map(|entry| &entry.1)
    }

    /// The string of a key, if there is one.
    pub fn text(&self, key: &str) -> Option<&Text> {
        self.get(key)?.as_text()
    }

    /// Whether a key has this string.
    pub(crate) fn is(&self, key: &str, text: &str) -> bool {
        self.text(key).is_some_and(|value| *value == *text)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.entries.iter_mut().find(|entry| entry.0 == key).map(|entry| &mut entry.1)
    }

    /// Sets the value of a key, in its place if it is there and at the end otherwise.
    pub fn set(&mut self, key: impl Into<Text>, value: impl Into<Json>) {
        let key = key.into();
        match self.entries.iter_mut().find(|entry| entry.0 == key) {
            Some(entry) => entry.1 = value.into(),
            None => self.entries.push((key, value.into())),
        }
    }

    /// Says who wrote the keys, and what is in the value of each.
    pub(crate) fn set_origins(&mut self, keys: Origin, values: impl Fn(&Text) -> Origin) {
        for (key, value) in &mut self.entries {
            key.set_origin(keys);
            value.set_origin(values(key));
        }
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Json> {
        let at = self.entries.iter().position(|entry| entry.0 == key)?;
        Some(self.entries.remove(at).1)
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),*) => {
        $(impl From<$type> for Json {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

from!(Text => String, &'static str => String, bool => Bool, i64 => Int, Vec<Json> => Array, Object => Object);
