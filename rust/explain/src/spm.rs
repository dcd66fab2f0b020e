//! SentencePiece BPE as in llama.cpp: characters merge into tokens, the pair with the highest score first.
//!
//! 1. A space goes before the text if the vocabulary says so, and each space becomes `▁`.
//! 2. Each character is a symbol. Two neighbours can merge if their joined text is a token; its score says how soon. Of
//!    equal scores, the leftmost pair is first.
//! 3. Each remaining symbol is the token with its text, or else one token for each of its bytes.
//!
//! Source: Kudo and Richardson, "SentencePiece" (2018); llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_spm_session`.
//! Complexity: O(n log n) for n characters.
//!
//! Deviations: those of the core: a byte that is not a token, on which llama.cpp aborts, becomes the unknown
//! token, or nothing if there is none; a score of NaN counts as the lowest.

use std::collections::BTreeMap;

use ggtok_core::internals::spelling::byte_text;
use ggtok_core::internals::{Fragment, Rewritten};

use super::limit::Tracing;
use super::merging::{Merge, merge, spell_out};
use super::origins;
use super::trace::{ByteToken, RevMerge, Spm, Steps};
use super::{Bytes, Result, Traced};

/// Traces a fragment.
pub(super) fn trace(fragment: Fragment<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
    let vocabulary = tracing.vocabulary;
    let space_prefix = vocabulary.settings().add_space_prefix && fragment.after_special && !fragment.continues;
    let escaped = Rewritten::escaped(fragment.text, 0, space_prefix, true);

    let merging = merge(&escaped.text, &mut tracing.limit, |left, right| {
        let token = vocabulary.id(&[left, right].concat())?;
        Some(Merge { score: Some(vocabulary.score(token)), rank: None, token: Some(token) })
    })?;

    // The queue in the order of seeding, so that the last of equal texts wins.
    let mut bigrams: Vec<_> = merging.queue.iter().collect();
    bigrams.sort_by_key(|bigram| bigram.left);
    bigrams.extend(merging.pops.iter().flat_map(|pop| &pop.added));
    let rev_merge: BTreeMap<_, _> =
        bigrams.iter().map(|bigram| (&bigram.text.0, (bigram.left, bigram.right))).collect();
    let rev_merge = rev_merge.into_iter();
    let rev_merge = rev_merge.map(|(text, (left, right))| RevMerge { text: Bytes::from(text), left, right }).collect();

    let Traced { steps: symbols, tokens } = spell_out(&merging, tracing, |byte| ByteToken {
        text: Bytes::from(&byte_text(byte)),
        token: vocabulary.byte_token(byte).or(vocabulary.special().unk),
    })?;
    let tokens = tokens.into_iter().map(|(id, range)| (id, escaped.span(range))).collect();
    let origins = origins::of(&escaped);
    let escaped = Bytes::from(&escaped.text);
    let steps = Steps::Spm(Spm { space_prefix, escaped, origins, merging, rev_merge, symbols });
    Ok(Traced { steps, tokens })
}
