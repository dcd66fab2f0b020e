//! Random ways to cut a text into tokens, for training models that have seen more than one (subword regularization).
//!
//! A [`Sampler`] lies in the scratch space of an algorithm while a text is sampled. Unigram then draws a path through
//! its lattice; byte-pair encoding and SPM leave out merges ([`Sampler::decide`]).
//!
//! Sources: Kudo, "Subword Regularization" (2018); Provilkov, Emelianenko and Voita, "BPE-Dropout" (2020).

use std::fmt;

use super::merging::Decision;
use super::merging::symbol::Merge;

/// How a text is cut at random, and a source of random numbers. The same seed gives the same sequence of results, on
/// every machine.
///
/// # Examples
/// ```
/// # use ggtok_core::vocab::{Definition, StringIndex};
/// # use ggtok_core::{EncodeOptions, Sampler, Tokenizer};
/// # let (data, index) = StringIndex::concatenate(&["<unk>", "<s>", "</s>", "▁", "a", "▁a"])?;
/// # let definition = Definition { model: "llama", tokens: Some(index.view(&data)), ..Definition::default() };
/// # let tokenizer = Tokenizer::new(&definition)?;
/// let mut sampler = Sampler::dropout(0.5, 1)?;
/// let mut encoder = tokenizer.encoder();
/// let options = EncodeOptions::default().add_special(false);
/// let ids = (0..100).map(|_| encoder.sample("a", options, &mut sampler)).collect::<Result<Vec<_>, _>>()?;
/// assert!(ids.contains(&vec![5]) && ids.contains(&vec![3, 4]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    pub(crate) way: Sampling,
    /// `alpha`, or the probability with which a merge is left out.
    pub(crate) amount: f64,
    pub(crate) random: Random,
}

/// What is random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    /// The path through the lattice: its probability is proportional to the exponential of `alpha` times its score.
    Path,
    /// Which merges are made.
    Dropout,
}

/// A setting of a [`Sampler`] is out of range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplerError {
    /// The name of the setting.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl fmt::Display for SamplerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = if self.name == "alpha" { "a finite number from 0 on" } else { "a number from 0 to 1" };
        write!(f, "{} must be {range}, not {}", self.name, self.value)
    }
}

impl std::error::Error for SamplerError {}

impl Sampler {
    /// Samples paths through the lattice of a Unigram vocabulary. With an `alpha` of 0 all ways to cut a text are
    /// equally likely; the larger it is, the likelier is the best one.
    ///
    /// # Errors
    /// [`SamplerError`]: `alpha` is negative, infinite or not a number.
    pub fn path(alpha: f64, seed: u64) -> Result<Self, SamplerError> {
        if !(alpha >= 0.0 && alpha.is_finite()) {
            return Err(SamplerError { name: "alpha", value: alpha });
        }
        Ok(Self { way: Sampling::Path, amount: alpha, random: Random(seed) })
    }

    /// Samples merges of a byte-pair or SPM vocabulary: each is left out with probability `rate`.
    ///
    /// # Errors
    /// [`SamplerError`]: `rate` is not from 0 to 1.
    pub fn dropout(rate: f64, seed: u64) -> Result<Self, SamplerError> {
        if !(0.0..=1.0).contains(&rate) {
            return Err(SamplerError { name: "dropout", value: rate });
        }
        Ok(Self { way: Sampling::Dropout, amount: rate, random: Random(seed) })
    }

    /// Decides which merges are made. Others are dropped, as in sentencepiece, or delayed, as in
    /// huggingface/tokenizers, where even stale ones are drawn.
    pub(super) fn decide(&mut self, left_out: Decision) -> impl FnMut(Option<Merge>) -> Decision {
        let Self { amount: rate, random, .. } = self;
        move |merge| {
            let is_drawn = merge.is_some() || left_out == Decision::Delay;
            if is_drawn && random.fraction() < *rate { left_out } else { Decision::Take }
        }
    }
}

/// Random numbers: SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A number from 0 to 1, without 1.
    #[inline]
    pub(crate) fn fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
