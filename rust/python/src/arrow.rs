//! The Arrow PyCapsule interface: columns of texts come in and batches go out without a Python object for each row.
//!
//! Source: the Arrow specifications "C data interface", "C stream interface" and "PyCapsule interface". `ffi` has the
//! structs of C, `texts` reads columns, `lists` writes batches.

mod ffi;
mod lists;
mod texts;

pub(crate) use lists::{Lists, array_capsule, schema_capsule};
pub(crate) use texts::Column;
