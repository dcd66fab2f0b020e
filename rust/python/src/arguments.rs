//! Conversions of Python arguments: texts, token ids, and sequences of both.

use std::borrow::Cow;

use ggtok_core::{DecodeError, DecodeOptions, EncodeOptions, Text, TokenId};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyList, PyMapping, PyMemoryView, PyString, PyTuple};

use crate::arrays;
use crate::bytes::{try_reserve, with_capacity};
use crate::errors::{Raise, invalid, python, type_error};
use crate::run::check_signals;

/// A text argument: `str`, or anything that is bytes.
pub(crate) enum TextArgument<'a> {
    Str(&'a str),
    Bytes(Cow<'a, [u8]>),
    /// A `str` with lone surrogates.
    Surrogates(Vec<u8>),
}

impl TextArgument<'_> {
    pub(crate) fn text(&self) -> Text<'_> {
        match self {
            Self::Str(text) => Text::Str(text),
            Self::Bytes(text) => Text::Bytes(text),
            Self::Surrogates(text) => Text::Bytes(text),
        }
    }

    /// The bytes of a text that is not a `str`.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Str(_) | Self::Surrogates(_) => None,
            Self::Bytes(text) => Some(text),
        }
    }
}

/// Borrows a text where possible. A lone surrogate of a `str` becomes the three bytes that encode it.
#[inline]
pub(crate) fn text<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<TextArgument<'a>> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(text) => Ok(TextArgument::Str(text)),
            Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(object.py()) => {
                let encode = object.py().get_type::<PyString>().getattr(intern!(object.py(), "encode"))?;
                let bytes = encode.call1((text, "utf-8", "surrogatepass"))?;
                Ok(TextArgument::Surrogates(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
            }
            Err(error) => Err(error),
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(TextArgument::Bytes(bytes.as_bytes().into()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(TextArgument::Bytes(bytes.to_vec().into()));
    }
    buffer(object)
}

/// The text in a buffer: one row of single bytes. An array of numbers is refused.
#[cold]
fn buffer<'a>(object: &Bound<'_, PyAny>) -> PyResult<TextArgument<'a>> {
    let py = object.py();
    let view = PyMemoryView::from(object).map_err(|error| {
        let found = object.get_type().name();
        match found {
            Ok(found) if error.is_instance_of::<PyTypeError>(py) => {
                type_error(format!("a text must be str or bytes-like, not {found}"))
            }
            _ => error,
        }
    })?;
    let format: String = view.getattr(intern!(py, "format"))?.extract()?;
    let num_dimensions: usize = view.getattr(intern!(py, "ndim"))?.extract()?;
    if num_dimensions != 1 || !matches!(format.trim_start_matches(['@', '=', '<', '>', '!']), "B" | "b" | "c") {
        let found = object.get_type().name()?;
        return Err(type_error(format!(
            "a text must be str or bytes-like, not {found} with items of format {format:?} in {num_dimensions} \
             dimensions: token ids are decoded with decode(), and the memory of an array is a text as tobytes()"
        )));
    }
    let bytes = view.call_method0(intern!(py, "tobytes"))?;
    Ok(TextArgument::Bytes(bytes.cast::<PyBytes>()?.as_bytes().to_vec().into()))
}

/// Whether an object is a single text, which would also be iterable.
pub(crate) fn is_text(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>()
}

/// Iterates over the items of an object. If it has none, or is a mapping, whose keys are not what was meant, the error
/// says what was `expected`.
pub(crate) fn iterate<'py>(object: &Bound<'py, PyAny>, expected: &str) -> PyResult<Bound<'py, PyIterator>> {
    let is_list = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if !is_list && (object.cast::<PyMapping>().is_ok() || !object.hasattr(intern!(object.py(), "__iter__"))?) {
        return Err(type_error(format!("{expected}, not {}", object.get_type().name()?)));
    }
    object.try_iter()
}

/// Puts the name of an item in front of a `TypeError` of ours or of Python; other errors stay as they are.
pub(crate) fn with_name(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let is_ours = error.is_instance_of::<python::ArgumentTypeError>(py);
    match error.value(py).str() {
        Ok(message) if is_ours || error.get_type(py).is(py.get_type::<PyTypeError>()) => {
            type_error(format!("{name}: {message}"))
        }
        _ => error,
    }
}

/// The value of one of a few words.
pub(crate) fn one_of<T: Copy>(what: &str, word: &Bound<'_, PyAny>, known: &[(&str, T)]) -> PyResult<T> {
    let is_text = word.is_instance_of::<PyString>();
    if let Some((_, value)) = known.iter().find(|(name, _)| is_text && word.eq(name).unwrap_or_default()) {
        return Ok(*value);
    }
    let names: Vec<String> = known.iter().map(|(name, _)| format!("'{name}'")).collect();
    let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (last.as_str(), others));
    let expected = format!("{what} {} or {last}", others.join(", "));
    Err(if is_text {
        invalid(format!("{expected}, not {}", word.repr()?))
    } else {
        type_error(format!("{expected}, not {}", word.get_type().name()?))
    })
}

/// All texts of a batch. What the iterable raises passes through.
pub(crate) fn objects<'py>(texts: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let expected = "texts must be an iterable of texts";
    if is_text(texts) {
        return Err(type_error(format!("{expected}, not one text")));
    }
    items(texts, expected)
}

/// All items of an iterable. For anything else, the error says what was `expected`.
pub(crate) fn items<'py>(object: &Bound<'py, PyAny>, expected: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let mut items = Vec::new();
    for (index, item) in iterate(object, expected)?.enumerate() {
        check_signals(object.py(), index)?;
        try_reserve(&mut items, 1)?;
        items.push(item?);
    }
    Ok(items)
}

/// Borrows the texts of a batch one by one. An error names the text.
pub(crate) fn texts<'a>(objects: &'a [Bound<'_, PyAny>]) -> impl Iterator<Item = PyResult<TextArgument<'a>>> {
    objects.iter().enumerate().map(|(index, object)| {
        let py = object.py();
        check_signals(py, index)?;
        text(object).map_err(|error| with_name(py, &format!("text {index}"), error))
    })
}

/// How to encode.
pub(crate) fn encode_options(add_special: bool, parse_special: bool, continues: bool) -> EncodeOptions {
    EncodeOptions::new().add_special(add_special).parse_special(parse_special).continues(continues)
}

/// How to decode.
pub(crate) fn decode_options(remove_special: bool, unparse_special: bool, clean_spaces: bool) -> DecodeOptions {
    DecodeOptions::default().remove_special(remove_special).unparse_special(unparse_special).clean_spaces(clean_spaces)
}

/// One token id of a vocabulary of `size` tokens.
pub(crate) fn token_id(object: &Bound<'_, PyAny>, size: usize) -> PyResult<TokenId> {
    match object.extract::<i64>() {
        Ok(id) if usize::try_from(id).is_ok_and(|id| id < size) => Ok(id as TokenId),
        Ok(id) => Err(DecodeError::UnknownId { id, size }.raise()),
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            let int = object.call_method0(intern!(object.py(), "__index__"))?;
            // By default Python does not write out an integer of more than 4,300 digits.
            let shown = int.str().map_or_else(|_| "of thousands of digits".to_owned(), |int| int.to_string());
            let problem = format!("token id {shown} is outside the vocabulary of {size} tokens");
            Err(python::TokenIndexError::new_err(problem))
        }
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {
            let found = object.get_type().name()?;
            let rows = if object.hasattr(intern!(object.py(), "__iter__"))? { ROWS } else { "" };
            Err(type_error(format!("a token id must be an integer, not {found}{rows}")))
        }
        Err(error) => Err(error),
    }
}

/// What to do with rows of ids where one row is expected.
const ROWS: &str = ": decode() takes one row of ids, and decode_batch() several";

/// Token ids: a sequence or iterable of integers, or an integer array.
pub(crate) fn token_ids(object: &Bound<'_, PyAny>, size: usize) -> PyResult<Vec<TokenId>> {
    if let Ok(list) = object.cast::<PyList>() {
        return all_ids(list.iter().map(Ok), list.len(), size);
    }
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return all_ids(tuple.iter().map(Ok), tuple.len(), size);
    }
    // Only an array has a dtype.
    if object.hasattr(intern!(object.py(), "dtype"))? {
        if let Some(ids) = arrays::int32(object)? {
            return Ok(ids);
        }
        let list = object.call_method0(intern!(object.py(), "tolist"))?;
        let Ok(list) = list.cast::<PyList>() else {
            return Err(type_error(format!("ids must be an array of one dimension, not a scalar{ROWS}")));
        };
        return all_ids(list.iter().map(Ok), list.len(), size);
    }
    all_ids(iterate(object, "ids must be an iterable of integers")?, 0, size)
}

fn all_ids<'py>(
    objects: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    len: usize,
    size: usize,
) -> PyResult<Vec<TokenId>> {
    let mut ids = with_capacity(len)?;
    for (index, object) in objects.enumerate() {
        let object = object?;
        check_signals(object.py(), index)?;
        ids.push(token_id(&object, size)?);
    }
    Ok(ids)
}
