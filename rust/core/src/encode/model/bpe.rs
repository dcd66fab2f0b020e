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
//! (a `whitespace` pre-tokenizer without the `whitespace` model), on which llama.cpp aborts, merges like any other.

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

use super::cache::WordCache;
use super::cache::queue::WordQueue;
use super::lengths::Lengths;
use super::merging::Merging;
use super::merging::pair_memo::PairMemo;
use super::{Fragment, Model, ModelScratch};
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
    /// Built by the first text that goes on.
    settled_pieces: OnceLock<SettledPieces>,
}

/// What symbols start as.
#[derive(Debug)]
enum Symbols {
    Bytes(Box<ByteTables>),
    Characters(Box<CharacterTables>),
}

/// Scratch space of [`Bpe`].
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    learned: Learned,
    /// Pieces, or segments of pieces, on their way through the cache.
    queue: WordQueue,
    merger: Merger,
    new_pieces: NewPieces,
    /// The ids of a segment on their way into the cache.
    segment_ids: Vec<TokenId>,
}

impl ModelScratch for Scratch {
    fn cache(&mut self) -> Option<&mut WordCache> {
        Some(&mut self.queue.cache)
    }
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
            true => Symbols::Bytes(Box::new(ByteTables::new(vocabulary, definition)?)),
            false => Symbols::Characters(Box::new(CharacterTables::new(vocabulary, definition, pre.is_gemma4())?)),
        };
        Ok(Self { splitter: Splitter::new(family), symbols, family, settled_pieces: OnceLock::new() })
    }

    fn encode<S: Sink>(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>, scratch: &mut Scratch, sink: &mut S) {
        let text = Rewritten::canonical(fragment.text, fragment.start, fragment.is_utf8, S::SPANS);
        self.encode_canonical(vocabulary, &text, scratch, sink);
    }

    fn lengths(&self, vocabulary: &Vocabulary) -> Option<Lengths> {
        Some(match &self.symbols {
            Symbols::Bytes(_) => Lengths::of_byte_level(vocabulary),
            Symbols::Characters(characters) => characters.lengths(vocabulary),
        })
    }

    /// The last certain boundary of a piece; in a line, which is a piece of its own for some vocabularies, the last
    /// place that no merge crosses.
    fn settled(&self, _: &Vocabulary, text: &[u8]) -> usize {
        let text = Rewritten::canonical(&text[..complete_len(text)], 0, false, true);
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

    fn heap_bytes(&self) -> usize {
        let settled = self.settled_pieces.get().map_or(0, SettledPieces::heap_bytes);
        let symbols = match &self.symbols {
            Symbols::Bytes(tables) => size_of::<ByteTables>() + tables.heap_bytes(),
            Symbols::Characters(characters) => size_of::<CharacterTables>() + characters.heap_bytes(),
        };
        self.splitter.heap_bytes() + symbols + settled
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
            Symbols::Bytes(tables) => pieces::encode(tables, &self.splitter, text, scratch, sink),
            Symbols::Characters(characters) => {
                characters.encode(vocabulary, &self.splitter, text, scratch, sink);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use crate::encode::pretokenizer::{Learned, Splitter};
    use crate::vocabulary::spelling::byte_level;
    use crate::vocabulary::strings::StringIndex;
    use crate::{Definition, EncodeOptions, Scratch, Spans, Text, TokenId, Tokenizer};

    const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false, continues: false };

    /// Texts in the order of their ids, and merge rules in the order of their ranks.
    struct Rules {
        tokens: Vec<Vec<u8>>,
        merges: Vec<(Vec<u8>, Vec<u8>)>,
    }

    impl Rules {
        fn tokenizer(&self, model: &str, pre: &str) -> Tokenizer {
            let merges: Vec<Vec<u8>> =
                self.merges.iter().map(|(left, right)| [left, &b" "[..], right].concat()).collect();
            let (tokens, token_index) = StringIndex::concatenate(&self.tokens).expect("few tokens");
            let (merges, merge_index) = StringIndex::concatenate(&merges).expect("few rules");
            let definition = Definition {
                model,
                pre: Some(pre),
                tokens: Some(token_index.view(&tokens)),
                merges: Some(merge_index.view(&merges)),
                ..Definition::default()
            };
            Tokenizer::new(&definition).expect("a vocabulary")
        }

        fn id(&self, text: &[u8]) -> Option<TokenId> {
            self.tokens.iter().zip(0..).find_map(|(token, id)| (token == text).then_some(id))
        }

        /// Looks at all pairs before every merge: the lowest rank, then the leftmost.
        fn merge(&self, mut symbols: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
            let mut ranks: HashMap<(&[u8], &[u8]), usize> = HashMap::new();
            for ((left, right), rank) in self.merges.iter().zip(0..) {
                ranks.entry((left, right)).or_insert(rank);
            }
            loop {
                let ranked = symbols.windows(2).zip(0..).filter_map(|(pair, at)| {
                    let rank = ranks.get(&(&pair[0][..], &pair[1][..]))?;
                    Some((rank, at))
                });
                let Some((_, at)) = ranked.min() else { return symbols };
                let right = symbols.remove(at + 1);
                symbols[at].extend(right);
            }
        }

        /// Pieces over bytes, where `is_whole` lets pieces that are tokens skip the merges.
        fn encode_bytes(&self, piece: &[u8], is_whole: bool) -> Vec<TokenId> {
            let symbols: Vec<Vec<u8>> = piece.iter().map(|&byte| spelled(&[byte])).collect();
            if let Some(id) = self.id(&symbols.concat()).filter(|_| is_whole) {
                return vec![id];
            }
            let ids = |symbol: Vec<u8>| match self.id(&symbol) {
                Some(id) => vec![id],
                None => symbol.iter().filter_map(|&byte| self.id(&[byte])).collect(),
            };
            self.merge(symbols).into_iter().flat_map(ids).collect()
        }

        /// Pieces over characters, as Gemma 4 has them.
        fn encode_characters(&self, piece: &str) -> Vec<TokenId> {
            if piece.chars().all(|char| char == '\n')
                && let Some(id) = self.id(piece.as_bytes())
            {
                return vec![id];
            }
            let symbols = piece.replace(' ', "▁").chars().map(|char| char.to_string().into_bytes()).collect();
            let ids = |symbol: Vec<u8>| match self.id(&symbol) {
                Some(id) => vec![id],
                None => symbol.iter().filter_map(|byte| self.id(format!("<0x{byte:02X}>").as_bytes())).collect(),
            };
            self.merge(symbols).into_iter().flat_map(ids).collect()
        }
    }

    fn spelled(bytes: &[u8]) -> Vec<u8> {
        let spell = |&byte: &u8| {
            let (text, len) = byte_level::spell(byte);
            text[..len].to_vec()
        };
        bytes.iter().flat_map(spell).collect()
    }

    /// Rules between random pairs of texts, of which most make a token; `text` changes a text as the file has it.
    fn rules(texts: Vec<Vec<u8>>, picks: &[(usize, usize)], has: &[bool], text: impl Fn(&[u8]) -> Vec<u8>) -> Rules {
        let mut known = texts;
        let mut merges = Vec::new();
        for &(left, right) in picks {
            let (left, right) = (known[left % known.len()].clone(), known[right % known.len()].clone());
            let both = [&left[..], &right].concat();
            if both.len() <= 24 {
                merges.push((text(&left), text(&right)));
                if !known.contains(&both) {
                    known.push(both);
                }
            }
        }
        let tokens = known.iter().zip(has.iter().cycle()).filter(|(_, has)| **has).map(|(known, _)| text(known));
        Rules { tokens: [b"<unk>".to_vec()].into_iter().chain(tokens).collect(), merges }
    }

    /// Compares with the naive algorithm, with spans, without, and with a warm cache.
    fn check(mut tokenizer: Tokenizer, texts: &[String], naive: impl Fn(&str) -> Vec<TokenId>) {
        let splitter = Splitter::new(tokenizer.vocabulary().pre().expect("a pre-tokenizer").patterns());
        let (mut scratch, mut all) = (Scratch::default(), Vec::new());
        for text in texts.iter().chain(texts) {
            let mut expected = Vec::new();
            splitter.split(text.as_bytes(), &mut Learned::default(), |start, end| {
                expected.extend(naive(&text[start..end]))
            });
            let (mut ids, mut spans): (Vec<TokenId>, _) = (Vec::new(), Spans::default());
            tokenizer.encode_into(Text::Str(text), PLAIN, &mut scratch, &mut ids).expect("ids");
            tokenizer.encode_into(Text::Str(text), PLAIN, &mut scratch, &mut spans).expect("spans");
            assert_eq!((&ids, &spans.ids), (&expected, &expected), "{text:?}");
            all.push((text, spans.spans));
        }
        tokenizer.forget_lengths();
        for (text, spans) in all {
            let traced = tokenizer.encode_with_spans(text.as_str(), PLAIN).expect("spans");
            assert_eq!(spans, traced.spans, "{text:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn ids_over_bytes_are_those_of_a_search_before_each_merge(
            picks in prop::collection::vec(any::<(usize, usize)>(), 0..40),
            has in prop::collection::vec(prop::bool::weighted(0.8), 1..30),
            texts in prop::collection::vec("[ab]{1,20}( [ab]{1,20}){0,3}|[é中]{1,30}|[ab é中\u{301}]{0,40}|(ab){0,60}|a{0,200}", 1..6),
        ) {
            let bytes = "ab é中\u{301}".bytes().map(|byte| vec![byte]).collect();
            let rules = rules(bytes, &picks, &has, spelled);
            check(rules.tokenizer("gpt2", "gpt-2"), &texts, |piece| rules.encode_bytes(piece.as_bytes(), false));
            check(rules.tokenizer("gpt2", "llama-bpe"), &texts, |piece| rules.encode_bytes(piece.as_bytes(), true));
        }

        #[test]
        fn ids_over_characters_are_those_of_a_search_before_each_merge(
            picks in prop::collection::vec(any::<(usize, usize)>(), 0..40),
            has in prop::collection::vec(prop::bool::weighted(0.8), 1..30),
            texts in prop::collection::vec("[ab é中]{0,60}|[ab\n]{0,40}|\n{0,100}| {0,200}|(ab){0,60}|[▁a ]{0,30}", 1..6),
        ) {
            let chars = ["a", "b", "▁", "é", "中", "\n", "<0xC3>", "<0x61>"].map(|char| char.as_bytes().to_vec());
            let rules = rules(chars.to_vec(), &picks, &has, <[u8]>::to_vec);
            check(rules.tokenizer("gemma4", "gemma4"), &texts, |piece| rules.encode_characters(piece));
        }
    }
}
