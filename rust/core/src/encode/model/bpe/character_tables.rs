//! Byte-pair encoding over characters: pieces are cut into segments, whose ids are cached.
//!
//! Pieces are whole lines or words. A line hardly ever repeats, but its segments, between the places that no merge can
//! cross, do. So segments are cached. Those of all pieces share a queue, because few lines of code would fill one.
//! Gemma 4's runs of newlines stay whole: llama.cpp looks them up as tokens first. A character that is not a token is
//! spelled with the tokens `<0xXX>` of its bytes, and bytes without such a token are dropped.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `llm_tokenizer_bpe_session` with `byte_encode` off. Complexity: as
//! [`super`]. Deviations: none beyond those of [`super`].

use std::ops::Range;

use memchr::memmem;

use crate::encode::model::lengths::Lengths;
use crate::encode::model::merging::ranks::MergeRanks;
use crate::encode::model::merging::symbol::{NO_SYMBOL, Symbol};
use crate::encode::model::merging::symbol_tokens::SymbolTokens;
use crate::encode::model::merging::{Decision, SymbolSpan, runs};
use crate::encode::model::sampler::Sampler;
use crate::encode::model::segmenter::{Segmenter, SegmenterBuilder};
use crate::encode::model::{Merger, ModelScratch};
use crate::encode::normalizer::rewritten::{RAW_SPACE, Rewritten, Traced};
use crate::encode::pretokenizer::Splitter;
use crate::encode::sink::Sink;
use crate::error::VocabularyError;
use crate::lookup::key::MAX_LEN;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::vocabulary::spelling::{ESCAPED_SPACE, byte_text};
use crate::vocabulary::{Definition, Vocabulary};
use crate::work::threads::join;

/// The tables of a vocabulary whose symbols start as characters.
#[derive(Debug)]
pub(super) struct CharacterTables {
    pub ranks: MergeRanks,
    /// The symbol of each ASCII character.
    ascii: [Symbol; 128],
    /// Bytes are spelled `<0xXX>`.
    tokens: SymbolTokens,
    /// The token of [`RAW_SPACE`]: that of a space, or else of its byte.
    raw_space: Option<TokenId>,
    segmenter: Segmenter,
    /// Whether a space is spelled `▁`.
    escape_spaces: bool,
    /// Whether a run of newlines that is a token skips the merges.
    whole_newlines: bool,
}

heap_bytes!(CharacterTables: ranks, segmenter, tokens);

impl CharacterTables {
    /// Builds all tables. O(total length of the texts and the rules).
    ///
    /// # Errors
    /// As [`MergeRanks::new`].
    pub(super) fn new(
        vocabulary: &Vocabulary,
        definition: &Definition<'_>,
        whole_newlines: bool,
    ) -> Result<Self, VocabularyError> {
        let escape_spaces = vocabulary.settings().escape_whitespaces;
        let read_rules = || MergeRanks::new(vocabulary, definition.merges);
        let (ranks, mut segmenter) = join(read_rules, || {
            let mut segmenter = SegmenterBuilder::new(escape_spaces);
            vocabulary.keys().iter().for_each(|text| segmenter.add_characters(text));
            segmenter
        });
        let (ranks, _) = ranks?;
        ranks.others().for_each(|(text, _)| segmenter.add_characters(text));
        let ascii = |byte: usize| match byte as u8 {
            b' ' if escape_spaces => ranks.symbol(vocabulary, ESCAPED_SPACE),
            byte => ranks.symbol(vocabulary, &[byte]),
        };
        let byte_token = |byte: u8| vocabulary.id(&byte_text(byte));
        Ok(Self {
            ascii: std::array::from_fn(ascii),
            tokens: SymbolTokens::of_bytes(vocabulary, escape_spaces, byte_token),
            raw_space: vocabulary.id(b" ").or_else(|| byte_token(b' ')),
            segmenter: segmenter.finish(),
            escape_spaces,
            whole_newlines,
            ranks,
        })
    }

    /// The text in canonical UTF-8. If spaces are escaped, one in an overlong form becomes [`RAW_SPACE`], because llama.cpp
    /// escapes spaces before it decodes the text.
    pub(super) fn canonical<'t>(&self, text: &'t [u8], start: usize, is_utf8: bool, spans: bool) -> Rewritten<'t> {
        Rewritten::canonical_except(text, start, is_utf8, spans, |code_point, bytes| {
            (self.escape_spaces && code_point == u32::from(b' ') && bytes.len() > 1).then_some(RAW_SPACE)
        })
    }

    /// Pushes the tokens of words that lie end to end in a text from [`CharacterTables::canonical`].
    pub(super) fn encode<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        splitter: &Splitter,
        (text, ends): (&Rewritten<'_>, &[usize]),
        ModelScratch { cache, queue, merger, sampler, bpe, .. }: &mut ModelScratch,
        sink: &mut S,
    ) {
        let learned = &mut bpe.learned;
        let bytes = &text.text[..];
        let sink = &mut Traced { sink, text };
        let mut pass = TextMerging { characters: self, vocabulary, merger, sampler };
        if S::SPANS {
            return splitter.split_words(bytes, ends, learned, |start, end| {
                sink.begin_word();
                if pass.sampler.is_some() {
                    pass.encode(&bytes[start..end], start, sink);
                } else {
                    self.split_piece(bytes, start..end, |from, to| pass.encode(&bytes[from..to], from, sink));
                }
            });
        }
        let mut encode = |segment: &[u8], ids: &mut Vec<TokenId>| pass.encode(segment, 0, ids);
        queue.start(0);
        splitter.split_words(bytes, ends, learned, |start, end| {
            self.split_piece(bytes, start..end, |_, to| {
                if queue.push(to) {
                    queue.encode_queued(cache, bytes, &mut encode, sink);
                }
            });
        });
        queue.encode_queued(cache, bytes, &mut encode, sink);
    }

    /// Calls `segment` with the start and end of every segment of a piece.
    #[inline(always)]
    fn split_piece(&self, text: &[u8], piece: Range<usize>, mut segment: impl FnMut(usize, usize)) {
        if piece.len() <= MAX_LEN || self.are_whole_newlines(&text[piece.clone()]) {
            segment(piece.start, piece.end)
        } else {
            self.segmenter.split(text, piece, segment)
        }
    }

    /// Whether a piece or segment is one of Gemma 4's runs of newlines; no other piece has a newline.
    fn are_whole_newlines(&self, piece: &[u8]) -> bool {
        self.whole_newlines && piece.first() == Some(&b'\n')
    }

    /// The least number of bytes that each token stands for.
    pub(super) fn lengths(&self, vocabulary: &Vocabulary) -> Lengths {
        let mut lengths = if self.escape_spaces {
            Lengths::of_escaped(vocabulary)
        } else {
            Lengths::new(vocabulary.texts().iter().map(|text| Some(text.len())))
        };
        self.tokens.spelled.iter().flatten().for_each(|&id| lengths.set(id, Some(1)));
        let is_spelled = |text: &[u8]| memmem::find(text, ESCAPED_SPACE).is_some();
        let space = self.ascii[usize::from(b' ')];
        if self.escape_spaces && (!self.ranks.is_token(space) || self.ranks.others().any(|(text, _)| is_spelled(text)))
        {
            // A space may be spelled as three bytes.
            self.tokens.spelled[usize::from(b' ')].into_iter().for_each(|id| lengths.set(id, None));
        }
        lengths
    }

    /// The last place in `text[range]` that no merge crosses.
    pub(super) fn last_cut(&self, text: &[u8], range: Range<usize>) -> Option<usize> {
        self.segmenter.last_cut(text, range, |_| true)
    }

    /// Pushes the token of a merged symbol, or else the tokens of its bytes.
    #[inline]
    fn push_symbol<S: Sink>(&self, span: SymbolSpan, segment: &[u8], start: usize, sink: &mut S) {
        if span.symbol == NO_SYMBOL && &segment[span.range()] == RAW_SPACE {
            let span = start + span.start as usize..start + span.end as usize;
            return self.raw_space.into_iter().for_each(|id| sink.push(id, span.clone()));
        }
        self.tokens.push(span, segment, start, sink);
    }
}

/// The merging of one text.
struct TextMerging<'a> {
    characters: &'a CharacterTables,
    vocabulary: &'a Vocabulary,
    merger: &'a mut Merger,
    sampler: &'a mut Option<Sampler>,
}

impl TextMerging<'_> {
    /// Encodes a segment, which starts at byte `start` of the text.
    fn encode<S: Sink>(&mut self, segment: &[u8], start: usize, sink: &mut S) {
        let Self { characters, vocabulary, .. } = *self;
        if characters.are_whole_newlines(segment)
            && let Some(id) = vocabulary.id(segment)
        {
            return sink.push(id, start..start + segment.len());
        }
        let Merger { merging, memo, .. } = &mut *self.merger;
        let ranks = &characters.ranks;
        let char = |at: usize| match segment[at] {
            byte @ 0..0x80 => (characters.ascii[usize::from(byte)], 1),
            0xC0 => (NO_SYMBOL, RAW_SPACE.len()),
            lead => {
                let len = utf8::sequence_len(lead).min(segment.len() - at);
                (ranks.symbol(vocabulary, &segment[at..at + len]), len)
            }
        };
        if self.sampler.is_none()
            && let Some(merged) = runs::merge_piece(segment, char, |left, right| ranks.get(left, right))
        {
            return merged.for_each(|span| characters.push_symbol(span, segment, start, sink));
        }

        merging.fill(segment, char);
        let merge = |left: &SymbolSpan, right: &SymbolSpan| {
            memo.get(left.symbol, right.symbol, || ranks.get(left.symbol, right.symbol))
        };
        let symbols = merging.run(merge, self.sampler.as_mut().map(|sampler| sampler.decide(Decision::Delay)));
        symbols.iter().for_each(|&span| characters.push_symbol(span, segment, start, sink));
    }
}
