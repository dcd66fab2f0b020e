//! Characters that may begin as one symbol instead of two or three bytes.
//!
//! The bytes of a character merge among themselves, whatever stands beside it, unless a symbol crosses into it
//! ([`Junctions::is_crossed`]). If every merge that takes the whole character further has a higher rank than those that
//! make it, nothing can happen to it before it is whole: a merge of lower rank never involves it, and one of higher rank
//! waits for it. So it may as well be whole from the start. For a vocabulary that was trained, a pair can only be
//! counted once its parts exist, so this holds for every character; here it is checked for each one.
//!
//! [`Junctions::is_crossed`]: crate::model::adjacency::Junctions::is_crossed

use crate::model::merging::ranks::Merges;
use crate::model::merging::sure_pairs::BytePairs;
use crate::model::merging::symbol::{NO_RANK, NO_SYMBOL, Symbol};
use crate::unicode::utf8;

/// Characters up to here, of two or three bytes, are considered.
const CHARS: usize = 0x1_0000;

/// Which symbols have which characters of the basic plane.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    /// Characters that stand beside others in a symbol, each with the symbol.
    beside_others: Vec<(u16, Symbol)>,
    /// Characters that are symbols themselves.
    alone: Vec<u16>,
}

impl Uses {
    /// Adds the characters of a symbol, given the bytes that it spells. O(length).
    #[inline]
    pub(crate) fn add(&mut self, piece: &[u8], symbol: Symbol) {
        let mut at = 0;
        while at < piece.len() {
            let (code_point, len) = match piece[at] {
                byte @ 0..0x80 => (u32::from(byte), 1),
                _ => utf8::decode_lossy(piece, at),
            };
            if let Ok(char) = u16::try_from(code_point)
                && len > 1
            {
                match len == piece.len() {
                    true => self.alone.push(char),
                    false => self.beside_others.push((char, symbol)),
                }
            }
            at += len;
        }
    }

    /// By character the lowest rank of a merge that takes it further.
    fn first(&self, merges: &Merges) -> Vec<u32> {
        let ranks = merges.first_ranks();
        let mut first = vec![NO_RANK; CHARS];
        for &(char, symbol) in &self.beside_others {
            let first = &mut first[usize::from(char)];
            *first = ranks[symbol as usize].min(*first);
        }
        first
    }
}

/// Which characters may begin whole, and as what.
#[derive(Debug)]
pub(crate) struct WholeChars(Vec<Symbol>);

impl WholeChars {
    /// Lets the bytes of every character that is a symbol merge.
    pub(crate) fn new(merges: &Merges, byte_symbols: &[Symbol; 256], byte_pairs: &BytePairs, uses: &Uses) -> Self {
        let first_uses = uses.first(merges);
        let symbol = |byte: u8| byte_symbols[usize::from(byte)];
        let pair = |left: u8, right: u8| byte_pairs.get(left, right);
        let whole = |code_point: u32| {
            let mut buffer = [0; 4];
            let (rank, whole) = match *utf8::encode(code_point, &mut buffer) {
                [first, second] => pair(first, second),
                [first, second, third] => {
                    let (begin, end) = (pair(first, second), pair(second, third));
                    let (rank, part) = begin.min(end);
                    let (next, whole) = match rank {
                        NO_RANK => (NO_RANK, NO_SYMBOL),
                        _ if rank == begin.0 => merges.get(part, symbol(third)),
                        _ => merges.get(symbol(first), part),
                    };
                    (rank.max(next), whole)
                }
                _ => (NO_RANK, NO_SYMBOL),
            };
            if rank < first_uses[code_point as usize] { whole } else { NO_SYMBOL }
        };
        let mut symbols = vec![NO_SYMBOL; CHARS];
        for &char in &uses.alone {
            symbols[usize::from(char)] = whole(char.into());
        }
        Self(symbols)
    }

    /// The symbol that a character may begin as, or [`NO_SYMBOL`].
    #[inline]
    pub(crate) fn get(&self, code_point: u32) -> Symbol {
        self.0.get(code_point as usize).copied().unwrap_or(NO_SYMBOL)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<Symbol>()
    }
}
