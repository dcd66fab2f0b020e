//! The units of Unigram and PLaMo-2, which search the best of all ways to cut a word, and of WordPiece, RWKV, DNA and
//! the test vocabulary, which take one token after the other.

use std::ops::Range;

use ggtok_core::TokenId;

use super::words::{Letters, and, counted, face, grouped, listed, number, places, said, shortened};
use super::{Arc, Drawing, Span, Teller, Told, cuts};
use crate::trace::{Attempt, HashedGroup, Match, PathStep, Plamo2, Rwkv, Stretch, Test, Unigram, Word, WordPiece};

/// Tokens of a word, which has no end in a text without spaces.
const LONGEST_WORD: usize = 12;
/// What PLaMo-2 multiplies the logarithm of a probability by. People see costs without it.
const COST: f64 = 10_000.0;
/// Tokens that a caption names at a dot.
const MOST_NAMED: usize = 3;
/// Longer texts that a drawing shows: the caption counts them.
const MOST_LONGER: usize = 3;

/// Tokens in words: a word ends before a token that begins one, or after [`LONGEST_WORD`] tokens, but not after one that
/// is glued to the next.
fn words<T>(tokens: &[T], begins: impl Fn(&T) -> bool, is_glued: impl Fn(&T) -> bool) -> Vec<&[T]> {
    let mut size = 1;
    let goes_on = |before: &T, token: &T| {
        let goes_on = is_glued(before) || size < LONGEST_WORD && !begins(token);
        size = if goes_on { size + 1 } else { 1 };
        goes_on
    };
    tokens.chunk_by(goes_on).collect()
}

// Unigram and PLaMo-2

/// A word whose best cut is searched. Places are bytes of the text.
struct Search<'t> {
    title: String,
    text: &'t [u8],
    range: Range<usize>,
    /// The best cut: each token with its place, and its id unless it is spelled as bytes.
    path: Vec<(Range<usize>, usize, Option<TokenId>)>,
    tried: Vec<Tried>,
    /// The places where tokens may begin and end, with the best total there.
    totals: Vec<(usize, Option<f64>)>,
    is_first: bool,
    /// Whether the search starts at the end, and less is better.
    is_cost: bool,
}

/// A token that was tried.
struct Tried {
    range: Range<usize>,
    score: f64,
    total: Option<f64>,
    wins: bool,
    is_unknown: bool,
}

/// The units of Unigram: one for each word.
pub(super) fn unigram(teller: &mut Teller<'_>, steps: &Unigram) {
    let text = &steps.normalized.0[..];
    let path = Vec::from_iter(steps.path.iter().rev());
    let words = words(&path, |step| text[step.from..].starts_with("▁".as_bytes()), |step| step.joins_next);
    for (at, word) in words.iter().enumerate() {
        // Neighbouring unknown tokens are one.
        let tokens = word.chunk_by(|before, _| before.joins_next).map(|run: &[&PathStep]| (run[0], run[run.len() - 1]));
        let range = word[0].from..word[word.len() - 1].to;
        let first = steps.positions.partition_point(|position| position.at < range.start);
        let inside = steps.positions[first..].iter().take_while(|position| position.at < range.end);
        teller.add("search", tokens.clone().count(), inside.clone().count() + 1, |place| {
            let sum = |at: usize| steps.best[at].score_sum.or((at == 0).then_some(0.0));
            let base = sum(range.start).unwrap_or_default();
            let tried = inside.clone().flat_map(|position| {
                position.candidates.iter().chain(&position.unknown).map(|each| Tried {
                    range: position.at..each.end,
                    score: each.score,
                    total: each.score_sum.map(|sum| sum - base),
                    wins: (steps.best[each.end].from, steps.best[each.end].token) == (position.at, Some(each.token)),
                    is_unknown: position.unknown.as_ref() == Some(each),
                })
            });
            let ends = inside.clone().map(|position| position.at).chain([range.end]);
            let search = Search {
                title: format!("Word {} of {}: ", at + 1, words.len()),
                text,
                range: range.clone(),
                path: tokens.zip(place..).map(|((a, b), place)| (a.from..b.to, place, Some(a.token))).collect(),
                tried: tried.filter(|each| each.range.end <= range.end).collect(),
                totals: ends.map(|at| (at, sum(at).map(|sum| sum - base))).collect(),
                is_first: at == 0,
                is_cost: false,
            };
            search.tell()
        });
    }
}

/// The units of PLaMo-2: one for each word, whose search starts at its end.
pub(super) fn plamo2(teller: &mut Teller<'_>, steps: &Plamo2) {
    let text = &steps.text.0[..];
    let words = words(&steps.path, |step| text[step.start] == b' ', |_| false);
    for (at, word) in words.iter().enumerate() {
        let range = word[0].start..word[word.len() - 1].end;
        let first = steps.positions.partition_point(|position| position.at >= range.end);
        let inside = steps.positions[first..].iter().take_while(|position| position.at >= range.start);
        let num_tokens = word.iter().map(|step| step.bytes.len().max(1)).sum();
        teller.add("search", num_tokens, inside.clone().count() + 1, |mut place| {
            let base = first.checked_sub(1).map_or(0, |after| steps.positions[after].cost);
            let total = |cost: i64| Some((cost - base) as f64 / COST);
            let path = word.iter().map(|step| {
                place += step.bytes.len().max(1);
                (step.start..step.end, place - step.bytes.len().max(1), step.token)
            });
            let tried = inside.clone().flat_map(|position| {
                position.candidates.iter().map(|each| Tried {
                    range: position.at..position.at + each.text.0.len(),
                    score: each.cost as f64 / COST,
                    total: total(each.total),
                    wins: each.wins,
                    is_unknown: each.token.is_none(),
                })
            });
            let mut totals = vec![(range.end, Some(0.0))];
            totals.extend(inside.clone().map(|position| (position.at, total(position.cost))));
            totals.reverse();
            let search = Search {
                title: format!("Word {} of {}: ", at + 1, words.len()),
                text,
                range: range.clone(),
                path: path.collect(),
                // Bytes cost so much that they are told of only where nothing else is left.
                tried: tried.filter(|each| each.range.end <= range.end && (each.wins || !each.is_unknown)).collect(),
                totals,
                is_first: at == 0,
                is_cost: true,
            };
            search.tell()
        });
    }
}

impl Search<'_> {
    fn tell(mut self) -> Told {
        let is_cost = self.is_cost;
        let name = |key: &str| if is_cost { format!("{key}_cost") } else { key.to_owned() };
        let shown = |range: &Range<usize>| face(&self.text[range.clone()]);
        let places = Vec::from_iter(self.totals.iter().map(|(at, _)| at - self.range.start));
        let last = places.len() - 1;
        let dot = |at: usize| places.partition_point(|place| *place < at - self.range.start);
        // The step in which a token arrives at a dot, and the one in which its own dot was reached.
        let [arrives, departs] = [is_cost, !is_cost].map(|from_start| {
            move |range: &Range<usize>| {
                let at = dot(if from_start { range.start } else { range.end });
                if is_cost { last - at } else { at }
            }
        });
        self.tried.sort_by_key(|each| (arrives(&each.range), !each.wins));

        let mut steps = Vec::new();
        for at in 1..=last {
            let own = Vec::from_iter(self.tried.iter().filter(|each| arrives(&each.range) == at));
            let mut told = if at == 1 && self.is_first { said(&name("search_start"), &[]) } else { String::new() };
            and(&mut told, counted(&name("dot"), own.iter().filter(|each| !each.is_unknown).count(), &[]));
            for each in own.iter().take(MOST_NAMED) {
                let key = match (each.is_unknown, each.wins) {
                    (_, false) => "dot_beaten".to_owned(),
                    (true, true) => name("dot_unknown"),
                    _ if own.len() == 1 => "dot_only".to_owned(),
                    _ => "dot_best".to_owned(),
                };
                let text = shown(&each.range);
                let score = number(each.score);
                and(&mut told, said(&key, &[("text", &text), ("score", &score), ("total", &optional(each.total))]));
            }
            steps.push(told);
        }

        // The best way, and the next best: it ends with another token, and goes on along the best ways.
        let result = Vec::from_iter(self.path.iter().map(|(range, ..)| shown(range)));
        let total = optional(if is_cost { self.totals[0].1 } else { self.totals[last].1 });
        let mut told = said(&name("way"), &[("result", &result.join(" · ")), ("total", &total)]);
        for (range, _, token) in &self.path {
            let is_unknown = |each: &&Tried| each.is_unknown && each.wins && each.range.start == range.start;
            match (self.tried.iter().find(is_unknown), token) {
                (None, _) => {}
                (_, Some(token)) => and(&mut told, said!("way_unknown", text = shown(range), token)),
                (_, None) => and(&mut told, said!("way_bytes", text = shown(range))),
            }
        }
        let mut lines = vec![format!("{}   {total}", result.join(" "))];
        let loses = |each: &&Tried| arrives(&each.range) == last && !each.wins;
        let worth = |each: &Tried| each.total.map_or(f64::MIN, |total| if is_cost { -total } else { total });
        let next = self.tried.iter().filter(loses).max_by(|one, other| worth(one).total_cmp(&worth(other)));
        if let Some(next) = next {
            let before = |each: &&Tried| {
                let from = departs(&each.range);
                self.tried.iter().find(|each| each.wins && arrives(&each.range) == from)
            };
            let way = std::iter::successors(Some(next), |each| before(each));
            let mut parts = Vec::from_iter(way.map(|each| shown(&each.range)));
            if !is_cost {
                parts.reverse();
            }
            let total = optional(next.total);
            and(&mut told, said!("way_next", text = parts.join(" · "), total));
            lines.insert(0, format!("{}; next best {} {total}", lines[0], parts.join(" ")));
        }
        steps.push(told.clone());

        let likelihood = |each: &Tried| if is_cost { -each.score } else { each.score };
        let scores = self.tried.iter().filter(|each| !each.is_unknown).map(likelihood);
        let (low, high) = scores.fold((f64::MAX, f64::MIN), |(low, high), score| (low.min(score), high.max(score)));
        let place_of = |range: &Range<usize>| {
            let found = self.path.iter().find(|(own, ..)| own.start <= range.start && range.end <= own.end);
            found.map(|(_, place, _)| *place)
        };
        let arcs = self.tried.iter().map(|each| Arc {
            from: dot(each.range.start),
            to: dot(each.range.end),
            text: shown(&each.range),
            score: number(each.score),
            total: optional(each.total),
            weight: ((likelihood(each) - low) / (high - low).max(f64::EPSILON)).clamp(0.0, 1.0),
            born: arrives(&each.range),
            wins: each.wins,
            is_unknown: each.is_unknown,
            place: place_of(&each.range)
                .filter(|_| each.wins && (each.is_unknown || self.path.iter().any(|(own, ..)| *own == each.range))),
        });
        let word = &self.text[self.range.clone()];
        let drawing = Drawing::Lattice {
            letters: Letters::new(word, &places),
            totals: self.totals.iter().map(|(_, total)| optional(*total)).collect(),
            arcs: arcs.collect(),
            start: if is_cost { last } else { 0 },
            legend: said(&name("arcs"), &[]),
        };
        let title = self.title.clone() + &shortened(&face(word), 30);
        Told { steps, lines, ..Told::one(title, told, drawing) }
    }
}

fn optional(total: Option<f64>) -> String {
    total.map_or("none".to_owned(), number)
}

// WordPiece, RWKV, DNA and the test vocabulary

/// A token that is taken: itself, what is said about it, and what was tried for it. Places are bytes of the text.
type Taken = (Span, String, Vec<Span>);

/// A token below a text. Its place is known later.
fn span(range: Range<usize>, kind: &'static str, note: String) -> Span {
    Span { from: range.start, to: range.end, kind, note, place: None }
}

/// Tokens that are taken one after the other, from the place `place` on. As one step, the only one speaks for itself.
fn take(title: String, text: &[u8], tokens: Vec<Taken>, place: usize) -> Told {
    let cuts = Vec::from_iter(tokens.iter().flat_map(|(token, ..)| [token.from, token.to]));
    let places = places(text, &cuts);
    let cell = |at: usize| places.partition_point(|place| *place < at);
    let in_cells = |mut span: Span| {
        (span.from, span.to) = (cell(span.from), cell(span.to));
        span
    };
    let name = face(text);
    let result = Vec::from_iter(tokens.iter().map(|(token, ..)| face(&text[token.from..token.to]))).join(" · ");
    let mut taken = Vec::new();
    let mut steps = Vec::new();
    let mut rows = Vec::new();
    for ((token, told, tried), place) in tokens.into_iter().zip(place..) {
        taken.push(Span { place: Some(place), ..in_cells(token) });
        rows.push(tried.into_iter().map(in_cells).collect());
        steps.push(told);
    }
    let is_one = steps.len() == 1;
    let whole = if is_one { steps[0].clone() } else { said!("pieces", text = name, result) };
    let lines = vec![if is_one { name.clone() } else { format!("{name} → {result}") }];
    let drawing = Drawing::Spans { letters: Letters::new(text, &places), whole: taken.clone(), taken, rows };
    let title = title + &shortened(&name, 30);
    Told { steps, by_step: true, lines, ..Told::one(title, whole, drawing) }
}

/// The units of WordPiece: one for all words, and one for each.
pub(super) fn word_piece(teller: &mut Teller<'_>, steps: &WordPiece) {
    teller.add("split", 0, 0, |_| {
        let mut told = counted("words", steps.words.len(), &[]);
        if let Some(each) = steps.code_points.iter().find(|each| each.lowercase != each.code_point) {
            let [before, after] =
                [each.code_point, each.lowercase].map(|code| char::from_u32(code).unwrap_or_default());
            and(&mut told, said!("letters_changed", before, after));
        }
        let parts = steps.words.iter().map(|word| &word.text.0[..]);
        Told::one("Cutting into words".to_owned(), told, cuts(parts, "", Vec::new()))
    });
    for (word, at) in steps.words.iter().zip(1..) {
        // Bytes that are not whole characters are looked up too, and are never found.
        let is_tried = |each: &&Attempt| each.token.is_some() || std::str::from_utf8(&each.text.0).is_ok();
        let attempts = Vec::from_iter(word.attempts.iter().filter(is_tried));
        let tries = Vec::from_iter(attempts.chunk_by(|one, other| one.start == other.start));
        let title = format!("Word {at} of {}: ", steps.words.len());
        teller.add("match", word.tokens.len(), tries.len(), |place| matching(word, &tries, title, place));
    }
}

/// A word of WordPiece. `tries` are what was looked up at each place: the longest text first.
fn matching(word: &Word, tries: &[&[&Attempt]], title: String, place: usize) -> Told {
    let shown = |each: &&Attempt| face(&each.text.0);
    let unknown = word.tokens.first().copied().unwrap_or_default();
    let mut taken: Vec<String> = Vec::new();
    let mut tokens: Vec<Taken> = Vec::new();
    for group in tries {
        let [longer @ .., last] = group else { continue };
        let absent = if last.token.is_some() { longer } else { group };
        let failed = absent.iter().take(MOST_LONGER);
        let mut row = Vec::from_iter(failed.map(|each| span(each.start..each.end, "loses", said!("note_absent"))));
        if absent.len() > MOST_LONGER {
            let note = counted("note_more", absent.len() - MOST_LONGER, &[]);
            row.push(span(last.start..last.start, "note", note));
        }
        let told = match last.token {
            Some(token) => {
                row.push(span(last.start..last.end, "wins", said!("note_token", token)));
                let names = listed(&Vec::from_iter(longer.iter().map(shown)));
                let key = if longer.is_empty() { "found" } else { "found_after" };
                counted(key, longer.len(), &[("text", &shown(last)), ("token", &token), ("longer", &names)])
            }
            None => {
                let before = if taken.is_empty() { said!("beginning") } else { taken.join(" · ") };
                said!("nothing_fits", before, text = shown(last), token = unknown)
            }
        };
        taken.extend(last.token.map(|_| shown(last)));
        tokens.push((span(last.start..last.end, "taken", String::new()), told, row));
    }
    let text = face(&word.text.0);
    let mut told = take(title, &word.text.0, tokens, place);
    if word.is_unknown {
        told.whole = said!("unknown_word", text, token = unknown);
        (told.by_step, told.lines) = (false, vec![format!("{text} → unknown")]);
        if let Drawing::Spans { taken, whole, letters, .. } = &mut told.drawing {
            taken.iter_mut().for_each(|span| (span.kind, span.place) = ("way", None));
            *whole = vec![span(0..letters.cells.len(), "loses", said!("note_unknown"))];
        }
    } else if taken.len() == 1 {
        told.whole = said!("piece_whole", text, token = unknown);
    }
    told
}

/// The units of RWKV: one for each word.
pub(super) fn rwkv(teller: &mut Teller<'_>, steps: &Rwkv, text: &[u8]) {
    let words = words(&steps.matches, |found| text[found.start] == b' ', |_| false);
    for (at, word) in words.iter().enumerate() {
        let low = word[0].start;
        let high = word[word.len() - 1].end;
        let tell = |found: &Match| {
            let start = found.start - low;
            let end = found.end - low;
            let token = found.token;
            let ends = (found.start + 1..).zip(&found.walk).filter(|(_, step)| step.token.is_some());
            let mut shorter = Vec::from_iter(ends.map(|(end, _)| end).filter(|end| *end < found.end));
            shorter.reverse();
            let names = listed(&Vec::from_iter(shorter.iter().map(|end| face(&text[found.start..*end]))));
            let shown = face(&text[found.start..found.end]);
            let told = match shorter.len() + 1 {
                _ if found.is_unknown => said!("longest_none", text = shown, token),
                1 => said!("longest", text = shown, token),
                n => said!("longest_of", text = shown, token, n, shorter = names),
            };
            // Only what ends between characters, as the cells do.
            let ends = shorter.iter().filter(|end| std::str::from_utf8(&text[found.start..**end]).is_ok());
            let mut row = vec![span(start..end, "wins", said!("note_token", token))];
            row.extend(ends.map(|end| span(start..end - low, "loses", said!("note_shorter"))));
            (span(start..end, "taken", String::new()), told, row)
        };
        teller.add("match", word.len(), word.len(), |place| {
            let title = format!("Word {} of {}: ", at + 1, words.len());
            take(title, &text[low..high], word.iter().map(tell).collect(), place)
        });
    }
}

/// The units of the test vocabulary: one for some groups.
pub(super) fn test(teller: &mut Teller<'_>, steps: &Test, text: &[u8]) {
    for groups in words(&steps.groups, |_| false, |_| false) {
        let low = groups[0].start;
        let high = groups[groups.len() - 1].end;
        let tell = |group: &HashedGroup| {
            let text = face(&text[group.start..group.end]);
            let told = said!("hash", text, hash = grouped(group.hash as usize), token = group.token);
            (span(group.start - low..group.end - low, "taken", String::new()), told, Vec::new())
        };
        teller.add("match", groups.len(), groups.len(), |place| {
            take("Groups: ".to_owned(), &text[low..high], groups.iter().map(tell).collect(), place)
        });
    }
}

/// The unit of a tag, or of letters of DNA.
pub(super) fn dna(teller: &mut Teller<'_>, stretch: &Stretch, text: &[u8]) {
    let num_tokens = stretch.kmers.len() + usize::from(stretch.tag.is_some());
    teller.add("dna", num_tokens, num_tokens, |place| {
        let taken = |range| span(range, "taken", String::new());
        let tag = stretch.tag.map(|token| (taken(0..text.len()), said!("tag", text = face(text), token), Vec::new()));
        let kmers = stretch.kmers.iter().map(|kmer| {
            let text = face(&kmer.text.0);
            let token = kmer.token;
            let told = if kmer.is_known { said!("dna", text, token) } else { said!("dna_unknown", text, token) };
            (taken(kmer.start - stretch.start..kmer.end - stretch.start), told, Vec::new())
        });
        take("DNA: ".to_owned(), text, tag.into_iter().chain(kmers).collect(), place)
    });
}
