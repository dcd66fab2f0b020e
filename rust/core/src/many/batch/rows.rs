//! The rows of a batch: flat ids with offsets, one row per text. Rows can be selected and padded to one length.
//!
//! Selecting is O(rows + their ids); padding is O(rows * length).

use crate::error::errors;
use crate::many::batch::Batch;
use crate::token::TokenId;
use crate::work::interrupt;
use crate::work::memory::{append, push};

/// The greatest padded length beyond what the rows need: anything longer is a mistake and would fill the memory.
const MAX_SPARE_LEN: usize = 1 << 24;

/// Ids of several texts, borrowed: row `i` is `ids[offsets[i]..offsets[i + 1]]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows<'a> {
    ids: &'a [TokenId],
    /// Ascending from 0 to the number of ids, so never empty.
    offsets: &'a [i64],
}

impl Batch {
    /// The rows.
    ///
    /// # Panics
    /// If `offsets` were changed and no longer fit `ids`.
    pub fn rows(&self) -> Rows<'_> {
        Rows::new(&self.ids, &self.offsets).expect("the offsets of a batch fit its ids")
    }
}

impl<'a> Rows<'a> {
    /// Rows, or `None` if the offsets do not start at 0, descend, or do not end at the number of ids.
    pub fn new(ids: &'a [TokenId], offsets: &'a [i64]) -> Option<Self> {
        let is_sound = *offsets.first()? == 0 && *offsets.last()? == ids.len() as i64 && offsets.is_sorted();
        is_sound.then_some(Self { ids, offsets })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ids of row `index`, or `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<&'a [TokenId]> {
        let end = *self.offsets.get(index.checked_add(1)?)?;
        self.ids.get(self.offsets[index] as usize..end as usize)
    }

    /// All rows in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [TokenId]> + DoubleEndedIterator + use<'a> {
        let Self { ids, offsets } = *self;
        offsets.windows(2).map(move |pair| ids.get(pair[0] as usize..pair[1] as usize).unwrap_or_default())
    }

    /// Copies some rows; a row that does not exist is empty.
    pub fn select(&self, indices: impl Iterator<Item = usize>) -> Batch {
        let mut batch = Batch { ids: Vec::new(), offsets: vec![0] };
        for index in interrupt::ticking(indices) {
            let row = self.get(index).unwrap_or_default();
            append(&mut batch.ids, row);
            push(&mut batch.offsets, batch.ids.len() as i64);
        }
        batch
    }

    /// The length of the longest row; 0 without rows.
    pub fn max_len(&self) -> usize {
        self.iter().map(<[TokenId]>::len).max().unwrap_or_default()
    }

    /// Pads all rows to one length.
    ///
    /// # Errors
    /// [`PaddingError`]: a row is longer than the requested length, or the result does not fit into memory or
    /// needlessly has more than 2^24 ids per row.
    ///
    /// # Examples
    /// ```
    /// use ggtok_core::batch::{Padding, Rows, Side};
    ///
    /// let rows = Rows::new(&[5, 6, 7], &[0, 2, 3]).unwrap();
    /// let padding = Padding { value: 9, side: Side::Left, length: None, multiple_of: 1 };
    /// let padded = rows.pad(padding).unwrap();
    /// assert_eq!((padded.ids, padded.length), (vec![5, 6, 9, 7], 2));
    /// assert_eq!(padded.mask, [true, true, false, true]);
    /// ```
    pub fn pad(&self, padding: Padding) -> Result<Padded, PaddingError> {
        let longest = self.max_len();
        let wanted = padding.length.unwrap_or(longest);
        let too_large = PaddingError::TooLarge { rows: self.len(), length: wanted };
        let length = wanted.checked_next_multiple_of(padding.multiple_of.max(1)).ok_or(too_large)?;
        if let Some((row, ids)) = self.iter().enumerate().find(|(_, ids)| ids.len() > length) {
            return Err(PaddingError::TooLong { row, len: ids.len(), length });
        }

        let too_large = PaddingError::TooLarge { rows: self.len(), length };
        if length > longest.max(MAX_SPARE_LEN) {
            return Err(too_large);
        }
        let size = self.len().checked_mul(length).ok_or(too_large)?;
        let mut ids = Vec::new();
        let mut mask = Vec::new();
        ids.try_reserve_exact(size).map_err(|_| too_large)?;
        mask.try_reserve_exact(size).map_err(|_| too_large)?;
        for row in interrupt::ticking(self.iter()) {
            let end = ids.len() + length;
            if padding.side == Side::Left {
                ids.resize(end - row.len(), padding.value);
                mask.resize(end - row.len(), false);
            }
            ids.extend_from_slice(row);
            mask.resize(ids.len(), true);
            ids.resize(end, padding.value);
            mask.resize(end, false);
        }
        Ok(Padded { ids, mask, length })
    }
}

/// Where padding goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Before the ids.
    Left,
    /// After the ids.
    Right,
}

/// How rows are padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Padding {
    /// The id to pad with.
    pub value: TokenId,
    /// Which side.
    pub side: Side,
    /// The length of every row, at least the longest row's; `None` for the longest row's.
    pub length: Option<usize>,
    /// The length is rounded up to a multiple of this; 0 means 1.
    pub multiple_of: usize,
}

/// Rows of one length, end to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Padded {
    /// `length` ids per row.
    pub ids: Vec<TokenId>,
    /// Whether each id comes from a text.
    pub mask: Vec<bool>,
    /// Ids per row.
    pub length: usize,
}

errors! {
    /// Why rows cannot be padded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    #[non_exhaustive]
    #[allow(missing_docs, reason = "fields say what they are")]
    pub enum PaddingError {
        /// A row has more ids than the requested length.
        TooLong { row: usize, len: usize, length: usize } =>
            "text {row} has {len} tokens, which is more than the length {length}";
        /// The result does not fit into memory, or is far longer than any row.
        TooLarge { rows: usize, length: usize } => "{rows} rows of {length} ids each are too large";
    }
}

#[cfg(test)]
mod tests {
    use super::{Padding, PaddingError, Rows, Side};
    use proptest::prelude::*;

    #[test]
    fn offsets_are_checked() {
        let ids = [1, 2, 3];
        for offsets in [&[][..], &[1, 3], &[0, 2], &[0, 4], &[0, 2, 1, 3], &[0, -1, 3], &[3, 0]] {
            assert_eq!(Rows::new(&ids, offsets), None, "{offsets:?}");
        }
        assert!(Rows::new(&ids, &[0, 0, 3, 3]).is_some_and(|rows| rows.len() == 3 && rows.get(3).is_none()));
        assert!(Rows::new(&[], &[0]).is_some_and(|rows| rows.is_empty() && rows.max_len() == 0));
    }

    #[test]
    fn what_has_no_room_is_an_error() {
        let rows = Rows::new(&[1, 2, 3], &[0, 1, 3]).unwrap();
        let padding = Padding { value: 0, side: Side::Right, length: Some(1), multiple_of: 1 };
        let error = PaddingError::TooLong { row: 1, len: 2, length: 1 };
        assert_eq!(rows.pad(padding), Err(error));
        assert_eq!(error.to_string(), "text 1 has 2 tokens, which is more than the length 1");
        for (length, multiple_of) in
            [(usize::MAX, 1), (usize::MAX / 2, 1), (usize::MAX, 2), (1 << 60, 1), ((1 << 24) + 1, 1)]
        {
            let padding = Padding { length: Some(length), multiple_of, ..padding };
            assert!(matches!(rows.pad(padding), Err(PaddingError::TooLarge { .. })), "{length}");
        }
    }

    proptest! {
        #[test]
        fn padding_and_selecting_keep_the_rows(
            texts in prop::collection::vec(prop::collection::vec(0..9i32, 0..6), 0..6),
            spare in prop::option::of(0..4usize),
            multiple_of in 0..5usize,
            left in any::<bool>(),
        ) {
            let ids = texts.concat();
            let mut offsets = vec![0];
            offsets.extend(texts.iter().scan(0, |sum, text| {
                *sum += text.len() as i64;
                Some(*sum)
            }));
            let rows = Rows::new(&ids, &offsets).unwrap();
            prop_assert_eq!(rows.iter().collect::<Vec<_>>(), texts.iter().collect::<Vec<_>>());

            let length = spare.map(|spare| rows.max_len() + spare);
            let side = if left { Side::Left } else { Side::Right };
            let padded = rows.pad(Padding { value: -7, side, length, multiple_of }).unwrap();
            prop_assert_eq!(padded.length % multiple_of.max(1), 0);
            prop_assert!(padded.length < length.unwrap_or(rows.max_len()) + multiple_of.max(1));
            prop_assert_eq!(padded.ids.len(), padded.length * texts.len());
            for (row, text) in texts.iter().enumerate() {
                let range = row * padded.length..(row + 1) * padded.length;
                let ids = &padded.ids[range.clone()];
                let mask = &padded.mask[range];
                let kept: Vec<i32> = ids.iter().zip(mask).filter(|(_, kept)| **kept).map(|(&id, _)| id).collect();
                prop_assert_eq!(&kept, text);
                let start = if left { padded.length - text.len() } else { 0 };
                prop_assert_eq!(&ids[start..start + text.len()], &text[..]);
                prop_assert!(ids.iter().zip(mask).all(|(&id, &kept)| kept || id == -7));
            }

            let reversed = rows.select((0..rows.len()).rev());
            prop_assert_eq!(reversed.rows().iter().rev().collect::<Vec<_>>(), rows.iter().collect::<Vec<_>>());
        }
    }
}
