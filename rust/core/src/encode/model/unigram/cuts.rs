//! Where texts may be cut into segments without changing their tokens, as far as a vocabulary and its normalizer allow.
//!
//! 1. No token crosses the start of a word, because no token has an escaped space after its start. No token crosses the
//!    position between two characters that are adjacent in no token ([`CharPairs`]).
//! 2. The normalizer changes nothing across such a position ([`UnigramNormalizer::normalizes_words_alone`]).
//! 3. llama.cpp compares sums of scores from the start of the text; here sums start at the segment. The comparisons
//!    agree if no sum is rounded. Scores are multiples of a power of two 2^k, and a double holds such sums below 2^(k +
//!    53) exactly. [`Cuts::new`] finds k, and from it the longest text that cannot exceed this.
//!
//! Longer texts, and vocabularies that fail any condition, are not cut.

use super::lattice::Bounds;
use crate::encode::model::adjacency::{CharPairs, CharPairsBuilder};
use crate::encode::normalizer::unigram::UnigramNormalizer;
use crate::text::unicode::utf8;

/// Bits of the filter for pairs of characters. The 150,000 pairs of a vocabulary for a hundred languages set one in
/// seven.
const FILTER_BITS: usize = 1 << 20;

/// Decides where the texts of one vocabulary are cut.
#[derive(Debug)]
pub(super) struct Cuts {
    /// The characters that are adjacent in some token.
    pub(super) pairs: CharPairs,
    /// What prunes the search in a segment. Sums are exact there, so pruning changes nothing.
    pub(super) bounds: Bounds,
    /// The longest text for which no sum of scores is rounded, in bytes.
    pub(super) max_len: usize,
}

heap_bytes!(Cuts: pairs, bounds);

impl Cuts {
    /// `None` if a cut could change the tokens of a text. `tokens` are all that are searched, with their scores; none
    /// crosses the start of a word, and all scores are finite.
    pub(super) fn new<'a>(
        tokens: impl Iterator<Item = (&'a [u8], f32)> + Clone,
        unknown_score: f32,
        normalizer: &UnigramNormalizer,
    ) -> Option<Self> {
        normalizer.characters.as_ref().filter(|_| normalizer.normalizes_words_alone())?;
        let pairs = adjacent_chars(tokens.clone().map(|token| token.0))?;

        // The best path scores no less than one token per character, and no more than the highest score for each.
        let mut lowest_bit = lowest_bit(unknown_score);
        let mut per_char = unknown_score.abs();
        let mut highest = 0f32;
        for (text, score) in tokens.clone() {
            lowest_bit = lowest_bit.min(self::lowest_bit(score));
            highest = highest.max(score.abs());
            let is_char = text.first().is_some_and(|&first| text.len() == utf8::sequence_len(first));
            if is_char || score > 0.0 {
                per_char = per_char.max(score.abs());
            }
        }
        let max_sum = 2f64.powi(lowest_bit + 53) - Bounds::MAX_LEN as f64 * 2.0 * f64::from(highest);
        let num_chars = max_sum / f64::from(per_char) - 1.0;
        let max_len = (num_chars / normalizer.max_expansion() as f64) as usize;

        let bounds = Bounds::new(tokens, unknown_score);
        Some(Self { pairs, bounds, max_len })
    }
}

/// The pairs of adjacent characters in tokens, if all tokens are UTF-8.
fn adjacent_chars<'a>(mut tokens: impl Iterator<Item = &'a [u8]>) -> Option<CharPairs> {
    let mut pairs = CharPairsBuilder::new();
    tokens.try_for_each(|token| {
        let mut at = 0;
        let mut before = None;
        while at < token.len() {
            let (character, len) = utf8::decode(token, at)?;
            at += len;
            if let Some(before) = before.replace(character) {
                pairs.add(before, character);
            }
        }
        Some(())
    })?;
    Some(pairs.finish(FILTER_BITS))
}

/// The exponent of the lowest bit that is set in a finite number; a high one for zero, which has no such bit.
fn lowest_bit(score: f32) -> i32 {
    let bits = score.to_bits() & !(1 << 31);
    let exponent = (bits >> 23) as i32;
    let fraction = bits & 0x7F_FFFF;
    let (exponent, significand) = if exponent == 0 { (1, fraction) } else { (exponent, fraction | 1 << 23) };
    if significand == 0 { 200 } else { exponent - 150 + significand.trailing_zeros() as i32 }
}

#[cfg(test)]
mod tests {
    use super::lowest_bit;

    #[test]
    fn lowest_bits() {
        let cases = [(1.0, 0), (-1.5, -1), (-10_000.0, 4), (0.1, -27), (f32::MIN_POSITIVE, -126), (f32::EPSILON, -23)];
        for (score, expected) in cases {
            assert_eq!(lowest_bit(score), expected, "{score}");
        }
        assert_eq!(lowest_bit(f32::from_bits(1)), -149);
        assert!(lowest_bit(0.0) > 127 && lowest_bit(-0.0) > 127);
    }
}
