//! Tokens sorted by piece, for looking tokens up by their bytes or a prefix of them.
//!
//! A sorted list of ids: 4 bytes per token, O(n log n) comparisons to build, O(log n) to search. Building it unwinds if
//! memory runs out.

use super::TokenPieces;
use crate::token::TokenId;
use crate::work::memory::with_capacity;

/// All ids, sorted by piece and then by id.
#[derive(Debug, Default)]
pub struct PieceOrder(Vec<TokenId>);

heap_bytes!(PieceOrder: 0);

impl PieceOrder {
    /// Sorts `num_tokens` tokens by their pieces.
    pub fn new(pieces: &TokenPieces, num_tokens: usize) -> Self {
        let mut ids: Vec<TokenId> = with_capacity(num_tokens);
        ids.extend(0..num_tokens as TokenId);
        // A stable sort would need more memory.
        ids.sort_unstable_by_key(|&id| (bytes(pieces, id), id));
        Self(ids)
    }

    /// The lowest id with exactly this piece.
    pub fn find(&self, pieces: &TokenPieces, piece: &[u8]) -> Option<TokenId> {
        let first = *self.with_prefix(pieces, piece).first()?;
        // A piece sorts before all longer ones that it starts.
        (bytes(pieces, first) == piece).then_some(first)
    }

    /// All ids whose pieces start with `prefix`.
    pub fn with_prefix(&self, pieces: &TokenPieces, prefix: &[u8]) -> &[TokenId] {
        let start = self.0.partition_point(|&id| bytes(pieces, id) < prefix);
        let rest = &self.0[start..];
        &rest[..rest.partition_point(|&id| bytes(pieces, id).starts_with(prefix))]
    }
}

fn bytes(pieces: &TokenPieces, id: TokenId) -> &[u8] {
    // Every id exists.
    pieces.piece(id, true).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::PieceOrder;
    use crate::decode::tests::load;

    #[test]
    fn pieces_are_found_whole_and_by_their_beginning() {
        let texts: [&[u8]; 8] = [b"b", b"ab", b"", b"a", b"\xFF", b"abc", b"a\xFF", b"<s>"];
        let (_, pieces) = load("plamo2", &texts).unwrap();
        let order = PieceOrder::new(&pieces, texts.len());
        for text in [&b""[..], b"a", b"ab", b"abc", b"abcd", b"b", b"ba", b"\xFF", b"\xFE", b"<s>", b"<"] {
            let shown = |id: i32| pieces.piece(id, true).unwrap();
            assert_eq!(order.find(&pieces, text), (0..8).find(|&id| shown(id) == text), "{text:?}");
            let mut expected: Vec<i32> = (0..8).filter(|&id| shown(id).starts_with(text)).collect();
            expected.sort_by_key(|&id| (shown(id), id));
            assert_eq!(order.with_prefix(&pieces, text), expected, "{text:?}");
        }
    }

    #[test]
    fn of_equal_pieces_the_lowest_id_is_found() {
        let (_, pieces) = load("plamo2", &[b"a", "\u{2582}".as_bytes()]).unwrap();
        let order = PieceOrder::new(&pieces, 2);
        assert_eq!((order.find(&pieces, b"a"), order.find(&pieces, b"none")), (Some(0), None));
        let (_, pieces) = load("llama", &[b" ", "▁".as_bytes()]).unwrap();
        assert_eq!(PieceOrder::new(&pieces, 2).find(&pieces, b" "), Some(0));
    }
}
