//! Many texts at once: runs of texts, encoded by several threads and joined into one flat array.
//!
//! A run is about [`RUN`] bytes of consecutive texts, so that threads finish together. The calling thread hands out runs
//! while it reads the texts, and the others encode them meanwhile; then it works too. Each run is encoded into the
//! buffer of a thread and copied to its place in the result (see [`join`]). Threads share only the lists of waiting
//! runs. O(total length / threads).

mod decode;
mod join;
mod rows;

pub use decode::{DecodeBatchError, DecodedRows};
pub use rows::{Padded, Padding, PaddingError, Rows, Side};

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::many::batch::join::{Join, Memory, Run};
#[cfg(feature = "segmentation")]
use crate::many::chunks::truncate::Truncation;
use crate::token::TokenId;
use crate::tokenizer::{AsText, EncodeOptions, Text, Tokenizer};
use crate::work::memory::{self, push};
use crate::work::threads::{Lead, share};

/// Bytes of text that a thread takes at a time.
const RUN: usize = 1 << 16;
/// Room in the result, per text, for the tokens that are added and for a text of a byte or two.
const IDS_PER_TEXT: usize = 4;
/// Bytes of text per id that the result has room for. Few texts have more ids. The room is not written to before it is
/// needed.
const BYTES_PER_ID: usize = 2;

/// Without the feature, texts are not truncated.
#[cfg(not(feature = "segmentation"))]
type Truncation = Infallible;

/// The tokens of several texts, end to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// All ids.
    pub ids: Vec<TokenId>,
    /// Text `i` has the ids `offsets[i]..offsets[i + 1]`: one more offset than texts.
    pub offsets: Vec<i64>,
}

/// What a batch is made of.
pub trait BatchText: Send {
    /// The text; `None` for a null, which has no tokens.
    fn text(&self) -> Option<Text<'_>>;
}

impl BatchText for Text<'_> {
    fn text(&self) -> Option<Text<'_>> {
        Some(*self)
    }
}

/// Consecutive texts.
struct Texts<T> {
    /// The number of the run.
    number: usize,
    /// The index of its first text.
    first: usize,
    texts: Vec<T>,
}

/// Takes the texts of a batch. Other threads encode them meanwhile.
pub struct Feed<'a, T> {
    lead: Lead<'a, Texts<T>>,
    /// The next run, and the bytes of its texts.
    next: Texts<T>,
    num_next_bytes: usize,
    /// The bytes of all texts.
    num_bytes: usize,
    /// Called with the number of bytes and of texts, once they are known.
    reserve: Option<&'a mut (dyn FnMut(usize, usize) + Send)>,
}

impl<T: BatchText> Feed<'_, T> {
    /// Adds a text.
    pub fn push(&mut self, text: T) {
        // Empty texts take time too.
        let num_bytes = text.text().map_or(0, |text| text.as_bytes().len()) + 1;
        self.num_bytes += num_bytes;
        self.num_next_bytes += num_bytes;
        push(&mut self.next.texts, text);
        if self.num_next_bytes >= RUN {
            self.hand_out();
        }
    }

    /// The bytes of all texts so far, and one for each text.
    pub fn num_bytes(&self) -> usize {
        self.num_bytes
    }

    /// Works until all texts are encoded. Called after the last text, or when the feed is dropped.
    pub fn finish(&mut self) {
        if let Some(reserve) = self.reserve.take() {
            if !self.next.texts.is_empty() {
                self.hand_out();
            }
            // One run needs no place: the array is its buffer.
            if self.next.number > 1 {
                reserve(self.num_bytes, self.next.first);
            }
            self.lead.finish();
        }
    }

    fn hand_out(&mut self) {
        let Texts { number, first, ref texts } = self.next;
        let following = Texts { number: number + 1, first: first + texts.len(), texts: Vec::new() };
        self.num_next_bytes = 0;
        let run = std::mem::replace(&mut self.next, following);
        self.lead.push(run);
    }
}

impl Tokenizer {
    /// Encodes texts on at most `threads` threads.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`], with the index of the first text that fails, or 0 if there is not enough memory for all.
    pub fn encode_batch(
        &self,
        texts: &[impl AsText],
        options: EncodeOptions,
        threads: usize,
    ) -> Result<Batch, (usize, EncodeError)> {
        let Ok(batch) = self.encode_batch_from(options, None, threads, all(texts));
        batch
    }

    /// Counts the tokens of each text; otherwise as [`Tokenizer::encode_batch`].
    ///
    /// # Errors
    /// As [`Tokenizer::encode_batch`].
    pub fn count_batch(
        &self,
        texts: &[impl AsText],
        options: EncodeOptions,
        threads: usize,
    ) -> Result<Vec<usize>, (usize, EncodeError)> {
        let Ok(counts) = self.count_batch_from(options, threads, all(texts));
        counts
    }

    /// As [`Tokenizer::encode_batch`], with the texts that `read` passes on, which other threads encode meanwhile. With a
    /// `budget`, which must hold the tokens that are added, each text is truncated first.
    ///
    /// # Errors
    /// What `read` returns; otherwise as [`Tokenizer::encode_batch`].
    pub fn encode_batch_from<T: BatchText, E>(
        &self,
        options: EncodeOptions,
        budget: Option<(usize, Truncation)>,
        threads: usize,
        read: impl FnOnce(&mut Feed<'_, T>) -> Result<(), E>,
    ) -> Result<Result<Batch, (usize, EncodeError)>, E> {
        let mut memory = Memory::new();
        let join = Join::new();
        let step = |encoder: &mut Encoder<&Self>, spare: &mut Run, Texts { number, first, texts }: Texts<T>| {
            let mut run = std::mem::take(spare);
            for (index, text) in texts.iter().enumerate() {
                if let Some(text) = text.text() {
                    let result = match budget {
                        #[cfg(feature = "segmentation")]
                        Some(budget) => encoder.encode_truncated(text, budget, options, &mut run.ids),
                        #[cfg(not(feature = "segmentation"))]
                        Some((_, never)) => match never {},
                        None => encoder.encode_into(text, options, &mut run.ids),
                    };
                    result.map_err(|error| (first + index, error))?;
                }
                push(&mut run.ends, run.ids.len());
            }
            *spare = join.put(number, run);
            Ok(())
        };
        let mut lent = Some(&mut memory);
        let mut reserve = |num_bytes: usize, num_texts: usize| {
            if let Some(memory) = lent.take() {
                let most = budget.map_or(usize::MAX, |(max_tokens, _)| max_tokens.saturating_mul(num_texts));
                join.reserve(memory, most.min(num_bytes / BYTES_PER_ID + IDS_PER_TEXT * num_texts), num_texts);
            }
        };
        if let Err(error) = share_texts(self, threads, step, &mut reserve, read)? {
            return Ok(Err(error));
        }
        let others = join.into_waiting();
        Ok(memory::catch(|| memory.into_batch(others)).map_err(|error| (0, error.into())))
    }

    /// As [`Tokenizer::count_batch`], with the texts that `read` passes on, which other threads encode meanwhile.
    ///
    /// # Errors
    /// What `read` returns; otherwise as [`Tokenizer::encode_batch`].
    pub fn count_batch_from<T: BatchText, E>(
        &self,
        options: EncodeOptions,
        threads: usize,
        read: impl FnOnce(&mut Feed<'_, T>) -> Result<(), E>,
    ) -> Result<Result<Vec<usize>, (usize, EncodeError)>, E> {
        let runs = Mutex::new(Vec::new());
        let step = |encoder: &mut Encoder<&Self>, (): &mut (), Texts { number, first, texts }: Texts<T>| {
            let mut counts = Vec::with_capacity(texts.len());
            for (index, text) in texts.iter().enumerate() {
                let count = text.text().map_or(Ok(0), |text| encoder.count_with(text, options));
                counts.push(count.map_err(|error| (first + index, error))?);
            }
            runs.lock().unwrap_or_else(PoisonError::into_inner).push((number, counts));
            Ok(())
        };
        if let Err(error) = share_texts(self, threads, step, &mut |_, _| (), read)? {
            return Ok(Err(error));
        }
        let mut runs = runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        runs.sort_unstable_by_key(|&(number, _)| number);
        Ok(Ok(runs.into_iter().flat_map(|(_, counts)| counts).collect()))
    }
}

/// Passes on texts.
fn all<'t>(texts: &'t [impl AsText]) -> impl FnOnce(&mut Feed<'_, Text<'t>>) -> Result<(), Infallible> {
    |feed| {
        texts.iter().for_each(|text| feed.push(text.as_text()));
        Ok(())
    }
}

/// Calls `step` with every run of the texts that `read` passes on, and returns the first error.
fn share_texts<T: BatchText, S: Default + Send, E>(
    tokenizer: &Tokenizer,
    threads: usize,
    step: impl Fn(&mut Encoder<&Tokenizer>, &mut S, Texts<T>) -> Result<(), (usize, EncodeError)> + Sync,
    reserve: &mut (dyn FnMut(usize, usize) + Send),
    read: impl FnOnce(&mut Feed<'_, T>) -> Result<(), E>,
) -> Result<Result<(), (usize, EncodeError)>, E> {
    let state = || (S::default(), Vec::new());
    let step = |(state, errors): &mut (S, Vec<(usize, EncodeError)>), run: Texts<T>| {
        errors.extend(tokenizer.with_encoder(|encoder| step(encoder, state, run)).err());
    };
    let lead = |lead: Lead<'_, Texts<T>>| {
        let next = Texts { number: 0, first: 0, texts: Vec::new() };
        let mut feed = Feed { lead, next, num_next_bytes: 0, num_bytes: 0, reserve: Some(reserve) };
        let result = read(&mut feed);
        if result.is_ok() {
            feed.finish();
        }
        result
    };
    let shared = memory::catch(|| share(threads.saturating_sub(1), state, step, lead));
    let (result, states) = match shared {
        Ok(shared) => shared,
        Err(error) => return Ok(Err((0, error.into()))),
    };
    let mut first = None;
    for (_, errors) in states {
        first = first.into_iter().chain(errors).min_by_key(|&(index, _)| index);
    }
    result.map(|()| first.map_or(Ok(()), Err))
}

#[cfg(test)]
mod tests {
    use super::{Feed, RUN, Texts};
    use crate::tokenizer::Text;
    use crate::work::threads::share;

    #[test]
    fn runs_are_handed_out_without_gap_or_overlap() {
        let letters: &str = "a".repeat(2 * RUN).leak();
        for lens in [&[][..], &[0], &[0, 0, 0], &[RUN], &[RUN - 2, 1, 1], &[2 * RUN, 0, RUN, 5], &[1; 100]] {
            let step = |runs: &mut Vec<Texts<Text<'static>>>, run| runs.push(run);
            let mut totals = None;
            let mut reserve = |num_bytes, num_texts| totals = Some((num_bytes, num_texts));
            let ((), mut states) = share(0, Vec::new, step, |lead| {
                let next = Texts { number: 0, first: 0, texts: Vec::new() };
                let mut feed = Feed { lead, next, num_next_bytes: 0, num_bytes: 0, reserve: Some(&mut reserve) };
                lens.iter().for_each(|&len| feed.push(Text::Str(&letters[..len])));
                feed.finish();
            });
            let runs = states.pop().unwrap();
            let mut next = 0;
            for (number, run) in runs.iter().enumerate() {
                let sizes: Vec<usize> = run.texts.iter().map(|text| text.as_bytes().len() + 1).collect();
                assert_eq!((run.number, run.first), (number, next));
                next += sizes.len();
                let (&last, before) = sizes.split_last().expect("a text");
                let size = before.iter().sum::<usize>();
                // A run is full only once its last text is added.
                assert!(size < RUN && (size + last >= RUN || number + 1 == runs.len()), "{lens:?}");
            }
            assert_eq!(next, lens.len());
            let expected = (lens.iter().sum::<usize>() + lens.len(), lens.len());
            assert_eq!(totals, (runs.len() > 1).then_some(expected));
        }
    }
}
