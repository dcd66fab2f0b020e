//! Lines and the newlines between them: `[^\n]+|[\n]+` without an automaton.
//!
//! Source: the pattern of Gemma 4 (see `families`). O(text), a vector of bytes at a time.

use std::ops::Range;

/// Calls `piece` with the byte range of every line and of every run of newlines in `text[range]`.
pub(crate) fn split(text: &[u8], Range { start: mut begin, end }: Range<usize>, mut piece: impl FnMut(usize, usize)) {
    while begin < end {
        let rest = &text[begin..end];
        let len = match rest[0] {
            b'\n' => rest.iter().position(|&byte| byte != b'\n'),
            _ => memchr::memchr(b'\n', rest),
        };
        let to = begin + len.unwrap_or(rest.len());
        piece(begin, to);
        begin = to;
    }
}
