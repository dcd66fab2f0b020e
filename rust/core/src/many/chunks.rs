//! Splits a text into chunks of a limited number of tokens, at paragraphs, lines, sentences and words where possible.
//!
//! The whole text is encoded once, with spans. The spans show where a chunk's budget ends, and the chunk ends at the
//! best boundary before that. Its tokens are then counted by encoding the chunk alone, because the ids of a slice are
//! not always a slice of the ids. If the count is over the budget, an earlier boundary is tried; if there is room, the
//! next one. A coarse boundary is used only if it fills half of the budget. A user-perceived character is split between
//! its code points only if it exceeds the budget by itself, and then each chunk takes as much of it as fits.
//!
//! Markdown and Python are read once, before the first chunk. Each gives a list of boundaries, and *wholes*: ranges such
//! as a fenced block that no chunk ends inside if they fit the budget. A cut inside one moves to its start.
//!
//! O(n) for a text of n bytes; each byte is encoded about three times.

pub mod boundaries;
mod markdown;
mod python;
pub mod truncate;

use std::borrow::{Borrow, Cow};
use std::cmp::Reverse;
use std::ops::Range;

use crate::encode::scratch::Scratch;
use crate::encode::sink::{Count, Spans};
use crate::encoder::Encoder;
use crate::error::EncodeError;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, Text, Tokenizer};
use crate::work::interrupt;
use crate::work::memory::{self, append, copied, extend, push};
use boundaries::Boundary;

/// How many boundaries are tried one by one before the search takes larger steps.
const TRIES: usize = 4;
/// How many times the end of a chunk moves to a later boundary.
const MAX_EXTENSIONS: usize = 16;

/// A part of a text, as a byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Where it starts.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its number of tokens when encoded alone.
    pub count: usize,
}

/// How a text is split into chunks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SplitOptions {
    /// The maximum number of tokens of a chunk, including added ones and those of the prefix.
    pub max_tokens: usize,
    /// The maximum number of tokens, not counting added ones, that a chunk repeats from the one before it.
    pub overlap: usize,
    /// Where to cut, coarsest first. Cutting between characters is always allowed as a last resort.
    pub boundaries: Vec<Boundary>,
    /// The places of each [`Boundary::Listed`], ascending, on code points.
    pub places: Vec<Vec<usize>>,
    /// What comes before each chunk when it is encoded.
    pub prefix: Vec<u8>,
}

setters!(SplitOptions: overlap(overlap: usize), boundaries(boundaries: Vec<Boundary>),
    places(places: Vec<Vec<usize>>), prefix(prefix: Vec<u8>));

impl SplitOptions {
    /// Chunks without overlap or prefix, cut between paragraphs, lines, sentences and words if possible.
    pub fn new(max_tokens: usize) -> Self {
        let boundaries = vec![Boundary::Paragraph, Boundary::Line, Boundary::Sentence, Boundary::Word];
        Self { max_tokens, overlap: 0, boundaries, places: Vec::new(), prefix: Vec::new() }
    }

    /// Reads the text for boundaries that depend on all of it, and lists their places instead. Returns the wholes.
    fn read(&mut self, text: &[u8]) -> Vec<Range<usize>> {
        if self.boundaries.contains(&Boundary::Python) {
            self.boundaries.push(Boundary::Line);
        }
        self.boundaries.sort_unstable();
        self.boundaries.dedup();
        let mut wholes = Vec::new();
        for kind in &mut self.boundaries {
            let read = match kind {
                Boundary::Markdown => markdown::read,
                Boundary::Python => python::read,
                _ => continue,
            };
            let structure = read(text);
            *kind = Boundary::Listed(self.places.len());
            push(&mut self.places, structure.boundaries);
            extend(&mut wholes, structure.wholes.into_iter());
        }
        wholes.sort_unstable_by_key(|whole| (whole.start, Reverse(whole.end)));
        wholes.dedup();
        wholes
    }

    /// The last boundary of a kind after `low` and not after `high`.
    fn last(&self, kind: Boundary, text: &str, low: usize, high: usize) -> Option<usize> {
        let Boundary::Listed(list) = kind else { return kind.last(text, low, high) };
        let places = self.places.get(list)?;
        let number = places.partition_point(|&at| at <= high);
        places[..number].last().copied().filter(|&at| at > low)
    }

    /// The first boundary of a kind after `low` and not after `high`.
    fn first(&self, kind: Boundary, text: &str, low: usize, high: usize) -> Option<usize> {
        let Boundary::Listed(list) = kind else { return kind.first(text, low, high) };
        let places = self.places.get(list)?;
        places.get(places.partition_point(|&at| at <= low)).copied().filter(|&at| at <= high)
    }

    /// The kinds of boundaries in the order in which they are tried, with how far each search goes: all kinds down to
    /// `half` of the budget, then the finest one down to `all` of it.
    fn kinds(&self, half: usize, all: usize) -> impl Iterator<Item = (Boundary, usize)> {
        let last_resorts = self.boundaries.last().copied().into_iter().chain([Boundary::Character]);
        self.boundaries.iter().map(move |&kind| (kind, half)).chain(last_resorts.map(move |kind| (kind, all)))
    }
}

impl<T: Borrow<Tokenizer>> Encoder<T> {
    /// Splits a text into chunks. Each is a slice with at most `max_tokens` tokens when encoded alone with `options`;
    /// together they cover the text. An empty text has none.
    ///
    /// # Errors
    /// [`EncodeError`]: the text cannot be encoded, the budget or the overlap is out of range, or one code point
    /// alone is over the budget.
    pub fn split(
        &mut self,
        text: &Segmentable<'_>,
        mut split: SplitOptions,
        options: EncodeOptions,
    ) -> Result<Vec<Chunk>, EncodeError> {
        self.work(|tokenizer, scratch| {
            let wholes = split.read(text.segmented.as_bytes());
            let budget = (split.max_tokens, 1);
            Measure::new(tokenizer, text, budget, &split.prefix, options, scratch)?.split(&split, wholes)
        })
    }
}

impl Measure<'_, '_> {
    /// As [`Encoder::split`].
    fn split(&mut self, split: &SplitOptions, wholes: Vec<Range<usize>>) -> Result<Vec<Chunk>, EncodeError> {
        let text = self.text;
        let room = split.max_tokens - self.num_added;
        if split.overlap >= room {
            return Err(EncodeError::Overlap { overlap: split.overlap, room });
        }
        self.keep(wholes)?;
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut start = 0;
        while start < text.bytes.len() {
            interrupt::check();
            let after = chunks.last().map_or(0, |chunk| chunk.end);
            let chunk = self.chunk(start, after, split)?;
            start = chunk.end;
            if split.overlap > 0 && chunk.end < text.bytes.len() {
                start = self.overlap_start(&chunk, split)?;
            }
            push(&mut chunks, chunk);
        }
        Ok(chunks)
    }
}

/// A text to split: the bytes to encode, and the text that Unicode's rules see.
#[derive(Debug, Clone)]
pub struct Segmentable<'a> {
    /// The bytes to encode.
    bytes: &'a [u8],
    is_utf8: bool,
    /// The same as UTF-8, of the same length; empty if there is not enough memory for it.
    segmented: Cow<'a, str>,
}

impl<'a> Segmentable<'a> {
    /// A text that is UTF-8.
    pub fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), is_utf8: true, segmented: Cow::Borrowed(text) }
    }

    /// A text of any bytes. Unicode's rules see U+FFFD for a surrogate, and U+001A for any other byte that is not UTF-8:
    /// a character by itself.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return Self::new(text);
        }
        let segmented = memory::catch(|| replace_invalid(bytes)).unwrap_or_default();
        Self { bytes, is_utf8: false, segmented: Cow::Owned(segmented) }
    }

    /// Checks that there was enough memory for the text that Unicode's rules see.
    fn check(&self) -> Result<(), EncodeError> {
        if self.segmented.len() < self.bytes.len() { Err(EncodeError::OutOfMemory) } else { Ok(()) }
    }

    fn text(&self, range: Range<usize>) -> Text<'_> {
        if self.is_utf8 { Text::Str(&self.segmented[range]) } else { Text::Bytes(&self.bytes[range]) }
    }
}

/// UTF-8 of the same length.
fn replace_invalid(bytes: &[u8]) -> String {
    let mut replaced = Vec::new();
    append(&mut replaced, bytes);
    for at in memchr::memchr_iter(0xED, bytes) {
        if let [0xA0..=0xBF, 0x80..=0xBF, ..] = bytes[at + 1..] {
            replaced[at..at + 3].copy_from_slice("\u{FFFD}".as_bytes());
        }
    }
    let mut at = 0;
    while let Err(error) = std::str::from_utf8(&replaced[at..]) {
        let start = at + error.valid_up_to();
        at = error.error_len().map_or(replaced.len(), |len| start + len);
        replaced[start..at].fill(0x1A);
    }
    String::from_utf8(replaced).unwrap_or_default()
}

/// Two texts, joined.
fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    let mut joined = copied(first);
    append(&mut joined, second);
    joined
}

/// Measures parts of a text in tokens.
struct Measure<'a, 's> {
    tokenizer: &'a Tokenizer,
    text: &'a Segmentable<'a>,
    options: EncodeOptions,
    scratch: &'s mut Scratch,
    max_tokens: usize,
    /// What comes before each part when it is counted.
    prefix: &'a [u8],
    /// How many tokens are added to every text, those of the prefix included.
    num_added: usize,
    /// What is not cut, in the order of the text: ranges that are apart and fit the budget.
    wholes: Vec<Range<usize>>,
    /// The spans of the whole text's tokens, without added ones.
    ids: Vec<TokenId>,
    spans: Vec<Range<usize>>,
}

impl<'a, 's> Measure<'a, 's> {
    /// The budget must leave room for `min_room` tokens of text.
    fn new(
        tokenizer: &'a Tokenizer,
        text: &'a Segmentable<'a>,
        (max_tokens, min_room): (usize, usize),
        prefix: &'a [u8],
        options: EncodeOptions,
        scratch: &'s mut Scratch,
    ) -> Result<Self, EncodeError> {
        text.check()?;
        let mut num_added = Count::default();
        tokenizer.encode_within(Text::Bytes(prefix), None, options, scratch, &mut num_added)?;
        let num_added = num_added.0;
        if max_tokens == 0 || max_tokens < num_added + min_room {
            return Err(EncodeError::Budget { max_tokens, num_added });
        }
        let mut spans = Spans::default();
        let plain = EncodeOptions { add_special: false, ..options };
        tokenizer.encode_within(text.text(0..text.bytes.len()), None, plain, scratch, &mut spans)?;
        let Spans { ids, spans } = spans;
        Ok(Self { tokenizer, text, options, scratch, max_tokens, prefix, num_added, wholes: Vec::new(), ids, spans })
    }

    /// Takes the ranges that fit the budget, and of those the outermost. They are sorted, outer ones first.
    fn keep(&mut self, wholes: Vec<Range<usize>>) -> Result<(), EncodeError> {
        for whole in wholes {
            interrupt::check();
            let is_apart = self.wholes.last().is_none_or(|last| last.end <= whole.start);
            // Its tokens in the whole text: only what seems to fit is encoded by itself.
            let num_tokens = self.tokens_before(whole.end) - self.tokens_before(whole.start);
            if is_apart && num_tokens <= self.max_tokens + 2 && self.count(whole.clone())? <= self.max_tokens {
                push(&mut self.wholes, whole);
            }
        }
        Ok(())
    }

    fn len(&self) -> usize {
        self.text.bytes.len()
    }

    /// The number of tokens of a part encoded alone, including added ones.
    fn count(&mut self, range: Range<usize>) -> Result<usize, EncodeError> {
        self.count_joined(self.prefix, range)
    }

    /// The number of tokens of `before` and a part joined.
    fn count_joined(&mut self, before: &[u8], range: Range<usize>) -> Result<usize, EncodeError> {
        if before.is_empty() {
            return self.count_text(self.text.text(range), self.options);
        }
        self.count_text(Text::Bytes(&joined(before, &self.text.bytes[range])), self.options)
    }

    fn count_text(&mut self, text: Text<'_>, options: EncodeOptions) -> Result<usize, EncodeError> {
        let mut count = Count::default();
        self.tokenizer.encode_within(text, None, options, self.scratch, &mut count)?;
        Ok(count.0)
    }

    /// The start of the code point that contains `at`, or the end of the text.
    fn floor(&self, at: usize) -> usize {
        utf8::floor(self.text.segmented.as_bytes(), at)
    }

    /// How many tokens of the whole text end at or before `at`.
    fn tokens_before(&self, at: usize) -> usize {
        self.spans.partition_point(|span| span.end <= at)
    }

    /// The start of the code point in which the `number`-th token of the whole text ends.
    fn token_end(&self, number: usize) -> usize {
        match number.checked_sub(1).map(|last| self.spans.get(last)) {
            Some(Some(span)) => self.floor(span.end),
            Some(None) => self.len(),
            None => 0,
        }
    }

    /// What is not cut at or around `at`, if there is such a range.
    fn whole_at(&self, at: usize) -> Option<Range<usize>> {
        let number = self.wholes.partition_point(|whole| whole.end <= at);
        self.wholes.get(number).filter(|whole| whole.start <= at).cloned()
    }

    /// `at`, or if it is inside a special token or a whole, the start of that.
    fn outside(&self, at: usize) -> usize {
        let at = self.whole_at(at).map_or(self.floor(at), |whole| whole.start);
        let number = self.tokens_before(at);
        match (self.spans.get(number), self.ids.get(number)) {
            (Some(span), Some(&id)) if span.start < at && self.is_special(id) => self.floor(span.start),
            _ => at,
        }
    }

    /// Whether a token is written in the text as a special token.
    fn is_special(&self, id: TokenId) -> bool {
        let attributes = self.tokenizer.vocabulary().attributes(id);
        attributes.is_user_defined() || self.options.parse_special && attributes.is_control()
    }

    /// The chunk that starts at `start` and ends after `after`, which is `start` or the end of the previous chunk.
    fn chunk(&mut self, start: usize, after: usize, split: &SplitOptions) -> Result<Chunk, EncodeError> {
        let room = self.max_tokens - self.num_added;
        let first = self.tokens_before(start);
        if self.spans.len() - first <= room + 1 {
            let count = self.count(start..self.len())?;
            if count <= self.max_tokens {
                return Ok(Chunk { start, end: self.len(), count });
            }
        }

        let half = self.token_end(first + room / 2).max(after);
        let mut high = self.token_end(first + room).max(after).min(self.len());
        for tries in 0.. {
            let Some((boundary, end)) = self.boundary(split, half.min(high), after, high) else { break };
            let count = self.count(start..end)?;
            if count <= self.max_tokens {
                return self.extend(Chunk { start, end, count }, boundary, split);
            }
            let step = if tries < TRIES { 1 } else { (end - after) / 4 + 1 };
            high = self.floor(end - step).max(after);
        }
        self.shortest(start, after)
    }

    /// The best boundary after `after` and not after `high`: the coarsest kind after `half`, or else the finest.
    fn boundary(&self, split: &SplitOptions, half: usize, after: usize, high: usize) -> Option<(Boundary, usize)> {
        let text = &self.text.segmented[..];
        split.kinds(half, after).find_map(|(kind, low)| {
            let at = self.outside(split.last(kind, text, low, high)?);
            (at > low).then_some((kind, at))
        })
    }

    /// Moves the end of a chunk to later boundaries of the same kind, as long as it fits.
    fn extend(&mut self, mut chunk: Chunk, kind: Boundary, split: &SplitOptions) -> Result<Chunk, EncodeError> {
        let limit = self.token_end(self.tokens_before(chunk.end) + self.max_tokens - chunk.count + 2);
        let mut tries = 0..MAX_EXTENSIONS;
        while chunk.count < self.max_tokens
            && tries.next().is_some()
            && let Some(end) = split.first(kind, &self.text.segmented, chunk.end, limit)
            && self.outside(end) == end
        {
            let count = self.count(chunk.start..end)?;
            if count > self.max_tokens {
                break;
            }
            chunk = Chunk { end, count, ..chunk };
        }
        Ok(chunk)
    }

    /// The chunk if no boundary fits: up to the next user-perceived character, or if that exceeds the budget, as many
    /// of its code points as fit.
    fn shortest(&mut self, start: usize, after: usize) -> Result<Chunk, EncodeError> {
        let room = self.max_tokens - self.num_added;
        let whole = self.whole_at(after).filter(|whole| whole.start == after).map(|whole| whole.end);
        let one = whole.unwrap_or_else(|| self.next(after));
        let mut count = 0;
        // From `after` on, nothing overlaps.
        for from in [start, after] {
            let number = self.tokens_before(from) + room;
            let limit = self.token_end(number + 2).max(one);
            let character = || Boundary::Character.first(&self.text.segmented, after, limit);
            if let Some(end) = whole.or_else(character) {
                count = self.count(from..end)?;
                if count <= self.max_tokens {
                    return Ok(Chunk { start: from, end, count });
                }
            }
            let mut end = self.token_end(number);
            for tries in 0.. {
                end = self.outside(end).max(one);
                count = self.count(from..end)?;
                if count <= self.max_tokens {
                    return Ok(Chunk { start: from, end, count });
                }
                if end == one {
                    break;
                }
                // Back by the tokens that are too many, or one code point, and further with each try.
                let number = self.tokens_before(end).saturating_sub((count - self.max_tokens) << tries);
                end = self.token_end(number).min(self.previous(end));
            }
        }
        Err(EncodeError::Character { at: after, count, max_tokens: self.max_tokens })
    }

    /// Where the next chunk starts, so that it repeats at most `overlap` tokens: at one of the boundaries, or where the
    /// chunk ends.
    fn overlap_start(&mut self, chunk: &Chunk, split: &SplitOptions) -> Result<usize, EncodeError> {
        let number = self.tokens_before(chunk.end);
        // A boundary may be exactly where the overlap is full.
        let full = self.token_end(number.saturating_sub(split.overlap));
        let low = self.floor(full.saturating_sub(1)).max(chunk.start);
        let half = self.token_end(number.saturating_sub(split.overlap / 2)).max(chunk.start);
        let text = &self.text.segmented[..];
        let plain = EncodeOptions { add_special: false, ..self.options };
        let finest = split.boundaries.last().copied().unwrap_or(Boundary::Character);
        let kinds = split.boundaries.iter().map(|&kind| (kind, half)).chain([(finest, chunk.end)]);
        for (kind, high) in kinds {
            let mut from = low;
            for _ in 0..TRIES {
                let Some(start) = split.first(kind, text, from, high).filter(|&at| at < chunk.end) else { break };
                if start > chunk.start
                    && self.outside(start) == start
                    && self.count_text(self.text.text(start..chunk.end), plain)? <= split.overlap
                {
                    return Ok(start);
                }
                from = start;
            }
        }
        Ok(chunk.end)
    }

    /// Where the code point at `at` ends, and where the one before it starts.
    fn next(&self, at: usize) -> usize {
        at + self.text.segmented[at..].chars().next().map_or(0, char::len_utf8)
    }

    fn previous(&self, at: usize) -> usize {
        self.floor(at.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;

    /// A vocabulary of characters, every one of them a token.
    fn of_characters(model: &str) -> Tokenizer {
        let texts: Vec<String> = "\n ab.1\u{301}中\u{1F1E9}\u{2581}".chars().map(String::from).collect();
        let texts = ["<unk>", "<b\nb>"].into_iter().chain(texts.iter().map(String::as_str)).collect::<Vec<_>>();
        let (data, index) = StringIndex::concatenate(&texts).expect("few tokens");
        let types: Vec<i32> = (0..texts.len()).map(|id| [2, 4].get(id).copied().unwrap_or(1)).collect();
        let tokens = Some(index.view(&data));
        let token_types = Some(&types[..]);
        Tokenizer::new(&Definition { model, tokens, token_types, ..Definition::default() }).expect("a vocabulary")
    }

    proptest! {
        #[test]
        fn an_overlap_begins_at_a_boundary_that_was_allowed_or_not_at_all(
            text in "([ab]{1,9}[ .1\n]{0,3}|1\\.1|a\u{301}{1,4}|中|\u{1F1E9}{1,5}|\n\n|<b\nb>){0,40}",
            model in prop::sample::select(vec!["llama", "rwkv", "test"]),
            max_tokens in 7..40_usize,
            overlap in 1..6_usize,
            kinds in prop::collection::vec(any::<bool>(), 5),
        ) {
            let named = Boundary::ALL[2..].iter().zip(&kinds).filter(|(_, is_chosen)| **is_chosen);
            let boundaries: Vec<Boundary> = named.map(|((_, kind), _)| *kind).collect();
            let allowed = if boundaries.is_empty() { &[Boundary::Character] } else { &boundaries[..] };
            let places: Vec<usize> = allowed.iter().flat_map(|kind| kind.between(&text, 0, text.len())).collect();
            let split = SplitOptions::new(max_tokens).overlap(overlap).boundaries(boundaries);
            let options = EncodeOptions { add_special: false, ..EncodeOptions::default() };
            let chunks = of_characters(model).encoder().split(&Segmentable::new(&text), split, options);
            let chunks = chunks.expect("a character has few tokens");
            let mut end = 0;
            for chunk in &chunks {
                prop_assert!(chunk.start == end || places.contains(&chunk.start), "{:?} of {:?}", chunk, chunks);
                prop_assert!(chunk.start <= end && chunk.end > end && chunk.count <= max_tokens);
                end = chunk.end;
            }
            prop_assert_eq!(end, text.len());
        }

        #[test]
        fn an_overlap_begins_at_a_line_if_that_leaves_half_of_it(
            text in "([ab]{0,3}\n|[ab]{0,7}){0,20}",
            max_tokens in 7..20_usize,
            overlap in 1..7_usize,
        ) {
            let boundaries = vec![Boundary::Line, Boundary::Character];
            let split = SplitOptions::new(max_tokens).overlap(overlap).boundaries(boundaries);
            let options = EncodeOptions { add_special: false, ..EncodeOptions::default() };
            let chunks = of_characters("rwkv").encoder().split(&Segmentable::new(&text), split, options);
            for pair in chunks.expect("every character is a token").windows(2) {
                let end = pair[0].end;
                let full = end.saturating_sub(overlap).max(pair[0].start + 1);
                let half = end - (overlap / 2).max(1);
                let line = (full..=half).find(|&at| text.as_bytes()[at - 1] == b'\n');
                prop_assert_eq!(pair[1].start, line.unwrap_or(full), "{:?}", pair);
            }
        }
    }

    #[test]
    fn each_chunk_takes_as_much_of_a_long_cluster_as_fits() {
        let tokenizer = of_characters("rwkv");
        let options = EncodeOptions { add_special: false, ..EncodeOptions::default() };
        for (text, max_tokens, num_chunks) in [
            (format!("a{}", "\u{301}".repeat(5000)), 1000, 6),
            (format!("a{}", "\u{301}".repeat(2000)), 3000, 1),
            (format!("ab. a{}b", "\u{301}".repeat(2000)), 2003, 2),
        ] {
            let boundaries = Boundary::ALL.map(|(_, kind)| kind).to_vec();
            let split = SplitOptions::new(max_tokens).boundaries(boundaries);
            let chunks = tokenizer.encoder().split(&Segmentable::new(&text), split, options);
            let chunks = chunks.expect("a character has few tokens");
            assert_eq!(chunks.len(), num_chunks, "{:?}", &chunks[..chunks.len().min(9)]);
        }
    }

    #[test]
    fn a_chunk_repeats_the_end_of_the_one_before_it() -> Result<(), Box<dyn std::error::Error>> {
        let (data, index) = StringIndex::concatenate(&["<unk>", "▁", "a"])?;
        let tokens = Some(index.view(&data));
        let scores = Some(&[0.0; 3][..]);
        let token_types = Some(&[2, 1, 1][..]);
        let definition = Definition { model: "llama", tokens, scores, token_types, ..Definition::default() };
        let tokenizer = Tokenizer::new(&definition)?;
        let options = EncodeOptions { add_special: false, ..EncodeOptions::default() };
        // Every chunk has a token for the space before it.
        let ranges = |overlap: usize| -> Result<Vec<_>, EncodeError> {
            let split = SplitOptions::new(3).overlap(overlap).boundaries(Vec::new());
            let chunks = tokenizer.encoder().split(&Segmentable::new("aaaaa"), split, options)?;
            Ok(chunks.iter().map(|chunk| chunk.start..chunk.end).collect())
        };
        assert_eq!(ranges(0)?, [0..2, 2..4, 4..5]);
        assert_eq!(ranges(2)?, [0..2, 1..3, 2..4, 3..5]);
        Ok(())
    }
}
