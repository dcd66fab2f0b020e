//! Training: batches of texts go to the core, and the tokens of the new vocabulary come back.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ggtok_core::VocabularyError;
use ggtok_core::train::{
    BpeSettings, BpeTrainer, Likelihood, NormalizationRules, Phase, RulesError, SpecialToken, SpmSettings, SpmTrainer,
    TrainError, Trained, UnigramSettings, UnigramTrainer, WordCounter, WordPieceSettings, WordPieceTrainer, normalizer,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arguments::{self, TextArgument};
use crate::arrow::Column;
use crate::errors::{Raise, invalid, training_error, unsupported};
use crate::run::run_long;

/// How often a callback hears of progress at most.
const REPORT: Duration = Duration::from_millis(100);

/// Counts the words of a corpus and trains a vocabulary on them: what `ggtok.train` uses, which says more.
///
/// Each kind has a constructor with its settings. `special_tokens` are texts and token types, `memory` is how many
/// bytes counted words may take and the paths of two files to be made for the rest, and `progress` is called with the
/// phase, how much is done, and of how much.
#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Trainer {
    kind: Kind,
    /// The counters; a second one for SuperBPE. Taken when training starts.
    counters: Mutex<Vec<WordCounter<'static>>>,
    /// Called with the phase, how much is done, and of how much.
    progress: Option<Py<PyAny>>,
}

enum Kind {
    Bpe(BpeTrainer),
    Spm(SpmTrainer),
    WordPiece(WordPieceTrainer),
    Unigram(UnigramTrainer),
}

/// Texts and token types, in a list, because the length of another sequence may be wrong.
type Special<'py> = Bound<'py, PyList>;
/// How much memory counting may take, and the paths of two files for what does not fit.
type Memory<'py> = (usize, Bound<'py, PyList>);

impl Trainer {
    fn new(
        kind: Kind,
        counters: Vec<WordCounter<'static>>,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let mut counters = counters;
        if let Some((memory, paths)) = memory {
            let share = memory / counters.len().max(1);
            let spilled = counters.into_iter().zip(paths).map(|(counter, path)| {
                let path: PathBuf = path.extract()?;
                let file = File::options().read(true).write(true).create_new(true).open(path)?;
                Ok(counter.with_spill(share, file))
            });
            counters = spilled.collect::<PyResult<_>>()?;
        }
        Ok(Self { kind, counters: Mutex::new(counters), progress })
    }

    /// Runs work of the core, which reports its progress to the callback.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut dyn FnMut(Phase, u64, u64) -> ControlFlow<()>) -> Result<T, TrainError> + Send,
    ) -> PyResult<T> {
        let mut last: Option<Instant> = None;
        run_long(py, || {
            let mut raised = None;
            let mut report = |phase: Phase, done: u64, total: u64| {
                let Some(progress) = &self.progress else { return ControlFlow::Continue(()) };
                if last.is_some_and(|last| last.elapsed() < REPORT) {
                    return ControlFlow::Continue(());
                }
                last = Some(Instant::now());
                let result = Python::attach(|py| progress.call1(py, (phase.name(), done, total)).map(drop));
                result.map_or_else(
                    |error| {
                        raised = Some(error);
                        ControlFlow::Break(())
                    },
                    ControlFlow::Continue,
                )
            };
            let result = work(&mut report);
            result.map_err(|error| raised.map_or(Failure::Train(error), Failure::Python))
        })
    }

    fn count(
        &self,
        py: Python<'_>,
        work: impl Fn(
            &mut WordCounter<'static>,
            &mut dyn FnMut(Phase, u64, u64) -> ControlFlow<()>,
        ) -> Result<usize, TrainError>
        + Send
        + Sync,
    ) -> PyResult<usize> {
        self.run(py, |progress| {
            let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
            counters.iter_mut().try_fold(0, |_, counter| work(counter, progress))
        })
    }
}

/// A failure of training: an error of the core, or what the callback raised.
enum Failure {
    Train(TrainError),
    Python(PyErr),
}

impl Raise for Failure {
    fn raise(self) -> PyErr {
        match self {
            Self::Python(error) => error,
            Self::Train(error) => error.raise(),
        }
    }
}

impl Raise for RulesError {
    fn raise(self) -> PyErr {
        training_error(self.to_string())
    }
}

impl Raise for TrainError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::UnknownPreTokenizer { name, nearest } => unsupported(message, name, nearest),
            Self::Spill(error) => error.into(),
            _ => training_error(message),
        }
    }
}

#[pymethods]
impl Trainer {
    /// A trainer of byte-level BPE.
    #[staticmethod]
    #[pyo3(signature = (*, vocab_size, special_tokens, threads, memory, progress, pre, special_first, min_frequency, max_token_length, whole_characters, transition))]
    #[allow(clippy::too_many_arguments)]
    fn bpe(
        vocab_size: usize,
        special_tokens: Special<'_>,
        threads: usize,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
        pre: String,
        special_first: bool,
        min_frequency: u64,
        max_token_length: Option<usize>,
        whole_characters: bool,
        transition: Option<(usize, String)>,
    ) -> PyResult<Self> {
        let trainer = BpeTrainer::new(BpeSettings {
            vocab_size,
            pre,
            special_tokens: special(&special_tokens)?,
            special_first,
            min_frequency,
            max_token_length: max_token_length.unwrap_or(usize::MAX),
            whole_characters,
            transition,
            threads,
        });
        let trainer = trainer.map_err(Raise::raise)?;
        let first = trainer.counter().map_err(Raise::raise)?;
        let second = trainer.second_counter().map_err(Raise::raise)?;
        Self::new(Kind::Bpe(trainer), [first].into_iter().chain(second).collect(), memory, progress)
    }

    /// A trainer of SPM.
    #[staticmethod]
    #[pyo3(signature = (*, vocab_size, special_tokens, threads, memory, progress, byte_fallback, character_coverage, max_token_length, split_by_whitespace, split_by_unicode_script, split_by_number, split_digits, allow_whitespace_only_pieces, add_space_prefix, remove_extra_whitespaces, min_frequency, charsmap))]
    #[allow(clippy::too_many_arguments)]
    fn spm(
        vocab_size: usize,
        special_tokens: Special<'_>,
        threads: usize,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
        byte_fallback: bool,
        character_coverage: f32,
        max_token_length: usize,
        split_by_whitespace: bool,
        split_by_unicode_script: bool,
        split_by_number: bool,
        split_digits: bool,
        allow_whitespace_only_pieces: bool,
        add_space_prefix: bool,
        remove_extra_whitespaces: bool,
        min_frequency: u64,
        charsmap: &[u8],
    ) -> PyResult<Self> {
        let trainer = SpmTrainer::new(SpmSettings {
            vocab_size,
            special_tokens: special(&special_tokens)?,
            byte_fallback,
            character_coverage,
            max_piece_length: max_token_length,
            split_by_whitespace,
            split_by_unicode_script,
            split_by_number,
            split_digits,
            allow_whitespace_only_pieces,
            add_dummy_prefix: add_space_prefix,
            remove_extra_whitespaces,
            min_frequency,
            threads,
        });
        let trainer = trainer.map_err(Raise::raise)?;
        let normalize = normalizer(charsmap).map_err(Raise::raise)?;
        let counter = trainer.counter(normalize).map_err(Raise::raise)?;
        Self::new(Kind::Spm(trainer), vec![counter], memory, progress)
    }

    /// A trainer of Unigram.
    #[staticmethod]
    #[pyo3(signature = (*, vocab_size, special_tokens, threads, memory, progress, byte_fallback, character_coverage, max_token_length, split_by_whitespace, split_by_unicode_script, split_by_number, split_digits, allow_whitespace_only_pieces, add_space_prefix, remove_extra_whitespaces, seed_size, shrinking_factor, num_sub_iterations, charsmap))]
    #[allow(clippy::too_many_arguments)]
    fn unigram(
        vocab_size: usize,
        special_tokens: Special<'_>,
        threads: usize,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
        byte_fallback: bool,
        character_coverage: f32,
        max_token_length: usize,
        split_by_whitespace: bool,
        split_by_unicode_script: bool,
        split_by_number: bool,
        split_digits: bool,
        allow_whitespace_only_pieces: bool,
        add_space_prefix: bool,
        remove_extra_whitespaces: bool,
        seed_size: usize,
        shrinking_factor: f64,
        num_sub_iterations: usize,
        charsmap: &[u8],
    ) -> PyResult<Self> {
        let spm = SpmSettings {
            vocab_size,
            special_tokens: special(&special_tokens)?,
            byte_fallback,
            character_coverage,
            max_piece_length: max_token_length,
            split_by_whitespace,
            split_by_unicode_script,
            split_by_number,
            split_digits,
            allow_whitespace_only_pieces,
            add_dummy_prefix: add_space_prefix,
            remove_extra_whitespaces,
            min_frequency: 1,
            threads,
        };
        let settings = UnigramSettings { spm, seed_size, shrinking_factor, num_sub_iterations };
        let trainer = UnigramTrainer::new(settings).map_err(Raise::raise)?;
        let normalize = normalizer(charsmap).map_err(Raise::raise)?;
        let counter = trainer.counter(normalize).map_err(Raise::raise)?;
        Self::new(Kind::Unigram(trainer), vec![counter], memory, progress)
    }

    /// A trainer of WordPiece.
    #[staticmethod]
    #[pyo3(signature = (*, vocab_size, special_tokens, threads, memory, progress, by_likelihood, min_frequency, max_token_length, lowercase, strip_accents))]
    #[allow(clippy::too_many_arguments)]
    fn wordpiece(
        vocab_size: usize,
        special_tokens: Special<'_>,
        threads: usize,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
        by_likelihood: bool,
        min_frequency: u64,
        max_token_length: Option<usize>,
        lowercase: bool,
        strip_accents: bool,
    ) -> PyResult<Self> {
        let trainer = WordPieceTrainer::new(WordPieceSettings {
            vocab_size,
            special_tokens: special(&special_tokens)?,
            by: if by_likelihood { Likelihood::Gain } else { Likelihood::Frequency },
            min_frequency,
            max_token_length: max_token_length.unwrap_or(usize::MAX),
            lowercase,
            strip_accents,
            threads,
        });
        let trainer = trainer.map_err(Raise::raise)?;
        let counter = trainer.counter().map_err(Raise::raise)?;
        Self::new(Kind::WordPiece(trainer), vec![counter], memory, progress)
    }

    /// Counts the words of a list of texts or of an Arrow column, whose nulls are left out. `first` is the number of
    /// the first text, for errors.
    fn push(&self, py: Python<'_>, texts: &Bound<'_, PyAny>, first: usize) -> PyResult<()> {
        let count =
            |texts: &[&str]| self.count(py, |counter, progress| counter.push(texts, progress).map(|()| 0)).map(drop);
        if let Some(column) = Column::of(texts)? {
            let rows = column.rows(py)?.into_iter().enumerate();
            let rows = rows.filter_map(|(row, text)| text.map(|text| utf8(text, first + row)));
            return count(&rows.collect::<PyResult<Vec<_>>>()?);
        }
        let objects = arguments::objects(texts)?;
        let texts = arguments::texts(&objects)?;
        let texts = texts.iter().zip(first..).map(|(text, number)| match text {
            TextArgument::Str(text) => Ok(*text),
            text => utf8(text.text().as_bytes(), number),
        });
        count(&texts.collect::<PyResult<Vec<_>>>()?)
    }

    /// Counts the words of a block of a file, and returns how many of its bytes it took. The rest belongs before the
    /// next block. `path`, and `start`, where the block starts in the file, are for errors.
    fn push_file(&self, py: Python<'_>, block: &[u8], is_last: bool, path: &str, start: usize) -> PyResult<usize> {
        let text = match std::str::from_utf8(block) {
            Ok(text) => text,
            // A character may continue in the next block.
            Err(error) if error.error_len().is_none() && !is_last => {
                str::from_utf8(&block[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => return Err(invalid(format!("{path} is not UTF-8 at byte {}", start + error.valid_up_to()))),
        };
        self.count(py, |counter, progress| counter.push_file(text, is_last, progress))
    }

    /// Trains, and returns tokens, types, scores and merges. To be called once.
    #[allow(clippy::type_complexity)]
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Vec<i32>, Vec<f32>, Bound<'py, PyList>)> {
        let trained = self.run(py, |progress| {
            let counters = std::mem::take(&mut *self.counters.lock().unwrap_or_else(PoisonError::into_inner));
            let mut words = counters.into_iter().map(WordCounter::finish).collect::<Result<Vec<_>, _>>()?.into_iter();
            let (first, second) = (words.next().unwrap_or_default(), words.next());
            match &self.kind {
                Kind::Bpe(trainer) => trainer.train(&first, second.as_ref(), progress),
                Kind::Spm(trainer) => trainer.train(&first, progress),
                Kind::WordPiece(trainer) => trainer.train(&first, progress),
                Kind::Unigram(trainer) => trainer.train(&first, progress),
            }
        })?;
        let Trained { tokens, types, scores, merges } = trained;
        let list = |texts: Vec<Vec<u8>>| PyList::new(py, texts.iter().map(|text| PyBytes::new(py, text)));
        Ok((list(tokens)?, types, scores, list(merges)?))
    }
}

fn special(tokens: &Special<'_>) -> PyResult<Vec<SpecialToken>> {
    let token = |item: Bound<'_, PyAny>| item.extract().map(|(text, kind)| SpecialToken { text, kind });
    tokens.iter().map(token).collect()
}

fn utf8(text: &[u8], number: usize) -> PyResult<&str> {
    std::str::from_utf8(text)
        .map_err(|error| invalid(format!("text {number} is not UTF-8 at byte {}", error.valid_up_to())))
}

/// The character map of named rules, or of rules line by line.
#[pyfunction]
#[pyo3(signature = (*, name = None, tsv = None))]
pub(crate) fn compile_charsmap<'py>(
    py: Python<'py>,
    name: Option<String>,
    tsv: Option<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let map = run_long(py, move || {
        let rules = match name {
            Some(name) => NormalizationRules::named(&name)?,
            None => NormalizationRules::from_tsv(&tsv.unwrap_or_default())?,
        };
        rules.compile()
    })?;
    Ok(PyBytes::new(py, &map))
}

/// A text as a character map changes it; an empty map changes nothing.
///
/// Raises:
///     VocabularyError: The map is damaged.
#[pyfunction]
pub(crate) fn apply_charsmap(py: Python<'_>, charsmap: &[u8], text: &str) -> PyResult<String> {
    let changed = run_long(py, || {
        let mut out = Vec::new();
        match normalizer(charsmap)? {
            Some(normalize) => normalize(text, &mut out),
            None => out.extend_from_slice(text.as_bytes()),
        }
        Ok::<_, VocabularyError>(out)
    })?;
    Ok(String::from_utf8_lossy(&changed).into_owned())
}
