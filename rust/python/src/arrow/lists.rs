//! Batches as Arrow arrays: one list of int32 per row, and null for a row that was null.
//!
//! The lists are `large_list<int32>`, whose offsets have 64 bits, as the batch's do: nothing is copied. Who asks for
//! `list<int32>` is given that if the offsets fit into 32 bits; they are copied then.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use ggtok_core::TokenId;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::ffi::{ARRAY, Array, Released, SCHEMA, Schema, peek};

/// A flag of a schema: there can be nulls.
const NULLABLE: i64 = 2;
const INT32: &CStr = c"i";
const LIST: &CStr = c"+l";
const LARGE_LIST: &CStr = c"+L";

/// A batch to be written.
pub(crate) struct Lists {
    pub ids: Arc<Vec<TokenId>>,
    /// The first id of the batch, and how many there are.
    pub start: usize,
    pub num_ids: usize,
    pub offsets: Arc<Vec<i64>>,
    /// For each row whether it is null.
    pub nulls: Option<Arc<Vec<bool>>>,
}

/// What keeps the memory of an array.
enum Memory {
    Ids { _ids: Arc<Vec<TokenId>> },
    Offsets { _offsets: Arc<Vec<i64>>, _validity: Option<Vec<u8>> },
    ShortOffsets { _offsets: Vec<i32>, _validity: Option<Vec<u8>> },
}

/// What an array owns.
struct Owned {
    buffers: [*const c_void; 2],
    /// The items of a list; null for the items themselves.
    child: *mut Array,
    _memory: Memory,
}

/// The type of batches as a capsule.
pub(crate) fn schema_capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, lists_schema(LARGE_LIST), SCHEMA)
}

/// A batch as a pair of capsules: type and array.
///
/// # Errors
/// `requested` is no schema capsule.
pub(crate) fn array_capsule<'py>(
    py: Python<'py>,
    lists: Lists,
    requested: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let is_list_of_int32 = |schema: &Schema| {
        let item = schema.child(0).map(Schema::format);
        schema.format() == LIST.to_bytes() && item == Some(INT32.to_bytes())
    };
    let wants_short = requested.map(|requested| peek(requested, is_list_of_int32)).transpose()?;
    let is_short = wants_short == Some(true) && lists.num_ids <= i32::MAX as usize;
    let schema = lists_schema(if is_short { LIST } else { LARGE_LIST });
    let array = lists_array(lists, is_short);
    Ok((PyCapsule::new_with_value(py, schema, SCHEMA)?, PyCapsule::new_with_value(py, array, ARRAY)?))
}

fn schema(format: &'static CStr, name: &'static CStr) -> Schema {
    let mut schema = Schema::RELEASED;
    schema.format = format.as_ptr();
    schema.name = name.as_ptr();
    schema.flags = NULLABLE;
    schema.release = Some(release_schema);
    schema
}

fn lists_schema(format: &'static CStr) -> Schema {
    let item = Box::into_raw(Box::new(schema(INT32, c"item")));
    let mut lists = schema(format, c"");
    lists.num_children = 1;
    lists.children = Box::into_raw(Box::new(item));
    lists
}

fn array(len: usize, buffers: [*const c_void; 2], child: *mut Array, memory: Memory) -> Array {
    let owned = Box::into_raw(Box::new(Owned { buffers, child, _memory: memory }));
    let mut array = Array::RELEASED;
    array.len = len as i64;
    array.num_buffers = 2;
    // SAFETY: `owned` is a box that lives until the array is released. Only the places of its fields are taken.
    unsafe {
        array.buffers = (&raw mut (*owned).buffers).cast();
        array.num_children = i64::from(!child.is_null());
        array.children = if child.is_null() { ptr::null_mut() } else { &raw mut (*owned).child };
    }
    array.release = Some(release_array);
    array.private = owned.cast();
    array
}

fn lists_array(lists: Lists, is_short: bool) -> Array {
    let num_rows = lists.offsets.len() - 1;
    let ids = lists.ids.as_ptr().wrapping_add(lists.start);
    let items = array(lists.num_ids, [ptr::null(), ids.cast()], ptr::null_mut(), Memory::Ids { _ids: lists.ids });

    let validity = lists.nulls.as_ref().map(|nulls| {
        let bits = |nulls: &[bool]| nulls.iter().rev().fold(0, |bits, &is_null| bits << 1 | u8::from(!is_null));
        nulls.chunks(8).map(bits).collect::<Vec<u8>>()
    });
    let validity_pointer = validity.as_ref().map_or(ptr::null(), |validity| validity.as_ptr().cast());
    let (offsets, memory): (*const c_void, _) = if is_short {
        let offsets: Vec<i32> = lists.offsets.iter().map(|&offset| offset as i32).collect();
        (offsets.as_ptr().cast(), Memory::ShortOffsets { _offsets: offsets, _validity: validity })
    } else {
        let offsets = lists.offsets.as_ptr().cast();
        (offsets, Memory::Offsets { _offsets: lists.offsets, _validity: validity })
    };
    let mut array = array(num_rows, [validity_pointer, offsets], Box::into_raw(Box::new(items)), memory);
    array.null_count = lists.nulls.map_or(0, |nulls| nulls.iter().filter(|is_null| **is_null).count() as i64);
    array
}

/// # Safety
/// `schema` was made by [`schema`], and perhaps moved, and is not released.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: children are boxes of a boxed schema, made by `lists_schema`; a child that was moved away is marked as
    // released, and dropping it does nothing more.
    unsafe {
        let children = (*schema).children;
        if !children.is_null() {
            drop(Box::from_raw(*Box::from_raw(children)));
        }
        (*schema).children = ptr::null_mut();
        (*schema).release = None;
    }
}

/// # Safety
/// `array` was made by [`array`], and perhaps moved, and is not released.
unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: `private` is the box made by `array`, which frees the memory, and so is its child; a child that was moved
    // away is marked as released, and dropping it does nothing more.
    unsafe {
        let owned = Box::from_raw((*array).private.cast::<Owned>());
        if !owned.child.is_null() {
            drop(Box::from_raw(owned.child));
        }
        (*array).private = ptr::null_mut();
        (*array).release = None;
    }
}
