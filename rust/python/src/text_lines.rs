//! The lines of a text as a column.

use std::convert::Infallible;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::line_columns::{LineColumns, Table, first_line, for_each_line};
use crate::run::run_long;

#[pyfunction]
pub fn text_lines(
    py: Python<'_>,
    start: PyBackedBytes,
    block: PyBackedBytes,
    end: usize,
    first_row: i64,
) -> PyResult<LineColumns> {
    let table = run_long(py, || {
        let (first, others) = first_line(&start, &block[..end.min(block.len())]);
        let mut table = Table::new(1, first.len() + others.len());
        for lines in [&first, others] {
            for_each_line(lines, first_row, &mut table, |line, table| {
                let column = &mut table.columns[0];
                column.push(line.strip_suffix('\r').unwrap_or(line).as_bytes());
                column.end(false);
                Ok(true)
            });
        }
        Ok::<_, Infallible>(table)
    })?;
    Ok(table.into_rows())
}
