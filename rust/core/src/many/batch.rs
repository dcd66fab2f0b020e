//! Many texts at once: groups of texts, encoded by several threads and joined into one flat array.
//!
//! A group is about [`GROUP`] bytes of consecutive texts, so that threads finish together. The calling thread hands out
//! groups while it reads the texts, and the others encode them meanwhile; then it works too. Each group is encoded into
//! the buffer of a thread and copied from there into the result (see [`join`]). Threads share only the lists of waiting
//! groups. O(total length / threads).

mod decode;
mod join;
mod rows;

pub use decode::{DecodeBatchError, DecodedRows};
pub use rows::{Padded, Padding, PaddingError, Rows, Side};

use std::convert::Infallible;

use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::many::batch::join::{Group, Join};
#[cfg(feature = "segmentation")]
use crate::many::chunks::truncate::Truncation;
use crate::token::TokenId;
use crate::tokenizer::{AsText, EncodeOptions, Text, Tokenizer};
use crate::work::memory::{self, collect, push};
use crate::work::threads::{Jobs, Producer, share};

/// Bytes of text in a group, which a thread takes at a time.
const GROUP: usize = 1 << 16;
/// Room in the result, per text, for the tokens that are added and for a text of a byte or two.
const IDS_PER_TEXT: usize = 4;
/// Bytes of text per id that the result has room for: most texts have fewer ids. The room is written to only as far as
/// it is needed.
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
    /// The number of the group.
    number: usize,
    /// The index of its first text.
    first: usize,
    texts: Vec<T>,
}

/// Takes the texts of a batch. Other threads encode them meanwhile.
pub struct BatchInput<'a, T> {
    producer: Producer<'a, Texts<T>>,
    /// The next group, and the bytes of its texts.
    next: Texts<T>,
    num_next_bytes: usize,
    /// The bytes of all texts.
    num_bytes: usize,
    /// Called with the number of bytes and of texts, once they are known.
    reserve: Option<&'a mut (dyn FnMut(usize, usize) + Send)>,
}

impl<T: BatchText> BatchInput<'_, T> {
    /// Adds a text.
    pub fn push(&mut self, text: T) {
        // Empty texts take time too.
        let num_bytes = text.text().map_or(0, |text| text.as_bytes().len()) + 1;
        self.num_bytes += num_bytes;
        self.num_next_bytes += num_bytes;
        push(&mut self.next.texts, text);
        if self.num_next_bytes >= GROUP {
            self.hand_out();
        }
    }

    /// The bytes of all texts so far, and one for each text.
    pub fn num_bytes(&self) -> usize {
        self.num_bytes
    }

    /// Works until all texts are encoded. None may be added afterwards.
    pub fn finish(&mut self) {
        if let Some(reserve) = self.reserve.take() {
            if !self.next.texts.is_empty() {
                self.hand_out();
            }
            // The buffer of a single group becomes the result.
            if self.next.number > 1 {
                reserve(self.num_bytes, self.next.first);
            }
            self.producer.finish();
        }
    }

    fn hand_out(&mut self) {
        let Texts { number, first, ref texts } = self.next;
        let following = Texts { number: number + 1, first: first + texts.len(), texts: Vec::new() };
        self.num_next_bytes = 0;
        let group = std::mem::replace(&mut self.next, following);
        self.producer.push(group);
    }
}

impl Tokenizer {
    /// Encodes texts on at most `threads` threads.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`], with the index of the first text that fails.
    pub fn encode_batch(
        &self,
        texts: &[impl AsText],
        options: EncodeOptions,
        threads: usize,
    ) -> Result<Batch, (usize, EncodeError)> {
        let Ok(batch) = self.encode_batch_from(options, None, None, threads, all(texts));
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

    /// As [`Tokenizer::encode_batch`], with the texts that `read` passes on, which other threads encode meanwhile. With
    /// a `budget`, which must hold the tokens that are added, each text is truncated first. The id `last` follows each
    /// text.
    ///
    /// # Errors
    /// What `read` returns; otherwise as [`Tokenizer::encode_batch`].
    pub fn encode_batch_from<T: BatchText, E>(
        &self,
        options: EncodeOptions,
        budget: Option<(usize, Truncation)>,
        last: Option<TokenId>,
        threads: usize,
        read: impl FnOnce(&mut BatchInput<'_, T>) -> Result<(), E>,
    ) -> Result<Result<Batch, (usize, EncodeError)>, E> {
        let encode = |encoder: &mut Encoder<&Self>, text: Text<'_>, ids: &mut Vec<TokenId>| {
            let before = ids.len();
            match budget {
                #[cfg(feature = "segmentation")]
                Some(budget) => encoder.encode_truncated(text, budget, options, ids),
                #[cfg(not(feature = "segmentation"))]
                Some((_, never)) => match never {},
                None => encoder.encode_into(text, options, ids),
            }?;
            memory::extend(ids, last.into_iter());
            Ok(ids.len() - before)
        };
        self.share_texts(threads, budget.map_or(usize::MAX, |(max_tokens, _)| max_tokens), encode, read)
    }

    /// As [`Tokenizer::count_batch`], with the texts that `read` passes on, which other threads encode meanwhile.
    ///
    /// # Errors
    /// What `read` returns; otherwise as [`Tokenizer::encode_batch`].
    pub fn count_batch_from<T: BatchText, E>(
        &self,
        options: EncodeOptions,
        threads: usize,
        read: impl FnOnce(&mut BatchInput<'_, T>) -> Result<(), E>,
    ) -> Result<Result<Vec<usize>, (usize, EncodeError)>, E> {
        let count =
            |encoder: &mut Encoder<&Self>, text: Text<'_>, _: &mut Vec<TokenId>| encoder.count_with(text, options);
        let batch = self.share_texts(threads, 0, count, read)?;
        Ok(batch.and_then(|Batch { offsets, .. }| {
            let counts = || collect(offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize));
            memory::catch(counts).map_err(|error| (0, error.into()))
        }))
    }

    /// Encodes the texts that `read` passes on. `encode` returns the number of tokens, and appends their ids, of which
    /// the result has room for `max_tokens` per text; or it appends none, and only the offsets count.
    fn share_texts<T: BatchText, E>(
        &self,
        threads: usize,
        max_tokens: usize,
        encode: impl Fn(&mut Encoder<&Self>, Text<'_>, &mut Vec<TokenId>) -> Result<usize, EncodeError> + Sync,
        read: impl FnOnce(&mut BatchInput<'_, T>) -> Result<(), E>,
    ) -> Result<Result<Batch, (usize, EncodeError)>, E> {
        let join = Join::default();
        let mut reserve = |num_bytes: usize, num_texts: usize| {
            let most = max_tokens.saturating_mul(num_texts);
            join.reserve(most.min(num_bytes / BYTES_PER_ID + IDS_PER_TEXT * num_texts), num_texts);
        };
        let encode_group = |texts: &[T], group: &mut Group| {
            let mut end = 0;
            let mut encode_all = |encoder: &mut Encoder<&Self>| {
                texts.iter().try_for_each(|text| {
                    end += text.text().map_or(Ok(0), |text| encode(encoder, text, &mut group.ids))?;
                    push(&mut group.ends, end);
                    Ok(())
                })
            };
            memory::catch(|| self.with_encoder(&mut encode_all))?
        };
        // Runs are taken in order, so the first error of a thread is the one with the lowest index.
        let work = |jobs: &Jobs<Texts<T>>| {
            let mut group = Group::default();
            for Texts { number, first, texts } in jobs {
                if let Err(error) = encode_group(&texts, &mut group) {
                    return Some((first + group.ends.len(), error));
                }
                group = join.put(number, group);
            }
            None
        };
        let produce = |producer: Producer<'_, Texts<T>>| {
            let next = Texts { number: 0, first: 0, texts: Vec::new() };
            let mut input = BatchInput { producer, next, num_next_bytes: 0, num_bytes: 0, reserve: Some(&mut reserve) };
            let result = memory::catch(|| {
                read(&mut input)?;
                input.finish();
                Ok(())
            });
            result.map_err(|error| (input.next.first + input.next.texts.len(), EncodeError::from(error)))
        };
        let (result, mut failed) = share(threads.saturating_sub(1), work, produce);
        match result {
            Ok(result) => result?,
            Err(error) => failed.push(Some(error)),
        }
        let first = failed.into_iter().flatten().min_by_key(|&(index, _)| index);
        Ok(first.map_or_else(|| join.into_batch(), Err))
    }
}

/// Passes on texts.
fn all<'t>(texts: &'t [impl AsText]) -> impl FnOnce(&mut BatchInput<'_, Text<'t>>) -> Result<(), Infallible> {
    |input| {
        texts.iter().for_each(|text| input.push(text.as_text()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{BatchInput, GROUP, Texts};
    use crate::tokenizer::Text;
    use crate::work::threads::{Jobs, share};

    #[test]
    fn groups_are_handed_out_without_gap_or_overlap() {
        let letters: &str = "a".repeat(2 * GROUP).leak();
        for lens in [&[][..], &[0], &[0, 0, 0], &[GROUP], &[GROUP - 2, 1, 1], &[2 * GROUP, 0, GROUP, 5], &[1; 100]] {
            let work = |jobs: &Jobs<Texts<Text<'static>>>| jobs.collect::<Vec<_>>();
            let mut totals = None;
            let mut reserve = |num_bytes, num_texts| totals = Some((num_bytes, num_texts));
            let ((), mut states) = share(0, work, |producer| {
                let next = Texts { number: 0, first: 0, texts: Vec::new() };
                let mut input =
                    BatchInput { producer, next, num_next_bytes: 0, num_bytes: 0, reserve: Some(&mut reserve) };
                lens.iter().for_each(|&len| input.push(Text::Str(&letters[..len])));
                input.finish();
            });
            let groups = states.pop().unwrap();
            let mut next = 0;
            for (number, group) in groups.iter().enumerate() {
                let sizes: Vec<usize> = group.texts.iter().map(|text| text.as_bytes().len() + 1).collect();
                assert_eq!((group.number, group.first), (number, next));
                next += sizes.len();
                let (&last, before) = sizes.split_last().expect("a text");
                let size = before.iter().sum::<usize>();
                // A group is full only once its last text is added.
                assert!(size < GROUP && (size + last >= GROUP || number + 1 == groups.len()), "{lens:?}");
            }
            assert_eq!(next, lens.len());
            let expected = (lens.iter().sum::<usize>() + lens.len(), lens.len());
            assert_eq!(totals, (groups.len() > 1).then_some(expected));
        }
    }
}
