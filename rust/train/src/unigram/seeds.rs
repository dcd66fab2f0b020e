//! Chooses the initial pieces: all characters, and the stretches of text that are long and frequent.
//!
//! The starts of all stretches are sorted by what follows them: a suffix array of the segments. A stretch that always
//! continues in the same way is never more useful than its continuation, so only the longest ones are candidates: those
//! where the text branches, or a segment or a piece must end. They are the inner nodes and the leaves of the suffix
//! tree, which one pass over neighbours in the array lists with their counts. The best by count times length are kept.
//!
//! No piece is longer than about 16 characters, so suffixes are sorted only that far, which keeps comparisons short for
//! any text. They are sorted in groups by their first two bytes: each group fits a cache, groups are shared out among
//! threads, and only one group per thread is in memory.
//!
//! Source: Abouelhoda et al., "Replacing suffix trees with enhanced suffix arrays" (2004); sentencepiece's
//! `MakeSeedSentencePieces` (unigram_model_trainer.cc).
//!
//! Differences:
//! 1. A word is weighted by its number of occurrences; sentencepiece sorts the whole corpus.
//! 2. A stretch is found even if it is always followed by the same character, and that cannot be part of the piece,
//!    such as the space after a word. In sentencepiece, the longest stretch includes that character, is not a valid
//!    piece, and is lost.
//! 3. Text branches between characters. In sentencepiece it branches between bytes, so a stretch is lost if the
//!    characters after it all start with the same byte, as is common in scripts other than Latin.
//! 4. Stretches are cut off at the length of the longest piece. In sentencepiece, those that continue in the same way
//!    beyond it are lost.
//!
//! Complexity: O(n log n) comparisons of at most L bytes for n characters and pieces of at most L bytes.

use std::cmp::Reverse;

use ggtok_core::internals::interrupt::{self, Ticker};
use ggtok_core::unicode::utf8;

use super::pieces::Pieces;
use super::segments::{Piece, Segments};
use super::{SpmSettings, UnigramSettings};
use crate::Result;
use crate::work::work;

/// The usual size of a group. Suffixes that share their first two bytes are in the same group.
const GROUP: usize = 1 << 18;

/// A suffix of a segment.
#[derive(Debug, Clone, Copy)]
struct Suffix {
    /// Its first eight bytes in big-endian order, padded with zeros.
    head: u64,
    start: u32,
    /// Its length, at most that of the longest piece.
    len: u32,
    segment: u32,
}

/// A piece and its count times its length.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    piece: Piece,
    weight: u64,
}

/// The initial model.
pub(super) fn seeds<'a>(segments: &'a Segments, settings: &UnigramSettings) -> Result<Pieces<'a>> {
    let SpmSettings { max_piece_length, threads, .. } = settings.spm;
    let mut num_suffixes = 0;
    each_suffix(segments, max_piece_length, |_, _, _, _| num_suffixes += 1);
    let num_groups = num_suffixes / GROUP + 1;
    // Spreads what is frequent: neighbours go to different groups.
    let group_of = |prefix: u16| (usize::from(prefix.wrapping_mul(0x9E37)) * num_groups) >> 16;
    let in_groups = work(threads, num_groups, 1, Vec::new, |found, run| {
        found.extend(candidates(segments, max_piece_length, |prefix| group_of(prefix) == run.start));
        keep_best(segments, found, settings.seed_size);
    });
    let mut seeds: Vec<Candidate> = in_groups.concat();
    keep_best(segments, &mut seeds, settings.seed_size);
    seeds.extend(characters(segments));
    interrupt::sort_unstable_by(&mut seeds, |a, b| segments.piece(a.piece).cmp(segments.piece(b.piece)));

    let total: f64 = seeds.iter().map(|seed| seed.weight as f64).sum();
    let scores = seeds.iter().map(|seed| super::math::ln(seed.weight as f64 / total)).collect();
    Pieces::new(segments, seeds.iter().map(|seed| seed.piece).collect(), scores)
}

/// Keeps the `len` candidates with the highest weights; ties go to the longer text, then to the first in order.
fn keep_best(segments: &Segments, candidates: &mut Vec<Candidate>, len: usize) {
    if candidates.len() > len {
        let key = |seed: &Candidate| (Reverse((seed.weight, seed.piece.len)), segments.piece(seed.piece));
        let mut ticker = Ticker::default();
        candidates.select_nth_unstable_by(len, |a, b| {
            ticker.tick();
            key(a).cmp(&key(b))
        });
        candidates.truncate(len);
    }
}

/// Every character that occurs in a segment.
fn characters(segments: &Segments) -> Vec<Candidate> {
    let mut found = vec![None; char::MAX as usize + 1];
    let mut ticker = Ticker::default();
    for index in 0..segments.len() {
        let (text, count) = segments.get(index);
        for (character, range) in utf8::code_points(text) {
            ticker.tick();
            let piece = Piece { start: segments.starts[index] + range.start as u32, len: range.len() as u32 };
            found[character as usize].get_or_insert(Candidate { piece, weight: 0 }).weight += count;
        }
    }
    found.into_iter().flatten().collect()
}

/// Calls `visit` for each suffix of at least two characters with its first two bytes.
fn each_suffix(segments: &Segments, max_len: usize, mut visit: impl FnMut(u16, &[u8], u32, usize)) {
    if max_len < 2 {
        return;
    }
    let mut ends = Vec::new();
    let mut ticker = Ticker::default();
    for index in 0..segments.len() {
        let (text, _) = segments.get(index);
        ends.clear();
        ends.extend((0..=text.len()).filter(|&at| text.get(at).is_none_or(|byte| byte & 0xC0 != 0x80)));
        for (number, &start) in ends.iter().enumerate().take(ends.len().saturating_sub(2)) {
            ticker.tick();
            let suffix = &text[start..ends[(number.saturating_add(max_len)).min(ends.len() - 1)]];
            visit(u16::from_be_bytes([suffix[0], suffix[1]]), suffix, segments.starts[index] + start as u32, index);
        }
    }
}

/// All candidates whose first two bytes are in the group.
fn candidates(segments: &Segments, max_len: usize, is_in_group: impl Fn(u16) -> bool) -> Vec<Candidate> {
    let mut suffixes = Vec::new();
    each_suffix(segments, max_len, |prefix, suffix, start, segment| {
        if is_in_group(prefix) {
            let mut head = [0; 8];
            let len = suffix.len().min(8);
            head[..len].copy_from_slice(&suffix[..len]);
            let head = u64::from_be_bytes(head);
            suffixes.push(Suffix { head, start, len: suffix.len() as u32, segment: segment as u32 });
        }
    });
    let text = |suffix: &Suffix| segments.piece(Piece { start: suffix.start, len: suffix.len });
    interrupt::sort_unstable_by(&mut suffixes, |a, b| {
        a.head.cmp(&b.head).then_with(|| text(a).cmp(text(b))).then(a.start.cmp(&b.start))
    });

    let mut found = Vec::new();
    // A stretch of `len` bytes with its count, where shorter ones of `parent` bytes branch.
    let mut add = |suffix: &Suffix, len: usize, parent: usize, count: u64| {
        let len = segments.longest_piece(&text(suffix)[..len]);
        let piece = Piece { start: suffix.start, len: len as u32 };
        let num_characters = segments.piece(piece).iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64;
        if len > parent && count >= 2 && num_characters >= 2 {
            found.push(Candidate { piece, weight: count.saturating_mul(num_characters) });
        }
    };
    // The prefixes of the last suffix that others share, shortest first: lengths and counts.
    let mut open: Vec<(usize, u64)> = Vec::new();
    let mut shared_before = 0;
    for (index, suffix) in interrupt::ticking(&suffixes).enumerate() {
        let shared_after = suffixes.get(index + 1).map_or(0, |next| common_characters(text(suffix), text(next)));
        let mut count = segments.get(suffix.segment as usize).1;
        add(suffix, text(suffix).len(), shared_before.max(shared_after), count);
        while let Some(&(len, before)) = open.last().filter(|(len, _)| *len > shared_after) {
            open.pop();
            count += before;
            add(suffix, len, open.last().map_or(0, |(len, _)| *len).max(shared_after), count);
        }
        match open.last_mut() {
            Some((len, before)) if *len == shared_after => *before += count,
            _ if shared_after > 0 => open.push((shared_after, count)),
            _ => {}
        }
        shared_before = shared_after;
    }
    found
}

/// The length of the characters that both texts start with.
fn common_characters(a: &[u8], b: &[u8]) -> usize {
    let mut len = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    while a.get(len).is_some_and(|byte| byte & 0xC0 == 0x80) {
        len -= 1;
    }
    len
}
