//! The registry: which algorithm a vocabulary uses, and one type for all of them.
//!
//! A [`Model`] is generic over its [`Sink`], so it cannot be a trait object. [`AnyModel`] is an enum instead: a
//! fragment costs one `match`, and everything inside an algorithm is compiled for the given sink.

use super::bpe::hybrid_dna::HybridDna;
use super::bpe::whitespace::Whitespace;
use super::bpe::{Bpe, BpeScratch};
use super::cache::WordCache;
use super::hashed::Hashed;
use super::lengths::Lengths;
use super::merging::SymbolSpan;
use super::merging::pair_memo::PairMemo;
use super::merging::ranks::MergeRanks;
use super::merging::symbol::{Merge, NO_MERGE, NO_SYMBOL, Symbol};
use super::plamo2::{Plamo2, Plamo2Scratch};
use super::progress::Progress;
use super::rwkv::Rwkv;
use super::sampler::{Dropped, Dropping, Random, Sampler, Sampling, characters};
use super::spm::{Spm, SpmScratch, rank};
use super::unigram::{Unigram, UnigramScratch};
use super::wordpiece::{WordPiece, WordPieceScratch};
use super::{Fragment, Model, ModelScratch};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::defaults::Algorithm;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::heap::HeapBytes;
use crate::work::memory;

/// Any algorithm.
#[derive(Debug)]
pub(crate) enum AnyModel {
    /// A file without a vocabulary.
    None,
    Spm(Box<Spm>),
    HybridDna(Box<HybridDna>),
    Whitespace(Box<Whitespace>),
    Bpe(Box<Bpe>),
    WordPiece(Box<WordPiece>),
    Unigram(Box<Unigram>),
    Rwkv(Box<Rwkv>),
    Plamo2(Box<Plamo2>),
    Hashed(Box<Hashed>),
}

/// Evaluates one expression for the model of any algorithm, and another if there is none.
macro_rules! dispatch {
    ($any:expr, $model:ident => $result:expr, $none:expr) => {
        match $any {
            AnyModel::None => $none,
            AnyModel::Spm($model) => $result,
            AnyModel::HybridDna($model) => $result,
            AnyModel::Whitespace($model) => $result,
            AnyModel::Bpe($model) => $result,
            AnyModel::WordPiece($model) => $result,
            AnyModel::Unigram($model) => $result,
            AnyModel::Rwkv($model) => $result,
            AnyModel::Plamo2($model) => $result,
            AnyModel::Hashed($model) => $result,
        }
    };
}

/// The scratch space of the calls of one tokenizer. Its algorithm uses one of the fields, which gets its only item on
/// first use: a `Box` would end the process if it found no memory.
#[derive(Debug, Default)]
pub(crate) struct AnyScratch {
    /// The most memory of the cache, in bytes.
    cache_limit: usize,
    spm: Vec<SpmScratch>,
    bpe: Vec<BpeScratch>,
    wordpiece: Vec<WordPieceScratch>,
    unigram: Vec<UnigramScratch>,
    plamo2: Vec<Plamo2Scratch>,
}

impl AnyScratch {
    /// An empty space whose cache takes at most this many bytes.
    pub(crate) fn new(cache_limit: usize) -> Self {
        Self { cache_limit, ..Self::default() }
    }

    pub(crate) fn cache_limit(&self) -> usize {
        self.cache_limit
    }

    /// Sets the limit for the memory of the cache, in bytes. A cache above the limit is emptied.
    pub(crate) fn set_cache_limit(&mut self, bytes: usize) {
        if std::mem::replace(&mut self.cache_limit, bytes) != bytes
            && let Some(cache) = self.cache()
        {
            cache.set_limit(bytes);
        }
    }

    /// The cache, once a text has been encoded and if the algorithm has one.
    pub(crate) fn cache(&mut self) -> Option<&mut WordCache> {
        fn of<S: ModelScratch>(scratch: &mut [S]) -> Option<&mut WordCache> {
            scratch.first_mut().map(S::cache)
        }
        let Self { spm, bpe, wordpiece, unigram, plamo2, .. } = self;
        of(spm).or(of(bpe)).or(of(wordpiece)).or(of(unigram)).or(of(plamo2))
    }

    /// Where the algorithm of a model takes its sampler from, if it can sample.
    pub(crate) fn sampler(&mut self, model: &AnyModel) -> Option<&mut Option<Sampler>> {
        let Self { cache_limit: limit, spm, bpe, unigram, .. } = self;
        match model {
            AnyModel::Spm(_) => of(spm, *limit).sampler(),
            AnyModel::Bpe(_) | AnyModel::Whitespace(_) | AnyModel::HybridDna(_) => of(bpe, *limit).sampler(),
            AnyModel::Unigram(_) => of(unigram, *limit).sampler(),
            AnyModel::None | AnyModel::WordPiece(_) | AnyModel::Rwkv(_) | AnyModel::Plamo2(_) | AnyModel::Hashed(_) => {
                None
            }
        }
    }

    /// Frees all memory except that of the cache.
    pub(crate) fn release_buffers(&mut self) {
        release(&mut self.spm);
        release(&mut self.bpe);
        release(&mut self.wordpiece);
        release(&mut self.unigram);
        release(&mut self.plamo2);
    }
}

fn release<S: ModelScratch>(scratch: &mut [S]) {
    for scratch in scratch {
        let cache = std::mem::take(scratch.cache());
        let sampler = scratch.sampler().and_then(Option::take);
        *scratch = S::default();
        *scratch.cache() = cache;
        if let Some(place) = scratch.sampler() {
            *place = sampler;
        }
    }
}

/// The scratch space of one algorithm.
#[inline(always)]
fn of<S: ModelScratch>(scratch: &mut Vec<S>, cache_limit: usize) -> &mut S {
    if scratch.is_empty() {
        add_scratch(scratch, cache_limit);
    }
    &mut scratch[0]
}

/// Not inlined, because it needs a large stack frame.
#[cold]
#[inline(never)]
fn add_scratch<S: ModelScratch>(scratch: &mut Vec<S>, cache_limit: usize) {
    *scratch = memory::with_capacity(1);
    scratch.push(S::default());
    scratch[0].cache().set_limit(cache_limit);
}

fn build<M: Model>(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Box<M>, VocabularyError> {
    Ok(Box::new(M::new(vocabulary, definition)?))
}

impl AnyModel {
    /// Builds the algorithm that a vocabulary uses.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub(crate) fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        Ok(match vocabulary.algorithm() {
            Algorithm::None => Self::None,
            Algorithm::Spm => Self::Spm(build(vocabulary, definition)?),
            Algorithm::HybridDna => Self::HybridDna(build(vocabulary, definition)?),
            Algorithm::Whitespace => Self::Whitespace(build(vocabulary, definition)?),
            Algorithm::Bpe => Self::Bpe(build(vocabulary, definition)?),
            Algorithm::WordPiece => Self::WordPiece(build(vocabulary, definition)?),
            Algorithm::Unigram => Self::Unigram(build(vocabulary, definition)?),
            Algorithm::Rwkv => Self::Rwkv(build(vocabulary, definition)?),
            Algorithm::Plamo2 => Self::Plamo2(build(vocabulary, definition)?),
            Algorithm::Hashed => Self::Hashed(build(vocabulary, definition)?),
        })
    }

    /// As [`Model::apply_repairs`].
    pub(crate) fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        dispatch!(self, model => model.apply_repairs(vocabulary), ());
    }

    /// As [`Model::encode`].
    #[inline]
    pub(crate) fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        scratch: &mut AnyScratch,
        sink: &mut S,
    ) {
        let AnyScratch { cache_limit: limit, spm, bpe, wordpiece, unigram, plamo2 } = scratch;
        match self {
            Self::None => {}
            Self::Spm(model) => model.encode(vocabulary, fragment, of(spm, *limit), sink),
            Self::HybridDna(model) => model.encode(vocabulary, fragment, of(bpe, *limit), sink),
            Self::Whitespace(model) => model.encode(vocabulary, fragment, of(bpe, *limit), sink),
            Self::Bpe(model) => model.encode(vocabulary, fragment, of(bpe, *limit), sink),
            Self::WordPiece(model) => model.encode(vocabulary, fragment, of(wordpiece, *limit), sink),
            Self::Unigram(model) => model.encode(vocabulary, fragment, of(unigram, *limit), sink),
            Self::Rwkv(model) => model.encode(vocabulary, fragment, &mut (), sink),
            Self::Plamo2(model) => model.encode(vocabulary, fragment, of(plamo2, *limit), sink),
            Self::Hashed(model) => model.encode(vocabulary, fragment, &mut (), sink),
        }
    }

    /// The merge rules of byte-pair encoding.
    pub(crate) fn ranks(&self) -> Option<&MergeRanks> {
        match self {
            Self::HybridDna(model) => Some(model.bpe.ranks()),
            Self::Whitespace(model) => Some(model.bpe.ranks()),
            Self::Bpe(model) => Some(model.ranks()),
            _ => None,
        }
    }

    /// The merges that make a text of SPM or byte-pair encoding one symbol, if any do: the rank of each, and the symbol
    /// that it makes. The text is spelled as in the vocabulary.
    pub(crate) fn merges_of<'d>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        (dropping, memo): (&'d mut Dropping, &mut PairMemo),
    ) -> &'d [(u32, Symbol)] {
        let symbol = |text: &[u8]| match self.ranks() {
            Some(ranks) => ranks.symbol(vocabulary, text),
            None => vocabulary.id(text).map_or(NO_SYMBOL, |id| id as Symbol),
        };
        let by_score = |text| match symbol(text) {
            NO_SYMBOL => NO_MERGE,
            symbol => Merge { rank: rank(vocabulary.score(symbol as TokenId)), symbol },
        };
        let char = |at: usize| {
            let len = utf8::sequence_len(text[at]).min(text.len() - at);
            (symbol(&text[at..at + len]), len)
        };
        let merge = |left: &SymbolSpan, right: &SymbolSpan| match self.ranks() {
            Some(ranks) => ranks.get(left.symbol, right.symbol),
            None => memo.get(left.symbol, right.symbol, || by_score(&text[left.start as usize..right.end as usize])),
        };
        let mut never = Sampler { way: Sampling::Dropout, amount: 0.0, random: Random(0) };
        let symbols = dropping.run(characters(text, char), &mut never, Dropped::ForNow, merge);
        if symbols.len() == 1 { &dropping.made } else { &[] }
    }

    /// As [`Model::lengths`].
    pub(crate) fn lengths(&self, vocabulary: &Vocabulary) -> Option<Lengths> {
        dispatch!(self, model => model.lengths(vocabulary), None)
    }

    /// As [`Model::first_start`].
    pub(crate) fn first_start(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>) -> isize {
        dispatch!(self, model => model.first_start(vocabulary, fragment), 0)
    }

    /// As [`Model::encode_part`].
    pub(crate) fn encode_part<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        part: Fragment<'_>,
        is_end: bool,
        progress: &mut Progress,
        scratch: &mut AnyScratch,
        sink: &mut S,
    ) -> usize {
        let AnyScratch { cache_limit: limit, spm, bpe, wordpiece, unigram, plamo2 } = scratch;
        match self {
            Self::None => part.text.len(),
            Self::Spm(model) => model.encode_part(vocabulary, part, is_end, progress, of(spm, *limit), sink),
            Self::HybridDna(model) => model.encode_part(vocabulary, part, is_end, progress, of(bpe, *limit), sink),
            Self::Whitespace(model) => model.encode_part(vocabulary, part, is_end, progress, of(bpe, *limit), sink),
            Self::Bpe(model) => model.encode_part(vocabulary, part, is_end, progress, of(bpe, *limit), sink),
            Self::WordPiece(model) => {
                model.encode_part(vocabulary, part, is_end, progress, of(wordpiece, *limit), sink)
            }
            Self::Unigram(model) => model.encode_part(vocabulary, part, is_end, progress, of(unigram, *limit), sink),
            Self::Rwkv(model) => model.encode_part(vocabulary, part, is_end, progress, &mut (), sink),
            Self::Plamo2(model) => model.encode_part(vocabulary, part, is_end, progress, of(plamo2, *limit), sink),
            Self::Hashed(model) => model.encode_part(vocabulary, part, is_end, progress, &mut (), sink),
        }
    }
}

impl HeapBytes for AnyModel {
    fn heap_bytes(&self) -> usize {
        dispatch!(self, model => model.heap_bytes(), 0)
    }
}
