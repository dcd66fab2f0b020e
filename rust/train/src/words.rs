//! Counts the words of texts. The texts are not kept.
//!
//! 1. A batch of texts is shared out among threads, each of which splits its texts into words and counts them in its
//!    own table.
//! 2. When the tables exceed their memory, each is written to a file as a sorted run and emptied.
//! 3. At the end the tables are added up, or the runs are merged. If the distinct words still do not fit, only the most
//!    frequent ones are kept: a first pass over the runs finds the lowest count for which they fit, and a second one
//!    collects them.
//!
//! O(length of the texts), plus sorting what is spilled. The words do not depend on the number of threads.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use ggtok_core::internals::interrupt::Ticker;
use ggtok_core::unicode::utf8;

use super::spill::{Spill, SpilledRuns};
use super::split::{Split, SplitScratch};
use super::table::WordTable;
use super::work::work;
use super::{Phase, Progress, Result, TrainError, check};

/// Bytes of a file that a thread takes at a time. Large, because a stretch ends at a line.
const STRETCH: usize = 1 << 16;

/// Bytes of text counted between two checks of the memory.
const BATCH: usize = 8 << 20;

/// The most bytes of text, repetitions included: sums over characters stay far below 2⁶⁴.
const MOST_BYTES: u64 = 1 << 56;

/// Words and how often each occurs.
#[derive(Debug, Default)]
pub struct Words(pub(super) WordTable, Option<LeftOut>);

/// The rarest words of a corpus, left out because they did not fit into memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The memory available for words, in bytes.
    pub memory: u64,
    /// The memory that all distinct words need.
    pub needed: u64,
    /// Words that occur less often than this were left out.
    pub least_count: u64,
    /// How many distinct words were left out.
    pub num_words: u64,
    /// How often they occur in total.
    pub num_occurrences: u64,
    /// The total number of words in the corpus.
    pub all_occurrences: u64,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, needed, least_count, num_words, num_occurrences, all_occurrences } = self;
        let share = 100.0 * *num_occurrences as f64 / *all_occurrences as f64;
        write!(
            f,
            "the different words take {needed} bytes and may take {memory}, so {num_words} that occur less than \
             {least_count} times were left out, {share:.2} % of the text's words"
        )
    }
}

impl Words {
    /// Each word once, with its count, in no particular order.
    ///
    /// Words of byte-level BPE are texts. Those of SPM and WordPiece have `▁` for the space before them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        self.0.iter()
    }

    /// Whether the corpus had no words.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The words that did not fit into the memory given to [`WordCounter::with_spill`].
    pub fn left_out(&self) -> Option<&LeftOut> {
        self.1.as_ref()
    }
}

/// A thread's state.
#[derive(Debug, Default)]
struct Worker {
    table: WordTable,
    scratch: SplitScratch,
    ticker: Ticker,
}

/// Counts the words of a corpus that is pushed in batch by batch.
pub struct WordCounter<'a> {
    split: Split,
    threads: usize,
    /// The memory for the tables, and the file for what exceeds it.
    spill: Option<(usize, SpilledRuns<'a>)>,
    workers: Vec<Worker>,
    num_bytes: u64,
}

impl<'a> WordCounter<'a> {
    pub(super) fn new(split: Split, threads: usize) -> Self {
        Self { split, threads, spill: None, workers: Vec::new(), num_bytes: 0 }
    }

    /// Limits counted words to about `memory` bytes; `file` takes the rest. If the distinct words need more in the end,
    /// the rarest are left out, and [`Words::left_out`] says so. A text is always counted as a whole.
    pub fn with_spill(mut self, memory: usize, file: impl Spill + 'a) -> Self {
        self.spill = Some((memory, SpilledRuns::new(Box::new(file))));
        self
    }

    /// Counts the words of some texts. No word spans two texts.
    ///
    /// # Errors
    /// - [`TrainError::Spill`]: the file cannot be written.
    /// - [`TrainError::Stopped`]: `progress` stopped the training.
    pub fn push(&mut self, texts: &[&str], progress: &mut Progress<'_>) -> Result<()> {
        self.push_counted(&texts.iter().map(|&text| (text, 1)).collect::<Vec<_>>(), progress)
    }

    /// Counts the words of some texts, each as often as its count says.
    ///
    /// # Errors
    /// As [`WordCounter::push`], and [`TrainError::Setting`]: the counts are too large.
    pub fn push_counted(&mut self, texts: &[(&str, u64)], progress: &mut Progress<'_>) -> Result<()> {
        let mut rest = texts;
        while !rest.is_empty() {
            let starts = rest.iter().scan(0, |end, (text, _)| Some(std::mem::replace(end, *end + text.len())));
            let (batch, after) = rest.split_at(starts.take_while(|&start| start < BATCH).count());
            self.push_batch(batch, progress)?;
            rest = after;
        }
        Ok(())
    }

    fn push_batch(&mut self, texts: &[(&str, u64)], progress: &mut Progress<'_>) -> Result<()> {
        let texts: Vec<_> = texts.iter().copied().filter(|&(_, count)| count > 0).collect();
        let lens = texts.iter().map(|(text, count)| count.saturating_mul(text.len() as u64));
        self.num_bytes = lens.fold(self.num_bytes, u64::saturating_add);
        check(self.num_bytes <= MOST_BYTES, "counts", &self.num_bytes, "for at most 2^56 bytes of text in total")?;
        let idle = Mutex::new(std::mem::take(&mut self.workers));
        let state = || idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let worked = work(self.threads, texts.len(), 1, state, |Worker { table, scratch, ticker }, run| {
            for &(text, count) in &texts[run] {
                self.split.split(text, scratch, |word| {
                    ticker.tick();
                    table.add(word, count);
                });
            }
        });
        self.workers = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.workers.extend(worked);

        if progress(Phase::Counting, self.num_bytes, 0) == ControlFlow::Break(()) {
            return Err(TrainError::Stopped);
        }
        if let Some((memory, runs)) = &mut self.spill
            && self.workers.iter().map(|worker| worker.table.heap_bytes()).sum::<usize>() > *memory
        {
            for worker in &mut self.workers {
                runs.write(&std::mem::take(&mut worker.table)).map_err(TrainError::from)?;
            }
        }
        Ok(())
    }

    /// Counts the words of a block of a file, and returns how many of its bytes it took. The rest belongs before the
    /// next block; `is_last` says that none follows. The file counts `count` times.
    ///
    /// For SPM, a text is a line without its line end. For the others, it is a stretch of lines, and the next stretch
    /// does not start with whitespace, so that pieces of line ends and indentation stay whole.
    ///
    /// # Errors
    /// As [`WordCounter::push`].
    pub fn push_file(&mut self, block: &str, count: u64, is_last: bool, progress: &mut Progress<'_>) -> Result<usize> {
        let mut texts = Vec::new();
        let mut taken = 0;
        while taken < block.len() {
            let rest = &block[taken..];
            let (text, len) = if self.split.is_by_line() { first_line(rest) } else { first_stretch(rest) };
            if len == rest.len() && !is_last && !texts.is_empty() {
                break;
            }
            texts.push((text, count));
            taken += len;
        }
        self.push_counted(&texts, progress)?;
        Ok(taken)
    }

    /// All words with their counts.
    ///
    /// # Errors
    /// - [`TrainError::EmptyCorpus`]: there are no words.
    /// - [`TrainError::Memory`]: no word fits into the memory.
    /// - [`TrainError::Spill`]: the file cannot be read.
    pub fn finish(self) -> Result<Words> {
        let mut tables = self.workers.into_iter().map(|worker| worker.table);
        let words = match self.spill {
            Some((memory, mut runs)) if !runs.ends.is_empty() => {
                tables.try_for_each(|table| runs.write(&table))?;
                merged(&mut runs, memory as u64)?
            }
            _ => {
                let mut all = tables.next().unwrap_or_default();
                let mut ticker = Ticker::default();
                for table in tables {
                    for (word, count) in table.iter() {
                        ticker.tick();
                        all.add(word, count);
                    }
                }
                Words(all, None)
            }
        };
        if words.is_empty() { Err(TrainError::EmptyCorpus) } else { Ok(words) }
    }
}

/// The words of all runs, or the most frequent ones that fit into `memory`. Words with the same count are kept or
/// dropped together.
fn merged(runs: &mut SpilledRuns<'_>, memory: u64) -> Result<Words> {
    let mut words = WordTable::default();
    // For each count, how many words have it, and how much memory they need.
    let mut by_count: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut needed = 0;
    runs.merge(|word, count| {
        let size = WordTable::bytes_of(word);
        let (num_words, taken) = by_count.entry(count).or_default();
        (*num_words, *taken, needed) = (*num_words + 1, *taken + size, needed + size);
        if needed <= memory {
            words.push(word, count);
        }
    })?;
    if needed <= memory {
        return Ok(Words(words, None));
    }

    let mut room = memory;
    let fits = |&(_, &(_, taken)): &(&u64, &(u64, u64))| {
        let left = room.checked_sub(taken);
        room = left.unwrap_or_default();
        left.is_some()
    };
    let Some((&least_count, _)) = by_count.iter().rev().take_while(fits).last() else {
        return Err(TrainError::Memory { memory, needed });
    };
    words = WordTable::default();
    runs.merge(|word, count| {
        if count >= least_count {
            words.push(word, count);
        }
    })?;
    let occurrences = |(count, (num_words, _)): (&u64, &(u64, u64))| count * num_words;
    let left_out = LeftOut {
        memory,
        needed,
        least_count,
        num_words: by_count.range(..least_count).map(|(_, (num_words, _))| num_words).sum(),
        num_occurrences: by_count.range(..least_count).map(occurrences).sum(),
        all_occurrences: by_count.iter().map(occurrences).sum(),
    };
    Ok(Words(words, Some(left_out)))
}

/// A line without its end, and its length with it.
fn first_line(text: &str) -> (&str, usize) {
    let len = memchr::memchr(b'\n', text.as_bytes()).map_or(text.len(), |at| at + 1);
    let line = text[..len].strip_suffix('\n').unwrap_or(text);
    (line.strip_suffix('\r').unwrap_or(line), len)
}

/// At least [`STRETCH`] bytes of lines not followed by whitespace, and their length.
fn first_stretch(text: &str) -> (&str, usize) {
    let from = utf8::floor(text.as_bytes(), STRETCH);
    let ends = memchr::memchr_iter(b'\n', &text.as_bytes()[from..]).map(|at| from + at + 1);
    let is_end = |end: &usize| text[*end..].chars().next().is_some_and(|next| !next.is_whitespace());
    let len = ends.into_iter().find(is_end).unwrap_or(text.len());
    (&text[..len], len)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Cursor;
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use crate::{SpmSettings, SpmTrainer, TrainError, Words};

    fn counted(texts: &[String], memory: Option<usize>, threads: usize) -> Result<Words, TrainError> {
        let trainer = SpmTrainer::new(SpmSettings { threads, ..SpmSettings::default() })?;
        let mut counter = trainer.counter(None)?;
        if let Some(memory) = memory {
            counter = counter.with_spill(memory, Cursor::new(Vec::new()));
        }
        for batch in texts.chunks(3) {
            let batch: Vec<&str> = batch.iter().map(String::as_str).collect();
            counter.push(&batch, &mut |_, _, _| ControlFlow::Continue(()))?;
        }
        counter.finish()
    }

    proptest! {
        /// The most frequent words that fit are kept; words with the same count are kept or dropped together.
        #[test]
        fn the_rarest_words_are_left_out(
            texts in prop::collection::vec("[ab]{1,4}( [ab]{1,4}){0,9}", 1..40),
            memory in 0..900_usize,
            threads in 1..3_usize,
        ) {
            let all = counted(&texts, None, 1).unwrap();
            let size = |words: &mut dyn Iterator<Item = (&[u8], u64)>| words.map(|(word, _)| word.len() + 16).sum::<usize>();
            let fits = |least: &u64| size(&mut all.iter().filter(|(_, count)| count >= least)) <= memory;
            let least = all.iter().map(|(_, count)| count).filter(fits).min();
            let found = counted(&texts, Some(memory), threads);
            let Some(least) = least else {
                let is_refused = matches!(found, Err(TrainError::Memory { .. }));
                prop_assert!(is_refused);
                return Ok(());
            };
            let found = found.unwrap();
            let expected: BTreeMap<_, _> = all.iter().filter(|(_, count)| *count >= least).collect();
            prop_assert_eq!(found.iter().collect::<BTreeMap<_, _>>(), expected);
            prop_assert_eq!(found.left_out().is_some(), found.0.len() < all.0.len());
            if let Some(left_out) = found.left_out() {
                let total = |words: &Words| words.iter().map(|(_, count)| count).sum::<u64>();
                prop_assert_eq!(left_out.num_words as usize, all.0.len() - found.0.len());
                prop_assert_eq!(left_out.num_occurrences, total(&all) - total(&found));
                prop_assert_eq!(left_out.all_occurrences, total(&all));
                prop_assert_eq!(left_out.needed as usize, size(&mut all.iter()));
                prop_assert_eq!(left_out.least_count, least);
            }
        }
    }
}
