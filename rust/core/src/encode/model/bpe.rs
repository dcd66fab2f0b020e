//! Byte-pair encoding: the symbols of a piece merge pair by pair, lowest rank first, leftmost first among equal ranks.
//!
//! Two algorithms share the merge rules: [`pieces`] for vocabularies whose symbols start as bytes, spelled with GPT-2's
//! characters, and [`character_tables`] for those whose symbols start as characters (Gemma 4, Sarvam, `whitespace`).
//!
//! Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016); llama.cpp
//! `src/llama-vocab.cpp`, `llm_tokenizer_bpe_session`.
//! Complexity: O(n log n) for a piece of n bytes, O(1) for a cached one.
//!
//! Deviations: (1) code points beyond U+10FFFF, on which llama.cpp aborts, become U+FFFD; (2) a piece with spaces in it
//! (a `whitespace` pre-tokenizer without the `whitespace` model), on which llama.cpp aborts, merges like any other;
//! (3) if spaces are escaped, a space in an overlong form is not, and llama.cpp aborts unless it is the whole piece: here
//! it merges with nothing.

mod byte_tables;
mod character_tables;
pub(super) mod hybrid_dna;
mod load;
mod new_pieces;
mod pieces;
pub(super) mod whitespace;
mod whole_chars;
mod whole_tokens;

use std::sync::OnceLock;

use super::lengths::Lengths;
use super::merging::ranks::MergeRanks;
use super::{Fragment, Model, ModelScratch, Task};
use crate::encode::normalizer::rewritten::Rewritten;
use crate::encode::pretokenizer::{Learned, SettledPieces, Splitter};
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::text::unicode::utf8::complete_len;
use crate::token::TokenId;
use crate::vocabulary::families::{Family, LINES};
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::interrupt::once;
use byte_tables::ByteTables;
use character_tables::CharacterTables;
use new_pieces::NewPieces;

/// Byte-pair encoding with one vocabulary.
#[derive(Debug)]
pub(crate) struct Bpe {
    splitter: Splitter,
    symbols: Symbols,
    family: &'static Family,
    /// Built on first use, when a streamed text continues.
    settled_pieces: OnceLock<SettledPieces>,
}

heap_bytes!(Bpe: splitter, symbols, settled_pieces);

/// What symbols start as.
#[derive(Debug)]
enum Symbols {
    Bytes(Box<ByteTables>),
    Characters(Box<CharacterTables>),
}

heap_bytes!(Symbols { Self::Bytes(tables) => tables, Self::Characters(tables) => tables });

/// Scratch space of pieces over bytes.
#[derive(Debug, Default)]
pub(super) struct BpeScratch {
    learned: Learned,
    new_pieces: NewPieces,
    /// The ids of a segment that is about to be cached.
    segment_ids: Vec<TokenId>,
}

impl Model for Bpe {
    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let Some(pre) = vocabulary.pre() else { return Err(VocabularyError::MissingMerges) };
        let family = pre.family;
        let symbols = if family.byte_encode {
            Symbols::Bytes(Box::new(ByteTables::new(vocabulary, definition)?))
        } else {
            Symbols::Characters(Box::new(CharacterTables::new(vocabulary, definition, pre.is_gemma4())?))
        };
        Ok(Self { splitter: Splitter::new(family), symbols, family, settled_pieces: OnceLock::new() })
    }

    fn encode<S: Sink>(&self, Task { vocabulary, fragment, scratch, sink }: Task<'_, S>) {
        let text = self.canonical(fragment, S::SPANS);
        match &self.symbols {
            Symbols::Bytes(tables) => pieces::encode(tables, &self.splitter, &text, scratch, sink),
            Symbols::Characters(characters) => {
                characters.encode(vocabulary, &self.splitter, (&text, &[text.text.len()]), scratch, sink);
            }
        }
    }

    fn lengths(&self, vocabulary: &Vocabulary) -> Option<Lengths> {
        Some(match &self.symbols {
            Symbols::Bytes(_) => Lengths::of_byte_level(vocabulary),
            Symbols::Characters(characters) => characters.lengths(vocabulary),
        })
    }

    /// The last settled boundary of a piece. For some vocabularies a whole line is one piece; then the last place in it
    /// that no merge crosses.
    fn settled(&self, _: &Vocabulary, fragment: Fragment<'_>) -> usize {
        let text = &fragment.text[..complete_len(fragment.text)];
        let text = self.canonical(Fragment { text, start: 0, ..fragment }, true);
        let bytes = &text.text[..];
        let mut settled = once(&self.settled_pieces, || SettledPieces::new(self.family)).last_cut(bytes);
        if let Symbols::Characters(characters) = &self.symbols
            && self.family.patterns == [LINES]
            && bytes.get(settled).is_some_and(|&first| first != b'\n')
        {
            settled = characters.last_cut(bytes, settled..bytes.len()).unwrap_or(settled);
        }
        if settled < bytes.len() { text.span(settled..settled + 1).start } else { 0 }
    }
}

impl Bpe {
    /// The text of a fragment in canonical UTF-8, as the symbols need it.
    #[inline]
    fn canonical<'t>(&self, Fragment { text, start, is_utf8, .. }: Fragment<'t>, spans: bool) -> Rewritten<'t> {
        match &self.symbols {
            Symbols::Bytes(_) => Rewritten::canonical(text, start, is_utf8, spans),
            Symbols::Characters(characters) => characters.canonical(text, start, is_utf8, spans),
        }
    }

    /// The merge rules.
    pub(super) fn ranks(&self) -> &MergeRanks {
        match &self.symbols {
            Symbols::Bytes(tables) => &tables.ranks,
            Symbols::Characters(characters) => &characters.ranks,
        }
    }

    /// Encodes words without whitespace that lie end to end in a text of canonical UTF-8, each by itself.
    fn encode_words<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        (text, ends): (&Rewritten<'_>, &[usize]),
        scratch: &mut ModelScratch,
        sink: &mut S,
    ) {
        match &self.symbols {
            Symbols::Bytes(tables) => {
                let mut start = 0;
                for &end in ends {
                    pieces::encode(tables, &self.splitter, &text.part(start..end), scratch, sink);
                    start = end;
                }
            }
            Symbols::Characters(characters) => {
                characters.encode(vocabulary, &self.splitter, (text, ends), scratch, sink);
            }
        }
    }
}
