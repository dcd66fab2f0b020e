//! The Python face of ggtok-core: conversions, the GIL, error mapping, and nothing else.

mod arguments;
mod errors;
mod ints;
mod scratch;
mod strings;
mod tables;
mod tokenizer;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _ggtok {
    #[pymodule_export]
    use super::strings::{StringArray, string_array};
    #[pymodule_export]
    use super::tables::{families, loader_texts, models, pretokenizers};
    #[pymodule_export]
    use super::tokenizer::Tokenizer;
}
