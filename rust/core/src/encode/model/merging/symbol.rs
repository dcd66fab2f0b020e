//! Symbols, the numbers that stand for texts in merging, and the merge of two of them.

/// The number of a text that takes part in merging: a token's id, or a higher number for a text that is not a
/// token.
pub(crate) type Symbol = u32;
/// A character that is neither a token nor part of any merge rule.
pub(crate) const NO_SYMBOL: Symbol = u32::MAX;

/// The rank of a pair that does not merge.
pub(crate) const NO_RANK: u32 = u32::MAX;
/// Merge ranks of byte-pair encoding are below this, so that a rank and a position in a short word fit in 32 bits.
pub(crate) const MAX_RANKS: usize = 1 << 28;

/// The merge of two adjacent symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Merge {
    /// Lower ranks merge first; [`NO_RANK`] if the two do not merge.
    pub rank: u32,
    /// The symbol of both texts together.
    pub symbol: Symbol,
}

/// Two symbols that do not merge.
pub(crate) const NO_MERGE: Merge = Merge { rank: NO_RANK, symbol: NO_SYMBOL };
