//! Lines, and the runs of newlines between them: `[^\n]+|[\n]+` without an automaton.
//!
//! Source: the pattern of Gemma 4 (see `families`). Complexity: linear in the text, a vector of bytes at a time.

use std::ops::Range;

/// Calls `piece` with the byte range of every line and of every run of newlines in `text[range]`.
pub(crate) fn split(text: &[u8], Range { mut start, end }: Range<usize>, mut piece: impl FnMut(usize, usize)) {
    while start < end {
        let rest = &text[start..end];
        let len = match rest[0] {
            b'\n' => rest.iter().position(|&byte| byte != b'\n'),
            _ => memchr::memchr(b'\n', rest),
        };
        let piece_end = start + len.unwrap_or(rest.len());
        piece(start, piece_end);
        start = piece_end;
    }
}
