//! The corpus as the trainer sees it: words are cut into segments that no piece can span, and each distinct segment is
//! kept once.
//!
//! Segments of a word are independent: the probability of the word is their product. There are fewer distinct segments
//! than words, because punctuation and digits are separated. Every stretch of a segment that is short enough may be a
//! piece, so the rules about pieces are checked here once and not in the lattices.
//!
//! A character outside the coverage is in no segment. It is one unknown token in every segmentation, so it does not
//! affect the others.
//!
//! Source: sentencepiece's `IsValidSentencePiece` and `LoadSentences` (trainer_interface.cc).
//! Differences:
//! 1. A combining mark has the script of the character before it, even at the start of a piece.
//! 2. Segments of more than 4 KiB are cut, and no piece spans the cuts; sentencepiece skips such long lines.
//!
//! Complexity: O(n log n) for n bytes of distinct words.

use ggtok_core::internals::interrupt;
use ggtok_core::internals::spelling::ESCAPED_SPACE;

use crate::spm::{Shape, SpmSettings, text};
use crate::{Result, TrainError, Words};

/// A longer segment, in bytes, is cut, so that its lattice stays small.
const MAX_LEN: usize = 1 << 12;

/// A piece: a stretch of the segments' text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u32,
    pub len: u32,
}

/// Segments with their counts.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// All segments, concatenated in order.
    text: Vec<u8>,
    /// The start of each segment, and the end of the last one.
    pub(super) starts: Vec<u32>,
    counts: Vec<u64>,
    /// The total number of characters of all occurrences.
    pub(super) num_characters: u64,
    splits_at_spaces: bool,
    has_runs_of_spaces: bool,
}

impl Segments {
    /// Cuts words into segments of characters of the alphabet.
    ///
    /// # Errors
    /// [`TrainError::TooLarge`]: the distinct segments have 2³² bytes or more in total.
    pub(super) fn new(words: &Words, alphabet: &[char], settings: &SpmSettings) -> Result<Self> {
        let mut is_known = vec![false; char::MAX as usize + 1];
        for &character in alphabet {
            is_known[character as usize] = true;
        }

        let mut all: Vec<(&[u8], u64)> = Vec::new();
        for (word, count) in interrupt::ticking(words.iter()) {
            let mut start = 0;
            // `None` where nothing continues: at the start, and after a character outside the alphabet.
            let mut before: Option<Shape> = None;
            let word = text(word);
            for (at, character) in word.char_indices() {
                let next = is_known[character as usize].then(|| Shape::of(character, settings));
                let continued = before.zip(next).filter(|(before, next)| !parts(*before, *next, settings));
                if continued.is_none() || at - start >= MAX_LEN {
                    if start < at {
                        all.push((&word.as_bytes()[start..at], count));
                    }
                    start = at;
                }
                if next.is_none() {
                    start = at + character.len_utf8();
                }
                before = continued.map(|(before, next)| next.after(before)).or(next);
            }
            if start < word.len() {
                all.push((&word.as_bytes()[start..], count));
            }
        }
        interrupt::sort_unstable_by(&mut all, |a, b| a.0.cmp(b.0));

        let mut segments = Self {
            splits_at_spaces: settings.split_by_whitespace,
            has_runs_of_spaces: settings.allow_whitespace_only_pieces,
            ..Self::default()
        };
        for alike in interrupt::ticking(all.chunk_by(|a, b| a.0 == b.0)) {
            let text = alike[0].0;
            let count = alike.iter().map(|(_, count)| count).sum();
            segments.starts.push(segments.text.len() as u32);
            segments.text.extend_from_slice(text);
            segments.counts.push(count);
            segments.num_characters += count * text.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u64;
        }
        let end = segments.text.len();
        segments.starts.push(u32::try_from(end).map_err(|_| TrainError::TooLarge { symbols: end })?);
        Ok(segments)
    }

    /// The number of distinct segments.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// The text and the count of a segment.
    pub(super) fn get(&self, index: usize) -> (&[u8], u64) {
        (&self.text[self.starts[index] as usize..self.starts[index + 1] as usize], self.counts[index])
    }

    /// The text of a piece.
    #[inline(always)]
    pub(super) fn piece(&self, piece: Piece) -> &[u8] {
        &self.text[piece.start as usize..][..piece.len as usize]
    }

    /// The length of the longest prefix of a stretch that may be a piece.
    pub(super) fn longest_piece(&self, stretch: &[u8]) -> usize {
        let mut len = stretch.len();
        let space = ESCAPED_SPACE.len();
        let leading = stretch.chunks(space).take_while(|chunk| *chunk == ESCAPED_SPACE).count() * space;
        if leading <= space && !stretch[space.min(len)..].ends_with(ESCAPED_SPACE) {
            return len;
        }
        if self.has_runs_of_spaces && (self.splits_at_spaces || leading == len) {
            return leading;
        }
        while len > space && stretch[..len].ends_with(ESCAPED_SPACE) {
            len -= space;
        }
        len
    }
}

/// Whether no piece continues from one character to the next.
fn parts(before: Shape, next: Shape, settings: &SpmSettings) -> bool {
    let may_follow = settings.allow_whitespace_only_pieces && before.is_space;
    settings.split_by_whitespace && next.is_space && !may_follow || before.parts_from(next, settings)
}
