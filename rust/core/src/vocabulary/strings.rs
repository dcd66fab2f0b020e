//! Byte strings inside a larger buffer: an index with one 32-bit start for each.
//!
//! In a GGUF array, each string follows its 64-bit length, so finding the last string means stepping over all others.
//! [`StringIndex`] does that once; [`Strings`] is the pair of buffer and index. Concatenated strings without lengths
//! are indexed in the same way.
//!
//! Source: the GGUF specification (`docs/gguf.md` of ggml) and llama.cpp's `ggml/src/gguf.cpp`, `gguf_reader::read`.
//!
//! Time: O(n) for n strings, whatever their lengths. Space: 4 (n + 1) bytes, allocated only after n has been checked
//! against the remaining bytes.
//!
//! Deviations: (1) a buffer is at most 4 GiB, which is what 32-bit starts can address.

use std::ops::Range;

use crate::error::errors;
use crate::work::memory::filled;

/// The size of the length before each string in a GGUF array.
const PREFIX: usize = 8;

/// llama.cpp's limit for the length of one string, `GGUF_MAX_STRING_LENGTH`.
const MAX_LEN: u64 = 1 << 30;

/// Where each string of a sequence starts in its buffer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringIndex {
    /// String `i` is `starts[i]..starts[i + 1] - gap`: one more start than strings, or none at all.
    starts: Box<[u32]>,
    /// Bytes between two strings: 0 or [`PREFIX`].
    gap: u32,
}

impl StringIndex {
    /// Indexes the strings of a GGUF array. The length of the first one is at `data[offset]`. `None` if `data` is larger
    /// than 4 GiB or ends before the last string does, or if a string is longer than llama.cpp allows.
    #[cfg_attr(not(feature = "gguf"), allow(dead_code))]
    pub(crate) fn length_prefixed(data: &[u8], offset: usize, num_strings: usize, big_endian: bool) -> Option<Self> {
        fits(data.len()).ok()?;
        let mut rest = data.get(offset..)?;
        if num_strings > rest.len() / PREFIX {
            return None;
        }
        let mut starts = filled(num_strings + 1, 0);
        for start in &mut starts[..num_strings] {
            let (&prefix, after) = rest.split_first_chunk::<PREFIX>()?;
            let len = if big_endian { u64::from_be_bytes(prefix) } else { u64::from_le_bytes(prefix) };
            if len > MAX_LEN {
                return None;
            }
            *start = (data.len() - after.len()) as u32;
            rest = after.get(len as usize..)?;
        }
        starts[num_strings] = (data.len() - rest.len() + PREFIX) as u32;
        Some(Self { starts: starts.into_boxed_slice(), gap: PREFIX as u32 })
    }

    /// Concatenates strings into a new buffer, and indexes it.
    ///
    /// # Errors
    /// [`StringsError::TooLarge`] if they exceed 4 GiB in total.
    pub fn concatenate<T: AsRef<[u8]>>(strings: &[T]) -> Result<(Vec<u8>, Self), StringsError> {
        let len = strings.iter().fold(0usize, |sum, string| sum.saturating_add(string.as_ref().len()));
        fits(len)?;
        let mut data = Vec::with_capacity(len);
        let mut starts = Vec::with_capacity(strings.len() + 1);
        starts.push(0);
        for string in strings {
            data.extend_from_slice(string.as_ref());
            starts.push(data.len() as u32);
        }
        Ok((data, Self { starts: starts.into_boxed_slice(), gap: 0 }))
    }

    /// The byte offset after the last string; 0 without strings.
    pub fn end(&self) -> usize {
        self.starts.last().map_or(0, |&end| (end - self.gap) as usize)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val::<[u32]>(&self.starts)
    }

    /// The strings, given the buffer that has been indexed.
    pub fn view<'a>(&'a self, data: &'a [u8]) -> Strings<'a> {
        Strings { data, index: self }
    }
}

/// Byte strings: a buffer, and the position of each string in it.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'a> {
    data: &'a [u8],
    index: &'a StringIndex,
}

impl<'a> Strings<'a> {
    /// The number of strings.
    pub fn len(&self) -> usize {
        self.index.starts.len().saturating_sub(1)
    }

    /// Whether there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// String `index`, or `None` beyond the last.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.data.get(self.range(index)?)
    }

    /// Where string `index` is in [`Strings::data`], or `None` beyond the last.
    #[inline]
    pub(crate) fn range(&self, index: usize) -> Option<Range<usize>> {
        let start = *self.index.starts.get(index)?;
        let end = *self.index.starts.get(index + 1)? - self.index.gap;
        Some(start as usize..end as usize)
    }

    /// The buffer.
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// All strings in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let Self { data, index } = *self;
        let gap = index.gap;
        index
            .starts
            .windows(2)
            .map(move |pair| data.get(pair[0] as usize..(pair[1] - gap) as usize).unwrap_or_default())
    }
}

/// Checks that 32-bit offsets can address a buffer of `len` bytes and one more prefix.
fn fits(len: usize) -> Result<(), StringsError> {
    if len > u32::MAX as usize - PREFIX { Err(StringsError::TooLarge { len }) } else { Ok(()) }
}

errors! {
    /// Why a sequence of strings cannot be indexed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum StringsError {
        /// The buffer is larger than 4 GiB.
        TooLarge { len: usize } => "{len} bytes of strings are more than 32-bit offsets can address";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&[u8]; 4] = [b"", b"a", b"\xff\x00", b"What is LoRA?"];

    fn array(big_endian: bool) -> Vec<u8> {
        let mut data = b"head".to_vec();
        for text in TEXTS {
            let len = text.len() as u64;
            data.extend_from_slice(&if big_endian { len.to_be_bytes() } else { len.to_le_bytes() });
            data.extend_from_slice(text);
        }
        data
    }

    #[test]
    fn indexes_both_byte_orders() {
        for big_endian in [false, true] {
            let mut data = array(big_endian);
            let end = data.len();
            data.extend_from_slice(b"tail");
            let index = StringIndex::length_prefixed(&data, 4, TEXTS.len(), big_endian).unwrap();
            assert_eq!(index.end(), end);
            assert_eq!(index.heap_bytes(), 20);
            let strings = index.view(&data);
            assert_eq!(strings.iter().collect::<Vec<_>>(), TEXTS);
            assert_eq!((0..5).map(|i| strings.get(i)).collect::<Vec<_>>()[..4], TEXTS.map(Some));
            assert_eq!((strings.len(), strings.get(4), strings.get(usize::MAX - 1)), (4, None, None));
        }
    }

    #[test]
    fn concatenates() {
        let (data, index) = StringIndex::concatenate(&TEXTS).unwrap();
        assert_eq!(data, TEXTS.concat());
        assert_eq!(index.view(&data).iter().collect::<Vec<_>>(), TEXTS);
        assert_eq!(index.end(), data.len());
    }

    #[test]
    fn empty() {
        for index in [StringIndex::default(), StringIndex::length_prefixed(b"", 0, 0, false).unwrap()] {
            assert!(index.view(b"").is_empty());
            assert_eq!((index.end(), index.view(b"").iter().count(), index.view(b"").get(0)), (0, 0, None));
        }
        assert_eq!(StringIndex::length_prefixed(b"abc", 3, 0, false).unwrap().end(), 3);
    }

    #[test]
    fn a_buffer_that_is_too_short_has_no_string() {
        let (_, index) = StringIndex::concatenate(&TEXTS).unwrap();
        assert_eq!(index.view(b"").get(3), None);
        assert_eq!(index.view(b"").iter().last(), Some(&b""[..]));
    }

    #[test]
    fn absurd_counts_and_lengths() {
        assert_eq!(StringIndex::length_prefixed(&[0; 64], 0, usize::MAX, false), None);
        for count in [0, 1] {
            assert_eq!(StringIndex::length_prefixed(&[0; 64], 1000, count, false), None);
        }
        let mut data = [0xff; 16];
        for len in [u64::MAX, (1 << 30) + 1, 9] {
            data[..8].copy_from_slice(&len.to_le_bytes());
            assert_eq!(StringIndex::length_prefixed(&data, 0, 1, false), None);
        }
        assert_eq!(fits(usize::MAX), Err(StringsError::TooLarge { len: usize::MAX }));
    }
}
