//! A tokenizer from a file, or from the bytes of one.

use std::fs::File;
use std::path::Path;

use super::error::LoadError;
use super::header::{FIRST_READ, read_layout};
use super::metadata::Metadata;
use crate::tokenizer::Tokenizer;

impl Tokenizer {
    /// The tokenizer of a GGUF file. Only its metadata is read, never the weights.
    ///
    /// # Errors
    /// [`LoadError::File`], with the path: the file cannot be read, or as [`Tokenizer::from_bytes`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let open = || match read_layout(File::open(path)?, FIRST_READ)? {
            (bytes, Some(layout)) => layout.over(bytes).tokenizer(),
            (damaged, None) => Self::from_bytes(&damaged),
        };
        open().map_err(|error| LoadError::File(path.to_owned(), Box::new(error)))
    }

    /// The tokenizer of a GGUF file: `bytes` from the first byte of the file to the end of its metadata or beyond.
    ///
    /// # Errors
    /// - [`LoadError::Gguf`] if the bytes are not valid GGUF, a key that the tokenizer needs has the wrong type, or
    ///   there is not enough memory for the metadata.
    /// - [`LoadError::Vocabulary`] if the vocabulary is unknown, incomplete or damaged, or there is not enough memory
    ///   for it.
    ///
    /// # Examples
    /// ```
    /// use ggtok_core::Tokenizer;
    ///
    /// // A file with two keys, written by hand.
    /// fn string(text: &str) -> Vec<u8> {
    ///     [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
    /// }
    /// let texts = ["<unk>", "<s>", "</s>", "▁", "a", "▁a"];
    /// let mut file = [b"GGUF\x03\0\0\0", &0u64.to_le_bytes()[..], &2u64.to_le_bytes()].concat();
    /// file.extend([string("tokenizer.ggml.model"), 8u32.to_le_bytes().into(), string("llama")].concat());
    /// file.extend([string("tokenizer.ggml.tokens"), 9u32.to_le_bytes().into(), 8u32.to_le_bytes().into()].concat());
    /// file.extend((texts.len() as u64).to_le_bytes());
    /// file.extend(texts.map(string).concat());
    ///
    /// let tokenizer = Tokenizer::from_bytes(&file)?;
    /// assert_eq!(tokenizer.encode("aa")?, [1, 5, 4]);
    ///
    /// let error = Tokenizer::from_bytes(&file[..30]).unwrap_err();
    /// assert_eq!(error.to_string(), "the file is too short for its keys (byte 16): expected 2 keys, found 6 bytes");
    /// # Ok::<(), ggtok_core::Error>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        Metadata::read(bytes)?.tokenizer()
    }
}
