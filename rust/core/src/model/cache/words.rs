//! A bounded cache from words to ids: an open-addressing index into an append-only array.
//!
//! Words lie end to end in the order of their first use, which puts the frequent ones close together; the index, four
//! bytes a slot, has the place of each. So a repeated word costs two reads of the near caches, and new words leave the
//! memory of the others alone. A word of up to 15 bytes with up to three ids lies in 32 bytes; the bytes of longer
//! words and longer lists of ids are in two further arrays. A full cache is emptied.
//!
//! At most 18 MiB per scratch space, whatever the text; nothing is allocated before the first word. O(1) for a short
//! word, O(length) for a long one.

use crate::lookup::hash::Seed;
use crate::lookup::index::Index;
use crate::lookup::key::Key;
use crate::sink::{Sink, TokenId};

/// The longest word that is cached, in bytes.
const MAX_WORD: usize = 512;
/// Ids that fit into an entry.
pub(crate) const INLINE: usize = 3;
/// The most words that are cached.
const MAX_WORDS: usize = (1 << 18) - 1;
/// Slots of a new index, a power of two.
const MIN_SLOTS: usize = 1 << 11;
/// Bytes of long words, and ids beyond [`INLINE`], that are cached.
const ROOM: usize = 1 << 20;

/// A word and its ids.
#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    key: Key,
    /// The ids, or the place of the first one in [`WordCache::ids`].
    ids: [TokenId; INLINE],
    num_ids: u32,
}

/// A cache from words to ids.
#[derive(Debug, Default)]
pub(crate) struct WordCache {
    seed: Seed,
    index: Index,
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    ids: Vec<TokenId>,
    /// The ids of a new word on their way into the cache.
    new: Vec<TokenId>,
}

impl WordCache {
    /// Pushes the ids of the word `text[start..end]`: the cached ones, or else those that `encode` appends.
    #[inline(always)]
    pub(crate) fn push_word<S: Sink>(
        &mut self,
        text: &[u8],
        start: usize,
        end: usize,
        sink: &mut S,
        encode: impl FnOnce(&[u8], &mut Vec<TokenId>),
    ) {
        let key = Key::new(text, start, end);
        match self.get_word(key, &text[start..end]) {
            Some(ids) => sink.push_all(ids),
            None => self.push_new(key, &text[start..end], sink, encode),
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
        self.insert_word(key, word, &ids);
        self.new = ids;
    }

    /// The cached ids of a short word.
    #[inline(always)]
    pub(crate) fn get(&self, key: Key) -> Option<&[TokenId]> {
        self.find(key.hash(self.seed), |entry| entry.key == key)
    }

    /// The likely place of a short word; see [`Index::likely`].
    #[inline(always)]
    pub(crate) fn likely(&self, key: Key) -> usize {
        self.index.likely(key.hash(self.seed))
    }

    /// The ids of a short word and their number, if it is at this place and they are in its entry.
    #[inline(always)]
    pub(crate) fn few_at(&self, place: usize, key: Key) -> Option<([TokenId; INLINE], usize)> {
        let entry = self.entries.get(place)?;
        (entry.key == key && entry.num_ids <= INLINE as u32).then_some((entry.ids, entry.num_ids as usize))
    }

    /// Whether a short word is at this place.
    #[inline(always)]
    pub(crate) fn is_at(&self, place: usize, key: Key) -> bool {
        self.entries.get(place).is_some_and(|entry| entry.key.is(key))
    }

    /// The cached ids of a word, given its key if it is short.
    #[inline(always)]
    pub(crate) fn get_word(&self, key: Option<Key>, word: &[u8]) -> Option<&[TokenId]> {
        match key {
            Some(key) => self.get(key),
            None => self.get_long(word),
        }
    }

    /// Caches the ids of a word that is not cached yet, given its key if it is short.
    pub(crate) fn insert_word(&mut self, key: Option<Key>, word: &[u8], ids: &[TokenId]) {
        match key {
            Some(key) => _ = self.insert(key, ids),
            None => self.insert_long(word, ids),
        }
    }

    fn get_long(&self, word: &[u8]) -> Option<&[TokenId]> {
        let hash = self.seed.hash(word);
        self.find(hash, |entry| {
            entry.key.long().is_some_and(|(other, at, len)| other == hash && &self.bytes[at..at + len] == word)
        })
    }

    /// Caches the ids of a short word that is not cached yet. Returns its place.
    pub(crate) fn insert(&mut self, key: Key, ids: &[TokenId]) -> usize {
        self.append(key.hash(self.seed), &[], ids, |_| key);
        self.entries.len().wrapping_sub(1)
    }

    fn insert_long(&mut self, word: &[u8], ids: &[TokenId]) {
        if word.len() <= MAX_WORD {
            let hash = self.seed.hash(word);
            self.append(hash, word, ids, |place| Key::of_long(hash, place, word.len()));
        }
    }

    /// The ids of the word with this hash that `is` the one looked for.
    #[inline(always)]
    fn find(&self, hash: u64, is: impl Fn(&Entry) -> bool) -> Option<&[TokenId]> {
        let place = self.index.find(hash, |place| self.entries.get(place).is_some_and(&is))?;
        let entry = self.entries.get(place)?;
        match entry.ids.get(..entry.num_ids as usize) {
            Some(ids) => Some(ids),
            None => self.ids.get(entry.ids[0] as usize..)?.get(..entry.num_ids as usize),
        }
    }

    /// Appends a word; `key` is called with the place of its bytes.
    fn append(&mut self, hash: u64, bytes: &[u8], ids: &[TokenId], key: impl FnOnce(usize) -> Key) {
        let more_ids = if ids.len() > INLINE { ids } else { &[] };
        if more_ids.len() > ROOM {
            return;
        }
        let is_full = self.entries.len() == MAX_WORDS
            || self.bytes.len() + bytes.len() > ROOM
            || self.ids.len() + more_ids.len() > ROOM;
        if is_full {
            self.index.clear();
            self.entries.clear();
            self.bytes.clear();
            self.ids.clear();
        }
        if self.index.is_full() {
            self.grow();
        }

        let (key, num_ids) = (key(self.bytes.len()), ids.len() as u32);
        let mut entry = Entry { key, ids: [self.ids.len() as TokenId; INLINE], num_ids };
        if let Some(inline) = entry.ids.get_mut(..ids.len()) {
            inline.copy_from_slice(ids);
        }
        self.bytes.extend_from_slice(bytes);
        self.ids.extend_from_slice(more_ids);
        self.index.insert(hash, self.entries.len());
        self.entries.push(entry);
    }

    /// Doubles the index.
    #[cold]
    fn grow(&mut self) {
        self.index = Index::with_slots((self.index.slots() * 2).max(MIN_SLOTS), MAX_WORDS);
        for (place, entry) in self.entries.iter().enumerate() {
            let hash = entry.key.long().map_or_else(|| entry.key.hash(self.seed), |(hash, ..)| hash);
            self.index.insert(hash, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, MAX_WORD, ROOM, WordCache};

    fn key(text: &[u8]) -> Key {
        Key::new(text, 0, text.len()).expect("short enough")
    }

    #[test]
    fn words_are_found_with_their_ids() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        let mut cache = WordCache::default();
        for (len, ids) in [(1, &[1][..]), (8, &[]), (15, &[1, -1, 3]), (9, &[1, 2, 3, 4, 5])] {
            for start in [0, 3, 26 - len] {
                let key = Key::new(text, start, start + len).expect("short enough");
                assert!(cache.get(key).is_none() && cache.get(key.marked(true)).is_none());
                cache.insert(key, ids);
                assert_eq!(cache.get(key), Some(ids));
            }
        }
        assert!(Key::new(text, 0, 16).is_none() && Key::new(text, 4, 4).is_none());
        assert!(cache.get_long(text).is_none());
        cache.insert_long(text, &[7; 26]);
        assert_eq!(cache.get_long(text), Some(&[7; 26][..]));
        assert!(cache.get_long(&text[1..]).is_none() && cache.get_long(&[0; MAX_WORD + 1]).is_none());
    }

    #[test]
    fn a_zero_byte_is_not_an_empty_slot() {
        let mut cache = WordCache::default();
        cache.insert(key(b"a"), &[1]);
        assert!(cache.get(key(b"\0")).is_none() && cache.get(key(b"a\0")).is_none());
    }

    #[test]
    fn a_full_cache_is_emptied_and_never_mixes_up() {
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
