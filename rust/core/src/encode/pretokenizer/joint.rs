//! All patterns of a family in one pass over the text.
//!
//! Patterns apply in sequence, each to the pieces left by the one before it. Here they walk through the text together
//! ([`stage`]), and a table caches their joint transitions ([`learned`]): one look-up per character instead of one per
//! character and pattern. This works for any list of patterns.
//!
//! Text that the table cannot handle is split slowly, pattern by pattern. There are two cases: more than 64 characters
//! would have to be held before a piece is settled, as in an indentation of 70 spaces; or the text needs more entries
//! than it may learn. The slow way starts at a character from which the text splits as if it started there, and
//! ends with a piece of the first pattern, which is such a character again.
//!
//! Complexity: linear in the text, each byte once in the fast way and at most once in the slow one.

mod learned;
mod stage;

use super::automaton::FailedRun;
use super::numbers::{number_len, split_groups};
use crate::text::scan::{BLOCK, gather, padded, places};
use crate::text::unicode::utf8;
use crate::work::interrupt::Ticker;
pub use learned::Learned;
use learned::{END, NEAR, Transition};
pub(super) use stage::Stage;

/// The patterns of a family.
#[derive(Debug)]
pub(crate) struct Joint {
    stages: Vec<Stage>,
}

heap_bytes!(Joint: stages);

/// Bytes that are walked through at once: the positions of near ends in them and before them fit into a mask.
const WALK: usize = BLOCK - NEAR;

/// A position in the text.
#[derive(Debug, Clone, Copy)]
struct Cursor {
    at: usize,
    /// The row of the state there.
    row: usize,
    /// A position from which the text splits as if it started there, not always the latest one.
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
        let mut place = Cursor { at: 0, row: 0, restart: 0, piece_start: 0 };
        let mut failed = FailedRun::default();
        let mut ticker = Ticker::default();
        while place.piece_start < text.len() {
            ticker.tick();
            let is_known = walk(text, learned, &mut place, &mut piece);
            if !is_known && !self.learn(text, learned, place) {
                self.split_slowly(text, &mut place, &mut failed, &mut piece);
            }
        }
    }

    /// Learns the entry that is missing at this position. Returns whether that is possible.
    #[inline(never)]
    fn learn(&self, text: &[u8], learned: &mut Learned, place: Cursor) -> bool {
        let class = match text.get(place.at) {
            None => END,
            Some(&byte @ 0..0x80) => learned.byte_class(byte),
            Some(_) => learned.learn_class(&self.stages, utf8::decode_lossy(text, place.at).0),
        };
        learned.learn(&self.stages, place.row, class)
    }

    /// Splits some text pattern by pattern, at least through the next character.
    #[inline(never)]
    fn split_slowly(
        &self,
        text: &[u8],
        place: &mut Cursor,
        failed: &mut FailedRun,
        piece: &mut dyn FnMut(usize, usize),
    ) {
        while place.restart <= place.at && place.restart < text.len() {
            let start = place.restart;
            let end = if let [Stage::Pattern(automaton), ..] = &self.stages[..] {
                automaton.piece_end(text, start, text.len(), failed)
            } else {
                // Pieces end after a number.
                let is_digit = |at: usize| number_len(text, at).0;
                let ends_run = |at: &usize| is_digit(utf8::floor(text, at - 1)) && !is_digit(*at);
                let mut chars = (start + 1..text.len()).filter(|&at| utf8::is_boundary(text, at));
                chars.find(ends_run).unwrap_or(text.len())
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
}

/// Takes the characters of a block up to the first one without a known entry. Returns whether the block has no such
/// character.
#[inline(always)]
fn walk(text: &[u8], learned: &mut Learned, place: &mut Cursor, piece: &mut impl FnMut(usize, usize)) -> bool {
    let start = place.at;
    let mut buffer = [0; BLOCK];
    let bytes = padded(&text[start..], b' ', &mut buffer);
    let letters = gather(bytes, lower_case) & ((1 << WALK) - 1);
    let block = &text[..text.len().min(start + WALK)];
    loop {
        if block.get(place.at).is_some_and(u8::is_ascii) {
            walk_ascii(block, start, letters, learned, place, piece);
        }
        if place.at >= block.len() && block.len() < text.len() {
            learned.earn(place.at - start);
            return true;
        }
        // A character beyond ASCII, one with several ends of pieces or without a known entry, or the end of the text.
        count_steps!(1);
        let (class, len) = match text.get(place.at) {
            Some(&byte @ 0..0x80) => (learned.byte_class(byte), 1),
            Some(_) => {
                let (code_point, len) = utf8::decode_valid(text, place.at).unwrap_or_default();
                (learned.class(code_point), len)
            }
            None => (END, 0),
        };
        let entry = learned.entry(place.row, class);
        if entry.is_simple() {
            if entry.near_ends() != 0 {
                place.end_piece(place.at, piece);
            }
        } else {
            let Some(distances) = learned.ends(entry) else {
                learned.earn(place.at - start);
                return false;
            };
            place.end_pieces(text, place.at + len, distances, piece);
        }
        place.restart = if entry.restarts() { place.at } else { place.restart };
        place.at += len;
        place.row = entry.next_row();
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

/// Takes characters up to the end of the block, or up to one that is beyond ASCII or special. Most text needs nothing
/// else, and the variables fit in registers. `letters` marks `a` to `z` in the block, which starts at `start`.
#[inline(always)]
fn walk_ascii(
    block: &[u8],
    start: usize,
    letters: u64,
    learned: &Learned,
    place: &mut Cursor,
    piece: &mut impl FnMut(usize, usize),
) {
    let mut at = place.at;
    let mut row = place.row;
    let mut latest = Transition::default();
    let mut latest_at = place.at;
    // Bit NEAR - 1 stands for the start of the block.
    let mut near_ends = 0;
    while let Some(&byte) = block.get(at) {
        count_steps!(1);
        let entry = learned.entry(row, learned.byte_class(byte));
        if entry.is_special() {
            break;
        }
        near_ends |= entry.near_ends() << (at - start);
        (row, latest, latest_at) = (entry.next_row(), entry, at);
        at += 1;
        if entry.loops_on_letters() {
            at += (letters >> (at - start)).trailing_ones() as usize;
        }
    }

    // A character before those here may have several bytes. An end before it is left to the lists.
    let first = near_ends.trailing_zeros() as usize + start + 1;
    if near_ends != 0 && first < place.at + NEAR && !block[place.at.saturating_sub(NEAR)..place.at].is_ascii() {
        return;
    }
    places(near_ends).for_each(|bit| place.end_piece(start + bit + 1 - NEAR, piece));
    // Any such position will do, so the last entry is enough.
    if latest.restarts() {
        place.restart = latest_at;
    }
    (place.at, place.row) = (at, row);
}

impl Cursor {
    #[inline(always)]
    fn end_piece(&mut self, end: usize, piece: &mut impl FnMut(usize, usize)) {
        piece(self.piece_start, end);
        self.piece_start = end;
    }

    /// Ends pieces at these distances in characters before `at`, furthest first.
    #[inline]
    fn end_pieces(&mut self, text: &[u8], at: usize, distances: &[usize], piece: &mut impl FnMut(usize, usize)) {
        for &distance in distances {
            let end = (0..distance).fold(at, |end, _| utf8::floor(text, end - 1));
            self.end_piece(end, piece);
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
        [Stage::Digits, rest @ ..] => {
            split_groups(text, start, end, |start, end| descend(rest, text, start, end, piece));
        }
    }
}
