//! Reads as much of a file as its metadata needs.
//!
//! The file is read, not mapped, because a mapped file that shrinks kills the process. Each read doubles the buffer
//! unless the walk asks for more, so the walks together take O(size of the metadata).

use std::io::{self, Read};

use super::error::GgufError;
use super::metadata::Layout;
use super::value::MAX_BYTES;
use crate::work::large_vec::ask_for_huge_pages;

/// Larger than nearly all metadata, and takes a few milliseconds to read.
pub(super) const FIRST_READ: usize = 1 << 24;

/// Reads a file up to the end of its metadata and little more; never the weights.
///
/// A damaged file is not an error here: [`Tokenizer::from_bytes`](crate::Tokenizer::from_bytes) says what is wrong with the bytes.
///
/// # Errors
/// Those of the reader.
pub fn read_header(reader: impl Read) -> io::Result<Vec<u8>> {
    Ok(read_layout(reader, FIRST_READ)?.0)
}

/// As [`read_header`]. Returns where the metadata is too, unless the file is damaged.
pub(super) fn read_layout(mut reader: impl Read, first_read: usize) -> io::Result<(Vec<u8>, Option<Layout>)> {
    let mut bytes = Vec::<u8>::new();
    let mut goal = first_read;
    loop {
        let wanted = goal - bytes.len();
        // Without memory for all of it, the buffer grows as the file is read.
        if bytes.try_reserve_exact(wanted).is_ok() {
            ask_for_huge_pages(bytes.as_ptr().addr(), bytes.capacity());
        }
        let read = reader.by_ref().take(wanted as u64).read_to_end(&mut bytes)?;
        match Layout::find(&bytes, usize::MAX) {
            Ok(layout) => return Ok((bytes, Some(layout))),
            Err(GgufError { needed: Some(end), .. }) if read == wanted => {
                goal = end.max(2 * bytes.len()).min(MAX_BYTES);
            }
            Err(_) => return Ok((bytes, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read};

    use super::{read_header, read_layout};
    use crate::gguf::Metadata;

    /// A file with `num_keys` strings, and the weights after them.
    fn file(num_keys: usize, weights: usize) -> (Vec<u8>, usize) {
        let mut bytes = [b"GGUF\x03\0\0\0", &[0; 8][..], &num_keys.to_le_bytes()].concat();
        for number in 0..num_keys {
            let key = format!("key {number:04}");
            for part in [&key.len().to_le_bytes(), key.as_bytes(), &[8, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0], b"value"] {
                bytes.extend_from_slice(part);
            }
        }
        let size = bytes.len();
        bytes.resize(size + weights, 0);
        (bytes, size)
    }

    #[test]
    fn the_header_of_a_large_file_is_read_and_little_more() -> io::Result<()> {
        let (bytes, size) = file(300, 1 << 20);
        for first_read in [1, 7, 100, size - 1, size, size + 1] {
            let mut reader = Cursor::new(&bytes);
            let (header, layout) = read_layout(&mut reader, first_read)?;
            assert_eq!(layout.map(|layout| layout.size()), Some(size), "{first_read}");
            assert_eq!(Metadata::read(&header).map(|metadata| metadata.layout().size()), Ok(size), "{first_read}");
            assert!(reader.position() <= 2 * size as u64 + 16, "{first_read}: {}", reader.position());
        }
        assert_eq!(read_header(&*bytes)?.len(), bytes.len());
        Ok(())
    }

    #[test]
    fn a_cut_file_is_read_to_its_end_and_a_damaged_one_is_not() -> io::Result<()> {
        let (bytes, size) = file(3, 0);
        for len in 0..size {
            let (read, layout) = read_layout(&bytes[..len], 10)?;
            assert_eq!((&read[..], layout.is_some()), (&bytes[..len], false));
        }
        let mut endless = b"GGUX".chain(io::repeat(0));
        assert_eq!(read_layout(&mut endless, 10)?.0.len(), 10);
        // More keys than fit in 4 GiB.
        let mut endless = Cursor::new([b"GGUF\x03\0\0\0", &[0; 8][..], &[255; 8]].concat()).chain(io::repeat(0));
        assert_eq!(read_layout(&mut endless, 24)?.0.len(), 24);
        Ok(())
    }
}
