//! Unigram word by word, where it can be shown of the vocabulary that this changes nothing.
//!
//! The best way through a text goes through every place that no token lies across, and between two such places it is
//! the best way from one to the other: the text falls into pieces, and what a piece became once it becomes again. So
//! short pieces are looked up in a [`RecentWords`] by their bytes and whether a space is before them, and only pieces not
//! met before are searched. Where a piece ends is found in the text itself, before it is normalized:
//!
//! - in front of words, because no token has a visible space behind its beginning;
//! - between two characters that [`Joins`] has not met in a token, which is asked for all but pairs of ASCII letters
//!   and of digits;
//!
//! provided that the normalizer leaves the characters around alone ([`UnigramNormalizer::splits_words`]). Where it
//! changes a character, the text from the cut before up to the next one is normalized first and then cut in the same way.
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

use super::lattice::{Bounds, Candidates, Lattice};
use crate::lookup::key::{KEY_LEN, Key, MAX_LEN};
use crate::model::adjacency::{CharPairs, CharPairsBuilder};
use crate::model::cache::recent::{Probe, RecentWords};
use crate::normalizer::charsmap::Characters;
use crate::normalizer::rewritten::Rewritten;
use crate::normalizer::unigram::{UnigramNormalizer, WHITESPACE};
use crate::scan::masks::WordClasses;
use crate::scan::{BLOCK as BLOCK_LEN, padded};
use crate::sink::{Sink, TokenId};
use crate::unicode::utf8;

/// Pieces that are looked up at a time. Those of a block join the ones before them while these are fewer than a block
/// can add, because a cache line takes longer to come than a block's pieces take to be found.
const QUEUE_LEN: usize = 2 * BLOCK_LEN;

/// Bits of the filter for pairs of characters. The 150,000 pairs of a vocabulary for a hundred languages set one in seven.
const FILTER_BITS: usize = 1 << 20;

/// The visible space.
const VISIBLE_SPACE: &str = "\u{2581}";
const SPACE: u32 = 0x2581;

/// What is known of a vocabulary whose words are independent.
#[derive(Debug)]
pub(super) struct Words {
    pairs: CharPairs,
    bounds: Bounds,
    /// The longest text for which no sum of scores is rounded, in bytes.
    max_len: usize,
}

/// Buffers, and what pieces became.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    cache: RecentWords,
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
    /// Each with where it begins in its text.
    pieces: [(Probe, u32); QUEUE_LEN],
    num: usize,
}

impl Default for Pending {
    fn default() -> Self {
        Self { pieces: [Default::default(); QUEUE_LEN], num: 0 }
    }
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
        let pairs = pairs_of(tokens.clone().map(|token| token.0))?;
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
        Some(Self { pairs, bounds, max_len })
    }

    pub(super) fn max_len(&self) -> usize {
        self.max_len
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.pairs.heap_bytes() + self.bounds.heap_bytes()
    }
}

/// The pairs of characters inside tokens, if all tokens are UTF-8.
fn pairs_of<'a>(mut tokens: impl Iterator<Item = &'a [u8]>) -> Option<CharPairs> {
    let mut pairs = CharPairsBuilder::default();
    tokens.try_for_each(|token| {
        let (mut at, mut before) = (0, None);
        while at < token.len() {
            let (character, len) = utf8::decode(token, at)?;
            at += len;
            if let Some(before) = before.replace(character) {
                pairs.add(before, character);
            }
        }
        Some(())
    })?;
    Some(pairs.finish(FILTER_BITS))
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
    pub(super) fn encode(&mut self, normalized: &mut Rewritten<'_>) {
        self.scratch.after_unknown = false;
        let text = self.text;
        let mut at = 0;
        let mut buffer = [b' '; BLOCK_LEN + KEY_LEN];
        while at < text.len() {
            let block = padded(&text[at..], &mut buffer);
            at = self.block(at, block, normalized);
        }
        self.finish(text);
    }

    /// Appends the tokens of the pieces that begin in the block at `start`, where one begins unless there is a space,
    /// but for one that begins behind that and goes on behind the block; gives where that was. `block` may go on with
    /// spaces behind the text.
    #[inline(always)]
    fn block(&mut self, start: usize, block: &[u8; BLOCK_LEN + KEY_LEN], normalized: &mut Rewritten<'_>) -> usize {
        let Some(bytes) = block.first_chunk() else { return self.text.len() };
        let WordClasses { letter, digit, space, other } = WordClasses::new(bytes);
        let is_space_before = start.checked_sub(1).is_none_or(|before| is_space(self.text[before]));
        let after_space = space << 1 | u64::from(is_space_before);
        let mut starts = !space & (after_space | 1);
        // Neighbours that are no space and not both letters or both digits.
        let ascii = !(space | other);
        let mut pairs = ascii & ascii << 1 & !(letter & letter << 1) & !(digit & digit << 1);
        while pairs != 0 {
            let at = pairs.trailing_zeros() as usize;
            let meet = self.words.pairs.meet(block[at - 1].into(), block[at].into());
            starts |= u64::from(!meet) << at;
            pairs &= pairs - 1;
        }
        let ends = starts | space;
        let mut other = other;
        loop {
            let first_other = other.trailing_zeros() as usize;
            let limit = first_other.min(BLOCK_LEN - 1);
            let mut special = None;
            while starts != 0 {
                let at = starts.trailing_zeros() as usize;
                // The highest bit is one for what does not end in the block.
                let piece_len = (ends >> at >> 1 | 1 << 63).trailing_zeros() as usize + 1;
                let Some(bytes) = block[at..].first_chunk() else { break };
                if (at + piece_len > limit) | (piece_len > MAX_LEN) {
                    special = Some((at, (at + piece_len).min(BLOCK_LEN)));
                    break;
                }
                let key = Key::of(bytes, piece_len).marked(after_space >> at & 1 != 0);
                self.scratch.look_up(key, start + at);
                starts &= starts - 1;
            }
            if self.scratch.pending.num >= BLOCK_LEN {
                self.finish(self.text);
            }
            let Some((at, end)) = special else { return start + BLOCK_LEN };
            let is_other = first_other < end;
            if end == BLOCK_LEN && at > 0 && !is_other {
                return start + at;
            }
            let end = if is_other || end == BLOCK_LEN { self.text.len() } else { start + end };
            let end = self.stretch(start + at, end, after_space >> at & 1 != 0, normalized) - start;
            if end >= BLOCK_LEN {
                return start + end;
            }
            starts &= u64::MAX << end;
            other &= u64::MAX << end;
        }
    }

    /// Looks up the pieces of a stretch of text without spaces, at whose beginning there is a cut, up to `end` or a
    /// space; gives where that is.
    fn stretch(
        &mut self,
        mut start: usize,
        end: usize,
        mut is_after_space: bool,
        normalized: &mut Rewritten<'_>,
    ) -> usize {
        let text = self.text;
        let mut at = start;
        let mut before = None;
        let mut next = utf8::decode_valid(text, at);
        while let Some((character, len)) = next
            && at != end
            && !is_space_character(character)
        {
            next = utf8::decode_valid(text, at + len);
            if !self.characters.keeps(character, next.map(|next| next.0)) {
                start = self.changed(start, at, is_after_space, normalized);
                is_after_space = false;
                at = start;
                before = None;
                next = utf8::decode_valid(text, at);
                continue;
            }
            if before.is_some_and(|before| !self.words.pairs.meet(before, character)) {
                self.piece(text, start, at, is_after_space);
                start = at;
                is_after_space = false;
            }
            before = Some(character);
            at += len;
        }
        if start < at {
            self.piece(text, start, at, is_after_space);
        }
        at
    }

    /// Appends the tokens of the text from the cut at `start` on, in which the character at `at` is the first that does
    /// not stay, up to the next cut; gives where that is.
    #[inline(never)]
    fn changed(&mut self, start: usize, at: usize, is_after_space: bool, normalized: &mut Rewritten<'_>) -> usize {
        self.finish(self.text);
        let end = self.next_cut(at);
        // Behind a visible space in the text itself a word need not begin with a cut.
        if memchr::memmem::find(&self.text[at..end], VISIBLE_SPACE.as_bytes()).is_some() {
            normalized.reset(0, false);
            self.normalizer.normalize(&self.text[start..], !is_after_space, normalized);
            let mut rest = &normalized.text[..];
            while !rest.is_empty() {
                let (word, others) = rest.split_at(word_len(rest, VISIBLE_SPACE.as_bytes()));
                self.search(word, false, None);
                rest = others;
            }
            return self.text.len();
        }
        normalized.reset(0, false);
        self.normalizer.normalize(&self.text[start..end], !is_after_space, normalized);
        let len = normalized.text.len();
        // Whole keys are read, past the end too.
        normalized.push(&[0; KEY_LEN], 0..0);
        self.normalized(&normalized.text, len);
        end
    }

    /// Where behind the character at `at`, which does not stay, the first cut between two that do is, or else a space
    /// or the end.
    fn next_cut(&self, mut at: usize) -> usize {
        let text = self.text;
        loop {
            at = self.normalizer.step_end(text, at);
            let mut before = None;
            let mut next = utf8::decode_valid(text, at);
            loop {
                let Some((character, len)) = next.filter(|next| !is_space_character(next.0)) else { return at };
                next = utf8::decode_valid(text, at + len);
                if !self.characters.keeps(character, next.map(|next| next.0)) {
                    break;
                }
                if before.is_some_and(|before| !self.words.pairs.meet(before, character)) {
                    return at;
                }
                before = Some(character);
                at += len;
            }
        }
    }

    /// Appends the tokens of the first `len` bytes of a normalized text.
    fn normalized(&mut self, text: &[u8], len: usize) {
        let mut is_after_space = false;
        let mut start = 0;
        let mut at = 0;
        let mut before = None;
        while at < len
            && let Some((character, character_len)) = utf8::decode_valid(text, at)
        {
            if before.is_some_and(|before| !self.words.pairs.meet(before, character)) {
                self.piece(text, start, at, is_after_space);
                start = at;
                is_after_space = false;
            }
            before = Some(character);
            at += character_len;
            if character == SPACE && at == start + character_len {
                // A visible space is before every word of a normalized text, and only there.
                start = at;
                is_after_space = true;
                before = None;
            }
        }
        if start < len {
            self.piece(text, start, len, is_after_space);
        }
        self.finish(text);
    }

    /// Looks up a piece if it is short, else appends its tokens.
    #[inline(always)]
    fn piece(&mut self, text: &[u8], start: usize, end: usize, is_after_space: bool) {
        match text[start..].first_chunk().filter(|_| end - start <= MAX_LEN) {
            Some(bytes) => {
                self.scratch.look_up(Key::of(bytes, end - start).marked(is_after_space), start);
                if self.scratch.pending.num >= BLOCK_LEN {
                    self.finish(text);
                }
            }
            None => self.rare_piece(text, start, end, is_after_space),
        }
    }

    /// The same for a piece that is long or at the end of the text.
    #[inline(never)]
    fn rare_piece(&mut self, text: &[u8], start: usize, end: usize, is_after_space: bool) {
        self.finish(text);
        let piece = &text[start..end];
        let mut bytes = [0; KEY_LEN];
        match bytes.get_mut(..piece.len()).filter(|_| piece.len() <= MAX_LEN) {
            Some(begin) => {
                begin.copy_from_slice(piece);
                self.scratch.look_up(Key::of(&bytes, piece.len()).marked(is_after_space), start);
            }
            None => self.search(piece, is_after_space, None),
        }
    }

    /// Appends the tokens of all pieces that are being looked up.
    #[inline(never)]
    fn finish(&mut self, text: &[u8]) {
        for n in 0..self.scratch.pending.num {
            let (probe, start) = self.scratch.pending.pieces[n % QUEUE_LEN];
            match self.scratch.cache.get(probe) {
                Some(ids) => {
                    self.scratch.after_unknown = false;
                    ids.for_each(|id| self.sink.push(id, 0..0));
                }
                None => {
                    let word = &text[start as usize..][..probe.key.word_len()];
                    self.search(word, probe.key.is_marked(), Some(probe));
                }
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
    /// Begins to look up the piece at `start`.
    #[inline(always)]
    fn look_up(&mut self, key: Key, start: usize) {
        let Pending { pieces, num } = &mut self.pending;
        pieces[*num % QUEUE_LEN] = (self.cache.probe(key), start as u32);
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

#[inline(always)]
fn is_space_character(character: u32) -> bool {
    character <= b' '.into() && is_space(character as u8)
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
