//! All patterns of a family in one pass over the text.
//!
//! The patterns cut in sequence, each the pieces that the one before it leaves. Here they walk through the text
//! together ([`stage`]), and a table remembers what they do ([`learned`]): one look-up per character instead of one per
//! character and pattern. Nothing is known of the patterns but their automata, so this serves any list of them.
//!
//! What the table cannot say is split slowly, pattern by pattern: text for which more than 64 characters would have to
//! be held until it is certain where a piece ends, such as an indentation of 70 spaces, and text that asks for more of
//! the table than it may learn. The slow way starts at the latest character from which on the text splits as if it
//! started there, and ends with a piece of the first pattern, after which that is true again.
//!
//! Complexity: linear in the text, each byte once in the fast way and at most once in the slow one.

mod learned;
mod stage;

use super::automaton::FailedRun;
use super::digits::DigitGroups;
use crate::interrupt::Ticker;
use crate::scan::masks::Masks;
use crate::scan::{BLOCK, padded};
use crate::unicode::utf8;
pub(crate) use learned::Learned;
use learned::END;
pub(super) use stage::Stage;

/// The patterns of a family.
#[derive(Debug)]
pub(crate) struct Joint {
    stages: Vec<Stage>,
}

/// A place in the text.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    /// The row of the state there.
    row: usize,
    /// The latest place from which on the text splits as if it started there.
    restart: usize,
    /// Where the open piece starts.
    piece_start: usize,
}

impl Joint {
    pub(super) fn new(stages: Vec<Stage>) -> Self {
        Self { stages }
    }

    /// Calls `piece` with the byte range of every piece of `text`, in order. `text` is canonical UTF-8.
    #[inline]
    pub(super) fn split(&self, text: &[u8], learned: &mut Learned, mut piece: impl FnMut(usize, usize)) {
        learned.start(&self.stages);
        let mut place = Place { at: 0, row: 0, restart: 0, piece_start: 0 };
        let mut failed = FailedRun::default();
        let mut ticker = Ticker::default();
        let mut ends = [0; BLOCK];
        while place.piece_start < text.len() {
            ticker.tick();
            let (num_ends, is_simple) = walk(text, learned, &mut place, &mut ends);
            for &end in &ends[..num_ends] {
                piece(place.piece_start, end);
                place.piece_start = end;
            }
            if !is_simple {
                self.take_one(text, learned, &mut place, &mut failed, &mut piece);
            }
        }
    }

    /// Takes the next character, or the end of the text, if it is not as simple as most.
    #[inline(never)]
    fn take_one(
        &self,
        text: &[u8],
        learned: &mut Learned,
        place: &mut Place,
        failed: &mut FailedRun,
        piece: &mut dyn FnMut(usize, usize),
    ) {
        let (class, len) = match text.get(place.at) {
            None => (END, 0),
            Some(&byte @ 0..0x80) => (learned.ascii_class(byte), 1),
            Some(_) => {
                let (code_point, len) = utf8::decode_lossy(text, place.at);
                (learned.learn_class(&self.stages, code_point), len)
            }
        };
        let Some(entry) = learned.learn(&self.stages, place.row, class) else {
            return self.split_slowly(text, place, failed, piece);
        };
        if entry.restarts() {
            place.restart = place.at;
        }
        let mut pass_end = |end| {
            piece(place.piece_start, end);
            place.piece_start = end;
        };
        if entry.ends_before() {
            pass_end(place.at);
        }
        (place.at, place.row) = (place.at + len, entry.next_row());

        let ends = learned.ends(entry);
        let (mut end, mut distance) = (place.at, 0);
        for _ in 0..ends.first().copied().unwrap_or_default() {
            end -= 1;
            while !utf8::is_boundary(text, end) {
                end -= 1;
            }
            distance += 1;
        }
        for &next in ends {
            while distance > next {
                end += utf8::sequence_len(text[end]);
                distance -= 1;
            }
            pass_end(end);
        }
    }

    /// Splits some text pattern by pattern, at least up to and including the next character.
    #[inline(never)]
    fn split_slowly(
        &self,
        text: &[u8],
        place: &mut Place,
        failed: &mut FailedRun,
        piece: &mut dyn FnMut(usize, usize),
    ) {
        while place.restart <= place.at && place.restart < text.len() {
            let start = place.restart;
            let end = match &self.stages[..] {
                [Stage::Pattern(automaton), ..] => automaton.next_piece_end(text, start, text.len(), failed),
                [Stage::Digits(groups @ DigitGroups::After), ..] => groups.first_run_end(text, start, text.len()),
                [Stage::Digits(DigitGroups::Before), ..] | [] => text.len(),
            };
            descend(&self.stages, text, start, end, &mut |_, end| {
                if end > place.piece_start {
                    piece(place.piece_start, end);
                    place.piece_start = end;
                }
            });
            place.restart = end;
        }
        (place.at, place.row) = (place.restart, 0);
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.stages.capacity() * size_of::<Stage>() + self.stages.iter().map(Stage::heap_bytes).sum::<usize>()
    }
}

/// Takes the characters of a block up to the next that is not simple, if there is one. Returns how many pieces end, and
/// whether there is one.
#[inline(always)]
fn walk(text: &[u8], learned: &mut Learned, place: &mut Place, ends: &mut [usize; BLOCK]) -> (usize, bool) {
    let Place { mut at, mut row, mut restart, .. } = *place;
    let start = at;
    let letters = Masks::new(padded(&text[start..], &mut [0; BLOCK])).letter;
    let (mut num_ends, mut is_simple) = (0, true);
    while at < start + BLOCK {
        #[cfg(test)]
        crate::steps::count(1);
        let (class, len) = match text.get(at) {
            Some(&byte @ 0..0x80) => (learned.ascii_class(byte), 1),
            Some(_) => {
                let (code_point, len) = utf8::decode_valid(text, at).unwrap_or_default();
                (learned.class(code_point), len)
            }
            None => (END, 0),
        };
        let entry = learned.entry(row, class);
        if entry.is_special() {
            is_simple = false;
            break;
        }
        ends[num_ends % BLOCK] = at;
        num_ends += usize::from(entry.ends_before());
        restart = if entry.restarts() { at } else { restart };
        row = entry.next_row();
        at += len;
        if entry.loops_on_letters() {
            let run = letters.checked_shr((at - start) as u32).unwrap_or_default().trailing_ones();
            at += run as usize;
        }
    }
    learned.earn(at - start);
    *place = Place { at, row, restart, ..*place };
    (num_ends, is_simple)
}

/// Splits `text[start..end]` by the first stage, and each of its pieces by the others.
fn descend(stages: &[Stage], text: &[u8], start: usize, end: usize, piece: &mut dyn FnMut(usize, usize)) {
    match stages {
        [] => piece(start, end),
        [Stage::Pattern(automaton), rest @ ..] => {
            automaton.split(text, start, end, |start, end| descend(rest, text, start, end, piece));
        }
        [Stage::Digits(groups), rest @ ..] => {
            groups.split(text, start, end, |start, end| descend(rest, text, start, end, piece));
        }
    }
}
