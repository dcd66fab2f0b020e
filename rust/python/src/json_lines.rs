//! JSON Lines to columns: only the requested fields are decoded, straight into Arrow's buffers.
//!
//! 1. serde_json walks over the object of a line. It checks the grammar of everything, but decodes only the keys, and
//!    hands out the wanted values as slices of the line (`RawValue`). If a key is repeated, the last one wins.
//! 2. The slice of a string is unescaped into the column (`json_string`).
//!
//! So a line is walked over twice at most, and nothing is allocated for it. O(bytes).

use std::convert::Infallible;
use std::fmt;

use pyo3::prelude::*;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json_string::unescape;
use crate::line_columns::{Column, LineColumns, Lines, Table, for_each_line, split_first};
use crate::run::run_long;

/// Most fields of an object that are named if the wanted one is missing.
const MOST_NAMES: usize = 1000;

/// What is read of each object.
struct Wanted<'a> {
    /// The text, then the other columns.
    fields: Vec<&'a str>,
    /// Whether the text may be a list, whose JSON is kept.
    is_raw: bool,
    /// What becomes of an object whose text is null: `skip` it, take it as `empty`, or else it is an error.
    nulls: &'a str,
}

/// Why a line gives no row, and the fields that the object has if the text is missing.
type Problem = (String, Vec<String>);

#[pyfunction]
pub fn json_lines(
    py: Python<'_>,
    lines: Lines,
    first_row: i64,
    field: &str,
    is_raw: bool,
    columns: &Bound<'_, PyAny>,
    nulls: &str,
) -> PyResult<LineColumns> {
    // Not `Vec<String>`, which trusts the length that an object claims to have.
    let columns = columns.try_iter()?.map(|name| name?.extract()).collect::<PyResult<Vec<String>>>()?;
    let fields: Vec<&str> = [field].into_iter().chain(columns.iter().map(String::as_str)).collect();
    let wanted = Wanted { fields, is_raw, nulls };
    let table = run_long(py, || {
        let (first, others) = split_first(&lines);
        let mut table = Table::new(wanted.fields.len(), first.len() + others.len());
        let mut values = vec![None; wanted.fields.len()];
        for_each_line([&first, others], first_row, &mut table, |line, table| {
            if line.bytes().all(|byte| byte.is_ascii_whitespace()) {
                return Ok(false);
            }
            wanted.find(line, &mut values)?;
            wanted.push(line, &values, &mut table.columns)
        });
        Ok::<_, Infallible>(table)
    })?;
    Ok(table.into_rows())
}

impl Wanted<'_> {
    /// Finds the values of the fields in the object of a line.
    fn find<'a>(&self, line: &'a str, values: &mut [Option<&'a RawValue>]) -> Result<(), Problem> {
        let not_json = |error| (syntax_error(line, &error), Vec::new());
        if !line.trim_start().starts_with('{') {
            serde_json::from_str::<IgnoredAny>(line).map_err(not_json)?;
            return Err((format!("it is {}, not an object", kind(line.trim_start())), Vec::new()));
        }
        values.fill(None);
        find(line, &self.fields, values).map_err(not_json)?;
        for (field, value) in self.fields.iter().zip(values).filter(|(_, value)| value.is_none()) {
            *value = field.contains('.').then(|| at_path(line, field)).flatten();
        }
        Ok(())
    }

    /// Appends the values to the columns; whether they make a row.
    fn push(&self, line: &str, values: &[Option<&RawValue>], columns: &mut [Column]) -> Result<bool, Problem> {
        let field = self.fields[0];
        let Some(text) = values[0] else {
            return Err((format!("it has no field '{field}'"), names(line)));
        };
        let problem = |reason| Err((reason, Vec::new()));
        let json = text.get();
        // What is not UTF-16 cannot be a text.
        let unescape = |value: &RawValue, column: &mut Column| {
            let json = value.get();
            unescape(json, column).map_err(|half| {
                let at = json.as_ptr() as usize - line.as_ptr() as usize + half.start;
                (format!("{} is half of a surrogate pair (column {})", &json[half], at + 1), Vec::new())
            })
        };
        match (json.as_bytes()[0], self.nulls) {
            (b'n', "skip") => return Ok(false),
            (b'n', "empty") => columns[0].push(if self.is_raw { b"[]" } else { b"" }),
            (b'n', _) => return problem(format!("field '{field}' is null")),
            (b'[', _) if self.is_raw => columns[0].push_all(json.as_bytes()),
            (b'"', _) => unescape(text, &mut columns[0])?,
            _ => {
                let expected = if self.is_raw { "a list of messages or its JSON text" } else { "a string" };
                return problem(format!("field '{field}' is {}, not {expected}", kind(json)));
            }
        }
        for (column, value) in columns.iter_mut().zip(values).skip(1) {
            match value {
                Some(value) if value.get().starts_with('"') => unescape(value, column)?,
                Some(value) if value.get() != "null" => column.push_all(value.get().as_bytes()),
                _ => {}
            }
        }
        for (number, (column, value)) in columns.iter_mut().zip(values).enumerate() {
            column.end(number > 0 && value.is_none_or(|value| value.get() == "null"));
        }
        Ok(true)
    }
}

/// Finds the values of some fields in an object.
fn find<'a>(object: &'a str, fields: &[&str], values: &mut [Option<&'a RawValue>]) -> serde_json::Result<()> {
    read(object, values, |key| fields.iter().position(|field| *field == key))
}

/// Reads an object. `place_of` says where the value of a key goes.
fn read<'a>(
    object: &'a str,
    values: &mut [Option<&'a RawValue>],
    place_of: impl FnMut(&str) -> Option<usize>,
) -> serde_json::Result<()> {
    let mut deserializer = serde_json::Deserializer::from_str(object);
    deserializer.deserialize_map(ObjectVisitor { values, place_of })?;
    deserializer.end()
}

/// The value of a field, or of a path such as `doc.text` through objects.
fn at_path<'a>(object: &'a str, path: &str) -> Option<&'a RawValue> {
    let mut value = [None];
    find(object, &[path], &mut value).ok()?;
    value[0].or_else(|| {
        let (first, rest) = path.split_once('.')?;
        at_path(at_path(object, first)?.get(), rest)
    })
}

/// Reads an object, and keeps some values.
struct ObjectVisitor<'v, 'a, F> {
    values: &'v mut [Option<&'a RawValue>],
    place_of: F,
}

impl<'a, F: FnMut(&str) -> Option<usize>> Visitor<'a> for ObjectVisitor<'_, 'a, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'a>>(mut self, mut map: M) -> Result<(), M::Error> {
        while let Some(place) = map.next_key_seed(Key(&mut self.place_of))? {
            match place {
                Some(place) => self.values[place] = Some(map.next_value()?),
                None => _ = map.next_value::<IgnoredAny>()?,
            }
        }
        Ok(())
    }
}

/// Reads a key: the place of its value, if it is wanted.
struct Key<'f, F>(&'f mut F);

impl<'a, F: FnMut(&str) -> Option<usize>> DeserializeSeed<'a> for Key<'_, F> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<F: FnMut(&str) -> Option<usize>> Visitor<'_> for Key<'_, F> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((self.0)(key))
    }
}

/// The fields of an object, for the message that one is missing.
fn names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    // It was parsed before, so this cannot fail.
    let _ = read(line, &mut [], |key| {
        if names.len() < MOST_NAMES {
            names.push(key.to_owned());
        }
        None
    });
    names
}

/// What a JSON value is, by its first byte.
fn kind(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Why a line is not JSON, and the column: the number of the byte in the line, counted from 1.
fn syntax_error(line: &str, error: &serde_json::Error) -> String {
    let column = error.column();
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    // serde_json stops at the first byte of NaN and Infinity, or after the sign.
    let near = [column.saturating_sub(1), column.saturating_sub(2)].map(|start| line.get(start..).unwrap_or_default());
    let number = ["NaN", "Infinity"].into_iter().find(|name| near.iter().any(|near| near.starts_with(name)));
    match number {
        Some(number) => format!("it is not JSON: {number} is not a JSON number (column {column})"),
        None => format!("it is not JSON: {message} (column {column})"),
    }
}
