//! A recursive-descent parser for the part of ECMAScript's pattern grammar that llama.cpp's patterns use.
//!
//! Sets contain *symbols*. If a pattern names a Unicode category, llama.cpp matches it over collapsed text, in which
//! one byte per category replaces every non-ASCII code point. Otherwise symbols are code points, with a vertical tab
//! for all non-ASCII whitespace. Either way, `\s` and ranges are ASCII only.
//!
//! Source: llama.cpp `src/unicode.cpp`, `unicode_regex_split` and `unicode_regex_split_stl`; the grammar is ECMA-262 as
//! `std::regex` reads it.

/// The symbols of collapsed text that replace non-ASCII code points.
pub(crate) mod collapsed {
    pub(crate) const OTHER: u32 = 0xD0;
    pub(crate) const NUMBER: u32 = 0xD1;
    pub(crate) const LETTER: u32 = 0xD2;
    pub(crate) const PUNCTUATION: u32 = 0xD3;
    pub(crate) const MARK: u32 = 0xD4;
    pub(crate) const SYMBOL: u32 = 0xD5;
    /// Han letters and other Han characters, in Kimi K2's pattern only.
    pub(crate) const HAN_LETTER: u32 = 0xD6;
    pub(crate) const HAN_OTHER: u32 = 0xD7;
    /// Non-ASCII whitespace, collapsed or not.
    pub(crate) const WHITESPACE: u32 = 0x0B;
}

/// The largest symbol.
const MAX: u32 = 0x10_FFFF;

/// A set of symbols: ranges in ascending order that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Set(Vec<(u32, u32)>);

impl Set {
    /// The symbols in any of some ranges, given their first and last ones.
    pub(crate) fn new(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    pub(crate) fn contains(&self, symbol: u32) -> bool {
        let after = self.0.partition_point(|&(first, _)| first <= symbol);
        after > 0 && symbol <= self.0[after - 1].1
    }

    fn complement(&self) -> Self {
        let mut gaps = Vec::new();
        let mut next = 0;
        for &(first, last) in &self.0 {
            if first > next {
                gaps.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= MAX {
            gaps.push((next, MAX));
        }
        Self(gaps)
    }

    fn union(&self, other: &Self) -> Self {
        Self::new([&self.0[..], &other.0].concat())
    }
}

/// A pattern as a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tree {
    /// One symbol of the set.
    One(Set),
    /// The empty text, if the next symbol is in the set.
    Ahead(Set),
    /// The empty text, if the next symbol is not in the set or the text ends.
    NotAhead(Set),
    /// All of these in order.
    Sequence(Vec<Tree>),
    /// The first of these that leads to a match.
    Alternatives(Vec<Tree>),
    /// As many repetitions as possible within the bounds.
    Repeat(Box<Tree>, u32, Option<u32>),
}

/// Parses a pattern.
///
/// # Panics
/// For anything outside the grammar that the table uses.
pub(crate) fn parse(pattern: &str) -> Tree {
    let mut parser = Parser { text: pattern.chars().collect(), at: 0 };
    let node = parser.alternatives();
    if parser.at < parser.text.len() { parser.fail("the end of the pattern") } else { node }
}

struct Parser {
    text: Vec<char>,
    at: usize,
}

impl Parser {
    fn fail(&self, expected: &str) -> ! {
        let pattern: String = self.text.iter().collect();
        unreachable!("{pattern:?} at character {}: {expected} expected", self.at)
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let char = self.peek();
        self.at += usize::from(char.is_some());
        char
    }

    /// Skips `text` if it is next.
    fn eat(&mut self, text: &str) -> bool {
        let end = self.at + text.chars().count();
        let found = self.text.get(self.at..end).is_some_and(|next| next.iter().copied().eq(text.chars()));
        if found {
            self.at = end;
        }
        found
    }

    fn alternatives(&mut self) -> Tree {
        let mut all = vec![self.sequence()];
        while self.eat("|") {
            all.push(self.sequence());
        }
        if all.len() == 1 { all.remove(0) } else { Tree::Alternatives(all) }
    }

    fn sequence(&mut self) -> Tree {
        let mut nodes = Vec::new();
        while self.peek().is_some_and(|char| char != '|' && char != ')') {
            let atom = self.atom();
            nodes.push(self.quantified(atom));
        }
        if nodes.len() == 1 { nodes.remove(0) } else { Tree::Sequence(nodes) }
    }

    fn quantified(&mut self, atom: Tree) -> Tree {
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                self.at += 1;
                let min = self.number();
                let max = if self.eat(",") { self.number() } else { min };
                if self.peek() != Some('}') {
                    self.fail("}");
                }
                (min, Some(max))
            }
            _ => return atom,
        };
        self.at += 1;
        Tree::Repeat(Box::new(atom), min, max)
    }

    fn number(&mut self) -> u32 {
        let start = self.at;
        while self.peek().is_some_and(|char| char.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.text[start..self.at].iter().collect();
        digits.parse().unwrap_or_else(|_| self.fail("a number"))
    }

    fn atom(&mut self) -> Tree {
        if self.eat("(?=") {
            return Tree::Ahead(self.look_ahead());
        }
        if self.eat("(?!") {
            return Tree::NotAhead(self.look_ahead());
        }
        if self.eat("(?:") || self.eat("(") {
            let inner = self.alternatives();
            return if self.eat(")") { inner } else { self.fail(")") };
        }
        match self.next() {
            Some('[') => Tree::One(self.bracket()),
            Some('\\') => Tree::One(self.escape()),
            // No symbol is next.
            Some('$') => Tree::NotAhead(Set::default().complement()),
            Some(char) if !".*+?{^".contains(char) => Tree::One(single(char)),
            _ => self.fail("a character"),
        }
    }

    /// One set and a closing parenthesis: no pattern of the table looks more than one symbol ahead.
    fn look_ahead(&mut self) -> Set {
        match self.alternatives() {
            Tree::One(set) if self.eat(")") => set,
            _ => self.fail("one set to look ahead for"),
        }
    }

    fn bracket(&mut self) -> Set {
        let negated = self.eat("^");
        let mut set = Set::default();
        while !self.eat("]") {
            let item = match self.next() {
                Some('\\') => self.escape(),
                Some(char) => single(char),
                None => self.fail("]"),
            };
            let is_range = self.peek() == Some('-') && self.text.get(self.at + 1).is_some_and(|&char| char != ']');
            let item = match (item.ranges(), is_range) {
                (&[(first, same)], true) if first == same => {
                    self.at += 1;
                    let last = match self.next() {
                        Some('\\') => self.escape(),
                        Some(char) => single(char),
                        None => self.fail("the end of a range"),
                    };
                    match last.ranges() {
                        &[(last, same)] if last == same && first <= last => Set::new(vec![(first, last)]),
                        _ => self.fail("the end of a range"),
                    }
                }
                _ => item,
            };
            set = set.union(&item);
        }
        if negated { set.complement() } else { set }
    }

    fn escape(&mut self) -> Set {
        use collapsed::{HAN_LETTER, HAN_OTHER, LETTER, MARK, NUMBER, PUNCTUATION, SYMBOL};
        let whitespace = Set::new(vec![(0x09, 0x0D), (0x20, 0x20)]);
        let with = |ascii: &str, collapsed: &[u32]| {
            let members = ascii.bytes().map(u32::from).chain(collapsed.iter().copied());
            Set::new(members.map(|symbol| (symbol, symbol)).collect())
        };
        let letters = Set::new(vec![(0x41, 0x5A), (0x61, 0x7A)]);
        match self.next() {
            Some('s') => whitespace,
            Some('S') => whitespace.complement(),
            Some('r') => single('\r'),
            Some('n') => single('\n'),
            Some('t') => single('\t'),
            Some('p') => {
                let start = self.at;
                while self.peek().is_some_and(|char| char != '}') {
                    self.at += 1;
                }
                let name: String = self.text[start..self.at].iter().skip(1).collect();
                self.at += 1;
                match name.as_str() {
                    "N" => with("0123456789", &[NUMBER]),
                    "L" | "Lu" | "Ll" | "Lt" | "Lm" | "Lo" => letters.union(&with("", &[LETTER, HAN_LETTER])),
                    "P" => with("!\"#%&'()*,-./:;?@[\\]_{}", &[PUNCTUATION]),
                    "M" => with("", &[MARK]),
                    "S" => with("$+<=>^`|~", &[SYMBOL]),
                    "Han" => with("", &[HAN_LETTER, HAN_OTHER]),
                    "L-Han" => letters.union(&with("", &[LETTER])),
                    _ => self.fail("a category"),
                }
            }
            Some(char) if !char.is_ascii_alphanumeric() => single(char),
            _ => self.fail("an escape"),
        }
    }
}

fn single(char: char) -> Set {
    Set::new(vec![(char.into(), char.into())])
}

#[cfg(test)]
mod tests {
    use super::{Set, Tree, parse};

    #[test]
    fn sets_are_normalized() {
        let set = Set::new(vec![(5, 7), (1, 2), (3, 4)]);
        assert_eq!(set.ranges(), [(1, 7)]);
        assert_eq!(set.complement().ranges(), [(0, 0), (8, 0x10_FFFF)]);
        assert!(set.contains(7) && !set.contains(8) && !set.contains(0));
    }

    #[test]
    fn brackets_hold_ranges_escapes_and_hyphens() {
        let Tree::One(set) = parse(r"[^\r\n\p{L}a-c-]") else { panic!("not a set") };
        for (symbol, inside) in [('\r', false), ('-', false), ('b', false), ('Z', false), ('1', true), ('\t', true)] {
            assert_eq!(set.contains(u32::from(symbol)), inside, "{symbol:?}");
        }
    }

    #[test]
    fn grammar_that_the_table_does_not_use_is_refused() {
        for pattern in ["a)", "[a", "(?=ab)", r"\b", "^a", r"\p{Greek}"] {
            assert!(std::panic::catch_unwind(|| parse(pattern)).is_err(), "{pattern}");
        }
    }
}
