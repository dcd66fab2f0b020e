//! Lines, and the runs of newlines between them: `[^\n]+|[\n]+` without an automaton.
//!
//! Source: the pattern of Gemma 4 (see `families`). Complexity: linear in the text, one SIMD vector of bytes at a time.

/// Calls `piece` with the byte range of every line and of every run of newlines in `text`.
pub(crate) fn split(text: &[u8], mut piece: impl FnMut(usize, usize)) {
    let mut start = 0;
    while start < text.len() {
        let rest = &text[start..];
        let len = match rest[0] {
            b'\n' => rest.iter().position(|&byte| byte != b'\n'),
            _ => memchr::memchr(b'\n', rest),
        };
        let piece_end = start + len.unwrap_or(rest.len());
        piece(start, piece_end);
        start = piece_end;
    }
}
