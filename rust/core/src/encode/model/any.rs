//! The registry: which algorithm a vocabulary uses, and one type for all of them.
//!
//! A [`Model`] is generic over its [`Sink`], so it cannot be a trait object. [`AnyModel`] is an enum instead: a
//! fragment costs one `match`, and everything inside an algorithm is compiled for the given sink.

use super::bpe::Bpe;
use super::bpe::hybrid_dna::HybridDna;
use super::bpe::whitespace::Whitespace;
use super::hashed::Hashed;
use super::lengths::Lengths;
use super::merging::pair_memo::PairMemo;
use super::merging::ranks::MergeRanks;
use super::merging::symbol::{Merge, NO_MERGE, NO_SYMBOL, Symbol};
use super::merging::{Decision, Merging, SymbolSpan};
use super::plamo2::Plamo2;
use super::progress::Progress;
use super::rwkv::Rwkv;
use super::spm::{Spm, rank};
use super::unigram::Unigram;
use super::wordpiece::WordPiece;
use super::{Fragment, Model, Task};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::defaults::{HYBRID_DNA, WHITESPACE};
use crate::vocabulary::{Definition, Kind, Vocabulary};
use crate::work::heap::HeapBytes;

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

fn build<M: Model>(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Box<M>, VocabularyError> {
    Ok(Box::new(M::new(vocabulary, definition)?))
}

impl AnyModel {
    /// Builds the algorithm that a vocabulary uses.
    ///
    /// # Errors
    /// As [`Model::new`].
    pub(crate) fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        Ok(match (vocabulary.kind(), vocabulary.model()) {
            (Kind::None, _) => Self::None,
            (Kind::Spm, _) => Self::Spm(build(vocabulary, definition)?),
            (Kind::Bpe, HYBRID_DNA) => Self::HybridDna(build(vocabulary, definition)?),
            (Kind::Bpe, WHITESPACE) => Self::Whitespace(build(vocabulary, definition)?),
            (Kind::Bpe, _) => Self::Bpe(build(vocabulary, definition)?),
            (Kind::WordPiece, _) => Self::WordPiece(build(vocabulary, definition)?),
            (Kind::Unigram, _) => Self::Unigram(build(vocabulary, definition)?),
            (Kind::Rwkv, _) => Self::Rwkv(build(vocabulary, definition)?),
            (Kind::Plamo2, _) => Self::Plamo2(build(vocabulary, definition)?),
            (Kind::Test, _) => Self::Hashed(build(vocabulary, definition)?),
        })
    }

    /// As [`Model::apply_repairs`].
    pub(crate) fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
        dispatch!(self, model => model.apply_repairs(vocabulary), ());
    }

    /// As [`Model::encode`].
    #[inline]
    pub(crate) fn encode<S: Sink>(&self, task: Task<'_, S>) {
        dispatch!(self, model => model.encode(task), ());
    }

    /// Whether the algorithm caches words.
    pub(crate) fn has_cache(&self) -> bool {
        !matches!(self, Self::None | Self::Rwkv(_) | Self::Hashed(_))
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

    /// The merges that make a text of SPM or byte-pair encoding one symbol, if any do, in order. The text is spelled as in
    /// the vocabulary.
    pub(crate) fn merges_of(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        (merging, memo): (&mut Merging, &mut PairMemo),
    ) -> Vec<Merge> {
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
        let mut made = Vec::new();
        merging.fill(text, char);
        let symbols = merging.run_deciding(merge, |merge| {
            crate::work::memory::extend(&mut made, merge.into_iter());
            Decision::Take
        });
        if symbols.len() == 1 { made } else { Vec::new() }
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
    pub(crate) fn encode_part<S: Sink>(&self, task: Task<'_, S>, is_end: bool, progress: &mut Progress) -> usize {
        dispatch!(self, model => model.encode_part(task, is_end, progress), task.fragment.text.len())
    }
}

impl HeapBytes for AnyModel {
    fn heap_bytes(&self) -> usize {
        dispatch!(self, model => model.heap_bytes(), 0)
    }
}
