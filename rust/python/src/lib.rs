//! The Python bindings of ggtok-core: conversions, the GIL, signals and errors, and nothing else.

mod arguments;
mod arrays;
mod encoding;
mod errors;
mod ints;
mod parts;
mod run;
mod scratch;
mod strings;
mod tables;
mod tokenizer;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _ggtok {
    #[pymodule_export]
    use super::encoding::{_encoding, Encoding};
    #[pymodule_export]
    use super::strings::{StringArray, string_array};
    #[pymodule_export]
    use super::tables::{families, loader_texts, models, pretokenizers, special_keys};
    #[pymodule_export]
    use super::tokenizer::Tokenizer;
}
