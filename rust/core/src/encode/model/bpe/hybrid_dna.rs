//! Hybrid DNA: byte-pair encoding, except between `<dna>` and `</dna>`, where every k-mer of six letters is one token.
//!
//! The letters of a k-mer are looked up as capitals. A shorter rest is padded with A, and a k-mer that is no token
//! becomes `<oov>`.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_hybriddna_session`. Time: one pass, plus what byte-pair
//! encoding takes for the text outside. Deviations: none.

use memchr::memmem;

use crate::encode::model::bpe::{self, Bpe};
use crate::encode::model::{Fragment, Model, Progress};
use crate::encode::normalizer::rewritten::{Rewritten, Traced};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::token::TokenId;
use crate::vocabulary::{DNA_MARKER, Definition, Vocabulary};
use crate::work::interrupt::Ticker;

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

    /// An escaped space may be part of a tag, so a text in which spaces are escaped is settled at its end only.
    fn advance<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        progress: &mut Progress,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) -> usize {
        let Some([open, close, oov]) = self.tags.filter(|_| !vocabulary.settings().escape_whitespaces) else {
            return match self.tags {
                None => self.bpe.advance(vocabulary, fragment, progress, scratch, sink),
                Some(_) => 0,
            };
        };
        let (text, mut at) = (fragment.text, 0);
        loop {
            let rest = &text[at..];
            let (tag, id) = if progress.in_dna { (CLOSE, close) } else { (OPEN, open) };
            let found = memmem::find(rest, tag);
            // A tag may start in the last bytes.
            let known = found.unwrap_or(rest.len().saturating_sub(tag.len() - 1));
            let settled = match (progress.in_dna, found) {
                (_, Some(end)) => end,
                (true, None) => known / K * K,
                (false, None) => self.bpe.settled(vocabulary, &rest[..known]),
            };
            if progress.in_dna {
                push_kmers(vocabulary, &rest[..settled], fragment.start + at, oov, sink);
            } else if settled > 0 {
                let fragment = Fragment { text: &rest[..settled], start: fragment.start + at, ..fragment };
                self.bpe.encode(vocabulary, fragment, scratch, sink);
            }
            at += settled;
            if found.is_none() {
                return at;
            }
            sink.push(id, fragment.start + at..fragment.start + at + tag.len());
            at += tag.len();
            progress.in_dna = !progress.in_dna;
        }
    }

    fn finish<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        fragment: Fragment<'_>,
        progress: &mut Progress,
        scratch: &mut Self::Scratch,
        sink: &mut S,
    ) {
        let Some([_, _, oov]) = self.tags.filter(|_| !vocabulary.settings().escape_whitespaces) else {
            if !fragment.text.is_empty() {
                self.encode(vocabulary, fragment, scratch, sink);
            }
            return;
        };
        let done = self.advance(vocabulary, fragment, progress, scratch, sink);
        let fragment = Fragment { text: &fragment.text[done..], start: fragment.start + done, ..fragment };
        if progress.in_dna {
            push_kmers(vocabulary, fragment.text, fragment.start, oov, sink);
        } else if !fragment.text.is_empty() {
            self.bpe.encode(vocabulary, fragment, scratch, sink);
        }
    }

    fn heap_bytes(&self) -> usize {
        self.bpe.heap_bytes()
    }
}

/// Pushes the tokens of the letters between two tags, or of those up to the end of a k-mer.
fn push_kmers<S: Sink>(vocabulary: &Vocabulary, letters: &[u8], start: usize, oov: TokenId, sink: &mut S) {
    let mut ticker = Ticker::default();
    for (letters, from) in letters.chunks(K).zip((start..).step_by(K)) {
        ticker.tick();
        let mut kmer = [b'A'; K + DNA_MARKER.len()];
        kmer[..letters.len()].copy_from_slice(letters);
        kmer[..letters.len()].make_ascii_uppercase();
        kmer[K..].copy_from_slice(DNA_MARKER);
        sink.push(vocabulary.id(&kmer).unwrap_or(oov), from..from + letters.len());
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
            push_kmers(vocabulary, &text[content..end], start + content, oov, sink);
            if found.is_none() {
                return;
            }
            at = end + CLOSE.len();
            sink.push(close, start + end..start + at);
        }
        encode_plain(at, text.len(), sink);
    }
}
