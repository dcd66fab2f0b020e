//! Read-only arrays of numbers that Rust owns and Python shares: through the buffer protocol, and DLPack by numpy.
//!
//! The memory has a reference count, so a view keeps it alive and nothing is copied. It is never written to again, so
//! threads and other libraries may read it at the same time.

use std::ffi::CStr;
use std::sync::Arc;

use ggtok_core::TokenId;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyMemoryView, PyTuple};

use crate::arrays::import_numpy;

/// DLPack's type and number of the device.
const CPU: (i64, i64) = (1, 0);

/// Numbers of one type.
#[derive(Clone)]
pub(crate) enum Memory {
    Int32(Arc<Vec<TokenId>>),
    Int64(Arc<Vec<i64>>),
    Bool(Arc<Vec<bool>>),
    Uint8(Arc<Vec<u8>>),
}

/// What a memory holds.
struct Items {
    /// The first byte.
    pointer: *const u8,
    len: usize,
    /// Bytes of an item.
    size: usize,
    /// The type's name in numpy.
    name: &'static str,
    /// The type in the notation of Python's `struct` module.
    format: &'static CStr,
}

impl Memory {
    fn items(&self) -> Items {
        // A C `long` if it has 64 bits, because numpy calls that int64.
        let int64 = if size_of::<std::ffi::c_long>() == 8 { c"l" } else { c"q" };
        let (pointer, len, size, name, format) = match self {
            Self::Int32(items) => (items.as_ptr().cast(), items.len(), 4, "int32", c"i"),
            Self::Int64(items) => (items.as_ptr().cast(), items.len(), 8, "int64", int64),
            Self::Bool(items) => (items.as_ptr().cast(), items.len(), 1, "bool", c"?"),
            Self::Uint8(items) => (items.as_ptr(), items.len(), 1, "uint8", c"B"),
        };
        Items { pointer, len, size, name, format }
    }
}

#[doc = doc!(Buffer)]
#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Buffer {
    memory: Memory,
    /// The first item.
    start: usize,
    /// Items in each dimension: one or two.
    shape: Box<[isize]>,
    /// Bytes from one item to the next in each dimension.
    strides: Box<[isize]>,
}

impl Buffer {
    /// All of a memory as one row.
    pub(crate) fn whole(memory: Memory) -> Self {
        let len = memory.items().len;
        Self::new(memory, 0, &[len])
    }

    /// A row of this many items of a memory from `start` on, or this many rows of as many items.
    pub(crate) fn new(memory: Memory, start: usize, shape: &[usize]) -> Self {
        let size = memory.items().size;
        let strides = (1..=shape.len()).map(|next| (size * shape[next..].iter().product::<usize>()) as isize).collect();
        Self { memory, start, shape: shape.iter().map(|&len| len as isize).collect(), strides }
    }

    /// A read-only numpy array of the same memory.
    pub(crate) fn into_numpy(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        import_numpy(py)?.call_method1(intern!(py, "asarray"), (self,))
    }
}

#[pymethods]
impl Buffer {
    #[doc = doc!(Buffer.dtype)]
    #[getter]
    fn dtype(&self) -> &'static str {
        self.memory.items().name
    }

    #[doc = doc!(Buffer.shape)]
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    fn __len__(&self) -> usize {
        self.shape[0] as usize
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf.as_any())?.get_item(index)
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        PyMemoryView::from(slf.as_any())?.try_iter()
    }

    #[doc = doc!(Buffer.tolist)]
    fn tolist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(slf.as_any())?.call_method0("tolist")
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(isize::to_string).collect();
        format!("<ggtok.Buffer of {} {}>", shape.join(" x "), self.dtype())
    }

    // SAFETY: Python calls this with a view to be filled in.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: i32) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("the caller passed no view to fill in"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the memory cannot be written to"));
        }
        let Self { memory, start, shape, strides } = slf.get();
        let Items { pointer, size, format, .. } = memory.items();
        // A caller gets only what it asks for.
        let sizes = |flag: i32, sizes: &[isize]| {
            if flags & flag == flag { sizes.as_ptr().cast_mut() } else { std::ptr::null_mut() }
        };
        let has_format = flags & ffi::PyBUF_FORMAT == ffi::PyBUF_FORMAT;
        let filled = ffi::Py_buffer {
            buf: pointer.wrapping_add(start * size).cast_mut().cast(),
            obj: slf.as_ptr(),
            len: shape.iter().product::<isize>() * size as isize,
            itemsize: size as isize,
            readonly: 1,
            ndim: shape.len() as i32,
            format: if has_format { format.as_ptr().cast_mut() } else { std::ptr::null_mut() },
            shape: sizes(ffi::PyBUF_ND, shape),
            strides: sizes(ffi::PyBUF_STRIDES, strides),
            suboffsets: std::ptr::null_mut(),
            internal: std::ptr::null_mut(),
        };
        // SAFETY: `view` is not null, and Python's to be filled in. All pointers are into `slf`, which is frozen, or
        // into memory that it owns; the view owns the reference to `slf` that is forgotten here, so they live as long
        // as the view. The items are contiguous, so a view without shape or strides is right too.
        unsafe { view.write(filled) };
        std::mem::forget(slf);
        Ok(())
    }

    #[doc = doc!(Buffer.__dlpack__)]
    #[pyo3(signature = (**options))]
    fn __dlpack__<'py>(slf: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let option = |name| options.map_or(Ok(None), |options| options.get_item(name));
        let max_version: Option<(i64, i64)> = option("max_version")?.map_or(Ok(None), |version| version.extract())?;
        let copy: Option<bool> = option("copy")?.map_or(Ok(None), |copy| copy.extract())?;
        // Before version 1.0, DLPack could not mark memory as read-only.
        let needs_copy = max_version.is_none_or(|(major, _)| major < 1);
        let call = if needs_copy && copy != Some(false) { "array" } else { "asarray" };
        import_numpy(py)?.call_method1(call, (slf,))?.call_method("__dlpack__", (), options)
    }

    #[doc = doc!(Buffer.__dlpack_device__)]
    fn __dlpack_device__(&self) -> (i64, i64) {
        CPU
    }
}
