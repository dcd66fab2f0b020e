//! What a walk through the tokens has found behind the first bytes of a text, for the first bytes of most texts.
//!
//! A step of a walk waits for the step before it; a look-up here waits for the text alone, and stands for the steps of
//! two ASCII characters, or of one character of two or three bytes. O(1). Space: 16 bytes for each of 83,968 starts.

use crate::sink::{NULL_TOKEN, TokenId};
use crate::trie::{DoubleArray, Node};

/// Behind the pairs of ASCII characters come the characters of two bytes, and then those of three.
const TWO_BYTES: usize = 1 << 14;
const THREE_BYTES: usize = TWO_BYTES + (1 << 11);
const COUNT: usize = THREE_BYTES + (1 << 16);

/// A walk behind the first bytes of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// Where the walk has come to; a node without children where it has ended.
    pub node: Node,
    /// The longest token so far and its length in bytes, which is 0 where there is none.
    pub id: TokenId,
    pub len: u32,
}

/// The walks behind all starts.
#[derive(Debug)]
pub(super) struct Starts(Vec<Start>);

impl Starts {
    pub(super) fn new(tokens: &DoubleArray) -> Self {
        // The root of a trie of no keys.
        let ended = DoubleArray::default().root();
        Self((0..COUNT).map(|number| walk(tokens, ended, bytes(number))).collect())
    }

    /// The walk behind the first bytes of `text`, and how many these are; `None` near the end of a text, and before
    /// characters of four bytes and what is no UTF-8.
    #[inline(always)]
    pub(super) fn get(&self, text: &[u8]) -> Option<(Start, usize)> {
        let bytes: [u8; 3] = *text.first_chunk()?;
        let [first, second, third] = bytes.map(usize::from);
        let (number, len) = match bytes {
            [..0x80, ..0x80, _] => (first << 7 | second, 2),
            [0xE0..0xF0, 0x80..0xC0, 0x80..0xC0] => {
                (THREE_BYTES + ((first & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F), 3)
            }
            [0xC0..0xE0, 0x80..0xC0, _] => (TWO_BYTES + ((first & 0x1F) << 6 | second & 0x3F), 2),
            _ => return None,
        };
        Some((self.0[number], len))
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Start>()
    }
}

/// The bytes of a start, and how many there are.
fn bytes(number: usize) -> ([u8; 3], usize) {
    let inner = |bits: usize| 0x80 | (bits & 0x3F) as u8;
    match number {
        ..TWO_BYTES => ([(number >> 7) as u8, (number & 0x7F) as u8, 0], 2),
        TWO_BYTES..THREE_BYTES => {
            let bits = number - TWO_BYTES;
            ([0xC0 | (bits >> 6) as u8, inner(bits), 0], 2)
        }
        _ => {
            let bits = number - THREE_BYTES;
            ([0xE0 | (bits >> 12) as u8, inner(bits >> 6), inner(bits)], 3)
        }
    }
}

/// Walks the tokens along a start, to `ended` where they end before it.
fn walk(tokens: &DoubleArray, ended: Node, (bytes, len): ([u8; 3], usize)) -> Start {
    let mut start = Start { node: tokens.root(), id: NULL_TOKEN, len: 0 };
    for (&byte, len) in bytes[..len].iter().zip(1..) {
        let Some(node) = tokens.step(start.node, byte) else {
            return Start { node: ended, ..start };
        };
        start.node = node;
        if let Some(id) = tokens.value(node) {
            (start.id, start.len) = (id as TokenId, len);
        }
    }
    start
}

#[cfg(test)]
mod tests {
    use super::{COUNT, Starts, bytes};
    use crate::trie::DoubleArray;

    #[test]
    fn every_start_is_found_under_its_number() {
        let keys: Vec<Vec<u8>> = (0..COUNT).map(|number| bytes(number).0[..bytes(number).1].to_vec()).collect();
        let tokens = DoubleArray::build(keys.iter().map(Vec::as_slice).zip(0..)).expect("a trie");
        let starts = Starts::new(&tokens);
        for (key, number) in keys.iter().zip(0..) {
            let (start, len) = starts.get(&[key, &b"\0"[..]].concat()).expect("a start");
            assert_eq!((start.id, start.len as usize, len), (number, key.len(), key.len()));
        }
        assert!(
            starts.get(b"ab").is_none() && starts.get("😀".as_bytes()).is_none() && starts.get(b"\x80ab").is_none()
        );
        assert_eq!(starts.heap_bytes(), COUNT * 16);
    }
}
