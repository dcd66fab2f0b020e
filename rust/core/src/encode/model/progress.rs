//! How far a fragment has come that is encoded part by part.

use crate::encode::normalizer::unigram::{NormalizerProgress, UnigramNormalizer};

/// The progress through a fragment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Whether any of it has been encoded.
    pub has_begun: bool,
    /// Hybrid DNA: whether `<dna>` is open.
    pub in_dna: bool,
    pub unigram: Option<Box<UnigramProgress>>,
}

/// The progress of Unigram, which `unigram/advance.rs` describes.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnigramProgress {
    /// Whether the rest is searched, and not cut into segments.
    pub is_searched: bool,
    /// How many bytes of the fragment have been taken.
    pub len: usize,
    /// The sum of scores of the tokens pushed so far.
    pub score: f64,
    /// Whether the last of them is unknown.
    pub after_unknown: bool,
    pub normalizer: NormalizerProgress,
    /// What is left of the normalized text that is searched.
    pub normalized: Vec<u8>,
    /// How long that has to be before it is searched again.
    pub goal: usize,
}

impl UnigramProgress {
    pub(crate) fn new(normalizer: &UnigramNormalizer) -> Self {
        Self { normalizer: normalizer.start(), ..Self::default() }
    }

    /// Begins to search. All text before has been pushed.
    pub(crate) fn search(&mut self) {
        if self.len > 0 {
            self.normalizer = UnigramNormalizer::in_word();
        }
        self.is_searched = true;
    }
}
