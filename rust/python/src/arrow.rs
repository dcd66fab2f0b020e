//! The Arrow PyCapsule interface: columns of texts come in and batches go out without a Python object for each row.
//!
//! Source: the Arrow specifications "C data interface", "C stream interface" and "PyCapsule interface". `ffi` has the
//! structs of C, `texts` reads columns, `lists` writes batches.
//!
//! The crate arrow-array is not used, because it would make the library of 5.9 MB larger by 0.7 MB and the compiler work
//! for 38 seconds more, and brings 19 crates. Nor would it fit: here a damaged column names its first wrong row, and
//! texts need not be UTF-8.

mod ffi;
mod lists;
mod texts;

pub(crate) use lists::{Lists, array_capsule, schema_capsule, validity};
pub(crate) use texts::Column;
