//! Splits a text into words for each kind of vocabulary, as its encoder will see them.
//!
//! | kind | words |
//! |---|---|
//! | BPE | pieces of the pre-tokenizer |
//! | SPM | spaces are `▁`, and a word starts at each, or at each run of them |
//! | WordPiece | words of BERT's normalization, with `▁` in front |
//!
//! No word overlaps a special token written in the text, because the encoder cuts texts there first.
//!
//! Source: llama.cpp as in `pretokenizer` and `normalizer`; sentencepiece `src/normalizer.cc` (`Normalize`) and
//! `src/model_interface.cc` (`SplitIntoWords`). O(length of the text).

use ggtok_core::internals::interrupt::{self, Ticker};
use ggtok_core::internals::spelling::{ESCAPED_SPACE, ESCAPED_SPACE_CODE_POINT, escape_spaces};
use ggtok_core::internals::{Class, Learned, Splitter, WordPieceNormalizer};
use ggtok_core::trie::DoubleArray;
use ggtok_core::unicode::utf8;
use ggtok_core::vocab::Settings;

use super::{Result, TrainError};

/// Normalizes a text before its spaces are escaped; the result goes to an empty buffer.
pub type Normalize = dyn Fn(&str, &mut Vec<u8>) + Send + Sync;

/// How SPM treats spaces.
pub(super) struct Spaces {
    pub(super) normalize: Option<Box<Normalize>>,
    /// A space goes before each text.
    pub(super) add_prefix: bool,
    /// Spaces at both ends are removed, and a run of spaces becomes one.
    pub(super) remove_extra: bool,
    /// Words start at spaces. Otherwise a text is one word.
    pub(super) split: bool,
    /// A run of spaces belongs to a single word.
    pub(super) keep_runs: bool,
}

/// Splits texts into words.
pub(super) struct Split {
    kind: WordKind,
    special: SpecialTexts,
}

/// How each kind of vocabulary splits.
pub(super) enum WordKind {
    Pieces(Splitter),
    Spaces(Spaces),
    WordPiece(WordPieceNormalizer),
}

/// Buffers that a thread reuses.
#[derive(Debug, Default)]
pub(super) struct SplitScratch {
    learned: Learned,
    text: Vec<u8>,
    escaped: Vec<u8>,
}

impl WordKind {
    pub(super) fn wordpiece(settings: &Settings) -> Self {
        let mut normalizer = WordPieceNormalizer::new(settings);
        normalizer.fill(|_| None);
        Self::WordPiece(normalizer)
    }
}

impl Split {
    /// Words do not contain any of the texts in `special`.
    pub(super) fn new<'t>(kind: WordKind, special: impl Iterator<Item = &'t [u8]>) -> Result<Self> {
        Ok(Self { kind, special: SpecialTexts::new(&special.collect::<Vec<_>>())? })
    }

    /// Whether each line of a file is a separate text.
    pub(super) fn is_by_line(&self) -> bool {
        matches!(self.kind, WordKind::Spaces(_))
    }

    /// Calls `word` with each word of a text.
    pub(super) fn split(&self, text: &str, scratch: &mut SplitScratch, mut word: impl FnMut(&[u8])) {
        let SplitScratch { learned, text: buffer, escaped } = scratch;
        match &self.kind {
            WordKind::Pieces(splitter) => self.special.each_part(text.as_bytes(), |part| {
                splitter.split(part, learned, |start, end| word(&part[start..end]));
            }),
            WordKind::Spaces(spaces) => {
                spaces.escape(text, buffer, escaped);
                self.special
                    .each_part(escaped, |part| if spaces.split { spaces.split(part, &mut word) } else { word(part) });
            }
            WordKind::WordPiece(normalizer) => self.special.each_part(text.as_bytes(), |part| {
                wordpiece_words(normalizer, part, buffer, &mut word);
            }),
        }
    }
}

impl Spaces {
    /// Normalizes a text, and writes `▁` for its spaces.
    fn escape(&self, text: &str, normalized: &mut Vec<u8>, out: &mut Vec<u8>) {
        out.clear();
        normalized.clear();
        match &self.normalize {
            Some(normalize) => normalize(text, normalized),
            None => normalized.extend_from_slice(text.as_bytes()),
        }
        if self.remove_extra {
            // Only U+0020, because `▁` stands for nothing else.
            let words = normalized.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
            for word in interrupt::ticking(words) {
                if self.add_prefix || !out.is_empty() {
                    out.extend_from_slice(ESCAPED_SPACE);
                }
                out.extend_from_slice(word);
            }
        } else if !normalized.is_empty() {
            if self.add_prefix {
                out.extend_from_slice(ESCAPED_SPACE);
            }
            escape_spaces(normalized, out);
        }
    }

    /// Calls `word` with each word of an escaped text.
    fn split(&self, text: &[u8], word: &mut impl FnMut(&[u8])) {
        let mut start = 0;
        let mut in_run = true;
        for (character, range) in interrupt::ticking(utf8::code_points(text)) {
            let is_space = character == ESCAPED_SPACE_CODE_POINT;
            if is_space && range.start > start && !(in_run && self.keep_runs) {
                word(&text[start..range.start]);
                start = range.start;
            }
            in_run = is_space;
        }
        if start < text.len() {
            word(&text[start..]);
        }
    }
}

/// Calls `word` with each normalized word. A `▁` in the text ends a word, because in a vocabulary it starts one.
fn wordpiece_words(normalizer: &WordPieceNormalizer, text: &[u8], buffer: &mut Vec<u8>, word: &mut impl FnMut(&[u8])) {
    let mut finish = |buffer: &mut Vec<u8>| {
        if buffer.len() > ESCAPED_SPACE.len() {
            word(buffer);
        }
        buffer.truncate(ESCAPED_SPACE.len());
    };
    buffer.clear();
    buffer.extend_from_slice(ESCAPED_SPACE);
    let mut at = 0;
    let mut ticker = Ticker::default();
    while at < text.len() {
        ticker.tick();
        let (character, len) = normalizer.character(text, at);
        at += len;
        match character.class() {
            _ if character.payload() == ESCAPED_SPACE_CODE_POINT => finish(buffer),
            Class::Plain => buffer.extend_from_slice(utf8::encode(character.payload(), &mut [0; 4])),
            Class::Dropped => {}
            Class::Space => finish(buffer),
            Class::Single | Class::Token => {
                finish(buffer);
                buffer.extend_from_slice(utf8::encode(character.payload(), &mut [0; 4]));
                finish(buffer);
            }
        }
    }
    finish(buffer);
}

/// The texts at which others are cut: the leftmost match, and the longest one there.
struct SpecialTexts {
    texts: DoubleArray,
    /// Whether one of them starts with each byte.
    first: [bool; 256],
}

impl SpecialTexts {
    fn new(texts: &[&[u8]]) -> Result<Self> {
        let mut first = [false; 256];
        texts.iter().filter_map(|text| text.first()).for_each(|&byte| first[usize::from(byte)] = true);
        let keys = texts.iter().filter(|text| !text.is_empty()).map(|&text| (text, 0));
        let texts = DoubleArray::build(keys).map_err(|_| TrainError::TooLarge { symbols: texts.len() })?;
        Ok(Self { texts, first })
    }

    /// Calls `part` with the stretches between the texts.
    fn each_part(&self, text: &[u8], mut part: impl FnMut(&[u8])) {
        let mut start = 0;
        let mut at = 0;
        let mut ticker = Ticker::default();
        if !self.texts.is_empty() {
            while let Some(next) = text[at..].iter().position(|&byte| self.first[usize::from(byte)]) {
                ticker.tick();
                at += next;
                match self.texts.longest_match(&text[at..]) {
                    Some((len, _)) => {
                        part(&text[start..at]);
                        at += len;
                        start = at;
                    }
                    None => at += 1,
                }
            }
        }
        part(&text[start..]);
    }
}

#[cfg(test)]
mod tests {
    use ggtok_core::internals::WordPieceNormalizer;
    use ggtok_core::vocab::Settings;

    use super::{Spaces, SpecialTexts, Split, SplitScratch, WordKind};

    fn words(kind: WordKind, special: &[&str], text: &str) -> Vec<String> {
        let split = Split::new(kind, special.iter().map(|text| text.as_bytes())).unwrap();
        let mut words = Vec::new();
        split.split(text, &mut SplitScratch::default(), |word| words.push(String::from_utf8(word.to_vec()).unwrap()));
        words
    }

    fn spaces(remove_extra: bool, keep_runs: bool) -> WordKind {
        WordKind::Spaces(Spaces { normalize: None, add_prefix: true, remove_extra, split: true, keep_runs })
    }

    #[test]
    fn words_of_spm_start_at_spaces() {
        assert_eq!(words(spaces(true, false), &[], "  a  b\tc "), ["▁a", "▁b\tc"]);
        assert_eq!(words(spaces(false, false), &[], " a  b"), ["▁", "▁a", "▁", "▁b"]);
        assert_eq!(words(spaces(false, true), &[], " a  b"), ["▁▁a", "▁▁b"]);
        assert_eq!(words(spaces(true, false), &[], "   "), [""; 0]);
        assert_eq!(words(spaces(true, false), &["<s>"], "a<s>b<s"), ["▁a", "b<s"]);
    }

    #[test]
    fn words_of_wordpiece_are_normalized() {
        let settings = Settings { lowercase: true, strip_accents: true, ..Settings::default() };
        let kind = || WordKind::WordPiece(WordPieceNormalizer::new(&settings));
        assert_eq!(
            words(kind(), &["[SEP]"], "Ål, don't[SEP]中文 x▁y"),
            ["▁al", "▁,", "▁don", "▁'", "▁t", "▁中", "▁文", "▁x", "▁y"]
        );
    }

    #[test]
    fn texts_are_cut_at_the_leftmost_longest() {
        let cuts = SpecialTexts::new(&[b"ab", b"abc", b"bcd"]).unwrap();
        let mut parts = Vec::new();
        cuts.each_part(b"xabcdab", |part| parts.push(part.to_vec()));
        assert_eq!(parts, [b"x".to_vec(), b"d".to_vec(), b"".to_vec()]);
    }
}
