//! Markers in rendered text: `<` up to the next `>`, or `[` up to the next `]`, whatever stands between.
//!
//! Source: `marker` in `common/peg-parser.cpp` of llama.cpp, and how `common/chat-diff-analyzer.cpp` uses it.
//! Deviations: none. Time: O(n) per marker that does not end, so work is charged.

use std::ops::Range;

use crate::budget::Budget;
use crate::error::Error;

/// The end of the marker at a place, if there is one.
pub(super) fn marker(text: &[u8], at: usize) -> Option<usize> {
    let closer = match text.get(at)? {
        b'<' => b'>',
        b'[' => b']',
        _ => return None,
    };
    Some(at + memchr::memchr(closer, &text[at..])? + 1)
}

/// The end of the white space at a place.
fn spaces(text: &[u8], at: usize) -> usize {
    text.len() - text[at..].trim_ascii_start().len()
}

/// The markers around a text: the first one that is followed by this text and another marker, with only white space in
/// between. That is part of the markers, and so is the white space after them.
pub(super) fn around(text: &[u8], inner: &[u8], budget: &mut Budget) -> Result<Option<[Range<usize>; 2]>, Error> {
    for at in memchr::memchr2_iter(b'<', b'[', text) {
        let end = marker(text, at);
        let start = end.map_or(text.len(), |end| spaces(text, end));
        budget.steps(1 + (start - at) / 32)?;
        if end.is_none() || !text[start..].starts_with(inner) {
            continue;
        }
        if let Some(after) = following(text, start + inner.len()) {
            return Ok(Some([at..start, after]));
        }
        budget.steps((text.len() - start) / 32)?;
    }
    Ok(None)
}

/// The marker that follows a place, with the white space around it.
pub(super) fn following(text: &[u8], at: usize) -> Option<Range<usize>> {
    Some(at..spaces(text, marker(text, spaces(text, at))?))
}

#[cfg(test)]
mod tests {
    use super::{around, following};
    use crate::budget::Budget;

    #[test]
    fn the_first_marker_counts_whatever_is_in_it() {
        let mut budget = Budget::new(0);
        let found = around(b"a < b <think>\nX \n</think>\n\n.", b"X", &mut budget).unwrap().unwrap();
        assert_eq!(found, [2..14, 15..27]);
        assert!(around(b"<a>X", b"X", &mut budget).unwrap().is_none());
        assert!(around(b"<a> y X[b]", b"X", &mut budget).unwrap().is_none());
        assert_eq!(following(b"X [b] .", 1), Some(1..6));
        assert_eq!(following(b"X", 1), None);
    }

    #[test]
    fn many_markers_that_do_not_end_are_charged() {
        assert!(around(&vec![b'<'; 1 << 20], b"X", &mut Budget::new(0)).is_err());
    }
}
