//! Shows every step of every algorithm. These reference implementations are the best place to start reading this crate.
//!
//! [`Explainer::explain`] encodes a text in the textbook way (queues, lattices, longest matches, one look-up at a time)
//! and keeps every step in a [`Trace`]. It gives the same ids as [`Tokenizer::encode`], with which it shares the
//! vocabulary, WordPiece's classes of characters, the spelling of bytes and texts that keep their origins, but no
//! algorithm. One file per algorithm.

pub mod bytes;
pub mod double_array;
pub mod trace;

mod bpe;
mod hashed;
mod hybrid_dna;
mod limit;
mod merging;
mod origins;
mod patterns;
mod plamo2;
mod rwkv;
mod special;
mod spm;
pub mod story;
mod texts;
mod unigram;
mod why;
mod wordpiece;
mod xcda;

use std::ops::Range;
use std::sync::Arc;

pub use patterns::regex_matches;

use bytes::Bytes;
use limit::{Limit, Tracing};
use special::Item;
use trace::{CodePoint, Fragment, Steps, Token, Trace};

use ggtok_core::internals::Fragment as Input;
use ggtok_core::unicode::utf8;
use ggtok_core::vocab::{Kind, Strings};
use ggtok_core::{AsText, EncodeError, EncodeOptions, TokenId, Tokenizer, messages};

/// The longest text that can be explained, in bytes.
const MAX_TEXT: usize = 1 << 20;
/// The version of the schema.
const SCHEMA: u32 = 1;

/// The result of explaining.
pub type Result<T, E = ExplainError> = std::result::Result<T, E>;

/// What an algorithm did with a fragment: its steps and tokens.
pub(crate) struct Traced<S> {
    /// The steps.
    pub steps: S,
    /// The tokens, with their byte ranges in the fragment.
    pub tokens: Vec<(TokenId, Range<usize>)>,
}

/// Encodes texts step by step with one tokenizer.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use ggtok_explain::Explainer;
/// use ggtok_explain::trace::Steps;
/// use ggtok_core::vocab::{Definition, StringIndex};
/// use ggtok_core::{EncodeOptions, Tokenizer};
///
/// let (tokens, index) = StringIndex::concatenate(&["a", "b", "c", "ab", "bc"])?;
/// let (merges, rules) = StringIndex::concatenate(&["b c", "a b"])?;
/// let merges = Some(rules.view(&merges));
/// let definition =
///     Definition { model: "gpt2", pre: Some("gpt-2"), tokens: Some(index.view(&tokens)), merges, ..Definition::default() };
/// let explainer = Explainer::new(Arc::new(Tokenizer::new(&definition)?), merges);
///
/// let trace = explainer.explain("abc", EncodeOptions::new().add_special(false))?;
/// let ids: Vec<i32> = trace.tokens.iter().map(|token| token.id).collect();
/// assert_eq!(ids, [0, 4]);
/// let Some(Steps::Bpe(bpe)) = &trace.fragments[0].steps else { panic!("byte-pair encoding") };
/// let queue: Vec<_> = bpe.pieces[0].merging.queue.iter().map(|bigram| (&bigram.text.0[..], bigram.rank)).collect();
/// assert_eq!(queue, [(&b"bc"[..], Some(0)), (b"ab", Some(1))]);
///
/// let why = explainer.why(&trace, 0..2)?;
/// assert_eq!(
///     why.reasons[0].message,
///     "“bc” (merge 0) merged first, and took part of “ab”: “ab” (merge 1) comes later."
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Explainer {
    tokenizer: Arc<Tokenizer>,
    tracer: Tracer,
}

/// What an algorithm prepares once for a vocabulary.
#[derive(Debug)]
enum Tracer {
    None,
    Spm,
    Bpe(bpe::BpeTracer),
    WordPiece,
    Unigram(unigram::UnigramTracer),
    Rwkv(rwkv::RwkvTracer),
    Plamo2(Box<plamo2::Plamo2Tracer>),
    Test,
}

messages! {
    /// Why a text cannot be explained.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum ExplainError {
        /// The text cannot be encoded.
        Encode(error: EncodeError) => "{error}";
        /// The text is too long for a useful trace.
        TextTooLong { len: usize } => "a text of {len} bytes is longer than the {MAX_TEXT} that can be explained";
        /// A word of a double array is empty. Words are numbered from 0.
        EmptyWord { word: usize } => "word {word} is empty";
        /// A word of a double array has a zero byte, which its packed form needs for values.
        ZeroByte { word: usize, offset: usize } =>
            "word {word} has a zero byte at offset {offset}, which no key of an XCDA may have";
        /// The text takes more steps than a trace records.
        TooManySteps { limit: usize } =>
            "the text takes more than the {limit} steps that a trace records: explain a part of it";
        /// A pattern of the pre-tokenizer takes too long on this text with a backtracking engine.
        PatternTooSlow => "a pattern of the pre-tokenizer takes too long on this text";
        /// A range is empty, reversed, or extends beyond the text.
        Range { start: usize, end: usize, len: usize } =>
            "bytes {start} to {end} are not a part of a text of {len} bytes";
    }
}

impl std::error::Error for ExplainError {}

impl From<EncodeError> for ExplainError {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl Explainer {
    /// Prepares to explain what a tokenizer does. `merges` are the rules of its [`Definition`](ggtok_core::vocab::Definition), which
    /// a tokenizer does not keep as texts. O(total length of the rules).
    pub fn new(tokenizer: Arc<Tokenizer>, merges: Option<Strings<'_>>) -> Self {
        let vocabulary = tokenizer.vocabulary();
        let tracer = match vocabulary.kind() {
            Kind::None => Tracer::None,
            Kind::Spm => Tracer::Spm,
            // Every vocabulary of byte-pair encoding has a pre-tokenizer.
            Kind::Bpe => vocabulary.pre().map_or(Tracer::None, |pre| Tracer::Bpe(bpe::BpeTracer::new(pre, merges))),
            Kind::WordPiece => Tracer::WordPiece,
            Kind::Unigram => Tracer::Unigram(unigram::UnigramTracer::new(vocabulary)),
            Kind::Rwkv => Tracer::Rwkv(rwkv::RwkvTracer::new(vocabulary)),
            Kind::Plamo2 => Tracer::Plamo2(Box::new(plamo2::Plamo2Tracer::new(vocabulary))),
            Kind::Test => Tracer::Test,
        };
        Self { tokenizer, tracer }
    }

    /// Encodes a text and keeps every step. A trace takes many times the time and memory of [`Tokenizer::encode`], but
    /// both are bounded.
    ///
    /// # Errors
    /// [`ExplainError`]: the text cannot be encoded, is longer than a mebibyte, or takes more than a million steps.
    pub fn explain(&self, text: impl AsText, options: EncodeOptions) -> Result<Trace> {
        let text = text.as_text().as_bytes();
        if text.len() > MAX_TEXT {
            return Err(ExplainError::TextTooLong { len: text.len() });
        }
        let EncodeOptions { add_special, parse_special, continues, .. } = options;
        let vocabulary = self.tokenizer.vocabulary();
        let (added_before, added_after) = self.tokenizer.added_tokens(add_special)?;
        let added_before = added_before.filter(|_| !continues);
        let mut tracing = Tracing { vocabulary, limit: Limit::default() };
        let code_points = code_points(text, &mut tracing.limit)?;
        let (matches, items) = special::partition(text, parse_special, &mut tracing)?;
        let mut unread = Vec::new();
        if !parse_special {
            unread = special::partition(text, true, &mut tracing)?.0;
            unread.retain(|found| found.attribute != "user_defined");
        }

        let mut fragments = Vec::new();
        let mut tokens = Vec::from_iter(added_before.map(|id| self.token(id, 0..0, None)));
        let mut after_special = true;
        let mut continues_here = continues;
        for Item { start, end, token } in items {
            tracing.limit.step(0)?;
            let index = fragments.len();
            let first_token = tokens.len();
            let (steps, found) = match token {
                Some(id) => (None, vec![(id, 0..end - start)]),
                None => {
                    let text = &text[start..end];
                    let fragment = Input { text, start, after_special, continues: continues_here, is_utf8: false };
                    let Traced { steps, tokens } = self.trace(fragment, &mut tracing)?;
                    (Some(steps), tokens)
                }
            };
            (after_special, continues_here) = (token.is_some(), false);
            for (id, range) in found {
                tracing.limit.step(0)?;
                tokens.push(self.token(id, start + range.start..start + range.end, Some(index)));
            }
            fragments.push(Fragment { start, end, token, steps, first_token, num_tokens: tokens.len() - first_token });
        }
        tokens.extend(added_after.map(|id| self.token(id, text.len()..text.len(), None)));

        Ok(Trace {
            schema: SCHEMA,
            algorithm: vocabulary.kind().name(),
            text: Bytes::from(text),
            add_special,
            parse_special,
            continues,
            code_points,
            unread,
            special: matches,
            fragments,
            added_before,
            added_after,
            tokens,
        })
    }

    /// What the vocabulary's algorithm does with a fragment.
    fn trace(&self, fragment: Input<'_>, tracing: &mut Tracing<'_>) -> Result<Traced<Steps>> {
        match &self.tracer {
            Tracer::Bpe(bpe) if tracing.vocabulary.model() == "hybriddna" => {
                hybrid_dna::trace(bpe, fragment.text, tracing)
            }
            Tracer::Bpe(bpe) => bpe.trace_fragment(fragment.text, tracing),
            Tracer::Spm => spm::trace(fragment, tracing),
            Tracer::WordPiece => wordpiece::trace(fragment, tracing),
            Tracer::Unigram(unigram) => unigram.trace(fragment, tracing),
            Tracer::Rwkv(rwkv) => rwkv.trace(fragment, tracing),
            Tracer::Plamo2(plamo2) => plamo2.trace(fragment, tracing),
            Tracer::Test => hashed::trace(fragment, tracing),
            Tracer::None => Err(EncodeError::NoVocabulary.into()),
        }
    }

    fn token(&self, id: TokenId, span: Range<usize>, fragment: Option<usize>) -> Token {
        let text = Bytes::from(self.tokenizer.vocabulary().text(id));
        let piece = Bytes::from(self.tokenizer.piece(id, true).unwrap_or_default());
        Token { id, piece, text, start: span.start, end: span.end, fragment }
    }
}

fn code_points(text: &[u8], limit: &mut Limit) -> Result<Vec<CodePoint>> {
    let code_point = |(code_point, Range { start, end }): (u32, Range<usize>)| {
        limit.step(0)?;
        Ok(CodePoint { start, end, code_point })
    };
    utf8::code_points(text).map(code_point).collect()
}

#[cfg(test)]
mod tests;
