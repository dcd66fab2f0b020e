//! Merge ranks by pairs of symbols.
//!
//! A symbol is a text that takes part in merging: a token, or one of the texts that merges make or need without their
//! being tokens (numbered behind the tokens). llama.cpp looks merges up by the texts of the two parts; as equal texts
//! are equal symbols here, a pair of numbers says the same. Open addressing, 8 bytes a slot, one probe for most pairs:
//! tables outgrow the near caches, so their size is what a look-up costs.

use std::collections::HashMap;
use std::ops::Range;
use std::thread;

use super::merging::NO_RANK;
use super::merging::lanes::RANKS;
use crate::error::VocabularyError;
use crate::hash::Seed;
use crate::index::TOGETHER;
use crate::sink::TokenId;
use crate::strings::Strings;
use crate::vocabulary::{Vocabulary, c_string};

/// A text with a number.
pub(crate) type Symbol = u32;
/// A character that is neither a token nor part of any merge.
pub(crate) const NO_SYMBOL: Symbol = u32::MAX;

/// Slots of a [`Memo`].
const MEMO_SLOTS: usize = 1 << 13;
/// Slots that are filled together: 128 KiB.
const STRETCH: usize = 1 << 14;
/// Bits in [`Merges::present`] for each slot.
const BITS_PER_SLOT: usize = 4;

/// Ranks in a block.
const BLOCK: usize = 128;
/// A slot without a merge.
const FREE: u64 = 0;

/// The merges of a vocabulary.
#[derive(Debug, Default)]
pub(crate) struct Merges {
    seed: Seed,
    /// The left symbol, the right symbol, the rank and how far the symbol of both is from the base of its block, from the
    /// highest bit on; inverted, so that [`FREE`] is 0, of which the system has memory in store.
    slots: Vec<u64>,
    /// Bits of a symbol in a slot.
    symbol_bits: u32,
    /// Bits of a rank in a slot.
    rank_bits: u32,
    /// By rank the symbol of both texts together.
    merged: Vec<Symbol>,
    /// By block of ranks the lowest symbol that it makes. Merges mostly make tokens in order, so the others are not far, and
    /// a slot says what it makes: `merged` would be a second read of memory that no near cache holds.
    bases: Vec<Symbol>,
    /// Some bits for each slot, one of them by hash for each merge that belongs there: most pairs do not merge, and these
    /// bits tell so from a cache that the slots outgrow.
    present: Vec<u64>,
    /// The symbols that are no tokens, numbered behind the tokens.
    others: HashMap<Box<[u8]>, Symbol>,
    tokens: usize,
}

/// What merging two symbols gives.
#[derive(Debug, Clone, Copy)]
struct Merge {
    left: Symbol,
    right: Symbol,
    /// Lower ranks merge first.
    rank: u32,
    /// The symbol of both texts together.
    merged: Symbol,
}

/// A look-up that has begun.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Probe {
    left: Symbol,
    right: Symbol,
    slot: u32,
    is_present: bool,
}

impl Probe {
    /// Whether the look-up is worth ending: most pairs do not merge.
    #[inline(always)]
    pub(crate) fn may_merge(self) -> bool {
        self.is_present
    }
}

/// The latest look-ups, in a table that fits into the nearest cache: few pairs make up most of a language.
#[derive(Debug)]
pub(crate) struct Memo(Vec<Merge>);

impl Default for Memo {
    fn default() -> Self {
        Self(vec![Merge { left: NO_SYMBOL, right: NO_SYMBOL, rank: NO_RANK, merged: NO_SYMBOL }; MEMO_SLOTS])
    }
}

impl Memo {
    /// As [`Merges::get`] of the same vocabulary.
    #[inline]
    pub(crate) fn get(&mut self, merges: &Merges, left: Symbol, right: Symbol) -> (u32, Symbol) {
        let at = merges.seed.hash_pair(left, right) as usize % MEMO_SLOTS;
        let slot = &mut self.0[at];
        if (slot.left, slot.right) != (left, right) {
            let (rank, merged) = merges.get(left, right);
            *slot = Merge { left, right, rank, merged };
        }
        (slot.rank, slot.merged)
    }
}

impl Merges {
    /// Reads merges, each `left right`; of two for the same pair the first counts. Gives their symbols too, in order of
    /// rank.
    ///
    /// A merge without a space can never apply and is passed over, as in llama.cpp.
    ///
    /// # Errors
    /// [`VocabularyError::TooLarge`] where symbols outgrow 32 bits.
    pub(crate) fn new(
        vocabulary: &Vocabulary,
        merges: Option<Strings<'_>>,
    ) -> Result<(Self, Vec<Row>), VocabularyError> {
        let count = merges.as_ref().map_or(0, Strings::len);
        if count >= NO_RANK as usize - vocabulary.len() {
            return Err(VocabularyError::TooLarge { what: "merges" });
        }
        let mut table = Self { tokens: vocabulary.len(), ..Self::default() };
        let rows = merges.map_or_else(Vec::new, |merges| table.rows(vocabulary, merges));
        table.fill_from(&rows)?;
        Ok((table, rows))
    }

    /// Merges of these symbols, all of them tokens.
    #[cfg(test)]
    pub(crate) fn of_rows(tokens: usize, rows: &[Row]) -> Result<Self, VocabularyError> {
        let mut table = Self { tokens, ..Self::default() };
        table.fill_from(rows)?;
        Ok(table)
    }

    /// The symbols of each merge, in order of rank. Tokens are looked up on two threads.
    fn rows(&mut self, vocabulary: &Vocabulary, merges: Strings<'_>) -> Vec<Row> {
        let (count, half) = (merges.len(), merges.len() / 2);
        let mut rows = Vec::with_capacity(count);
        thread::scope(|scope| {
            let look_up = move |begin, end| token_rows(vocabulary, merges, begin, end);
            let second = thread::Builder::new().spawn_scoped(scope, move || look_up(half, count));
            rows.extend(token_rows(vocabulary, merges, 0, half));
            match second.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(second)) => rows.extend(second),
                Ok(Err(_)) | Err(_) => rows.extend(token_rows(vocabulary, merges, half, count)),
            }
        });
        for (row, merge) in rows.iter_mut().zip(merges.iter()) {
            if row.contains(&NO_SYMBOL)
                && let Some((left, right)) = parts(merge)
            {
                *row = [left, right, &[left, right].concat()].map(|text| self.symbol_or_new(vocabulary, text));
            }
        }
        rows
    }

    /// Fills the table, a stretch of slots at a time: as many as stay in a near cache. Of a large table two threads fill a
    /// half each.
    fn fill_from(&mut self, rows: &[Row]) -> Result<(), VocabularyError> {
        // No symbol has all bits set, so that no merge looks like a free slot.
        self.symbol_bits = bits(self.tokens + self.others.len() + 1);
        self.rank_bits = bits(rows.len());
        if rows.len() >= RANKS || 2 * self.symbol_bits + self.rank_bits > u64::BITS {
            return Err(VocabularyError::TooLarge { what: "merges" });
        }
        let slots = (rows.len() + rows.len() / 2).next_power_of_two().max(16);
        self.merged = rows.iter().map(|row| row[2]).collect();
        self.bases = rows.chunks(BLOCK).map(|block| block.iter().map(|row| row[2]).min().unwrap_or_default()).collect();
        let known = || rows.iter().zip(0_u64..).filter(|(row, _)| row[2] != NO_SYMBOL);
        let stretch = |row: &Row| (self.seed.hash_pair(row[0], row[1]) as usize & (slots - 1)) / STRETCH;
        let mut ends = vec![0; slots / STRETCH + 2];
        for (row, _) in known() {
            ends[stretch(row) + 1] += 1;
        }
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut merges = vec![0; rows.len()];
        for (row, rank) in known() {
            let next = &mut ends[stretch(row)];
            let far = u64::from(row[2] - self.bases[rank as usize / BLOCK]).min(self.farthest());
            merges[*next] = (self.key(row[0], row[1]) << self.rank_bits | rank) << self.far_bits() | far;
            *next += 1;
        }
        // A stretch now ends where the next one begins.
        let middle = slots / STRETCH / 2;
        let (begin, end) = (if middle > 0 { ends[middle - 1] } else { 0 }, ends[ends.len() - 2]);
        let (first, second) = thread::scope(|scope| {
            let fill = || self.fill(&merges[begin..end], slots - 1, middle * STRETCH..slots);
            let second = thread::Builder::new().spawn_scoped(scope, fill);
            let first = self.fill(&merges[..begin], slots - 1, 0..middle * STRETCH);
            (first, second.map_or_else(|_| fill(), |second| second.join().unwrap_or_else(|_| fill())))
        });
        (self.slots, self.present) = (first.slots, first.present);
        self.slots.extend(second.slots);
        self.present.extend(second.present);
        for merge in first.left_over.into_iter().chain(second.left_over) {
            let mut at = self.hash(merge) as usize & (slots - 1);
            while self.slots[at] != FREE && !self.is_of_same_pair(self.slots[at], merge) {
                at = (at + 1) & (slots - 1);
            }
            if self.slots[at] == FREE {
                self.slots[at] = !merge;
            }
        }
        Ok(())
    }

    /// Fills the slots of some places with those of the merges that find room there before the last one.
    fn fill(&self, merges: &[u64], mask: usize, places: Range<usize>) -> Filled {
        let (slots, present) = (vec![FREE; places.len()], vec![0; places.len() * BITS_PER_SLOT / 64]);
        let mut filled = Filled { slots, present, left_over: Vec::new() };
        for &merge in merges {
            let hash = self.hash(merge);
            let mut at = (hash as usize & mask) - places.start;
            let bit = place_of_bit(at, hash);
            filled.present[bit / 64] |= 1 << (bit % 64);
            loop {
                match filled.slots.get_mut(at) {
                    None => break filled.left_over.push(merge),
                    Some(slot @ &mut FREE) => break *slot = !merge,
                    // Of two merges for the same pair the first counts.
                    Some(slot) if self.is_of_same_pair(*slot, merge) => break,
                    Some(_) => at += 1,
                }
            }
        }
        filled
    }

    /// The hash of a merge's pair, given what its slot has, but not inverted.
    fn hash(&self, merge: u64) -> u64 {
        let pair = self.key_of(merge);
        self.seed.hash_pair((pair >> self.symbol_bits) as Symbol, (pair & ((1 << self.symbol_bits) - 1)) as Symbol)
    }

    fn is_of_same_pair(&self, slot: u64, merge: u64) -> bool {
        self.key_of(!slot) == self.key_of(merge)
    }

    /// The rank of two adjacent symbols and the symbol of both together; [`NO_RANK`] where they do not merge.
    #[inline]
    pub(crate) fn get(&self, left: Symbol, right: Symbol) -> (u32, Symbol) {
        self.complete(self.probe(left, right))
    }

    /// Begins a look-up. Takes no branch, so that look-ups can begin while others wait for memory.
    #[inline(always)]
    pub(crate) fn probe(&self, left: Symbol, right: Symbol) -> Probe {
        let hash = self.seed.hash_pair(left, right);
        let slot = hash as usize & (self.slots.len() - 1);
        let bit = place_of_bit(slot, hash);
        let is_present = self.present[bit / 64] >> (bit % 64) & 1 != 0;
        Probe { left, right, slot: slot as u32, is_present }
    }

    /// Ends a look-up; what it gives is that of [`Merges::get`].
    #[inline(always)]
    pub(crate) fn complete(&self, probe: Probe) -> (u32, Symbol) {
        let Probe { left, right, slot, is_present } = probe;
        if !is_present || u64::from(left | right) >> self.symbol_bits != 0 {
            return (NO_RANK, NO_SYMBOL);
        }
        let (key, mut at) = (self.key(left, right), slot as usize);
        loop {
            let slot = !self.slots[at];
            if self.key_of(slot) == key {
                let rank = slot >> self.far_bits() & ((1 << self.rank_bits) - 1);
                let (rank, far) = (rank as usize, slot & self.farthest());
                let is_far = far == self.farthest();
                return (
                    rank as u32,
                    if is_far { self.merged[rank] } else { self.bases[rank / BLOCK] + far as Symbol },
                );
            }
            if slot == !FREE {
                return (NO_RANK, NO_SYMBOL);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Two symbols in one number.
    #[inline]
    fn key(&self, left: Symbol, right: Symbol) -> u64 {
        u64::from(left) << self.symbol_bits | u64::from(right)
    }

    /// The symbols in a slot that is not inverted.
    #[inline]
    fn key_of(&self, slot: u64) -> u64 {
        slot >> (u64::BITS - 2 * self.symbol_bits)
    }

    /// Bits of how far a symbol is from the base of its block: those that a slot has left.
    #[inline]
    fn far_bits(&self) -> u32 {
        u64::BITS - 2 * self.symbol_bits - self.rank_bits
    }

    /// As far as a slot can tell, or farther.
    #[inline]
    fn farthest(&self) -> u64 {
        (1 << self.far_bits()) - 1
    }

    /// The symbol of a text, or [`NO_SYMBOL`].
    pub(crate) fn symbol(&self, vocabulary: &Vocabulary, text: &[u8]) -> Symbol {
        match vocabulary.id(text) {
            Some(id) => id as Symbol,
            None => self.others.get(text).copied().unwrap_or(NO_SYMBOL),
        }
    }

    fn symbol_or_new(&mut self, vocabulary: &Vocabulary, text: &[u8]) -> Symbol {
        let known = self.symbol(vocabulary, text);
        if known != NO_SYMBOL {
            return known;
        }
        let number = (self.tokens + self.others.len()) as Symbol;
        self.others.insert(text.into(), number);
        number
    }

    /// The symbols that are no tokens, with their texts.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&[u8], Symbol)> {
        self.others.iter().map(|(text, &symbol)| (&text[..], symbol))
    }

    /// By symbol the lowest rank of a merge that makes it, or [`NO_RANK`].
    pub(crate) fn first_ranks(&self) -> Vec<u32> {
        let mut ranks = vec![NO_RANK; self.tokens + self.others.len()];
        for (rank, &symbol) in (0..).zip(&self.merged) {
            if let Some(first) = ranks.get_mut(symbol as usize) {
                *first = rank.min(*first);
            }
        }
        ranks
    }

    /// Whether a symbol is a token.
    #[inline]
    pub(crate) fn is_token(&self, symbol: Symbol) -> bool {
        (symbol as usize) < self.tokens
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let others: usize = self.others.keys().map(|text| text.len() + size_of::<(Box<[u8]>, Symbol)>()).sum();
        (self.slots.capacity() + self.present.capacity()) * size_of::<u64>()
            + (self.merged.capacity() + self.bases.capacity()) * size_of::<Symbol>()
            + others
    }
}

/// A stretch of the table.
struct Filled {
    slots: Vec<u64>,
    present: Vec<u64>,
    /// Merges that found no room before the end.
    left_over: Vec<u64>,
}

/// Bits of the numbers below `count`, one at least.
fn bits(count: usize) -> u32 {
    count.next_power_of_two().trailing_zeros().max(1)
}

/// Which bit belongs to a pair with this hash, whose slot is `at` or after it.
#[inline]
fn place_of_bit(at: usize, hash: u64) -> usize {
    at * BITS_PER_SLOT + (hash >> 32) as usize % BITS_PER_SLOT
}

/// The left, right and merged symbols of a merge; [`NO_SYMBOL`] where a text is no token, or there is no space.
pub(crate) type Row = [Symbol; 3];

/// The two texts of a merge. A merge ends at a NUL byte, as C strings do; the space is not its first byte.
fn parts(merge: &[u8]) -> Option<(&[u8], &[u8])> {
    let merge = c_string(merge);
    let space = memchr::memchr(b' ', merge.get(1..)?)? + 1;
    Some((&merge[..space], &merge[space + 1..]))
}

/// The tokens of the merges `begin..end`.
fn token_rows(vocabulary: &Vocabulary, merges: Strings<'_>, begin: usize, end: usize) -> Vec<Row> {
    let symbol = |id: Option<TokenId>| id.map_or(NO_SYMBOL, |id| id as Symbol);
    let keys = vocabulary.keys();
    let has_spaces = keys.contains(b' ');
    let mut rows = Vec::with_capacity(end - begin);
    let mut both = Vec::new();
    // Merges mostly make the tokens in order, so the next one is the first guess.
    let mut guess = NO_SYMBOL;
    for first in (begin..end).step_by(TOGETHER) {
        let (mut lefts, mut rights, mut merged) = ([&b""[..]; TOGETHER], [&b""[..]; TOGETHER], [NO_SYMBOL; TOGETHER]);
        let count = TOGETHER.min(end - first);
        for at in 0..count {
            let merge = merges.get(first + at).unwrap_or_default();
            let guessed = [guess, guess.wrapping_add(1)]
                .into_iter()
                .find_map(|guess| Some((guess, place_of_space(merge, keys.get(guess as usize), has_spaces)?)));
            if let Some((id, space)) = guessed {
                (lefts[at], rights[at]) = (&merge[..space], &merge[space + 1..]);
                guess = id;
            } else if let Some((left, right)) = parts(merge) {
                (lefts[at], rights[at]) = (left, right);
                both.clear();
                both.extend_from_slice(left);
                both.extend_from_slice(right);
                guess = symbol(vocabulary.id(&both));
            } else {
                continue;
            }
            merged[at] = guess;
        }
        let symbols = vocabulary.ids(&lefts).into_iter().zip(vocabulary.ids(&rights)).zip(merged);
        rows.extend(symbols.take(count).map(|((left, right), merged)| [symbol(left), symbol(right), merged]));
    }
    rows
}

/// Where [`parts`] parts a merge, if both parts together are `token`. Told by where the two begin to differ, which is
/// less work than to search for the space.
#[inline]
fn place_of_space(merge: &[u8], token: &[u8], has_spaces: bool) -> Option<usize> {
    if merge.len() != token.len() + 1 {
        return None;
    }
    let at = merge.iter().zip(token).take_while(|(left, right)| left == right).count();
    let is_first = at > 0 && merge[at] == b' ' && !(has_spaces && merge[1..at].contains(&b' '));
    (is_first && merge[at + 1..] == token[at..]).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::{Merges, NO_SYMBOL, Row};
    use crate::error::VocabularyError;
    use crate::model::merging::NO_RANK;
    use crate::strings::{StringIndex, Strings};
    use crate::vocabulary::{Definition, Vocabulary};

    /// Calls `check` with these tokens and merges.
    fn with(tokens: &[&str], merges: &[&str], check: impl Fn(&Vocabulary, &Merges)) -> Result<(), VocabularyError> {
        let index = |texts: &[&str]| StringIndex::concatenate(texts).unwrap_or_default();
        let ((tokens, token_index), (merges, merge_index)) = (index(tokens), index(merges));
        let tokens: Strings<'_> = token_index.view(&tokens);
        let definition =
            Definition { model: "gpt2", pre: Some("gpt-2"), tokens: Some(tokens), ..Definition::default() };
        let definition = Definition { merges: Some(merge_index.view(&merges)), ..definition };
        let vocabulary = Vocabulary::declare(&definition)?;
        check(&vocabulary, &Merges::new(&vocabulary, definition.merges)?.0);
        Ok(())
    }

    #[test]
    fn many_merges_are_all_found() -> Result<(), VocabularyError> {
        let tokens: Vec<String> = (0..200).map(|number| format!("{number:03}")).collect();
        let pairs = (0..40_000).map(|number| (number % 200, number / 200)).filter(|(left, right)| left != right);
        let merges: Vec<String> = pairs.clone().map(|(left, right)| format!("{left:03} {right:03}")).collect();
        let [tokens, mut merges] = [&tokens, &merges].map(|texts| texts.iter().map(String::as_str).collect::<Vec<_>>());
        // Of two for the same pair the first counts.
        merges.extend_from_within(..1000);
        with(&tokens, &merges, |_, merges| {
            for (rank, (left, right)) in (0..).zip(pairs.clone()) {
                assert_eq!(merges.get(left, right).0, rank);
            }
            assert!((0..200).all(|symbol| merges.get(symbol, symbol).0 == NO_RANK));
        })
    }

    #[test]
    fn pairs_have_the_rank_and_the_text_of_their_merge() -> Result<(), VocabularyError> {
        with(&["a", "b", "ab", "abb"], &["a b", "ab b", "b b"], |vocabulary, merges| {
            let symbol = |text: &str| merges.symbol(vocabulary, text.as_bytes());
            assert_eq!([symbol("a"), symbol("b"), symbol("ab"), symbol("abb")], [0, 1, 2, 3]);
            assert_eq!(merges.get(symbol("a"), symbol("b")), (0, symbol("ab")));
            assert_eq!(merges.get(symbol("ab"), symbol("b")), (1, symbol("abb")));
            assert_eq!(merges.get(symbol("b"), symbol("a")).0, NO_RANK);
            // A merge may make what is no token, which may merge on.
            assert_eq!(merges.get(1, 1), (2, symbol("bb")));
            assert!(!merges.is_token(symbol("bb")) && merges.is_token(symbol("abb")));
            assert_eq!(symbol("c"), NO_SYMBOL);
            assert_eq!(merges.get(NO_SYMBOL, NO_SYMBOL).0, NO_RANK);
        })
    }

    #[test]
    fn merges_tell_what_they_make_however_far_from_each_other() -> Result<(), VocabularyError> {
        // Nearly in order, as training makes them, and some at the other end. 17 bits a symbol and 16 a rank leave 14.
        let rows: Vec<Row> = (0..60_000)
            .map(|at| [at, at % 7 + 1, if at % 50 == 0 { 119_000 + at / 60 } else { 1000 + at + at % 3 }])
            .collect();
        let merges = Merges::of_rows(120_000, &rows)?;
        assert!(merges.farthest() < 1 << 14);
        for (&[left, right, merged], rank) in rows.iter().zip(0..) {
            assert_eq!(merges.get(left, right), (rank, merged));
            assert_eq!(merges.get(left, right + 1), (NO_RANK, NO_SYMBOL));
        }
        Ok(())
    }

    #[test]
    fn of_equal_merges_the_first_counts() -> Result<(), VocabularyError> {
        with(&["a", "b"], &["b a", "a b", "a b", "b a"], |_, merges| {
            assert_eq!((merges.get(0, 1).0, merges.get(1, 0).0), (1, 0));
        })
    }

    #[test]
    fn what_is_no_merge_is_passed_over() -> Result<(), VocabularyError> {
        // Without a space; with one only in front, which is part of the left text; split at the first space after that.
        with(&["a", "b", " a"], &["ab", "", " ", " a b", "a b c"], |vocabulary, merges| {
            assert_eq!(merges.get(0, 1).0, NO_RANK);
            assert_eq!(merges.get(2, 1).0, 3);
            assert_eq!(merges.get(0, merges.symbol(vocabulary, b"b c")).0, 4);
        })
    }

    #[test]
    fn memory_is_counted() -> Result<(), VocabularyError> {
        with(&["a", "b"], &["a b"], |_, merges| {
            assert!((16 * size_of::<u64>()..4096).contains(&merges.heap_bytes()), "{}", merges.heap_bytes());
        })
    }
}
