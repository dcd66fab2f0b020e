//! A multi-pattern search in two passes that partitions a text into special tokens and the fragments between them.
//!
//! Special texts are searched one by one, longest first, each in the fragments that the ones before left. So matches
//! are neither leftmost nor longest at a position. A token may remove the whitespace around it. A first pass with a
//! double array finds which special texts occur at all; only those are searched.
//!
//! In a text made of parts, only some parts may allow control and unknown tokens. Such a token must lie wholly inside
//! one allowed range; everything else works as in a whole text.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `tokenizer_st_partition`. Complexity: O(n) for a text of n bytes without
//! special tokens, however many the vocabulary has; O(n · k) for a text with k different ones; O((n + r) · k) if r
//! ranges are allowed.
//!
//! Deviations: none; llama.cpp has no parts.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

mod settled;

use memchr::memmem;

use crate::error::VocabularyError;
use crate::lookup::trie::DoubleArray;
use crate::lookup::trie::backward::{Backward, SHORT};
use crate::token::TokenId;
use crate::vocabulary::{Attributes, Vocabulary};
use crate::work::heap::HeapBytes;
use crate::work::interrupt::{self, Ticker};
use crate::work::memory::{collect, push, with_room};

/// An item of a partitioned text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    /// A fragment of text for the model, as a byte range; never empty.
    Text(usize, usize),
    /// A special token, found at this byte range.
    Token(TokenId, usize, usize),
}

/// Buffers, reused from call to call.
#[derive(Debug, Default)]
pub(crate) struct SpecialScratch {
    items: Vec<Item>,
    /// The items from before the latest search.
    searched: Vec<Item>,
    /// Whether each special text occurs; empty if none does.
    present: Vec<bool>,
}

/// One special text.
#[derive(Debug)]
struct Special {
    id: TokenId,
    finder: memmem::Finder<'static>,
    /// Whether it is a token only if control tokens are parsed.
    is_control: bool,
    /// Whether it removes the whitespace before it.
    strips_before: bool,
    /// Whether it removes the whitespace after it.
    strips_after: bool,
}

/// The special texts for one setting of `parse_special`.
#[derive(Debug)]
pub(crate) struct Specials {
    /// In search order.
    order: Vec<Special>,
    /// The position of each special text in `order`.
    trie: DoubleArray,
    /// The same if some are long.
    long: Option<Backward>,
    /// Whether a special text starts with this byte.
    is_first: Box<[bool; 256]>,
    /// The bytes that special texts start with, if there are three or fewer.
    few_first: Option<Vec<u8>>,
    /// Pairs of positions in `order` whose tokens have the same text: the first such position, then another.
    twins: Vec<[u32; 2]>,
    /// The length of the longest special text in bytes.
    max_len: usize,
}

heap_bytes!(Specials: order, trie, long, is_first, few_first, twins);

impl Specials {
    /// The special texts of a vocabulary. Without `parse_special`, control and unknown tokens are left as text.
    ///
    /// # Errors
    /// [`VocabularyError::TooLarge`] if the texts do not fit into a double array.
    pub(crate) fn new(vocabulary: &Vocabulary, parse_special: bool) -> Result<Self, VocabularyError> {
        let order = (vocabulary.special_order().iter())
            .map(|&id| (id, vocabulary.attributes(id)))
            .map(|(id, attributes)| (id, attributes, attributes.is_control() || attributes.is_unknown()))
            .filter(|&(.., is_control)| parse_special || !is_control)
            .map(|(id, attributes, is_control)| Special {
                id,
                is_control,
                finder: memmem::Finder::new(vocabulary.text(id)).into_owned(),
                strips_before: attributes.contains(Attributes::LSTRIP),
                strips_after: attributes.contains(Attributes::RSTRIP),
            });
        let order = collect(order);

        let mut is_first = Box::new([false; 256]);
        for special in &order {
            if let Some(&first) = special.finder.needle().first() {
                is_first[usize::from(first)] = true;
            }
        }
        let first_bytes: Vec<u8> = (0..=255).filter(|&byte| is_first[usize::from(byte)]).collect();

        // In hybrid DNA, two tokens can have the same text. The first one in search order wins.
        let mut firsts = HashMap::new();
        let mut twins = Vec::new();
        // The others matter only for parts, which are searched with all tokens.
        for (special, place) in order.iter().zip(0..).filter(|_| parse_special) {
            match with_room(&mut firsts).entry(special.finder.needle()) {
                Entry::Occupied(first) => push(&mut twins, [*first.get(), place]),
                Entry::Vacant(slot) => _ = slot.insert(place),
            }
        }
        let keys = order.iter().enumerate().rev().map(|(place, special)| (special.finder.needle(), place as u32));
        Ok(Self {
            long: Backward::of_long(keys.clone())?,
            trie: DoubleArray::build(keys)?,
            few_first: (first_bytes.len() <= 3).then_some(first_bytes),
            is_first,
            twins,
            max_len: order.iter().map(|special| special.finder.needle().len()).max().unwrap_or(1),
            order,
        })
    }

    /// Partitions `text` into items, in text order. Control and unknown tokens are found only inside the ranges
    /// `allowed`, which are ascending and do not touch; `None` allows them everywhere.
    pub(crate) fn partition<'s>(
        &self,
        text: &[u8],
        allowed: Option<&[Range<usize>]>,
        scratch: &'s mut SpecialScratch,
    ) -> &'s [Item] {
        let SpecialScratch { items, searched, present } = scratch;
        items.clear();
        if text.is_empty() {
            return items;
        }
        items.push(Item::Text(0, text.len()));

        self.find_present(text, present);
        if allowed.is_some() && !present.is_empty() {
            // If the first of two tokens with the same text is not allowed, the second may be.
            for [first, other] in self.twins.iter().map(|pair| pair.map(|place| place as usize)) {
                present[other] |= present[first];
            }
        }
        let everything = 0..text.len();
        for (special, _) in self.order.iter().zip(present.iter()).filter(|(_, is_present)| **is_present) {
            interrupt::check();
            std::mem::swap(items, searched);
            items.clear();
            let allowed = allowed.filter(|_| special.is_control).unwrap_or(std::slice::from_ref(&everything));
            for item in interrupt::ticking(searched.iter()) {
                match *item {
                    Item::Text(start, end) => special.cut(text, start, end, allowed, items),
                    token @ Item::Token(..) => push(items, token),
                }
            }
        }
        items
    }

    /// Marks the special texts that occur in `text`; leaves `present` empty if none does.
    fn find_present(&self, text: &[u8], present: &mut Vec<bool>) {
        present.clear();
        let mut starts = self.long.as_ref().filter(|_| text.len() > SHORT).map(|long| long.starts(text));
        let mut ticker = Ticker::default();
        let mut look_up = |at: usize| {
            ticker.tick();
            let mut was_present = |(_, place): (usize, u32)| {
                present.resize(self.order.len(), false);
                std::mem::replace(&mut present[place as usize], true)
            };
            if let Some(starts) = &mut starts {
                // The longest one comes first, and the shorter ones have been found together with it.
                starts.keys(at).any(was_present);
                return;
            }
            count_steps!(1 + self.trie.longest_walk(&text[at..]));
            self.trie.common_prefix_matches(&text[at..]).for_each(|found| _ = was_present(found));
        };
        match self.few_first.as_deref() {
            Some([]) => {}
            Some(&[first]) => memchr::memchr_iter(first, text).for_each(&mut look_up),
            Some(&[first, second]) => memchr::memchr2_iter(first, second, text).for_each(&mut look_up),
            Some(&[first, second, third]) => memchr::memchr3_iter(first, second, third, text).for_each(&mut look_up),
            _ => {
                for (at, &byte) in text.iter().enumerate() {
                    if self.is_first[usize::from(byte)] {
                        look_up(at);
                    }
                }
            }
        }
    }
}

impl HeapBytes for Special {
    fn heap_bytes(&self) -> usize {
        self.finder.needle().len()
    }
}

impl Special {
    /// Cuts `text[start..end]` at every occurrence wholly inside one of the ranges `allowed`, and appends the items.
    fn cut(&self, text: &[u8], mut start: usize, end: usize, allowed: &[Range<usize>], items: &mut Vec<Item>) {
        let mut ticker = Ticker::default();
        let mut rest = &allowed[allowed.partition_point(|range| range.end <= start)..];
        while let [range, others @ ..] = rest
            && range.start < end
        {
            ticker.tick();
            let from = start.max(range.start);
            let to = end.min(range.end);
            count_steps!(1 + to.saturating_sub(from));
            let Some(found) = text.get(from..to).and_then(|text| self.finder.find(text)) else {
                rest = others;
                continue;
            };
            let token_start = from + found;
            let token_end = token_start + self.finder.needle().len();

            let mut text_end = token_start;
            while self.strips_before && text_end > start && is_space(text[text_end - 1]) {
                text_end -= 1;
            }
            if text_end > start {
                push(items, Item::Text(start, text_end));
            }
            push(items, Item::Token(self.id, token_start, token_end));

            start = token_end;
            while self.strips_after && start < end && is_space(text[start]) {
                start += 1;
            }
        }
        if start < end {
            push(items, Item::Text(start, end));
        }
    }
}

/// C's `isspace` in the "C" locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 0x09..=0x0D)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::error::Error;
    use std::ops::Range;

    use proptest::prelude::*;

    use super::{Item, Special, SpecialScratch, Specials};
    use crate::vocabulary::strings::StringIndex;
    use crate::vocabulary::{Definition, Vocabulary};
    use crate::work::steps;

    /// A vocabulary with these special texts, each with its type.
    fn vocabulary(specials: &[(&str, i32)]) -> Result<Vocabulary, Box<dyn Error>> {
        let ordinary = [("<unk>", 1), ("<s>", 1), ("</s>", 1), ("x", 1)];
        let (texts, types): (Vec<&str>, Vec<i32>) = ordinary.iter().chain(specials).copied().unzip();
        let (data, index) = StringIndex::concatenate(&texts)?;
        let definition = Definition {
            model: "llama",
            tokens: Some(index.view(&data)),
            token_types: Some(&types),
            ..Definition::default()
        };
        let mut vocabulary = Vocabulary::declare(&definition)?;
        vocabulary.repair(&definition)?;
        Ok(vocabulary)
    }

    /// `tokenizer_st_partition` taken literally: searches for every special text in turn, in every remaining fragment.
    /// All bytes of control and unknown tokens must be allowed.
    fn naive(order: &[Special], text: &[u8], is_allowed: &[bool]) -> Vec<Item> {
        let is_space = |at: usize| b" \t\n\x0B\x0C\r".contains(&text[at]);
        let mut items = vec![Item::Text(0, text.len())];
        for special in order {
            let needle = special.finder.needle();
            let mut finer = Vec::new();
            for item in items {
                let Item::Text(mut start, end) = item else {
                    finer.push(item);
                    continue;
                };
                let is_match = |&at: &usize| {
                    let is_allowed = || is_allowed[at..at + needle.len()].iter().all(|&is_allowed| is_allowed);
                    text[at..end].starts_with(needle) && (!special.is_control || is_allowed())
                };
                while let Some(found) = (start..end).find(is_match) {
                    let mut left_end = found;
                    while special.strips_before && left_end > start && is_space(left_end - 1) {
                        left_end -= 1;
                    }
                    finer.push(Item::Text(start, left_end));
                    start = found + needle.len();
                    finer.push(Item::Token(special.id, found, start));
                    while special.strips_after && start < end && is_space(start) {
                        start += 1;
                    }
                }
                finer.push(Item::Text(start, end));
            }
            finer.retain(|item| !matches!(item, Item::Text(start, end) if start == end));
            items = finer;
        }
        items.retain(|item| !matches!(item, Item::Text(start, end) if start == end));
        items
    }

    proptest! {
        #[test]
        fn a_text_is_cut_as_by_a_search_for_each_special_in_turn(
            texts in prop::collection::btree_set("[abcd< >]{1,5}|<[ab]>|ab?c?d?| a? ", 0..12),
            types in prop::collection::vec(2..=4, 12),
            strips in prop::collection::vec(any::<(bool, bool)>(), 12),
            parse_special: bool,
            contents in prop::collection::vec("([abcd< >]|<[ab]>|[ \t\n\u{A0}]){0,40}", 1..4),
            parts in prop::collection::vec((0..12_usize, any::<bool>()), 0..8),
        ) {
            let texts: BTreeSet<String> = texts;
            let specials: Vec<(&str, i32)> = texts.iter().map(String::as_str).zip(types).collect();
            let vocabulary = vocabulary(&specials).expect("a vocabulary");
            let mut searched = Specials::new(&vocabulary, parse_special).expect("few texts");
            for (special, (before, after)) in searched.order.iter_mut().zip(strips) {
                (special.strips_before, special.strips_after) = (before, after);
            }
            let is_searched = |&id: &i32| {
                let attributes = vocabulary.attributes(id);
                attributes.is_user_defined() || parse_special && (attributes.is_control() || attributes.is_unknown())
            };
            let expected: BTreeSet<i32> = (0..vocabulary.len() as i32).filter(is_searched).collect();
            prop_assert_eq!(searched.order.iter().map(|special| special.id).collect::<BTreeSet<_>>(), expected);
            let is_longer = |pair: &[Special]| pair[0].finder.needle().len() >= pair[1].finder.needle().len();
            prop_assert!(searched.order.windows(2).all(is_longer));
            let mut scratch = SpecialScratch::default();
            for content in contents.iter().map(String::as_bytes) {
                let expected = naive(&searched.order, content, &[true; 200]);
                prop_assert_eq!(searched.partition(content, None, &mut scratch), expected);
                let mut is_allowed: Vec<bool> =
                    parts.iter().flat_map(|&(len, is_allowed)| std::iter::repeat_n(is_allowed, len)).collect();
                is_allowed.resize(content.len(), false);
                let mut allowed: Vec<Range<usize>> = Vec::new();
                for at in (0..content.len()).filter(|&at| is_allowed[at]) {
                    match allowed.last_mut().filter(|last| last.end == at) {
                        Some(last) => last.end += 1,
                        None => allowed.push(at..at + 1),
                    }
                }
                let found = searched.partition(content, Some(&allowed), &mut scratch);
                prop_assert_eq!(found, naive(&searched.order, content, &is_allowed));
            }
        }
    }

    #[test]
    fn text_without_special_tokens_costs_one_pass_however_many_there_are() -> Result<(), Box<dyn Error>> {
        let texts: Vec<String> = (0..5000).map(|number| format!("<|{number}|>")).collect();
        // A single first byte; then too many first bytes to search by them.
        for others in [&[][..], &[("a#", 4), ("b#", 4), ("c#", 4)]] {
            let mut specials: Vec<(&str, i32)> = texts.iter().map(|text| (text.as_str(), 4)).collect();
            specials.extend(others);
            let specials = Specials::new(&vocabulary(&specials)?, false)?;
            for repeats in [500, 5000] {
                let text = "<|no|>".repeat(repeats);
                let steps = steps::of(|| {
                    let mut scratch = SpecialScratch::default();
                    assert_eq!(specials.partition(text.as_bytes(), None, &mut scratch), [Item::Text(0, text.len())]);
                });
                // Searching for each one would take 5000 steps per byte.
                assert!((repeats..=text.len()).contains(&steps), "{steps} steps for {} bytes", text.len());
            }
        }
        Ok(())
    }
}
