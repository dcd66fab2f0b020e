//! Characters that may begin as one symbol instead of two or three bytes.
//!
//! The bytes of a character merge among themselves, whatever stands beside it, unless a symbol crosses into it
//! ([`Junctions::is_crossed`]). If every merge that takes the whole character further has a higher rank than those that
//! make it, nothing can happen to it before it is whole: a merge of lower rank never involves it, and one of higher rank
//! waits for it. So it may as well be whole from the start. For a vocabulary that was trained, a pair can only be
//! counted once its parts exist, so this holds for every character; here it is checked for each one.
//!
//! [`Junctions::is_crossed`]: super::junctions::Junctions::is_crossed

use super::byte_level;
use super::merges::{Merges, NO_SYMBOL, Symbol, parts};
use super::merging::NO_RANK;
use crate::strings::Strings;
use crate::unicode::utf8;

/// Characters up to here, of two or three bytes, are considered.
const CHARS: usize = 0x1_0000;

/// For each character of the basic plane the lowest rank of a merge that takes it further.
pub(crate) struct FirstUses(Vec<u32>);

impl FirstUses {
    /// Reads merges of byte-level texts. O(total length).
    pub(crate) fn new(merges: Option<Strings<'_>>) -> Self {
        let mut first = vec![NO_RANK; CHARS];
        let mut piece = Vec::new();
        for (merge, rank) in merges.into_iter().flat_map(|merges| merges.iter()).zip(0..) {
            // The first byte of every longer character is spelled with a character whose own first byte is C3.
            let Some((left, right)) = parts(merge).filter(|_| memchr::memchr(0xC3, merge).is_some()) else { continue };
            piece.clear();
            if !byte_level::unspell_all(left, &mut piece) || !byte_level::unspell_all(right, &mut piece) {
                continue;
            }
            let mut at = 0;
            while at < piece.len() {
                let (code_point, len) = utf8::decode_lossy(&piece, at);
                if len > 1 && len < piece.len() {
                    let first = &mut first[code_point as usize % CHARS];
                    *first = rank.min(*first);
                }
                at += len;
            }
        }
        Self(first)
    }
}

/// Which characters may begin whole, and as what.
#[derive(Debug)]
pub(crate) struct WholeChars(Vec<Symbol>);

impl WholeChars {
    /// Lets the bytes of every character of the basic plane merge. `byte_pairs` has ranks and symbols by two bytes.
    pub(crate) fn new(
        merges: &Merges,
        byte_symbols: &[Symbol; 256],
        byte_pairs: &[(u32, Symbol)],
        first_uses: &FirstUses,
    ) -> Self {
        let symbol = |byte: u8| byte_symbols[usize::from(byte)];
        let pair = |left: u8, right: u8| byte_pairs[usize::from(left) << 8 | usize::from(right)];
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
            if rank < first_uses.0[code_point as usize] { whole } else { NO_SYMBOL }
        };
        Self((0..CHARS as u32).map(whole).collect())
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
