//! Hybrid DNA: byte-pair encoding, except between `<dna>` and `</dna>`, where every k-mer of six letters is one token.
//!
//! The letters of a k-mer are looked up as capitals. A shorter rest at the end is padded with A, and a k-mer that is
//! not a token becomes `<oov>`.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_hybriddna_session`. Time: one pass, plus what byte-pair
//! encoding takes for the text outside. Deviations: none.

use memchr::memmem;

use crate::encode::model::bpe::Bpe;
use crate::encode::model::progress::Progress;
use crate::encode::model::{Fragment, Model, Task};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::token::TokenId;
use crate::vocabulary::{DNA_MARKER, Definition, Vocabulary};
use crate::work::interrupt;

/// Letters of a k-mer.
const K: usize = 6;
const OPEN: &[u8] = b"<dna>";
const CLOSE: &[u8] = b"</dna>";

/// Byte-pair encoding with k-mers.
#[derive(Debug)]
pub(crate) struct HybridDna {
    pub(in crate::encode::model) bpe: Bpe,
    /// `<dna>`, `</dna>` and `<oov>`. A vocabulary that lacks one of them uses byte-pair encoding everywhere.
    tags: Option<[TokenId; 3]>,
}

heap_bytes!(HybridDna: bpe);

impl Model for HybridDna {
    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let tags = [OPEN, CLOSE, b"<oov>"].map(|text| vocabulary.id(text));
        let tags = if let [Some(open), Some(close), Some(oov)] = tags { Some([open, close, oov]) } else { None };
        Ok(Self { bpe: Bpe::new(vocabulary, definition)?, tags })
    }

    fn encode<S: Sink>(&self, task: Task<'_, S>) {
        self.encode_part(task, true, &mut Progress::default());
    }

    /// An escaped space may be part of a tag, so a text in which spaces are escaped is settled only at its end.
    fn encode_part<S: Sink>(&self, task: Task<'_, S>, is_end: bool, progress: &mut Progress) -> usize {
        if !self.escapes(task.vocabulary) {
            return self.encode_tagged(task, is_end, progress);
        }
        if !is_end {
            return 0;
        }
        // llama.cpp escapes spaces before it looks for tags.
        let Task { vocabulary, fragment, scratch, sink } = task;
        let text = Rewritten::escaped(fragment.text, fragment.start, false, S::SPANS);
        let escaped = Fragment { text: &text.text, start: 0, ..fragment };
        let sink = &mut Traced { sink, text: &text };
        self.encode_tagged(Task { vocabulary, fragment: escaped, scratch, sink }, true, progress);
        fragment.text.len()
    }
}

/// Pushes the k-mers of a stretch of letters.
fn push_kmers<S: Sink>(vocabulary: &Vocabulary, letters: &[u8], start: usize, oov: TokenId, sink: &mut S) {
    for (letters, from) in interrupt::ticking(letters.chunks(K)).zip((start..).step_by(K)) {
        let mut kmer = [b'A'; K + DNA_MARKER.len()];
        kmer[..letters.len()].copy_from_slice(letters);
        kmer[..letters.len()].make_ascii_uppercase();
        kmer[K..].copy_from_slice(DNA_MARKER);
        sink.push(vocabulary.id(&kmer).unwrap_or(oov), from..from + letters.len());
    }
}

impl HybridDna {
    /// Whether spaces are escaped in text that may contain tags.
    fn escapes(&self, vocabulary: &Vocabulary) -> bool {
        self.tags.is_some() && vocabulary.settings().escape_whitespaces
    }

    /// As [`Model::encode_part`], for a text whose spaces are already escaped, if the vocabulary asks for it.
    fn encode_tagged<S: Sink>(&self, task: Task<'_, S>, is_end: bool, progress: &mut Progress) -> usize {
        let Some([open, close, oov]) = self.tags else { return self.bpe.encode_part(task, is_end, progress) };
        let Task { vocabulary, fragment, scratch, sink } = task;
        let in_dna = &mut progress.in_dna;
        let mut at = 0;
        loop {
            let rest = &fragment.text[at..];
            let start = fragment.start + at;
            let (tag, id) = if *in_dna { (CLOSE, close) } else { (OPEN, open) };
            let found = memmem::find(rest, tag);
            let len = match found {
                Some(len) => len,
                None if is_end => rest.len(),
                None => {
                    // A tag may start in the last bytes.
                    let known = rest.len().saturating_sub(tag.len() - 1);
                    if *in_dna {
                        known / K * K
                    } else {
                        self.bpe.settled(vocabulary, Fragment { text: &rest[..known], ..fragment })
                    }
                }
            };
            sink.begin_word();
            if *in_dna {
                push_kmers(vocabulary, &rest[..len], start, oov, sink);
            } else if len > 0 {
                let fragment = Fragment { text: &rest[..len], start, ..fragment };
                self.bpe.encode(Task { vocabulary, fragment, scratch, sink });
            }
            at += len;
            if found.is_none() {
                return at;
            }
            sink.begin_word();
            sink.push(id, start + len..start + len + tag.len());
            at += tag.len();
            *in_dna = !*in_dna;
        }
    }
}
