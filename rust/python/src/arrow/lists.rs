//! Batches as Arrow arrays: one list of int32 per row, and null for a row that was null.
//!
//! The lists are `large_list<int32>`, whose offsets have 64 bits, as the batch's do: nothing is copied. A consumer that
//! asks for `list<int32>` gets it if the offsets fit into 32 bits; they are copied then.

use std::ffi::CStr;
use std::ptr;
use std::sync::Arc;

use ggtok_core::TokenId;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::ffi::{ArrowArray, Schema, Struct};

const INT32: &CStr = c"i";
const LIST: &CStr = c"+l";
const LARGE_LIST: &CStr = c"+L";

/// The rows of a batch.
#[derive(Clone)]
pub(crate) struct Lists {
    pub ids: Arc<Vec<TokenId>>,
    /// The first id of these rows: a slice of a batch shares its ids.
    pub start: usize,
    /// From 0, relative to `start`.
    pub offsets: Arc<Vec<i64>>,
    /// For each row whether it is null; absent if none is.
    pub nulls: Option<Arc<Vec<bool>>>,
}

impl Lists {
    pub(crate) fn num_rows(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn num_ids(&self) -> usize {
        // The first offset is 0.
        self.offsets.last().map_or(0, |&end| end as usize)
    }

    pub(crate) fn null_count(&self) -> usize {
        self.nulls.as_ref().map_or(0, |nulls| nulls.iter().filter(|is_null| **is_null).count())
    }
}

/// The type of batches as a capsule.
pub(crate) fn schema_capsule(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
    schema(LARGE_LIST).capsule(py)
}

/// A batch as a pair of capsules: type and array.
///
/// # Errors
/// `requested` is not a schema capsule.
pub(crate) fn array_capsule<'py>(
    py: Python<'py>,
    lists: Lists,
    requested: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
    let is_list_of_int32 = |schema: &Schema| {
        schema.format() == LIST.to_bytes() && schema.child().map(Schema::format) == Some(INT32.to_bytes())
    };
    let wants_short = requested.map(|requested| Schema::peek(requested, is_list_of_int32)).transpose()?;
    let is_short = wants_short == Some(true) && lists.num_ids() <= i32::MAX as usize;
    let schema = schema(if is_short { LIST } else { LARGE_LIST });
    Ok((schema.capsule(py)?, array(lists, is_short).capsule(py)?))
}

fn schema(format: &'static CStr) -> Schema {
    Schema::new(format, c"", Some(Schema::new(INT32, c"item", None)))
}

fn array(lists: Lists, is_short: bool) -> ArrowArray {
    let [num_rows, num_ids, null_count] = [lists.num_rows(), lists.num_ids(), lists.null_count()];
    let ids = lists.ids.as_ptr().wrapping_add(lists.start);
    let items = Some(ArrowArray::new(num_ids, 0, [ptr::null(), ids.cast()], None, lists.ids));

    let validity = lists.nulls.map(|nulls| validity(&nulls));
    let bits = validity.as_ref().map_or(ptr::null(), |validity| validity.as_ptr().cast());
    if is_short {
        let offsets: Vec<i32> = lists.offsets.iter().map(|&offset| offset as i32).collect();
        ArrowArray::new(num_rows, null_count, [bits, offsets.as_ptr().cast()], items, (validity, offsets))
    } else {
        let buffers = [bits, lists.offsets.as_ptr().cast()];
        ArrowArray::new(num_rows, null_count, buffers, items, (validity, lists.offsets))
    }
}

/// A bit for each row: 0 if it is null.
pub(crate) fn validity(nulls: &[bool]) -> Vec<u8> {
    let bits = |nulls: &[bool]| nulls.iter().rev().fold(0, |bits, &is_null| bits << 1 | u8::from(!is_null));
    nulls.chunks(8).map(bits).collect()
}
