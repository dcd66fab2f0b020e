//! Python arguments as the core takes them.

use std::borrow::Cow;

use ggtok_core::{Text, TokenId};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple};

use crate::errors::{huge_index_error, index_error};

/// A text argument: `str`, or anything that is bytes.
pub(crate) enum TextArgument<'a> {
    Str(&'a str),
    Bytes(&'a [u8]),
    Owned(Vec<u8>),
}

impl TextArgument<'_> {
    pub(crate) fn text(&self) -> Text<'_> {
        match self {
            Self::Str(text) => Text::Str(text),
            Self::Bytes(text) => Text::Bytes(text),
            Self::Owned(text) => Text::Bytes(text),
        }
    }
}

/// Borrows a text where it can be borrowed. Lone surrogates of a `str` become the three bytes that encode them.
#[inline]
pub(crate) fn text<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<TextArgument<'a>> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(TextArgument::Str(text)),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) => {
                let bytes = text.call_method1(intern!(object.py(), "encode"), ("utf-8", "surrogatepass"))?;
                Ok(TextArgument::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
            }
            Err(error) => Err(error),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(TextArgument::Bytes(bytes.as_bytes()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(TextArgument::Owned(bytes.to_vec()));
    }
    let Ok(view) = PyMemoryView::from(object) else {
        let found = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("a text must be str or bytes-like, not {found}")));
    };
    let bytes = view.call_method0(intern!(object.py(), "tobytes"))?;
    Ok(TextArgument::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
}

/// One token id. One that is no 32-bit number is outside every vocabulary.
pub(crate) fn token_id(object: &Bound<'_, PyAny>, size: usize) -> PyResult<TokenId> {
    match object.extract::<i64>() {
        Ok(id) => TokenId::try_from(id).map_err(|_| index_error(ggtok_core::TokenIndexError { id, size })),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            Err(huge_index_error(object.str()?.to_str()?, size))
        }
        Err(error) => Err(error),
    }
}

/// Token ids: a sequence or iterable of integers, or an integer array.
pub(crate) fn token_ids<'a>(object: &'a Bound<'_, PyAny>, size: usize) -> PyResult<Cow<'a, [TokenId]>> {
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().map(|id| token_id(&id, size)).collect();
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple.iter().map(|id| token_id(&id, size)).collect();
    }
    // Only an array has a dtype, and where there is one numpy has been imported.
    if object.hasattr(intern!(object.py(), "dtype"))? {
        if let Ok(array) = object.cast::<PyArray1<TokenId>>() {
            return Ok(Cow::Owned(array.readonly().as_array().to_vec()));
        }
        let list = object.call_method0(intern!(object.py(), "tolist"))?;
        let list = list.cast::<PyList>()?;
        return list.iter().map(|id| token_id(&id, size)).collect();
    }
    object.try_iter()?.map(|id| token_id(&id?, size)).collect()
}
