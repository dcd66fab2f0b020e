//! The units of SPM and of byte-pair encoding: how the symbols of a word or piece merge.

use std::collections::BTreeMap;
use std::iter::repeat;

use ggtok_core::TokenId;

use super::words::{Letters, and, counted, face, grouped, number, said, shortened};
use super::{Drawing, Leaf, Pair, Teller, Told, rewriting};
use crate::merging::priority;
use crate::trace::{Bigram, Bpe, Merging, Pop, Spm, Symbol, SymbolTokens};

/// Symbols after which a word of SPM ends, even without a space.
const LONGEST_WORD: usize = 40;
/// How many of the symbols that are left a caption names.
const MOST_TOLD: usize = 12;

/// What merges by itself: a piece of byte-pair encoding, or a word of SPM. No merge crosses its ends.
#[derive(Default)]
struct Word<'t> {
    title: String,
    text: &'t [u8],
    symbols: &'t [Symbol],
    /// The bytes of each symbol in the text.
    sizes: Vec<usize>,
    queue: Vec<&'t Bigram>,
    /// Those that merge.
    merges: Vec<&'t Pop>,
    /// The symbols that are left.
    left: &'t [SymbolTokens],
    /// Whether symbols are bytes first, some of which are only parts of characters.
    is_bytes: bool,
}

/// The units of SPM for a fragment.
pub(super) fn spm(teller: &mut Teller<'_>, steps: &Spm, text: &[u8]) {
    teller.add("normalize", 0, 0, |_| {
        let mut told = if text.contains(&b' ') { said!("spaces") } else { said!("spaces_none") };
        if steps.space_prefix {
            and(&mut told, said!("spaces_prefix"));
        }
        rewriting("Spaces", told, text, &steps.escaped.0)
    });
    let Merging { symbols, queue, pops, merged } = &steps.merging;
    // The first symbol of each word, and how many of those that are left come before it.
    let mut starts = Vec::new();
    let mut left = 0;
    for (at, last) in merged.iter().enumerate().filter(|(_, last)| last.n > 0) {
        let is_full = starts.last().is_none_or(|(start, _)| at - start >= LONGEST_WORD);
        if is_full || last.text.0.starts_with("▁".as_bytes()) {
            starts.push((at, left));
        }
        left += 1;
    }
    starts.push((merged.len(), left));
    let mut words = Vec::new();
    let mut text = &steps.escaped.0[..];
    for ends in starts.windows(2) {
        let symbols = &symbols[ends[0].0..ends[1].0];
        let sizes = Vec::from_iter(symbols.iter().map(|symbol| symbol.n));
        let title = format!("Word {} of {}: ", words.len() + 1, starts.len() - 1);
        let left = &steps.symbols[ends[0].1..ends[1].1];
        let (word, rest) = text.split_at(sizes.iter().sum());
        words.push(Word { title, text: word, symbols, sizes, left, ..Word::default() });
        text = rest;
    }
    let word_of = |symbol| starts.partition_point(|(start, _)| *start <= symbol) - 1;
    let own = |bigram: &Bigram| Some(word_of(bigram.left)).filter(|word| *word == word_of(bigram.right));
    queue.iter().for_each(|bigram| own(bigram).into_iter().for_each(|word| words[word].queue.push(bigram)));
    for pop in pops.iter().filter(|pop| pop.stale.is_none()) {
        words[word_of(pop.bigram.left)].merges.push(pop);
    }
    words.into_iter().for_each(|word| word.add(teller));
}

/// The units of the pieces of byte-pair encoding.
pub(super) fn pieces(teller: &mut Teller<'_>, steps: &Bpe) {
    for (piece, at) in steps.pieces.iter().zip(1..) {
        let title = format!("Piece {at} of {}: ", steps.pieces.len());
        let text = &piece.text.0[..];
        if let Some(token) = piece.whole {
            teller.add("merge", 1, 0, |place| {
                let text = face(text);
                let leaves = vec![Leaf { from: 0, to: 1, tokens: vec![(place, token)] }];
                let letters = Letters { cells: vec![text.clone()], characters: Vec::new() };
                let drawing = Drawing::Tree { letters, pairs: Vec::new(), leaves, legend: String::new() };
                let told = Told::one(title + &shortened(&text, 30), said!("whole", text, token), drawing);
                Told { lines: vec![text], ..told }
            });
            continue;
        }
        // A symbol that is spelled has a character for each byte.
        let size = |symbol: &Symbol| {
            if piece.spelled == piece.text { symbol.n } else { String::from_utf8_lossy(&symbol.text.0).chars().count() }
        };
        let merging = &piece.merging;
        let sizes = Vec::from_iter(merging.symbols.iter().map(size));
        let is_bytes = !text.is_ascii() && sizes.iter().all(|size| *size == 1);
        let merges = merging.pops.iter().filter(|pop| pop.stale.is_none()).collect();
        let queue = merging.queue.iter().collect();
        let symbols = &merging.symbols;
        Word { title, text, symbols, sizes, queue, merges, left: &piece.symbols, is_bytes }.add(teller);
    }
}

impl<'t> Word<'t> {
    fn add(&self, teller: &mut Teller<'_>) {
        let num_tokens = self.left.iter().flat_map(tokens_of).count();
        let length = if self.merges.is_empty() { 0 } else { self.merges.len() + 1 };
        teller.add("merge", num_tokens, length, |place| self.tell(place));
    }

    fn tell(&self, mut place: usize) -> Told {
        let text = face(self.text);
        let n = self.sizes.len();
        let mut offsets = vec![0];
        self.sizes.iter().for_each(|size| offsets.push(offsets[offsets.len() - 1] + size));
        let letters = Letters::new(self.text, &offsets);
        let named = |from: usize, to: usize| face(&self.text[offsets[from]..offsets[to]]);

        // Where each symbol starts in the text that merges, and the end.
        let mut starts = vec![0];
        self.symbols.iter().for_each(|symbol| starts.push(starts[starts.len() - 1] + symbol.n));
        let mut pairs = self.pairs(&starts, &named);
        let mut start = if self.is_bytes { said!("start_bytes", text, n) } else { said!("start_characters", text, n) };
        and(&mut start, counted("waiting", pairs.iter().filter(|(_, pair)| pair.born == 0).count(), &[]));
        let mut steps = vec![start];
        steps.extend(self.tell_merges(&pairs));
        pairs.sort_by_key(|(bigram, _)| priority(bigram));
        let pairs = pairs.into_iter().map(|(_, pair)| pair).collect();

        let mut leaves: Vec<Leaf> = Vec::new();
        for symbol in self.left {
            let from = leaves.last().map_or(0, |leaf| leaf.to);
            let to = starts.partition_point(|start| *start < starts[from] + symbol.text.0.len());
            let tokens = Vec::from_iter((place..).zip(tokens_of(symbol)));
            place += tokens.len();
            leaves.push(Leaf { from, to, tokens });
        }
        let faces = Vec::from_iter(leaves.iter().map(|leaf| named(leaf.from, leaf.to)));
        let outcomes = || self.left.iter().zip(&faces).map(|(symbol, text)| outcome(symbol, text));
        if let (Some(last), 1..) = (steps.last_mut(), self.merges.len()) {
            and(last, said!("end"));
            outcomes().take(MOST_TOLD).for_each(|told| and(last, told));
            and(last, if faces.len() > MOST_TOLD { "…".to_owned() } else { String::new() });
        }

        let result = faces.join(" · ");
        let token = self.left.first().and_then(|symbol| symbol.token);
        let mut whole = match token {
            Some(token) if n == 1 => {
                let unit = if self.is_bytes { "byte" } else { "character" };
                said!("single", text, unit, token)
            }
            _ if n == 1 => String::new(),
            Some(token) if faces.len() == 1 => {
                let parts = shortened(&letters.cells.join(" "), 60);
                counted("word_whole", self.merges.len(), &[("parts", &parts), ("result", &result), ("token", &token)])
            }
            _ => counted("word", self.merges.len(), &[("text", &text), ("result", &result)]),
        };
        let rare = self.left.iter().zip(outcomes()).filter(|(symbol, _)| symbol.token.is_none());
        rare.take(MOST_TOLD).for_each(|(_, told)| and(&mut whole, told));
        let legend = |first: &&Bigram| if first.rank.is_some() { said!("ranks") } else { said!("scores") };
        let legend = self.queue.first().map(legend).unwrap_or_default();
        let drawing = Drawing::Tree { letters, pairs, leaves, legend };
        let title = self.title.clone() + &shortened(&text, 30);
        Told { steps, lines: vec![result], ..Told::one(title, whole, drawing) }
    }

    /// The pairs that could merge, in the order in which they begin to wait. `starts` are those of the symbols.
    fn pairs(&self, starts: &[usize], named: &dyn Fn(usize, usize) -> String) -> Vec<(&'t Bigram, Pair)> {
        let first = self.symbols.first().map_or(0, |symbol| symbol.index);
        // The steps in which each symbol merges with another, which ends the pairs that it is in.
        let mut changes = vec![Vec::new(); self.symbols.len()];
        for (pop, step) in self.merges.iter().zip(1..) {
            [pop.bigram.left, pop.bigram.right].into_iter().for_each(|side| changes[side - first].push(step));
        }
        let added = self.merges.iter().zip(1..).flat_map(|(pop, step)| pop.added.iter().zip(repeat(step)));
        let pair = |(bigram, born): (&'t Bigram, usize)| {
            let Bigram { left, right, size, rank, .. } = bigram;
            // None of a pair that goes over an end of the word.
            let from = left.checked_sub(first)?;
            let mid = right.checked_sub(first)?;
            let to = starts.binary_search(&(starts[from] + size)).ok()?;
            let next = |side: usize| changes[side].get(changes[side].partition_point(|step| *step <= born)).copied();
            let died = next(from).into_iter().chain(next(mid)).min();
            let won = died.is_some_and(|step| {
                let merged = &self.merges[step - 1].bigram;
                (merged.left, merged.right) == (*left, *right)
            });
            let by = format!("{} {}", if rank.is_some() { "rule" } else { "score" }, value_of(bigram));
            let faces = (named(from, mid), named(mid, to));
            Some((bigram, Pair { from, mid, to, faces, face: named(from, to), by, born, died, won }))
        };
        self.queue.iter().copied().zip(repeat(0)).chain(added).filter_map(pair).collect()
    }

    /// What is said of each merge, given the pairs in the order in which they begin to wait.
    fn tell_merges(&self, pairs: &[(&Bigram, Pair)]) -> Vec<String> {
        let mut dying = vec![Vec::new(); self.merges.len() + 1];
        for (bigram, pair) in pairs {
            dying[pair.died.unwrap_or_default()].push(priority(bigram));
        }
        let mut waiting = BTreeMap::new();
        let mut coming = pairs.iter().peekable();
        let mut told = Vec::new();
        for (Pop { bigram, .. }, dying) in self.merges.iter().zip(&dying[1..]) {
            while let Some(each) = coming.next_if(|(_, pair)| pair.born <= told.len()) {
                waiting.insert(priority(each.0), each);
            }
            let by = if bigram.rank.is_some() { "rank" } else { "score" };
            let key = format!("merge_{by}{}", if waiting.len() > 1 { "" } else { "_one" });
            let count = grouped(waiting.len());
            let Some((_, pair)) = waiting.remove(&priority(bigram)) else { continue };
            let Pair { faces: (left, right), face: merged, .. } = pair;
            let value = value_of(bigram);
            let mut sentence =
                said(&key, &[("left", left), ("right", right), ("merged", merged), ("waiting", &count), (by, &value)]);
            if let Some((next, pair)) = waiting.values().next() {
                let key = if next.text == bigram.text { "next_same".to_owned() } else { format!("next_{by}") };
                and(&mut sentence, said(&key, &[("text", &pair.face), (by, &value_of(next))]));
            }
            told.push(sentence);
            dying.iter().for_each(|key| _ = waiting.remove(key));
        }
        told
    }
}

/// What decides when a pair merges.
fn value_of(bigram: &Bigram) -> String {
    let rank = bigram.rank.map(|rank| rank.to_string());
    rank.unwrap_or_else(|| number(bigram.score.unwrap_or_default().into()))
}

/// The tokens of a symbol that is left.
fn tokens_of(symbol: &SymbolTokens) -> impl Iterator<Item = TokenId> + '_ {
    symbol.token.into_iter().chain(symbol.bytes.iter().filter_map(|byte| byte.token))
}

/// What became of a symbol that is left.
fn outcome(symbol: &SymbolTokens, text: &str) -> String {
    if let Some(token) = symbol.token {
        return said!("token", text, token);
    }
    let bytes = symbol.bytes.iter().filter_map(|byte| Some(format!("{} ({})", face(&byte.text.0), byte.token?)));
    match Vec::from_iter(bytes).join(", ") {
        tokens if tokens.is_empty() => said!("dropped", text),
        tokens => said!("bytes", text, tokens),
    }
}
