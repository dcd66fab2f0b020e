//! Byte-pair encoding as in llama.cpp: a text is cut into pieces, and in each the pair with the lowest rank merges
//! first.
//!
//! 1. The text is rewritten: bytes that are not UTF-8 become U+FFFD; some vocabularies write spaces as `▁`, or drop
//!    whitespace and capitals.
//! 2. Patterns cut the text into pieces, one pattern after the other ([`patterns`](super::patterns)).
//! 3. Most families spell a piece with GPT-2's characters, one per byte, so merges never see a space.
//! 4. A piece that is a token may skip the merges: any piece in some vocabularies, runs of newlines in Gemma 4.
//! 5. Each character of a piece is a symbol. Neighbours merge by rules, which name the two texts; a rule's position in
//!    the file is its rank. Of equal ranks, the leftmost pair is first.
//! 6. Each remaining symbol is the token with its text, or else its bytes are looked up one by one. Bytes that are not
//!    tokens are dropped.
//!
//! Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016); llama.cpp
//! `src/llama-vocab.cpp`, `llm_tokenizer_bpe_session` and `llm_tokenizer_whitespace_session`. Complexity: the patterns,
//! plus O(n log n) for a piece of n characters.
//!
//! Deviations: those of the core: code points beyond U+10FFFF become U+FFFD, and a piece with spaces in it merges
//! like any other; llama.cpp aborts on both.

use std::collections::HashMap;
use std::iter::repeat_n;

use ggtok_core::internals::spelling::{ESCAPED_SPACE, byte_level, byte_text};
use ggtok_core::internals::{Rewritten, c_string};
use ggtok_core::unicode::{self, utf8};
use ggtok_core::vocab::{PreTokenizer, Strings};

use super::limit::Tracing;
use super::merging::{Merge, merge, spell_out};
use super::origins;
use super::patterns::Patterns;
use super::trace::{Bpe, ByteToken, Merging, Piece, Range, Steps, SymbolTokens};
use super::{Bytes, Result, Traced};

/// Patterns and ranks of a vocabulary.
#[derive(Debug)]
pub(super) struct BpeTracer {
    family: &'static str,
    /// Whether a byte is spelled as a character.
    is_spelled: bool,
    /// Whether a run of newlines that is a token skips the merges.
    whole_newlines: bool,
    patterns: Patterns,
    /// Keyed by the text of a rule without its space, and the length of its left part.
    ranks: HashMap<(Vec<u8>, usize), usize>,
}

impl BpeTracer {
    /// Reads merge rules, each `left right`. Of two rules for a pair the first one wins; a rule without a space never
    /// applies.
    pub(super) fn new(pre: &PreTokenizer, merges: Option<Strings<'_>>) -> Self {
        let family = pre.family;
        let mut ranks = HashMap::new();
        for (rule, rank) in merges.iter().flat_map(Strings::iter).zip(0..) {
            let rule = c_string(rule);
            // The left part is never empty.
            if let Some(space) = rule.iter().skip(1).position(|&byte| byte == b' ') {
                let left = &rule[..=space];
                ranks.entry(([left, &rule[space + 2..]].concat(), left.len())).or_insert(rank);
            }
        }
        Self {
            family: family.name,
            is_spelled: family.byte_encode,
            whole_newlines: pre.is_gemma4(),
            patterns: Patterns::new(family),
            ranks,
        }
    }

    /// Traces a fragment.
    pub(super) fn trace_fragment(&self, text: &[u8], tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
        let Traced { steps, tokens } = self.trace(text, tracing)?;
        Ok(Traced { steps: Steps::Bpe(steps), tokens })
    }

    /// Traces a text.
    pub(super) fn trace(&self, text: &[u8], tracing: &mut Tracing<'_>) -> Result<Traced<Bpe>> {
        let (text, rewritten, words) = rewrite(text, tracing)?;
        let passes = self.patterns.passes(&text.text, &words, &mut tracing.limit)?;
        let cuts = passes.last().map(|pass| &pass.cuts[..]).unwrap_or_default();

        let mut pieces = Vec::new();
        let mut tokens = Vec::new();
        for cut in cuts {
            let traced = self.trace_piece(&text.text[cut.start..cut.end], cut.start, tracing)?;
            pieces.push(traced.steps);
            tokens.extend(traced.tokens.into_iter().map(|(id, range)| (id, text.span(range))));
        }
        let origins = origins::of(&text);
        let text = Bytes::from(&text.text);
        Ok(Traced { steps: Bpe { family: self.family, rewritten, text, origins, words, passes, pieces }, tokens })
    }

    /// Traces a piece that starts at byte `start` of the text. Its tokens have ranges in the text.
    fn trace_piece(&self, text: &[u8], start: usize, tracing: &mut Tracing<'_>) -> Result<Traced<Piece>> {
        let vocabulary = tracing.vocabulary;
        tracing.limit.step(text.len())?;
        let mut spelled = Vec::with_capacity(text.len());
        let mut places = Vec::with_capacity(text.len());
        for (&byte, at) in text.iter().zip(start..) {
            let (character, len) = if self.is_spelled { byte_level::spell(byte) } else { ([byte, 0], 1) };
            spelled.extend_from_slice(&character[..len]);
            places.extend(repeat_n(at, len));
        }
        let is_whole =
            vocabulary.settings().ignore_merges || self.whole_newlines && text.iter().all(|&byte| byte == b'\n');
        let whole = vocabulary.id(&spelled).filter(|_| is_whole);
        let mut piece = Piece {
            start,
            end: start + text.len(),
            text: Bytes::from(text),
            spelled: Bytes(spelled),
            places,
            whole,
            merging: Merging::default(),
            symbols: Vec::new(),
        };
        if let Some(id) = whole {
            piece.symbols.push(SymbolTokens { text: piece.spelled.clone(), token: whole, bytes: Vec::new() });
            let tokens = vec![(id, start..piece.end)];
            return Ok(Traced { steps: piece, tokens });
        }

        let is_raw_space = |text: &[u8]| vocabulary.settings().escape_whitespaces && text == b" ";
        let merging = merge(&piece.spelled.0, &mut tracing.limit, |left, right| {
            // llama.cpp aborts here.
            if !self.is_spelled && (is_raw_space(left) || is_raw_space(right)) {
                return None;
            }
            let rule = ([left, right].concat(), left.len());
            let rank = self.ranks.get(&rule).copied()?;
            Some(Merge { score: None, rank: Some(rank), token: vocabulary.id(&rule.0) })
        })?;

        let Traced { steps: symbols, tokens } = spell_out(&merging, tracing, |byte| {
            let text = if self.is_spelled { Bytes(vec![byte]) } else { Bytes::from(&byte_text(byte)) };
            let token = vocabulary.id(&text.0);
            ByteToken { text, token }
        })?;
        let in_text = |range: std::ops::Range<usize>| piece.places[range.start]..piece.places[range.end - 1] + 1;
        let tokens = tokens.into_iter().map(|(id, range)| (id, in_text(range))).collect();
        Ok(Traced { steps: Piece { merging, symbols, ..piece }, tokens })
    }
}

/// A text as the patterns see it, how it was rewritten, and its words.
fn rewrite(text: &[u8], tracing: &mut Tracing<'_>) -> Result<(Rewritten<'static>, Vec<&'static str>, Vec<Range>)> {
    let Tracing { vocabulary, limit } = tracing;
    let settings = vocabulary.settings();
    let drops_whitespace = vocabulary.model() == "whitespace";
    let mut out = Rewritten::empty(0, true);
    let mut replaced = false;
    let mut escaped = false;
    let mut lowercased = false;
    let mut dropped = false;
    let mut words = Vec::new();
    let mut word_start = 0;
    let mut buffer = [0; 4];
    for (code_point, origin) in utf8::code_points(text) {
        limit.step(0)?;
        // llama.cpp escapes spaces before it decodes the text, so a space in an overlong form stays.
        if settings.escape_whitespaces && text[origin.start] == b' ' {
            escaped = true;
            out.push(ESCAPED_SPACE, origin);
            continue;
        }
        if drops_whitespace && unicode::flags(code_point).is_whitespace() {
            dropped = true;
            words.push(Range { start: word_start, end: out.text.len() });
            word_start = out.text.len();
            continue;
        }
        let written = match code_point {
            _ if drops_whitespace && settings.lowercase => unicode::lowercase(code_point),
            _ => code_point,
        };
        lowercased |= written != code_point;
        replaced |= utf8::encode(code_point, &mut buffer) != &text[origin.clone()];
        out.push_char(utf8::encode(written, &mut buffer), origin);
    }
    words.push(Range { start: word_start, end: out.text.len() });
    words.retain(|word| word.start < word.end);
    let rewritten =
        [(replaced, "replaced"), (escaped, "escaped"), (lowercased, "lowercased"), (dropped, "whitespace_dropped")];
    let rewritten = rewritten.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect();
    Ok((out, rewritten, words))
}
