//! The stretches of a rewritten text that stand for bytes of the original text, one for one or as a whole.

use ggtok_core::internals::Rewritten;

use super::trace::Origin;

/// The stretches of a text whose original is at the start of the input. O(n) for n bytes.
pub(super) fn of(rewritten: &Rewritten<'_>) -> Vec<Origin> {
    let origins = Vec::from_iter((0..rewritten.text.len()).map(|at| rewritten.span(at..at + 1)));
    let (mut stretches, mut at, mut was_kept): (Vec<Origin>, _, _) = (Vec::new(), 0, false);
    for same in origins.chunk_by(PartialEq::eq) {
        let (start, end, from, to) = (at, at + same.len(), same[0].start, same[0].end);
        let is_kept = same.len() == 1 && to == from + 1;
        match stretches.last_mut() {
            Some(last) if was_kept && is_kept && last.to == from => (last.end, last.to) = (end, to),
            _ => stretches.push(Origin { start, end, from, to }),
        }
        (at, was_kept) = (end, is_kept);
    }
    stretches
}
