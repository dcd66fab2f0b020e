//! Unigram by segments: a text is cut at positions that no token crosses, and the ids of each segment are cached.
//!
//! 1. The best path through a text passes through every position that no token crosses ([`Cuts`]), and between two such
//!    positions it is the best path from one to the other. So segments are encoded independently.
//! 2. Cuts are found in the input itself, in blocks of 64 bytes: before words, and between two characters that are
//!    adjacent in no token. In ASCII text, two letters or two digits are taken to be adjacent, which saves most
//!    look-ups.
//! 3. Both require that the normalizer leaves the characters around a cut alone. If it changes a character, the text
//!    from the last cut before it to the first one after it is normalized and searched word by word.
//! 4. Short segments are looked up in a [`WordCache`], by their bytes and whether a space is before them. Only those
//!    that are not cached are searched.
//! 5. Adjacent unknown tokens of two segments become one. Segments with unknown tokens are never cached, so the search
//!    sees all of them.
//!
//! If the input itself has an escaped space, a token of several spaces can cross the start of the next word. Then this
//! is done with the whole rest of the text.
//!
//! Time: O(1) for a cached segment, as [`super::lattice`] for any other; at worst, no segment of a text repeats.
//! Space: the cache.
//!
//! Deviations: none.

use std::ops::Range;

use super::cuts::Cuts;
use super::{Joined, Unigram, UnigramScratch, word_len};
use crate::encode::model::cache::Probe;
use crate::encode::model::{Fragment, ModelScratch};
use crate::encode::normalizer::charsmap::KeyCharacters;
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::normalizer::unigram::WHITESPACE;
use crate::encode::sink::Sink;
use crate::lookup::key::{KEY_LEN, Key, MAX_LEN};
use crate::text::scan::masks::{Classified, WordClasses};
use crate::text::scan::{BLOCK as BLOCK_LEN, padded};
use crate::text::unicode::utf8;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::work::interrupt::{self, Ticker};
use crate::work::memory::append_text;

/// State for the spans of one text. A segment of the input is its own normal form, except for the space before it, which
/// stands for all whitespace since the word before. So the spans of its tokens follow from their lengths.
#[derive(Debug, Default)]
pub(super) struct SpanTracker {
    /// Where the text starts in the whole input.
    offset: usize,
    /// The end of the latest word in the whole input: the space before the next word starts here.
    covered: usize,
    joined: Joined,
}

impl SpanTracker {
    /// The position of the next segment.
    #[inline(always)]
    fn place(&mut self, start: usize, end: usize, is_after_space: bool) -> SegmentPlace {
        let covered = std::mem::replace(&mut self.covered, self.offset + end);
        let space_len = if is_after_space { ESCAPED_SPACE.len() } else { 0 };
        SegmentPlace { start: self.offset + start, covered, space_len }
    }
}

/// The position of a segment in the whole input.
#[derive(Clone, Copy)]
struct SegmentPlace {
    start: usize,
    /// The end of the words before it: where its space starts.
    covered: usize,
    /// The length of the escaped space before it.
    space_len: usize,
}

impl SegmentPlace {
    /// The span in the whole input of a range of the segment, which starts with its space.
    #[inline(always)]
    fn span(&self, from: usize, to: usize) -> Range<usize> {
        let start = if from < self.space_len { self.covered } else { self.start + from - self.space_len };
        start..self.start + to.saturating_sub(self.space_len)
    }
}

/// The encoding of one text.
pub(super) struct Pass<'a, S> {
    pub(super) model: &'a Unigram,
    pub(super) characters: &'a KeyCharacters,
    pub(super) cuts: &'a Cuts,
    pub(super) vocabulary: &'a Vocabulary,
    pub(super) fragment: Fragment<'a>,
    pub(super) scratch: &'a mut ModelScratch,
    pub(super) sink: &'a mut S,
}

impl<S: Sink> Pass<'_, S> {
    /// Pushes the tokens of the text, which is UTF-8 and not longer than [`Cuts::max_len`].
    #[inline]
    pub(super) fn encode(&mut self) {
        let Fragment { text, start: offset, .. } = self.fragment;
        self.scratch.unigram.tracer = SpanTracker { offset, covered: offset, joined: Joined::default() };
        let mut at = 0;
        let mut buffer = [b' '; BLOCK_LEN + KEY_LEN];
        while at < text.len() {
            let block = padded(&text[at..], b' ', &mut buffer);
            at = self.encode_block(at, block);
        }
        self.drain();
        self.scratch.unigram.tracer.joined.flush(self.model.candidates.unknown, self.sink);
    }

    /// Encodes the segments that start in the block at `start`, which is a cut or a space. A later segment that may
    /// reach past the block is left to the next block. Returns where the next block starts. `block` is padded with
    /// spaces past the end of the text.
    #[inline(always)]
    fn encode_block(&mut self, start: usize, block: &[u8; BLOCK_LEN + KEY_LEN]) -> usize {
        let Some(bytes) = block.first_chunk() else { return self.fragment.text.len() };
        let WordClasses { letter, digit, space, other } = WordClasses::new(bytes);
        let is_space_before =
            start.checked_sub(1).map_or(!self.fragment.continues, |before| is_space(self.fragment.text[before]));
        let after_space = space << 1 | u64::from(is_space_before);
        let mut starts = !space & (after_space | 1);

        // Adjacent ASCII characters that are neither spaces, nor both letters, nor both digits.
        let ascii = !(space | other);
        let mut pairs = ascii & ascii << 1 & !(letter & letter << 1) & !(digit & digit << 1);
        while pairs != 0 {
            let at = pairs.trailing_zeros() as usize;
            let meet = self.cuts.pairs.meet(block[at - 1].into(), block[at].into());
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
                self.queue(key, start + at);
                starts &= starts - 1;
            }
            if self.scratch.probes.len() >= BLOCK_LEN {
                self.drain();
            }

            let Some((at, end)) = irregular else { return start + BLOCK_LEN };
            let is_other = first_other < end;
            if end == BLOCK_LEN && at > 0 && !is_other {
                return start + at;
            }
            let end = if is_other || end == BLOCK_LEN { self.fragment.text.len() } else { start + end };
            let end = self.encode_unspaced(start + at, end, after_space >> at & 1 != 0) - start;
            if end >= BLOCK_LEN {
                return start + end;
            }
            starts &= u64::MAX << end;
            other &= u64::MAX << end;
        }
    }

    /// Encodes the segments of a stretch of text that starts at a cut and ends at `end` or before a space. Returns
    /// where it ends.
    fn encode_unspaced(&mut self, mut start: usize, end: usize, mut is_after_space: bool) -> usize {
        let text = self.fragment.text;
        let mut at = start;
        let mut before = None;
        let mut ticker = Ticker::default();
        let mut next = utf8::decode_valid(text, at);
        while let Some((character, len)) = next
            && at != end
            && !is_space_character(character)
        {
            ticker.tick();
            next = utf8::decode_valid(text, at + len);
            if !self.characters.keeps(character, next.map(|next| next.0)) {
                let mut normalized = std::mem::take(&mut self.scratch.rewritten);
                start = self.encode_changed(start, at, is_after_space, &mut normalized);
                self.scratch.rewritten = normalized;
                is_after_space = false;
                at = start;
                before = None;
                next = utf8::decode_valid(text, at);
                continue;
            }
            if before.is_some_and(|before| !self.cuts.pairs.meet(before, character)) {
                self.encode_segment(start, at, is_after_space);
                start = at;
                is_after_space = false;
            }
            before = Some(character);
            at += len;
        }
        if start < at {
            self.encode_segment(start, at, is_after_space);
        }
        at
    }

    /// Encodes the text from the cut at `start` to the first cut after the character at `at`, which is the first one
    /// that the normalizer changes. Returns where that cut is.
    #[inline(never)]
    fn encode_changed(
        &mut self,
        start: usize,
        at: usize,
        is_after_space: bool,
        normalized: &mut Rewritten<'_>,
    ) -> usize {
        self.drain();
        let mut end = self.next_cut(at);
        // After an escaped space in the input itself, a word need not start at a cut.
        if memchr::memmem::find(&self.fragment.text[at..end], ESCAPED_SPACE).is_some() {
            end = self.fragment.text.len();
        }
        normalized.reset(self.fragment.start + start, S::SPANS);
        self.model.normalizer.normalize(&self.fragment.text[start..end], !is_after_space, normalized);
        let covered = self.scratch.unigram.tracer.covered;
        let len = normalized.text.len();
        let mut at = 0;
        while at < len {
            let start = at;
            at += word_len(&normalized.text[start..]);
            self.search(&normalized.text[start..at], false, None, |from, to| {
                let span = normalized.span(start + from..start + to);
                // The first space also stands for those before it in the input.
                if start + from == 0 && is_after_space { covered..span.end } else { span }
            });
        }
        if S::SPANS && len > 0 {
            self.scratch.unigram.tracer.covered = normalized.span(len - 1..len).end;
        }
        end
    }

    /// The first cut after the character at `at`, which the normalizer changes: between two characters that it keeps,
    /// or else at a space or the end of the text.
    fn next_cut(&self, mut at: usize) -> usize {
        let text = self.fragment.text;
        let mut ticker = Ticker::default();
        loop {
            at = self.model.normalizer.chunk_end(text, at);
            let mut before = None;
            let mut next = utf8::decode_valid(text, at);
            loop {
                ticker.tick();
                let Some((character, len)) = next.filter(|next| !is_space_character(next.0)) else { return at };
                next = utf8::decode_valid(text, at + len);
                if !self.characters.keeps(character, next.map(|next| next.0)) {
                    break;
                }
                if before.is_some_and(|before| !self.cuts.pairs.meet(before, character)) {
                    return at;
                }
                before = Some(character);
                at += len;
            }
        }
    }

    /// Starts the look-up of a segment if it is short; otherwise pushes its tokens.
    #[inline(always)]
    fn encode_segment(&mut self, start: usize, end: usize, is_after_space: bool) {
        match Key::new(self.fragment.text, start, end) {
            Some(key) => {
                self.queue(key.marked(is_after_space), start);
                if self.scratch.probes.len() >= BLOCK_LEN {
                    self.drain();
                }
            }
            None => {
                self.drain();
                self.search_input(start, end, is_after_space, None);
            }
        }
    }

    /// Starts the look-up of the segment at `start`.
    #[inline(always)]
    fn queue(&mut self, key: Key, start: usize) {
        self.scratch.probes.push(&self.scratch.cache, key, start);
    }

    /// Pushes the tokens of all queued segments.
    #[inline(never)]
    fn drain(&mut self) {
        interrupt::check();
        for at in 0..self.scratch.probes.len() {
            let (probe, start) = self.scratch.probes.get(at);
            let end = start + probe.key.word_len();
            let is_after_space = probe.key.is_marked();
            if self.push_cached(start, end, is_after_space, probe) {
                self.scratch.unigram.after_unknown = false;
            } else {
                self.search_input(start, end, is_after_space, Some(probe));
            }
        }
        self.scratch.probes.clear();
    }

    /// Finds and pushes the tokens of a segment of the input, and caches them if it has a probe.
    #[inline(never)]
    fn search_input(&mut self, start: usize, end: usize, is_after_space: bool, probe: Option<Probe>) {
        let place = self.scratch.unigram.tracer.place(start, end, is_after_space);
        self.search(&self.fragment.text[start..end], is_after_space, probe, |from, to| place.span(from, to));
    }

    /// The same for any segment, given the span of each range of it.
    #[inline(always)]
    fn search(
        &mut self,
        text: &[u8],
        is_after_space: bool,
        probe: Option<Probe>,
        span: impl Fn(usize, usize) -> Range<usize>,
    ) {
        let UnigramScratch { lattice, segment, ids, after_unknown, unknown_score, tracer, .. } =
            &mut self.scratch.unigram;
        segment.clear();
        if is_after_space {
            segment.extend_from_slice(ESCAPED_SPACE);
        }
        append_text(segment, text);

        ids.clear();
        let unknown = self.model.candidates.unknown;
        let mut has_unknown = false;
        let mut known_score = 0.0;
        let mut at = 0;
        let score = self.model.candidates.best_path(
            self.vocabulary,
            segment,
            0.0,
            Some(&self.cuts.bounds),
            lattice,
            |id, len| {
                let is_unknown = id == unknown;
                has_unknown |= is_unknown;
                known_score += if is_unknown { 0.0 } else { self.model.candidates.score(id) };
                if S::SPANS {
                    tracer.joined.push(id, unknown, span(at, at + len), self.sink);
                    at += len;
                } else if !(is_unknown && *after_unknown) {
                    self.sink.push(id, 0..0);
                }
                *after_unknown = is_unknown;
                if probe.is_some() {
                    ids.push(id);
                }
            },
        );
        *unknown_score += score - known_score;
        if let Some(probe) = probe.filter(|_| !has_unknown) {
            self.scratch.cache.insert(probe, &[], ids);
        }
    }

    /// Pushes the tokens of a segment, if they are cached.
    #[inline(always)]
    fn push_cached(&mut self, start: usize, end: usize, is_after_space: bool, probe: Probe) -> bool {
        if !S::SPANS {
            return self.scratch.cache.push(probe, &[], self.sink);
        }
        let ModelScratch { cache, unigram: UnigramScratch { ids, tracer, .. }, .. } = &mut *self.scratch;
        let few = cache.few(probe);
        let ids = match &few {
            Some((few, len)) => &few[..*len],
            None => {
                ids.clear();
                if !cache.push(probe, &[], ids) {
                    return false;
                }
                ids
            }
        };
        tracer.joined.flush(self.model.candidates.unknown, self.sink);
        let place = tracer.place(start, end, is_after_space);
        if let Some((&last, others)) = ids.split_last() {
            let mut at = 0;
            for &id in others {
                let end = at + self.vocabulary.text(id).len();
                self.sink.push(id, place.span(at, end));
                at = end;
            }
            self.sink.push(last, place.span(at, place.space_len + end - start));
        }
        true
    }
}

pub(super) fn is_space(byte: u8) -> bool {
    WHITESPACE.contains(&byte)
}

#[inline(always)]
fn is_space_character(character: u32) -> bool {
    character <= b' '.into() && is_space(character as u8)
}
