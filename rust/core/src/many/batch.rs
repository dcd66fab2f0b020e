//! Many texts at once: a work queue of runs, processed by several threads and joined into one flat array.
//!
//! A run is about [`RUN`] bytes of consecutive texts, so that threads finish together. Each run is encoded into its own
//! array, and the arrays are joined in order at the end. Threads share only the number of the next run. O(total length
//! / threads).
//!
//! The calling thread works too. It alone checks for an interrupt (see [`interruptible`]); the others stop when it
//! does.

mod decode;
mod rows;

pub use decode::DecodedBatch;
pub use rows::{Padded, Padding, PaddingError, Rows, Side};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::encode::scratch::ScratchPool;
use crate::encode::sink::{Count, Sink};
use crate::error::EncodeError;
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, Text, Tokenizer};
use crate::work::interrupt::{self, interruptible};
use crate::work::memory;

/// Bytes of text that a thread takes at a time.
const RUN: usize = 1 << 16;
/// How often the calling thread checks for an interrupt while it waits for the others.
const POLL: Duration = Duration::from_millis(25);

/// The tokens of several texts, end to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// All ids.
    pub ids: Vec<TokenId>,
    /// Text `i` has the ids `offsets[i]..offsets[i + 1]`: one more offset than texts.
    pub offsets: Vec<i64>,
}

/// A finished run: the index of its first text, its sink, and the length of the sink after each text.
type Done<S> = (usize, S, Vec<usize>);

impl Tokenizer {
    /// Encodes texts on at most `threads` threads, with scratch spaces taken from `pool`.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`], with the index of the first text that fails.
    pub fn encode_batch(
        &self,
        texts: &[Text<'_>],
        options: EncodeOptions,
        threads: usize,
        pool: &ScratchPool,
    ) -> Result<Batch, (usize, EncodeError)> {
        let runs = self.run_batch(texts, options, threads, pool, |ids: &Vec<TokenId>| ids.len())?;
        let num_ids = runs.iter().map(|(_, ids, _)| ids.len()).sum();
        // One run needs no copy.
        let num_copied = if runs.len() > 1 { num_ids } else { 0 };
        let mut batch =
            Batch { ids: memory::with_capacity(num_copied), offsets: memory::with_capacity(texts.len() + 1) };
        batch.offsets.push(0);
        for (_, ids, ends) in runs {
            let before = batch.ids.len();
            batch.offsets.extend(ends.iter().map(|end| (before + end) as i64));
            match num_copied {
                0 => batch.ids = ids,
                _ => batch.ids.extend_from_slice(&ids),
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
        pool: &ScratchPool,
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
        pool: &ScratchPool,
        len: impl Fn(&S) -> usize + Sync,
    ) -> Result<Vec<Done<S>>, (usize, EncodeError)> {
        let runs = deal(texts);
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<Done<S>>, (usize, EncodeError)> {
            let mut scratch = pool.take();
            let mut done = Vec::new();
            while let Some(&(start, end)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                interrupt::check();
                let mut sink = S::default();
                let mut ends = Vec::with_capacity(end - start);
                for (index, &text) in texts[start..end].iter().enumerate() {
                    self.encode_into(text, options, &mut scratch, &mut sink).map_err(|error| (start + index, error))?;
                    ends.push(len(&sink));
                }
                done.push((start, sink, ends));
            }
            pool.put(scratch);
            Ok(done)
        };

        let num_helpers = threads.min(runs.len()).saturating_sub(1);
        let mut results = if num_helpers == 0 { vec![work()] } else { with_helpers(num_helpers, work) };

        results.sort_by_key(|result| result.as_ref().map_or_else(|(index, _)| *index, |_| usize::MAX));
        let mut done = Vec::with_capacity(runs.len());
        for result in results {
            done.extend(result?);
        }
        done.sort_unstable_by_key(|&(start, ..)| start);
        Ok(done)
    }
}

/// Calls `work` on this thread and on `num_helpers` others, and returns the results in any order.
pub fn with_helpers<T: Send>(num_helpers: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    thread::scope(|scope| {
        let _guard = StopHelpers(&is_stopped);
        let (sender, receiver) = mpsc::channel();
        // If a thread cannot be started, the others do its work.
        let start_helper = |_| {
            let (work, sender, is_stopped) = (&work, sender.clone(), Arc::clone(&is_stopped));
            let helper = move || {
                if let Ok(result) = interruptible(move || is_stopped.load(Ordering::Relaxed), work) {
                    // The receiver is gone if the calling thread is unwinding.
                    let _ = sender.send(result);
                }
            };
            thread::Builder::new().spawn_scoped(scope, helper).ok()
        };
        let helpers: Vec<_> = (0..num_helpers).map_while(start_helper).collect();
        drop(sender);

        let mut results = vec![work()];
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(result) => results.push(result),
                Err(RecvTimeoutError::Timeout) => interrupt::check(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        for helper in helpers {
            if let Err(panic) = helper.join() {
                std::panic::resume_unwind(panic);
            }
        }
        results
    })
}

/// Stops the helpers when the calling thread leaves; it leaves early only by unwinding.
struct StopHelpers<'a>(&'a AtomicBool);

impl Drop for StopHelpers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Cuts a list of texts into runs.
fn deal(texts: &[Text<'_>]) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    let (mut start, mut num_bytes) = (0, 0);
    for (index, text) in texts.iter().enumerate() {
        num_bytes += text.as_bytes().len();
        if num_bytes >= RUN {
            runs.push((start, index + 1));
            (start, num_bytes) = (index + 1, 0);
        }
    }
    if start < texts.len() {
        runs.push((start, texts.len()));
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::{RUN, deal, with_helpers};
    use crate::tokenizer::Text;
    use crate::work::interrupt::{self, Interrupted, interruptible};

    /// Works until it is stopped; counts its steps.
    fn endless(steps: &AtomicUsize) {
        loop {
            interrupt::check();
            steps.fetch_add(1, Ordering::Relaxed);
            thread::yield_now();
        }
    }

    #[test]
    fn helpers_stop_with_the_calling_thread() {
        let steps = AtomicUsize::new(0);
        let asked = Cell::new(0);
        let stop = move || asked.replace(asked.get() + 1) == 100;
        assert_eq!(interruptible(stop, || with_helpers(3, || endless(&steps))), Err(Interrupted));
        assert!(steps.load(Ordering::Relaxed) >= 100);
    }

    #[test]
    fn the_calling_thread_asks_while_it_waits() {
        let (steps, caller) = (AtomicUsize::new(0), thread::current().id());
        let asked = Rc::new(Cell::new(0));
        let stop = {
            let asked = Rc::clone(&asked);
            move || asked.replace(asked.get() + 1) == 1
        };
        let work = || {
            if thread::current().id() != caller {
                endless(&steps)
            }
        };
        assert_eq!(interruptible(stop, || with_helpers(1, work)), Err(Interrupted));
        assert_eq!(asked.get(), 2);
    }

    #[test]
    #[should_panic(expected = "a bug in a helper")]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let caller = thread::current().id();
        with_helpers(2, || assert!(thread::current().id() == caller, "a bug in a helper"));
    }

    #[test]
    fn runs_are_dealt_without_gap_or_overlap() {
        let letters = "a".repeat(2 * RUN);
        for lens in [&[][..], &[0], &[0, 0, 0], &[RUN], &[RUN - 1, 1, 1], &[2 * RUN, 0, RUN, 5], &[1; 100]] {
            let texts: Vec<Text<'_>> = lens.iter().map(|&len| Text::Str(&letters[..len])).collect();
            let runs = deal(&texts);
            let all: Vec<usize> = runs.iter().flat_map(|&(start, end)| start..end).collect();
            assert_eq!(all, (0..texts.len()).collect::<Vec<_>>());
            for (number, &(start, end)) in runs.iter().enumerate() {
                let bytes: usize = lens[start..end].iter().sum();
                assert!(start < end && (bytes >= RUN || number + 1 == runs.len()), "{lens:?}");
                // A run is full only once its last text is added.
                assert!(bytes - lens[end - 1] < RUN, "{lens:?}");
            }
        }
    }
}
