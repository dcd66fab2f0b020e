//! What merging works on: numbered symbols and merge ranks.

/// The number of a text that takes part in merging: a token's id, or a higher number for a text that is no token.
pub(crate) type Symbol = u32;
/// A character that is neither a token nor part of any merge rule.
pub(crate) const NO_SYMBOL: Symbol = u32::MAX;

/// The rank of a pair that does not merge.
pub(crate) const NO_RANK: u32 = u32::MAX;
/// Merge ranks of byte-pair encoding are below this, so that a rank and a place in a short word fit into 32 bits.
pub(crate) const RANKS: usize = 1 << 28;
