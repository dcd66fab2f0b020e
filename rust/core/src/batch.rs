//! Many texts at once, over several threads, into one flat array.
//!
//! Texts are dealt out in runs of about [`RUN`] bytes, so that threads finish together; each run is encoded into an
//! array of its own and the arrays are joined at the end, in order. Threads share nothing but the number of the next
//! run. O(total length / threads).

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::error::EncodeError;
use crate::sink::{Count, Sink, TokenId};
use crate::tokenizer::{EncodeOptions, Scratch, Text, Tokenizer};

/// Bytes of text that a thread takes at a time.
const RUN: usize = 1 << 16;

/// The tokens of several texts, end to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// All ids.
    pub ids: Vec<TokenId>,
    /// Text `i` has the ids `offsets[i]..offsets[i + 1]`: one offset more than texts.
    pub offsets: Vec<i64>,
}

/// What a run gives: a sink, and how far it had come after each text.
type Done<S> = (usize, S, Vec<usize>);

impl Tokenizer {
    /// Encodes texts on at most `threads` threads, with scratch spaces that are taken from `pool` and go back to it.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`], with the index of the first text at fault.
    pub fn encode_batch(
        &self,
        texts: &[Text<'_>],
        options: EncodeOptions,
        threads: usize,
        pool: &Mutex<Vec<Scratch>>,
    ) -> Result<Batch, (usize, EncodeError)> {
        let runs = self.run_batch(texts, options, threads, pool, |ids: &Vec<TokenId>| ids.len())?;
        let mut batch = Batch {
            ids: Vec::with_capacity(runs.iter().map(|(_, ids, _)| ids.len()).sum()),
            offsets: Vec::with_capacity(texts.len() + 1),
        };
        batch.offsets.push(0);
        for (_, ids, ends) in runs {
            let before = batch.ids.len();
            batch.offsets.extend(ends.iter().map(|end| (before + end) as i64));
            if batch.ids.is_empty() {
                // One run needs no copy.
                batch.ids = ids;
            } else {
                batch.ids.extend_from_slice(&ids);
            }
        }
        Ok(batch)
    }

    /// Counts the tokens of each text; otherwise as [`Tokenizer::encode_batch`].
    ///
    /// # Errors
    /// As [`Tokenizer::encode_batch`].
    pub fn count_batch(
        &self,
        texts: &[Text<'_>],
        options: EncodeOptions,
        threads: usize,
        pool: &Mutex<Vec<Scratch>>,
    ) -> Result<Vec<usize>, (usize, EncodeError)> {
        let runs = self.run_batch(texts, options, threads, pool, |count: &Count| count.0)?;
        let differences = |ends: Vec<usize>| {
            let before = [0].into_iter().chain(ends.clone());
            ends.into_iter().zip(before).map(|(end, before)| end - before).collect::<Vec<_>>()
        };
        Ok(runs.into_iter().flat_map(|(_, _, ends)| differences(ends)).collect())
    }

    fn run_batch<S: Sink + Default + Send>(
        &self,
        texts: &[Text<'_>],
        options: EncodeOptions,
        threads: usize,
        pool: &Mutex<Vec<Scratch>>,
        len: impl Fn(&S) -> usize + Sync,
    ) -> Result<Vec<Done<S>>, (usize, EncodeError)> {
        let runs = deal(texts);
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<Done<S>>, (usize, EncodeError)> {
            let mut scratch = lock(pool).pop().unwrap_or_default();
            let mut done = Vec::new();
            while let Some(&(begin, end)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut sink = S::default();
                let mut ends = Vec::with_capacity(end - begin);
                for (index, &text) in texts[begin..end].iter().enumerate() {
                    self.encode_into(text, options, &mut scratch, &mut sink).map_err(|error| (begin + index, error))?;
                    ends.push(len(&sink));
                }
                done.push((begin, sink, ends));
            }
            lock(pool).push(scratch);
            Ok(done)
        };
        let helpers = threads.min(runs.len()).saturating_sub(1);
        let mut results = thread::scope(|scope| {
            // Where a thread cannot be started the others do its work.
            let started: Vec<_> =
                (0..helpers).map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
            let mut results = vec![work()];
            for thread in started {
                match thread.join() {
                    Ok(result) => results.push(result),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            results
        });
        results.sort_by_key(|result| result.as_ref().map_or_else(|(index, _)| *index, |_| usize::MAX));
        let mut done = Vec::with_capacity(runs.len());
        for result in results {
            done.extend(result?);
        }
        done.sort_unstable_by_key(|&(begin, ..)| begin);
        Ok(done)
    }
}

fn lock(pool: &Mutex<Vec<Scratch>>) -> std::sync::MutexGuard<'_, Vec<Scratch>> {
    // Scratch spaces hold nothing that a panic could leave half done: every call begins by clearing them.
    pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Cuts a list of texts into runs.
fn deal(texts: &[Text<'_>]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let (mut begin, mut bytes) = (0, 0);
    for (index, text) in texts.iter().enumerate() {
        bytes += text.as_bytes().len();
        if bytes >= RUN {
            runs.push((begin, index + 1));
            (begin, bytes) = (index + 1, 0);
        }
    }
    if begin < texts.len() {
        runs.push((begin, texts.len()));
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::{RUN, deal};
    use crate::tokenizer::Text;

    #[test]
    fn runs_are_dealt_without_gap_or_overlap() {
        let letters = "a".repeat(2 * RUN);
        for lens in [&[][..], &[0], &[0, 0, 0], &[RUN], &[RUN - 1, 1, 1], &[2 * RUN, 0, RUN, 5], &[1; 100]] {
            let texts: Vec<Text<'_>> = lens.iter().map(|&len| Text::Str(&letters[..len])).collect();
            let runs = deal(&texts);
            let all: Vec<usize> = runs.iter().flat_map(|&(begin, end)| begin..end).collect();
            assert_eq!(all, (0..texts.len()).collect::<Vec<_>>());
            for (number, &(begin, end)) in runs.iter().enumerate() {
                let bytes: usize = lens[begin..end].iter().sum();
                assert!(begin < end && (bytes >= RUN || number + 1 == runs.len()), "{lens:?}");
                // The last text fills a run: without it there is room.
                assert!(bytes - lens[end - 1] < RUN, "{lens:?}");
            }
        }
    }
}
