//! What words became: a bounded table from bytes to ids, so that a word that comes again costs one probe.
//!
//! Words of up to 15 bytes have their key, and up to three ids, inside a slot of 32 bytes, so that a hit touches one
//! cache line. Longer words and longer lists of ids lie in two arrays behind their slots. The tables are open
//! addressing and double as they fill; when one has its full size, or an array is full, everything is forgotten.
//! 16 MiB at most per scratch space, whatever the text; nothing is allocated before the first word.

use crate::hash::Seed;
use crate::sink::{Sink, TokenId};

/// The longest word with a [`Key`], in bytes.
const SHORT: usize = 15;
/// The longest word that is kept, in bytes.
const LONG: usize = 512;
/// Ids that fit into a slot.
const INLINE: usize = 3;
/// Slots of a new table, and of one that has its full size; powers of two.
const FEWEST_SLOTS: usize = 1 << 10;
const MOST_SLOTS: usize = 1 << 18;
/// Bytes of long words, and ids beyond [`INLINE`], that are kept.
const ROOM: usize = 1 << 20;

/// A short word in the form in which it is looked up: its bytes, then its length in the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Key(u64, u64);

/// A short word and its ids. A free slot has the key of no word.
#[derive(Debug, Clone, Copy, Default)]
struct Short {
    key: Key,
    /// The ids, or where they are in [`WordCache::ids`].
    ids: [TokenId; INLINE],
    count: u32,
}

/// A long word: where its bytes and its ids are. A free slot has no bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Long {
    hash: u64,
    bytes: u32,
    ids: u32,
    len: u16,
    count: u16,
}

/// A cache from words to ids.
#[derive(Debug, Default)]
pub(crate) struct WordCache {
    seed: Seed,
    short: Vec<Short>,
    shorts: usize,
    long: Vec<Long>,
    longs: usize,
    bytes: Vec<u8>,
    ids: Vec<TokenId>,
    /// The ids of a new word on their way into the table.
    new: Vec<TokenId>,
}

impl Key {
    /// The key of `text[begin..end]`, if that is short enough.
    #[inline(always)]
    pub(crate) fn new(text: &[u8], begin: usize, end: usize) -> Option<Self> {
        let len = end - begin;
        if len > SHORT || len == 0 {
            return None;
        }
        let bytes = match text.get(begin..).and_then(<[u8]>::first_chunk::<16>) {
            Some(chunk) => u128::from_le_bytes(*chunk) & ((1 << (8 * len)) - 1),
            None => text[begin..end].iter().rev().fold(0, |bytes, &byte| bytes << 8 | u128::from(byte)),
        };
        Some(Self(bytes as u64, (bytes >> 64) as u64 | (len as u64) << 56))
    }

    /// The same bytes as part of a longer word, which may become something else than the bytes as a word.
    pub(crate) fn as_part(self) -> Self {
        Self(self.0, self.1 | 1 << 63)
    }

    #[inline(always)]
    pub(crate) fn hash(self, seed: Seed) -> usize {
        seed.hash_words(self.0, self.1) as usize
    }
}

impl WordCache {
    /// Hands on the ids of the word `text[begin..end]`: those that were kept, or else those that `encode` gives.
    #[inline(always)]
    pub(crate) fn push_word<S: Sink>(
        &mut self,
        text: &[u8],
        begin: usize,
        end: usize,
        sink: &mut S,
        encode: impl FnOnce(&[u8], &mut Vec<TokenId>),
    ) {
        let key = Key::new(text, begin, end);
        let known = match key {
            Some(key) => self.get(key),
            None => self.get_long(&text[begin..end]),
        };
        match known {
            Some(ids) => sink.push_all(ids),
            None => self.push_new(key, &text[begin..end], sink, encode),
        }
    }

    #[inline(never)]
    fn push_new<S: Sink>(
        &mut self,
        key: Option<Key>,
        word: &[u8],
        sink: &mut S,
        encode: impl FnOnce(&[u8], &mut Vec<TokenId>),
    ) {
        let mut ids = std::mem::take(&mut self.new);
        ids.clear();
        encode(word, &mut ids);
        sink.push_all(&ids);
        match key {
            Some(key) => self.insert(key, &ids),
            None => self.insert_long(word, &ids),
        }
        self.new = ids;
    }

    /// The ids that were kept for a short word.
    #[inline(always)]
    pub(crate) fn get(&self, key: Key) -> Option<&[TokenId]> {
        let mask = self.short.len().wrapping_sub(1);
        let mut at = key.hash(self.seed) & mask;
        let mut slot = self.short.get(at)?;
        while slot.key != key {
            if slot.key == Key::default() {
                return None;
            }
            at = (at + 1) & mask;
            slot = self.short.get(at)?;
        }
        match slot.ids.get(..slot.count as usize) {
            Some(ids) => Some(ids),
            None => self.ids.get(slot.ids[0] as usize..)?.get(..slot.count as usize),
        }
    }

    /// Keeps the ids of a short word that is not there yet.
    pub(crate) fn insert(&mut self, key: Key, ids: &[TokenId]) {
        let mut slot = Short { key, ids: [0; INLINE], count: ids.len() as u32 };
        match slot.ids.get_mut(..ids.len()) {
            Some(inline) => inline.copy_from_slice(ids),
            None if ids.len() > ROOM => return,
            None => slot.ids[0] = self.store(&[], ids).1 as TokenId,
        }
        if self.shorts * 8 >= self.short.len() * 5 {
            if self.short.len() == MOST_SLOTS {
                return self.forget();
            }
            let bigger = vec![Short::default(); (self.short.len() * 2).max(FEWEST_SLOTS)];
            let slots = std::mem::replace(&mut self.short, bigger);
            slots.into_iter().filter(|slot| slot.key != Key::default()).for_each(|slot| self.place(slot));
        }
        self.shorts += 1;
        self.place(slot);
    }

    fn place(&mut self, slot: Short) {
        let mask = self.short.len() - 1;
        let mut at = slot.key.hash(self.seed) & mask;
        while self.short[at].key != Key::default() {
            at = (at + 1) & mask;
        }
        self.short[at] = slot;
    }

    /// The ids that were kept for a word of any other length.
    pub(crate) fn get_long(&self, word: &[u8]) -> Option<&[TokenId]> {
        if self.long.is_empty() || word.len() > LONG {
            return None;
        }
        let hash = self.seed.hash(word);
        let mask = self.long.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.long[at];
            if slot.len == 0 {
                return None;
            }
            if slot.hash == hash && &self.bytes[slot.bytes as usize..][..usize::from(slot.len)] == word {
                return self.ids.get(slot.ids as usize..)?.get(..usize::from(slot.count));
            }
            at = (at + 1) & mask;
        }
    }

    /// Keeps the ids of a long word that is not there yet.
    pub(crate) fn insert_long(&mut self, word: &[u8], ids: &[TokenId]) {
        if word.len() > LONG || ids.len() > usize::from(u16::MAX) {
            return;
        }
        let (bytes, place) = self.store(word, ids);
        if self.longs * 8 >= self.long.len() * 5 {
            if self.long.len() == MOST_SLOTS {
                return self.forget();
            }
            let bigger = vec![Long::default(); (self.long.len() * 2).max(FEWEST_SLOTS)];
            let slots = std::mem::replace(&mut self.long, bigger);
            slots.into_iter().filter(|slot| slot.len != 0).for_each(|slot| self.place_long(slot));
        }
        self.longs += 1;
        let (len, count) = (word.len() as u16, ids.len() as u16);
        self.place_long(Long { hash: self.seed.hash(word), bytes: bytes as u32, ids: place as u32, len, count });
    }

    fn place_long(&mut self, slot: Long) {
        let mask = self.long.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.long[at].len != 0 {
            at = (at + 1) & mask;
        }
        self.long[at] = slot;
    }

    /// Puts bytes and ids behind those of other words, and tells where.
    fn store(&mut self, word: &[u8], ids: &[TokenId]) -> (usize, usize) {
        if self.bytes.len() + word.len() > ROOM || self.ids.len() + ids.len() > ROOM {
            self.forget();
        }
        let places = (self.bytes.len(), self.ids.len());
        self.bytes.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
        places
    }

    fn forget(&mut self) {
        self.short.fill(Short::default());
        self.long.fill(Long::default());
        (self.shorts, self.longs) = (0, 0);
        self.bytes.clear();
        self.ids.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, LONG, ROOM, WordCache};

    fn key(text: &[u8]) -> Key {
        Key::new(text, 0, text.len()).expect("short enough")
    }

    #[test]
    fn words_come_back_with_their_ids() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        let mut cache = WordCache::default();
        for (len, ids) in [(1, &[1][..]), (8, &[]), (15, &[1, -1, 3]), (9, &[1, 2, 3, 4, 5])] {
            for begin in [0, 3, 26 - len] {
                let key = Key::new(text, begin, begin + len).expect("short enough");
                assert!(cache.get(key).is_none() && cache.get(key.as_part()).is_none());
                cache.insert(key, ids);
                assert_eq!(cache.get(key), Some(ids));
            }
        }
        assert!(Key::new(text, 0, 16).is_none() && Key::new(text, 4, 4).is_none());
        assert!(cache.get_long(text).is_none());
        cache.insert_long(text, &[7; 26]);
        assert_eq!(cache.get_long(text), Some(&[7; 26][..]));
        assert!(cache.get_long(&text[1..]).is_none() && cache.get_long(&[0; LONG + 1]).is_none());
    }

    #[test]
    fn a_zero_byte_is_not_an_empty_slot() {
        let mut cache = WordCache::default();
        cache.insert(key(b"a"), &[1]);
        assert!(cache.get(key(b"\0")).is_none() && cache.get(key(b"a\0")).is_none());
    }

    #[test]
    fn a_full_cache_forgets_and_never_mixes_up() {
        let mut cache = WordCache::default();
        let word = |number: u32| [&number.to_le_bytes()[..], &[b'x'; 30]].concat();
        for number in 0..200_000_u32 {
            let ids = [number as i32; 9];
            cache.insert_long(&word(number), &ids);
            cache.insert(key(&number.to_le_bytes()), &ids);
            assert!(cache.get_long(&word(number)).is_none_or(|found| found == ids));
            if let Some(found) = cache.get(key(&(number / 2).to_le_bytes())) {
                assert_eq!(found, [(number / 2) as i32; 9]);
            }
        }
        assert!(cache.bytes.len() <= ROOM && cache.ids.len() <= ROOM);
    }
}
