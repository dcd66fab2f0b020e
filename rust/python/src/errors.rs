//! Every error of the core as the Python exception that stands for it.

use ggtok_core::{EncodeError, TokenIndexError, VocabularyError};
use pyo3::PyErr;

/// The exceptions themselves are written in Python.
mod python {
    #![allow(missing_docs)]
    pyo3::import_exception!(ggtok.errors, GgtokError);
    pyo3::import_exception!(ggtok.errors, VocabularyError);
    pyo3::import_exception!(ggtok.errors, UnsupportedError);
    pyo3::import_exception!(ggtok.errors, TokenIndexError);
}

pub(crate) fn vocabulary_error(error: VocabularyError) -> PyErr {
    let message = error.to_string();
    match error {
        VocabularyError::UnknownModel { name, nearest } | VocabularyError::UnknownPreTokenizer { name, nearest } => {
            python::UnsupportedError::new_err((message, name, nearest))
        }
        _ => python::VocabularyError::new_err(message),
    }
}

pub(crate) fn encode_error(error: EncodeError) -> PyErr {
    match error {
        EncodeError::NoVocabulary | EncodeError::MissingSpecial { .. } => {
            python::VocabularyError::new_err(error.to_string())
        }
        _ => python::GgtokError::new_err(error.to_string()),
    }
}

/// As [`encode_error`], for text `index` of several.
pub(crate) fn batch_error((index, error): (usize, EncodeError)) -> PyErr {
    let message = format!("text {index}: {error}");
    match error {
        EncodeError::NoVocabulary | EncodeError::MissingSpecial { .. } => python::VocabularyError::new_err(message),
        _ => python::GgtokError::new_err(message),
    }
}

pub(crate) fn index_error(error: TokenIndexError) -> PyErr {
    python::TokenIndexError::new_err(error.to_string())
}

/// An id that no 64-bit integer holds.
pub(crate) fn huge_index_error(id: &str, size: usize) -> PyErr {
    python::TokenIndexError::new_err(format!("token id {id} is outside the vocabulary of {size} tokens"))
}
