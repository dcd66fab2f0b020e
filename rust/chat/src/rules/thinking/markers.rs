//! Markers in rendered text: `<` up to the next `>`, or `[` up to the next `]`, whatever stands between.
//!
//! Source: `marker` in `common/peg-parser.cpp` of llama.cpp, and how `common/chat-diff-analyzer.cpp` uses it.
//! Deviations: none. Time: O(n) per marker that does not end, so work is charged.

use std::ops::Range;

use crate::budget::Budget;
use crate::error::Error;
use crate::text::is_space;

/// The end of the marker at a place, if there is one.
fn marker(text: &[u8], at: usize) -> Option<usize> {
    let closer = match text.get(at)? {
        b'<' => b'>',
        b'[' => b']',
        _ => return None,
    };
    Some(at + memchr::memchr(closer, &text[at..])? + 1)
}

/// The end of the white space at a place.
pub(super) fn spaces(text: &[u8], at: usize) -> usize {
    text[at..].iter().position(|&byte| !is_space(byte)).map_or(text.len(), |len| at + len)
}

/// A text between markers: where the marker before it is, with the white space that follows; and where the white space
/// and the marker after it begin and end, with the white space that follows.
pub(super) struct Between {
    pub(super) before: Range<usize>,
    pub(super) spaces: usize,
    pub(super) after: Range<usize>,
}

/// The first marker that is followed by this text and another marker, with only white space in between.
pub(super) fn between(text: &[u8], inner: &[u8], budget: &mut Budget) -> Result<Option<Between>, Error> {
    for at in memchr::memchr2_iter(b'<', b'[', text) {
        let end = marker(text, at);
        let start = end.map_or(text.len(), |end| spaces(text, end));
        budget.steps(1 + (start - at) / 32)?;
        if end.is_none() || !text[start..].starts_with(inner) {
            continue;
        }
        let spaces_at = start + inner.len();
        if let Some(after) = following(text, spaces_at) {
            return Ok(Some(Between { before: at..start, spaces: spaces_at, after }));
        }
        budget.steps((text.len() - start) / 32)?;
    }
    Ok(None)
}

/// The marker that follows a place after white space, with the white space that follows.
pub(super) fn following(text: &[u8], at: usize) -> Option<Range<usize>> {
    let start = spaces(text, at);
    Some(start..spaces(text, marker(text, start)?))
}

#[cfg(test)]
mod tests {
    use super::{between, following};
    use crate::budget::Budget;

    #[test]
    fn the_first_marker_counts_whatever_is_in_it() {
        let mut budget = Budget::new(0);
        let found = between(b"a < b <think>\nX \n</think>\n\n.", b"X", &mut budget).unwrap().unwrap();
        assert_eq!((found.before, found.spaces, found.after), (2..14, 15, 17..27));
        assert!(between(b"<a>X", b"X", &mut budget).unwrap().is_none());
        assert!(between(b"<a> y X[b]", b"X", &mut budget).unwrap().is_none());
        assert_eq!(following(b"X [b] .", 1), Some(2..6));
        assert_eq!(following(b"X", 1), None);
    }

    #[test]
    fn many_markers_that_do_not_end_are_charged() {
        assert!(between(&vec![b'<'; 1 << 20], b"X", &mut Budget::new(0)).is_err());
    }
}
