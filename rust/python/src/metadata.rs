//! The metadata of a GGUF file, which Python opens and the core reads.

use std::convert::Infallible;

use ggtok_core::gguf::{self, GgufError, Layout, Override, Type, Value};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyString};

use crate::bytes::{bytes_of, str_of};
use crate::errors::{Raise, invalid};
use crate::run::run_long;

/// If more than this many bytes follow the metadata, it is copied so that they can be freed.
const SPARE: usize = 1 << 20;

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Metadata {
    pub(crate) core: gguf::Metadata<PyBackedBytes>,
    #[pyo3(get)]
    overrides: Py<PyDict>,
}

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Array {
    metadata: Py<Metadata>,
    key: Box<[u8]>,
}

#[pymethods]
impl Metadata {
    #[staticmethod]
    #[pyo3(signature = (data, total, overrides, flawed = false))]
    fn read<'py>(
        py: Python<'py>,
        data: PyBackedBytes,
        total: Option<usize>,
        overrides: Bound<'py, PyDict>,
        flawed: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let total = total.unwrap_or(usize::MAX);
        let find = if flawed { Layout::find_flawed } else { Layout::find };
        let layout = match run_long(py, || Ok::<_, Infallible>(find(&data, total)))? {
            Ok(layout) => layout,
            Err(GgufError { needed: Some(size), .. }) => return size.into_bound_py_any(py),
            Err(error) => return Err(error.raise()),
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

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, &self.core.data()[..self.size()])
    }

    #[getter]
    fn size(&self) -> usize {
        self.core.layout().size()
    }

    #[getter]
    fn big_endian(&self) -> bool {
        self.core.layout().is_big_endian()
    }

    #[getter]
    fn version(&self) -> u32 {
        self.core.layout().version()
    }

    #[getter]
    fn tensor_count(&self) -> u64 {
        self.core.layout().num_tensors()
    }

    fn entries<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let entries = PyDict::new(slf.py());
        for (key, value) in slf.get().core.entries() {
            entries.set_item(decoded(slf.py(), key)?, (value.kind() as i32, object(slf, key, value)?))?;
        }
        Ok(entries)
    }

    fn get<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = encoded(key)?;
        slf.get().core.get(&*key).map(|value| object(slf, &key, value)).transpose()
    }

    fn raw<'py>(&self, py: Python<'py>, key: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let absent = || invalid(format!("no metadata key is named {key}"));
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

    fn strings(&self) -> PyResult<Option<Vec<&[u8]>>> {
        Ok(self.array()?.strings().map(|strings| strings.iter().collect()))
    }

    fn raw<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        bytes_of(py, self.array()?.bytes())
    }

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

/// An override in llama.cpp's types. Only 32 bits of an integer are ever read.
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

/// Text of a file, which need not be UTF-8: a surrogate stands for each byte that is not.
fn decoded<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    str_of(py, text, "surrogateescape")
}

/// The bytes of a text from a file, or of one from an override, which may hold any surrogate.
fn encoded(text: &Bound<'_, PyAny>) -> PyResult<PyBackedBytes> {
    let encode = |errors| text.call_method1("encode", ("utf-8", errors));
    let bytes = encode("surrogateescape").or_else(|_| encode("surrogatepass"))?;
    Ok(bytes.extract()?)
}
