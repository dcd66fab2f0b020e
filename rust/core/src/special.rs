//! Special tokens first: a text is cut at the special tokens that are written in it.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`, `tokenizer_st_partition`. Special texts are searched one after the other,
//! longest first, each over what the ones before have left: not leftmost, not longest at a place. A token may take
//! the whitespace around it along.
//!
//! Complexity: one pass with a double array tells which special texts occur at all; only those are then searched, each
//! in O(length of what is left). Text without any costs that one pass, however many special tokens there are.
//!
//! Deviations: none.

use memchr::memmem;

use crate::error::VocabularyError;
use crate::sink::TokenId;
use crate::trie::DoubleArray;
use crate::vocabulary::{Attributes, Vocabulary};

/// A piece of a partitioned text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text for the algorithm, as a byte range; never empty.
    Text(usize, usize),
    /// A special token, found at this byte range.
    Token(TokenId, usize, usize),
}

/// What one call needs and the next can reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    parts: Vec<Part>,
    before: Vec<Part>,
    present: Vec<bool>,
}

/// One special text.
#[derive(Debug)]
struct Special {
    id: TokenId,
    finder: memmem::Finder<'static>,
    takes_before: bool,
    takes_after: bool,
}

/// The special texts that are searched under one setting.
#[derive(Debug)]
pub(crate) struct Specials {
    /// In the order of search.
    order: Vec<Special>,
    /// From a special text to its place in `order`.
    trie: DoubleArray,
    /// Whether a special text begins with this byte.
    begins: Box<[bool; 256]>,
    /// The bytes that special texts begin with, where they are three or fewer.
    rare: Option<Vec<u8>>,
}

impl Specials {
    /// The special texts of a vocabulary. With `parse_special` off, control and unknown tokens stay text.
    ///
    /// # Errors
    /// [`VocabularyError::TooLarge`] where the texts outgrow a double array.
    pub(crate) fn new(vocabulary: &Vocabulary, parse_special: bool) -> Result<Self, VocabularyError> {
        let order: Vec<Special> = vocabulary
            .special_order()
            .iter()
            .map(|&id| (id, vocabulary.attributes(id)))
            .filter(|(_, attributes)| parse_special || !(attributes.is_control() || attributes.is_unknown()))
            .map(|(id, attributes)| Special {
                id,
                finder: memmem::Finder::new(vocabulary.text(id)).into_owned(),
                takes_before: attributes.contains(Attributes::LSTRIP),
                takes_after: attributes.contains(Attributes::RSTRIP),
            })
            .collect();
        let mut begins = Box::new([false; 256]);
        for special in &order {
            if let Some(&first) = special.finder.needle().first() {
                begins[usize::from(first)] = true;
            }
        }
        let first_bytes: Vec<u8> = (0..=255).filter(|&byte| begins[usize::from(byte)]).collect();
        // Hybrid DNA can leave two tokens with one text; the first in order of search is the one that finds it.
        let keys = order.iter().enumerate().rev().map(|(place, special)| (special.finder.needle(), place as u32));
        Ok(Self {
            trie: DoubleArray::build(keys).map_err(|_| VocabularyError::TooLarge { what: "special tokens" })?,
            rare: (first_bytes.len() <= 3).then_some(first_bytes),
            begins,
            order,
        })
    }

    /// Cuts `text` into pieces, in the order of the text.
    pub(crate) fn partition<'s>(&self, text: &[u8], scratch: &'s mut Scratch) -> &'s [Part] {
        let Scratch { parts, before, present } = scratch;
        parts.clear();
        if text.is_empty() {
            return parts;
        }
        parts.push(Part::Text(0, text.len()));
        self.find_present(text, present);
        for (special, _) in self.order.iter().zip(present.iter()).filter(|(_, is_present)| **is_present) {
            std::mem::swap(parts, before);
            parts.clear();
            for part in before.iter() {
                match *part {
                    Part::Text(begin, end) => special.cut(text, begin, end, parts),
                    token @ Part::Token(..) => parts.push(token),
                }
            }
        }
        parts
    }

    /// Marks the special texts that occur in `text`; leaves `present` empty where none does.
    fn find_present(&self, text: &[u8], present: &mut Vec<bool>) {
        present.clear();
        let mut look = |at: usize| {
            for (_, place) in self.trie.common_prefix_matches(&text[at..]) {
                present.resize(self.order.len(), false);
                present[place as usize] = true;
            }
        };
        match self.rare.as_deref() {
            Some([]) => {}
            Some(&[first]) => memchr::memchr_iter(first, text).for_each(&mut look),
            Some(&[first, second]) => memchr::memchr2_iter(first, second, text).for_each(&mut look),
            Some(&[first, second, third]) => memchr::memchr3_iter(first, second, third, text).for_each(&mut look),
            _ => {
                for (at, &byte) in text.iter().enumerate() {
                    if self.begins[usize::from(byte)] {
                        look(at);
                    }
                }
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.order.iter().map(|special| size_of::<Special>() + special.finder.needle().len()).sum::<usize>()
            + self.trie.heap_bytes()
            + size_of::<[bool; 256]>()
    }
}

impl Special {
    /// Cuts `text[begin..end]` at every occurrence and appends the pieces.
    fn cut(&self, text: &[u8], mut begin: usize, end: usize, parts: &mut Vec<Part>) {
        while let Some(found) = self.finder.find(&text[begin..end]) {
            let (from, to) = (begin + found, begin + found + self.finder.needle().len());
            let mut left = from;
            while self.takes_before && left > begin && is_space(text[left - 1]) {
                left -= 1;
            }
            if left > begin {
                parts.push(Part::Text(begin, left));
            }
            parts.push(Part::Token(self.id, from, to));
            begin = to;
            while self.takes_after && begin < end && is_space(text[begin]) {
                begin += 1;
            }
        }
        if begin < end {
            parts.push(Part::Text(begin, end));
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

    use proptest::prelude::*;

    use super::{Part, Scratch, Special, Specials};
    use crate::vocabulary::strings::StringIndex;
    use crate::vocabulary::{Definition, Vocabulary};

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

    /// `tokenizer_st_partition` by the letter: every special text in turn over every stretch that is still text.
    fn naive(order: &[Special], text: &[u8]) -> Vec<Part> {
        let is_space = |at: usize| b" \t\n\x0B\x0C\r".contains(&text[at]);
        let mut parts = vec![Part::Text(0, text.len())];
        for special in order {
            let needle = special.finder.needle();
            let mut finer = Vec::new();
            for part in parts {
                let Part::Text(mut begin, end) = part else {
                    finer.push(part);
                    continue;
                };
                while let Some(found) = (begin..end).find(|&at| text[at..end].starts_with(needle)) {
                    let mut left_end = found;
                    while special.takes_before && left_end > begin && is_space(left_end - 1) {
                        left_end -= 1;
                    }
                    finer.push(Part::Text(begin, left_end));
                    begin = found + needle.len();
                    finer.push(Part::Token(special.id, found, begin));
                    while special.takes_after && begin < end && is_space(begin) {
                        begin += 1;
                    }
                }
                finer.push(Part::Text(begin, end));
            }
            finer.retain(|part| !matches!(part, Part::Text(begin, end) if begin == end));
            parts = finer;
        }
        parts.retain(|part| !matches!(part, Part::Text(begin, end) if begin == end));
        parts
    }

    proptest! {
        #[test]
        fn a_text_is_cut_as_by_a_search_for_each_special_in_turn(
            texts in prop::collection::btree_set("[abcd< >]{1,5}|<[ab]>|ab?c?d?| a? ", 0..12),
            types in prop::collection::vec(2..=4, 12),
            strips in prop::collection::vec(any::<(bool, bool)>(), 12),
            parse_special: bool,
            contents in prop::collection::vec("([abcd< >]|<[ab]>|[ \t\n\u{A0}]){0,40}", 1..4),
        ) {
            let texts: BTreeSet<String> = texts;
            let specials: Vec<(&str, i32)> = texts.iter().map(String::as_str).zip(types).collect();
            let vocabulary = vocabulary(&specials).expect("a vocabulary");
            let mut searched = Specials::new(&vocabulary, parse_special).expect("few texts");
            for (special, (before, after)) in searched.order.iter_mut().zip(strips) {
                (special.takes_before, special.takes_after) = (before, after);
            }
            let is_searched = |&id: &i32| {
                let attributes = vocabulary.attributes(id);
                attributes.is_user_defined() || parse_special && (attributes.is_control() || attributes.is_unknown())
            };
            let expected: BTreeSet<i32> = (0..vocabulary.len() as i32).filter(is_searched).collect();
            prop_assert_eq!(searched.order.iter().map(|special| special.id).collect::<BTreeSet<_>>(), expected);
            let is_longer = |pair: &[Special]| pair[0].finder.needle().len() >= pair[1].finder.needle().len();
            prop_assert!(searched.order.windows(2).all(is_longer));
            let mut scratch = Scratch::default();
            for content in contents.iter().map(String::as_bytes) {
                prop_assert_eq!(searched.partition(content, &mut scratch), naive(&searched.order, content));
            }
        }
    }

    /// Parts as text, tokens in brackets.
    fn shown(specials: &[(&str, i32)], parse_special: bool, text: &str) -> Result<Vec<String>, Box<dyn Error>> {
        let specials = Specials::new(&vocabulary(specials)?, parse_special)?;
        let mut scratch = Scratch::default();
        let part = |part: &Part| match *part {
            Part::Text(begin, end) => text[begin..end].to_owned(),
            Part::Token(_, begin, end) => format!("[{}]", &text[begin..end]),
        };
        Ok(specials.partition(text.as_bytes(), &mut scratch).iter().map(part).collect())
    }

    #[test]
    fn the_longest_text_is_first_wherever_it_is() -> Result<(), Box<dyn Error>> {
        // At the first letter "ab" would match; "bcd" is longer and takes its letters first.
        assert_eq!(shown(&[("ab", 4), ("bcd", 4)], false, "abcdab")?, ["a", "[bcd]", "[ab]"]);
        // One inside the other, and one that overlaps itself.
        assert_eq!(shown(&[("<a>", 4), ("a", 4)], false, "a<a>a")?, ["[a]", "[<a>]", "[a]"]);
        assert_eq!(shown(&[("aa", 4)], false, "aaaaa")?, ["[aa]", "[aa]", "a"]);
        Ok(())
    }

    #[test]
    fn control_and_unknown_tokens_are_cut_out_on_demand() -> Result<(), Box<dyn Error>> {
        let specials = [("<c>", 3), ("<u>", 2), ("<d>", 4), ("<n>", 1)];
        assert_eq!(shown(&specials, false, "<c><u><d><n>")?, ["<c><u>", "[<d>]", "<n>"]);
        assert_eq!(shown(&specials, true, "<c><u><d><n>")?, ["[<c>]", "[<u>]", "[<d>]", "<n>"]);
        assert_eq!(shown(&specials, true, "")?, Vec::<String>::new());
        Ok(())
    }

    #[test]
    fn text_without_special_tokens_costs_one_pass_however_many_there_are() -> Result<(), Box<dyn Error>> {
        let texts: Vec<String> = (0..5000).map(|number| format!("<|{number}|>")).collect();
        let specials: Vec<(&str, i32)> = texts.iter().map(|text| (text.as_str(), 4)).collect();
        let specials = Specials::new(&vocabulary(&specials)?, false)?;
        let text = "<|no|>".repeat(500_000);
        let began = std::time::Instant::now();
        let mut scratch = Scratch::default();
        assert_eq!(specials.partition(text.as_bytes(), &mut scratch), [Part::Text(0, text.len())]);
        // 5000 searches of 3 MB each would be 15 GB to read.
        assert!(began.elapsed().as_secs() < 2);
        assert!(specials.heap_bytes() > 5000 * "<|0|>".len());
        Ok(())
    }
}
