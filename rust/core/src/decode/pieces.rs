//! The bytes that each token stands for: all token pieces of a vocabulary end to end, with an index.
//!
//! Joining pieces takes two passes: the first adds up their lengths, the second copies. A piece of up to [`BLOCK`]
//! bytes is copied as a whole block, because a copy of constant length is just a load and a store.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::token_to_piece`, `token_to_byte` and
//! `llama_decode_text`. Time: O(total length of the texts) to build, O(ids + length of the output) to join. The worst
//! case to build is a text of many characters that do not spell bytes: the description of each contains the whole text,
//! so the piece grows quadratically. [`MAX_BYTES`] bounds it. Space: the pieces, and 8 bytes per token.
//!
//! Deviations:
//! 1. An id that does not exist is an error; llama.cpp ends the process.
//! 2. A byte token in a WordPiece vocabulary is an error; llama.cpp aborts. In other vocabularies a byte token whose
//!    text is too short is an error in both.

use std::io::Write;

use crate::error::{DecodeError, VocabularyError};
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::spelling::byte_level::unspell;
use crate::vocabulary::spelling::{
    BEYOND_UNICODE_LEAD, beyond_unicode, byte_of, leading_byte_of, unescape_rwkv, unescape_spaces,
};
use crate::vocabulary::{Kind, Vocabulary};
use crate::work::interrupt::Ticker;
use crate::work::memory::{append, push, reserve, with_capacity};

/// A short piece is copied as this many bytes.
const BLOCK: usize = 16;

/// The maximum total length of the pieces, far more than any real vocabulary has.
const MAX_BYTES: usize = 1 << 28;

/// The piece of every token in a vocabulary.
#[derive(Debug, Clone, Default)]
pub struct TokenPieces {
    /// The pieces end to end, then [`BLOCK`] bytes of padding.
    bytes: Vec<u8>,
    /// By id; none in a vocabulary without texts, whose pieces are empty.
    ranges: Vec<PieceRange>,
    /// How many tokens there are.
    size: usize,
}

/// Where a piece is in [`TokenPieces::bytes`], and whether it is shown only if asked for.
#[derive(Debug, Clone, Copy)]
struct PieceRange {
    start: u32,
    /// The length in the upper 31 bits; the lowest bit is set for control and unknown tokens.
    len_and_special: u32,
}

heap_bytes!(TokenPieces: bytes, ranges; PieceRange);

impl PieceRange {
    /// The number of bytes shown: 0 for a control or unknown token unless `special`.
    fn len(self, special: bool) -> usize {
        if !special && self.len_and_special & 1 == 1 { 0 } else { (self.len_and_special >> 1) as usize }
    }
}

impl TokenPieces {
    /// Builds the piece of every token.
    ///
    /// # Errors
    /// - [`VocabularyError::ByteToken`]: a byte token's text is too short to name its byte.
    /// - [`VocabularyError::WordPieceByte`]: there is a byte token, and the vocabulary is WordPiece.
    /// - [`VocabularyError::BeyondUnicode`]: a byte-level text has a character beyond U+10FFFF.
    /// - [`VocabularyError::TooLarge`]: the pieces exceed 256 MiB in total.
    pub fn new(vocabulary: &Vocabulary) -> Result<Self, VocabularyError> {
        let num_texts = vocabulary.texts().len();
        let mut bytes = with_capacity(num_texts * 8 + BLOCK);
        let mut ranges = with_capacity(num_texts);
        for id in 0..num_texts as TokenId {
            let start = bytes.len();
            append_piece(vocabulary, id, &mut bytes)?;
            check_size(&bytes)?;

            let attributes = vocabulary.attributes(id);
            let special = attributes.is_control() || attributes.is_unknown();
            let len_and_special = ((bytes.len() - start) as u32) << 1 | u32::from(special);
            ranges.push(PieceRange { start: start as u32, len_and_special });
        }
        append(&mut bytes, &[0; BLOCK]);
        Ok(Self { bytes, ranges, size: vocabulary.len() })
    }

    /// Whether [`TokenPieces::new`] is sure to succeed, judged by the lengths and bytes of the texts. If this is false,
    /// it may still succeed.
    pub fn are_sure(vocabulary: &Vocabulary) -> bool {
        let texts = vocabulary.texts();
        let is_byte_level = is_byte_level(vocabulary);
        let mut size = 0_usize;
        for (text, id) in texts.iter().zip(0..) {
            if (vocabulary.kind() == Kind::WordPiece || text.len() < 3) && vocabulary.attributes(id).is_byte() {
                return false;
            }
            // At worst each byte is a character whose description contains the whole text, or the piece is the id.
            let max_bytes_per_byte = if is_byte_level { text.len() + 32 } else { 1 };
            size = size.saturating_add(text.len().saturating_mul(max_bytes_per_byte)).saturating_add(8);
        }
        size <= MAX_BYTES && (!is_byte_level || texts.highest_byte() < BEYOND_UNICODE_LEAD)
    }

    /// The piece of a token; empty for control and unknown tokens unless `special`.
    ///
    /// # Errors
    /// [`DecodeError::UnknownId`]: the token does not exist.
    pub fn piece(&self, id: TokenId, special: bool) -> Result<&[u8], DecodeError> {
        let range = self.range(id)?;
        Ok(&self.bytes[range.start as usize..][..range.len(special)])
    }

    #[inline]
    fn range(&self, id: TokenId) -> Result<PieceRange, DecodeError> {
        match self.ranges.get(id as usize) {
            Some(&range) if id >= 0 => Ok(range),
            _ if id >= 0 && (id as usize) < self.size => Ok(PieceRange { start: 0, len_and_special: 0 }),
            _ => Err(DecodeError::UnknownId { id: id.into(), size: self.size }),
        }
    }

    /// Appends the pieces of `ids`.
    pub(super) fn concatenate(&self, ids: &[TokenId], special: bool, text: &mut Vec<u8>) -> Result<(), DecodeError> {
        let mut len = 0;
        for &id in ids {
            len += self.range(id)?.len(special);
        }

        let mut end = text.len();
        reserve(text, len + BLOCK);
        text.resize(end + len + BLOCK, 0);
        let mut ticker = Ticker::default();
        for &id in ids {
            ticker.tick();
            let range = self.range(id)?;
            let start = range.start as usize;
            let len = range.len(special);
            let copied = len.max(BLOCK);
            if copied == BLOCK {
                text[end..end + BLOCK].copy_from_slice(&self.bytes[start..start + BLOCK]);
            } else {
                text[end..end + len].copy_from_slice(&self.bytes[start..start + len]);
            }
            end += len;
        }

        text.truncate(end);
        Ok(())
    }
}

/// Whether normal tokens spell bytes as GPT-2's characters.
fn is_byte_level(vocabulary: &Vocabulary) -> bool {
    vocabulary.kind() == Kind::Bpe && !vocabulary.settings().escape_whitespaces
}

/// Appends the piece of a token, control and unknown tokens included.
fn append_piece(vocabulary: &Vocabulary, id: TokenId, out: &mut Vec<u8>) -> Result<(), VocabularyError> {
    let text = vocabulary.text(id);
    let attributes = vocabulary.attributes(id);
    // Enough for every piece, except for descriptions of characters.
    reserve(out, text.len() + 8);
    match vocabulary.kind() {
        Kind::None => {}
        Kind::Rwkv => unescape_rwkv(text, out),
        Kind::Plamo2 => match byte_of(text).filter(|_| attributes.is_byte()) {
            Some(byte) => out.push(byte),
            None => out.extend_from_slice(text),
        },
        // Writing to a vector cannot fail.
        Kind::Test => {
            let _ = write!(out, "{id:x}");
        }
        kind @ (Kind::Spm | Kind::Bpe | Kind::WordPiece | Kind::Unigram) => {
            if attributes.is_unknown() || attributes.is_control() || attributes.is_user_defined() {
                out.extend_from_slice(text);
            } else if attributes.is_normal() && is_byte_level(vocabulary) {
                if let Some(offset) = beyond_unicode(text) {
                    return Err(VocabularyError::BeyondUnicode { id, offset });
                }
                append_unspelled(text, out)?;
            } else if attributes.is_normal() {
                unescape_spaces(text, out);
            } else if attributes.is_byte() {
                if kind == Kind::WordPiece {
                    return Err(VocabularyError::WordPieceByte { id });
                }
                out.push(leading_byte_of(text).ok_or_else(|| VocabularyError::ByteToken { id, text: text.to_vec() })?);
            }
        }
    }
    Ok(())
}

/// Appends the bytes that a byte-level text spells. A character that spells none becomes a description that contains
/// the whole text.
fn append_unspelled(text: &[u8], out: &mut Vec<u8>) -> Result<(), VocabularyError> {
    for (code_point, _) in utf8::code_points(text) {
        if let Some(byte) = unspell(code_point) {
            push(out, byte);
            continue;
        }
        reserve(out, text.len() + 32);
        out.extend_from_slice(b"[UNK_BYTE_0x");
        for byte in utf8::encode(code_point, &mut [0; 4]) {
            let _ = write!(out, "{byte:02x}");
        }
        out.extend_from_slice(text);
        out.push(b']');
        check_size(out)?;
    }
    Ok(())
}

fn check_size(bytes: &[u8]) -> Result<(), VocabularyError> {
    if bytes.len() > MAX_BYTES {
        return Err(VocabularyError::TooLarge { what: "text of all tokens" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::tests::load;

    #[test]
    fn only_byte_level_texts_can_be_beyond_unicode() -> Result<(), VocabularyError> {
        for (model, is_sure) in [("gpt2", false), ("llama", true), ("t5", true)] {
            let (vocabulary, _) = load(model, &["\u{10FFFF}".as_bytes(), b"a", b"b"])?;
            assert_eq!(TokenPieces::are_sure(&vocabulary), is_sure, "{model}");
        }
        Ok(())
    }
}
