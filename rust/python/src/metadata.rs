//! The metadata of a GGUF file, which Python opens and the core reads.

use ggtok_core::gguf::{self, Layout, Override, Type, Value};
use ggtok_core::{Kind, Strings};
use pyo3::IntoPyObjectExt;
use pyo3::ffi::c_str;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyString};

use crate::bytes::bytes_of;
use crate::errors::{Raise, invalid};
use crate::run::run_long;

/// More bytes after the metadata than this are given back.
const SPARE: usize = 1 << 20;

/// The keys and values of a GGUF file, with overrides.
#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Metadata {
    pub(crate) core: gguf::Metadata<PyBackedBytes>,
    /// The overrides as they were given.
    overrides: Py<PyDict>,
}

/// An array of a GGUF file, which stays where it is.
#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Array {
    metadata: Py<Metadata>,
    key: Box<[u8]>,
}

impl Metadata {
    /// The merges of a byte-pair vocabulary.
    pub(crate) fn merges(&self, kind: Kind) -> Option<Strings<'_>> {
        match self.core.get("tokenizer.ggml.merges") {
            Some(Value::Array(array)) if kind == Kind::Bpe => array.strings(),
            _ => None,
        }
    }
}

#[pymethods]
impl Metadata {
    /// Reads the metadata at the start of a file.
    ///
    /// Args:
    ///     data: The file's first bytes.
    ///     total: The length of the file; `None` while it is not known.
    ///     overrides: Values that replace those of the file: `str`, `int`, `float` or `bool`.
    ///
    /// Returns:
    ///     The metadata, or how many bytes of the file are needed at least.
    ///
    /// Raises:
    ///     GGUFError: The bytes are not sound GGUF.
    #[staticmethod]
    fn read<'py>(
        py: Python<'py>,
        data: PyBackedBytes,
        total: Option<usize>,
        overrides: Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let layout =
            match run_long(py, || Ok::<_, std::convert::Infallible>(Layout::find(&data, total.unwrap_or(usize::MAX))))?
            {
                Ok(layout) => layout,
                Err(error) => {
                    return match error.needed {
                        Some(size) => size.into_bound_py_any(py),
                        None => Err(error.raise()),
                    };
                }
            };
        let data = match data.get(..layout.size()).filter(|metadata| data.len() - metadata.len() > SPARE) {
            Some(metadata) => bytes_of(py, metadata)?.into(),
            None => data,
        };
        let mut core = layout.over(data);
        for (key, value) in &overrides {
            core.set(&*encoded(&key)?, override_of(&value)?);
        }
        Ok(Bound::new(py, Self { core, overrides: overrides.unbind() })?.into_any())
    }

    /// The file from its first byte to the end of the last value: a source of equal metadata.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, &self.core.data()[..self.size()])
    }

    /// The overrides as they were given.
    #[getter]
    fn overrides(&self, py: Python<'_>) -> Py<PyDict> {
        self.overrides.clone_ref(py)
    }

    /// Bytes from the start of the file to the end of the last value.
    #[getter]
    fn size(&self) -> usize {
        self.core.layout().size()
    }

    /// Whether numbers have their highest byte first.
    #[getter]
    fn big_endian(&self) -> bool {
        self.core.layout().is_big_endian()
    }

    /// The version of the format: 2 or 3.
    #[getter]
    fn version(&self) -> u32 {
        self.core.layout().version()
    }

    /// The number of tensors after the metadata.
    #[getter]
    fn tensor_count(&self) -> u64 {
        self.core.layout().num_tensors()
    }

    /// All keys in the order of the file, each with the type of its value, numbered as in the file, and the value as
    /// `get` returns it. A surrogate stands for each byte of a string that is not UTF-8.
    fn entries<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let entries = PyDict::new(slf.py());
        for (key, value) in slf.get().core.entries() {
            entries.set_item(decoded(slf.py(), key)?, (value.kind() as i32, object(slf, key, value)?))?;
        }
        Ok(entries)
    }

    /// The value that the file has for a key: a number, a `str`, a `bool` or an `Array`. `None` if it has none.
    fn get<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = encoded(key)?;
        slf.get().core.get(&*key).map(|value| object(slf, &key, value)).transpose()
    }

    /// A key and its value as they stand in the file. Raises `GgtokError` if it is not there.
    fn raw<'py>(&self, py: Python<'py>, key: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let absent = || invalid(format!("there is no key {key}"));
        bytes_of(py, self.core.raw(&*encoded(key)?).ok_or_else(absent)?)
    }

    fn __contains__(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.core.get(&*encoded(key)?).is_some())
    }
}

impl Array {
    fn array(&self) -> PyResult<gguf::Array<'_>> {
        match self.metadata.get().core.get(&self.key) {
            Some(Value::Array(array)) => Ok(array),
            _ => Err(invalid("the array is gone".to_owned())),
        }
    }
}

#[pymethods]
impl Array {
    /// The type of the elements, numbered as in the file.
    #[getter]
    fn kind(&self) -> PyResult<i32> {
        Ok(self.array()?.kind() as i32)
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.array()?.len())
    }

    fn __repr__(&self) -> PyResult<String> {
        let array = self.array()?;
        Ok(format!("<array of {} {}>", array.len(), array.kind().name()))
    }

    /// The elements of an array of strings, as bytes; `None` for another array.
    fn strings(&self) -> PyResult<Option<Vec<&[u8]>>> {
        Ok(self.array()?.strings().map(|strings| strings.iter().collect()))
    }

    /// The elements as in the file, in its byte order.
    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, self.array()?.bytes())
    }

    /// The elements of an array of numbers in little-endian byte order.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let array = self.array()?;
        let bytes: Vec<u8> = match array.kind() {
            Type::Uint16 | Type::Int16 => array.numbers::<2>().flatten().collect(),
            Type::Uint32 | Type::Int32 | Type::Float32 => array.numbers::<4>().flatten().collect(),
            Type::Uint64 | Type::Int64 | Type::Float64 => array.numbers::<8>().flatten().collect(),
            Type::Uint8 | Type::Int8 | Type::Bool => array.bytes().to_vec(),
            kind => return Err(invalid(format!("the elements are not numbers: they are {}", kind.name()))),
        };
        bytes_of(py, &bytes)
    }
}

/// The Python object of a key's value.
fn object<'py>(metadata: &Bound<'py, Metadata>, key: &[u8], value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    let py = metadata.py();
    match value {
        Value::Uint8(number) => number.into_bound_py_any(py),
        Value::Int8(number) => number.into_bound_py_any(py),
        Value::Uint16(number) => number.into_bound_py_any(py),
        Value::Int16(number) => number.into_bound_py_any(py),
        Value::Uint32(number) => number.into_bound_py_any(py),
        Value::Int32(number) => number.into_bound_py_any(py),
        Value::Float32(number) => number.into_bound_py_any(py),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::String(text) => Ok(decoded(py, text)?.into_any()),
        Value::Uint64(number) => number.into_bound_py_any(py),
        Value::Int64(number) => number.into_bound_py_any(py),
        Value::Float64(number) => number.into_bound_py_any(py),
        _ => Array { metadata: metadata.clone().unbind(), key: key.into() }.into_bound_py_any(py),
    }
}

/// An override in llama.cpp's types. Of an integer only 32 bits are ever read.
fn override_of(value: &Bound<'_, PyAny>) -> PyResult<Override> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Override::Bool(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Override::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Override::String((*encoded(value)?).into()));
    }
    Ok(Override::Int(value.bitand(u32::MAX)?.extract()?))
}

/// Text of a file. It need not be UTF-8: a surrogate stands for each byte that is not.
fn decoded<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(text) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => PyString::from_encoded_object(
            &PyBytes::new(py, text),
            Some(c_str!("utf-8")),
            Some(c_str!("surrogateescape")),
        ),
    }
}

/// The bytes of a text from a file, or of one from an override, which may hold any surrogate.
fn encoded(text: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    let encode = |errors| text.call_method1("encode", ("utf-8", errors));
    let bytes = encode("surrogateescape").or_else(|_| encode("surrogatepass"))?;
    Ok(bytes.extract()?)
}
