//! Two tokenizers' tokens for one text, side by side: which ranges of them stand for the same characters.
//!
//! A pass over both texts compares their characters, and cuts wherever tokens end in both. Tokenizers do not decode to
//! quite the same text: whitespace that one of them has more of is passed over, so it belongs to the token that it is
//! in, and if one of them is WordPiece, letters are compared as it changes them.
//!
//! An unknown token stands for at least one character of the other text, and for all up to the one after it.
//!
//! O(total length of both texts).

use std::ops::Range;

use crate::encode::normalizer::wordpiece::{Class, WordPieceNormalizer};
use crate::error::{DecodeError, OutOfMemory, errors, from_out_of_memory};
use crate::many::stream::decoder::{StreamDecodeOptions, StreamDecoder};
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::Settings;
use crate::work::interrupt::{self, Ticker};
use crate::work::memory::{self, append, push};

/// A range of the tokens of each of two tokenizers.
pub type AlignedTokens = (Range<usize>, Range<usize>);

errors! {
    /// Why tokens cannot be aligned.
    #[derive(Debug, Clone, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum AlignError {
        /// The ids of the first or of the second tokenizer cannot be decoded.
        Decode {
            /// Whether they are those of the second tokenizer.
            is_second: bool,
            /// Why not.
            error: DecodeError,
        } => "the ids of the {} tokenizer: {error}", if *is_second { "second" } else { "first" };
        /// The texts are not the same.
        TextsDiffer {
            /// For each tokenizer, the token in which they start to differ, or the number of its tokens if its text
            /// ends there.
            tokens: [usize; 2],
            /// For each, what its text has there: a few characters.
            texts: [String; 2],
        } =>
            "the ids stand for different texts: {:?} at token {} of the first tokenizer, {:?} at token {} of the \
             second", texts[0], tokens[0], texts[1], tokens[1];
        /// There is not enough memory.
        OutOfMemory => "{OutOfMemory}";
    }
}

from_out_of_memory!(AlignError);

/// Bytes that are not UTF-8 are compared by numbers above those of all characters.
const BYTES: u32 = 0x11_0000;

/// Stands for the text of an unknown token.
const UNKNOWN: u8 = 0xFF;

/// The text of some ids, and where each token ends in it.
#[derive(Default)]
struct Side {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// For each token, whether its text is [`UNKNOWN`].
    is_unknown: Vec<bool>,
    /// Where the pass is, in bytes.
    at: usize,
    /// How many tokens end before that, or there.
    num_passed: usize,
    /// The first token since the last cut.
    from: usize,
}

impl Side {
    fn new(tokenizer: &Tokenizer, ids: &[TokenId]) -> Result<Self, DecodeError> {
        let vocabulary = tokenizer.vocabulary();
        let mut decoder = StreamDecoder::new(tokenizer, StreamDecodeOptions::default());
        let mut side = Self::default();
        for &id in interrupt::ticking(ids) {
            let start = side.text.len();
            decoder.push(&[id], &mut side.text)?;
            let is_unknown = vocabulary.attributes(id).is_unknown() || vocabulary.special().unk == Some(id);
            let is_unknown = is_unknown && side.text.len() == start;
            append(&mut side.text, if is_unknown { &[UNKNOWN] } else { b"" });
            push(&mut side.is_unknown, is_unknown);
            push(&mut side.ends, side.text.len());
        }
        side.advance(0);
        Ok(side)
    }

    /// The character here: what it is compared by, its length, and whether one text may have it and the other not.
    fn character(&self, normalizer: &WordPieceNormalizer) -> Option<(u32, usize, bool)> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (code_point, len) = utf8::decode_lossy(rest, 0);
        if code_point == utf8::REPLACEMENT && !rest.starts_with("\u{FFFD}".as_bytes()) {
            return Some((BYTES + u32::from(rest[0]), 1, false));
        }
        let (character, _) = normalizer.character(rest, 0);
        let may_lack = matches!(character.class(), Class::Space | Class::Dropped);
        Some((character.payload(), len, may_lack))
    }

    /// Whether an unknown token comes here.
    fn is_unknown(&self) -> bool {
        self.is_unknown.get(self.num_passed).is_some_and(|&is_unknown| is_unknown)
    }

    fn advance(&mut self, len: usize) {
        self.at += len;
        while self.ends.get(self.num_passed).is_some_and(|&end| end <= self.at) {
            self.num_passed += 1;
        }
    }

    /// Whether a token that has text ends here, and there was one since the last cut.
    fn may_cut(&self) -> bool {
        let is_end = self.num_passed > 0 && self.ends[self.num_passed - 1] == self.at;
        is_end && self.at > self.start()
    }

    /// Where the last cut was, in bytes.
    fn start(&self) -> usize {
        self.from.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Cuts here. Returns the tokens since the last cut, without those at both ends that have no text.
    fn cut(&mut self) -> Range<usize> {
        let start = self.start();
        let first = self.ends.partition_point(|&end| end <= start);
        let last = self.ends.partition_point(|&end| end < self.at);
        self.from = self.num_passed;
        first..last + 1
    }

    /// What comes here, in short.
    fn glimpse(&self) -> String {
        let rest = &self.text[self.at..];
        String::from_utf8_lossy(&rest[..rest.len().min(40)]).chars().take(10).collect()
    }
}

/// Pairs of ranges of tokens, in order, that stand for the same characters, each as short as it can be. A range
/// begins and ends with a token that has text, so BOS is in none.
///
/// # Errors
/// [`AlignError`]: an id is not in its vocabulary, or the texts differ by more than whitespace, or by more than a
/// WordPiece vocabulary changes.
///
/// # Examples
/// ```
/// # use ggtok_core::vocab::{Definition, StringIndex};
/// # use ggtok_core::{Tokenizer, align};
/// let tokenizer = |tokens: &[&str]| {
///     let (data, index) = StringIndex::concatenate(tokens)?;
///     Tokenizer::new(&Definition { model: "llama", tokens: Some(index.view(&data)), ..Definition::default() })
///         .map_err(Box::<dyn std::error::Error>::from)
/// };
/// let a = tokenizer(&["ab", "c", "d"])?;
/// let b = tokenizer(&["a", "b", "cd"])?;
/// assert_eq!(align((&a, &[0, 1, 2]), (&b, &[0, 1, 2]))?, [(0..1, 0..2), (1..3, 2..3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn align(
    first: (&Tokenizer, &[TokenId]),
    second: (&Tokenizer, &[TokenId]),
) -> Result<Vec<AlignedTokens>, AlignError> {
    memory::catch(|| {
        let side = |(tokenizer, ids), is_second| {
            Side::new(tokenizer, ids).map_err(|error| AlignError::Decode { is_second, error })
        };
        let mut a = side(first, false)?;
        let mut b = side(second, true)?;
        let changes = |how: fn(&Settings) -> bool| {
            [first.0, second.0].iter().any(|tokenizer| how(tokenizer.vocabulary().settings()))
        };
        let lowercase = changes(|its| its.lowercase);
        let strip_accents = changes(|its| its.strip_accents);
        let normalizer = WordPieceNormalizer::new(&Settings { lowercase, strip_accents, ..Settings::default() });
        let mut pairs = Vec::new();
        let mut ticker = Ticker::default();
        // For each, whether its last character is an unknown token, which can stand for more of the other text.
        let mut is_open = [false; 2];
        loop {
            ticker.tick();
            let [here, other] = [&a, &b].map(|side| side.character(&normalizer));
            let is_same = here.zip(other).is_some_and(|((here, ..), (other, ..))| here == other);
            let [len_a, len_b] = [here, other].map(|character| character.map_or(0, |(_, len, _)| len));
            let [may_lack_a, may_lack_b] = [here, other].map(|found| found.is_some_and(|(.., may_lack)| may_lack));
            let [is_unknown_a, is_unknown_b] = [a.is_unknown(), b.is_unknown()];
            // An unknown token takes those of the other text too, and what is not the same.
            let more_a = is_open[1] && len_a > 0 && !is_unknown_b;
            let more_b = is_open[0] && len_b > 0 && !is_unknown_a;
            let is_more = !is_same && (more_a || more_b);
            if !is_more && a.may_cut() && b.may_cut() {
                push(&mut pairs, (a.cut(), b.cut()));
            }
            if here.is_none() && other.is_none() {
                return Ok(pairs);
            }
            // An unknown token hardly ever stands for a space alone.
            if !is_same && may_lack_a || is_more && more_a && !may_lack_b {
                a.advance(len_a);
            } else if !is_same && may_lack_b || is_more {
                b.advance(len_b);
            } else if is_same || is_unknown_a && len_b > 0 || is_unknown_b && len_a > 0 {
                is_open = [is_unknown_a, is_unknown_b];
                a.advance(len_a);
                b.advance(len_b);
            } else {
                let tokens = [a.num_passed, b.num_passed];
                return Err(AlignError::TextsDiffer { tokens, texts: [a.glimpse(), b.glimpse()] });
            }
        }
    })?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::{Definition, StringIndex};

    fn align_texts(a: &[&str], b: &[&str]) -> Result<Vec<AlignedTokens>, AlignError> {
        let tokenizer = |tokens: &[&str]| {
            let (data, index) = StringIndex::concatenate(tokens).expect("few tokens");
            let kind = |text: &str| match text {
                "<unk>" => 2,
                "<s>" => 3,
                _ if text.starts_with("<0x") => 6,
                _ => 1,
            };
            let types: Vec<i32> = tokens.iter().map(|text| kind(text)).collect();
            Tokenizer::new(&Definition {
                model: "llama",
                tokens: Some(index.view(&data)),
                token_types: Some(&types),
                add_space_prefix: Some(false),
                ..Definition::default()
            })
            .expect("a vocabulary")
        };
        let all = |tokens: &[&str]| (0..tokens.len() as TokenId).collect::<Vec<_>>();
        align((&tokenizer(a), &all(a)), (&tokenizer(b), &all(b)))
    }

    #[test]
    fn ranges_are_short_and_whole_characters() {
        assert_eq!(align_texts(&["a", "bc"], &["a", "b", "c"]), Ok(vec![(0..1, 0..1), (1..2, 1..3)]));
        // Both split "é", at the same byte.
        let bytes = ["<0xC3>", "<0xA9>", "a"];
        assert_eq!(align_texts(&bytes, &bytes), Ok(vec![(0..2, 0..2), (2..3, 2..3)]));
        assert_eq!(align_texts(&[], &[]), Ok(vec![]));
    }

    #[test]
    fn whitespace_of_one_belongs_to_its_token() {
        assert_eq!(align_texts(&["a", "▁b"], &["a", "b"]), Ok(vec![(0..1, 0..1), (1..2, 1..2)]));
        assert_eq!(align_texts(&["a▁▁", "b"], &["a▁", "b"]), Ok(vec![(0..1, 0..1), (1..2, 1..2)]));
        assert_eq!(align_texts(&["a", "▁"], &["a"]), Ok(vec![(0..1, 0..1)]));
    }

    #[test]
    fn unknown_tokens_stand_for_any_text() {
        let unknown = ["a", "<unk>", "b"];
        assert_eq!(align_texts(&unknown, &["a", "xy", "b"]), Ok(vec![(0..1, 0..1), (1..2, 1..2), (2..3, 2..3)]));
        assert_eq!(align_texts(&["a", "xy", "b"], &unknown), Ok(vec![(0..1, 0..1), (1..2, 1..2), (2..3, 2..3)]));
        assert_eq!(align_texts(&unknown, &unknown), Ok(vec![(0..1, 0..1), (1..2, 1..2), (2..3, 2..3)]));
        assert_eq!(align_texts(&["a", "<s>", "<unk>"], &["a", "x"]), Ok(vec![(0..1, 0..1), (2..3, 1..2)]));
        assert_eq!(align_texts(&["a", "<unk>"], &["ax", "y"]), Ok(vec![(0..2, 0..2)]));
        assert!(align_texts(&unknown, &["a", "b"]).is_err());
    }

    #[test]
    fn different_texts_are_refused() {
        let texts = ["c".to_owned(), "d".to_owned()];
        assert_eq!(align_texts(&["ab", "c"], &["a", "bd"]), Err(AlignError::TextsDiffer { tokens: [1, 1], texts }));
        assert!(align_texts(&["a"], &[]).is_err());
    }
}
