//! The alphabet of a pattern: a map from code points to a few classes. No set of the pattern distinguishes the code
//! points of one class.
//!
//! ASCII has its own table. Other code points are looked up by category if the pattern is matched over collapsed text,
//! and otherwise in a list of ranges. Time per code point: O(1), or O(log n) for n ranges.

use std::collections::HashMap;

use super::pattern::{Set, collapsed};
use crate::text::unicode::{self, Flags};

/// The class of every code point, numbered from 0; [`Alphabet::end`] stands for the end of the text.
#[derive(Debug)]
pub(crate) struct Alphabet {
    ascii: [u8; 128],
    /// The class of the symbol that replaces a code point, by the low nine bits of its flags (category and whitespace).
    collapsed: [u8; 512],
    /// The classes of Han letters and of other Han characters, if the pattern needs them.
    han: Option<[u8; 2]>,
    /// The first symbol of each stretch of symbols in one class.
    bounds: Vec<u32>,
    /// The class of each stretch.
    spans: Vec<u8>,
    num_classes: u8,
    is_collapsed: bool,
}

impl Alphabet {
    /// The coarsest classes that distinguish the sets, and the classes of each set.
    pub(crate) fn new(sets: &[&Set], is_collapsed: bool) -> (Self, Vec<ClassSet>) {
        let mut bounds: Vec<u32> = sets.iter().flat_map(|set| set.ranges()).flat_map(|&(a, b)| [a, b + 1]).collect();
        bounds.push(0);
        bounds.sort_unstable();
        bounds.dedup();

        // Symbols between two bounds are in the same sets; symbols in the same sets are one class.
        let mut numbers: HashMap<Vec<bool>, u8> = HashMap::new();
        let mut class_sets = vec![ClassSet::default(); sets.len()];
        let mut spans: Vec<u8> = Vec::with_capacity(bounds.len());
        for &symbol in &bounds {
            let members: Vec<bool> = sets.iter().map(|set| set.contains(symbol)).collect();
            let next = numbers.len() as u8;
            let class = *numbers.entry(members).or_insert_with_key(|members| {
                for (set, _) in class_sets.iter_mut().zip(members).filter(|(_, member)| **member) {
                    set.insert(next);
                }
                next
            });
            spans.push(class);
        }

        let class_of = |symbol: u32| class_of(&bounds, &spans, symbol);
        let ascii = std::array::from_fn(|byte| class_of(byte as u32));
        let collapsed = std::array::from_fn(|bits| class_of(collapse(Flags::from_bits(bits as u16))));
        let han = [collapsed::HAN_LETTER, collapsed::HAN_OTHER].map(class_of);
        let han = Some(han).filter(|han| han[1] != class_of(collapsed::OTHER));
        (Self { ascii, collapsed, han, bounds, spans, num_classes: numbers.len() as u8, is_collapsed }, class_sets)
    }

    /// The class of a code point.
    #[inline]
    pub(crate) fn class(&self, code_point: u32) -> u8 {
        self.ascii.get(code_point as usize).copied().unwrap_or_else(|| self.beyond_ascii(code_point))
    }

    fn beyond_ascii(&self, code_point: u32) -> u8 {
        let flags = unicode::flags(code_point);
        if !self.is_collapsed && !flags.is_whitespace() {
            return class_of(&self.bounds, &self.spans, code_point);
        }
        if let Some([letter, other]) = self.han
            && unicode::is_han(code_point)
        {
            return if flags.is_letter() { letter } else { other };
        }
        self.collapsed[usize::from(flags.bits() & 0x1FF)]
    }

    /// The class of the end of the text.
    pub(crate) fn end(&self) -> u8 {
        self.num_classes
    }
}

/// The class of a symbol.
fn class_of(bounds: &[u32], spans: &[u8], symbol: u32) -> u8 {
    spans[bounds.partition_point(|&bound| bound <= symbol) - 1]
}

/// A set of classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClassSet([u64; 4]);

heap_bytes!(Alphabet: bounds, spans; ClassSet);

impl FromIterator<u8> for ClassSet {
    fn from_iter<T: IntoIterator<Item = u8>>(classes: T) -> Self {
        let mut set = Self::default();
        classes.into_iter().for_each(|class| set.insert(class));
        set
    }
}

impl ClassSet {
    pub(crate) fn insert(&mut self, class: u8) {
        self.0[usize::from(class >> 6)] |= 1 << (class & 63);
    }

    pub(crate) fn contains(&self, class: u8) -> bool {
        self.0[usize::from(class >> 6)] >> (class & 63) & 1 != 0
    }
}

/// The symbol that replaces a non-ASCII code point with these flags in collapsed text.
fn collapse(flags: Flags) -> u32 {
    if flags.is_whitespace() {
        return collapsed::WHITESPACE;
    }
    match flags.bits() & 0xFF {
        0x02 => collapsed::NUMBER,
        0x04 => collapsed::LETTER,
        0x10 => collapsed::MARK,
        0x20 => collapsed::PUNCTUATION,
        0x40 => collapsed::SYMBOL,
        _ => collapsed::OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::Alphabet;
    use crate::encode::pretokenizer::automaton::pattern::Set;
    use crate::text::unicode;

    #[test]
    fn classes_distinguish_what_sets_do() {
        let sets = [vec![(0x61, 0x7A), (0xE9, 0x16F)], vec![(0x0B, 0x0B), (0x4E00, 0x4E05)]].map(Set::new);
        let (alphabet, class_sets) = Alphabet::new(&[&sets[0], &sets[1]], false);
        for code_point in 0x80..=0x11_0000 {
            let symbol = if unicode::flags(code_point).is_whitespace() { 0x0B } else { code_point };
            for (set, class_set) in sets.iter().zip(&class_sets) {
                let class = alphabet.beyond_ascii(code_point);
                assert_eq!(class_set.contains(class), set.contains(symbol), "{code_point:x}");
            }
        }
    }
}
