//! Where two renderings differ, with markers such as `<think>` or `[INST]` taken as a whole.
//!
//! 1. Both texts are cut into markers and the stretches between them.
//! 2. Equal pieces are taken off both ends, one pair at either end in turn, until none is equal.
//! 3. Of the two last pieces in between, a common beginning and end are taken off byte by byte, unless they are
//!    markers.
//!
//! Source: `segmentize_markers` and `calculate_diff_split` in `common/chat-auto-parser-helpers.cpp` of llama.cpp.
//! Deviations: 1. The common ends are not returned. Time and space: O(bytes).

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
    let mut add = |at: usize, end: usize, is_marker| {
        if at < end {
            pieces.push(Piece { at, text: &text[at..end], is_marker });
        }
    };
    let mut start = 0;
    let mut closer = None;
    for (at, &byte) in text.iter().enumerate() {
        match (closer, byte) {
            (None, b'<' | b'[') => {
                add(start, at, false);
                start = at;
                closer = Some(if byte == b'<' { b'>' } else { b']' });
            }
            (Some(expected), _) if byte == expected => {
                add(start, at + 1, true);
                start = at + 1;
                closer = None;
            }
            _ => {}
        }
    }
    add(start, text.len(), false);
    pieces
}

/// The pieces of one text that are left: at least one, which may be spent.
struct Side<'a, 'p> {
    pieces: &'p [Piece<'a>],
    /// Where what is left ends.
    end: usize,
}

impl<'a> Side<'a, '_> {
    fn drop_first(&mut self) {
        self.pieces = &self.pieces[1..];
    }

    fn drop_last(&mut self) {
        if let [others @ .., last] = self.pieces {
            self.end = last.at;
            self.pieces = if others.is_empty() { self.pieces } else { others };
        }
    }
}

/// The parts of two texts that differ. If the first one is a beginning of the second, then nothing and the rest.
pub(super) fn differing<'a>(left: &'a [u8], right: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    if left.is_empty() || right.is_empty() {
        return (left, right);
    }
    let left_pieces = pieces(left);
    let right_pieces = pieces(right);
    let mut a = Side { pieces: &left_pieces, end: left.len() };
    let mut b = Side { pieces: &right_pieces, end: right.len() };
    while let ([a_first, .., a_last], [b_first, .., b_last]) = (a.pieces, b.pieces) {
        let starts_equal = a_first.text == b_first.text;
        let ends_equal = a_last.text == b_last.text;
        if starts_equal {
            a.drop_first();
            b.drop_first();
        }
        if ends_equal {
            a.drop_last();
            b.drop_last();
        }
        if !starts_equal && !ends_equal {
            break;
        }
    }
    match (a.pieces, b.pieces) {
        ([single], [_, _, ..]) => take_end(single, &mut a, &mut b),
        ([_, _, ..], [single]) => take_end(single, &mut b, &mut a),
        ([one], [other]) if one.text == other.text && one.is_marker => {
            a.drop_last();
            b.drop_last();
        }
        _ => {}
    }

    let is_text = |piece: Option<&Piece<'_>>| piece.is_some_and(|piece| !piece.is_marker);
    let has_text_end = is_text(a.pieces.last()) && is_text(b.pieces.last());
    let has_text_start = is_text(a.pieces.first()) && is_text(b.pieces.first());
    let mut a = &left[a.pieces[0].at..a.end];
    let mut b = &right[b.pieces[0].at..b.end];
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

/// One piece is left of one text, more of the other: it may be equal to either end of those.
fn take_end(single: &Piece<'_>, side: &mut Side<'_, '_>, other: &mut Side<'_, '_>) {
    if single.text == other.pieces[other.pieces.len() - 1].text {
        other.drop_last();
        side.drop_last();
    } else if single.text == other.pieces[0].text {
        other.drop_first();
        side.drop_last();
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
