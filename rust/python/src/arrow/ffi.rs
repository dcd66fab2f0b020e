//! The structs of the Arrow C interfaces, and everything about them that is unsafe.
//!
//! A struct is released once: by its `release` function, when its owner drops it. Moving one is a copy of its bytes
//! after which the old place counts as released, so a Rust value can be moved as usual. The default is a released one.

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::invalid;

/// A flag of a schema: there can be nulls.
const NULLABLE: i64 = 2;

/// `ArrowSchema`: the type of a column.
#[repr(C)]
#[derive(Default)]
pub(super) struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    num_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private: *mut c_void,
}

/// `ArrowArray`: the memory of a column, or of a part of it.
#[repr(C)]
#[derive(Default)]
pub(super) struct ArrowArray {
    pub len: i64,
    null_count: i64,
    pub offset: i64,
    num_buffers: i64,
    num_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private: *mut c_void,
}

/// `ArrowArrayStream`: the parts of a column one by one.
#[repr(C)]
#[derive(Default)]
pub(super) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private: *mut c_void,
}

/// A struct of the interface.
pub(super) trait Struct: Default + Send + 'static {
    /// The name of a capsule that holds this struct.
    const CAPSULE: &'static CStr;

    fn is_released(&self) -> bool;

    /// The struct in a capsule.
    fn capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        PyCapsule::new_with_value(py, self, Self::CAPSULE)
    }

    /// Takes the struct out of a capsule, which is left with a released one.
    ///
    /// # Errors
    /// The object is not a capsule of this name, or its struct was taken before.
    fn take(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut pointer = pointer::<Self>(object)?;
        // SAFETY: under this name the interface promises a valid struct that the capsule owns and that no other thread
        // reads now. The destructor of the capsule leaves a released struct alone.
        let taken = std::mem::take(unsafe { pointer.as_mut() });
        if taken.is_released() {
            return Err(invalid(format!("the capsule {:?} was taken before", Self::CAPSULE)));
        }
        Ok(taken)
    }
}

/// The struct in a capsule.
fn pointer<T: Struct>(object: &Bound<'_, PyAny>) -> PyResult<NonNull<T>> {
    Ok(object.cast::<PyCapsule>()?.pointer_checked(Some(T::CAPSULE))?.cast())
}

macro_rules! structs {
    ($($name:ident: $capsule:literal),*) => {$(
        impl Struct for $name {
            const CAPSULE: &'static CStr = $capsule;

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it is not released yet, and its owner calls this once. The function resets `release`.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: the interface lets a struct be read and released on any thread, one at a time; `&mut` and `Drop` see
        // to that.
        unsafe impl Send for $name {}
    )*};
}

structs!(Schema: c"arrow_schema", ArrowArray: c"arrow_array", Stream: c"arrow_array_stream");

impl Schema {
    /// A type that may have one child.
    pub(super) fn new(format: &'static CStr, name: &'static CStr, child: Option<Self>) -> Self {
        let mut schema = Self::default();
        (schema.format, schema.name, schema.flags) = (format.as_ptr(), name.as_ptr(), NULLABLE);
        (schema.children, schema.num_children) = boxed_children(child);
        schema.release = Some(release_schema);
        schema
    }

    /// Reads the schema in a capsule, which keeps it.
    pub(super) fn peek<R>(object: &Bound<'_, PyAny>, read: impl FnOnce(&Self) -> R) -> PyResult<R> {
        // SAFETY: under this name the interface promises a valid schema. The capsule is borrowed, so it lives on, and
        // `read` runs no Python code that could take it.
        Ok(read(unsafe { pointer::<Self>(object)?.as_ref() }))
    }

    /// The type in the notation of the interface; empty for a released schema.
    pub(super) fn format(&self) -> &[u8] {
        if self.format.is_null() {
            return b"";
        }
        // SAFETY: a schema that is not released has a string here, which lives as long as it does.
        unsafe { CStr::from_ptr(self.format) }.to_bytes()
    }

    /// The type of the texts of a dictionary-encoded column.
    pub(super) fn dictionary(&self) -> Option<&Self> {
        // SAFETY: null, or a schema that lives as long as this one, which owns it.
        unsafe { self.dictionary.as_ref() }
    }

    /// The type of the first child.
    pub(super) fn child(&self) -> Option<&Self> {
        if self.children.is_null() || self.num_children < 1 {
            return None;
        }
        // SAFETY: there are `num_children` pointers to schemas, which this one owns.
        unsafe { (*self.children).as_ref() }
    }
}

/// What an array made here owns.
struct Owned {
    buffers: [*const c_void; 2],
    _memory: Box<dyn Any + Send>,
}

impl ArrowArray {
    /// An array that may have one child. `memory` keeps what the buffers point to: for each row, bits or items of the
    /// array's type.
    pub(super) fn new(
        len: usize,
        null_count: usize,
        buffers: [*const c_void; 2],
        child: Option<Self>,
        memory: impl Send + 'static,
    ) -> Self {
        let owned = Box::into_raw(Box::new(Owned { buffers, _memory: Box::new(memory) }));
        let mut array = Self::default();
        (array.len, array.null_count) = (len as i64, null_count as i64);
        // SAFETY: the box lives until the array is released. Only the place of its field is taken.
        (array.buffers, array.num_buffers) = (unsafe { (&raw const (*owned).buffers).cast() }, 2);
        (array.children, array.num_children) = boxed_children(child);
        array.private = owned.cast();
        array.release = Some(release_array);
        array
    }

    /// The texts of a dictionary-encoded array.
    pub(super) fn dictionary(&self) -> Option<&Self> {
        // SAFETY: null, or an array that lives as long as this one, which owns it.
        unsafe { self.dictionary.as_ref() }
    }

    /// The number of buffers.
    pub(super) fn num_buffers(&self) -> usize {
        if self.buffers.is_null() { 0 } else { usize::try_from(self.num_buffers).unwrap_or_default() }
    }

    /// The first `len` items of `width` bytes in a buffer; `None` if the buffer is missing and `len` is not 0.
    ///
    /// # Safety
    /// By the type, length and offset of this array the buffer has at least `len` such items, if it is not null.
    pub(super) unsafe fn buffer(&self, index: usize, len: usize, width: usize) -> Option<&[u8]> {
        if len == 0 {
            return Some(&[]);
        }
        let size = len.checked_mul(width).filter(|&size| size <= isize::MAX as usize)?;
        if index >= self.num_buffers() {
            return None;
        }
        // SAFETY: there are `num_buffers` pointers.
        let pointer = unsafe { *self.buffers.add(index) };
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the caller promises the size. The memory belongs to this array, and the interface forbids writing to
        // it.
        Some(unsafe { std::slice::from_raw_parts(pointer.cast(), size) })
    }
}

/// A list of one child or none, as the interface has it: pointers to structs, and their number.
fn boxed_children<T>(child: Option<T>) -> (*mut *mut T, i64) {
    let boxed = |child| Box::into_raw(Box::new(Box::into_raw(Box::new(child))));
    child.map_or((ptr::null_mut(), 0), |child| (boxed(child), 1))
}

/// Frees what [`boxed_children`] made. A child that was moved away counts as released, and dropping it does no more.
///
/// # Safety
/// `children` was made by [`boxed_children`], and is not used again.
unsafe fn free_children<T>(children: *mut *mut T) {
    if !children.is_null() {
        // SAFETY: a box of a pointer, and a box of what it points to.
        unsafe { drop(Box::from_raw(*Box::from_raw(children))) }
    }
}

/// # Safety
/// `schema` was made by [`Schema::new`], and perhaps moved, and is not released.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: as the caller promises.
    unsafe {
        free_children((*schema).children);
        (*schema).release = None;
    }
}

/// # Safety
/// `array` was made by [`ArrowArray::new`], and perhaps moved, and is not released.
unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: as the caller promises; `private` is the box that owns the memory.
    unsafe {
        free_children((*array).children);
        drop(Box::from_raw((*array).private.cast::<Owned>()));
        (*array).release = None;
    }
}

impl Stream {
    /// The type of all parts.
    ///
    /// # Errors
    /// What the stream says.
    pub(super) fn schema(&mut self) -> Result<Schema, String> {
        let mut schema = Schema::default();
        // SAFETY: if the stream is not released, it has this function; `schema` is a place for a schema.
        let code = self.get_schema.map(|get| unsafe { get(self, &mut schema) });
        self.check(code)?;
        Ok(schema)
    }

    /// The next part, or `None` after the last.
    ///
    /// # Errors
    /// What the stream says.
    pub(super) fn next(&mut self) -> Result<Option<ArrowArray>, String> {
        let mut array = ArrowArray::default();
        // SAFETY: as above, with a place for an array.
        let code = self.get_next.map(|get| unsafe { get(self, &mut array) });
        self.check(code)?;
        Ok(if array.is_released() { None } else { Some(array) })
    }

    /// Turns the code that a function of the stream returned into what the stream says about it.
    fn check(&mut self, code: Option<c_int>) -> Result<(), String> {
        let Some(code) = code else { return Err("the stream is released".to_owned()) };
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the stream is not released, and its last call failed.
        let message = self.get_last_error.map_or(ptr::null(), |get| unsafe { get(self) });
        if message.is_null() {
            return Err(format!("error {code}"));
        }
        // SAFETY: a string that lives until the next call.
        Err(unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned())
    }
}
