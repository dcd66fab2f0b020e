//! Keys: words of up to 15 bytes packed into two 64-bit numbers, so that comparing and hashing take a few instructions.

use crate::lookup::hash::{MAX_PACKED, Seed, packed};

/// The longest word with a key, in bytes.
pub(crate) const MAX_LEN: usize = MAX_PACKED;
/// How many bytes are read to make a key.
pub(crate) const KEY_LEN: usize = 16;

/// A bit of the last byte, next to the length.
const MARK: u64 = 1 << 63;
const IS_LONG: u64 = 1 << 62;
/// The longest word that [`Key::of_long`] takes, in bytes: as long as a string in a file can be.
const MAX_LONG: u64 = (1 << 30) - 1;

/// The bytes of a short word in both numbers.
const TEXT: u128 = u128::MAX >> 8;

/// The lowest bit of each byte, and the highest.
const ONES: u128 = u128::MAX / 0xFF;
const HIGHS: u128 = ONES << 7;

/// The mask of a word's bytes, by its length.
const MASKS: [(u64, u64); MAX_LEN + 1] = {
    let mut masks = [(0, 0); MAX_LEN + 1];
    let mut len = 1;
    while len <= MAX_LEN {
        let mask = u128::MAX >> (128 - 8 * len);
        masks[len] = (mask as u64, (mask >> 64) as u64);
        len += 1;
    }
    masks
};

/// A packed word: its bytes, zeros, and its length in the last byte. The default is the null key, which no word has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Key(u64, u64);

heap_bytes!(Key);

impl Key {
    /// The key of no word, and not the null key either.
    pub(crate) const OTHER: Self = Self(0, MARK);

    /// The key of `text[start..end]`, if it is short enough and not empty.
    #[inline(always)]
    pub(crate) fn new(text: &[u8], start: usize, end: usize) -> Option<Self> {
        let len = end - start;
        if len.wrapping_sub(1) >= MAX_LEN {
            return None;
        }
        Some(match text.get(start..start.wrapping_add(KEY_LEN)).and_then(<[u8]>::first_chunk) {
            Some(bytes) => Self::of(bytes, len),
            None => Self::of_last(&text[start..end]),
        })
    }

    /// The key of the first `len` of these bytes; `len` is 1 to [`MAX_LEN`], or 0 for the null key.
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8; KEY_LEN], len: usize) -> Self {
        let bytes = u128::from_le_bytes(*bytes);
        let (low, high) = MASKS[len % MASKS.len()];
        Self(bytes as u64 & low, (bytes >> 64) as u64 & high | (len as u64) << 56)
    }

    /// The key of a short word so close to the end that 16 bytes cannot be read.
    #[cold]
    #[inline(never)]
    fn of_last(word: &[u8]) -> Self {
        packed(word).map_or_else(Self::default, |(low, high)| Self(low, high))
    }

    /// The texts before and after the first space that is not the first byte, and both together without it.
    #[inline(always)]
    pub(crate) fn split_at_space(self) -> Option<[Self; 3]> {
        let text = self.text();
        // A byte of `others` is zero where the text has a space. The lowest high bit that the subtraction sets is exact.
        let others = (text ^ (ONES * u128::from(b' '))) | 0xFF;
        let spaces = others.wrapping_sub(ONES) & !others & HIGHS;
        let split = |bits: u32| {
            let at = u64::from(bits / 8);
            let len = self.1 >> 56;
            let before = (1 << bits) - 1;
            let after = text >> 8;
            let key = |text: u128, len: u64| Self(text as u64, (text >> 64) as u64 | len << 56);
            [key(text & before, at), key(after >> bits, len - at - 1), key(text & before | after & !before, len - 1)]
        };
        // Most spaces are in the first half, and shifts by less than 64 bits take fewer instructions.
        match (spaces as u64, (spaces >> 64) as u64) {
            (0, 0) => None,
            (0, last) => Some(split(64 + (last.trailing_zeros() & !7))),
            (first, _) => Some(split(first.trailing_zeros() & !7)),
        }
    }

    /// The bytes that a text in GPT-2's spelling stands for, if all of it is printable ASCII, except that it may start
    /// with `Ġ`, which is a space.
    #[inline(always)]
    pub(crate) fn unspelled(self) -> Option<Self> {
        let text = self.text();
        let len = self.word_len();
        let has_space = text as u16 == u16::from_le_bytes(*b"\xC4\xA0");
        let (text, len) = if has_space { (text >> 16, len - 2) } else { (text, len) };
        let (low, high) = MASKS[len % MASKS.len()];
        let bytes = u128::from(high) << 64 | u128::from(low);
        // Without high bits, these sums carry nothing from byte to byte.
        let is_printable = (text | (text + (ONES & bytes))) & HIGHS == 0
            && (text + ONES * u128::from(0x80 - b'!')) & HIGHS == bytes & HIGHS;
        let (text, len) = if has_space { (text << 8 | u128::from(b' '), len + 1) } else { (text, len) };
        is_printable.then_some(Self(text as u64, (text >> 64) as u64 | (len as u64) << 56))
    }

    /// The bytes of a short word, followed by zeros and a last byte with its length.
    #[inline(always)]
    pub(crate) fn bytes(self) -> [u8; KEY_LEN] {
        (u128::from(self.1) << 64 | u128::from(self.0)).to_le_bytes()
    }

    /// The bytes of a short word as a number.
    #[inline(always)]
    fn text(self) -> u128 {
        u128::from_le_bytes(self.bytes()) & TEXT
    }

    /// The key of a long word: its hash, and the position and length of its bytes.
    pub(crate) fn of_long(hash: u64, place: usize, len: usize) -> Self {
        Self(hash, IS_LONG | (len as u64 & MAX_LONG) << 32 | place as u64 & 0xFFFF_FFFF)
    }

    /// The hash, position and length, if this is the key of a long word.
    #[inline(always)]
    pub(crate) fn long(self) -> Option<(u64, usize, usize)> {
        let is_long = self.1 & IS_LONG != 0;
        is_long.then_some((self.0, self.1 as u32 as usize, (self.1 >> 32 & MAX_LONG) as usize))
    }

    /// The key, unless it is the null key.
    pub(crate) fn some(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }

    /// A variant of the key, for the word inside a longer one or after a space.
    #[inline(always)]
    pub(crate) fn marked(self, is_marked: bool) -> Self {
        Self(self.0, self.1 | if is_marked { MARK } else { 0 })
    }

    /// Whether the key is [`Key::marked`].
    #[inline(always)]
    pub(crate) fn is_marked(self) -> bool {
        self.1 & MARK != 0
    }

    /// The length of a short word.
    #[inline(always)]
    pub(crate) fn word_len(self) -> usize {
        (self.1 >> 56) as usize % MASKS.len()
    }

    #[inline(always)]
    pub(crate) fn hash(self, seed: Seed) -> u64 {
        seed.hash_words(self.0, self.1)
    }

    /// Whether the keys are equal, without a branch between the halves.
    #[inline(always)]
    pub(crate) fn is(self, other: Self) -> bool {
        (self.0 ^ other.0) | (self.1 ^ other.1) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, MAX_LEN};

    #[test]
    fn a_key_is_the_same_at_the_end_of_a_text() {
        let text: Vec<u8> = (1..=40).collect();
        for len in 1..=MAX_LEN {
            let inside = Key::new(&text, 3, 3 + len);
            assert_eq!(Key::new(&text[..3 + len], 3, 3 + len), inside, "{len}");
            assert_eq!(Key::new(&text[3..3 + len], 0, len), inside, "{len}");
            assert_eq!(inside.map(Key::word_len), Some(len));
        }
        assert!(Key::new(&text, 0, MAX_LEN + 1).is_none() && Key::new(&text, 4, 4).is_none());
    }

    #[test]
    fn a_text_is_split_at_its_first_space_after_the_first_byte() {
        let key = |text: &str| Key::new(text.as_bytes(), 0, text.len()).unwrap_or_default();
        let texts = ["ab cd", "  a", "a ", "a  ", "0123456 8abcdef", "01234567 9abcde", "! !", "!é\u{7F} \u{1}\u{1F}!"];
        for text in texts {
            let at = 1 + text[1..].find(' ').unwrap_or_default();
            let [left, right] = [&text[..at], &text[at + 1..]];
            assert_eq!(key(text).split_at_space(), Some([left, right, &[left, right].concat()].map(key)), "{text:?}");
        }
        for text in ["", " ", " ab", "ab-cd", "!\u{1}!", "a\0", "0123456789abcde"] {
            assert_eq!(key(text).split_at_space(), None, "{text:?}");
        }
    }

    #[test]
    fn keys_differ_where_words_do() {
        let key = |text: &[u8]| Key::new(text, 0, text.len()).expect("short enough");
        let keys = [key(b"a"), key(b"\0"), key(b"a\0"), key(b"a").marked(true), key(b"b"), Key::of_long(97, 0, 1)];
        for (at, first) in keys.iter().enumerate() {
            for (other, second) in keys.iter().enumerate() {
                assert_eq!((first == second, first.is(*second)), (at == other, at == other), "{at} {other}");
            }
        }
        assert_eq!(keys[5].long(), Some((97, 0, 1)));
        assert_eq!((keys[0].long(), keys[0].marked(false), Key::default().some()), (None, keys[0], None));
    }
}
