//! Training: batches of texts go to the core, and the tokens of the new vocabulary come back.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ggtok_core::VocabularyError;
use ggtok_train::{
    BpeSettings, BpeTrainer, Likelihood, NormalizationRules, Phase, RulesError, SpecialToken, SpmSettings, SpmTrainer,
    TrainError, Trained, UnigramSettings, UnigramTrainer, WordCounter, WordPieceSettings, WordPieceTrainer, Words,
    normalizer,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::arguments::{self, TextArgument};
use crate::arrow::Column;
use crate::errors::{Raise, invalid, training_error, unsupported};
use crate::run::{check_signals, run_long};

/// How often a callback hears of progress at most.
const REPORT: Duration = Duration::from_millis(100);

#[doc = doc!(Trainer)]
#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Trainer {
    kind: Kind,
    /// The counters; a second one for SuperBPE. Taken when counting is over.
    counters: Mutex<Vec<WordCounter<'static>>>,
    /// The words of each counter. Taken when training starts.
    words: Mutex<Vec<Words>>,
    /// Called with the phase, how much is done, and of how much.
    progress: Option<Py<PyAny>>,
}

enum Kind {
    Bpe(BpeTrainer),
    Spm(SpmTrainer),
    WordPiece(WordPieceTrainer),
    Unigram(UnigramTrainer),
}

/// What pieces of SPM and Unigram may be, as a `dict` of the settings of `ggtok.train` that both have.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PieceSettings {
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
}

impl From<PieceSettings> for SpmSettings {
    fn from(pieces: PieceSettings) -> Self {
        Self {
            byte_fallback: pieces.byte_fallback,
            character_coverage: pieces.character_coverage,
            max_piece_length: pieces.max_token_length,
            split_by_whitespace: pieces.split_by_whitespace,
            split_by_unicode_script: pieces.split_by_unicode_script,
            split_by_number: pieces.split_by_number,
            split_digits: pieces.split_digits,
            allow_whitespace_only_pieces: pieces.allow_whitespace_only_pieces,
            add_dummy_prefix: pieces.add_space_prefix,
            remove_extra_whitespaces: pieces.remove_extra_whitespaces,
            ..Self::default()
        }
    }
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
        Ok(Self { kind, counters: Mutex::new(counters), words: Mutex::default(), progress })
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
    #[doc = doc!(Trainer.bpe)]
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

    #[doc = doc!(Trainer.spm)]
    #[staticmethod]
    #[pyo3(signature = (*, vocab_size, special_tokens, threads, memory, progress, pieces, min_frequency, charsmap))]
    #[allow(clippy::too_many_arguments)]
    fn spm(
        vocab_size: usize,
        special_tokens: Special<'_>,
        threads: usize,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
        pieces: PieceSettings,
        min_frequency: u64,
        charsmap: &[u8],
    ) -> PyResult<Self> {
        let settings = SpmSettings {
            vocab_size,
            special_tokens: special(&special_tokens)?,
            min_frequency,
            threads,
            ..SpmSettings::from(pieces)
        };
        let trainer = SpmTrainer::new(settings).map_err(Raise::raise)?;
        let normalize = normalizer(charsmap).map_err(Raise::raise)?;
        let counter = trainer.counter(normalize).map_err(Raise::raise)?;
        Self::new(Kind::Spm(trainer), vec![counter], memory, progress)
    }

    #[doc = doc!(Trainer.unigram)]
    #[staticmethod]
    #[pyo3(signature = (*, vocab_size, special_tokens, threads, memory, progress, pieces, seed_size, shrinking_factor, num_sub_iterations, charsmap))]
    #[allow(clippy::too_many_arguments)]
    fn unigram(
        vocab_size: usize,
        special_tokens: Special<'_>,
        threads: usize,
        memory: Option<Memory<'_>>,
        progress: Option<Py<PyAny>>,
        pieces: PieceSettings,
        seed_size: usize,
        shrinking_factor: f64,
        num_sub_iterations: usize,
        charsmap: &[u8],
    ) -> PyResult<Self> {
        let special_tokens = special(&special_tokens)?;
        let spm = SpmSettings { vocab_size, special_tokens, threads, ..SpmSettings::from(pieces) };
        let settings = UnigramSettings { spm, seed_size, shrinking_factor, num_sub_iterations };
        let trainer = UnigramTrainer::new(settings).map_err(Raise::raise)?;
        let normalize = normalizer(charsmap).map_err(Raise::raise)?;
        let counter = trainer.counter(normalize).map_err(Raise::raise)?;
        Self::new(Kind::Unigram(trainer), vec![counter], memory, progress)
    }

    #[doc = doc!(Trainer.wordpiece)]
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

    #[doc = doc!(Trainer.push)]
    fn push(&self, py: Python<'_>, texts: &Bound<'_, PyAny>, first: usize) -> PyResult<()> {
        let count =
            |texts: &[&str]| self.count(py, |counter, progress| counter.push(texts, progress).map(|()| 0)).map(drop);
        if let Some(column) = Column::of(texts)? {
            let rows = column.rows(py)?.into_iter().enumerate();
            let rows = rows.filter_map(|(row, text)| {
                let checked = |text| check_signals(py, row).and_then(|()| utf8(text, first + row));
                text.map(checked)
            });
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

    #[doc = doc!(Trainer.push_file)]
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

    #[doc = doc!(Trainer.finish_counting)]
    fn finish_counting(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.run(py, |_| {
            let counters = std::mem::take(&mut *self.counters.lock().unwrap_or_else(PoisonError::into_inner));
            let words = counters.into_iter().map(WordCounter::finish).collect::<Result<Vec<_>, _>>()?;
            let left_out = words.iter().filter_map(|words| words.left_out().map(ToString::to_string)).collect();
            *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
            Ok(left_out)
        })
    }

    #[doc = doc!(Trainer.finish)]
    #[allow(clippy::type_complexity)]
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Vec<i32>, Vec<f32>, Bound<'py, PyList>)> {
        let trained = self.run(py, |progress| {
            let mut words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner)).into_iter();
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

#[doc = doc!(compile_charsmap)]
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

#[doc = doc!(apply_charsmap)]
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
