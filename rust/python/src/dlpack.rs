//! DLPack: memory as the C struct that array libraries exchange, inside a capsule.
//!
//! Source: the DLPack specification (`dlpack.h`, version 1.0) and its Python part. Whoever takes the struct renames the
//! capsule and calls the deleter; a capsule that nobody took deletes it itself. Neither needs the GIL: the memory is
//! Rust's.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::memory::Memory;

/// The CPU as type and number of a device.
pub(crate) const CPU: (i64, i64) = (1, 0);

/// Set in [`VersionedTensor::flags`] for memory that must not be written to.
const READ_ONLY: u64 = 1;
/// Set for memory that was copied for the taker.
const IS_COPIED: u64 = 2;

/// What is given away.
pub(crate) struct Tensor {
    pub memory: Memory,
    /// The first item.
    pub start: usize,
    /// Items in each dimension.
    pub shape: Box<[i64]>,
    /// Items from one to the next in each dimension.
    pub strides: Box<[i64]>,
    pub is_read_only: bool,
}

/// `DLTensor`.
#[repr(C)]
struct RawTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    num_dimensions: i32,
    type_code: u8,
    type_bits: u8,
    type_lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`, and after it what it points into.
#[repr(C)]
struct ManagedTensor {
    tensor: RawTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
    _owner: Tensor,
}

/// `DLManagedTensorVersioned`, and after it what it points into.
#[repr(C)]
struct VersionedTensor {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedTensor)>,
    flags: u64,
    tensor: RawTensor,
    _owner: Tensor,
}

const NAME: &CStr = c"dltensor";
const VERSIONED_NAME: &CStr = c"dltensor_versioned";

/// A capsule with a tensor, in the form of DLPack 1.0 or in the one before it.
pub(crate) fn capsule<'py>(py: Python<'py>, owner: Tensor, versioned: bool) -> PyResult<Bound<'py, PyAny>> {
    let tensor = raw(&owner);
    let context = ptr::null_mut();
    let (pointer, name, destructor): (*mut c_void, _, ffi::PyCapsule_Destructor) = if versioned {
        let flags = if owner.is_read_only { READ_ONLY } else { IS_COPIED };
        let deleter = Some(delete::<VersionedTensor> as unsafe extern "C" fn(*mut VersionedTensor));
        let managed = VersionedTensor { major: 1, minor: 0, context, deleter, flags, tensor, _owner: owner };
        (Box::into_raw(Box::new(managed)).cast(), VERSIONED_NAME, delete_versioned_capsule)
    } else {
        let deleter = Some(delete::<ManagedTensor> as unsafe extern "C" fn(*mut ManagedTensor));
        let managed = ManagedTensor { tensor, context, deleter, _owner: owner };
        (Box::into_raw(Box::new(managed)).cast(), NAME, delete_capsule)
    };
    // A box is never null.
    let Some(pointer) = NonNull::new(pointer) else { return Err(PyErr::fetch(py)) };
    // SAFETY: `pointer` is a box of the struct that DLPack expects under this name. It lives until its deleter is
    // called: by the taker, who renames the capsule first, or else by the destructor.
    let capsule = unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, name, Some(destructor)) };
    capsule.map(Bound::into_any)
}

/// A tensor as DLPack describes it. Moving `owner` moves none of what this points to.
fn raw(owner: &Tensor) -> RawTensor {
    let (type_code, type_bits) = match owner.memory {
        Memory::Int32(_) => (0, 32),
        Memory::Int64(_) => (0, 64),
        Memory::Bool(_) => (6, 8),
    };
    RawTensor {
        data: owner.memory.pointer().wrapping_add(owner.start * owner.memory.item_size()).cast_mut().cast(),
        device_type: CPU.0 as i32,
        device_id: CPU.1 as i32,
        num_dimensions: owner.shape.len() as i32,
        type_code,
        type_bits,
        type_lanes: 1,
        shape: owner.shape.as_ptr().cast_mut(),
        strides: owner.strides.as_ptr().cast_mut(),
        byte_offset: 0,
    }
}

/// Frees a managed tensor and its share of the memory.
///
/// # Safety
/// `managed` is null, or was made by [`capsule`] and is not used again.
unsafe extern "C" fn delete<T>(managed: *mut T) {
    if !managed.is_null() {
        // SAFETY: the caller hands over what `Box::into_raw` returned.
        drop(unsafe { Box::from_raw(managed) });
    }
}

/// Frees what nobody took out of a capsule.
///
/// # Safety
/// Python calls it with a capsule that [`capsule`] made, once.
unsafe extern "C" fn delete_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: as the caller promises.
    unsafe { delete_unused::<ManagedTensor>(capsule, NAME) }
}

/// As [`delete_capsule`].
///
/// # Safety
/// As [`delete_capsule`].
unsafe extern "C" fn delete_versioned_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: as the caller promises.
    unsafe { delete_unused::<VersionedTensor>(capsule, VERSIONED_NAME) }
}

/// # Safety
/// `capsule` is a capsule which, as long as it has this name, owns a box of a `T`.
unsafe fn delete_unused<T>(capsule: *mut ffi::PyObject, name: &CStr) {
    // SAFETY: `capsule` is a capsule. With its first name it owns its box; who takes the box renames the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, name.as_ptr()).cast::<T>());
        }
    }
}
