//! Python objects as JSON: what a request is made of.
//!
//! 1. `None`, `bool`, numbers and `str` are what they are in JSON. An integer that 64 bits do not hold is a float, as
//!    llama.cpp reads it in JSON. A lone surrogate is the three bytes that encode it.
//! 2. Mappings are objects, lists and tuples arrays, dataclasses and pydantic models objects of their fields. A key
//!    that is not a string is written as `json.dumps` does.
//! 3. Everything else is a `ChatTypeError` that names its position.
//!
//! Time: O(elements + bytes).

use ggtok_chat::{Json, Object, Origin, Request, Text};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

use crate::arguments::text;
use crate::errors::{of_field, python};
use crate::run::check_signals;

/// Containers inside containers: far more than a request needs.
const MOST_DEEP: usize = 100;

/// A key and its value.
type KeyValue<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Reads a request.
pub(super) fn request(body: &Bound<'_, PyAny>) -> PyResult<Request> {
    Reader::default().value(body).map(Request::from_body)
}

/// A step from an object to what is in it.
enum Step {
    Key(Text),
    Index(usize),
}

#[derive(Default)]
struct Reader {
    /// How to get to the current value.
    place: Vec<Step>,
    num_read: usize,
}

impl Reader {
    fn value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Json> {
        self.num_read += 1;
        check_signals(value.py(), self.num_read)?;
        if let Ok(string) = value.cast::<PyString>() {
            return string_of(string).map(Json::String);
        }
        if value.is_none() {
            return Ok(Json::Null);
        }
        if let Ok(value) = value.cast::<PyBool>() {
            return Ok(Json::Bool(value.is_true()));
        }
        if let Ok(int) = value.cast::<PyInt>() {
            return self.int(int);
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return Ok(Json::Float(value.value()));
        }
        if self.place.len() == MOST_DEEP {
            return Err(self.invalid(&format!("it is nested more than {MOST_DEEP} deep")));
        }
        self.container(value)
    }

    fn int(&self, int: &Bound<'_, PyInt>) -> PyResult<Json> {
        if let Ok(value) = int.extract::<i64>() {
            return Ok(Json::Int(value));
        }
        if let Ok(value) = int.extract::<u64>() {
            return Ok(Json::Unsigned(value));
        }
        int.extract().map(Json::Float).map_err(|_| self.invalid("the number is too large"))
    }

    fn container(&mut self, value: &Bound<'_, PyAny>) -> PyResult<Json> {
        if let Ok(list) = value.cast::<PyList>() {
            return self.items(list.iter());
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return self.items(tuple.iter());
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return self.entries(dict.iter());
        }
        if let Ok(mapping) = value.cast::<PyMapping>() {
            let items = mapping.items()?.iter().map(|pair| pair.extract()).collect::<PyResult<Vec<_>>>()?;
            return self.entries(items.into_iter());
        }
        match fields(value)? {
            Some(fields) => self.entries(fields.iter()),
            None => {
                let found = value.get_type().name()?;
                Err(self.invalid(&format!("expected str, numbers, bool, None, lists and mappings, not {found}")))
            }
        }
    }

    fn entries<'py>(&mut self, entries: impl Iterator<Item = KeyValue<'py>>) -> PyResult<Json> {
        let mut object = Object::default();
        for (key, item) in entries {
            let key = self.key(&key)?;
            self.place.push(Step::Key(key.clone()));
            let item = self.value(&item)?;
            self.place.pop();
            object.entries.push((key, item));
        }
        Ok(Json::Object(object))
    }

    fn key(&self, key: &Bound<'_, PyAny>) -> PyResult<Text> {
        if let Ok(key) = key.cast::<PyString>() {
            return string_of(key);
        }
        let text = if key.is_none() {
            "null".to_owned()
        } else if let Ok(value) = key.cast::<PyBool>() {
            value.is_true().to_string()
        } else if key.is_instance_of::<PyInt>() || key.is_instance_of::<PyFloat>() {
            key.str()?.to_string()
        } else {
            return Err(self.invalid(&format!("a key must be str, not {}", key.get_type().name()?)));
        };
        Ok(Text::new(text, Origin::CALLER))
    }

    fn items<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> PyResult<Json> {
        let mut read = Vec::with_capacity(items.size_hint().0);
        for (index, item) in items.enumerate() {
            self.place.push(Step::Index(index));
            read.push(self.value(&item)?);
            self.place.pop();
        }
        Ok(Json::Array(read))
    }

    /// The error for the current place.
    fn invalid(&self, problem: &str) -> PyErr {
        let shown = |step: &Step| match step {
            Step::Key(key) => format!(".{}", String::from_utf8_lossy(key.as_bytes())),
            Step::Index(index) => format!("[{index}]"),
        };
        let place: String = self.place.iter().take(MAX_SHOWN).map(shown).collect();
        let more = if self.place.len() > MAX_SHOWN { "..." } else { "" };
        let field = place.strip_prefix('.').unwrap_or(&place).to_owned() + more;
        of_field::<python::ChatTypeError>(&field, problem)
    }
}

fn string_of(string: &Bound<'_, PyString>) -> PyResult<Text> {
    Ok(Text::new(text(string.as_any())?.text().as_bytes(), Origin::CALLER))
}

/// How many steps of a place an error shows.
const MAX_SHOWN: usize = 10;

/// The fields of a dataclass or of a pydantic model.
fn fields<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    let py = value.py();
    if value.is_instance_of::<PyType>() {
        return Ok(None);
    }
    if let Ok(fields) = value.getattr(intern!(py, "__dataclass_fields__")) {
        let dict = PyDict::new(py);
        for name in fields.try_iter()? {
            let name = name?.cast_into::<PyString>()?;
            dict.set_item(&name, value.getattr(&name)?)?;
        }
        return Ok(Some(dict));
    }
    match value.getattr(intern!(py, "model_dump")) {
        Ok(dump) if dump.is_callable() => Ok(dump.call0()?.cast_into().ok()),
        _ => Ok(None),
    }
}
