//! Unigram: the tokens with the highest sum of scores, found by a Viterbi search over all ways to split the text.
//!
//! 1. The text is normalized from left to right: user-defined tokens are kept, keys of the character map (see [`xcda`])
//!    are replaced, spaces are escaped and merged.
//! 2. At each character of the result, left to right, every matching token is a candidate for the best way to its end:
//!    it wins if its sum of scores is higher than the best so far. A character that is not a token may be unknown, with
//!    a score below that of all tokens.
//! 3. The last tokens of the best ways lead back from the end to the start. Neighbouring unknown tokens become one.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_ugm` and `llm_tokenizer_ugm_session`; the algorithm is that
//! of Kudo (2018), the search that of Viterbi (1967). Complexity: O(n · m) for n bytes of text, tokens of m.
//!
//! Deviations: none beyond those of the core's character maps.

use std::ops::Range;

use ggtok_core::internals::spelling::ESCAPED_SPACE;
use ggtok_core::internals::{Fragment, Rewritten};
use ggtok_core::unicode::utf8;
use ggtok_core::vocab::{Attributes, Settings, Vocabulary};
use ggtok_core::{NULL_TOKEN, TokenId};

use super::limit::{Limit, Tracing};
use super::origins;
use super::texts::SortedTexts;
use super::trace::{Best, Candidate, LatticePosition, PathStep, Prefix, Steps, Unigram};
use super::xcda::Xcda;
use super::{Bytes, Result, Traced};

/// How far below the lowest score of all normal tokens an unknown character is.
const UNKNOWN_PENALTY: f32 = 10.0;
/// The sum of scores at a place not reached by any token.
const UNREACHED: f64 = f64::MIN;

/// The tries of a vocabulary, as the file declares its tokens: llama.cpp builds them before it repairs attributes.
#[derive(Debug)]
pub(super) struct UnigramTracer {
    /// All tokens that can be found in a text.
    tokens: SortedTexts,
    user_defined: SortedTexts,
    unknown: TokenId,
    unknown_score: f32,
}

impl UnigramTracer {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let ids = || 0..vocabulary.len() as TokenId;
        let trie = |accept: fn(Attributes) -> bool| {
            let accepted = ids().filter(|&id| accept(vocabulary.declared_attributes(id)));
            SortedTexts::new(accepted.map(|id| (vocabulary.text(id).to_vec(), id)))
        };
        let normal = ids().filter(|&id| vocabulary.declared_attributes(id).is_normal());
        let lowest = normal.map(|id| vocabulary.score(id)).fold(f32::MAX, f32::min);
        Self {
            tokens: trie(|token| token.is_normal() || token.is_user_defined() || token.is_unused()),
            user_defined: trie(|token| token.is_user_defined()),
            unknown: vocabulary.special().unk.unwrap_or(NULL_TOKEN),
            unknown_score: lowest - UNKNOWN_PENALTY,
        }
    }

    /// Traces a fragment.
    pub(super) fn trace(&self, fragment: Fragment<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
        let Tracing { vocabulary, limit } = tracing;
        let charsmap = Xcda::new(vocabulary.charsmap());
        let mut normalized = Rewritten::empty(0, true);
        let prefixes = self.normalize(vocabulary.settings(), fragment, charsmap, &mut normalized, limit)?;
        let (positions, best) = self.lattice(&normalized.text, tracing)?;
        let path = self.way_back(&best);
        let tokens = joined(&path).map(|(token, range)| (token, normalized.span(range))).collect();
        let steps = Unigram {
            charsmap: charsmap.map(|charsmap| charsmap.header()),
            prefixes,
            origins: origins::of(&normalized),
            normalized: Bytes(normalized.text.into_owned()),
            unknown_score: self.unknown_score,
            positions,
            best,
            path,
        };
        Ok(Traced { steps: Steps::Unigram(steps), tokens })
    }

    /// Replaces characters, and escapes, merges and adds spaces.
    fn normalize(
        &self,
        settings: &Settings,
        Fragment { text, continues, .. }: Fragment<'_>,
        charsmap: Option<Xcda<'_>>,
        out: &mut Rewritten<'_>,
        limit: &mut Limit,
    ) -> Result<Vec<Prefix>> {
        let space = if settings.escape_whitespaces { ESCAPED_SPACE } else { b" " };
        let mut prepends_space = settings.add_space_prefix && !continues;
        let mut prefixes = Vec::new();
        let mut in_word = continues;
        // An added space stands for what was dropped since the end of the previous chunk.
        let mut start = 0;
        let mut covered = 0;
        while start < text.len() {
            let mut prefix = self.replace(text, start, charsmap, limit)?;
            limit.step(prefix.replacement.0.len())?;
            let appended_from = out.text.len();
            for (&byte, at) in prefix.replacement.0.iter().zip(start..) {
                let is_kept = matches!(prefix.outcome, "user_defined" | "copied");
                let origin = if is_kept { at..at + 1 } else { start..prefix.end };
                if byte == b' ' {
                    in_word = false;
                    if !settings.remove_extra_whitespaces {
                        covered = origin.end;
                        out.push(space, origin);
                    }
                    continue;
                }
                if !in_word && (prepends_space || settings.remove_extra_whitespaces) {
                    let is_gap = covered <= origin.start;
                    out.push(space, if is_gap { covered..origin.start } else { origin.clone() });
                    prepends_space = false;
                }
                (in_word, covered) = (true, origin.end);
                out.push(&[byte], origin);
            }
            prefix.appended = Bytes::from(&out.text[appended_from..]);
            start = prefix.end;
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }

    /// What the text at `start` is replaced with. Nothing is appended yet.
    fn replace(&self, text: &[u8], start: usize, charsmap: Option<Xcda<'_>>, limit: &mut Limit) -> Result<Prefix> {
        let rest = &text[start..];
        let prefix = |outcome, walk, len, replacement: &[u8]| {
            let replacement = Bytes::from(replacement);
            Prefix { start, end: start + len, outcome, walk, replacement, appended: Bytes::default() }
        };
        // As in llama.cpp, the start of a user-defined token is enough.
        let walked = (1..=rest.len()).take_while(|&len| self.user_defined.start_with(&rest[..len])).count();
        limit.step(walked)?;
        if walked > 0 {
            return Ok(prefix("user_defined", Vec::new(), walked, &rest[..walked]));
        }
        let mut walk = Vec::new();
        let found = match charsmap {
            Some(charsmap) => {
                charsmap.walk(rest, &mut walk, limit)?.map(|(len, value)| (len, charsmap.replacement(value)))
            }
            None => None,
        };
        Ok(match (found, utf8::decode(rest, 0)) {
            (Some((len, replacement)), _) => prefix("replaced", walk, len, replacement),
            (None, Some((_, len))) => prefix("copied", walk, len, &rest[..len]),
            (None, None) => prefix("invalid", walk, 1, "\u{FFFD}".as_bytes()),
        })
    }

    /// Finds the best way to each place.
    fn lattice(&self, text: &[u8], tracing: &mut Tracing<'_>) -> Result<(Vec<LatticePosition>, Vec<Best>)> {
        let Tracing { vocabulary, limit } = tracing;
        let mut best: Vec<(f64, TokenId, usize)> = vec![(UNREACHED, self.unknown, 0); text.len() + 1];
        best[0].0 = 0.0;
        let mut positions = Vec::new();
        let mut start = 0;
        while start < text.len() {
            let score_sum = best[start].0;
            let mut offer = |token: TokenId, end: usize, score: f64| {
                let champion = best[end].0;
                let challenger = score_sum + score;
                let wins = challenger > champion;
                if wins {
                    best[end] = (challenger, token, start);
                }
                let score_sum = reached(score_sum).map(|_| challenger);
                let champion = reached(champion);
                Candidate { token, text: Bytes::from(&text[start..end]), end, score, score_sum, champion, wins }
            };

            let char_end = text.len().min(start + utf8::sequence_len(text[start]));
            let mut candidates = Vec::new();
            for end in start + 1..=text.len() {
                limit.step(0)?;
                if !self.tokens.start_with(&text[start..end]) {
                    break;
                }
                let Some(token) = self.tokens.token(&text[start..end]) else { continue };
                limit.step(end - start)?;
                let is_user_defined = vocabulary.attributes(token).is_user_defined();
                candidates.push(offer(token, end, if is_user_defined { 0.0 } else { vocabulary.score(token).into() }));
            }
            let lacks_char = candidates.iter().all(|candidate| candidate.end != char_end);
            let unknown = lacks_char.then(|| offer(self.unknown, char_end, self.unknown_score.into()));
            positions.push(LatticePosition { at: start, score_sum: reached(score_sum), candidates, unknown });
            start = char_end;
        }
        let best = best.into_iter().enumerate().map(|(at, (score_sum, token, from))| {
            let score_sum = reached(score_sum);
            Best { at, token: score_sum.is_some().then_some(token), from, score_sum }
        });
        Ok((positions, best.collect()))
    }

    /// Follows the best ways back from the end.
    fn way_back(&self, best: &[Best]) -> Vec<PathStep> {
        let mut path = Vec::new();
        let mut to = best.len() - 1;
        let mut is_next_unknown = false;
        while to > 0 {
            let Best { token, from, .. } = best[to];
            // A place that no token reaches counts as reached from the start by an unknown token.
            let token = token.unwrap_or(self.unknown);
            let is_unknown = token == self.unknown;
            path.push(PathStep { from, to, token, joins_next: is_unknown && is_next_unknown });
            (to, is_next_unknown) = (from, is_unknown);
        }
        path
    }
}

fn reached(score_sum: f64) -> Option<f64> {
    (score_sum != UNREACHED).then_some(score_sum)
}

/// The tokens of a way back, in text order, with their ranges: neighbouring unknown ones are joined.
fn joined(path: &[PathStep]) -> impl Iterator<Item = (TokenId, Range<usize>)> {
    let runs = path.chunk_by(|_, before| before.joins_next).rev();
    runs.map(|run| (run[0].token, run[run.len() - 1].from..run[0].to))
}
