//! Hybrid DNA: byte-pair encoding, but between `<dna>` and `</dna>` every six letters are one token.
//!
//! The letters of such a k-mer are looked up as capitals; a shorter remainder is padded with A. A k-mer that is not a
//! token becomes `<oov>`. A vocabulary without one of the three tags uses byte-pair encoding everywhere.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_hybriddna_session`. Complexity: O(n) for n bytes, plus
//! [`bpe`](super::bpe) for the text outside. Deviations: none.

use memchr::memmem;

use ggtok_core::TokenId;
use ggtok_core::internals::{DNA_MARKER, Rewritten};

use super::bpe::BpeTracer;
use super::limit::Tracing;
use super::origins;
use super::trace::{HybridDna, Kmer, Steps, Stretch};
use super::{Bytes, Result, Traced};

/// Letters of a k-mer.
const K: usize = 6;
const OPEN: &[u8] = b"<dna>";
const CLOSE: &[u8] = b"</dna>";

/// Traces a text.
pub(super) fn trace(bpe: &BpeTracer, text: &[u8], tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
    let vocabulary = tracing.vocabulary;
    let tags = [OPEN, CLOSE, b"<oov>"].map(|text| vocabulary.id(text));
    let [Some(open), Some(close), Some(oov)] = tags else { return bpe.trace_fragment(text, tracing) };
    // llama.cpp escapes spaces before it looks for tags.
    let escaped = if vocabulary.settings().escape_whitespaces {
        Rewritten::escaped(text, 0, false, true)
    } else {
        Rewritten::unchanged(text, 0)
    };

    let mut stretches = Vec::new();
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut in_dna = false;
    while at < escaped.text.len() {
        let (tag, id) = if in_dna { (CLOSE, close) } else { (OPEN, open) };
        let found = memmem::find(&escaped.text[at..], tag).map(|found| at + found);
        let end = found.unwrap_or(escaped.text.len());
        let stretch = Stretch { start: at, end, tag: None, kmers: Vec::new(), bpe: None };
        let inside = &escaped.text[at..end];
        if in_dna {
            let kmers = kmers(inside, at, oov, tracing)?;
            tokens.extend(kmers.iter().map(|kmer| (kmer.token, escaped.span(kmer.start..kmer.end))));
            stretches.push(Stretch { kmers, ..stretch });
        } else if !inside.is_empty() {
            let traced = bpe.trace(inside, tracing)?;
            let shifted = traced.tokens.into_iter().map(|(id, range)| (id, at + range.start..at + range.end));
            tokens.extend(shifted.map(|(id, range)| (id, escaped.span(range))));
            stretches.push(Stretch { bpe: Some(traced.steps), ..stretch });
        }
        at = end;
        if let Some(start) = found {
            tracing.limit.step(0)?;
            at += tag.len();
            tokens.push((id, escaped.span(start..at)));
            stretches.push(Stretch { start, end: at, tag: Some(id), kmers: Vec::new(), bpe: None });
            in_dna = !in_dna;
        }
    }
    let steps = HybridDna { text: Bytes::from(&escaped.text), origins: origins::of(&escaped), stretches };
    Ok(Traced { steps: Steps::HybridDna(steps), tokens })
}

/// The k-mers of letters that start at byte `start` of the text.
fn kmers(letters: &[u8], start: usize, oov: TokenId, tracing: &mut Tracing<'_>) -> Result<Vec<Kmer>> {
    let mut kmers = Vec::new();
    for (letters, start) in letters.chunks(K).zip((start..).step_by(K)) {
        tracing.limit.step(K)?;
        let mut text = letters.to_ascii_uppercase();
        text.resize(K, b'A');
        let known = tracing.vocabulary.id(&[&text[..], DNA_MARKER].concat());
        kmers.push(Kmer {
            start,
            end: start + letters.len(),
            text: Bytes(text),
            token: known.unwrap_or(oov),
            is_known: known.is_some(),
        });
    }
    Ok(kmers)
}
