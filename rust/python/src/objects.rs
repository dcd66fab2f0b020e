//! A serializer whose output is Python objects: a structure becomes an instance of the dataclass with its name.
//!
//! Lists become tuples, and bytes `str` if they are UTF-8. The tag of an enumeration is dropped, because the class says
//! the same. This takes half the time of reading the JSON of the same value into dictionaries, and more than half is
//! spent in the dataclasses. O(size of the value).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::{self, Display};
use std::rc::Rc;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use serde::ser::{Error, Impossible, Serialize, SerializeSeq, SerializeStruct, Serializer};

use crate::errors::type_error;
use crate::run::check_signals;

/// The tag of enumerations. It is a class variable in Python.
const TAG: &str = "kind";

/// Converts a value. `classes` has the dataclasses by the names of the structures.
///
/// # Errors
/// - A structure has no class, or its class has other fields, or the same fields in another order.
/// - The value has a type that no trace has, such as a map.
/// - Memory runs out, or a signal handler raises.
pub(crate) fn objects<'py>(value: &impl Serialize, classes: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyAny>> {
    let objects = Objects { classes, known: RefCell::default(), num_made: Cell::new(0) };
    value.serialize(&objects).map_err(|Failed(error)| error)
}

/// The serializer.
struct Objects<'a, 'py> {
    classes: &'a Bound<'py, PyDict>,
    /// The classes of the structures so far.
    known: RefCell<HashMap<&'static str, Rc<Dataclass<'py>>>>,
    num_made: Cell<usize>,
}

/// A dataclass.
struct Dataclass<'py> {
    class: Bound<'py, PyAny>,
    /// Its fields as Rust spells them.
    fields: Vec<String>,
}

/// The items of a list so far.
struct Items<'a, 'py> {
    objects: &'a Objects<'a, 'py>,
    items: Vec<Bound<'py, PyAny>>,
}

/// The fields of a structure so far.
struct Fields<'a, 'py> {
    objects: &'a Objects<'a, 'py>,
    class: Rc<Dataclass<'py>>,
    values: Vec<Bound<'py, PyAny>>,
}

/// A Python exception as serde wants errors.
#[derive(Debug)]
struct Failed(PyErr);

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Failed {}

impl Error for Failed {
    fn custom<T: Display>(message: T) -> Self {
        Self(type_error(message.to_string()))
    }
}

impl From<PyErr> for Failed {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl<'py> Objects<'_, 'py> {
    fn py(&self) -> Python<'py> {
        self.classes.py()
    }

    /// The class of a structure.
    fn class(&self, name: &'static str) -> PyResult<Rc<Dataclass<'py>>> {
        if let Some(class) = self.known.borrow().get(name) {
            return Ok(Rc::clone(class));
        }
        let class = self.classes.as_any().get_item(name)?;
        let fields: Vec<String> = class.getattr("__match_args__")?.extract()?;
        let fields = fields.iter().map(|field| field.trim_end_matches('_').to_owned()).collect();
        let class = Rc::new(Dataclass { class, fields });
        self.known.borrow_mut().insert(name, Rc::clone(&class));
        Ok(class)
    }
}

type Made<'py> = Result<Bound<'py, PyAny>, Failed>;

/// The methods for values that Python has as they are.
macro_rules! plain {
    ($($method:ident $type:ty),*) => {
        $(fn $method(self, value: $type) -> Made<'py> {
            Ok(value.into_bound_py_any(self.py())?)
        })*
    };
}

/// The methods for types that no trace has.
macro_rules! not_in_traces {
    ($($method:ident($($type:ty),*) -> $result:ty),*) => {
        $(fn $method(self, $(_: $type),*) -> Result<$result, Failed> {
            Err(Failed::custom(concat!("no class for ", stringify!($method))))
        })*
    };
}

impl<'a, 'py> Serializer for &'a Objects<'_, 'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;
    type SerializeSeq = Items<'a, 'py>;
    type SerializeStruct = Fields<'a, 'py>;
    type SerializeTuple = Impossible<Self::Ok, Failed>;
    type SerializeTupleStruct = Impossible<Self::Ok, Failed>;
    type SerializeTupleVariant = Impossible<Self::Ok, Failed>;
    type SerializeMap = Impossible<Self::Ok, Failed>;
    type SerializeStructVariant = Impossible<Self::Ok, Failed>;

    plain!(
        serialize_bool bool, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64, serialize_u8 u8,
        serialize_u16 u16, serialize_u32 u32, serialize_u64 u64, serialize_f64 f64, serialize_char char,
        serialize_str &str
    );

    /// The number that JSON has: the shortest that is this one in 32 bits.
    fn serialize_f32(self, value: f32) -> Made<'py> {
        self.serialize_f64(value.to_string().parse().unwrap_or(f64::from(value)))
    }

    fn serialize_bytes(self, value: &[u8]) -> Made<'py> {
        Ok(match std::str::from_utf8(value) {
            Ok(text) => PyString::new(self.py(), text).into_any(),
            Err(_) => PyBytes::new(self.py(), value).into_any(),
        })
    }

    fn serialize_none(self) -> Made<'py> {
        Ok(self.py().None().into_bound(self.py()))
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Items<'a, 'py>, Failed> {
        Ok(Items { objects: self, items: Vec::with_capacity(len.unwrap_or(0)) })
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Fields<'a, 'py>, Failed> {
        check_signals(self.py(), self.num_made.get())?;
        self.num_made.set(self.num_made.get() + 1);
        Ok(Fields { objects: self, class: self.class(name)?, values: Vec::with_capacity(len) })
    }

    /// Bytes stay bytes.
    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Made<'py> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Made<'py> {
        value.serialize(self)
    }

    not_in_traces!(
        serialize_unit() -> Self::Ok,
        serialize_unit_struct(&'static str) -> Self::Ok,
        serialize_unit_variant(&'static str, u32, &'static str) -> Self::Ok,
        serialize_tuple(usize) -> Self::SerializeTuple,
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct,
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant,
        serialize_map(Option<usize>) -> Self::SerializeMap,
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant
    );
}

impl<'py> SerializeSeq for Items<'_, 'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        self.items.push(value.serialize(self.objects)?);
        Ok(())
    }

    fn end(self) -> Made<'py> {
        Ok(PyTuple::new(self.objects.py(), self.items)?.into_any())
    }
}

impl<'py> SerializeStruct for Fields<'_, 'py> {
    type Ok = Bound<'py, PyAny>;
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Failed> {
        if self.class.fields.get(self.values.len()).is_some_and(|field| field == name) {
            self.values.push(value.serialize(self.objects)?);
        } else if name != TAG {
            return Err(Failed::custom(format!("{} has no field {name} here", self.class.class)));
        }
        Ok(())
    }

    fn end(self) -> Made<'py> {
        Ok(self.class.class.call1(PyTuple::new(self.objects.py(), self.values)?)?)
    }
}
