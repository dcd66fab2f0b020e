//! Ids back to text: the joined [`pieces`] of the tokens, without the space that encoding put in front.
//!
//! With [`DecodeOptions::clean_spaces`], if the vocabulary asks for it, three passes then remove spaces before English
//! punctuation, each from the output of the previous one.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::detokenize`. Time and space: O(ids + length of the
//! output).
//!
//! Deviations: (1) without `clean_spaces`, no spaces are cleaned up, so that code comes back unchanged; (2) nor is the
//! space that encoding put in front kept after a BOS; and those of [`pieces`].

mod order;
mod pieces;

pub use order::PieceOrder;
pub use pieces::TokenPieces;

use memchr::{memchr_iter, memchr2_iter};

use crate::error::DecodeError;
use crate::token::{NULL_TOKEN, TokenId};
use crate::vocabulary::Vocabulary;

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

impl DecodeOptions {
    /// Sets [`DecodeOptions::remove_special`].
    pub fn remove_special(self, remove_special: bool) -> Self {
        Self { remove_special, ..self }
    }

    /// Sets [`DecodeOptions::unparse_special`].
    pub fn unparse_special(self, unparse_special: bool) -> Self {
        Self { unparse_special, ..self }
    }

    /// Sets [`DecodeOptions::clean_spaces`].
    pub fn clean_spaces(self, clean_spaces: bool) -> Self {
        Self { clean_spaces, ..self }
    }
}

/// The text that `ids` stand for.
///
/// # Errors
/// [`DecodeError::UnknownId`]: an id is not in the vocabulary.
pub fn detokenize(
    vocabulary: &Vocabulary,
    pieces: &TokenPieces,
    mut ids: &[TokenId],
    options: DecodeOptions,
) -> Result<Vec<u8>, DecodeError> {
    let Some(&first) = ids.first() else { return Ok(Vec::new()) };
    let (skips_first, drops_space) = opening(vocabulary, pieces, options, first)?;
    if skips_first {
        ids = &ids[1..];
    }
    if ids.last().is_some_and(|&id| is_removed_eos(vocabulary, options, id)) {
        ids = &ids[..ids.len() - 1];
    }
    let mut text = pieces.concatenate(ids, options.unparse_special)?;
    if let Some(&first) = ids.first()
        && drops_space
        && pieces.piece(first, options.unparse_special)?.starts_with(b" ")
    {
        text.remove(0);
    }
    if options.clean_spaces && vocabulary.settings().clean_spaces {
        clean_spaces(&mut text);
    }
    Ok(text)
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

/// Removes spaces before `.`, `,`, `!` and `?`, then those around a lone apostrophe, then those before the contractions
/// `'s`, `'m`, `'re` and `'ve`.
pub(crate) fn clean_spaces(text: &mut Vec<u8>) {
    let space_before = |text: &[u8], at: usize| at > 0 && text[at - 1] == b' ';

    let before_marks: [fn(&[u8]) -> memchr::Memchr2<'_>; 2] =
        [|text| memchr2_iter(b'.', b',', text), |text| memchr2_iter(b'!', b'?', text)];
    for marks in before_marks {
        let spaces = marks(text).filter(|&at| space_before(text, at)).map(|at| at - 1).collect();
        delete(text, spaces);
    }

    let mut spaces = Vec::new();
    // Below this place, the space before an apostrophe has already been removed as the one after an earlier apostrophe.
    let mut next = 0;
    for at in memchr_iter(b'\'', text) {
        if at >= next && space_before(text, at) && text.get(at + 1) == Some(&b' ') {
            spaces.extend([at - 1, at + 1]);
            next = at + 3;
        }
    }
    delete(text, spaces);

    let contracted = |rest: &[u8]| matches!(rest, [b's' | b'm', ..] | [b'r' | b'v', b'e', ..]);
    let apostrophes = memchr_iter(b'\'', text).filter(|&at| space_before(text, at) && contracted(&text[at + 1..]));
    let spaces = apostrophes.map(|at| at - 1).collect();
    delete(text, spaces);
}

/// Deletes the bytes of a text at the ascending `places`.
fn delete(text: &mut Vec<u8>, places: Vec<usize>) {
    let Some(&first) = places.first() else { return };
    let mut end = first;
    let nexts = places.iter().skip(1).copied().chain([text.len()]);
    for (&place, next) in places.iter().zip(nexts) {
        text.copy_within(place + 1..next, end);
        end += next - (place + 1);
    }
    text.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::VocabularyError;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;
    use proptest::prelude::*;

    pub(super) fn load(model: &str, texts: &[&[u8]]) -> Result<(Vocabulary, TokenPieces), VocabularyError> {
        let (data, index) = StringIndex::concatenate(texts).unwrap();
        let (tokens, merges) = (Some(index.view(&data)), Some(index.view(&data)));
        let definition = Definition { model, pre: Some("default"), tokens, merges, ..Definition::default() };
        let vocabulary = Vocabulary::declare(&definition)?;
        let pieces = TokenPieces::new(&vocabulary)?;
        Ok((vocabulary, pieces))
    }

    /// llama.cpp's three passes, byte by byte. Each byte is compared with the previous one in the pass's input.
    fn naive_clean_spaces(text: &[u8]) -> Vec<u8> {
        let pass = |text: Vec<u8>, step: fn(&[u8], usize) -> (bool, bool)| {
            let (mut out, mut before, mut at) = (Vec::new(), b'\0', 0);
            while at < text.len() {
                let (drop_before, drop_after) = if before == b' ' { step(&text, at) } else { (false, false) };
                if drop_before {
                    out.pop();
                }
                out.push(text[at]);
                before = if drop_after { b'\0' } else { text[at] };
                at += 1 + usize::from(drop_after);
            }
            out
        };
        let text = pass(text.to_vec(), |text, at| (b"?!.,".contains(&text[at]), false));
        let text = pass(text, |text, at| {
            let alone = text[at] == b'\'' && text.get(at + 1) == Some(&b' ');
            (alone, alone)
        });
        pass(text, |text, at| {
            let rest = &text[at..];
            (["'s", "'m", "'re", "'ve"].iter().any(|end| rest.starts_with(end.as_bytes())), false)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]

        #[test]
        fn spaces_are_cleaned_up_as_by_the_naive_loops(text in "[ '?!.,smrvetdl]{0,24}") {
            let mut cleaned = text.clone().into_bytes();
            clean_spaces(&mut cleaned);
            prop_assert_eq!(cleaned, naive_clean_spaces(text.as_bytes()));
        }
    }
}
