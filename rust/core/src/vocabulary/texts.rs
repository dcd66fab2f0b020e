//! A list of byte strings: one array with all bytes, and one with the end of each string.
//!
//! O(1) for a look-up by number; 4 bytes of overhead per string.

use std::ops::Range;

use crate::error::VocabularyError;
use crate::lookup::key::Key;
use crate::work::memory::{append, push, with_capacity};

/// Byte strings numbered from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    bytes: Vec<u8>,
    /// String `i` ends at `ends[i]` and starts where the one before it ends.
    ends: Vec<u32>,
}

heap_bytes!(Texts: bytes, ends);

impl Texts {
    pub(crate) fn with_capacity(num_strings: usize, num_bytes: usize) -> Self {
        Self { bytes: with_capacity(num_bytes), ends: with_capacity(num_strings) }
    }

    /// Appends a string.
    ///
    /// # Errors
    /// [`VocabularyError::TooLarge`] if 32-bit offsets cannot address all bytes.
    #[inline]
    pub(crate) fn push(&mut self, text: &[u8]) -> Result<(), VocabularyError> {
        append(&mut self.bytes, text);
        let end = u32::try_from(self.bytes.len()).map_err(|_| VocabularyError::TooLarge { what: "token texts" })?;
        push(&mut self.ends, end);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// String `index`; empty if there is none.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.range(index)]
    }

    /// The key of string `index`, if it is short.
    #[inline]
    pub(crate) fn key(&self, index: usize) -> Option<Key> {
        let Range { start, end } = self.range(index);
        Key::new(&self.bytes, start, end)
    }

    #[inline]
    fn range(&self, index: usize) -> Range<usize> {
        let start = if index == 0 { 0 } else { self.ends.get(index - 1).map_or(0, |&end| end as usize) };
        start..self.ends.get(index).map_or(start, |&end| end as usize)
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&end| &self.bytes[std::mem::replace(&mut start, end as usize)..end as usize])
    }

    /// Whether some string has this byte.
    pub(crate) fn contains(&self, byte: u8) -> bool {
        memchr::memchr(byte, &self.bytes).is_some()
    }

    /// The highest byte in any string.
    pub(crate) fn highest_byte(&self) -> u8 {
        self.bytes.iter().fold(0, |highest, &byte| highest.max(byte))
    }
}
