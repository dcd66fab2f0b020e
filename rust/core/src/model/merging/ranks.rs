//! Merge ranks by pairs of symbols.
//!
//! A symbol is a text that takes part in merging: a token, or one of the texts that merges make or need without their
//! being tokens (numbered behind the tokens). llama.cpp looks merges up by the texts of the two parts; as equal texts
//! are equal symbols here, a pair of numbers says the same. Open addressing, 8 bytes a slot, one probe for most pairs:
//! tables outgrow the near caches, so their size is what a look-up costs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::thread;

use super::symbol::{NO_RANK, NO_SYMBOL, RANKS, Symbol};
use crate::error::VocabularyError;
use crate::lookup::hash::Seed;
use crate::lookup::index::TOGETHER;
use crate::lookup::key::Key;
use crate::sink::TokenId;
use crate::vocabulary::strings::Strings;
use crate::vocabulary::{Vocabulary, c_string};

/// Slots of a [`Memo`].
const MEMO_SLOTS: usize = 1 << 13;
/// Slots that are filled together, a power of two: 128 KiB.
const STRETCH: usize = 1 << 14;
/// More merges than chance brings to one home: a file can have one merge very often, and of these only the first counts.
const MOST_AT_HOME: usize = 32;
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
        table.fill(&rows)?;
        Ok((table, rows))
    }

    /// Merges of these symbols, all of them tokens.
    #[cfg(test)]
    pub(crate) fn of_rows(tokens: usize, rows: &[Row]) -> Result<Self, VocabularyError> {
        let mut table = Self { tokens, ..Self::default() };
        table.fill(rows)?;
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

    /// Fills the table; of a large one two threads fill a half each.
    fn fill(&mut self, rows: &[Row]) -> Result<(), VocabularyError> {
        // No symbol has all bits set, so that no merge looks like a free slot.
        self.symbol_bits = bits(self.tokens + self.others.len() + 1);
        self.rank_bits = bits(rows.len());
        if rows.len() >= RANKS || 2 * self.symbol_bits + self.rank_bits > u64::BITS {
            return Err(VocabularyError::TooLarge { what: "merges" });
        }
        let count = (rows.len() + rows.len() / 2).next_power_of_two().max(16);
        self.merged = rows.iter().map(|row| row[2]).collect();
        self.bases = rows.chunks(BLOCK).map(|block| block.iter().map(|row| row[2]).min().unwrap_or_default()).collect();
        (self.slots, self.present) = self.filled(rows, count);
        Ok(())
    }

    /// A table of `count` slots with these merges, and the bits that belong to it.
    fn filled(&self, rows: &[Row], count: usize) -> (Vec<u64>, Vec<u64>) {
        let (mut slots, mut present) = (vec![FREE; count], vec![0; count * BITS_PER_SLOT / 64]);
        let mask = count - 1;
        let (merges, ends) = self.by_stretch(rows, mask);
        let middle = count / STRETCH / 2;
        let (slots_before, slots_after) = slots.split_at_mut(middle * STRETCH);
        let (present_before, present_after) = present.split_at_mut(middle * STRETCH * BITS_PER_SLOT / 64);
        let mut first = Part { ends: &ends[..=middle], slots: slots_before, present: present_before };
        let mut second = Part { ends: &ends[middle..], slots: slots_after, present: present_after };
        let (mut left_over, of_second) = thread::scope(|scope| {
            let of_second = thread::Builder::new().spawn_scoped(scope, || self.fill_part(&merges, mask, &mut second));
            (self.fill_part(&merges, mask, &mut first), of_second.ok().and_then(|of_second| of_second.join().ok()))
        });
        left_over.extend(of_second.unwrap_or_else(|| self.fill_part(&merges, mask, &mut second)));
        for merge in left_over {
            let home = self.hash(merge) as usize & mask;
            let free = (home..).map(|at| at & mask).find(|&at| slots[at] == FREE);
            // At least a third of the slots are free.
            free.into_iter().for_each(|at| slots[at] = merge);
        }
        (slots, present)
    }

    /// Merges as they are in their slots, those of one stretch together, lower ranks first; and where each stretch begins,
    /// and the last one ends.
    fn by_stretch(&self, rows: &[Row], mask: usize) -> (Vec<u64>, Vec<usize>) {
        let known = || rows.iter().zip(0_u64..).filter(|(row, _)| row[2] != NO_SYMBOL);
        let stretch = |row: &Row| (self.seed.hash_pair(row[0], row[1]) as usize & mask) / STRETCH;
        let mut ends = vec![0; mask / STRETCH + 3];
        for (row, _) in known() {
            ends[stretch(row) + 2] += 1;
        }
        for at in 2..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut merges = vec![FREE; rows.len()];
        for (row, rank) in known() {
            let next = &mut ends[stretch(row) + 1];
            let far = u64::from(row[2] - self.bases[rank as usize / BLOCK]).min(self.farthest());
            merges[*next] = !((self.key(row[0], row[1]) << self.rank_bits | rank) << self.far_bits() | far);
            *next += 1;
        }
        ends.pop();
        (merges, ends)
    }

    /// Fills a part of the table, and gives the merges that find no room before its end. Where each merge goes is counted
    /// beforehand, so that no slot is tried in vain: those of one home lie one after the other, from there on or behind
    /// those that are at home before them.
    fn fill_part(&self, merges: &[u64], mask: usize, part: &mut Part<'_>) -> Vec<u64> {
        let mut left_over = Vec::new();
        let mut places = vec![0; STRETCH.min(part.slots.len())];
        let mut free = 0;
        let count = |merges: &[u64], places: &mut [usize]| {
            places.fill(0);
            merges.iter().for_each(|&merge| places[self.hash(merge) as usize & mask & (STRETCH - 1)] += 1);
        };
        for (stretch, ends) in part.ends.windows(2).enumerate() {
            let begin = stretch * STRETCH;
            let mut merges = Cow::Borrowed(&merges[ends[0]..ends[1]]);
            count(&merges, &mut places);
            if places.iter().any(|&count| count > MOST_AT_HOME) {
                let mut pairs = HashSet::new();
                merges.to_mut().retain(|&merge| pairs.insert(self.key_of(!merge)));
                count(&merges, &mut places);
            }
            for (place, home) in places.iter_mut().zip(begin..) {
                free = home.max(free);
                free += std::mem::replace(place, free);
            }
            for &merge in &*merges {
                let hash = self.hash(merge);
                let home = hash as usize & mask & (STRETCH - 1);
                let bit = place_of_bit(begin + home, hash);
                part.present[bit / 64] |= 1 << (bit % 64);
                match part.slots.get_mut(places[home]) {
                    Some(slot) => *slot = merge,
                    None => left_over.push(merge),
                }
                places[home] += 1;
            }
        }
        left_over
    }

    /// The hash of the pair in a slot.
    fn hash(&self, slot: u64) -> u64 {
        let pair = self.key_of(!slot);
        self.seed.hash_pair((pair >> self.symbol_bits) as Symbol, (pair & ((1 << self.symbol_bits) - 1)) as Symbol)
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

/// A part of the table.
struct Part<'a> {
    /// Where its stretches begin among all merges, and where the last one ends.
    ends: &'a [usize],
    slots: &'a mut [u64],
    present: &'a mut [u64],
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
    let (keys, data) = (vocabulary.keys(), merges.data());
    let has_spaces = keys.contains(b' ');
    let mut rows = Vec::with_capacity(end - begin);
    let mut both = Vec::new();
    // Merges mostly make the tokens in order, so the next one is the first guess.
    let mut guess = NO_SYMBOL;
    for first in (begin..end).step_by(TOGETHER) {
        let mut lefts = [(&b""[..], Key::default()); TOGETHER];
        let (mut rights, mut merged) = (lefts, [NO_SYMBOL; TOGETHER]);
        let count = TOGETHER.min(end - first);
        for at in 0..count {
            let Some(Range { start, end }) = merges.range(first + at) else { continue };
            let (merge, key) = (&data[start..end], Key::new(data, start, end));
            let parted = [guess, guess.wrapping_add(1)].into_iter().find_map(|guess| {
                let (left, right) = key?.parted(keys.key(guess as usize)?)?;
                let space = left.word_len();
                let is_first = !(has_spaces && merge[1..space].contains(&b' '));
                is_first.then_some((guess, (&merge[..space], left), (&merge[space + 1..], right)))
            });
            if let Some(parted) = parted {
                (guess, lefts[at], rights[at]) = parted;
            } else if let Some((left, right)) = parts(merge) {
                [lefts[at], rights[at]] =
                    [left, right].map(|text| (text, Key::new(text, 0, text.len()).unwrap_or_default()));
                both.clear();
                both.extend_from_slice(left);
                both.extend_from_slice(right);
                let next = guess.wrapping_add(1);
                let is_next = keys.get(next as usize) == both && !both.is_empty();
                guess = if is_next { next } else { symbol(vocabulary.id(&both)) };
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Merges, NO_RANK, NO_SYMBOL, Row};
    use crate::error::VocabularyError;
    use crate::vocabulary::strings::{StringIndex, Strings};
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

    proptest! {
        /// Tokens in any order, and merges that make some of them in order.
        #[test]
        fn merges_are_parted_at_the_first_space_after_the_first_byte(
            tokens in prop::collection::hash_set("[ab ]{1,4}|[ab ]{13,19}", 1..30),
            parts in prop::collection::vec((any::<prop::sample::Index>(), 0..20_usize), 0..60),
            others in prop::collection::vec("[ab \0]{0,6}", 0..5),
        ) {
            let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
            let spaced = parts.iter().map(|(which, at)| {
                let (left, right) = which.get(&tokens).split_at((*at).min(which.get(&tokens).len()));
                format!("{left} {right}")
            });
            let in_order = tokens.iter().map(|token| format!("{} {}", &token[..1], &token[1..]));
            let merges: Vec<String> = in_order.chain(spaced).chain(others).collect();
            let merges: Vec<&str> = merges.iter().map(String::as_str).collect();
            with(&tokens, &merges, |vocabulary, table| {
                for (merge, &made) in merges.iter().zip(&table.merged) {
                    let Some((left, right)) = super::parts(merge.as_bytes()) else { continue };
                    let [left_symbol, right_symbol] = [left, right].map(|text| table.symbol(vocabulary, text));
                    assert_eq!(made, table.symbol(vocabulary, &[left, right].concat()), "{merge:?}");
                    assert_eq!(table.get(left_symbol, right_symbol).1, made, "{merge:?}");
                }
            }).expect("few tokens");
        }
    }

    #[test]
    fn of_equal_merges_the_first_counts() -> Result<(), VocabularyError> {
        with(&["a", "b"], &["b a", "a b", "a b", "b a"], |_, merges| {
            assert_eq!((merges.get(0, 1).0, merges.get(1, 0).0), (1, 0));
        })
    }

    #[test]
    fn a_merge_may_come_very_often() -> Result<(), VocabularyError> {
        let merges: Vec<&str> = ["a b", "b a"].repeat(200_000);
        with(&["a", "b"], &[&merges[..], &["a a"]].concat(), |_, merges| {
            assert_eq!(
                [(0, 1), (1, 0), (0, 0), (1, 1)].map(|(left, right)| merges.get(left, right).0),
                [0, 1, 400_000, NO_RANK]
            );
            assert_eq!(merges.slots.iter().filter(|&&slot| slot != super::FREE).count(), 3);
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
