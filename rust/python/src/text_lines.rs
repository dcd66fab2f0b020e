//! The lines of a text as a column.

use std::convert::Infallible;

use pyo3::prelude::*;

use crate::line_columns::{LineColumns, Lines, Table, for_each_line, split_first};
use crate::run::run_long;

#[pyfunction]
pub fn text_lines(py: Python<'_>, lines: Lines, first_row: i64) -> PyResult<LineColumns> {
    let table = run_long(py, || {
        let (first, others) = split_first(&lines);
        let mut table = Table::new(1, first.len() + others.len());
        for_each_line([&first, others], first_row, &mut table, |line, table| {
            let column = &mut table.columns[0];
            column.push(line.strip_suffix('\r').unwrap_or(line).as_bytes());
            column.end(false);
            Ok(true)
        });
        Ok::<_, Infallible>(table)
    })?;
    Ok(table.into_rows())
}
