//! The tokenization algorithms: one file each, behind one trait, [`Model`].

mod adjacency;
pub(crate) mod any;
mod bpe;
pub(crate) mod cache;
mod hashed;
pub(crate) mod lengths;
pub(crate) mod merging;
mod plamo2;
pub(crate) mod progress;
mod rwkv;
pub(crate) mod sampler;
mod segmenter;
mod spm;
pub(crate) mod unigram;
mod wordpiece;

use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::heap::HeapBytes;
use bpe::BpeScratch;
use cache::WordCache;
use cache::probes::ProbeQueue;
use cache::queue::WordQueue;
use lengths::Lengths;
use merging::Merging;
use merging::pair_memo::PairMemo;
use plamo2::Choices;
use progress::Progress;
use sampler::Sampler;
use unigram::UnigramScratch;
use wordpiece::NormalizedWord;

/// The scratch space of the algorithms: buffers that calls reuse, and a cache. Each algorithm uses a part of it.
#[derive(Debug, Default)]
pub(crate) struct ModelScratch {
    /// Ids by words.
    pub(crate) cache: WordCache,
    /// Set while a text is sampled.
    pub(crate) sampler: Option<Sampler>,
    queue: WordQueue,
    probes: ProbeQueue,
    merger: Merger,
    /// The text that SPM or Unigram encodes.
    rewritten: Rewritten<'static>,
    bpe: BpeScratch,
    /// The word that WordPiece encodes.
    word: NormalizedWord,
    unigram: UnigramScratch,
    /// PLaMo-2's choices in one segment.
    choices: Choices,
}

/// Scratch space for merging the pieces or segments of a text.
#[derive(Debug, Default)]
struct Merger {
    merging: Merging,
    memo: PairMemo,
    /// A text with its spaces escaped, for SPM.
    escaped: Vec<u8>,
}

/// A tokenization algorithm: built once from a vocabulary, then immutable and shared between threads.
pub(crate) trait Model: HeapBytes + Sized + Send + Sync {
    /// Builds the tables of the algorithm from a vocabulary that is declared, but not yet repaired.
    ///
    /// # Errors
    /// [`VocabularyError`] if the vocabulary lacks what the algorithm needs.
    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError>;

    /// Updates the tables that depend on what the loader has repaired in the vocabulary.
    fn apply_repairs(&mut self, _vocabulary: &Vocabulary) {}

    /// Pushes the tokens of one fragment.
    fn encode<S: Sink>(&self, task: Task<'_, S>);

    /// The least number of bytes that each token stands for, if the tokens tile a fragment of UTF-8.
    fn lengths(&self, _vocabulary: &Vocabulary) -> Option<Lengths> {
        None
    }

    /// Where the first token of a fragment starts, if the tokens tile it: negative if a space is added before it.
    fn first_start(&self, _vocabulary: &Vocabulary, _fragment: Fragment<'_>) -> isize {
        0
    }

    /// How many bytes at the start of a fragment can be encoded separately from the rest: whatever follows, no token
    /// crosses that place, and no rule of the algorithm looks across it. The fragment is as in [`Model::encode_part`].
    /// Not called if a model overrides that.
    fn settled(&self, _vocabulary: &Vocabulary, _fragment: Fragment<'_>) -> usize {
        0
    }

    /// Pushes the settled tokens of a fragment that may continue, or all tokens at its end. Returns how many bytes of
    /// it they take. The fragment is what earlier calls left; at the end it may be empty. If it may continue, a character
    /// at its end may be incomplete even if it is UTF-8.
    fn encode_part<S: Sink>(&self, task: Task<'_, S>, is_end: bool, progress: &mut Progress) -> usize {
        let fragment = task.fragment;
        let len = if is_end { fragment.text.len() } else { self.settled(task.vocabulary, fragment) };
        if len > 0 {
            let after_special = !std::mem::replace(&mut progress.has_begun, true);
            let fragment = Fragment { text: &fragment.text[..len], after_special, ..fragment };
            self.encode(Task { fragment, ..task });
        }
        len
    }
}

/// A fragment to encode, and what that takes.
pub(crate) struct Task<'a, S> {
    pub vocabulary: &'a Vocabulary,
    pub fragment: Fragment<'a>,
    pub scratch: &'a mut ModelScratch,
    pub sink: &'a mut S,
}

/// The text between two special tokens.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'a> {
    /// The fragment's bytes; never empty.
    pub text: &'a [u8],
    /// Where `text` starts in the whole input, in bytes: the offset to add to its spans.
    pub start: usize,
    /// Whether the fragment starts the input or follows a special token.
    pub after_special: bool,
    /// Whether the fragment starts an input that continues an earlier one: no space is added before it.
    pub continues: bool,
    /// Whether the bytes are known to be valid UTF-8.
    pub is_utf8: bool,
}
