//! Merging with a queue: the best pair of neighbouring symbols merges, until the queue is empty.
//!
//! Symbols form a list: a merge gives the left symbol the text of both, and removes the right one. Pairs wait in a
//! priority queue. A pair whose symbols have changed since it was added is *stale* and skipped when its turn comes. SPM
//! and byte-pair encoding share all of this; they differ in which pairs can merge and which is best.
//!
//! Source: Sennrich, Haddow and Birch (2016) for the idea; llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_spm_session`
//! and `llm_tokenizer_bpe_session`. Complexity: O(n log n) comparisons for n symbols, plus copies of texts.
//!
//! Deviations: none in the tokens. Of equal pairs at one position, one of which is stale, the one added first comes
//! first.

use std::collections::BTreeMap;

use ggtok_core::TokenId;
use ggtok_core::unicode::utf8;

use super::limit::{Limit, Tracing};
use super::trace::{Bigram, ByteToken, Merging, Pop, Symbol, SymbolTokens};
use super::{Bytes, Result, Traced};

/// What makes a pair of symbols merge: SPM has a score, byte-pair encoding a rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct Merge {
    pub score: Option<f32>,
    pub rank: Option<usize>,
    /// The token with the text of both.
    pub token: Option<TokenId>,
}

/// What decides which pair merges first, lowest first: the rank, or the score, highest first and NaN last; then the
/// position.
pub(super) type Priority = (Option<usize>, u32, usize);

/// The priority of a pair.
pub(super) fn priority(bigram: &Bigram) -> Priority {
    // Adding zero makes the negative zero positive. The bits order positive numbers, and negative ones in reverse.
    let score = bigram.score.unwrap_or_default() + 0.0;
    let descending = match score.to_bits() {
        _ if score.is_nan() => u32::MAX,
        bits if bits >> 31 == 0 => u32::MAX >> 1 ^ bits,
        bits => bits,
    };
    (bigram.rank, descending, bigram.left)
}

/// The characters of a text as symbols.
fn characters(text: &[u8], limit: &mut Limit) -> Result<Vec<Symbol>> {
    let mut symbols = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let n = utf8::sequence_len(text[at]).min(text.len() - at);
        // Counted once here and once after the last merge.
        limit.step(n)?;
        limit.step(n)?;
        let index = symbols.len();
        symbols.push(Symbol {
            index,
            prev: index as i64 - 1,
            next: if at + n == text.len() { -1 } else { index as i64 + 1 },
            text: Bytes::from(&text[at..at + n]),
            n,
        });
        at += n;
    }
    Ok(symbols)
}

/// Merges the characters of a text. `merge_of` says whether two texts merge.
pub(super) fn merge(
    text: &[u8],
    limit: &mut Limit,
    merge_of: impl Fn(&[u8], &[u8]) -> Option<Merge>,
) -> Result<Merging> {
    let bigram = |symbols: &[Symbol], left: i64, right: i64, limit: &mut Limit| -> Result<_> {
        let (Ok(left), Ok(right)) = (usize::try_from(left), usize::try_from(right)) else { return Ok(None) };
        let texts = [&symbols[left].text.0[..], &symbols[right].text.0[..]];
        let Some(Merge { score, rank, token }) = merge_of(texts[0], texts[1]) else { return Ok(None) };
        let text = Bytes(texts.concat());
        // Counted once in the queue and once when it is taken.
        limit.step(text.0.len())?;
        limit.step(text.0.len())?;
        Ok(Some(Bigram { left, right, size: text.0.len(), text, score, rank, token }))
    };

    let symbols = characters(text, limit)?;
    let mut merged = symbols.clone();
    // Of equal pairs, the one added first comes first.
    let mut queue = BTreeMap::new();
    let mut numbers = 0..;
    for right in 1..symbols.len() as i64 {
        let bigram = bigram(&merged, right - 1, right, limit)?;
        queue.extend(bigram.map(|bigram| ((priority(&bigram), numbers.next()), bigram)));
    }
    let seeded: Vec<Bigram> = queue.values().cloned().collect();

    let mut pops = Vec::new();
    while let Some((_, best)) = queue.pop_first() {
        let Bigram { left, right, .. } = best;
        let stale = match (merged[left].n, merged[right].n) {
            (0, _) => Some("left_gone"),
            (_, 0) => Some("right_gone"),
            (left, right) => (left + right != best.size).then_some("text_changed"),
        };
        let mut added = Vec::new();
        if stale.is_none() {
            let text = std::mem::take(&mut merged[right].text);
            let next = merged[right].next;
            merged[right].n = 0;
            merged[left].text.0.extend(text.0);
            (merged[left].n, merged[left].next) = (best.size, next);
            if let Ok(next) = usize::try_from(next) {
                merged[next].prev = left as i64;
            }
            for (left, right) in [(merged[left].prev, left as i64), (left as i64, next)] {
                added.extend(bigram(&merged, left, right, limit)?);
            }
            queue.extend(added.iter().map(|bigram| ((priority(bigram), numbers.next()), bigram.clone())));
        }
        pops.push(Pop { bigram: best, stale, added });
    }
    Ok(Merging { symbols, queue: seeded, pops, merged })
}

/// How the remaining symbols become tokens, whose ranges are in the text that merged. A symbol that is not a token is
/// spelled: `byte_token` has the token of a byte.
pub(super) fn spell_out(
    merging: &Merging,
    Tracing { vocabulary, limit }: &mut Tracing<'_>,
    byte_token: impl Fn(u8) -> ByteToken,
) -> Result<Traced<Vec<SymbolTokens>>> {
    let mut steps = Vec::new();
    let mut tokens = Vec::new();
    let mut end = 0;
    for Symbol { text, n, .. } in merging.merged.iter().filter(|symbol| symbol.n > 0) {
        limit.step(*n)?;
        let start = end;
        end += n;
        let token = vocabulary.id(&text.0);
        tokens.extend(token.map(|id| (id, start..end)));
        let mut bytes = Vec::new();
        for (&byte, at) in text.0.iter().zip(start..).filter(|_| token.is_none()) {
            limit.step(0)?;
            let byte = byte_token(byte);
            tokens.extend(byte.token.map(|id| (id, at..at + 1)));
            bytes.push(byte);
        }
        steps.push(SymbolTokens { text: text.clone(), token, bytes });
    }
    Ok(Traced { steps, tokens })
}
