//! Unigram word by word, where it can be shown of the vocabulary that this changes nothing.
//!
//! The best way through a text goes through every place that no token lies across, and between two such places it is
//! the best way from one to the other: the text falls into pieces, and what a piece became once it becomes again. So
//! short pieces are looked up in a [`WordCache`] by their bytes and whether a space is before them, and only pieces not
//! met before are searched. Where a piece ends is found in the text itself, before it is normalized:
//!
//! - in front of words, because no token has a visible space behind its beginning;
//! - between two characters that [`Joins`] has not met in a token, which is asked for all but pairs of ASCII letters
//!   and of digits;
//!
//! provided that the normalizer leaves the characters around alone ([`UnigramNormalizer::splits_words`]). From a
//! character on that it changes up to the next space, the text is normalized first and then cut in the same way.
//!
//! llama.cpp compares sums of scores from the beginning of the text, pieces sums of their own. Both are the same
//! comparison only if no sum is rounded: scores are multiples of a power of two 2^k, and as long as a sum stays below
//! 2^(k + 53) a double holds it exactly. [`Words::new`] finds k and from it the longest text for which no sum can leave
//! that range; longer ones, and vocabularies that fail any condition, take the way over the whole text.
//!
//! Where the text itself has a visible space, tokens of several spaces can lie across the start of the next word: from
//! there on the whole rest is normalized and searched.
//!
//! Unknown tokens of neighbouring pieces are one token. Pieces with unknown tokens are not kept, so that this is seen.
//!
//! Time: O(1) for a piece met before; else as [`Candidates::segment`]. Space: the cache's 1 MiB.

use super::joins::Joins;
use super::lattice::{Bounds, Candidates, Lattice};
use crate::model::wordpiece::cache::{KEY_LEN, Key, MAX_LEN, Probe, WordCache};
use crate::normalizer::ascii::{BLOCK_LEN, Classes};
use crate::normalizer::charsmap::Characters;
use crate::normalizer::unigram::{Normalized, UnigramNormalizer, WHITESPACE};
use crate::sink::{Sink, TokenId};
use crate::unicode::utf8;

/// Pieces that are looked up at a time. Those of a block join the ones before them while these are fewer than a block
/// can add, because a cache line takes longer to come than a block's pieces take to be found.
const QUEUE_LEN: usize = 2 * BLOCK_LEN;

/// The visible space.
const VISIBLE_SPACE: &str = "\u{2581}";
const SPACE: u32 = 0x2581;

/// What is known of a vocabulary whose words are independent.
#[derive(Debug)]
pub(super) struct Words {
    joins: Joins,
    bounds: Bounds,
    /// The longest text for which no sum of scores is rounded, in bytes.
    max_len: usize,
}

/// Buffers, and what pieces became.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    cache: WordCache,
    pending: Pending,
    lattice: Lattice,
    /// A piece that is searched, and its tokens.
    piece: Vec<u8>,
    ids: Vec<TokenId>,
    /// Whether the last token was an unknown one.
    after_unknown: bool,
}

/// Pieces that are being looked up.
#[derive(Debug)]
struct Pending {
    pieces: [(Probe, Piece); QUEUE_LEN],
    num: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self { pieces: [Default::default(); QUEUE_LEN], num: 0 }
    }
}

/// A short piece of a text.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    start: u32,
    len: u16,
    is_after_space: bool,
}

impl Words {
    /// What has to be known, if the words of the vocabulary are independent. `tokens` are all that are searched, with
    /// their scores; none lies across the start of a word, and all scores are finite.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = (&'a [u8], f32)> + Clone,
        unknown_score: f32,
        normalizer: &UnigramNormalizer,
    ) -> Option<Self> {
        normalizer.characters().filter(|_| normalizer.splits_words())?;
        let joins = Joins::new(tokens.clone().map(|token| token.0))?;
        // No way is worse than one character after the other, and none better than the highest score each time.
        let (mut lowest_bit, mut per_character, mut highest) = (lowest_bit(unknown_score), unknown_score.abs(), 0f32);
        for (text, score) in tokens.clone() {
            lowest_bit = lowest_bit.min(self::lowest_bit(score));
            highest = highest.max(score.abs());
            let is_character = text.first().is_some_and(|&first| text.len() == utf8::sequence_len(first));
            if is_character || score > 0.0 {
                per_character = per_character.max(score.abs());
            }
        }
        let most = 2f64.powi(lowest_bit + 53) - Bounds::MAX_LEN as f64 * 2.0 * f64::from(highest);
        let characters = most / f64::from(per_character) - 1.0;
        let max_len = (characters / normalizer.max_expansion() as f64) as usize;
        let bounds = Bounds::new(tokens, unknown_score);
        Some(Self { joins, bounds, max_len })
    }

    pub(super) fn max_len(&self) -> usize {
        self.max_len
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.joins.heap_bytes() + self.bounds.heap_bytes()
    }
}

/// The exponent of the lowest bit that is set in a finite number; for zero, which has none, a high one.
fn lowest_bit(score: f32) -> i32 {
    let bits = score.to_bits() & !(1 << 31);
    let (exponent, fraction) = ((bits >> 23) as i32, bits & 0x7F_FFFF);
    let (exponent, significand) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | 1 << 23) };
    if significand == 0 { 200 } else { exponent - 150 + significand.trailing_zeros() as i32 }
}

/// One text on its way.
pub(super) struct Run<'a, S> {
    pub(super) candidates: &'a Candidates,
    pub(super) normalizer: &'a UnigramNormalizer,
    pub(super) characters: &'a Characters,
    pub(super) words: &'a Words,
    pub(super) text: &'a [u8],
    pub(super) scratch: &'a mut Scratch,
    pub(super) sink: &'a mut S,
}

impl<S: Sink> Run<'_, S> {
    /// Appends the tokens of the text, which is UTF-8 and not longer than [`Words::max_len`].
    #[inline]
    pub(super) fn encode(&mut self, normalized: &mut Normalized) {
        self.scratch.after_unknown = false;
        let text = self.text;
        let mut at = 0;
        let mut padded = [b' '; BLOCK_LEN + KEY_LEN];
        while at < text.len() {
            let block = match text[at..].first_chunk() {
                Some(block) => block,
                None => {
                    padded.fill(b' ');
                    padded[..text.len() - at].copy_from_slice(&text[at..]);
                    &padded
                }
            };
            at = self.block(at, block, normalized);
        }
        self.finish(text);
    }

    /// Appends the tokens of the pieces that begin in the block at `start`, where one begins unless there is a space,
    /// but for one that begins behind that and goes on behind the block; gives where that was. `block` may go on with
    /// spaces behind the text.
    #[inline(always)]
    fn block(&mut self, start: usize, block: &[u8; BLOCK_LEN + KEY_LEN], normalized: &mut Normalized) -> usize {
        let Some(bytes) = block.first_chunk() else { return self.text.len() };
        let Classes { letter, digit, space, other } = Classes::of(bytes);
        let is_space_before = start.checked_sub(1).is_none_or(|before| is_space(self.text[before]));
        let after_space = space << 1 | u64::from(is_space_before);
        let mut starts = !space & (after_space | 1);
        // Neighbours that are no space and not both letters or both digits.
        let ascii = !(space | other);
        let mut pairs = ascii & ascii << 1 & !(letter & letter << 1) & !(digit & digit << 1);
        while pairs != 0 {
            let at = pairs.trailing_zeros() as usize;
            let meet = self.words.joins.meet(block[at - 1].into(), block[at].into());
            starts |= u64::from(!meet) << at;
            pairs &= pairs - 1;
        }
        let ends = starts | space;
        loop {
            let mut special = None;
            while starts != 0 {
                let at = starts.trailing_zeros() as usize;
                let end = (ends & (u64::MAX - 1) << at).trailing_zeros() as usize;
                let piece_len = end - at;
                let is_other = (other >> at) & !(u64::MAX << (piece_len % 64)) != 0;
                let Some(bytes) = block[at..].first_chunk() else { break };
                if is_other | (end == BLOCK_LEN) | (piece_len > MAX_LEN) {
                    special = Some((at, end, is_other));
                    break;
                }
                let is_after_space = after_space >> at & 1 != 0;
                let key = Key::new(bytes, piece_len).after_space(is_after_space);
                self.scratch.look_up(key, Piece { start: (start + at) as u32, len: piece_len as u16, is_after_space });
                starts &= starts - 1;
            }
            if self.scratch.pending.num >= BLOCK_LEN {
                self.finish(self.text);
            }
            let Some((at, end, is_other)) = special else { return start + BLOCK_LEN };
            if end == BLOCK_LEN && at > 0 && !is_other {
                return start + at;
            }
            self.finish(self.text);
            let end = if is_other || end == BLOCK_LEN {
                let rest = &self.text[start + at..];
                start + at + rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len())
            } else {
                start + end
            };
            let end = self.stretch(start + at, end, after_space >> at & 1 != 0, normalized);
            if end - start >= BLOCK_LEN {
                return end;
            }
            starts &= u64::MAX << (end - start);
        }
    }

    /// Appends the tokens of a stretch of text without spaces, at whose beginning there is a cut; gives where they end.
    fn stretch(&mut self, start: usize, end: usize, is_after_space: bool, normalized: &mut Normalized) -> usize {
        let text = &self.text[start..end];
        let (kept, is_after_space) = self.pieces(text, is_after_space, Some(self.characters));
        if kept == text.len() {
            return end;
        }
        // Behind a visible space in the text itself a word need not begin with a cut.
        if memchr::memmem::find(&text[kept..], VISIBLE_SPACE.as_bytes()).is_some() {
            self.normalizer.normalize::<false>(&self.text[start + kept..], !is_after_space, normalized);
            let mut rest = &normalized.text[..];
            while !rest.is_empty() {
                let (word, others) = rest.split_at(word_len(rest, VISIBLE_SPACE.as_bytes()));
                self.search(word, false, None);
                rest = others;
            }
            return self.text.len();
        }
        self.normalizer.normalize::<false>(&text[kept..], !is_after_space, normalized);
        self.pieces(&normalized.text, false, None);
        end
    }

    /// Appends the tokens of a stretch of normalized text, or of text that is not normalized up to a piece with
    /// characters that do not stay; gives where that begins and whether after a space.
    fn pieces(&mut self, text: &[u8], mut is_after_space: bool, characters: Option<&Characters>) -> (usize, bool) {
        let mut start = 0;
        let mut at = 0;
        let mut before = None;
        let mut next = utf8::decode(text, at);
        while let Some((character, len)) = next {
            next = utf8::decode(text, at + len);
            if characters.is_some_and(|characters| !characters.keeps(character, next.map(|next| next.0))) {
                self.finish(text);
                return (start, is_after_space);
            }
            if before.is_some_and(|before| !self.words.joins.meet(before, character)) {
                self.piece(text, start, at, is_after_space);
                start = at;
                is_after_space = false;
            }
            before = Some(character);
            if character == SPACE && at == start {
                // A visible space is before every word of a normalized text, and only there.
                start += len;
                is_after_space = true;
                before = None;
            }
            at += len;
        }
        if start < text.len() {
            self.piece(text, start, text.len(), is_after_space);
        }
        self.finish(text);
        (text.len(), false)
    }

    /// Looks up a piece if it is short, else appends its tokens.
    #[inline]
    fn piece(&mut self, text: &[u8], start: usize, end: usize, is_after_space: bool) {
        let len = end - start;
        if len > MAX_LEN {
            self.finish(text);
            return self.search(&text[start..end], is_after_space, None);
        }
        let key = match text[start..].first_chunk() {
            Some(bytes) => Key::new(bytes, len),
            None => {
                let mut bytes = [0; KEY_LEN];
                bytes[..len].copy_from_slice(&text[start..end]);
                Key::new(&bytes, len)
            }
        };
        let piece = Piece { start: start as u32, len: len as u16, is_after_space };
        self.scratch.look_up(key.after_space(is_after_space), piece);
        if self.scratch.pending.num == BLOCK_LEN {
            self.finish(text);
        }
    }

    /// Appends the tokens of all pieces that are being looked up.
    #[inline(always)]
    fn finish(&mut self, text: &[u8]) {
        for n in 0..self.scratch.pending.num {
            let (probe, Piece { start, len, is_after_space }) = self.scratch.pending.pieces[n % QUEUE_LEN];
            match self.scratch.cache.get(probe) {
                Some(ids) => {
                    self.scratch.after_unknown = false;
                    ids.for_each(|id| self.sink.push(id, 0..0));
                }
                None => self.search(&text[start as usize..][..len.into()], is_after_space, Some(probe)),
            }
        }
        self.scratch.pending.num = 0;
    }

    /// Finds and appends the tokens of a piece, and keeps them.
    #[inline(never)]
    fn search(&mut self, text: &[u8], is_after_space: bool, probe: Option<Probe>) {
        let Scratch { cache, lattice, piece, ids, after_unknown, .. } = &mut *self.scratch;
        piece.clear();
        if is_after_space {
            piece.extend_from_slice(VISIBLE_SPACE.as_bytes());
        }
        piece.extend_from_slice(text);
        self.candidates.segment(piece, 0.0, Some(&self.words.bounds), lattice);
        ids.clear();
        ids.extend(lattice.path.iter().rev().map(|token| token.0));
        let unknown = self.candidates.unknown;
        let mut has_unknown = false;
        for &id in &*ids {
            let is_unknown = id == unknown;
            has_unknown |= is_unknown;
            if !(is_unknown && *after_unknown) {
                self.sink.push(id, 0..0);
            }
            *after_unknown = is_unknown;
        }
        if let Some(probe) = probe.filter(|_| !has_unknown) {
            cache.insert(probe, ids);
        }
    }
}

impl Scratch {
    /// Begins to look up a piece.
    #[inline(always)]
    fn look_up(&mut self, key: Key, piece: Piece) {
        let Pending { pieces, num } = &mut self.pending;
        pieces[*num % QUEUE_LEN] = (self.cache.probe(key), piece);
        *num += 1;
    }
}

/// Length of the first word of a normalized text: any spaces and what follows up to the next.
pub(super) fn word_len(text: &[u8], space: &[u8]) -> usize {
    let mut len = 0;
    let mut in_word = false;
    while len < text.len() {
        if text[len] == space[0] && text[len..].starts_with(space) {
            if in_word {
                return len;
            }
            len += space.len();
        } else {
            in_word = true;
            len += utf8::sequence_len(text[len]);
        }
    }
    text.len()
}

fn is_space(byte: u8) -> bool {
    WHITESPACE.contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::lowest_bit;

    #[test]
    fn lowest_bits() {
        let cases = [(1.0, 0), (-1.5, -1), (-10_000.0, 4), (0.1, -27), (f32::MIN_POSITIVE, -126), (f32::EPSILON, -23)];
        for (score, expected) in cases {
            assert_eq!(lowest_bit(score), expected, "{score}");
        }
        assert_eq!(lowest_bit(f32::from_bits(1)), -149);
        assert!(lowest_bit(0.0) > 127 && lowest_bit(-0.0) > 127);
    }
}
