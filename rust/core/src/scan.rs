//! Classes of 64 bytes at once, one bit a byte: the only modules with `unsafe`.

pub(crate) mod ascii;
pub(crate) mod masks;
