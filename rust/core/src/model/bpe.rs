//! Byte-pair encoding: the symbols of a piece merge pair by pair, lowest rank first, leftmost first among equal ranks.
//!
//! Two algorithms share the merge rules: [`pieces`] for vocabularies whose symbols start as bytes, spelled with GPT-2's
//! characters, and [`characters`] for those whose symbols start as characters (Gemma 4, Sarvam, `whitespace`).
//!
//! Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016); llama.cpp
//! `src/llama-vocab.cpp`, `llm_tokenizer_bpe_session`.
//! Complexity: O(n log n) for a piece of n bytes, O(1) for a cached one.
//!
//! Deviations: (1) code points beyond U+10FFFF, on which llama.cpp aborts, become U+FFFD; (2) a piece with spaces in it
//! (a `whitespace` pre-tokenizer without the `whitespace` model), on which llama.cpp aborts, merges like any other.

mod characters;
pub(super) mod hybrid_dna;
mod load;
mod new_words;
mod pieces;
mod tables;
pub(super) mod whitespace;
mod whole_chars;
mod whole_tokens;

use super::merging::Merging;
use super::merging::pair_memo::PairMemo;
use super::{Fragment, Model};
use crate::error::VocabularyError;
use crate::normalizer::rewritten::Rewritten;
use crate::pretokenizer::Splitter;
use crate::sink::Sink;
use crate::vocabulary::{Definition, Vocabulary};
use characters::Characters;
use tables::Tables;

/// Byte-pair encoding with one vocabulary.
#[derive(Debug)]
pub(crate) struct Bpe {
    splitter: Splitter,
    symbols: Symbols,
}

/// What symbols start as.
#[derive(Debug)]
enum Symbols {
    Bytes(Tables),
    Characters(Characters),
}

/// Scratch space of [`Bpe`].
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pieces: pieces::Scratch,
    characters: characters::Scratch,
}

/// Scratch space for merging one piece.
#[derive(Debug, Default)]
struct Merger {
    merging: Merging,
    memo: PairMemo,
}

impl Model for Bpe {
    type Scratch = Scratch;

    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let Some(pre) = vocabulary.pre() else { return Err(VocabularyError::MissingMerges) };
        let family = pre.patterns();
        let symbols = match family.byte_encode {
            true => Symbols::Bytes(Tables::new(vocabulary, definition)?),
            false => Symbols::Characters(Characters::new(vocabulary, definition, pre.is_gemma4())?),
        };
        Ok(Self { splitter: Splitter::new(family), symbols })
    }

    fn encode<S: Sink>(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>, scratch: &mut Scratch, sink: &mut S) {
        let text = Rewritten::canonical(fragment.text, fragment.start, fragment.is_utf8, S::SPANS);
        self.encode_canonical(vocabulary, &text, scratch, sink);
    }

    fn heap_bytes(&self) -> usize {
        let symbols = match &self.symbols {
            Symbols::Bytes(tables) => tables.heap_bytes(),
            Symbols::Characters(characters) => characters.heap_bytes(),
        };
        self.splitter.heap_bytes() + symbols
    }
}

impl Bpe {
    /// Encodes a text of canonical UTF-8.
    fn encode_canonical<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &Rewritten<'_>,
        scratch: &mut Scratch,
        sink: &mut S,
    ) {
        match &self.symbols {
            Symbols::Bytes(tables) => pieces::encode(tables, &self.splitter, text, &mut scratch.pieces, sink),
            Symbols::Characters(characters) => {
                characters.encode(vocabulary, &self.splitter, text, &mut scratch.characters, sink);
            }
        }
    }
}
