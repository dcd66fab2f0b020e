//! The head of a file, which grows until its metadata is complete.
//!
//! The caller brings more bytes as long as they are needed, at least doubling what is there, so that all walks together
//! take O(size of the metadata).

use ggtok_core::gguf::{GgufError, Layout, Metadata};

use crate::failure::Failure;

/// The first bytes of a file.
#[derive(Default)]
pub struct Head {
    bytes: Vec<u8>,
    /// Where the metadata is, if it is complete.
    layout: Option<Layout>,
}

impl Head {
    /// Adds the next bytes of a file of `total` bytes. `Some` is how many bytes are needed at least.
    ///
    /// # Errors
    /// If the bytes are damaged, or do not fit in memory.
    pub fn push(&mut self, bytes: Vec<u8>, total: usize) -> Result<Option<usize>, Failure> {
        if self.bytes.is_empty() {
            self.bytes = bytes;
        } else {
            self.bytes.try_reserve_exact(bytes.len()).map_err(|_| Failure::no_memory())?;
            self.bytes.extend_from_slice(&bytes);
        }
        match Layout::find(&self.bytes, total) {
            Ok(layout) => {
                self.layout = Some(layout);
                Ok(None)
            }
            Err(GgufError { needed: Some(needed), .. }) => Ok(Some(needed)),
            Err(error) => Err(error.into()),
        }
    }

    /// The metadata, without what follows it.
    ///
    /// # Errors
    /// If it is not complete.
    pub fn into_metadata(mut self) -> Result<Metadata<Vec<u8>>, GgufError> {
        let layout = match self.layout {
            Some(layout) => layout,
            None => Layout::find(&self.bytes, self.bytes.len())?,
        };
        self.bytes.truncate(layout.size());
        self.bytes.shrink_to_fit();
        Ok(layout.over(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    /// One key with a string, and weights.
    fn file() -> (Vec<u8>, usize) {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        for part in [&[0; 8], &[1, 0, 0, 0, 0, 0, 0, 0], &[3, 0, 0, 0, 0, 0, 0, 0]] {
            bytes.extend_from_slice(part);
        }
        bytes.extend_from_slice(b"key\x08\0\0\0\x05\0\0\0\0\0\0\0value");
        let size = bytes.len();
        bytes.resize(size + 100, 7);
        (bytes, size)
    }

    #[test]
    fn a_head_grows_until_the_metadata_is_complete() {
        let (bytes, size) = file();
        for first in 0..=bytes.len() {
            let mut head = Head::default();
            let mut at = 0;
            let mut end = first;
            while let Some(needed) = head.push(bytes[at..end].to_vec(), bytes.len()).expect("a sound file") {
                assert!(end < needed && needed <= size, "{first}: {end} {needed}");
                (at, end) = (end, needed);
            }
            assert_eq!(head.into_metadata().expect("complete").data(), &bytes[..size]);
        }
    }

    #[test]
    fn a_cut_file_is_an_error() {
        let (bytes, size) = file();
        for len in 0..size {
            let error = Head::default().push(bytes[..len].to_vec(), len);
            assert!(error.is_err(), "{len}: {error:?}");
        }
        assert!(Head::default().into_metadata().is_err());
    }
}
