//! Unigram by segments: a text is cut where no token crosses, and the ids of each segment are cached.
//!
//! The best path through a text visits every place that no token crosses, and between two such places it is the best
//! path from one to the other. So segments are encoded independently. Short ones are looked up in a [`WordCache`], by
//! their bytes and whether a space is before them, and only those that are not cached are searched. Cuts are found in
//! the input itself, before it is normalized:
//!
//! - before words, because no token has an escaped space after its start;
//! - between two characters that are adjacent in no token ([`CharPairs`]). In ASCII text, two letters or two digits are
//!   taken to be adjacent in some, which saves most look-ups.
//!
//! Both require that the normalizer leaves the characters around a cut alone
//! ([`UnigramNormalizer::normalizes_words_alone`]). Where it changes a character, the text from the last cut before it
//! to the first one after it is normalized, and then cut in the same way.
//!
//! llama.cpp compares sums of scores from the start of the text, this file sums from the start of a segment. Both
//! comparisons are the same only if no sum is rounded. Scores are multiples of a power of two 2^k, and a double holds
//! such sums below 2^(k + 53) exactly. [`Words::new`] finds k, and from it the longest text that cannot exceed this.
//! Longer texts, and vocabularies that fail any condition, are not cut.
//!
//! Where the input itself has an escaped space, a token of several spaces can cross the start of the next word: the
//! whole rest of the text is normalized and searched word by word.
//!
//! Adjacent unknown tokens of two segments become one. Segments with unknown tokens are never cached, so the search
//! sees all of them.
//!
//! Time: O(1) for a cached segment, as [`Candidates::best_path`] for any other; at worst no segment of a text repeats.
//! Space: that of the cache.
//!
//! Deviations: none.

use super::lattice::{Bounds, Candidates, Lattice};
use super::spans::{Source, Tracer};
use crate::encode::model::adjacency::{CharPairs, CharPairsBuilder};
use crate::encode::model::cache::{Probe, WordCache};
use crate::encode::normalizer::charsmap::KeyCharacters;
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::normalizer::unigram::{UnigramNormalizer, WHITESPACE};
use crate::encode::sink::Sink;
use crate::lookup::key::{KEY_LEN, Key, MAX_LEN};
use crate::text::scan::masks::WordClasses;
use crate::text::scan::{BLOCK as BLOCK_LEN, padded};
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::{ESCAPED_SPACE, ESCAPED_SPACE_CODE_POINT};
use crate::work::interrupt::{self, Ticker};
use crate::work::memory::append_text;

/// The most segments of a queue. It is drained only when it has as many as one block can add, because fetching a cache
/// line takes longer than finding the segments of a block.
const QUEUE_LEN: usize = 2 * BLOCK_LEN;

/// Bits of the filter for pairs of characters. The 150,000 pairs of a vocabulary for a hundred languages set one in
/// seven.
const FILTER_BITS: usize = 1 << 20;

/// What is needed to cut texts for one vocabulary.
#[derive(Debug)]
pub(super) struct Words {
    /// The characters that are adjacent in some token.
    pairs: CharPairs,
    bounds: Bounds,
    /// The longest text for which no sum of scores is rounded, in bytes.
    max_len: usize,
}

/// Buffers, and the cache of segments.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) cache: WordCache,
    queue: SegmentQueue,
    lattice: Lattice,
    /// The segment that is searched, normalized, and its ids.
    segment: Vec<u8>,
    ids: Vec<TokenId>,
    /// Whether the last token was an unknown one.
    after_unknown: bool,
    tracer: Tracer,
}

/// Segments whose look-ups are under way.
#[derive(Debug)]
struct SegmentQueue {
    /// Each with its start in the text.
    segments: [(Probe, u32); QUEUE_LEN],
    len: usize,
}

impl Default for SegmentQueue {
    fn default() -> Self {
        Self { segments: [Default::default(); QUEUE_LEN], len: 0 }
    }
}

impl Words {
    /// `None` if a cut could change the tokens of a text. `tokens` are all that are searched, with their scores; none
    /// crosses the start of a word, and all scores are finite.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = (&'a [u8], f32)> + Clone,
        unknown_score: f32,
        normalizer: &UnigramNormalizer,
    ) -> Option<Self> {
        normalizer.characters().filter(|_| normalizer.normalizes_words_alone())?;
        let pairs = adjacent_chars(tokens.clone().map(|token| token.0))?;

        // The best path scores no less than one token per character, and no more than the highest score for each.
        let (mut lowest_bit, mut per_char, mut highest) = (lowest_bit(unknown_score), unknown_score.abs(), 0f32);
        for (text, score) in tokens.clone() {
            lowest_bit = lowest_bit.min(self::lowest_bit(score));
            highest = highest.max(score.abs());
            let is_char = text.first().is_some_and(|&first| text.len() == utf8::sequence_len(first));
            if is_char || score > 0.0 {
                per_char = per_char.max(score.abs());
            }
        }
        let max_sum = 2f64.powi(lowest_bit + 53) - Bounds::MAX_LEN as f64 * 2.0 * f64::from(highest);
        let num_chars = max_sum / f64::from(per_char) - 1.0;
        let max_len = (num_chars / normalizer.max_expansion() as f64) as usize;

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

/// The pairs of adjacent characters in tokens, if all tokens are UTF-8.
fn adjacent_chars<'a>(mut tokens: impl Iterator<Item = &'a [u8]>) -> Option<CharPairs> {
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

/// The exponent of the lowest bit that is set in a finite number; a high one for zero, which has no such bit.
fn lowest_bit(score: f32) -> i32 {
    let bits = score.to_bits() & !(1 << 31);
    let (exponent, fraction) = ((bits >> 23) as i32, bits & 0x7F_FFFF);
    let (exponent, significand) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | 1 << 23) };
    if significand == 0 { 200 } else { exponent - 150 + significand.trailing_zeros() as i32 }
}

/// One text on its way to tokens.
pub(super) struct Pass<'a, S> {
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) candidates: &'a Candidates,
    pub(super) normalizer: &'a UnigramNormalizer,
    pub(super) characters: &'a KeyCharacters,
    pub(super) words: &'a Words,
    pub(super) text: &'a [u8],
    /// Where the text starts in the whole input.
    pub(super) offset: usize,
    /// Whether the text continues an earlier one: no space is put before it.
    pub(super) continues: bool,
    pub(super) scratch: &'a mut Scratch,
    pub(super) sink: &'a mut S,
}

impl<S: Sink> Pass<'_, S> {
    /// Pushes the tokens of the text, which is UTF-8 and not longer than [`Words::max_len`].
    #[inline]
    pub(super) fn encode(&mut self, normalized: &mut Rewritten<'_>) {
        self.scratch.after_unknown = false;
        self.scratch.tracer = Tracer::new(self.offset);
        let text = self.text;
        let mut at = 0;
        let mut buffer = [b' '; BLOCK_LEN + KEY_LEN];
        while at < text.len() {
            let block = padded(&text[at..], &mut buffer);
            at = self.encode_block(at, block, normalized);
        }
        self.drain(Source::input(text));
        self.scratch.tracer.push_unknown(self.candidates.unknown, self.sink);
    }

    /// Encodes the segments that start in the block at `start`, which is a cut or a space, except a later one that may
    /// reach past the block. Returns where to go on. `block` is padded with spaces past the end of the text.
    #[inline(always)]
    fn encode_block(
        &mut self,
        start: usize,
        block: &[u8; BLOCK_LEN + KEY_LEN],
        normalized: &mut Rewritten<'_>,
    ) -> usize {
        let Some(bytes) = block.first_chunk() else { return self.text.len() };
        let WordClasses { letter, digit, space, other } = WordClasses::new(bytes);
        let is_space_before = start.checked_sub(1).map_or(!self.continues, |before| is_space(self.text[before]));
        let after_space = space << 1 | u64::from(is_space_before);
        let mut starts = !space & (after_space | 1);

        // Adjacent ASCII characters that are neither spaces, nor both letters, nor both digits.
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
            // The first segment that is long, has other characters, or may reach past the block.
            let mut irregular = None;
            while starts != 0 {
                let at = starts.trailing_zeros() as usize;
                // The highest bit is set for a segment that does not end in the block.
                let segment_len = (ends >> at >> 1 | 1 << 63).trailing_zeros() as usize + 1;
                let Some(bytes) = block[at..].first_chunk() else { break };
                if (at + segment_len > limit) | (segment_len > MAX_LEN) {
                    irregular = Some((at, (at + segment_len).min(BLOCK_LEN)));
                    break;
                }
                let key = Key::of(bytes, segment_len).marked(after_space >> at & 1 != 0);
                self.scratch.enqueue(key, start + at);
                starts &= starts - 1;
            }
            if self.scratch.queue.len >= BLOCK_LEN {
                self.drain(Source::input(self.text));
            }

            let Some((at, end)) = irregular else { return start + BLOCK_LEN };
            let is_other = first_other < end;
            if end == BLOCK_LEN && at > 0 && !is_other {
                return start + at;
            }
            let end = if is_other || end == BLOCK_LEN { self.text.len() } else { start + end };
            let end = self.encode_unspaced(start + at, end, after_space >> at & 1 != 0, normalized) - start;
            if end >= BLOCK_LEN {
                return start + end;
            }
            starts &= u64::MAX << end;
            other &= u64::MAX << end;
        }
    }

    /// Encodes the segments of a stretch of text that starts at a cut and ends at `end` or before a space. Returns
    /// where it ends.
    fn encode_unspaced(
        &mut self,
        mut start: usize,
        end: usize,
        mut is_after_space: bool,
        normalized: &mut Rewritten<'_>,
    ) -> usize {
        let text = self.text;
        let mut at = start;
        let (mut before, mut ticker) = (None, Ticker::default());
        let mut next = utf8::decode_valid(text, at);
        while let Some((character, len)) = next
            && at != end
            && !is_space_character(character)
        {
            ticker.tick();
            next = utf8::decode_valid(text, at + len);
            if !self.characters.keeps(character, next.map(|next| next.0)) {
                start = self.encode_changed(start, at, is_after_space, normalized);
                is_after_space = false;
                at = start;
                before = None;
                next = utf8::decode_valid(text, at);
                continue;
            }
            if before.is_some_and(|before| !self.words.pairs.meet(before, character)) {
                self.encode_segment(Source::input(text), start, at, is_after_space);
                start = at;
                is_after_space = false;
            }
            before = Some(character);
            at += len;
        }
        if start < at {
            self.encode_segment(Source::input(text), start, at, is_after_space);
        }
        at
    }

    /// Encodes the text from the cut at `start` to the first cut after the character at `at`, the first one that the
    /// normalizer changes. Returns where that is.
    #[inline(never)]
    fn encode_changed(
        &mut self,
        start: usize,
        at: usize,
        is_after_space: bool,
        normalized: &mut Rewritten<'_>,
    ) -> usize {
        self.drain(Source::input(self.text));
        let end = self.next_cut(at);
        // After an escaped space in the input itself, a word need not start at a cut.
        if memchr::memmem::find(&self.text[at..end], ESCAPED_SPACE).is_some() {
            normalized.reset(self.offset + start, S::SPANS);
            self.normalizer.normalize(&self.text[start..], !is_after_space, normalized);
            let source = Source::normalized(normalized, is_after_space);
            let mut at = 0;
            while at < source.text.len() {
                let start = at;
                at += word_len(&source.text[start..], ESCAPED_SPACE);
                self.search(source, start, at, false, None);
            }
            return self.text.len();
        }

        normalized.reset(self.offset + start, S::SPANS);
        self.normalizer.normalize(&self.text[start..end], !is_after_space, normalized);
        let len = normalized.text.len();
        // A key reads all of its bytes, past the end too.
        normalized.push(&[0; KEY_LEN], 0..0);
        self.encode_normalized(Source::normalized(normalized, is_after_space), len);
        if S::SPANS && len > 0 {
            self.scratch.tracer.covered = normalized.span(len - 1..len).end;
        }
        end
    }

    /// The first cut after the character at `at`, which changes: between two characters that do not, or else a space or
    /// the end of the text.
    fn next_cut(&self, mut at: usize) -> usize {
        let (text, mut ticker) = (self.text, Ticker::default());
        loop {
            at = self.normalizer.chunk_end(text, at);
            let mut before = None;
            let mut next = utf8::decode_valid(text, at);
            loop {
                ticker.tick();
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

    /// Encodes the first `len` bytes of a normalized text.
    fn encode_normalized(&mut self, source: Source<'_>, len: usize) {
        let text = source.text;
        let mut is_after_space = false;
        let mut start = 0;
        let mut at = 0;
        let (mut before, mut ticker) = (None, Ticker::default());
        while at < len
            && let Some((character, char_len)) = utf8::decode_valid(text, at)
        {
            ticker.tick();
            if before.is_some_and(|before| !self.words.pairs.meet(before, character)) {
                self.encode_segment(source, start, at, is_after_space);
                start = at;
                is_after_space = false;
            }
            before = Some(character);
            at += char_len;
            if character == ESCAPED_SPACE_CODE_POINT && at == start + char_len {
                // A normalized text has an escaped space before every word, and nowhere else.
                start = at;
                is_after_space = true;
                before = None;
            }
        }
        if start < len {
            self.encode_segment(source, start, len, is_after_space);
        }
        self.drain(source);
    }

    /// Starts to look up a segment if it is short, otherwise pushes its tokens.
    #[inline(always)]
    fn encode_segment(&mut self, source: Source<'_>, start: usize, end: usize, is_after_space: bool) {
        match source.text[start..].first_chunk().filter(|_| end - start <= MAX_LEN) {
            Some(bytes) => {
                self.scratch.enqueue(Key::of(bytes, end - start).marked(is_after_space), start);
                if self.scratch.queue.len >= BLOCK_LEN {
                    self.drain(source);
                }
            }
            None => self.encode_rare_segment(source, start, end, is_after_space),
        }
    }

    /// The same for a segment that is long or near the end of the text.
    #[inline(never)]
    fn encode_rare_segment(&mut self, source: Source<'_>, start: usize, end: usize, is_after_space: bool) {
        self.drain(source);
        let segment = &source.text[start..end];
        let mut bytes = [0; KEY_LEN];
        match bytes.get_mut(..segment.len()).filter(|_| segment.len() <= MAX_LEN) {
            Some(prefix) => {
                prefix.copy_from_slice(segment);
                self.scratch.enqueue(Key::of(&bytes, segment.len()).marked(is_after_space), start);
            }
            None => self.search(source, start, end, is_after_space, None),
        }
    }

    /// Pushes the tokens of all queued segments.
    #[inline(never)]
    fn drain(&mut self, source: Source<'_>) {
        interrupt::check();
        for at in 0..self.scratch.queue.len {
            let (probe, start) = self.scratch.queue.segments[at % QUEUE_LEN];
            let (start, is_after_space) = (start as usize, probe.key.is_marked());
            let end = start + probe.key.word_len();
            if self.push_cached(source, start, end, is_after_space, probe) {
                self.scratch.after_unknown = false;
            } else {
                self.search(source, start, end, is_after_space, Some(probe));
            }
        }
        self.scratch.queue.len = 0;
    }

    /// Finds and pushes the tokens of a segment, and caches them if it has a probe.
    #[inline(never)]
    fn search(&mut self, source: Source<'_>, start: usize, end: usize, is_after_space: bool, probe: Option<Probe>) {
        let Scratch { cache, lattice, segment, ids, after_unknown, tracer, .. } = &mut *self.scratch;
        segment.clear();
        if is_after_space {
            segment.extend_from_slice(ESCAPED_SPACE);
        }
        append_text(segment, &source.text[start..end]);

        ids.clear();
        let unknown = self.candidates.unknown;
        let mut has_unknown = false;
        let (mut at, place) = (0, tracer.place(source, start, end, is_after_space));
        self.candidates.best_path(self.vocabulary, segment, 0.0, Some(&self.words.bounds), lattice, |id, len| {
            let is_unknown = id == unknown;
            has_unknown |= is_unknown;
            if S::SPANS {
                tracer.push(id, unknown, place.span(at, at + len), self.sink);
                at += len;
            } else if !(is_unknown && *after_unknown) {
                self.sink.push(id, 0..0);
            }
            *after_unknown = is_unknown;
            if probe.is_some() {
                ids.push(id);
            }
        });
        if let Some(probe) = probe.filter(|_| !has_unknown) {
            cache.insert(probe, ids);
        }
    }

    /// Pushes the tokens of a segment, if they are cached.
    #[inline(always)]
    fn push_cached(
        &mut self,
        source: Source<'_>,
        start: usize,
        end: usize,
        is_after_space: bool,
        probe: Probe,
    ) -> bool {
        if !S::SPANS {
            return self.scratch.cache.push(probe, self.sink);
        }
        let Scratch { cache, ids, tracer, .. } = &mut *self.scratch;
        ids.clear();
        if !cache.push(probe, ids) {
            return false;
        }
        tracer.push_unknown(self.candidates.unknown, self.sink);
        let (mut at, place) = (0, tracer.place(source, start, end, is_after_space));
        for &id in &*ids {
            let end = at + self.vocabulary.text(id).len();
            self.sink.push(id, place.span(at, end));
            at = end;
        }
        true
    }
}

impl Scratch {
    /// Starts to look up the segment at `start`.
    #[inline(always)]
    fn enqueue(&mut self, key: Key, start: usize) {
        let SegmentQueue { segments, len } = &mut self.queue;
        segments[*len % QUEUE_LEN] = (self.cache.probe(key), start as u32);
        *len += 1;
    }
}

/// Length of the first word of a normalized text: any spaces, and everything after them up to the next one.
pub(super) fn word_len(text: &[u8], space: &[u8]) -> usize {
    let mut len = 0;
    let (mut in_word, mut ticker) = (false, Ticker::default());
    while len < text.len() {
        ticker.tick();
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
