//! Hybrid DNA: byte-pair encoding, except between `<dna>` and `</dna>`, where every k-mer of six letters is one token.
//!
//! The letters of a k-mer are looked up as capitals. A shorter rest is padded with A, and a k-mer that is no token
//! becomes `<oov>`.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_hybriddna_session`. Time: one pass, plus what byte-pair
//! encoding takes for the text outside. Deviations: none.

use memchr::memmem;

use super::{self as bpe, Bpe};
use crate::error::VocabularyError;
use crate::interrupt::Ticker;
use crate::model::{Fragment, Model};
use crate::normalizer::rewritten::{Rewritten, Traced};
use crate::sink::{Sink, TokenId};
use crate::vocabulary::{DNA_MARKER, Definition, Vocabulary};

/// Letters of a k-mer.
const K: usize = 6;
const OPEN: &[u8] = b"<dna>";
const CLOSE: &[u8] = b"</dna>";

/// Byte-pair encoding with k-mers.
#[derive(Debug)]
pub(crate) struct HybridDna {
    bpe: Bpe,
    /// `<dna>`, `</dna>` and `<oov>`. A vocabulary that lacks one of them uses byte-pair encoding everywhere.
    tags: Option<[TokenId; 3]>,
}

impl Model for HybridDna {
    type Scratch = bpe::Scratch;

    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let tags = [OPEN, CLOSE, b"<oov>"].map(|text| vocabulary.id(text));
        let tags = if let [Some(open), Some(close), Some(oov)] = tags { Some([open, close, oov]) } else { None };
        Ok(Self { bpe: Bpe::new(vocabulary, definition)?, tags })
    }

    fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) {
        match self.tags {
            None => self.bpe.encode(vocabulary, fragment, scratch, sink),
            // llama.cpp escapes spaces before it looks for tags.
            Some(tags) if vocabulary.settings().escape_whitespaces => {
                let text = Rewritten::escaped(fragment.text, fragment.start, false, S::SPANS);
                let fragment = Fragment { text: &text.text, start: 0, ..fragment };
                self.encode_tagged(vocabulary, fragment, tags, scratch, &mut Traced { sink, text: &text });
            }
            Some(tags) => self.encode_tagged(vocabulary, fragment, tags, scratch, sink),
        }
    }

    fn heap_bytes(&self) -> usize {
        self.bpe.heap_bytes()
    }
}

impl HybridDna {
    /// Pushes the tokens of a fragment, given the tokens of the tags.
    fn encode_tagged<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        [open, close, oov]: [TokenId; 3],
        scratch: &mut bpe::Scratch,
        sink: &mut S,
    ) {
        let mut encode_plain = |start: usize, end: usize, sink: &mut S| {
            if start < end {
                let fragment = Fragment { text: &fragment.text[start..end], start: fragment.start + start, ..fragment };
                self.bpe.encode(vocabulary, fragment, scratch, sink);
            }
        };

        let (text, start) = (fragment.text, fragment.start);
        let mut at = 0;
        while let Some(found) = memmem::find(&text[at..], OPEN) {
            encode_plain(at, at + found, sink);
            let content = at + found + OPEN.len();
            sink.push(open, start + at + found..start + content);

            let found = memmem::find(&text[content..], CLOSE);
            let end = found.map_or(text.len(), |found| content + found);
            let mut ticker = Ticker::default();
            for (num_kmers, letters) in text[content..end].chunks(K).enumerate() {
                ticker.tick();
                let mut kmer = [b'A'; K + DNA_MARKER.len()];
                kmer[..letters.len()].copy_from_slice(letters);
                kmer[..letters.len()].make_ascii_uppercase();
                kmer[K..].copy_from_slice(DNA_MARKER);
                let from = start + content + num_kmers * K;
                sink.push(vocabulary.id(&kmer).unwrap_or(oov), from..from + letters.len());
            }

            if found.is_none() {
                return;
            }
            at = end + CLOSE.len();
            sink.push(close, start + end..start + at);
        }
        encode_plain(at, text.len(), sink);
    }
}
