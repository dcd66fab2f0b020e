//! Characters that may start as one symbol instead of two or three bytes: a table of the basic plane.
//!
//! The bytes of a character merge among themselves, whatever is next to it, unless a symbol crosses into the character
//! ([`Segmenter::is_crossed`]). If every rule that extends the whole character has a higher rank than the rules that
//! make it, nothing can happen to it before it is whole: merges of lower rank never involve it, and merges of higher
//! rank wait for it. So it may as well start whole. Training counts a pair only once its parts exist, so this holds for
//! all characters of a trained vocabulary; here it is checked for each one.
//!
//! Space: 256 KiB. O(1) per character.
//!
//! [`Segmenter::is_crossed`]: crate::encode::model::segmenter::Segmenter::is_crossed

use crate::encode::model::merging::ranks::MergeRanks;
use crate::encode::model::merging::sure_pairs::SurePairs;
use crate::encode::model::merging::symbol::{NO_MERGE, NO_RANK, NO_SYMBOL, Symbol};
use crate::text::unicode::utf8;
use crate::work::memory::{filled, push};

/// All code points of two or three bytes are below this.
const NUM_CHARS: usize = 0x1_0000;

/// The symbols of each character of the basic plane.
#[derive(Debug, Default)]
pub(super) struct CharUses {
    /// Characters inside longer symbols, each with its symbol.
    inside: Vec<(u16, Symbol)>,
    /// Characters that are symbols themselves.
    alone: Vec<u16>,
}

impl CharUses {
    /// Adds the characters of a symbol, given the bytes that it spells. O(length).
    #[inline]
    pub(super) fn add(&mut self, spelled: &[u8], symbol: Symbol) {
        let mut at = 0;
        while at < spelled.len() {
            let (code_point, len) = match spelled[at] {
                byte @ 0..0x80 => (u32::from(byte), 1),
                _ => utf8::decode_lossy(spelled, at),
            };
            if let Ok(char) = u16::try_from(code_point)
                && len > 1
            {
                if len == spelled.len() { push(&mut self.alone, char) } else { push(&mut self.inside, (char, symbol)) }
            }
            at += len;
        }
    }

    /// For each character, the lowest rank of a rule that extends it.
    fn first_ranks(&self, ranks: &MergeRanks) -> Vec<u32> {
        let by_symbol = ranks.first_ranks();
        let mut first = filled(NUM_CHARS, NO_RANK);
        for &(char, symbol) in &self.inside {
            let first = &mut first[usize::from(char)];
            *first = by_symbol[symbol as usize].min(*first);
        }
        first
    }
}

/// For each code point, the symbol that the character may start as, or [`NO_SYMBOL`].
#[derive(Debug)]
pub(super) struct WholeChars(Vec<Symbol>);

heap_bytes!(WholeChars: 0);

impl WholeChars {
    /// Merges the bytes of every character that is a symbol.
    pub(super) fn new(ranks: &MergeRanks, bytes: &[Symbol; 256], pairs: &SurePairs, uses: &CharUses) -> Self {
        let first_ranks = uses.first_ranks(ranks);
        let symbol = |byte: u8| bytes[usize::from(byte)];
        let whole = |code_point: u32| {
            let (rank, whole) = match *utf8::encode(code_point, &mut [0; 4]) {
                [first, second] => {
                    let merge = pairs.get(first, second);
                    (merge.rank, merge.symbol)
                }
                [first, second, third] => {
                    let left = pairs.get(first, second);
                    let right = pairs.get(second, third);
                    let rank = left.rank.min(right.rank);
                    let next = match rank {
                        NO_RANK => NO_MERGE,
                        _ if rank == left.rank => ranks.get(left.symbol, symbol(third)),
                        _ => ranks.get(symbol(first), right.symbol),
                    };
                    (rank.max(next.rank), next.symbol)
                }
                _ => (NO_RANK, NO_SYMBOL),
            };
            if rank < first_ranks[code_point as usize] { whole } else { NO_SYMBOL }
        };
        let mut symbols = filled(NUM_CHARS, NO_SYMBOL);
        for &char in &uses.alone {
            symbols[usize::from(char)] = whole(char.into());
        }
        Self(symbols)
    }

    /// The symbol that a character may start as, or [`NO_SYMBOL`].
    #[inline]
    pub(super) fn get(&self, code_point: u32) -> Symbol {
        self.0.get(code_point as usize).copied().unwrap_or(NO_SYMBOL)
    }
}

#[cfg(test)]
mod tests {
    use crate::Tokenizer;
    use crate::vocabulary::Definition;
    use crate::vocabulary::strings::StringIndex;

    #[test]
    fn a_character_that_is_extended_before_it_is_made_starts_as_bytes() {
        let ids = |merges: [&str; 3]| {
            // The bytes of é are spelled Ã and ©.
            let (tokens, index) = StringIndex::concatenate(&["a", "b", "Ã", "©", "ab", "Ã©", "bÃ©"]).unwrap();
            let tokens = Some(index.view(&tokens));
            let (merges, index) = StringIndex::concatenate(&merges).unwrap();
            let merges = Some(index.view(&merges));
            let definition = Definition { model: "gpt2", pre: Some("gpt-2"), tokens, merges, ..Definition::default() };
            Tokenizer::new(&definition).unwrap().encode("abé").unwrap()
        };
        assert_eq!(ids(["Ã ©", "b Ã©", "a b"]), [0, 6]);
        assert_eq!(ids(["Ã ©", "a b", "b Ã©"]), [4, 5]);
        assert_eq!(ids(["b Ã©", "a b", "Ã ©"]), [4, 5]);
    }
}
