//! The registry: which algorithm a vocabulary uses, and one type for all of them.
//!
//! A [`Model`] is generic over its [`Sink`], so it cannot be a trait object. [`AnyModel`] is an enum instead: a
//! fragment costs one `match`, and everything inside an algorithm is compiled for the given sink.

use super::cache::WordCache;
use super::lengths::Lengths;
use super::{Fragment, Model, ModelScratch, Progress, bpe, hashed, plamo2, rwkv, spm, unigram, wordpiece};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::vocabulary::{Definition, Kind, Vocabulary};

/// Defines one enum over all algorithms. Each row has an algorithm and the vocabularies that use it; the first row that
/// matches wins.
macro_rules! models {
    ($($name:ident: $pattern:pat => $model:ty;)+) => {
        /// Any algorithm.
        #[derive(Debug)]
        pub(crate) enum AnyModel {
            /// A file without a vocabulary.
            None,
            $($name(Box<$model>),)+
        }

        /// The scratch space of any algorithm.
        #[derive(Debug)]
        pub(crate) enum AnyScratch {
            /// The scratch space of no algorithm.
            None,
            $($name(Box<<$model as Model>::Scratch>),)+
        }

        impl AnyScratch {
            /// As [`ModelScratch::cache`].
            pub(crate) fn cache(&mut self) -> Option<&mut WordCache> {
                match self {
                    Self::None => None,
                    $(Self::$name(scratch) => scratch.cache(),)+
                }
            }

            /// As [`ModelScratch::release_buffers`].
            pub(crate) fn release_buffers(&mut self) {
                match self {
                    Self::None => {}
                    $(Self::$name(scratch) => scratch.release_buffers(),)+
                }
            }
        }

        impl AnyModel {
            /// Builds the algorithm that a vocabulary uses.
            ///
            /// # Errors
            /// As [`Model::new`].
            pub(crate) fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
                Ok(match (vocabulary.kind(), vocabulary.model()) {
                    (Kind::None, _) => Self::None,
                    $($pattern => Self::$name(Box::new(<$model>::new(vocabulary, definition)?)),)+
                })
            }

            /// New scratch space for this algorithm.
            pub(crate) fn scratch(&self) -> AnyScratch {
                match self {
                    Self::None => AnyScratch::None,
                    $(Self::$name(_) => AnyScratch::$name(Box::default()),)+
                }
            }

            /// As [`Model::apply_repairs`].
            pub(crate) fn apply_repairs(&mut self, vocabulary: &Vocabulary) {
                match self {
                    Self::None => {}
                    $(Self::$name(model) => model.apply_repairs(vocabulary),)+
                }
            }

            /// As [`Model::encode`]. Replaces the scratch space of another algorithm.
            #[inline]
            pub(crate) fn encode<S: Sink>(
                &self,
                vocabulary: &Vocabulary,
                fragment: Fragment<'_>,
                scratch: &mut AnyScratch,
                sink: &mut S,
            ) {
                match (self, &mut *scratch) {
                    (Self::None, _) => {}
                    $((Self::$name(model), AnyScratch::$name(scratch)) => {
                        model.encode(vocabulary, fragment, scratch, sink);
                    })+
                    _ => {
                        *scratch = self.scratch();
                        self.encode(vocabulary, fragment, scratch, sink);
                    }
                }
            }

            /// As [`Model::lengths`].
            pub(crate) fn lengths(&self, vocabulary: &Vocabulary) -> Option<Lengths> {
                match self {
                    Self::None => None,
                    $(Self::$name(model) => model.lengths(vocabulary),)+
                }
            }

            /// As [`Model::first_start`].
            pub(crate) fn first_start(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>) -> isize {
                match self {
                    Self::None => 0,
                    $(Self::$name(model) => model.first_start(vocabulary, fragment),)+
                }
            }

            /// As [`Model::encode_part`]. Replaces the scratch space of another algorithm.
            pub(crate) fn encode_part<S: Sink>(
                &self,
                vocabulary: &Vocabulary,
                fragment: Fragment<'_>,
                is_end: bool,
                progress: &mut Progress,
                scratch: &mut AnyScratch,
                sink: &mut S,
            ) -> usize {
                match (self, &mut *scratch) {
                    (Self::None, _) => fragment.text.len(),
                    $((Self::$name(model), AnyScratch::$name(scratch)) => {
                        model.encode_part(vocabulary, fragment, is_end, progress, scratch, sink)
                    })+
                    _ => {
                        *scratch = self.scratch();
                        self.encode_part(vocabulary, fragment, is_end, progress, scratch, sink)
                    }
                }
            }

            /// As [`Model::heap_bytes`].
            pub(crate) fn heap_bytes(&self) -> usize {
                match self {
                    Self::None => 0,
                    $(Self::$name(model) => size_of::<$model>() + model.heap_bytes(),)+
                }
            }
        }
    };
}

models! {
    Spm: (Kind::Spm, _) => spm::Spm;
    HybridDna: (Kind::Bpe, "hybriddna") => bpe::hybrid_dna::HybridDna;
    Whitespace: (Kind::Bpe, "whitespace") => bpe::whitespace::Whitespace;
    Bpe: (Kind::Bpe, _) => bpe::Bpe;
    WordPiece: (Kind::WordPiece, _) => wordpiece::WordPiece;
    Unigram: (Kind::Unigram, _) => unigram::Unigram;
    Rwkv: (Kind::Rwkv, _) => rwkv::Rwkv;
    Plamo2: (Kind::Plamo2, _) => plamo2::Plamo2;
    Hashed: _ => hashed::Hashed;
}
