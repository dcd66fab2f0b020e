//! PLaMo-2: the tokens with the lowest sum of costs, by dynamic programming from the end of the text to its start.
//!
//! 1. An automaton (Aho and Corasick, 1975) reads the text backwards. Its state is the longest text from the current
//!    place that is a suffix of a token, so the token may still be completed.
//! 2. The candidates are the tokens that are prefixes of the state, and the character as an unknown one. The one with
//!    the lowest total cost, including the best for the text after it, is taken; of equal ones the longest.
//! 3. From the start, the taken candidates are the tokens. An unknown character becomes the tokens of its bytes.
//!
//! In llama.cpp's table, a row with the cost of an unknown character ends the list of candidates. A token with exactly
//! that cost hides the candidates after it.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_plamo2`. Complexity: O(n · m²) for n bytes of text and a
//! longest token of m bytes.
//!
//! Deviations: those of the core: token texts that are not UTF-8 in its shortest form never match.

use std::ops::Range;

use ggtok_core::TokenId;
use ggtok_core::internals::spelling::byte_of;
use ggtok_core::internals::{Fragment, Rewritten};
use ggtok_core::unicode::utf8;
use ggtok_core::vocab::Vocabulary;

use super::limit::Tracing;
use super::origins;
use super::texts::SortedTexts;
use super::trace::{CostCandidate, CostPosition, CostStep, Plamo2, Steps};
use super::{Bytes, Result, Traced};

/// The cost of an unknown character. Costs are scores times -10,000.
const UNKNOWN_COST: i64 = 10_000_000;
/// A token of this cost or higher is never taken.
const LOWEST_UNUSED_COST: i64 = 20_000_000;
const BYTE_ORDER_MARK: &[u8] = "\u{FEFF}".as_bytes();

/// The tables of a vocabulary, as the file declares its tokens.
#[derive(Debug)]
pub(super) struct Plamo2Tracer {
    /// The reversed texts of all tokens but byte tokens: a text is a state if its reverse starts one of them.
    reversed: SortedTexts,
    /// By byte.
    byte_tokens: [TokenId; 256],
}

impl Plamo2Tracer {
    pub(super) fn new(vocabulary: &Vocabulary) -> Self {
        let mut texts = Vec::new();
        let mut byte_tokens = [0; 256];
        for id in 0..vocabulary.len() as TokenId {
            let text = vocabulary.text(id);
            if !vocabulary.declared_attributes(id).is_byte() {
                if canonical(text).text == text {
                    texts.push((reversed(text), id));
                }
            } else if let Some(byte) = byte_of(text) {
                byte_tokens[usize::from(byte)] = id;
            }
        }
        Self { reversed: SortedTexts::new(texts.into_iter()), byte_tokens }
    }

    /// Traces a fragment.
    pub(super) fn trace(&self, fragment: Fragment<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
        let rewritten = canonical(fragment.text);
        let text = &rewritten.text[..];
        let skipped_bom = !fragment.continues && text.starts_with(BYTE_ORDER_MARK);
        let start = if skipped_bom { BYTE_ORDER_MARK.len() } else { 0 };
        let positions = self.positions(text, start, tracing)?;

        let mut path = Vec::new();
        let mut tokens = Vec::new();
        let mut at = start;
        for position in positions.iter().rev() {
            if position.at < at {
                continue;
            }
            let Some(taken) = position.candidates.iter().find(|candidate| candidate.wins) else { break };
            let end = at + taken.text.0.len();
            let mut bytes = Vec::new();
            match taken.token {
                Some(token) => tokens.push((token, rewritten.span(at..end))),
                None => {
                    bytes = text[at..end].iter().map(|&byte| self.byte_tokens[usize::from(byte)]).collect();
                    tokens.extend(bytes.iter().copied().zip((at..end).map(|at| rewritten.span(at..at + 1))));
                }
            }
            path.push(CostStep { start: at, end, token: taken.token, bytes });
            at = end;
        }
        let origins = origins::of(&rewritten);
        let steps = Plamo2 { skipped_bom, text: Bytes::from(text), origins, positions, path };
        Ok(Traced { steps: Steps::Plamo2(steps), tokens })
    }

    /// The best way from each place, from the end to `start`.
    fn positions(&self, text: &[u8], start: usize, tracing: &mut Tracing<'_>) -> Result<Vec<CostPosition>> {
        let mut positions = Vec::new();
        let mut costs = vec![0; text.len() + 1];
        let mut end = text.len();
        let mut state = text.len()..text.len();
        while end > start {
            let at = (start..end).rfind(|&at| utf8::is_boundary(text, at)).unwrap_or(start);
            state = at..self.next_state(text, at, state, tracing)?;

            let mut candidates = Vec::new();
            let mut is_hidden = false;
            for len in (1..=state.len()).rev().filter(|len| utf8::is_boundary(text, at + len)) {
                tracing.limit.step(len)?;
                let Some((token, cost)) = self.token(tracing.vocabulary, &text[at..at + len]) else { continue };
                if cost < LOWEST_UNUSED_COST {
                    candidates.push(candidate(Some(token), &text[at..at + len], cost, costs[at + len]));
                }
                is_hidden = cost == UNKNOWN_COST;
                if is_hidden {
                    break;
                }
            }
            if !is_hidden {
                candidates.push(candidate(None, &text[at..end], UNKNOWN_COST, costs[end]));
            }

            // The first of equals.
            let best = candidates.iter_mut().min_by_key(|candidate| candidate.total);
            costs[at] = best.map_or(0, |best| {
                best.wins = true;
                best.total
            });
            let state = Bytes::from(&text[state.clone()]);
            positions.push(CostPosition { at, state, candidates, cost: costs[at] });
            end = at;
        }
        Ok(positions)
    }

    /// Where the state at `at` ends, given the state at the place after it.
    ///
    /// llama.cpp looks through the rows of that state: the states that it starts with, longest first, up to one with
    /// the cost of an unknown character. One of them, with the character before it, makes the next state.
    fn next_state(&self, text: &[u8], at: usize, after: Range<usize>, tracing: &mut Tracing<'_>) -> Result<usize> {
        for end in (after.start..=after.end).rev().filter(|&end| utf8::is_boundary(text, end)) {
            tracing.limit.step(2 * (end - at))?;
            let row = &text[after.start..end];
            if self.is_state(row) && self.is_state(&text[at..end]) {
                return Ok(end);
            }
            if self.token(tracing.vocabulary, row).is_some_and(|(_, cost)| cost == UNKNOWN_COST) {
                break;
            }
        }
        Ok(at)
    }

    /// Whether a token ends with a text.
    fn is_state(&self, text: &[u8]) -> bool {
        self.reversed.start_with(&reversed(text))
    }

    /// The token with a text, and its cost.
    fn token(&self, vocabulary: &Vocabulary, text: &[u8]) -> Option<(TokenId, i64)> {
        let token = self.reversed.token(&reversed(text))?;
        Some((token, cost(vocabulary.score(token))))
    }
}

fn reversed(text: &[u8]) -> Vec<u8> {
    text.iter().rev().copied().collect()
}

fn candidate(token: Option<TokenId>, text: &[u8], cost: i64, cost_after: i64) -> CostCandidate {
    CostCandidate { token, text: Bytes::from(text), cost, total: cost + cost_after, wins: false }
}

/// The cost of a token with this score: the negated entry of llama.cpp's table, [`LOWEST_UNUSED_COST`] if it is never
/// taken.
fn cost(score: f32) -> i64 {
    let cost = -(f64::from(score) * 1e4).round();
    // In llama.cpp, a score too large for 32 bits wraps to the lowest number.
    if cost > f64::from(i32::MIN) && cost < LOWEST_UNUSED_COST as f64 { cost as i64 } else { LOWEST_UNUSED_COST }
}

/// A text with U+FFFD for each byte that is not UTF-8, and each character in its shortest form; numbers beyond U+10FFFF
/// are unchanged.
fn canonical(text: &[u8]) -> Rewritten<'_> {
    let mut out = Rewritten::empty(0, true);
    let mut at = 0;
    while at < text.len() {
        let (code_point, len) = utf8::decode(text, at).unwrap_or((utf8::REPLACEMENT, 1));
        match code_point {
            0x11_0000.. => out.push_kept(&text[at..at + len], at),
            _ => out.push_char(utf8::encode(code_point, &mut [0; 4]), at..at + len),
        }
        at += len;
    }
    out
}
