//! What characters are, and blocks of bytes that are classified together.

pub(crate) mod scan;
pub mod unicode;
