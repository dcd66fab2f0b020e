//! Training: batches of texts go to the core, and the tokens of the new vocabulary come back.

use std::fs::File;
use std::iter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ggtok_core::VocabularyError;
use ggtok_train::{
    BpeSettings, BpeTrainer, Extender, Likelihood, NormalizationRules, Phase, RulesError, SpecialToken, SpmSettings,
    SpmTrainer, TrainError, Trained, UnigramSettings, UnigramTrainer, WordCounter, WordPieceSettings, WordPieceTrainer,
    Words, normalizer,
};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::arguments::{TextArgument, with_name};
use crate::batch::Source;
use crate::errors::{Raise, invalid, python};
use crate::run::{check_signals, list, run_long};
use crate::tokenizer::Tokenizer;

/// The shortest time between two calls of a progress callback.
const REPORT: Duration = Duration::from_millis(100);

#[pyclass(frozen, module = "ggtok._ggtok")]
pub struct Trainer {
    train: Train,
    /// The counters; a second one for SuperBPE. Taken when counting is over.
    counters: Mutex<Vec<WordCounter<'static>>>,
    /// The words of each counter. Taken when training starts.
    words: Mutex<Vec<Words>>,
    /// Called with the phase, how much is done, and of how much.
    progress: Option<Py<PyAny>>,
}

/// The settings of a kind, under the names that `ggtok.train` has for them.
struct KindSettings<'a, 'py>(&'a Bound<'py, PyDict>);

/// The settings of a trainer: first the fields that are read under their own names.
macro_rules! settings {
    ($type:ident from $settings:ident: $($read:ident),*; $($field:ident: $value:expr),*) => {
        $type { $($read: $settings.get(stringify!($read))?,)* $($field: $value),* }
    };
}

impl<'py> KindSettings<'_, 'py> {
    fn get<T: FromPyObjectOwned<'py>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.get_item(name)?.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        // Anything else than a wrong type is a number that does not fit, or a text with surrogates.
        value.extract().map_err(|error: T::Error| match with_name(value.py(), name, error.into()) {
            error if error.is_instance_of::<python::ArgumentTypeError>(value.py()) => error,
            error => python::TrainingError::new_err(format!("{name}: {}", error.value(value.py()))),
        })
    }

    /// Texts and token types, in a list, because the length of another sequence may be wrong.
    fn special_tokens(&self) -> PyResult<Vec<SpecialToken>> {
        let tokens: Bound<'_, PyList> = self.get("special_tokens")?;
        tokens.iter().map(|token| token.extract().map(|(text, kind)| SpecialToken { text, kind })).collect()
    }

    /// A number that may be missing: then there is no limit.
    fn limit(&self, name: &str) -> PyResult<usize> {
        Ok(self.get::<Option<_>>(name)?.unwrap_or(usize::MAX))
    }

    fn bpe(&self) -> PyResult<BpeSettings> {
        Ok(settings!(BpeSettings from self:
            vocab_size, pre, special_first, min_frequency, whole_characters, transition, threads;
            special_tokens: self.special_tokens()?,
            max_token_length: self.limit("max_token_length")?
        ))
    }

    /// The settings that SPM and Unigram share; only SPM has a `min_frequency`.
    fn spm(&self, min_frequency: u64) -> PyResult<SpmSettings> {
        Ok(settings!(SpmSettings from self:
            vocab_size, byte_fallback, character_coverage, split_by_whitespace, split_by_unicode_script,
            split_by_number, split_digits, allow_whitespace_only_pieces, remove_extra_whitespaces, threads;
            special_tokens: self.special_tokens()?,
            limit_alphabet: self.limit("limit_alphabet")?,
            max_piece_length: self.get("max_token_length")?,
            add_dummy_prefix: self.get("add_space_prefix")?,
            min_frequency: min_frequency
        ))
    }

    fn unigram(&self) -> PyResult<UnigramSettings> {
        Ok(settings!(UnigramSettings from self:
            seed_size, shrinking_factor, num_sub_iterations;
            spm: self.spm(SpmSettings::default().min_frequency)?
        ))
    }

    fn wordpiece(&self) -> PyResult<WordPieceSettings> {
        Ok(settings!(WordPieceSettings from self:
            vocab_size, min_frequency, lowercase, strip_accents, threads;
            special_tokens: self.special_tokens()?,
            by: if self.get("by_likelihood")? { Likelihood::Gain } else { Likelihood::Frequency },
            max_token_length: self.limit("max_token_length")?,
            limit_alphabet: self.limit("limit_alphabet")?
        ))
    }
}

/// How much memory counting may take, and the paths of two files for what does not fit.
type MemoryLimit<'py> = (usize, Bound<'py, PyList>);
/// Called with the phase, how much is done, and of how much.
type Report<'a> = &'a mut dyn FnMut(Phase, u64, u64) -> ControlFlow<()>;
/// Makes the vocabulary of words, and of those of the second counter.
type Train = Box<dyn Fn(&Words, Option<&Words>, Report<'_>) -> Result<Trained, TrainError> + Send + Sync>;

impl Trainer {
    /// Runs work of the core, which reports its progress to the callback.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Report<'_>) -> Result<T, TrainError> + Send,
    ) -> PyResult<T> {
        let mut last: Option<Instant> = None;
        let mut raised = None;
        let result = run_long(py, || {
            work(&mut |phase: Phase, done: u64, total: u64| {
                let Some(progress) = &self.progress else { return ControlFlow::Continue(()) };
                if last.is_some_and(|last| last.elapsed() < REPORT) {
                    return ControlFlow::Continue(());
                }
                last = Some(Instant::now());
                let result = Python::attach(|py| progress.call1(py, (phase.name(), done, total)).map(drop));
                let Err(error) = result else { return ControlFlow::Continue(()) };
                raised = Some(error);
                ControlFlow::Break(())
            })
        });
        raised.map_or(result, Err)
    }

    fn count(
        &self,
        py: Python<'_>,
        work: impl Fn(&mut WordCounter<'static>, Report<'_>) -> Result<usize, TrainError> + Send + Sync,
    ) -> PyResult<usize> {
        self.run(py, |progress| {
            let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
            counters.iter_mut().try_fold(0, |_, counter| work(counter, progress))
        })
    }
}

impl Raise for RulesError {
    fn raise(self) -> PyErr {
        python::TrainingError::new_err(self.to_string())
    }
}

impl Raise for TrainError {
    fn raise(self) -> PyErr {
        let message = self.to_string();
        match self {
            Self::UnknownPreTokenizer { name, nearest } => python::UnsupportedError::new_err((message, name, nearest)),
            Self::Spill(error) => error.into(),
            _ => python::TrainingError::new_err(message),
        }
    }
}

#[pymethods]
impl Trainer {
    #[new]
    fn new(
        kind: &str,
        settings: &Bound<'_, PyDict>,
        memory: Option<MemoryLimit<'_>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let settings = KindSettings(settings);
        let normalize = || normalizer(&settings.get::<PyBackedBytes>("charsmap")?).map_err(Raise::raise);
        let (train, mut counters): (Train, Vec<_>) = match kind {
            "bpe" => {
                let trainer = BpeTrainer::new(settings.bpe()?).map_err(Raise::raise)?;
                let first = trainer.counter().map_err(Raise::raise)?;
                let second = trainer.second_counter().map_err(Raise::raise)?;
                let train =
                    move |first: &_, second: Option<&_>, report: Report<'_>| trainer.train(first, second, report);
                (Box::new(train), [first].into_iter().chain(second).collect())
            }
            "spm" => {
                let trainer = SpmTrainer::new(settings.spm(settings.get("min_frequency")?)?).map_err(Raise::raise)?;
                let counter = trainer.counter(normalize()?).map_err(Raise::raise)?;
                (Box::new(move |words, _, report| trainer.train(words, report)), vec![counter])
            }
            "unigram" => {
                let trainer = UnigramTrainer::new(settings.unigram()?).map_err(Raise::raise)?;
                let counter = trainer.counter(normalize()?).map_err(Raise::raise)?;
                (Box::new(move |words, _, report| trainer.train(words, report)), vec![counter])
            }
            "wordpiece" => {
                let trainer = WordPieceTrainer::new(settings.wordpiece()?).map_err(Raise::raise)?;
                let counter = trainer.counter().map_err(Raise::raise)?;
                (Box::new(move |words, _, report| trainer.train(words, report)), vec![counter])
            }
            "extend" => {
                let base: Bound<'_, Tokenizer> = settings.get("base")?;
                let base = base.get();
                let num_tokens = settings.get("num_tokens")?;
                let extender =
                    Extender::new(Arc::clone(&base.core), base.merges(), num_tokens, settings.get("threads")?);
                let extender = extender.map_err(Raise::raise)?;
                let counter = extender.counter().map_err(Raise::raise)?;
                (Box::new(move |words, _, report| extender.extend(words, report)), vec![counter])
            }
            _ => return Err(invalid(format!("no trainer has the kind {kind:?}"))),
        };
        if let Some((memory, paths)) = memory {
            let share = memory / counters.len();
            let spilled = counters.into_iter().zip(paths).map(|(counter, path)| {
                let path: PathBuf = path.extract()?;
                let file = File::options().read(true).write(true).create_new(true).open(path)?;
                Ok(counter.with_spill(share, file))
            });
            counters = spilled.collect::<PyResult<_>>()?;
        }
        Ok(Self { train, counters: Mutex::new(counters), words: Mutex::default(), progress })
    }

    fn push(&self, texts: &Bound<'_, PyAny>, first: usize, counts: &Bound<'_, PyList>) -> PyResult<()> {
        let py = texts.py();
        let counts = counts.iter().map(|count| count.extract()).collect::<PyResult<Vec<u64>>>()?;
        let source = Source::of(texts)?;
        let mut rows = Vec::new();
        source.pass_on(py, &mut Vec::new(), |text| rows.push(text))?;
        let texts = rows.iter().zip(first..).filter_map(|(text, number)| {
            Some(match text.as_ref()? {
                TextArgument::Str(text) => Ok(*text),
                text => check_signals(py, number).and_then(|()| utf8(text.text().as_bytes(), number)),
            })
        });
        let texts = texts.collect::<PyResult<Vec<_>>>()?;
        let counted: Vec<_> = texts.into_iter().zip(counts.into_iter().chain(iter::repeat(1))).collect();
        self.count(py, |counter, progress| counter.push_counted(&counted, progress).map(|()| 0)).map(drop)
    }

    fn push_file(
        &self,
        py: Python<'_>,
        block: &[u8],
        count: u64,
        is_last: bool,
        path: &str,
        start: usize,
    ) -> PyResult<usize> {
        let text = match std::str::from_utf8(block) {
            Ok(text) => text,
            // A character may continue in the next block.
            Err(error) if error.error_len().is_none() && !is_last => {
                str::from_utf8(&block[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => return Err(invalid(format!("{path} is not UTF-8 at byte {}", start + error.valid_up_to()))),
        };
        self.count(py, |counter, progress| counter.push_file(text, count, is_last, progress))
    }

    fn finish_counting(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.run(py, |_| {
            let counters = std::mem::take(&mut *self.counters.lock().unwrap_or_else(PoisonError::into_inner));
            let words = counters.into_iter().map(WordCounter::finish).collect::<Result<Vec<_>, _>>()?;
            let left_out = words.iter().filter_map(|words| words.left_out().map(ToString::to_string)).collect();
            *self.words.lock().unwrap_or_else(PoisonError::into_inner) = words;
            Ok(left_out)
        })
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyList>, Vec<i32>, Vec<f32>, Bound<'py, PyList>)> {
        let trained = self.run(py, |progress| {
            let mut words = std::mem::take(&mut *self.words.lock().unwrap_or_else(PoisonError::into_inner)).into_iter();
            let first = words.next().unwrap_or_default();
            (self.train)(&first, words.next().as_ref(), progress)
        })?;
        let Trained { tokens, types, scores, merges } = trained;
        let texts = |texts: Vec<Vec<u8>>| list(py, texts.iter().map(|text| PyBytes::new(py, text)));
        Ok((texts(tokens)?, types, scores, texts(merges)?))
    }
}

fn utf8(text: &[u8], number: usize) -> PyResult<&str> {
    std::str::from_utf8(text)
        .map_err(|error| invalid(format!("text {number} is not UTF-8 at byte {}", error.valid_up_to())))
}

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
