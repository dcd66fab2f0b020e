//! The alphabet of a pattern: a map from code points to a few classes. No set of the pattern distinguishes the code
//! points of one class.
//!
//! ASCII has its own table. Other code points are looked up by category if the pattern is matched over collapsed text,
//! and otherwise in pages of 128 code points. Complexity: constant time per code point.

use std::collections::HashMap;

use super::pattern::{Set, collapsed};
use crate::text::unicode::{self, Flags};
use crate::work::heap::HeapBytes;
use crate::work::memory::{append, collect};

/// The last code point that is whitespace.
const LAST_WHITESPACE: u32 = 0x3000;
/// Code points per page of [`Beyond::Wide`].
const PAGE: u32 = 128;

/// The class of every code point, numbered from 0; [`Alphabet::end`] stands for the end of the text.
#[derive(Debug)]
pub(crate) struct Alphabet {
    ascii: [u8; 128],
    beyond: Beyond,
    num_classes: u8,
}

#[derive(Debug)]
enum Beyond {
    /// Indexed by the low nine bits of the flags (category and whitespace); with two classes for Han characters if the
    /// pattern needs them.
    Collapsed { by_flags: Box<[u8; 512]>, han_letter: u8, han_other: u8, has_han: bool },
    /// By code point `c`: `entries[pages[c / PAGE] * PAGE + c % PAGE]`.
    Wide { pages: Vec<u16>, entries: Vec<u8> },
}

impl HeapBytes for Beyond {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Collapsed { by_flags, .. } => by_flags.heap_bytes(),
            Self::Wide { pages, entries } => pages.heap_bytes() + entries.heap_bytes(),
        }
    }
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

        let class_of = |symbol: u32| spans[bounds.partition_point(|&bound| bound <= symbol) - 1];
        let beyond = if is_collapsed {
            let by_flags = (0..512).map(|bits| class_of(collapse(Flags::from_bits(bits)))).collect::<Vec<u8>>();
            Beyond::Collapsed {
                by_flags: by_flags.try_into().map_or_else(|_| Box::new([0; 512]), Box::new),
                han_letter: class_of(collapsed::HAN_LETTER),
                han_other: class_of(collapsed::HAN_OTHER),
                has_han: class_of(collapsed::HAN_OTHER) != class_of(collapsed::OTHER),
            }
        } else {
            wide(&bounds, class_of)
        };
        let ascii = std::array::from_fn(|byte| class_of(byte as u32));
        (Self { ascii, beyond, num_classes: numbers.len() as u8 }, class_sets)
    }

    /// The class of an ASCII byte.
    #[inline(always)]
    pub(crate) fn ascii(&self, byte: u8) -> u8 {
        self.ascii[usize::from(byte & 0x7F)]
    }

    /// The class of any other code point.
    #[inline]
    pub(crate) fn beyond_ascii(&self, code_point: u32) -> u8 {
        match &self.beyond {
            Beyond::Collapsed { by_flags, han_letter, han_other, has_han } => {
                let flags = unicode::flags(code_point);
                if *has_han && unicode::is_han(code_point) {
                    return if flags.is_letter() { *han_letter } else { *han_other };
                }
                by_flags[usize::from(flags.bits() & 0x1FF)]
            }
            Beyond::Wide { pages, entries } => {
                let page = pages.get((code_point / PAGE) as usize).copied().unwrap_or_default();
                entries[usize::from(page) * PAGE as usize + (code_point % PAGE) as usize]
            }
        }
    }

    /// The class of the end of the text.
    pub(crate) fn end(&self) -> u8 {
        self.num_classes
    }
}

/// A set of classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClassSet([u64; 4]);

heap_bytes!(Alphabet: beyond; ClassSet);

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

/// Pages for patterns that see every code point except whitespace as it is. Equal pages are stored once.
fn wide(bounds: &[u32], class_of: impl Fn(u32) -> u8) -> Beyond {
    let mut known: HashMap<Vec<u8>, u16> = HashMap::new();
    let mut entries = Vec::new();
    let whitespace = class_of(collapsed::WHITESPACE);
    let pages = (0..=0x10_FFFF / PAGE).map(|page| {
        let first = page * PAGE;
        let first_class = class_of(first);
        let is_plain = bounds.partition_point(|&bound| bound <= first)
            == bounds.partition_point(|&bound| bound < first + PAGE)
            && first > LAST_WHITESPACE;
        let classes: Vec<u8> = if is_plain {
            vec![first_class; PAGE as usize]
        } else {
            let class = |code_point: u32| {
                let is_space = code_point > 0x7F && unicode::flags(code_point).is_whitespace();
                if is_space { whitespace } else { class_of(code_point) }
            };
            (first..first + PAGE).map(class).collect()
        };
        let next = known.len() as u16;
        *known.entry(classes).or_insert_with_key(|classes| {
            append(&mut entries, classes);
            next
        })
    });
    Beyond::Wide { pages: collect(pages), entries }
}

#[cfg(test)]
mod tests {
    use super::{Alphabet, LAST_WHITESPACE};
    use crate::encode::pretokenizer::automaton::pattern::Set;
    use crate::text::unicode;

    #[test]
    fn whitespace_ends_where_pages_expect_it() {
        assert_eq!((0..=0x10_FFFF).rfind(|&at| unicode::flags(at).is_whitespace()), Some(LAST_WHITESPACE));
    }

    #[test]
    fn classes_distinguish_what_sets_do() {
        let sets = [Set::new(&[0x61..=0x7A, 0xE9..=0x16F]), Set::new(&[0x0B..=0x0B, 0x4E00..=0x4E05])];
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
