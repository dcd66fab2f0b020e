//! Characters: Unicode properties, UTF-8, and blocks of bytes that are classified together.

pub(crate) mod scan;
pub mod unicode;
