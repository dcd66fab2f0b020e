//! Streams: text that arrives, or is wanted, part by part. However it is cut, the parts together are the whole.

mod characters;
pub(crate) mod decoder;
pub(crate) mod encoder;
mod spaces;
pub(crate) mod stop;
