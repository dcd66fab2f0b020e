//! All patterns of a family in one pass over the text.
//!
//! Patterns apply in sequence, each to the pieces left by the one before it. Here they walk through the text together
//! ([`stage`]), and a table caches their joint transitions ([`learned`]): one look-up per character instead of one per
//! character and pattern. This works for any list of patterns.
//!
//! Text that the table cannot handle is split slowly, pattern by pattern. There are two cases: more than 64 characters
//! would have to be held before a piece is settled, as in an indentation of 70 spaces; or the text needs more entries
//! than it may learn. The slow way starts at the latest character from which the text splits as if it started there,
//! and ends with a piece of the first pattern, where the same holds again.
//!
//! Complexity: linear in the text, each byte once in the fast way and at most once in the slow one.

mod learned;
mod stage;

use super::automaton::FailedRun;
use super::digits::DigitGroups;
use crate::text::scan::{BLOCK, gather, padded};
use crate::text::unicode::utf8;
use crate::work::interrupt::Ticker;
pub use learned::Learned;
use learned::{END, Entry};
pub(super) use stage::Stage;

/// The patterns of a family.
#[derive(Debug)]
pub(crate) struct Joint {
    stages: Vec<Stage>,
}

/// More than the ends of pieces in a block plus the characters held before it; a power of two.
const MAX_ENDS: usize = 256;

/// A place in the text.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: usize,
    /// The row of the state there.
    row: usize,
    /// The latest place from which the text splits as if it started there.
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
        let mut ends = Ends { ends: [0; MAX_ENDS], len: 0 };
        while place.piece_start < text.len() {
            ticker.tick();
            ends.len = 0;
            let is_known = walk(text, learned, &mut place, &mut ends);
            for &end in &ends.ends[..ends.len.min(MAX_ENDS)] {
                piece(place.piece_start, end);
                place.piece_start = end;
            }
            if !is_known && !self.learn(text, learned, place) {
                self.split_slowly(text, &mut place, &mut failed, &mut piece);
            }
        }
    }

    /// Learns the entry that is missing at this place. Returns whether that is possible.
    #[inline(never)]
    fn learn(&self, text: &[u8], learned: &mut Learned, place: Place) -> bool {
        let class = match text.get(place.at) {
            None => END,
            Some(&byte @ 0..0x80) => learned.ascii_class(byte),
            Some(_) => learned.learn_class(&self.stages, utf8::decode_lossy(text, place.at).0),
        };
        learned.learn(&self.stages, place.row, class)
    }

    /// Splits some text pattern by pattern, at least through the next character.
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

/// Takes the characters of a block up to the first one without a known entry. Returns whether there is no such
/// character.
#[inline(always)]
fn walk(text: &[u8], learned: &mut Learned, place: &mut Place, ends: &mut Ends) -> bool {
    let start = place.at;
    let mut buffer = [0; BLOCK];
    let bytes = padded(&text[start..], &mut buffer);
    let letters = gather(bytes, lower_case);
    let block = &text[..text.len().min(start + BLOCK)];
    loop {
        walk_ascii(block, start, letters, learned, place, ends);
        if place.at >= block.len() && block.len() < text.len() {
            learned.earn(place.at - start);
            return true;
        }
        // A character beyond ASCII, one with several ends of pieces or without a known entry, or the end of the text.
        #[cfg(test)]
        crate::work::steps::count(1);
        let (class, len) = match text.get(place.at) {
            Some(&byte @ 0..0x80) => (learned.ascii_class(byte), 1),
            Some(_) => {
                let (code_point, len) = utf8::decode_valid(text, place.at).unwrap_or_default();
                (learned.class(code_point), len)
            }
            None => (END, 0),
        };
        let entry = learned.entry(place.row, class);
        if entry.is_special() {
            let Some(distances) = learned.ends(entry) else {
                learned.earn(place.at - start);
                return false;
            };
            ends.push_before(text, place.at + len, distances);
        }
        ends.push(place.at, entry.ends_before());
        place.pass(entry, len);
        if len == 0 {
            return true;
        }
    }
}

/// The lowest bit of each of eight bytes: whether it is a letter from `a` to `z`.
#[inline(always)]
fn lower_case(eight: u64) -> u64 {
    let each = |byte: u8| u64::from_ne_bytes([byte; 8]);
    let low = eight & each(0x7F);
    // A sum of at least 128 has the highest bit.
    let at_least_a = low + each(0x80 - b'a');
    let above_z = low + each(0x7F - b'z');
    (at_least_a & !above_z & !eight) >> 7
}

/// Takes characters up to the end of the block, or up to one that is beyond ASCII or not simple. Most text needs
/// nothing else, and the variables fit in registers. `letters` marks `a` to `z`.
#[inline(always)]
fn walk_ascii(block: &[u8], start: usize, letters: u64, learned: &Learned, place: &mut Place, ends: &mut Ends) {
    let mut here = *place;
    while let Some(&byte @ 0..0x80) = block.get(here.at) {
        #[cfg(test)]
        crate::work::steps::count(1);
        let entry = learned.entry(here.row, learned.ascii_class(byte));
        if entry.is_special() {
            break;
        }
        ends.push(here.at, entry.ends_before());
        here.pass(entry, 1);
        if entry.loops_on_letters() {
            let run = letters.checked_shr((here.at - start) as u32).unwrap_or_default().trailing_ones();
            here.at += run as usize;
        }
    }
    *place = here;
}

impl Place {
    /// Moves past a character of this length.
    #[inline(always)]
    fn pass(&mut self, entry: Entry, len: usize) {
        self.restart = if entry.restarts() { self.at } else { self.restart };
        self.row = entry.next_row();
        self.at += len;
    }
}

/// Ends of pieces.
struct Ends {
    ends: [usize; MAX_ENDS],
    len: usize,
}

impl Ends {
    #[inline(always)]
    fn push(&mut self, end: usize, is_end: bool) {
        self.ends[self.len % MAX_ENDS] = end;
        self.len += usize::from(is_end);
    }

    /// Adds the ends at these distances in characters before `at`, furthest first.
    #[inline]
    fn push_before(&mut self, text: &[u8], at: usize, distances: &[usize]) {
        let furthest = distances.first().copied().unwrap_or_default();
        if text[at - furthest..at].is_ascii() {
            return distances.iter().for_each(|distance| self.push(at - distance, true));
        }
        let (mut end, mut left) = (at, furthest);
        for _ in 0..furthest {
            end = (0..end).rfind(|&at| utf8::is_boundary(text, at)).unwrap_or_default();
        }
        for &distance in distances {
            while left > distance {
                end += utf8::sequence_len(text[end]);
                left -= 1;
            }
            self.push(end, true);
        }
    }
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
