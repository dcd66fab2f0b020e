//! Builds the definition of a vocabulary from the keys of a file: which keys are read, and as what type.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llama_vocab::impl::load`. The keys of special tokens and flags are those
//! of [`SLOTS`] and [`FLAGS`]. Deviations: none.

use super::error::{LoadError, Problem};
use super::metadata::Metadata;
use super::value::Type;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::{Definition, FLAGS, Kind, SLOTS, defaults, escaped_name};
use crate::work::memory::{self, collect};

const PREFIX: &str = "tokenizer.ggml.";

impl<D: AsRef<[u8]>> Metadata<D> {
    /// Opens the tokenizer that the metadata defines.
    ///
    /// # Errors
    /// - [`LoadError::Gguf`] if the file does not name a tokenizer, or a required key has the wrong type.
    /// - [`LoadError::Vocabulary`] if the vocabulary is unknown, incomplete or damaged, or memory runs out.
    pub fn tokenizer(&self) -> Result<Tokenizer, LoadError> {
        memory::catch(|| self.open())?
    }

    fn open(&self) -> Result<Tokenizer, LoadError> {
        let key = |rest: &str| format!("{PREFIX}{rest}");
        let name = self.string(&key("model"))?;
        let name = name.ok_or_else(|| self.error(Problem::NoTokenizer, key("model")))?;
        let pre = self.string(&key("pre"))?.map(escaped_name);
        let architecture = self.string("general.architecture")?.unwrap_or_default();
        let vocab_size = self.number([architecture, b".vocab_size"].concat())?;
        let general_name = escaped_name(self.string("general.name")?.unwrap_or_default());
        let model = escaped_name(name);
        let architecture = escaped_name(architecture);
        let mut definition = Definition {
            model: &model,
            pre: pre.as_deref(),
            vocab_size,
            name: &general_name,
            architecture: &architecture,
            ..Definition::default()
        };
        // `Tokenizer::new` refuses an unknown model, after the keys that all models have are read.
        let kind = defaults::model(&model).map(|row| row.kind).ok();
        if kind == Some(Kind::None) {
            return Ok(Tokenizer::new(&definition)?);
        }
        if kind == Some(Kind::Bpe) {
            definition.merges = self.array(&key("merges"), &[Type::String])?.and_then(|array| array.strings());
        }
        if kind == Some(Kind::Unigram) {
            definition.charsmap =
                self.array(&key("precompiled_charsmap"), &[Type::Int8, Type::Uint8])?.map(|array| array.bytes());
        }
        let tokens = self.array(&key("tokens"), &[Type::String])?;
        definition.tokens = tokens.and_then(|array| array.strings());
        let scores: Option<Vec<f32>> =
            self.array(&key("scores"), &[Type::Float32, Type::Int32])?.map(|array| match array.kind() {
                Type::Int32 => collect(array.numbers().map(|score| i32::from_le_bytes(score) as f32)),
                _ => collect(array.numbers().map(f32::from_le_bytes)),
            });
        definition.scores = scores.as_deref();
        let types: Option<Vec<i32>> = self
            .array(&key("token_type"), &[Type::Int32])?
            .map(|array| collect(array.numbers().map(i32::from_le_bytes)));
        definition.token_types = types.as_deref();
        for given in SLOTS.iter().flat_map(|slot| slot.given) {
            *(given.id_mut)(&mut definition.special) = self.number(key(given.key))?;
        }
        for flag in FLAGS {
            *(flag.value_mut)(&mut definition) = self.flag(&key(flag.key))?;
        }
        Ok(Tokenizer::new(&definition)?)
    }
}
