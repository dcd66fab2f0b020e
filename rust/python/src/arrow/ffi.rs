//! The structs of the Arrow C interfaces, and everything about them that is unsafe.
//!
//! A struct is released once: by its `release` function, when its owner drops it. Moving one is a copy of its bytes
//! after which the old place counts as released, so a Rust value can be moved as usual.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::errors::arrow_error;

pub(super) const SCHEMA: &CStr = c"arrow_schema";
pub(super) const ARRAY: &CStr = c"arrow_array";
pub(super) const STREAM: &CStr = c"arrow_array_stream";

/// `ArrowSchema`: the type of a column.
#[repr(C)]
pub(super) struct Schema {
    pub format: *const c_char,
    pub name: *const c_char,
    pub metadata: *const c_char,
    pub flags: i64,
    pub num_children: i64,
    pub children: *mut *mut Schema,
    pub dictionary: *mut Schema,
    pub release: Option<unsafe extern "C" fn(*mut Schema)>,
    pub private: *mut c_void,
}

/// `ArrowArray`: the memory of a column, or of a part of it.
#[repr(C)]
pub(super) struct Array {
    pub len: i64,
    pub null_count: i64,
    pub offset: i64,
    pub num_buffers: i64,
    pub num_children: i64,
    pub buffers: *mut *const c_void,
    pub children: *mut *mut Array,
    pub dictionary: *mut Array,
    pub release: Option<unsafe extern "C" fn(*mut Array)>,
    pub private: *mut c_void,
}

/// `ArrowArrayStream`: the parts of a column one by one.
#[repr(C)]
pub(super) struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private: *mut c_void,
}

/// A struct of the interface: all zero when released.
pub(super) trait Released {
    const RELEASED: Self;

    /// Whether it is.
    fn is_released(&self) -> bool;
}

macro_rules! released {
    ($name:ident, { $($field:ident: $value:expr),* }) => {
        impl Released for $name {
            const RELEASED: Self = Self { $($field: $value,)* release: None, private: ptr::null_mut() };

            fn is_released(&self) -> bool {
                self.release.is_none()
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                if let Some(release) = self.release {
                    // SAFETY: it is not released yet, and its owner calls this once. The function sets `release`.
                    unsafe { release(self) }
                }
            }
        }

        // SAFETY: the interface lets a struct be read and released on any thread, one at a time; `&mut` and `Drop` see
        // to that.
        unsafe impl Send for $name {}
    };
}

released!(Schema, {
    format: ptr::null(), name: ptr::null(), metadata: ptr::null(), flags: 0, num_children: 0,
    children: ptr::null_mut(), dictionary: ptr::null_mut()
});
released!(Array, {
    len: 0, null_count: 0, offset: 0, num_buffers: 0, num_children: 0, buffers: ptr::null_mut(),
    children: ptr::null_mut(), dictionary: ptr::null_mut()
});
released!(Stream, { get_schema: None, get_next: None, get_last_error: None });

/// Takes a struct out of a capsule of the right name; the capsule is left with a released one.
///
/// # Errors
/// The object is no such capsule, or its struct was taken before.
pub(super) fn take<T: Released>(object: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<T> {
    let capsule = object.cast::<PyCapsule>()?;
    let pointer: NonNull<T> = capsule.pointer_checked(Some(name))?.cast();
    // SAFETY: under this name the interface promises a valid struct of type `T`, which the capsule owns and nobody
    // reads meanwhile. What is left in its place is a released struct, which its destructor leaves alone.
    let taken = unsafe { ptr::replace(pointer.as_ptr(), T::RELEASED) };
    if taken.is_released() {
        return Err(arrow_error(format!("the capsule {name:?} was taken before")));
    }
    Ok(taken)
}

/// Reads a struct inside a capsule, which keeps it.
pub(super) fn peek<R>(object: &Bound<'_, PyAny>, read: impl FnOnce(&Schema) -> R) -> PyResult<R> {
    let capsule = object.cast::<PyCapsule>()?;
    let pointer: NonNull<Schema> = capsule.pointer_checked(Some(SCHEMA))?.cast();
    // SAFETY: under this name the interface promises a valid schema. The capsule is borrowed, so it lives on, and
    // `read` runs no Python code that could take it.
    Ok(read(unsafe { pointer.as_ref() }))
}

impl Schema {
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
        // SAFETY: null or a schema that lives as long as this one, which owns it.
        unsafe { self.dictionary.as_ref() }
    }

    /// The type of child `index`.
    pub(super) fn child(&self, index: usize) -> Option<&Self> {
        if self.children.is_null() || index as i64 >= self.num_children {
            return None;
        }
        // SAFETY: there are `num_children` pointers to schemas, which this one owns.
        unsafe { (*self.children.add(index)).as_ref() }
    }
}

impl Array {
    /// The texts of a dictionary-encoded array.
    pub(super) fn dictionary(&self) -> Option<&Self> {
        // SAFETY: null or an array that lives as long as this one, which owns it.
        unsafe { self.dictionary.as_ref() }
    }

    /// The number of buffers.
    pub(super) fn num_buffers(&self) -> usize {
        if self.buffers.is_null() { 0 } else { usize::try_from(self.num_buffers).unwrap_or_default() }
    }

    /// The first `len` items of `N` bytes in buffer `index`; `None` where there is no such buffer and `len` is not 0.
    ///
    /// # Safety
    /// By the type, length and offset of this array the buffer has at least `len` such items, if it is not null.
    pub(super) unsafe fn buffer<const N: usize>(&self, index: usize, len: usize) -> Option<&[[u8; N]]> {
        if len == 0 {
            return Some(&[]);
        }
        if index >= self.num_buffers() || len > isize::MAX as usize / N {
            return None;
        }
        // SAFETY: there are `num_buffers` pointers.
        let pointer = unsafe { *self.buffers.add(index) };
        if pointer.is_null() {
            return None;
        }
        // SAFETY: the caller promises the length. Bytes need no alignment. The memory belongs to this array, and by the
        // interface nobody writes to it.
        Some(unsafe { std::slice::from_raw_parts(pointer.cast(), len) })
    }
}

impl Stream {
    /// The type of all parts.
    ///
    /// # Errors
    /// What the stream says.
    pub(super) fn schema(&mut self) -> Result<Schema, String> {
        let mut schema = Schema::RELEASED;
        let Some(get_schema) = self.get_schema else { return Err("the stream is released".to_owned()) };
        // SAFETY: the stream is not released, and `schema` is a place for a schema.
        let code = unsafe { get_schema(self, &mut schema) };
        if code == 0 { Ok(schema) } else { Err(self.last_error(code)) }
    }

    /// The next part, or `None` after the last.
    ///
    /// # Errors
    /// What the stream says.
    pub(super) fn next(&mut self) -> Result<Option<Array>, String> {
        let mut array = Array::RELEASED;
        let Some(get_next) = self.get_next else { return Err("the stream is released".to_owned()) };
        // SAFETY: the stream is not released, and `array` is a place for an array.
        let code = unsafe { get_next(self, &mut array) };
        match code {
            0 if array.release.is_none() => Ok(None),
            0 => Ok(Some(array)),
            _ => Err(self.last_error(code)),
        }
    }

    fn last_error(&mut self, code: c_int) -> String {
        // SAFETY: the stream is not released, and its last call failed.
        let message = self.get_last_error.map_or(ptr::null(), |get| unsafe { get(self) });
        if message.is_null() {
            return format!("error {code}");
        }
        // SAFETY: a string that lives until the next call.
        unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned()
    }
}
