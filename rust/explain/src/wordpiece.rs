//! WordPiece: splits a text into words, and each word into the longest matching tokens from left to right.
//!
//! 1. Accents are removed, letters become lower case, control characters are dropped. Whitespace ends a word;
//!    punctuation, ASCII symbols and Chinese characters are words by themselves.
//! 2. A word gets a `▁` in front. The whole word is looked up, then the word without its last byte, and so on until a
//!    token has this text; then the same from the end of that token.
//! 3. If no token matches at some place, the whole word is one unknown token.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_wpm_session`; the algorithm is that of Wu et al. (2016) as
//! BERT has it (Devlin et al., 2018). Complexity: O(m²) look-ups for a word of m bytes.
//!
//! Deviations: those of the core: a character beyond U+10FFFF counts as U+FFFD and is dropped.

use std::ops::Range;

use ggtok_core::internals::spelling::ESCAPED_SPACE;
use ggtok_core::internals::{Class, Fragment, Rewritten};
use ggtok_core::unicode::{base_letter, flags, lowercase, utf8};
use ggtok_core::{NULL_TOKEN, TokenId};

use super::limit::Tracing;
use super::trace::{Attempt, NormalizedCodePoint, Steps, Word, WordPiece};
use super::{Bytes, Result, Traced};

/// The names of the classes, in the order of llama.cpp's bits.
const CLASSES: &str =
    "undefined number letter separator accent_mark punctuation symbol control whitespace lowercase uppercase nfd";

/// Traces a fragment.
pub(super) fn trace(fragment: Fragment<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
    let code_points = normalize(fragment.text, tracing)?;
    let mut words = Vec::new();
    let mut tokens = Vec::new();

    // If the letters of a word continue the text before the fragment, they get no `▁`.
    let mut is_continued = fragment.continues;
    let ends_word = |before: &&NormalizedCodePoint, after: &&NormalizedCodePoint| {
        [before, after].iter().any(|code_point| matches!(code_point.role, "space" | "word_alone"))
    };
    let kept: Vec<&NormalizedCodePoint> =
        code_points.iter().filter(|code_point| code_point.role != "dropped").collect();
    for characters in kept.chunk_by(|before, after| !ends_word(before, after)) {
        let phantom = if is_continued && characters[0].role == "word" { &b""[..] } else { ESCAPED_SPACE };
        is_continued = false;
        if characters[0].role != "space" {
            words.push(word(characters, phantom, &mut tokens, tracing)?);
        }
    }
    let steps = WordPiece { code_points, words, max_token_len: tracing.vocabulary.max_token_len() };
    Ok(Traced { steps: Steps::WordPiece(steps), tokens })
}

/// What happens to each code point.
fn normalize(text: &[u8], tracing: &mut Tracing<'_>) -> Result<Vec<NormalizedCodePoint>> {
    let settings = tracing.vocabulary.settings();
    let mut code_points = Vec::new();
    for (code_point, Range { start, end }) in utf8::code_points(text) {
        tracing.limit.step(0)?;
        let nfd = if settings.strip_accents { base_letter(code_point) } else { code_point };
        let role = match Class::of(nfd, settings.strip_accents) {
            Class::Plain => "word",
            Class::Dropped => "dropped",
            Class::Space => "space",
            Class::Single | Class::Token => "word_alone",
        };
        let lowercase = if settings.lowercase { lowercase(nfd) } else { nfd };
        let bits = flags(nfd).bits();
        let is_set = |(bit, _): &(u16, &str)| bits >> bit & 1 != 0;
        let classes = (0..).zip(CLASSES.split(' ')).filter(is_set).map(|(_, name)| name).collect();
        code_points.push(NormalizedCodePoint { start, end, code_point, nfd, lowercase, classes, role });
    }
    Ok(code_points)
}

/// Finds the tokens of a word.
fn word(
    characters: &[&NormalizedCodePoint],
    phantom: &[u8],
    tokens: &mut Vec<(TokenId, Range<usize>)>,
    tracing: &mut Tracing<'_>,
) -> Result<Word> {
    let vocabulary = tracing.vocabulary;
    let mut letters = Rewritten::empty(0, true);
    for character in characters {
        letters.push_code_point(character.lowercase, character.start..character.end);
    }
    let text = [phantom, &letters.text].concat();

    let mut attempts = Vec::new();
    let mut found = Vec::new();
    let mut start = 0;
    let mut is_unknown = false;
    while start < text.len() && !is_unknown {
        is_unknown = true;
        for end in (start + 1..=text.len().min(start + vocabulary.max_token_len() + 1)).rev() {
            let tried = &text[start..end];
            tracing.limit.step(tried.len())?;
            let token = vocabulary.id(tried);
            attempts.push(Attempt { start, end, text: Bytes::from(tried), token });
            if let Some(token) = token {
                found.push((token, start..end));
                (start, is_unknown) = (end, false);
                break;
            }
        }
    }
    if is_unknown {
        found = vec![(vocabulary.special().unk.unwrap_or(NULL_TOKEN), 0..text.len())];
    }

    // The `▁` stands for no bytes of the fragment, so a token that is only `▁` has an empty range.
    let span = |range: &Range<usize>| {
        let [start, end] = [range.start, range.end].map(|at| at.saturating_sub(phantom.len()));
        let first = letters.span(start..end.max(start + 1));
        if start < end { first } else { first.start..first.start }
    };
    tokens.extend(found.iter().map(|(token, range)| (*token, span(range))));
    let found = found.iter().map(|&(token, _)| token).collect();
    let Range { start, end } = letters.span(0..letters.text.len());
    Ok(Word { text: Bytes(text), start, end, attempts, tokens: found, is_unknown })
}
