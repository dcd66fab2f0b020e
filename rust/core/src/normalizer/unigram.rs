//! The normalizer of Unigram vocabularies: character replacement, whitespace, user-defined tokens left as they are.
//!
//! Source: llama.cpp's `llm_tokenizer_ugm_session::normalize` and `normalize_prefix` (llama-vocab.cpp).
//!
//! The input is read in steps, each the first of these that applies: bytes that begin a user-defined token, even if
//! the token does not go on as it should; the longest prefix in the [`Charsmap`], replaced; one well-formed UTF-8
//! sequence; one byte, replaced by U+FFFD. ASCII that neither of the first two can touch skips them.
//!
//! Deviations: none beyond those of [`Charsmap`].
//!
//! Time and space: O(n) for n bytes, times the longest prefix in the map.

use std::ops::Range;

use crate::error::VocabularyError;
use crate::normalizer::charsmap::{Characters, Charsmap};
use crate::normalizer::rewritten::Rewritten;
use crate::trie::DoubleArray;
use crate::unicode::utf8;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::ESCAPED_SPACE;

/// What separates words in a text.
pub(crate) const WHITESPACE: [u8; 4] = *b" \t\n\r";

const REPLACEMENT_CHARACTER: &[u8] = "\u{FFFD}".as_bytes();

/// A vocabulary's normalization.
#[derive(Debug)]
pub(crate) struct UnigramNormalizer {
    /// Texts of the user-defined tokens.
    user_defined: DoubleArray,
    charsmap: Option<Charsmap>,
    /// What the map leaves alone but for visible spaces; nothing where that cannot be told by characters.
    characters: Option<Characters>,
    /// For each byte whether it is ASCII and stands for itself in front of ASCII and at the end.
    kept: [bool; 256],
    /// What a space becomes.
    space: &'static [u8],
    prepend_space: bool,
    append_space: bool,
    merge_spaces: bool,
}

/// A part of the input that is read at once.
struct Step<'a> {
    /// What it becomes, whitespace aside.
    bytes: &'a [u8],
    /// Where it is in the input.
    origin: Range<usize>,
    /// Whether `bytes` stands for the part as a whole and not byte for byte.
    is_replaced: bool,
}

impl Step<'_> {
    /// The input behind some of the bytes.
    fn origin(&self, bytes: Range<usize>) -> Range<usize> {
        if self.is_replaced {
            self.origin.clone()
        } else {
            self.origin.start + bytes.start..self.origin.start + bytes.end
        }
    }
}

impl UnigramNormalizer {
    /// Reads what the vocabulary says about normalization.
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
        let characters = charsmap.as_ref().map_or(Some(Characters::without_keys()), Charsmap::characters);
        let characters = characters.map(|characters| characters.except(0x2581));
        let kept = std::array::from_fn(|byte| {
            let keeps = |all: &Characters| (0..0x80).all(|next| all.keeps(byte as u32, Some(next)));
            byte < 0x80 && user_defined.longest_walk(&[byte as u8]) == 0 && characters.as_ref().is_some_and(keeps)
        });
        Ok(Self {
            user_defined,
            charsmap,
            characters,
            kept,
            space: if settings.escape_whitespaces { ESCAPED_SPACE } else { b" " },
            prepend_space: settings.add_space_prefix && !settings.treat_whitespace_as_suffix,
            append_space: settings.add_space_prefix && settings.treat_whitespace_as_suffix,
            merge_spaces: settings.remove_extra_whitespaces,
        })
    }

    /// What a space becomes.
    pub(crate) fn space(&self) -> &'static [u8] {
        self.space
    }

    /// Memory held outside the value itself, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.user_defined.heap_bytes()
            + self.charsmap.as_ref().map_or(0, Charsmap::heap_bytes)
            + self.characters.as_ref().map_or(0, Characters::heap_bytes)
    }

    /// What the map leaves alone but for visible spaces; nothing where that cannot be told by characters.
    pub(crate) fn characters(&self) -> Option<&Characters> {
        self.characters.as_ref()
    }

    /// Whether each word becomes what it becomes alone: UTF-8 stays UTF-8, spaces are visible, merged, one before each
    /// word, and nothing else becomes a visible one; the four characters of [`WHITESPACE`] become spaces, and the other printable ASCII
    /// characters stay, where characters of these two kinds are around them.
    pub(crate) fn splits_words(&self) -> bool {
        let is_space = |byte: u8| self.charsmap.as_ref().map_or(byte == b' ', |charsmap| charsmap.is_space(byte));
        self.user_defined.is_empty()
            && self.space == ESCAPED_SPACE
            && self.merge_spaces
            && !self.append_space
            && self.charsmap.as_ref().is_none_or(|map| map.writes_utf8() && !map.may_write(ESCAPED_SPACE))
            && (b'!'..=b'~').all(|byte| self.kept[usize::from(byte)])
            && WHITESPACE.into_iter().all(is_space)
    }

    /// How many characters a byte of valid UTF-8 can become at most, spaces at the beginning aside.
    pub(crate) fn max_expansion(&self) -> usize {
        self.charsmap.as_ref().map_or(1, Charsmap::max_expansion)
    }

    /// Where the next step from `at` ends, one character or one key of the map, if there are no user-defined tokens.
    pub(crate) fn step_end(&self, input: &[u8], at: usize) -> usize {
        let rest = &input[at..];
        let replaced = self.charsmap.as_ref().and_then(|charsmap| charsmap.longest_prefix(rest));
        at + replaced.map_or_else(|| utf8::decode(rest, 0).map_or(1, |character| character.1), |(len, _)| len)
    }

    /// Appends the normal form of `input` to `out`. `in_word` says whether the input continues a word.
    pub(crate) fn normalize(&self, input: &[u8], mut in_word: bool, out: &mut Rewritten<'_>) {
        // The end of the input that is accounted for: an added space stands for what was left out before it.
        let mut covered = 0;
        let mut prepend_space = self.prepend_space;
        let mut at = 0;
        while at < input.len() {
            let step = self.step(input, at);
            at = step.origin.end;
            let mut done = 0;
            while done < step.bytes.len() {
                let rest = &step.bytes[done..];
                let word_len = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
                if word_len == 0 {
                    in_word = false;
                    done += 1;
                    if !self.merge_spaces {
                        let origin = step.origin(done - 1..done);
                        covered = origin.end;
                        out.push(self.space, origin);
                    }
                    continue;
                }

                let origin = step.origin(done..done + word_len);
                if !in_word && (prepend_space || self.merge_spaces) {
                    let gap = if covered > origin.start { origin.clone() } else { covered..origin.start };
                    out.push(self.space, gap);
                    prepend_space = false;
                }
                in_word = true;
                covered = origin.end;
                match step.is_replaced {
                    true => out.push(&rest[..word_len], origin),
                    false => out.push_kept(&rest[..word_len], origin.start),
                }
                done += word_len;
            }
        }
        if self.append_space {
            out.push(self.space, covered..input.len());
        }
    }

    /// The next step from `at`, which is inside `input`.
    #[inline]
    fn step<'a>(&'a self, input: &'a [u8], at: usize) -> Step<'a> {
        let rest = &input[at..];
        let unchanged = |len| Step { bytes: &rest[..len], origin: at..at + len, is_replaced: false };
        let replaced = |bytes, len| Step { bytes, origin: at..at + len, is_replaced: true };

        let mut kept = rest.iter().position(|&byte| !self.kept[usize::from(byte)]).unwrap_or(rest.len());
        if rest.get(kept).is_some_and(|next| !next.is_ascii()) {
            kept = kept.saturating_sub(1);
        }
        if let Some(characters) = self.characters.as_ref().filter(|_| kept == 0 && self.user_defined.is_empty()) {
            let mut next = utf8::decode(rest, 0);
            while let Some((character, len)) = next {
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
            space: b"_",
            prepend_space: false,
            append_space: false,
            merge_spaces: false,
        }
    }

    #[track_caller]
    fn check(normalizer: &UnigramNormalizer, input: &[u8], text: &[u8], origins: &[Range<usize>]) {
        let mut out = Rewritten::empty(0, true);
        normalizer.normalize(input, false, &mut out);
        assert_eq!(String::from_utf8_lossy(&out.text), String::from_utf8_lossy(text));
        assert_eq!((0..text.len()).map(|at| out.span(at..at + 1)).collect::<Vec<_>>(), origins);
    }

    #[test]
    fn whitespace() {
        let mut normalizer = normalizer(&[]);
        check(&normalizer, b" a  b ", b"_a__b_", &[0..1, 1..2, 2..3, 3..4, 4..5, 5..6]);
        normalizer.prepend_space = true;
        check(&normalizer, b" a b", b"__a_b", &[0..1, 1..1, 1..2, 2..3, 3..4]);
        normalizer.merge_spaces = true;
        check(&normalizer, b" a  b ", b"_a_b", &[0..1, 1..2, 2..4, 4..5]);
        check(&normalizer, b"  ", b"", &[]);
        normalizer.prepend_space = false;
        check(&normalizer, b"a  b", b"_a_b", &[0..0, 0..1, 1..3, 3..4]);
        normalizer.append_space = true;
        check(&normalizer, b"a  ", b"_a_", &[0..0, 0..1, 1..3]);
        check(&normalizer, b" ", b"_", std::slice::from_ref(&(0..1)));
    }

    #[test]
    fn malformed_bytes_become_replacement_characters() {
        check(&normalizer(&[]), b"a\xFFb", "a\u{FFFD}b".as_bytes(), &[0..1, 1..2, 1..2, 1..2, 2..3]);
        check(&normalizer(&[]), b"\xE2\x96", "\u{FFFD}\u{FFFD}".as_bytes(), &[0..1, 0..1, 0..1, 1..2, 1..2, 1..2]);
    }

    #[test]
    fn a_user_defined_token_need_not_end() {
        // The first two bytes of U+2581 are kept as they are, and the third is malformed by itself.
        let normalizer = normalizer(&["\u{2591}x"]);
        check(&normalizer, "\u{2581}".as_bytes(), b"\xE2\x96\xEF\xBF\xBD", &[0..1, 1..2, 2..3, 2..3, 2..3]);
    }

    proptest! {
        #[test]
        fn the_short_cut_changes_nothing(
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
            let (mut out, mut expected) = (Rewritten::empty(0, true), Rewritten::empty(0, true));
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
