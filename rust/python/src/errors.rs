//! The Python exception for each error of the core.

use std::any::Any;

use ggtok_chat::Error as ChatError;
use ggtok_core::batch::{DecodeBatchError, PaddingError};
use ggtok_core::gguf::{GgufError, LoadError, Problem};
use ggtok_core::stream::StopStringsError;
use ggtok_core::{DecodeError, EncodeError, SamplerError, VocabularyError};
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The exceptions themselves are defined in Python.
pub(crate) mod python {
    #![allow(missing_docs)]
    macro_rules! import {
        ($($name:ident)*) => {
            $(pyo3::import_exception!(ggtok.errors, $name);)*
        };
    }
    import!(ArgumentTypeError ChatRequestError ChatTemplateError ChatTypeError DependencyError GgtokError GGUFError
        VocabularyError UnsupportedError TokenIndexError TrainingError);
}

/// An error of the core that Python sees.
pub(crate) trait Raise {
    /// The exception for it.
    fn raise(self) -> PyErr;
}

impl Raise for VocabularyError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::UnknownModel { name, nearest } | Self::UnknownPreTokenizer { name, nearest } => {
                python::UnsupportedError::new_err((message, name, nearest))
            }
            Self::OutOfMemory => PyMemoryError::new_err(message),
            _ => python::VocabularyError::new_err(message),
        }
    }
}

impl Raise for EncodeError {
    fn raise(self) -> PyErr {
        encode_error(self, self.to_string())
    }
}

/// An error of the text with number `self.0` in a batch.
impl Raise for (usize, EncodeError) {
    fn raise(self) -> PyErr {
        let (index, error) = self;
        encode_error(error, format!("text {index}: {error}"))
    }
}

impl Raise for DecodeBatchError<PyErr> {
    fn raise(self) -> PyErr {
        match self {
            Self::Row(row, error) => (row, error).raise(),
            Self::NotTaken(error) => error,
        }
    }
}

/// An error of the row with number `self.0`.
impl Raise for (usize, DecodeError) {
    fn raise(self) -> PyErr {
        decode_error(self.1, format!("row {}: {}", self.0, self.1))
    }
}

/// Errors about a value that is not allowed.
macro_rules! raise_invalid {
    ($($error:ty),*) => {
        $(impl Raise for $error {
            fn raise(self) -> PyErr {
                invalid(self.to_string())
            }
        })*
    };
}

// Only a bug can keep a value from becoming JSON.
raise_invalid!(PaddingError, SamplerError, StopStringsError, serde_json::Error);

fn encode_error(error: EncodeError, message: String) -> PyErr {
    match error {
        EncodeError::NoVocabulary | EncodeError::MissingSpecial { .. } | EncodeError::Control { .. } => {
            python::VocabularyError::new_err(message)
        }
        EncodeError::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        _ => python::GgtokError::new_err(message),
    }
}

impl Raise for DecodeError {
    fn raise(self) -> PyErr {
        decode_error(self, self.to_string())
    }
}

fn decode_error(error: DecodeError, message: String) -> PyErr {
    match error {
        DecodeError::UnknownId { .. } => python::TokenIndexError::new_err(message),
        DecodeError::OutOfMemory => PyMemoryError::new_err(error.to_string()),
        _ => python::GgtokError::new_err(message),
    }
}

impl Raise for GgufError {
    fn raise(self) -> PyErr {
        if self.problem == Problem::OutOfMemory {
            return PyMemoryError::new_err(self.to_string());
        }
        detailed::<python::GGUFError>(&self.problem.to_string(), |details| {
            details.set_item("key", &self.key)?;
            details.set_item("offset", self.offset)?;
            details.set_item("expected", self.expected())?;
            details.set_item("found", self.found())
        })
    }
}

/// An exception with keyword arguments.
fn detailed<E: PyTypeInfo>(problem: &str, fill: impl Fn(&Bound<'_, PyDict>) -> PyResult<()>) -> PyErr {
    let error = |py: Python<'_>| -> PyResult<PyErr> {
        let details = PyDict::new(py);
        fill(&details)?;
        Ok(PyErr::from_value(py.get_type::<E>().call((problem,), Some(&details))?))
    };
    Python::attach(error).unwrap_or_else(|error| error)
}

/// An error of a conversation, from before a template is chosen.
impl Raise for ChatError {
    fn raise(self) -> PyErr {
        chat_error(self, None)
    }
}

/// An error of a conversation, and the name of the template.
impl Raise for (ChatError, String) {
    fn raise(self) -> PyErr {
        chat_error(self.0, Some(self.1))
    }
}

fn chat_error(error: ChatError, template: Option<String>) -> PyErr {
    if let Some((problem, position)) = error.of_template() {
        return detailed::<python::ChatTemplateError>(&problem, |details| {
            details.set_item("template", &template)?;
            details.set_item("line", position.map(|position| position.line))?;
            details.set_item("column", position.map(|position| position.column))
        });
    }
    match error {
        ChatError::Request { field, problem } => of_field::<python::ChatRequestError>(&field, &problem),
        ChatError::Encode(error) => error.raise(),
        _ => python::VocabularyError::new_err(error.to_string()),
    }
}

/// An error about a field of a conversation, or about all of it.
pub(crate) fn of_field<E: PyTypeInfo>(field: &str, problem: &str) -> PyErr {
    detailed::<E>(problem, |details| details.set_item("field", (!field.is_empty()).then_some(field)))
}

impl Raise for LoadError {
    fn raise(self) -> PyErr {
        match self {
            Self::Gguf(error) => error.raise(),
            Self::Vocabulary(error) => error.raise(),
            _ => invalid(self.to_string()),
        }
    }
}

/// An argument, or an item of it, has a type that is not allowed.
pub(crate) fn type_error(message: String) -> PyErr {
    python::ArgumentTypeError::new_err(message)
}

/// An argument has a value that is not allowed.
pub(crate) fn invalid(message: String) -> PyErr {
    python::GgtokError::new_err(message)
}

/// A panic, with its message.
#[cold]
pub(crate) fn bug(payload: &(dyn Any + Send)) -> PyErr {
    let said = payload.downcast_ref::<&str>().copied();
    let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
    python::GgtokError::new_err(format!("this is a bug in ggtok, please report it: {said}"))
}
