//! The tokenization algorithms, one file each, behind one trait.

mod adjacency;
mod bpe;
mod cache;
mod hashed;
mod merging;
pub(crate) mod plamo2;
pub(crate) mod rwkv;
mod spm;
mod unigram;
mod wordpiece;

use crate::error::VocabularyError;
use crate::sink::Sink;
use crate::vocabulary::{Definition, Kind, Vocabulary};

/// One tokenization algorithm: built once from a vocabulary, immutable, shared between threads.
pub(crate) trait Model: Sized + Send + Sync {
    /// What one call needs and the next can reuse.
    type Scratch: Default + Send;

    /// Builds every table the algorithm walks, from a vocabulary in its declared state.
    ///
    /// # Errors
    /// [`VocabularyError`] where the vocabulary lacks what the algorithm needs.
    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError>;

    /// Takes over what the loader's repairs have changed.
    fn apply_repairs(&mut self, _vocabulary: &Vocabulary) {}

    /// Appends the tokens of one fragment.
    fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    );

    /// Memory held outside the value itself, in bytes.
    fn heap_bytes(&self) -> usize;
}

/// A stretch of text between special tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    /// The fragment's bytes; never empty.
    pub text: &'a [u8],
    /// Where `text` begins in the whole input, in bytes; spans count from the input's start.
    pub start: usize,
    /// Whether the fragment begins the input or follows a special token.
    pub after_special: bool,
    /// Whether the bytes are known to be valid UTF-8.
    pub is_utf8: bool,
}

/// Puts every algorithm into one type. A row names the algorithm and the vocabularies that it serves.
macro_rules! models {
    ($($name:ident: $pattern:pat => $model:ty;)+) => {
        /// Any algorithm.
        #[derive(Debug)]
        pub(crate) enum AnyModel {
            /// A file without a vocabulary.
            None,
            $($name(Box<$model>),)+
        }

        /// Any algorithm's scratch space.
        #[derive(Debug)]
        pub(crate) enum AnyScratch {
            None,
            $($name(Box<<$model as Model>::Scratch>),)+
        }

        impl AnyModel {
            /// The algorithm of a vocabulary.
            ///
            /// # Errors
            /// As [`Model::new`].
            pub(crate) fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
                Ok(match (vocabulary.kind(), vocabulary.model()) {
                    (Kind::None, _) => Self::None,
                    $($pattern => Self::$name(Box::new(<$model>::new(vocabulary, definition)?)),)+
                })
            }

            /// Scratch space of the right type.
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

            /// As [`Model::encode`]; scratch space of another algorithm is replaced.
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
    Dna: (Kind::Bpe, "hybriddna") => bpe::hybrid_dna::HybridDna;
    Whitespace: (Kind::Bpe, "whitespace") => bpe::whitespace::Whitespace;
    Bpe: (Kind::Bpe, _) => bpe::Bpe;
    WordPiece: (Kind::Wpm, _) => wordpiece::WordPiece;
    Unigram: (Kind::Ugm, _) => unigram::Unigram;
    Rwkv: (Kind::Rwkv, _) => rwkv::Rwkv;
    Plamo2: (Kind::Plamo2, _) => plamo2::Plamo2;
    Hashed: _ => hashed::Hashed;
}
