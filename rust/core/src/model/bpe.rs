//! Byte-pair encoding: pieces of text whose symbols merge pair by pair, lowest rank first, leftmost first.
//!
//! Source: Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016); llama.cpp
//! `src/llama-vocab.cpp`, `llm_tokenizer_bpe_session`.
//! Complexity: O(n log n) for a piece of n bytes, O(1) for a short one that was met before.
//!
//! Deviations: (1) code points beyond U+10FFFF, on which llama.cpp aborts, become U+FFFD; (2) a piece with spaces in it
//! (a `whitespace` pre-tokenizer without the `whitespace` model), on which llama.cpp aborts, merges like any other.

pub(super) mod hybrid_dna;
mod new_words;
pub(super) mod whitespace;
mod whole_chars;
mod whole_tokens;

use std::ops::Range;
use std::thread;

use super::adjacency::{Junctions, Pairs};
use super::cache::queue::{Batch, Known, Word, WordQueue};
use super::cache::segments::Parts;
use super::cache::words::WordCache;
use super::merging::Merging;
use super::merging::ranks::{Memo, Merges};
use super::merging::runs::{self, Run};
use super::merging::sure_pairs::{BytePairs, Edges};
use super::merging::symbol::{NO_SYMBOL, Symbol};
use super::{Fragment, Model};
use crate::error::VocabularyError;
use crate::lookup::key::Key;
use crate::normalizer::rewritten::{Rewritten, Traced};
use crate::pretokenizer::Splitter;
use crate::sink::{NULL_TOKEN, Sink, TokenId};
use crate::unicode::utf8;
use crate::vocabulary::spelling::{ESCAPED_SPACE, byte_level, byte_text};
use crate::vocabulary::{Definition, Vocabulary};
use new_words::NewWords;
use whole_chars::{Uses, WholeChars};
use whole_tokens::WholeWords;

/// From so many bytes on a piece may be a run that is worth counting.
const SHORTEST_RUN: usize = 16;

/// Byte-pair encoding with one vocabulary.
#[derive(Debug)]
pub(crate) struct Bpe {
    splitter: Splitter,
    merges: Merges,
    /// Whether symbols begin as bytes; otherwise as characters.
    byte_level: bool,
    escape_spaces: bool,
    /// The symbol of each byte; of each ASCII character where symbols begin as characters.
    byte_symbols: [Symbol; 256],
    /// What two bytes merge to, where symbols begin as bytes.
    byte_pairs: Option<BytePairs>,
    /// What a byte of a spelled text that is no token gives.
    byte_tokens: [TokenId; 256],
    /// Tokens by the bytes they spell, where a piece that is a token skips the merges.
    whole: Option<WholeWords>,
    /// Gemma 4: a run of newlines that is a token is that token.
    whole_newlines: bool,
    /// Where pieces can be cut.
    junctions: Junctions,
    /// Characters that need not begin as bytes.
    whole_chars: Option<WholeChars>,
}

/// What one call needs and the next can reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    queue: WordQueue,
    pieces: Pieces,
}

/// What encoding a piece needs.
#[derive(Debug, Default)]
struct Pieces {
    merger: Merger,
    cache: WordCache,
    new_words: NewWords,
    /// Parts of plain text.
    parts: Parts,
    /// The ids of a piece, and of a part of one, on their way into the cache.
    ids: Vec<TokenId>,
    part: Vec<TokenId>,
}

/// What merging needs.
#[derive(Debug, Default)]
struct Merger {
    merging: Merging,
    memo: Memo,
}

impl Model for Bpe {
    type Scratch = Scratch;

    fn new(vocabulary: &Vocabulary, definition: &Definition<'_>) -> Result<Self, VocabularyError> {
        let Some(pre) = vocabulary.pre() else { return Err(VocabularyError::MissingMerges) };
        let family = pre.patterns();
        let (byte_level, settings) = (family.byte_encode, vocabulary.settings());
        let escape_spaces = settings.escape_whitespaces;
        let symbols = Symbols { byte_level, escape_spaces };
        // What the merges do not need is made on another thread meanwhile.
        let read = || TokenTables::read(vocabulary, symbols, settings.ignore_merges);
        let (merges, TokenTables { whole, mut pairs, mut uses, mut edges }) = thread::scope(|scope| {
            let second = thread::Builder::new().spawn_scoped(scope, read);
            let merges = Merges::new(vocabulary, definition.merges);
            (merges, second.map_or_else(|_| read(), |second| second.join().unwrap_or_else(|_| read())))
        });
        let (merges, rows) = merges?;
        let mut spelled = Vec::new();
        for (text, symbol) in merges.others() {
            symbols.add(text, symbol, &mut spelled, &mut pairs, &mut uses);
            edges.resize(edges.len().max(symbol as usize + 1), Edges::default());
            edges[symbol as usize] = Edges::of(&spelled);
        }
        let junctions = pairs.finish();
        let byte_symbol = |byte: usize| match byte as u8 {
            byte if byte_level => {
                let (text, len) = byte_level::spell(byte);
                merges.symbol(vocabulary, &text[..len])
            }
            b' ' if escape_spaces => merges.symbol(vocabulary, ESCAPED_SPACE),
            byte => merges.symbol(vocabulary, &[byte]),
        };
        let byte_token = |byte: usize| {
            let byte = byte as u8;
            let id = if byte_level { vocabulary.id(&[byte]) } else { vocabulary.id(&byte_text(byte)) };
            id.unwrap_or(NULL_TOKEN)
        };
        let byte_symbols: [Symbol; 256] = std::array::from_fn(byte_symbol);
        let byte_pairs = byte_level.then(|| BytePairs::new(&rows, &byte_symbols, edges));
        let whole_chars = byte_pairs.as_ref().map(|pairs| WholeChars::new(&merges, &byte_symbols, pairs, &uses));
        Ok(Self {
            splitter: Splitter::new(family),
            byte_level,
            byte_pairs,
            escape_spaces,
            byte_symbols,
            byte_tokens: std::array::from_fn(byte_token),
            whole,
            whole_newlines: pre.is_gemma4(),
            junctions,
            whole_chars,
            merges,
        })
    }

    fn encode<S: Sink>(&self, vocabulary: &Vocabulary, fragment: Fragment<'_>, scratch: &mut Scratch, sink: &mut S) {
        let text = Rewritten::canonical(fragment.text, fragment.start, fragment.is_utf8, S::SPANS);
        self.encode_canonical(vocabulary, &text, scratch, sink);
    }

    fn heap_bytes(&self) -> usize {
        let whole = self.whole.as_ref().map_or(0, WholeWords::heap_bytes);
        self.splitter.heap_bytes()
            + self.merges.heap_bytes()
            + self.junctions.heap_bytes()
            + self.byte_pairs.as_ref().map_or(0, BytePairs::heap_bytes)
            + whole
            + self.whole_chars.as_ref().map_or(0, WholeChars::heap_bytes)
    }
}

impl Bpe {
    /// Encodes a text of canonical UTF-8.
    pub(crate) fn encode_canonical<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &Rewritten<'_>,
        scratch: &mut Scratch,
        sink: &mut S,
    ) {
        let bytes = &text.text[..];
        let sink = &mut Traced { sink, text };
        let Scratch { queue, pieces } = scratch;
        // Pieces of plain text are whole lines, which do not come again; their parts do.
        if S::SPANS || !self.byte_level {
            return self.splitter.split(bytes, |begin, end| {
                let word = Word { begin, end, key: Key::new(bytes, begin, end) };
                self.new_piece(vocabulary, bytes, &word, pieces, sink);
            });
        }
        queue.start(0);
        self.splitter.split(bytes, |_, end| {
            if queue.push(end) {
                self.drain(vocabulary, bytes, queue, pieces, sink);
            }
        });
        self.drain(vocabulary, bytes, queue, pieces, sink);
    }

    /// Encodes the pieces that wait.
    #[inline(never)]
    fn drain<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        queue: &mut WordQueue,
        pieces: &mut Pieces,
        sink: &mut S,
    ) {
        queue.drain(text, &mut KnownPieces { bpe: self, vocabulary, text, pieces }, sink);
    }

    /// Encodes a piece, and keeps it in the cache.
    #[inline(never)]
    fn piece<S: Sink>(&self, vocabulary: &Vocabulary, text: &[u8], word: &Word, scratch: &mut Pieces, sink: &mut S) {
        let piece = &text[word.begin..word.end];
        if let Some(ids) = scratch.cache.get_word(word.key, piece) {
            return sink.push_all(ids);
        }
        let mut ids = std::mem::take(&mut scratch.ids);
        ids.clear();
        self.new_piece(vocabulary, text, word, scratch, &mut ids);
        sink.push_all(&ids);
        scratch.cache.insert_word(word.key, piece, &ids);
        scratch.ids = ids;
    }

    /// Encodes a piece that is not in the cache: whole if it is a token that skips the merges, and otherwise between
    /// the places that no merge can cross.
    fn new_piece<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        word: &Word,
        scratch: &mut Pieces,
        sink: &mut S,
    ) {
        let Word { begin, end, key } = *word;
        if let Some(id) = self.whole_piece(vocabulary, &text[begin..end], key) {
            return sink.push(id, begin..end);
        }
        if end - begin >= SHORTEST_RUN && self.run(&text[begin..end], begin, sink) {
            return;
        }
        if self.byte_level && is_simple(&text[begin..end]) {
            return self.merge(vocabulary, text, begin, end, &mut scratch.merger, sink);
        }
        if !self.byte_level && !S::SPANS {
            let Pieces { parts, merger, .. } = scratch;
            return parts.encode(&self.junctions, text, begin..end, self.escape_spaces, sink, |part, ids| {
                self.merge(vocabulary, part, 0, part.len(), merger, ids);
            });
        }
        self.junctions.split(text, begin, end, self.escape_spaces, |from, to| {
            if (from, to) == (begin, end) {
                self.merge(vocabulary, text, from, to, &mut scratch.merger, sink);
            } else {
                self.part(vocabulary, text, from, to, scratch, sink);
            }
        });
    }

    /// Encodes a piece that is one character over and over, with or without a byte of ASCII before, if counting is enough;
    /// tells whether it is so.
    fn run<S: Sink>(&self, piece: &[u8], begin: usize, sink: &mut S) -> bool {
        let Some(merged) = self.merge_run(piece) else { return false };
        let mut from = 0;
        for Run { symbol, count, width } in merged {
            for _ in 0..count {
                self.push_symbol(symbol, piece, from..from + width, begin, sink);
                from += width;
            }
        }
        true
    }

    /// The symbols of a piece of [`SHORTEST_RUN`] bytes or more, if it is such a run.
    fn merge_run(&self, piece: &[u8]) -> Option<Vec<Run>> {
        let char = |at: usize| match piece[at] {
            byte @ 0..0x80 => (Some(self.byte_symbols[usize::from(byte)]), 1),
            _ => self.whole_char(piece, at),
        };
        let is_run = |at: usize, len: usize| piece[at + len..] == piece[at..piece.len() - len];
        let first = usize::from(piece[0] < 0x80 && piece[0] != piece[1]);
        let (symbol, width) = char(first);
        let count = (piece.len() - first) / width;
        if count * width + first != piece.len() || !is_run(first, width) {
            return None;
        }
        let single = (first > 0).then_some(Run { symbol: char(0).0?, count: 1, width: 1 });
        let runs: Vec<Run> = single.into_iter().chain([Run { symbol: symbol?, count, width }]).collect();
        if runs.iter().any(|run| run.symbol == NO_SYMBOL) {
            return None;
        }
        runs::merge(runs, |left, right| self.merges.get(left, right))
    }

    /// Encodes a part of a piece that merges by itself.
    fn part<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        begin: usize,
        end: usize,
        scratch: &mut Pieces,
        sink: &mut S,
    ) {
        if let Some(id) = self.single_char(&text[begin..end]) {
            return sink.push(id, begin..end);
        }
        let Some(key) = Key::new(text, begin, end).filter(|_| !S::SPANS).map(|key| key.marked(true)) else {
            return self.merge(vocabulary, text, begin, end, &mut scratch.merger, sink);
        };
        if let Some(ids) = scratch.cache.get(key) {
            return sink.push_all(ids);
        }
        let Pieces { merger, cache, part, .. } = scratch;
        part.clear();
        self.merge(vocabulary, text, begin, end, merger, part);
        sink.push_all(part);
        cache.insert(key, part);
    }

    /// The token of a part that is a single character and may begin as a token.
    #[inline]
    fn single_char(&self, part: &[u8]) -> Option<TokenId> {
        let chars = self.whole_chars.as_ref().filter(|_| part.len() <= 3)?;
        let (code_point, len) = utf8::decode_lossy(part, 0);
        let symbol = chars.get(code_point);
        (len == part.len() && self.merges.is_token(symbol)).then_some(symbol as TokenId)
    }

    /// The token that a piece is without merging.
    #[inline]
    fn whole_piece(&self, vocabulary: &Vocabulary, piece: &[u8], key: Option<Key>) -> Option<TokenId> {
        if let Some(whole) = &self.whole {
            return whole.get(vocabulary, piece, key);
        }
        let is_newlines = self.whole_newlines && piece.iter().all(|&byte| byte == b'\n');
        if is_newlines { vocabulary.id(piece) } else { None }
    }

    fn merge<S: Sink>(
        &self,
        vocabulary: &Vocabulary,
        text: &[u8],
        begin: usize,
        end: usize,
        merger: &mut Merger,
        sink: &mut S,
    ) {
        let piece = &text[begin..end];
        let Merger { merging, memo } = merger;
        merging.clear();
        self.symbols(vocabulary, piece, |symbol, range, _| merging.push(symbol, range.start, range.end));
        let parts = merging.run(|left, right| {
            if let Some(pairs) = &self.byte_pairs
                && right.end - left.start == 2
            {
                return pairs.get(piece[left.start as usize], piece[right.start as usize]);
            }
            memo.get(&self.merges, left.symbol, right.symbol)
        });
        for part in parts {
            self.push_symbol(part.symbol, piece, part.start as usize..part.end as usize, begin, sink);
        }
    }

    /// Emits a symbol that `range` of a piece has become.
    #[inline]
    fn push_symbol<S: Sink>(&self, symbol: Symbol, piece: &[u8], range: Range<usize>, begin: usize, sink: &mut S) {
        if self.merges.is_token(symbol) {
            sink.push(symbol as TokenId, begin + range.start..begin + range.end);
        } else {
            range.for_each(|at| self.spell_out(piece[at], begin + at, sink));
        }
    }

    /// Hands on the symbols that a piece begins as, each with its byte range, and with what the one before and it are
    /// together, if that is known.
    #[inline(always)]
    fn symbols(
        &self,
        vocabulary: &Vocabulary,
        piece: &[u8],
        mut push: impl FnMut(Symbol, Range<usize>, Option<(u32, Symbol)>),
    ) {
        if let Some(pairs) = &self.byte_pairs {
            return pairs.symbols(piece, &self.byte_symbols, |at| self.whole_char(piece, at), push);
        }
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            let end = piece.len().min(at + utf8::sequence_len(byte));
            let symbol = match byte {
                0..0x80 => self.byte_symbols[usize::from(byte)],
                _ => self.merges.symbol(vocabulary, &piece[at..end]),
            };
            push(symbol, at..end, None);
            at = end;
        }
    }

    /// The symbol that the character at byte `at` may begin as, if it need not begin as bytes, and the character's length.
    #[inline]
    fn whole_char(&self, piece: &[u8], at: usize) -> (Option<Symbol>, usize) {
        let (code_point, len) = utf8::decode_lossy(piece, at);
        let is_crossed = |at: usize| at > 0 && at < piece.len() && self.junctions.is_crossed(piece[at - 1], piece[at]);
        let whole = self.whole_chars.as_ref().filter(|_| !is_crossed(at) && !is_crossed(at + len));
        (whole.map(|chars| chars.get(code_point)).filter(|&symbol| symbol != NO_SYMBOL), len)
    }

    /// Emits what one byte of a text that is no token gives: its spelling byte by byte, where those are tokens.
    fn spell_out<S: Sink>(&self, byte: u8, at: usize, sink: &mut S) {
        let (spelled, len) = if self.byte_level { byte_level::spell(byte) } else { ([byte, 0], 1) };
        let is_escaped = byte == b' ' && self.escape_spaces && !self.byte_level;
        let spelled = if is_escaped { ESCAPED_SPACE } else { &spelled[..len] };
        for &byte in spelled {
            let id = self.byte_tokens[usize::from(byte)];
            if id != NULL_TOKEN {
                sink.push(id, at..at + 1);
            }
        }
    }
}

/// The pieces of a text, and what they become.
struct KnownPieces<'a> {
    bpe: &'a Bpe,
    vocabulary: &'a Vocabulary,
    text: &'a [u8],
    pieces: &'a mut Pieces,
}

impl Known for KnownPieces<'_> {
    #[inline(always)]
    fn cache(&self) -> &WordCache {
        &self.pieces.cache
    }

    fn learn(&mut self, words: Batch<'_>) {
        let Pieces { new_words, cache, .. } = self.pieces;
        new_words.learn(self.bpe, self.vocabulary, self.text, words, cache);
    }

    fn encode<S: Sink>(&mut self, piece: &Word, sink: &mut S) {
        self.bpe.piece(self.vocabulary, self.text, piece, self.pieces, sink);
    }
}

/// What one pass over the texts of the tokens gives.
struct TokenTables {
    whole: Option<WholeWords>,
    pairs: Pairs,
    uses: Uses,
    /// By token, where symbols begin as bytes.
    edges: Vec<Edges>,
}

impl TokenTables {
    fn read(vocabulary: &Vocabulary, symbols: Symbols, ignore_merges: bool) -> Self {
        let mut whole = ignore_merges.then(|| WholeWords::with_capacity(vocabulary.len(), symbols.byte_level));
        let (mut pairs, mut uses, mut spelled) = (Pairs::default(), Uses::default(), Vec::new());
        let mut edges = Vec::with_capacity(if symbols.byte_level { vocabulary.len() } else { 0 });
        for (text, symbol) in vocabulary.keys().iter().zip(0..) {
            symbols.add(text, symbol, &mut spelled, &mut pairs, &mut uses);
            if symbols.byte_level {
                edges.push(Edges::of(&spelled));
            }
            if let Some(whole) = &mut whole {
                whole.push(&mut spelled);
            }
        }
        Self { whole: whole.map(WholeWords::finish), pairs, uses, edges }
    }
}

/// How symbols are spelled.
#[derive(Debug, Clone, Copy)]
struct Symbols {
    byte_level: bool,
    escape_spaces: bool,
}

impl Symbols {
    /// Adds what the text of a symbol says about characters that stand side by side, and leaves the bytes that it
    /// spells.
    fn add(self, text: &[u8], symbol: Symbol, spelled: &mut Vec<u8>, pairs: &mut Pairs, uses: &mut Uses) {
        spelled.clear();
        if !self.byte_level {
            spelled.extend_from_slice(text);
            pairs.add_characters(text, self.escape_spaces);
        } else if byte_level::unspell_all(text, spelled) {
            // A text that spells no bytes is no symbol of any piece.
            pairs.add_bytes(spelled);
            uses.add(spelled, symbol);
        }
    }
}

/// Whether a piece is not worth looking for places to cut it: short, or of ASCII, whose words merge throughout.
fn is_simple(piece: &[u8]) -> bool {
    piece.len() <= 4 || piece.len() <= 32 && piece.is_ascii()
}
