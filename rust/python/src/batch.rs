//! Batches: many texts to ids or counts, and ids back to texts.

use std::convert::Infallible;
use std::sync::Arc;

use ggtok_core::batch::{BatchInput, BatchText, DecodedRows, Padded, Padding, Rows, Side};
use ggtok_core::chunks::Segmentable;
use ggtok_core::{Text, TokenId};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyUnicodeDecodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString};

use crate::arguments::{self, TextArgument, decode_options, encode_options, iterate, token_ids};
use crate::arrays::Arrays;
use crate::arrow::{self, Column};
use crate::bytes::{little_endian, str_of, try_reserve};
use crate::chunks;
use crate::errors::{Raise, invalid, type_error};
use crate::ints::with_lists;
use crate::memory::{Buffer, Memory};
use crate::run::{check_signals, quick, run};
use crate::tokenizer::Tokenizer;

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct FlatBatch(arrow::Lists);

impl FlatBatch {
    fn new(batch: ggtok_core::batch::Batch, nulls: Option<Vec<bool>>) -> Self {
        let nulls = nulls.filter(|nulls| nulls.contains(&true)).map(Arc::new);
        Self(arrow::Lists { ids: Arc::new(batch.ids), start: 0, offsets: Arc::new(batch.offsets), nulls })
    }

    fn all_ids(&self) -> &[TokenId] {
        &self.0.ids[self.0.start..][..self.0.num_ids()]
    }

    pub(crate) fn rows(&self) -> PyResult<Rows<'_>> {
        Rows::new(self.all_ids(), &self.0.offsets).ok_or_else(|| invalid("the offsets do not fit the ids".to_owned()))
    }
}

#[pymethods]
impl FlatBatch {
    /// Rows from the bytes of their ids (int32), offsets (int64) and nulls (one byte each), as `__reduce__` makes them.
    #[new]
    fn from_bytes(ids: &[u8], offsets: &[u8], nulls: Option<&[u8]>) -> PyResult<Self> {
        let ids = ids.as_chunks().0.iter().map(|&id| TokenId::from_le_bytes(id)).collect();
        let offsets: Vec<i64> = offsets.as_chunks().0.iter().map(|&offset| i64::from_le_bytes(offset)).collect();
        let nulls: Option<Vec<bool>> = nulls.map(|nulls| nulls.iter().map(|&is_null| is_null != 0).collect());
        let batch = ggtok_core::batch::Batch { ids, offsets };
        let is_sound = Rows::new(&batch.ids, &batch.offsets)
            .is_some_and(|rows| nulls.as_ref().is_none_or(|nulls| nulls.len() == rows.len()));
        if !is_sound {
            return Err(invalid("the offsets or nulls do not fit the ids".to_owned()));
        }
        Ok(Self::new(batch, nulls))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>))> {
        let py = slf.py();
        let arrow::Lists { offsets, nulls, .. } = &slf.get().0;
        let ids = little_endian(py, slf.get().all_ids(), TokenId::to_le_bytes)?;
        let offsets = little_endian(py, offsets, i64::to_le_bytes)?;
        let nulls = nulls.as_ref().map(|nulls| little_endian(py, nulls, |is_null| [is_null.into()])).transpose()?;
        Ok((slf.get_type().into_any(), (ids, offsets, nulls)))
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __eq__(&self, other: &Self) -> bool {
        (self.all_ids(), &self.0.offsets, &self.0.nulls) == (other.all_ids(), &other.0.offsets, &other.0.nulls)
    }

    #[getter]
    fn null_count(&self) -> usize {
        self.0.null_count()
    }

    fn ids(&self) -> Buffer {
        Buffer::new(Memory::Int32(Arc::clone(&self.0.ids)), self.0.start, &[self.0.num_ids()])
    }

    fn offsets(&self) -> Buffer {
        Buffer::whole(Memory::Int64(Arc::clone(&self.0.offsets)))
    }

    fn select(&self, py: Python<'_>, start: usize, len: usize, step: isize) -> PyResult<Self> {
        let lists = &self.0;
        let index = |number: usize| start.wrapping_add_signed((number as isize).wrapping_mul(step));
        if len > 0 && start.max(index(len - 1)) >= lists.num_rows() {
            return Err(PyIndexError::new_err(format!("{len} rows from {start} of a batch of {}", lists.num_rows())));
        }
        let nulls = lists.nulls.as_ref().map(|nulls| (0..len).map(|number| nulls[index(number)]).collect::<Vec<_>>());
        if step == 1 || len == 0 {
            let first = lists.offsets.get(start).copied().unwrap_or_default();
            let offsets = (0..=len).map(|number| lists.offsets.get(start + number).map_or(0, |offset| offset - first));
            let nulls = nulls.filter(|nulls| nulls.contains(&true)).map(Arc::new);
            let offsets = Arc::new(offsets.collect());
            let start = lists.start + first as usize;
            return Ok(Self(arrow::Lists { ids: Arc::clone(&lists.ids), start, offsets, nulls }));
        }
        let rows = self.rows()?;
        let batch = run(py, lists.num_ids(), || Ok::<_, Infallible>(rows.select((0..len).map(index))))?;
        Ok(Self::new(batch, nulls))
    }

    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for (index, row) in self.rows()?.iter().enumerate() {
            check_signals(py, index)?;
            list.append(with_lists(|lists| {
                lists.ids.extend_from_slice(row);
                lists.list(py)
            })?)?;
        }
        Ok(list)
    }

    fn pad<'py>(
        &self,
        py: Python<'py>,
        length: Option<usize>,
        left: bool,
        value: TokenId,
        multiple_of: usize,
        to_numpy: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        let arrays = if to_numpy { Some(Arrays::ready(py)?) } else { None };
        let rows = self.rows()?;
        let side = if left { Side::Left } else { Side::Right };
        let padding = Padding { value, side, length, multiple_of };
        let size = rows.len().saturating_mul(length.unwrap_or(rows.max_len()));
        let Padded { ids, mask, length } = run(py, size, || rows.pad(padding))?;
        let num_rows = self.0.num_rows();
        if let Some(arrays) = arrays {
            let shape = |array: Bound<'py, PyAny>| array.call_method1(intern!(py, "reshape"), (num_rows, length));
            return Ok((shape(arrays.array(ids)?.into_any())?, shape(arrays.array(mask)?.into_any())?));
        }
        let table = |memory| Bound::new(py, Buffer::new(memory, 0, &[num_rows, length])).map(Bound::into_any);
        Ok((table(Memory::Int32(Arc::new(ids)))?, table(Memory::Bool(Arc::new(mask)))?))
    }

    #[staticmethod]
    fn arrow_schema(py: Python<'_>) -> PyResult<Bound<'_, PyCapsule>> {
        arrow::schema_capsule(py)
    }

    fn arrow_array<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        arrow::array_capsule(py, self.0.clone(), requested_schema)
    }
}

/// Where the texts of a batch are.
pub(crate) enum Source<'py> {
    Column(Column),
    Objects(Vec<Bound<'py, PyAny>>),
}

/// A text of a batch, or a null.
struct Row<'a>(Option<TextArgument<'a>>);

impl BatchText for Row<'_> {
    fn text(&self) -> Option<Text<'_>> {
        self.0.as_ref().map(TextArgument::text)
    }
}

impl<'py> Source<'py> {
    pub(crate) fn of(texts: &Bound<'py, PyAny>) -> PyResult<Self> {
        Column::of(texts)?
            .map_or_else(|| arguments::objects(texts).map(Self::Objects), |column| Ok(Self::Column(column)))
    }

    /// Passes all texts on, with `None` for a null. Tells `nulls` for each row of a column whether it is null.
    pub(crate) fn pass_on<'a>(
        &'a self,
        py: Python<'py>,
        nulls: &mut Vec<bool>,
        mut take: impl FnMut(Option<TextArgument<'a>>),
    ) -> PyResult<()> {
        match self {
            Self::Column(column) => {
                column.pass_on(py, nulls, |text| take(text.map(|text| TextArgument::Bytes(text.into()))))
            }
            Self::Objects(objects) => arguments::texts(objects).try_for_each(|text| text.map(|text| take(Some(text)))),
        }
    }

    /// Passes all texts on, and waits for the results without the GIL.
    fn feed<'a>(&'a self, py: Python<'py>, feed: &mut BatchInput<'_, Row<'a>>, nulls: &mut Vec<bool>) -> PyResult<()> {
        self.pass_on(py, nulls, |text| feed.push(Row(text)))?;
        run(py, feed.num_bytes(), || {
            feed.finish();
            Ok::<_, Infallible>(())
        })
    }
}

#[pyfunction]
pub fn encode_batch(
    tokenizer: &Tokenizer,
    texts: &Bound<'_, PyAny>,
    threads: usize,
    max_tokens: Option<usize>,
    side: &Bound<'_, PyAny>,
    add_special: bool,
    parse_special: bool,
    continues: bool,
    last: Option<TokenId>,
) -> PyResult<FlatBatch> {
    let options = encode_options(add_special, parse_special, continues);
    let side = chunks::side(side)?;
    if let Some(max_tokens) = max_tokens {
        // An error about the budget itself is not one of a text.
        tokenizer.work(texts.py(), 0, |encoder| encoder.truncate(&Segmentable::new(""), max_tokens, side, options))?;
    }
    let budget = max_tokens.map(|max_tokens| (max_tokens, side));
    let source = Source::of(texts)?;
    let mut nulls = Vec::new();
    let core = &tokenizer.core;
    let batch = quick(|| {
        core.encode_batch_from(options, budget, last, threads, |feed| source.feed(texts.py(), feed, &mut nulls))
    })??;
    Ok(FlatBatch::new(batch.map_err(Raise::raise)?, Some(nulls)))
}

#[pyfunction]
pub fn count_batch(
    tokenizer: &Tokenizer,
    texts: &Bound<'_, PyAny>,
    threads: usize,
    add_special: bool,
    parse_special: bool,
    continues: bool,
) -> PyResult<Vec<usize>> {
    let options = encode_options(add_special, parse_special, continues);
    let source = Source::of(texts)?;
    let mut nulls = Vec::new();
    let core = &tokenizer.core;
    let counts = quick(|| core.count_batch_from(options, threads, |feed| source.feed(texts.py(), feed, &mut nulls)))??;
    counts.map_err(Raise::raise)
}

#[pyfunction]
pub fn decode_batch<'py>(
    tokenizer: &Tokenizer,
    batch: &Bound<'py, PyAny>,
    threads: usize,
    remove_special: bool,
    unparse_special: bool,
    clean_spaces: bool,
    errors: &str,
) -> PyResult<Bound<'py, PyList>> {
    let py = batch.py();
    let options = decode_options(remove_special, unparse_special, clean_spaces);
    let list = PyList::empty(py).unbind();
    let decode = |rows: Rows<'_>| {
        let mut row = 0;
        let take = |next: &mut dyn FnMut() -> Option<DecodedRows>| {
            Python::attach(|py| {
                while let Some(texts) = next() {
                    for bytes in texts.iter() {
                        check_signals(py, row)?;
                        let text = str_of(py, bytes, errors).map_err(|error| with_row(py, error, row))?;
                        list.bind(py).append(text)?;
                        row += 1;
                    }
                }
                Ok(())
            })
        };
        let num_ids: usize = rows.iter().map(<[TokenId]>::len).sum();
        run(py, rows.len() + num_ids, || tokenizer.core.decode_batch(rows, options, threads, take))
    };
    if let Ok(batch) = batch.cast::<FlatBatch>() {
        decode(batch.get().rows()?)?;
    } else {
        let rows = flat_rows(py, tokenizer, batch)?;
        decode(rows.rows())?;
    }
    Ok(list.into_bound(py))
}

/// Collects rows of ids. An error of a row names it.
fn flat_rows(py: Python<'_>, tokenizer: &Tokenizer, rows: &Bound<'_, PyAny>) -> PyResult<ggtok_core::batch::Batch> {
    let size = tokenizer.core.vocabulary().len();
    let mut batch = ggtok_core::batch::Batch { ids: Vec::new(), offsets: vec![0] };
    for (row, ids) in iterate(rows, "a batch must be an iterable of rows of ids")?.enumerate() {
        check_signals(py, row)?;
        let ids = ids?;
        if ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyBytes>() {
            let found = ids.get_type().name()?;
            return Err(type_error(format!("row {row}: a row must be an iterable of ids, not {found}")));
        }
        let ids = token_ids(&ids, size).map_err(|error| with_row(py, error, row))?;
        try_reserve(&mut batch.ids, ids.len())?;
        batch.ids.extend_from_slice(&ids);
        batch.offsets.push(batch.ids.len() as i64);
    }
    Ok(batch)
}

/// An error with its row, if its message can be changed.
fn with_row(py: Python<'_>, error: PyErr, row: usize) -> PyErr {
    let value = error.value(py);
    let name = format!("row {row}: ");
    let renamed = if error.is_instance_of::<PyUnicodeDecodeError>(py) {
        let reason = value.getattr(intern!(py, "reason")).and_then(|reason| reason.extract::<String>());
        reason.and_then(|reason| {
            value.setattr(intern!(py, "reason"), format!("{reason} ({})", name.trim_end_matches(": ")))
        })
    } else if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyIndexError>(py) {
        value.str().and_then(|message| value.setattr(intern!(py, "args"), (format!("{name}{message}"),)))
    } else {
        Ok(())
    };
    // If the message cannot be changed, the error itself matters more than its row.
    drop(renamed);
    error
}
