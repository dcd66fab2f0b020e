//! The stretches of a rewritten text that stand for bytes of the original text, one for one or as a whole.

use ggtok_core::internals::Rewritten;

use super::trace::Origin;

/// The stretches of a text whose original is at the start of the input. O(n) for n bytes.
pub(super) fn of(rewritten: &Rewritten<'_>) -> Vec<Origin> {
    let origins = Vec::from_iter((0..rewritten.text.len()).map(|at| rewritten.span(at..at + 1)));
    let mut stretches: Vec<Origin> = Vec::new();
    let mut start = 0;
    let mut was_kept = false;
    for same in origins.chunk_by(PartialEq::eq) {
        let end = start + same.len();
        let origin = &same[0];
        let is_kept = same.len() == 1 && origin.len() == 1;
        match stretches.last_mut() {
            Some(last) if was_kept && is_kept && last.to == origin.start => (last.end, last.to) = (end, origin.end),
            _ => stretches.push(Origin { start, end, from: origin.start, to: origin.end }),
        }
        start = end;
        was_kept = is_kept;
    }
    stretches
}
