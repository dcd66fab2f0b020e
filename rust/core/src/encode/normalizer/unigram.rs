//! The normalizer of Unigram vocabularies: replaces characters and merges whitespace, except in user-defined tokens.
//!
//! The input is read in chunks. Each chunk is the first of these that applies: bytes that start a user-defined token,
//! even if the rest of the token is missing; the longest prefix in the [`Charsmap`], which is replaced; one well-formed
//! UTF-8 sequence; one byte, which is replaced with U+FFFD. A run of characters that neither of the first two rules can
//! affect is one chunk, without look-ups.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm_session::normalize` and `normalize_prefix` (llama-vocab.cpp).
//!
//! Deviations: none beyond those of [`Charsmap`]. llama.cpp could add a space after the text instead of before it, but
//! no file can ask for that.
//!
//! Time: O(n k) for n bytes and keys of at most k bytes, if every look-up walks most of a key and then fails. Space:
//! the normalized text, and where each of its bytes comes from.

use std::ops::Range;

use crate::encode::normalizer::charsmap::{Charsmap, KeyCharacters};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::error::VocabularyError;
use crate::lookup::trie::DoubleArray;
use crate::text::unicode::utf8;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::{ESCAPED_SPACE, ESCAPED_SPACE_CODE_POINT};
use crate::work::interrupt::Ticker;

/// The characters that separate words in a text.
pub(crate) const WHITESPACE: [u8; 4] = *b" \t\n\r";

/// Roughly the most bytes that one chunk reads. Each chunk ends with a check for an interrupt.
const KEPT_AT_ONCE: usize = if cfg!(test) { 3 } else { 1 << 16 };

const REPLACEMENT_CHARACTER: &[u8] = "\u{FFFD}".as_bytes();

/// The normalizer of one vocabulary.
#[derive(Debug)]
pub(crate) struct UnigramNormalizer {
    /// Texts of the user-defined tokens.
    user_defined: DoubleArray,
    charsmap: Option<Charsmap>,
    /// The characters that the map keeps, except `▁`; `None` if some keys are not whole characters.
    pub(crate) characters: Option<KeyCharacters>,
    /// Whether each byte is ASCII and kept, whether ASCII or the end of the text is next.
    kept: [bool; 256],
    prepend_space: bool,
    merge_spaces: bool,
}

heap_bytes!(UnigramNormalizer: user_defined, charsmap, characters);

/// The position in an input, and the state that the next chunk needs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NormalizerProgress {
    in_word: bool,
    /// Whether the first word is yet to come and gets a space before it.
    prepend_space: bool,
    /// The end of the input that the output stands for so far. An added space stands for what was dropped before it.
    covered: usize,
}

/// A stretch of the input.
struct Chunk<'a> {
    /// Its normal form, with whitespace not yet merged or escaped.
    bytes: &'a [u8],
    /// Its position in the input.
    origin: Range<usize>,
    /// Whether `bytes` stands for the chunk as a whole rather than byte for byte.
    is_replaced: bool,
}

impl Chunk<'_> {
    /// The position in the input that a range of `bytes` stands for.
    fn origin(&self, bytes: Range<usize>) -> Range<usize> {
        if self.is_replaced {
            self.origin.clone()
        } else {
            self.origin.start + bytes.start..self.origin.start + bytes.end
        }
    }
}

impl UnigramNormalizer {
    /// Reads the vocabulary's settings and character map.
    ///
    /// # Errors
    ///
    /// [`VocabularyError::Charsmap`] if the character map is damaged.
    pub(crate) fn new(vocabulary: &Vocabulary) -> Result<Self, VocabularyError> {
        let settings = vocabulary.settings();
        let ids = (0..).take(vocabulary.len()).filter(|&id| vocabulary.attributes(id).is_user_defined());
        let user_defined = DoubleArray::build(ids.map(|id| (vocabulary.text(id), 0)))?;
        let charsmap = match vocabulary.charsmap() {
            [] => None,
            bytes => Some(Charsmap::new(bytes)?),
        };
        let characters = charsmap.as_ref().map_or(Some(KeyCharacters::without_keys()), Charsmap::characters);
        let characters = characters.map(|characters| characters.except(ESCAPED_SPACE_CODE_POINT));
        let kept = std::array::from_fn(|byte| {
            let keeps = |all: &KeyCharacters| (0..0x80).all(|next| all.keeps(byte as u32, Some(next)));
            byte < 0x80 && user_defined.longest_walk(&[byte as u8]) == 0 && characters.as_ref().is_some_and(keeps)
        });
        Ok(Self {
            user_defined,
            charsmap,
            characters,
            kept,
            prepend_space: settings.add_space_prefix,
            merge_spaces: settings.remove_extra_whitespaces,
        })
    }

    /// Whether the normal form of each word is the same as if the word were alone:
    /// - valid UTF-8 stays valid;
    /// - spaces are escaped and merged, with one before each word, and no other character becomes an escaped space;
    /// - among these, the four characters of [`WHITESPACE`] become spaces and the other printable ASCII characters are
    ///   kept.
    pub(crate) fn normalizes_words_alone(&self) -> bool {
        let is_space = |byte: u8| self.charsmap.as_ref().map_or(byte == b' ', |charsmap| charsmap.is_space(byte));
        self.user_defined.is_empty()
            && self.merge_spaces
            && self.charsmap.as_ref().is_none_or(|map| map.writes_utf8 && !map.may_write(ESCAPED_SPACE))
            && (b'!'..=b'~').all(|byte| self.kept[usize::from(byte)])
            && WHITESPACE.into_iter().all(is_space)
    }

    /// The most characters that replace a byte of valid UTF-8, not counting an added space.
    pub(crate) fn max_expansion(&self) -> usize {
        self.charsmap.as_ref().map_or(1, Charsmap::max_expansion)
    }

    /// The end of the character or the key of the map at `at`. Expects no user-defined tokens.
    pub(crate) fn chunk_end(&self, input: &[u8], at: usize) -> usize {
        let rest = &input[at..];
        let replaced = self.charsmap.as_ref().and_then(|charsmap| charsmap.longest_prefix(rest));
        at + replaced.map_or_else(|| utf8::decode(rest, 0).map_or(1, |character| character.1), |(len, _)| len)
    }

    /// The same for an unfinished input; `None` if a key may continue beyond it.
    pub(crate) fn settled_chunk_end(&self, input: &[u8], at: usize) -> Option<usize> {
        let rest = &input[at..];
        let is_settled = self.charsmap.as_ref().is_none_or(|charsmap| charsmap.longest_walk(rest) < rest.len());
        is_settled.then(|| self.chunk_end(input, at))
    }

    /// Appends the normal form of `input` to `out`. If `in_word`, the input continues a word or an earlier text and
    /// gets no space in front.
    pub(crate) fn normalize(&self, input: &[u8], in_word: bool, out: &mut Rewritten<'_>) {
        let prepend_space = self.prepend_space && !in_word;
        self.normalize_part(input, true, &mut NormalizerProgress { in_word, prepend_space, covered: 0 }, out);
    }

    /// The state at the start of an input.
    pub(crate) fn start(&self) -> NormalizerProgress {
        NormalizerProgress { prepend_space: self.prepend_space, ..NormalizerProgress::default() }
    }

    /// The state inside a word, or at a space.
    pub(crate) fn in_word() -> NormalizerProgress {
        NormalizerProgress { in_word: true, ..NormalizerProgress::default() }
    }

    /// Appends the normal form of the rest of an input if `is_end`, and otherwise the settled part of an unfinished
    /// one. Returns how many bytes of the input it took.
    ///
    /// A chunk is settled if no key of the map and no user-defined token can continue beyond the known input. The last
    /// character may start a key, so it waits; whether the characters before it are kept is already decided.
    pub(crate) fn normalize_part(
        &self,
        input: &[u8],
        is_end: bool,
        progress: &mut NormalizerProgress,
        out: &mut Rewritten<'_>,
    ) -> usize {
        let last_start = || utf8::floor(input, utf8::complete_len(input).saturating_sub(1));
        let end = if is_end { input.len() } else { last_start() };
        let mut at = 0;
        let mut ticker = Ticker::default();
        while at < end {
            let mut chunk = self.chunk(input, at);
            if !is_end {
                let rest = &input[at..];
                let walked = self.user_defined.longest_walk(rest);
                let in_map = self.charsmap.as_ref().map_or(0, |charsmap| charsmap.longest_walk(rest));
                if walked.max(in_map) == rest.len() {
                    break;
                }
                // A run of kept characters may be cut between any two of them.
                if walked == 0 && !chunk.is_replaced && chunk.origin.end > end {
                    chunk.origin.end = end;
                    chunk.bytes = &rest[..end - at];
                }
            }
            at = chunk.origin.end;
            self.push_chunk(&chunk, progress, &mut ticker, out);
        }
        at
    }

    /// Appends the normal form of one chunk.
    #[inline(always)]
    fn push_chunk(
        &self,
        chunk: &Chunk<'_>,
        NormalizerProgress { in_word, prepend_space, covered }: &mut NormalizerProgress,
        ticker: &mut Ticker,
        out: &mut Rewritten<'_>,
    ) {
        let mut done = 0;
        while done < chunk.bytes.len() {
            ticker.tick();
            let rest = &chunk.bytes[done..];
            let word_len = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
            if word_len == 0 {
                *in_word = false;
                done += 1;
                if !self.merge_spaces {
                    let origin = chunk.origin(done - 1..done);
                    *covered = origin.end;
                    out.push(ESCAPED_SPACE, origin);
                }
                continue;
            }

            let origin = chunk.origin(done..done + word_len);
            if !*in_word && (*prepend_space || self.merge_spaces) {
                let gap = if *covered > origin.start { origin.clone() } else { *covered..origin.start };
                out.push(ESCAPED_SPACE, gap);
                *prepend_space = false;
            }
            *in_word = true;
            *covered = origin.end;
            if chunk.is_replaced {
                out.push(&rest[..word_len], origin)
            } else {
                out.push_kept(&rest[..word_len], origin.start)
            }
            done += word_len;
        }
    }

    /// The chunk at `at`, which is inside `input`.
    #[inline]
    fn chunk<'a>(&'a self, input: &'a [u8], at: usize) -> Chunk<'a> {
        let rest = &input[at..];
        let unchanged = |len| Chunk { bytes: &rest[..len], origin: at..at + len, is_replaced: false };
        let replaced = |bytes, len| Chunk { bytes, origin: at..at + len, is_replaced: true };

        let readable = rest.len().min(KEPT_AT_ONCE);
        let mut kept = rest[..readable].iter().position(|&byte| !self.kept[usize::from(byte)]).unwrap_or(readable);
        if rest.get(kept).is_some_and(|next| !next.is_ascii()) {
            kept = kept.saturating_sub(1);
        }
        if let Some(characters) = self.characters.as_ref().filter(|_| kept == 0 && self.user_defined.is_empty()) {
            let mut next = utf8::decode(rest, 0);
            while let Some((character, len)) = next.filter(|_| kept < KEPT_AT_ONCE) {
                next = utf8::decode(rest, kept + len);
                if character < 0x80 || !characters.keeps(character, next.map(|next| next.0)) {
                    break;
                }
                kept += len;
            }
        }
        if kept > 0 {
            return unchanged(kept);
        }

        let walked = self.user_defined.longest_walk(rest);
        if walked > 0 {
            return unchanged(walked);
        }
        if let Some((len, replacement)) = self.charsmap.as_ref().and_then(|charsmap| charsmap.longest_prefix(rest)) {
            return replaced(replacement, len);
        }
        match utf8::decode(input, at) {
            Some((_, len)) => unchanged(len),
            None => replaced(REPLACEMENT_CHARACTER, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normalizer(user_defined: &[&str]) -> UnigramNormalizer {
        UnigramNormalizer {
            user_defined: DoubleArray::build(user_defined.iter().map(|text| (text.as_bytes(), 0)))
                .expect("a small trie"),
            charsmap: None,
            characters: None,
            kept: std::array::from_fn(|byte| {
                byte < 0x80 && user_defined.iter().all(|text| text.as_bytes().first() != Some(&(byte as u8)))
            }),
            prepend_space: false,
            merge_spaces: false,
        }
    }

    proptest! {
        #[test]
        fn reading_many_characters_at_once_changes_nothing(
            input in "[a-d \u{300}é]{0,20}",
            merge_spaces: bool,
            prepend_space: bool,
            with_map: bool,
        ) {
            let mut normalizer = UnigramNormalizer { merge_spaces, prepend_space, ..normalizer(&["dab"]) };
            if with_map {
                let map = Charsmap::of(&[("a\u{300}", "à"), ("b", " c"), ("cd", "")]);
                let characters = map.characters().expect("whole characters");
                let keeps = |byte: u32| (0..0x80).all(|next| characters.keeps(byte, Some(next)));
                normalizer.kept = std::array::from_fn(|byte| normalizer.kept[byte] && keeps(byte as u32));
                (normalizer.charsmap, normalizer.characters) = (Some(map), Some(characters));
            }
            let mut out = Rewritten::empty(0, true);
            let mut expected = Rewritten::empty(0, true);
            normalizer.normalize(input.as_bytes(), false, &mut out);
            (normalizer.kept, normalizer.characters) = ([false; 256], None);
            normalizer.normalize(input.as_bytes(), false, &mut expected);
            prop_assert_eq!(&out.text, &expected.text);
            for at in 0..out.text.len() {
                prop_assert_eq!(out.span(at..at + 1), expected.span(at..at + 1));
            }
        }
    }
}
