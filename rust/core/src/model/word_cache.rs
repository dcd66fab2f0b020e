//! What words became: a bounded table from bytes to ids, so that a word that comes again costs two near reads.
//!
//! Words lie one behind the other in the order in which they came, which puts the frequent ones close together; an
//! index, open addressing with four bytes a slot, tells where. So what a text needs again and again stays in the near
//! caches, and what is new leaves the memory of the others alone. Words of up to 15 bytes, and up to three ids, lie in
//! 32 bytes; longer words and longer lists of ids are in two arrays behind. When something is full, everything is
//! forgotten. 18 MiB at most per scratch space, whatever the text; nothing is allocated before the first word.

use crate::hash::Seed;
use crate::index::Index;
use crate::sink::{Sink, TokenId};

/// The longest word with a [`Key`], in bytes.
const SHORT: usize = 15;
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

/// A word in the form in which it is looked up. A short one has its bytes, then its length in the last byte; a long
/// one its hash, then where its bytes are in [`WordCache::bytes`] and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Key(u64, u64);

/// By length, which bytes are the word's.
const MASKS: [[u64; 2]; SHORT + 1] = {
    let mut masks = [[0; 2]; SHORT + 1];
    let mut len = 1;
    while len <= SHORT {
        let mask = u128::MAX >> (128 - 8 * len);
        masks[len] = [mask as u64, (mask >> 64) as u64];
        len += 1;
    }
    masks
};

/// In the last byte of a [`Key`]: a part of a longer word, and a long word.
const PART: u64 = 1 << 63;
const IS_LONG: u64 = 1 << 62;

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

impl Key {
    /// The key of `text[begin..end]`, if that is short enough.
    #[inline(always)]
    pub(crate) fn new(text: &[u8], begin: usize, end: usize) -> Option<Self> {
        let len = end - begin;
        if len > SHORT || len == 0 {
            return None;
        }
        let (first, second) = match text.get(begin..).and_then(<[u8]>::first_chunk::<16>) {
            Some(chunk) => {
                let (bytes, [low, high]) = (u128::from_le_bytes(*chunk), MASKS[len]);
                (bytes as u64 & low, (bytes >> 64) as u64 & high)
            }
            None => last_word(&text[begin..end]),
        };
        Some(Self(first, second | (len as u64) << 56))
    }

    /// The key, unless it is that of no word.
    pub(crate) fn some(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// The same bytes as part of a longer word, which may become something else than the bytes as a word.
    pub(crate) fn as_part(self) -> Self {
        Self(self.0, self.1 | PART)
    }

    #[inline(always)]
    pub(crate) fn hash(self, seed: Seed) -> u64 {
        seed.hash_words(self.0, self.1)
    }
}

/// The bytes of a short word with less than 16 bytes to the end of its text: those at both ends of it, which overlap.
#[inline]
fn last_word(word: &[u8]) -> (u64, u64) {
    let len = word.len();
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        let above = if len == 8 { 0 } else { u64::from_le_bytes(*last) >> (8 * (16 - len)) };
        return (u64::from_le_bytes(*first), above);
    }
    if let (Some(first), Some(last)) = (word.first_chunk(), word.last_chunk()) {
        let [first, last] = [first, last].map(|bytes| u64::from(u32::from_le_bytes(*bytes)));
        return (first | last << (8 * (len - 4)), 0);
    }
    (word.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte)), 0)
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

    /// The ids that were kept for a word of any other length.
    pub(crate) fn get_long(&self, word: &[u8]) -> Option<&[TokenId]> {
        let hash = self.seed.hash(word);
        self.find(hash, |found| {
            let Key(found_hash, place) = found.key;
            found_hash == hash && place & IS_LONG != 0 && self.long(place) == word
        })
    }

    /// Keeps the ids of a short word that is not there yet.
    pub(crate) fn insert(&mut self, key: Key, ids: &[TokenId]) {
        self.keep(key.hash(self.seed), &[], ids, |_| key);
    }

    /// Keeps the ids of a word of any other length that is not there yet.
    pub(crate) fn insert_long(&mut self, word: &[u8], ids: &[TokenId]) {
        if word.len() <= LONG {
            let hash = self.seed.hash(word);
            self.keep(hash, word, ids, |place| Key(hash, IS_LONG | (word.len() as u64) << 32 | place as u64));
        }
    }

    /// The bytes of a long word.
    fn long(&self, place: u64) -> &[u8] {
        let (at, len) = (place as u32 as usize, (place >> 32 & 0xFFFF) as usize);
        &self.bytes[at..at + len]
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
            let Key(hash, place) = word.key;
            self.index.insert(if place & IS_LONG == 0 { word.key.hash(self.seed) } else { hash }, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, LONG, ROOM, SHORT, WordCache};

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
    fn a_key_is_the_same_at_the_end_of_a_text() {
        let text: Vec<u8> = (1..=40).collect();
        for len in 1..=SHORT {
            let inside = Key::new(&text, 3, 3 + len);
            assert_eq!(Key::new(&text[..3 + len], 3, 3 + len), inside, "{len}");
            assert_eq!(Key::new(&text[3..3 + len], 0, len), inside, "{len}");
        }
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
