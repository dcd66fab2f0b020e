//! What words became: a bounded table from bytes to ids, so that a word that comes again costs two near reads.
//!
//! Words lie one behind the other in the order in which they came, which puts the frequent ones close together; an
//! index, open addressing with four bytes a slot, tells where. So what a text needs again and again stays in the near
//! caches, and what is new leaves the memory of the others alone. Words of up to 15 bytes, and up to three ids, lie in
//! 32 bytes; longer words and longer lists of ids are in two arrays behind. When something is full, everything is
//! forgotten. 18 MiB at most per scratch space, whatever the text; nothing is allocated before the first word.

use crate::lookup::hash::Seed;
use crate::lookup::index::Index;
use crate::lookup::key::Key;
use crate::sink::{Sink, TokenId};

/// The longest word that is kept, in bytes.
const LONG: usize = 512;
/// Ids that fit into a word's entry.
pub(crate) const INLINE: usize = 3;
/// The most words that are kept.
const MOST_WORDS: usize = (1 << 18) - 1;
/// Slots of a new index; a power of two.
const FEWEST_SLOTS: usize = 1 << 11;
/// Bytes of long words, and ids beyond [`INLINE`], that are kept.
const ROOM: usize = 1 << 20;

/// A word and its ids.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    key: Key,
    /// The ids, or where they are in [`WordCache::ids`].
    ids: [TokenId; INLINE],
    count: u32,
}

/// A cache from words to ids.
#[derive(Debug, Default)]
pub(crate) struct WordCache {
    seed: Seed,
    index: Index,
    /// By number.
    words: Vec<Word>,
    bytes: Vec<u8>,
    ids: Vec<TokenId>,
    /// The ids of a new word on their way into the table.
    new: Vec<TokenId>,
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
        match self.get_word(key, &text[begin..end]) {
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
        self.insert_word(key, word, &ids);
        self.new = ids;
    }

    /// The ids that were kept for a short word.
    #[inline(always)]
    pub(crate) fn get(&self, key: Key) -> Option<&[TokenId]> {
        self.find(key.hash(self.seed), |word| word.key == key)
    }

    /// Where the ids of a short word mostly are; see [`Index::likely`].
    #[inline(always)]
    pub(crate) fn likely(&self, key: Key) -> usize {
        self.index.likely(key.hash(self.seed))
    }

    /// The ids of a short word and how many there are, if they are at this place and few.
    #[inline(always)]
    pub(crate) fn few_at(&self, place: usize, key: Key) -> Option<([TokenId; INLINE], usize)> {
        let word = self.words.get(place)?;
        (word.key == key && word.count <= INLINE as u32).then_some((word.ids, word.count as usize))
    }

    /// Whether a short word is at this place.
    #[inline(always)]
    pub(crate) fn is_at(&self, place: usize, key: Key) -> bool {
        self.words.get(place).is_some_and(|word| word.key.is(key))
    }

    /// The ids that were kept for a word; `key` is that of the same bytes.
    #[inline(always)]
    pub(crate) fn get_word(&self, key: Option<Key>, word: &[u8]) -> Option<&[TokenId]> {
        match key {
            Some(key) => self.get(key),
            None => self.get_long(word),
        }
    }

    /// Keeps the ids of a word that is not there yet; `key` is that of the same bytes.
    pub(crate) fn insert_word(&mut self, key: Option<Key>, word: &[u8], ids: &[TokenId]) {
        match key {
            Some(key) => _ = self.insert(key, ids),
            None => self.insert_long(word, ids),
        }
    }

    /// The ids that were kept for a word of any other length.
    pub(crate) fn get_long(&self, word: &[u8]) -> Option<&[TokenId]> {
        let hash = self.seed.hash(word);
        self.find(hash, |found| {
            found.key.long().is_some_and(|(other, at, len)| other == hash && &self.bytes[at..at + len] == word)
        })
    }

    /// Keeps the ids of a short word that is not there yet, and tells the place where they are.
    pub(crate) fn insert(&mut self, key: Key, ids: &[TokenId]) -> usize {
        self.keep(key.hash(self.seed), &[], ids, |_| key);
        self.words.len().wrapping_sub(1)
    }

    /// Keeps the ids of a word of any other length that is not there yet.
    pub(crate) fn insert_long(&mut self, word: &[u8], ids: &[TokenId]) {
        if word.len() <= LONG {
            let hash = self.seed.hash(word);
            self.keep(hash, word, ids, |place| Key::of_long(hash, place, word.len()));
        }
    }

    /// The ids of the word with this hash that `is` it.
    #[inline(always)]
    fn find(&self, hash: u64, is: impl Fn(&Word) -> bool) -> Option<&[TokenId]> {
        let number = self.index.find(hash, |number| self.words.get(number).is_some_and(&is))?;
        let word = self.words.get(number)?;
        match word.ids.get(..word.count as usize) {
            Some(ids) => Some(ids),
            None => self.ids.get(word.ids[0] as usize..)?.get(..word.count as usize),
        }
    }

    /// Puts a word behind the others. `key` gets to know where its bytes are.
    fn keep(&mut self, hash: u64, bytes: &[u8], ids: &[TokenId], key: impl FnOnce(usize) -> Key) {
        let more_ids = if ids.len() > INLINE { ids } else { &[] };
        if more_ids.len() > ROOM {
            return;
        }
        let is_full = self.words.len() == MOST_WORDS
            || self.bytes.len() + bytes.len() > ROOM
            || self.ids.len() + more_ids.len() > ROOM;
        if is_full {
            self.index.clear();
            self.words.clear();
            self.bytes.clear();
            self.ids.clear();
        }
        if self.index.is_full() {
            self.grow();
        }
        let (key, count) = (key(self.bytes.len()), ids.len() as u32);
        let mut word = Word { key, ids: [self.ids.len() as TokenId; INLINE], count };
        if let Some(inline) = word.ids.get_mut(..ids.len()) {
            inline.copy_from_slice(ids);
        }
        self.bytes.extend_from_slice(bytes);
        self.ids.extend_from_slice(more_ids);
        self.index.insert(hash, self.words.len());
        self.words.push(word);
    }

    /// Doubles the index.
    #[cold]
    fn grow(&mut self) {
        self.index = Index::with_slots((self.index.slots() * 2).max(FEWEST_SLOTS), MOST_WORDS);
        for (number, word) in self.words.iter().enumerate() {
            let hash = word.key.long().map_or_else(|| word.key.hash(self.seed), |(hash, ..)| hash);
            self.index.insert(hash, number);
        }
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
                assert!(cache.get(key).is_none() && cache.get(key.marked(true)).is_none());
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
