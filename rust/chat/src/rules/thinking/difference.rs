//! Where two renderings differ, with markers such as `<think>` or `[INST]` taken as a whole.
//!
//! 1. Both texts are cut into markers and the stretches between them.
//! 2. Equal pieces are taken off both ends, one pair at either end in turn, until none is equal.
//! 3. Of the two last pieces in between, a common beginning and end are taken off byte by byte, unless they are
//!    markers.
//!
//! Source: `segmentize_markers` and `calculate_diff_split` in `common/chat-auto-parser-helpers.cpp` of llama.cpp.
//! Deviations: 1. The common ends are not returned. Time and space: O(bytes).

use std::ops::Range;

use super::markers::marker;
use crate::text::num_shared;

/// A marker or the text between two of them.
#[derive(Clone, Debug)]
pub(super) struct Piece<'a> {
    /// Where it is in its text.
    at: usize,
    pub(super) text: &'a [u8],
    pub(super) is_marker: bool,
}

/// Cuts a text into markers and what is between them: `<` up to the next `>`, `[` up to the next `]`.
pub(super) fn pieces(text: &[u8]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let marker_end = marker(text, at);
        let end = marker_end.unwrap_or_else(|| match memchr::memchr2(b'<', b'[', &text[at..]) {
            Some(len) if len > 0 => at + len,
            // There is none, or it does not end.
            _ => text.len(),
        });
        pieces.push(Piece { at, text: &text[at..end], is_marker: marker_end.is_some() });
        at = end;
    }
    pieces
}

/// The parts of two texts that differ. If the first one is a beginning of the second, then nothing and the rest.
pub(super) fn differing<'a>(left: &'a [u8], right: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if left.is_empty() || right.is_empty() {
        return (left, right);
    }
    let [a, b] = [pieces(left), pieces(right)];
    // How many pieces were taken off the start and the end of both.
    let (mut start, mut end) = (0, 0);
    while start + end + 1 < a.len().min(b.len()) {
        let starts_equal = a[start].text == b[start].text;
        let ends_equal = a[a.len() - 1 - end].text == b[b.len() - 1 - end].text;
        if !starts_equal && !ends_equal {
            break;
        }
        start += usize::from(starts_equal);
        end += usize::from(ends_equal);
    }
    let [mut rest_a, mut rest_b] = [start..a.len() - end, start..b.len() - end];
    match (rest_a.len(), rest_b.len()) {
        (0 | 1, 2..) => take_end(&a[start], &mut rest_a, &b, &mut rest_b),
        (2.., 0 | 1) => take_end(&b[start], &mut rest_b, &a, &mut rest_a),
        (0 | 1, _) if a[start].text == b[start].text && a[start].is_marker => (rest_a, rest_b) = (0..0, 0..0),
        _ => {}
    }

    let (a, b) = (&a[rest_a], &b[rest_b]);
    let is_text = |piece: Option<&Piece<'_>>| piece.is_some_and(|piece| !piece.is_marker);
    let has_text_end = is_text(a.last()) && is_text(b.last());
    let has_text_start = is_text(a.first()) && is_text(b.first());
    let (mut a, mut b) = (joined(left, a), joined(right, b));
    if has_text_end {
        let common = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
        (a, b) = (&a[..a.len() - common], &b[..b.len() - common]);
    }
    if has_text_start {
        let common = num_shared(a, b);
        (a, b) = (&a[common..], &b[common..]);
    }
    match right.strip_prefix(left) {
        Some(rest) if a.is_empty() && !b.is_empty() => (a, rest),
        _ => (a, b),
    }
}

/// One piece is left of one text, or was its last to be taken off, and more of the other: it may be equal to either end
/// of those.
fn take_end(single: &Piece<'_>, rest: &mut Range<usize>, others: &[Piece<'_>], other_rest: &mut Range<usize>) {
    if single.text == others[other_rest.end - 1].text {
        other_rest.end -= 1;
        rest.end = rest.start;
    } else if single.text == others[other_rest.start].text {
        other_rest.start += 1;
        rest.end = rest.start;
    }
}

/// The bytes of pieces that follow each other in a text.
fn joined<'a>(text: &'a [u8], pieces: &[Piece<'a>]) -> &'a [u8] {
    match pieces {
        [first, ..] => &text[first.at..first.at + pieces.iter().map(|piece| piece.text.len()).sum::<usize>()],
        [] => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::{differing, pieces};

    fn parts(left: &str, right: &str) -> (String, String) {
        let (a, b) = differing(left.as_bytes(), right.as_bytes());
        (String::from_utf8_lossy(a).into_owned(), String::from_utf8_lossy(b).into_owned())
    }

    #[test]
    fn markers_are_pieces() {
        let texts: Vec<_> = pieces(b"a<b>[c<d]e<f").iter().map(|piece| (piece.text, piece.is_marker)).collect();
        let expected: [(&[u8], bool); 5] =
            [(b"a", false), (b"<b>", true), (b"[c<d]", true), (b"e", false), (b"<f", false)];
        assert_eq!(texts, expected);
    }

    #[test]
    fn markers_are_not_cut() {
        assert_eq!(parts("a<x>b", "a<y>b"), ("<x>".into(), "<y>".into()));
        assert_eq!(parts("<u>hi<e>", "<u>hi<think>so</think><e>"), ("".into(), "<think>so</think>".into()));
        assert_eq!(parts("say hello", "say hallo"), ("e".into(), "a".into()));
        assert_eq!(parts("", "<a>"), ("".into(), "<a>".into()));
        assert_eq!(parts("<a>b", ""), ("<a>b".into(), "".into()));
        assert_eq!(parts("same<a>", "same<a>"), ("".into(), "".into()));
    }

    #[test]
    fn a_beginning_differs_by_the_rest() {
        assert_eq!(parts("<u>x\n", "<u>x\n<a>\n"), ("".into(), "<a>\n".into()));
    }
}
