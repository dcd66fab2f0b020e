//! A table of walks through the token trie, each after its first two or three bytes.
//!
//! Each step of a walk waits for the step before it, but a look-up in this table waits only for the text. It replaces
//! the steps over two ASCII characters, or over one character of two or three bytes.
//!
//! Time: O(1). Space: 16 bytes for each of 83,968 starts.

use crate::lookup::trie::{DoubleArray, Node};
use crate::token::{NULL_TOKEN, TokenId};
use crate::work::memory::collect;

/// The position of the first character of two bytes in the table, after all pairs of ASCII characters.
const TWO_BYTES: usize = 1 << 14;
/// The position of the first character of three bytes, after all those of two.
const THREE_BYTES: usize = TWO_BYTES + (1 << 11);
const NUM_STARTS: usize = THREE_BYTES + (1 << 16);

/// A walk after the first bytes of a text.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalkStart {
    /// Where the walk is; a node without children if it has ended.
    pub node: Node,
    /// The longest token so far.
    pub id: TokenId,
    /// Its length in bytes; 0 if there is none.
    pub len: u32,
}

/// The walks after all starts, indexed by the number of the start.
#[derive(Debug)]
pub(super) struct WalkStarts(Vec<WalkStart>);

heap_bytes!(WalkStart; WalkStarts: 0);

impl WalkStarts {
    pub(super) fn new(tokens: &DoubleArray) -> Self {
        // The root of an empty trie has no children.
        let ended = DoubleArray::default().root();
        Self(collect((0..NUM_STARTS).map(|number| walk(tokens, ended, first_bytes(number)))))
    }

    /// The walk after the first bytes of `text`, and the number of these bytes. `None` if fewer than three bytes are
    /// left, or if a character of four bytes or invalid UTF-8 is next.
    #[inline(always)]
    pub(super) fn get(&self, text: &[u8]) -> Option<(WalkStart, usize)> {
        let bytes: [u8; 3] = *text.first_chunk()?;
        let [first, second, third] = bytes.map(usize::from);
        let (number, len) = match bytes {
            [(..0x80), (..0x80), _] => (first << 7 | second, 2),
            [(0xE0..0xF0), (0x80..0xC0), (0x80..0xC0)] => {
                (THREE_BYTES + ((first & 0xF) << 12 | (second & 0x3F) << 6 | third & 0x3F), 3)
            }
            [(0xC0..0xE0), (0x80..0xC0), _] => (TWO_BYTES + ((first & 0x1F) << 6 | second & 0x3F), 2),
            _ => return None,
        };
        Some((self.0[number], len))
    }
}

/// The bytes of the start with this number, and their length.
fn first_bytes(number: usize) -> ([u8; 3], usize) {
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

/// Walks along the bytes of a start. The walk is at `ended` if no token starts with these bytes.
fn walk(tokens: &DoubleArray, ended: Node, (bytes, len): ([u8; 3], usize)) -> WalkStart {
    let mut start = WalkStart { node: tokens.root(), id: NULL_TOKEN, len: 0 };
    for (&byte, len) in bytes[..len].iter().zip(1..) {
        let Some(node) = tokens.step(start.node, byte) else {
            return WalkStart { node: ended, ..start };
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
    use super::{NUM_STARTS, WalkStarts, first_bytes};
    use crate::lookup::trie::DoubleArray;

    #[test]
    fn every_start_is_found_under_its_number() {
        let keys: Vec<Vec<u8>> =
            (0..NUM_STARTS).map(|number| first_bytes(number).0[..first_bytes(number).1].to_vec()).collect();
        let tokens = DoubleArray::build(keys.iter().map(Vec::as_slice).zip(0..)).expect("a trie");
        let starts = WalkStarts::new(&tokens);
        for (key, number) in keys.iter().zip(0..) {
            let (start, len) = starts.get(&[key, &b"\0"[..]].concat()).expect("a start");
            assert_eq!((start.id, start.len as usize, len), (number, key.len(), key.len()));
        }
        assert!(
            starts.get(b"ab").is_none() && starts.get("😀".as_bytes()).is_none() && starts.get(b"\x80ab").is_none()
        );
    }
}
