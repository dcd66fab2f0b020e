//! Which methods and filters a value has.

use super::value::{Kind, Native};
use super::{on_arrays, on_objects, on_scalars, on_strings};

/// The method or filter of a name that values of a kind have.
pub(crate) fn method(kind: Kind, name: &[u8]) -> Option<Native> {
    match kind {
        Kind::Undefined => on_scalars::of_undefined(name),
        Kind::None => on_scalars::of_none(name),
        Kind::Bool => on_scalars::of_bool(name),
        Kind::Int => on_scalars::of_int(name),
        Kind::Float => on_scalars::of_float(name),
        Kind::String => on_strings::method(name),
        Kind::Array => on_arrays::method(name),
        Kind::Object => on_objects::method(name),
    }
}
