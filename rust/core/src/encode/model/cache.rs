//! A bounded cache from words to ids: an open-addressing table whose slots hold the words and their ids.
//!
//! A slot has 32 bytes: a word of up to 15 bytes and up to three ids. Two slots fill a cache line, so most look-ups
//! read one line, which [`WordCache::probe`] prefetches long before it is used. Longer words and longer lists of ids
//! are in a ring of records, where a new record overwrites the oldest. The table grows when it is half full, up to a
//! limit; after that, a new word evicts one of the two words of its line.
//!
//! Two queues overlap the look-ups of several words. [`queue`] takes contiguous words of any length, stores only where
//! each one ends, and collects their ids without a branch per word: for pieces of BPE, and for segments that merge.
//! [`probes`] takes short words with gaps between them, whose keys are made from the current block: for WordPiece and
//! Unigram, which also need spans.
//!
//! The table and the ring each take half of the limit, whatever the text; nothing is allocated before the first word.
//! O(1) for a short word, O(length) for a long one.

pub(super) mod probes;
pub(super) mod queue;

use crate::encode::sink::Sink;
use crate::lookup::hash::Seed;
use crate::lookup::key::Key;
use crate::lookup::prefetch::prefetch;
use crate::token::TokenId;
use crate::work::large_vec::LargeVec;
use crate::work::memory::out_of_memory;

/// The longest word that is cached, in bytes.
const MAX_WORD: usize = 512;
/// Ids that fit in a slot.
pub(crate) const INLINE: usize = 3;
/// Lines of the first table, a power of two: 4 KiB, so that a short text touches few pages.
const MIN_LINES: usize = 1 << 6;
/// A table with fewer lines grows by [`FAST_GROWTH`], a larger one by two. So few words move on the way to 1 MiB.
const MANY_LINES: usize = 1 << 14;
const FAST_GROWTH: usize = 16;
/// The default limit of a cache's memory, in bytes.
pub(crate) const DEFAULT_LIMIT: usize = 1 << 26;
/// The least memory worth using for a cache, in bytes. Half of it has room for any record.
const MIN_LIMIT: usize = 1 << 14;
/// A word is in one of this many lines: its window, which starts at the line of its hash.
const WINDOW: usize = 4;
/// Bytes of an id in a record.
const ID_LEN: usize = size_of::<TokenId>();
/// Bytes of a line.
const LINE_LEN: usize = size_of::<Line>();

/// A word and its ids. A free slot has the default key, which no word has.
#[derive(Debug, Clone, Copy, Default)]
struct WordSlot {
    key: Key,
    /// The ids; if there are more than fit, or the word is long, the place of its record, low half first.
    ids: [TokenId; INLINE],
    num_ids: u32,
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line([WordSlot; 2]);

/// A look-up under way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    pub key: Key,
    hash: u64,
}

/// A cache from words to ids. It takes no words until [`WordCache::set_limit`] is called.
#[derive(Debug, Default)]
pub(crate) struct WordCache {
    seed: Seed,
    lines: LargeVec<Line>,
    /// The most lines: a power of two, or 0 for no cache.
    max_lines: usize,
    num_words: usize,
    /// How many words were evicted.
    num_evicted: usize,
    records: Records,
}

/// The latest records, in a ring. A record has the ids of a word, and before them its bytes if the word is long.
#[derive(Debug, Default)]
struct Records {
    ring: LargeVec<u8>,
    /// The most bytes in the ring, a power of two.
    room: usize,
    /// Where the next record starts, in bytes from the start of the very first one.
    end: u64,
}

impl WordCache {
    /// Sets the most memory that the cache may take, in bytes. A cache that takes more, or whose ring has wrapped
    /// around, is emptied.
    pub(crate) fn set_limit(&mut self, bytes: usize) {
        let max_lines = bytes.checked_ilog2().filter(|_| bytes >= MIN_LIMIT).map_or(0, |log| (1 << log) / 2 / LINE_LEN);
        let room = max_lines * LINE_LEN;
        if self.lines.len() > max_lines || self.records.end > room.min(self.records.room) as u64 {
            (self.lines, self.num_words, self.records) = (LargeVec::default(), 0, Records::default());
        }
        (self.max_lines, self.records.room) = (max_lines, room);
    }

    /// The memory that has been written to, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.lines.len() * LINE_LEN + self.records.ring.len()
    }

    /// Starts the look-ups of contiguous words in `text`, the first one at byte `start`. Not inlined, so that all its
    /// variables fit in registers.
    #[inline(never)]
    pub(crate) fn probe_all(&self, text: &[u8], mut start: usize, ends: &[usize], probes: &mut [Probe]) {
        for (&end, probe) in ends.iter().zip(probes) {
            match Key::new(text, start, end) {
                Some(key) => *probe = self.probe(key),
                None => *probe = self.probe_long(&text[start..end]),
            }
            start = end;
        }
    }

    /// Starts the look-up of a short word.
    #[inline(always)]
    pub(crate) fn probe(&self, key: Key) -> Probe {
        self.prefetched(Probe { key, hash: key.hash(self.seed) })
    }

    /// Starts to look up the segment `text[start..end]` of a word.
    #[inline(always)]
    pub(crate) fn probe_segment(&self, text: &[u8], start: usize, end: usize) -> Probe {
        match Key::new(text, start, end) {
            Some(key) => self.probe(key.marked(true)),
            None => {
                let probe = self.probe_long(&text[start..end]);
                Probe { key: probe.key.marked(true), ..probe }
            }
        }
    }

    #[inline(never)]
    fn probe_long(&self, word: &[u8]) -> Probe {
        // Words that are too long are never cached, so one key serves all of them.
        let hash = if word.len() <= MAX_WORD { self.seed.hash(word) } else { 0 };
        self.prefetched(Probe { key: Key::of_long(hash, 0, word.len()), hash })
    }

    #[inline(always)]
    fn prefetched(&self, probe: Probe) -> Probe {
        prefetch(&self.lines, self.place(probe.hash, 0));
        probe
    }

    /// The place of a line in a word's window. The word is in the first line that had room for it.
    #[inline(always)]
    fn place(&self, hash: u64, step: usize) -> usize {
        (hash as usize).wrapping_add(step) & self.lines.len().wrapping_sub(1)
    }

    /// The ids of a word and their number, if the word is in its first line and has few ids.
    #[inline(always)]
    pub(crate) fn few(&self, probe: Probe) -> Option<([TokenId; INLINE], usize)> {
        let slot = self.lines.get(self.place(probe.hash, 0))?.slot(probe.key);
        (slot.key.is(probe.key) && slot.is_inline()).then_some((slot.ids, slot.num_ids as usize))
    }

    /// The slot of a word.
    #[inline(always)]
    fn slot(&self, probe: Probe) -> Option<&WordSlot> {
        for step in 0..WINDOW {
            let line = self.lines.get(self.place(probe.hash, step))?;
            let slot = line.slot(probe.key);
            if slot.key.is(probe.key) {
                return Some(slot);
            }
            if line.0[1].key.is(Key::default()) {
                break;
            }
        }
        None
    }

    /// Pushes the ids of a word, if they are cached. A short word is in its probe, and may be left out.
    #[inline(always)]
    pub(crate) fn push<S: Sink>(&self, probe: Probe, word: &[u8], sink: &mut S) -> bool {
        self.slot(probe).is_some_and(|slot| self.push_slot(slot, word, sink))
    }

    #[inline(always)]
    fn push_slot<S: Sink>(&self, slot: &WordSlot, word: &[u8], sink: &mut S) -> bool {
        if slot.is_inline() {
            sink.push_all(&slot.ids[..slot.num_ids as usize % (INLINE + 1)]);
            return true;
        }
        let Some(ids) = self.records.get(slot, if slot.is_long() { word } else { &[] }) else { return false };
        ids.iter().for_each(|&id| sink.push(TokenId::from_le_bytes(id), 0..0));
        true
    }

    /// Makes room for this many more words, if the limit allows it. Returns whether the table may have words at all.
    pub(crate) fn reserve(&mut self, num_words: usize) -> bool {
        while self.num_words + num_words > self.lines.len() && self.lines.len() < self.max_lines {
            self.grow();
        }
        self.max_lines > 0
    }

    /// Gives a word, for which there is room, a place: with its only id, or without ids. Returns false if it has one
    /// already.
    #[inline(always)]
    pub(crate) fn claim(&mut self, probe: Probe, id: Option<TokenId>) -> bool {
        let num_ids = if id.is_some() { 1 } else { u32::MAX };
        self.put(probe.hash, WordSlot { key: probe.key, ids: [id.unwrap_or_default(), 0, 0], num_ids }, false)
    }

    /// Caches the ids of a word. A short word is in its probe, and may be left out.
    pub(crate) fn insert(&mut self, probe: Probe, word: &[u8], ids: &[TokenId]) {
        let is_too_long = probe.key.long().is_some_and(|(.., len)| len > MAX_WORD) || ids.len() > MAX_WORD;
        if !is_too_long && self.reserve(1) {
            let slot = self.filled(probe, word, ids);
            self.put(probe.hash, slot, true);
        }
    }

    /// The slot of a word with these ids.
    fn filled(&mut self, probe: Probe, word: &[u8], ids: &[TokenId]) -> WordSlot {
        let mut slot = WordSlot { key: probe.key, ids: [0; INLINE], num_ids: ids.len() as u32 };
        let is_long = slot.is_long();
        match slot.ids.get_mut(..ids.len()).filter(|_| !is_long) {
            Some(inline) => inline.copy_from_slice(ids),
            None => slot.set_place(self.records.append(if is_long { word } else { &[] }, ids)),
        }
        slot
    }

    /// Stores a slot in the window of its hash: in a free one, over another word, or over the one with the same key, if
    /// that is to be replaced. Returns whether the word is new.
    #[inline(always)]
    fn put(&mut self, hash: u64, slot: WordSlot, replace: bool) -> bool {
        for step in 0..WINDOW {
            let line = self.place(hash, step);
            for old in &mut self.lines[line].0 {
                let is_free = old.key.some().is_none();
                if is_free || old.key == slot.key {
                    if is_free || replace {
                        *old = slot;
                    }
                    self.num_words += usize::from(is_free);
                    return is_free;
                }
            }
        }
        let line = self.place(hash, 0);
        self.lines[line].0[self.num_evicted % 2] = slot;
        self.num_evicted += 1;
        true
    }

    /// Enlarges the table, if there is memory. The first line of a word's window stays, or moves to the new lines. Words
    /// move in the order of their lines, each as close to its first line as possible, so they leave no gap before another
    /// word.
    #[cold]
    fn grow(&mut self) {
        let num_old = self.lines.len();
        let factor = if num_old < MANY_LINES { FAST_GROWTH } else { 2 };
        let num_lines = (num_old * factor).max(MIN_LINES).min(self.max_lines);
        if !self.lines.grow(num_lines, self.max_lines, Line::default()) {
            self.max_lines = num_old;
            return;
        }
        self.num_words = 0;
        for at in 0..2 * num_old {
            let slot = std::mem::take(&mut self.lines[at / 2].0[at % 2]);
            if slot.key.some().is_some() {
                let hash = slot.key.long().map_or_else(|| slot.key.hash(self.seed), |(hash, ..)| hash);
                self.put(hash, slot, true);
            }
        }
    }
}

impl Line {
    /// The slot of a word, if the line has it. Which of the two it is would be an unpredictable branch, so there is
    /// none.
    #[inline(always)]
    fn slot(&self, key: Key) -> &WordSlot {
        &self.0[usize::from(!self.0[0].key.is(key))]
    }
}

impl WordSlot {
    /// Set in `num_ids` of a slot with a record.
    const RECORD: u32 = 1 << 31;

    #[inline(always)]
    fn is_inline(&self) -> bool {
        self.num_ids <= INLINE as u32
    }

    fn is_long(&self) -> bool {
        self.key.long().is_some()
    }

    fn set_place(&mut self, place: u64) {
        (self.ids[0], self.ids[1]) = (place as TokenId, (place >> 32) as TokenId);
        self.num_ids |= Self::RECORD;
    }

    fn place(&self) -> u64 {
        u64::from(self.ids[1] as u32) << 32 | u64::from(self.ids[0] as u32)
    }
}

impl Records {
    /// The index of a place in the ring.
    fn place(&self, place: u64) -> usize {
        place as usize & self.room.wrapping_sub(1)
    }

    /// Appends a record, and returns its place.
    fn append(&mut self, word: &[u8], ids: &[TokenId]) -> u64 {
        let len = word.len() + ID_LEN * ids.len();
        let mut start = self.place(self.end);
        if start + len > self.room {
            self.end += (self.room - start) as u64;
            start = 0;
        }
        let end = start + len;
        if !self.ring.grow(end, self.room, 0) {
            out_of_memory();
        }
        let (bytes, rest) = self.ring[start..end].split_at_mut(word.len());
        bytes.copy_from_slice(word);
        for (old, id) in rest.as_chunks_mut().0.iter_mut().zip(ids) {
            *old = id.to_le_bytes();
        }
        let place = self.end;
        self.end += len as u64;
        place
    }

    /// The ids in a slot's record, unless it was overwritten or belongs to another word.
    fn get(&self, slot: &WordSlot, word: &[u8]) -> Option<&[[u8; ID_LEN]]> {
        if self.end - slot.place() > self.room as u64 {
            return None;
        }
        let num_ids = (slot.num_ids & !WordSlot::RECORD) as usize;
        let (bytes, ids) = self.ring.get(self.place(slot.place())..)?.split_at_checked(word.len())?;
        if bytes == word { ids.as_chunks().0.get(..num_ids) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_LIMIT, MAX_WORD, MIN_LIMIT, Probe, WordCache};
    use crate::token::TokenId;

    fn cache() -> WordCache {
        let mut cache = WordCache::default();
        cache.set_limit(DEFAULT_LIMIT);
        cache
    }

    fn probe(cache: &WordCache, word: &[u8]) -> Probe {
        let mut probe = [Probe::default()];
        cache.probe_all(word, 0, &[word.len()], &mut probe);
        probe[0]
    }

    fn get(cache: &WordCache, word: &[u8]) -> Option<Vec<TokenId>> {
        let mut ids = Vec::new();
        cache.push(probe(cache, word), word, &mut ids).then_some(ids)
    }

    fn insert(cache: &mut WordCache, word: &[u8], ids: &[TokenId]) {
        cache.insert(probe(cache, word), word, ids);
    }

    #[test]
    fn the_limit_bounds_the_memory_and_no_word_is_mixed_up() {
        let mut cache = cache();
        for (round, limit) in [1 << 20, 1 << 22, 3 << 20, MIN_LIMIT, MIN_LIMIT - 1, 0, 1 << 24].into_iter().enumerate()
        {
            cache.set_limit(limit);
            assert!(cache.heap_bytes() <= limit);
            let mut num_found = 0;
            for number in 0..60_000 {
                let word = [&b"a long word with the number "[..], number.to_string().as_bytes()].concat();
                let ids = vec![number; (number as usize + round) % 9];
                insert(&mut cache, &word, &ids);
                assert_eq!(get(&cache, &word).is_some_and(|found| found == ids), limit >= MIN_LIMIT);
                let earlier = [&b"a long word with the number "[..], (number / 2).to_string().as_bytes()].concat();
                if let Some(found) = get(&cache, &earlier) {
                    assert!(found.iter().all(|&id| id == number / 2));
                    num_found += 1;
                }
            }
            assert!(cache.heap_bytes() <= limit);
            assert_eq!(num_found > 0, limit >= MIN_LIMIT);
            assert!(num_found > 59_000 || limit < 1 << 24);
        }
    }

    #[test]
    fn words_are_found_with_their_ids() {
        let text: Vec<u8> = (0..=u8::MAX).cycle().take(MAX_WORD + 1).collect();
        let mut cache = cache();
        for len in [1, 2, 8, 15, 16, 17, 100, MAX_WORD] {
            for (num_ids, start) in [0, 1, 3, 4, 9].into_iter().zip(0..(text.len() - len).min(5)) {
                let word = &text[start..start + len];
                let ids: Vec<TokenId> = (-1..num_ids - 1).collect();
                assert_eq!(get(&cache, word), None);
                insert(&mut cache, word, &ids);
                assert_eq!(get(&cache, word), Some(ids));
            }
        }
        insert(&mut cache, &text, &[1]);
        assert_eq!(get(&cache, &text), None);
    }

    #[test]
    fn a_zero_byte_is_not_a_free_slot() {
        let mut cache = cache();
        insert(&mut cache, b"a", &[1]);
        assert_eq!([&b"\0"[..], b"a\0"].map(|word| get(&cache, word)), [None, None]);
    }

    #[test]
    fn a_full_cache_forgets_some_words_and_mixes_up_none() {
        const NUM_WORDS: u32 = 3 << 20;
        let mut cache = cache();
        let word = |number: u32| (number.to_le_bytes(), [&number.to_le_bytes()[..], &[b'x'; 30]].concat());
        let mut num_found = 0;
        for number in 0..NUM_WORDS {
            let (short, long) = word(number);
            insert(&mut cache, &short, &[number as TokenId; 2]);
            insert(&mut cache, &long, &[number as TokenId; 5]);
            let (short, long) = word(number / 8 * 7);
            let found = [get(&cache, &short), get(&cache, &long)].map(|ids| ids.unwrap_or_default());
            assert!(found.iter().flatten().all(|&id| id == (number / 8 * 7) as TokenId));
            assert!(found[0].len() % 2 == 0 && found[1].len() % 5 == 0);
            num_found += found.iter().filter(|ids| !ids.is_empty()).count();
        }
        // The last record before the ring starts over may leave room.
        assert!((DEFAULT_LIMIT - 64..=DEFAULT_LIMIT).contains(&cache.heap_bytes()));
        assert!(num_found > NUM_WORDS as usize / 2 && cache.num_evicted > 0);
        // Most of the latest words are still there.
        let latest = (NUM_WORDS - 1000..NUM_WORDS).filter(|&number| get(&cache, &word(number).0).is_some());
        assert!(latest.count() > 900);
    }
}
