//! Streams: text that arrives or is produced part by part. However it is cut, the joined result is the same.

mod characters;
pub(crate) mod decoder;
pub(crate) mod encoder;
pub(crate) mod stop;
