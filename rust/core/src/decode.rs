//! Ids back to text: the joined [`pieces`] of the tokens, without the space that encoding put in front.
//!
//! With [`DecodeOptions::clean_spaces`], if the vocabulary asks for it, [`spaces`] then removes some before English
//! punctuation.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::detokenize`. Time and space: O(ids + length of the
//! output).
//!
//! Deviations: (1) without `clean_spaces`, no spaces are cleaned up, so that code comes back unchanged; (2) nor is the
//! space that encoding put in front kept after a BOS; and those of [`pieces`].

mod order;
mod pieces;
pub(crate) mod spaces;

pub use order::PieceOrder;
pub use pieces::TokenPieces;

use crate::error::DecodeError;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::Vocabulary;
use crate::work::memory::append;
use spaces::Spaces;

/// What a decoded text contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct DecodeOptions {
    /// Remove BOS and EOS if encoding adds them.
    pub remove_special: bool,
    /// Write control and unknown tokens out.
    pub unparse_special: bool,
    /// Do exactly what `llama_detokenize` does: remove spaces before English punctuation if the vocabulary asks for it
    /// ([`Settings::clean_spaces`](crate::vocab::Settings::clean_spaces)), and keep the space that encoding puts after
    /// BOS.
    pub clean_spaces: bool,
}

setters!(DecodeOptions: remove_special(remove_special: bool), unparse_special(unparse_special: bool),
    clean_spaces(clean_spaces: bool));

/// Appends the text that `ids` stand for.
///
/// # Errors
/// [`DecodeError::UnknownId`]: an id is not in the vocabulary.
pub(crate) fn detokenize(
    vocabulary: &Vocabulary,
    pieces: &TokenPieces,
    mut ids: &[TokenId],
    options: DecodeOptions,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let Some(&first) = ids.first() else { return Ok(()) };
    let (skips_first, drops_space) = opening(vocabulary, pieces, options, first)?;
    if skips_first {
        ids = &ids[1..];
    }
    if ids.last().is_some_and(|&id| is_removed_eos(vocabulary, options, id)) {
        ids = &ids[..ids.len() - 1];
    }

    let mut raw = Vec::new();
    let cleans = options.clean_spaces && vocabulary.settings().clean_spaces;
    let text = if cleans { &mut raw } else { &mut *out };
    if let Some((&first, rest)) = ids.split_first().filter(|_| drops_space)
        && let Some(piece) = pieces.piece(first, options.unparse_special)?.strip_prefix(b" ")
    {
        append(text, piece);
        ids = rest;
    }
    pieces.concatenate(ids, options.unparse_special, text)?;
    if cleans {
        let mut spaces = Spaces::default();
        spaces.push(&raw, false, out);
        spaces.flush(out);
    }
    Ok(())
}

/// How a text opens, given its first id: whether this id is left out (a BOS that is removed or not shown), and whether
/// the first piece that is left loses the space that encoding may have added.
///
/// # Errors
/// [`DecodeError::UnknownId`]: the id is not in the vocabulary.
pub(crate) fn opening(
    vocabulary: &Vocabulary,
    pieces: &TokenPieces,
    options: DecodeOptions,
    first: TokenId,
) -> Result<(bool, bool), DecodeError> {
    let settings = vocabulary.settings();
    // As in llama.cpp, without a BOS the null token stands for it.
    let is_bos = first == vocabulary.special().bos.unwrap_or(NULL_TOKEN);
    let removes_bos = is_bos && options.remove_special && settings.add_bos;
    let drops_space = settings.add_space_prefix && !(removes_bos && options.clean_spaces);
    let may_hide = is_bos && !options.clean_spaces;
    Ok((removes_bos || may_hide && pieces.piece(first, options.unparse_special)?.is_empty(), drops_space))
}

/// Whether `id`, the last one of a text, is an EOS that is removed.
#[inline]
pub(crate) fn is_removed_eos(vocabulary: &Vocabulary, options: DecodeOptions, id: TokenId) -> bool {
    let removes = options.remove_special && vocabulary.settings().add_eos;
    removes && id == vocabulary.special().eos.unwrap_or(NULL_TOKEN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::VocabularyError;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;

    pub(super) fn load(model: &str, texts: &[&[u8]]) -> Result<(Vocabulary, TokenPieces), VocabularyError> {
        let (data, index) = StringIndex::concatenate(texts).unwrap();
        let tokens = Some(index.view(&data));
        let merges = Some(index.view(&data));
        let definition = Definition { model, pre: Some("default"), tokens, merges, ..Definition::default() };
        let vocabulary = Vocabulary::declare(&definition)?;
        let pieces = TokenPieces::new(&vocabulary)?;
        Ok((vocabulary, pieces))
    }
}
