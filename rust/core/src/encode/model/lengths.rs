//! Spans from the lengths of tokens: faster than tracing each token, because caches hold ids but not spans.
//!
//! If an algorithm drops nothing, the tokens of a fragment tile it: each starts where the one before ends. So a
//! fragment is encoded without spans, and each token is given as many bytes as its text has. That is certain to be
//! right only if the lengths add up:
//! 1. The length of a token is the least number of bytes that it can stand for. A byte token may also come from its own
//!    text, such as `<0x0A>`, and an escaped space may be three bytes in the input; then the length is too low.
//! 2. So the sum of all lengths is at most the length of the fragment, and equal only if every token has its least
//!    length and no byte is dropped.
//! 3. If it is less, the fragment is encoded again, with spans. A token for which (1) does not hold has no length.
//!
//! O(1) per token; one byte per token of the vocabulary.

use memchr::memmem;

use super::Fragment;
use crate::encode::sink::Sink;
use crate::token::TokenId;
use crate::vocabulary::Vocabulary;
use crate::vocabulary::spelling::ESCAPED_SPACE;
use crate::vocabulary::spelling::byte_level::unspell_all;
use crate::work::interrupt;
use crate::work::memory::push;

/// Tokens between two checks for an interrupt.
const TOKENS_AT_ONCE: usize = 1 << 12;

/// The least number of bytes that each token stands for.
#[derive(Debug)]
pub(crate) struct Lengths(Vec<u8>);

heap_bytes!(Lengths: 0);

impl Lengths {
    /// Stands for a length that is unknown or too large.
    const NONE: u8 = u8::MAX;

    /// The lengths of the tokens in the order of their ids.
    pub(super) fn new(lengths: impl Iterator<Item = Option<usize>>) -> Self {
        let length = |length: Option<usize>| length.and_then(|length| length.try_into().ok()).unwrap_or(Self::NONE);
        let mut all = Vec::new();
        lengths.for_each(|unchecked| push(&mut all, length(unchecked)));
        Self(all)
    }

    /// The lengths of texts in which spaces are escaped: each escaped space counts as one byte.
    pub(super) fn of_escaped(vocabulary: &Vocabulary) -> Self {
        let num_escaped = |text: &[u8]| memmem::find_iter(text, ESCAPED_SPACE).count();
        let length = |text: &[u8]| text.len() - num_escaped(text) * (ESCAPED_SPACE.len() - 1);
        Self::new(vocabulary.texts().iter().map(|text| Some(length(text))))
    }

    /// The lengths of texts that spell bytes with GPT-2's characters. A text with any other character is not a symbol:
    /// its token stands for part of the spelling of a byte.
    pub(super) fn of_byte_level(vocabulary: &Vocabulary) -> Self {
        let mut spelled = Vec::new();
        let length = |text: &[u8]| {
            spelled.clear();
            unspell_all(text, &mut spelled).then_some(spelled.len())
        };
        Self::new(vocabulary.texts().iter().map(length))
    }

    /// Changes the length of a token.
    pub(super) fn set(&mut self, id: TokenId, length: Option<u8>) {
        if let Some(old) = usize::try_from(id).ok().and_then(|id| self.0.get_mut(id)) {
            *old = length.unwrap_or(Self::NONE);
        }
    }

    #[inline(always)]
    fn get(&self, id: TokenId) -> u8 {
        self.0.get(id as usize).copied().unwrap_or(Self::NONE)
    }

    /// Pushes the tokens of a fragment with their spans, if their lengths add up. `first` is where the first token
    /// starts in the fragment: negative if it starts with a space that was added before the fragment.
    pub(crate) fn push_all<S: Sink>(
        &self,
        ids: &[TokenId],
        fragment: Fragment<'_>,
        first: isize,
        sink: &mut S,
    ) -> bool {
        let mut sum = first;
        let mut is_known = true;
        for ids in ids.chunks(TOKENS_AT_ONCE) {
            interrupt::check();
            for &id in ids {
                let length = self.get(id);
                is_known &= length != Self::NONE;
                sum += isize::from(length);
            }
        }
        if !is_known || usize::try_from(sum) != Ok(fragment.text.len()) {
            return false;
        }

        let start = fragment.start as isize;
        let mut at = start + first;
        for ids in ids.chunks(TOKENS_AT_ONCE) {
            interrupt::check();
            let spans = ids.iter().map(|&id| {
                let from = at;
                at += isize::from(self.get(id));
                from.max(start) as usize..at.max(start) as usize
            });
            sink.push_spanned(ids, spans);
        }
        true
    }
}
