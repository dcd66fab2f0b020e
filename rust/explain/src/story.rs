//! A trace as a story: its steps in the order in which a reader walks through them, what each one says, and what a
//! drawing of it needs. Terminal, page and browser draw it and know nothing else about algorithms.
//!
//! 1. A *unit* is a piece, a word or another part of a stage. It is one step, or may be opened into several.
//! 2. A unit has a *drawing*, whose parts know at which of these steps they appear.
//! 3. Units are only counted at first, and *told* when they are asked for, because a text may have very many.
//!
//! Places of letters count the cells of a drawing, and places of tokens those of the whole text. In a sentence, what is
//! emphasised stands between two U+0001, which no text that is shown contains.
//!
//! Complexity: O(n) for n steps, whether they are told or not; with a queue, O(n log n).

#[macro_use]
mod words;

mod choosing;
mod merging;

use ggtok_core::TokenId;
use ggtok_core::unicode::utf8;
use serde::Serialize;

use super::bytes::Bytes;
use super::trace::{Bpe, Prefix, SpecialMatch, Steps, Token, Trace};
pub use words::face;
use words::{Letters, and, counted, said, sentence, shortened};

/// The stages in their order.
const STAGES: [&str; 8] = ["special", "normalize", "split", "merge", "dna", "search", "match", "tokens"];
/// How many parts of a text are drawn.
const MOST_PARTS: usize = 600;
/// The bytes around a special token that are drawn.
const CONTEXT: usize = 120;

/// The steps of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Story {
    /// What the algorithm does, in a sentence.
    pub idea: String,
    /// The stages that there are, each with its name.
    pub stages: Vec<(&'static str, String)>,
    /// The units, stage by stage.
    pub units: Vec<Unit>,
}

/// All that a page shows of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<'t> {
    /// The steps, all of them told.
    pub story: Story,
    /// The text.
    pub text: &'t Bytes,
    /// The tokens.
    pub tokens: &'t [Token],
    /// The places of special tokens that were read.
    pub special: Vec<usize>,
    /// What the text is, and how it was read.
    pub facts: String,
    /// What the signs mean that the drawings have and the text has not.
    pub signs: String,
}

/// A part of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unit {
    /// The number by which it is asked for.
    pub id: usize,
    /// A name of [`Story::stages`].
    pub stage: &'static str,
    /// The tokens that it makes: the place of the first one, and the place after the last.
    pub tokens: (usize, usize),
    /// How many steps are inside; none if it does not open.
    pub length: usize,
    /// What is shown, if it was asked for.
    #[serde(flatten)]
    pub told: Option<Told>,
}

/// What is shown of a unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// What it is, such as `Word 2 of 3: is`.
    pub title: String,
    /// What it says as one step.
    pub whole: String,
    /// What each step inside says.
    pub steps: Vec<String>,
    /// Whether each step inside makes a token. Otherwise the last one makes all.
    pub by_step: bool,
    /// The unit on one line, if it is worth one: the longest first.
    pub lines: Vec<String>,
    /// The picture.
    pub drawing: Drawing,
}

/// What is drawn of a unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "variants say what they hold")]
pub enum Drawing {
    /// All tokens with their ids.
    Tokens,
    /// A text in parts; a special token is `won` if it was read, or else `lost`.
    Marked { parts: Vec<(String, &'static str)> },
    /// A text in parts, each with what became of it. A step inside is about one of them.
    Rewritten { parts: Vec<(String, String)> },
    /// Parts that were cut apart, how many more there are, and the alternatives of the pattern that cut them.
    Cuts { parts: Vec<String>, more: usize, family: &'static str, pattern: Vec<&'static str> },
    /// Symbols that merge. The first step inside shows the symbols, and each further one is a merge. The pairs are in the
    /// order in which they would merge.
    Tree { letters: Letters, pairs: Vec<Pair>, leaves: Vec<Leaf>, legend: String },
    /// All ways to cut a word. Each step inside is about a dot, and the last one is the best way. `total` are those of
    /// the dots, `start` the dot at which the search starts.
    Lattice { letters: Letters, totals: Vec<String>, arcs: Vec<Arc>, start: usize, legend: String },
    /// Tokens below a text. `rows` are what each step inside tries, `whole` is the unit as one step.
    Spans { letters: Letters, taken: Vec<Span>, rows: Vec<Vec<Span>>, whole: Vec<Span> },
}

/// Two neighbours that could merge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The first letter of the left one.
    pub from: usize,
    /// The first letter of the right one.
    pub mid: usize,
    /// The letter after the right one.
    pub to: usize,
    /// Both as they are shown.
    pub faces: (String, String),
    /// What they make together.
    pub face: String,
    /// What decides when it merges, such as `rule 312`.
    pub by: String,
    /// The step from which it waits.
    pub born: usize,
    /// The step in which it merges, or in which one of its parts merges with another.
    pub died: Option<usize>,
    /// Whether it merges.
    pub won: bool,
}

/// A symbol that is left, with the places and ids of its tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "fields say what they are")]
pub struct Leaf {
    pub from: usize,
    pub to: usize,
    pub tokens: Vec<(usize, TokenId)>,
}

/// A token between two dots.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arc {
    /// The dot on its left.
    pub from: usize,
    /// The dot on its right.
    pub to: usize,
    /// Its text.
    pub text: String,
    /// Its score or cost.
    pub score: String,
    /// The total of the best way that ends with it.
    pub total: String,
    /// How likely it is: 1 for the likeliest of the word, 0 for the least likely.
    pub weight: f64,
    /// The step in which it appears.
    pub born: usize,
    /// Whether it makes the best total.
    pub wins: bool,
    /// Whether it is a character without a token.
    pub is_unknown: bool,
    /// The place of the token that it becomes, if the best way has it.
    pub place: Option<usize>,
}

/// A token below a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// Its first letter.
    pub from: usize,
    /// The letter after its last.
    pub to: usize,
    /// What became of it: `taken`, `wins`, `loses`, or `way` for what was taken in vain.
    pub kind: &'static str,
    /// What is written beside it.
    pub note: String,
    /// The place of the token, if it is taken.
    pub place: Option<usize>,
}

/// Collects the units of a story.
struct Teller<'t> {
    is_told: &'t dyn Fn(usize) -> bool,
    /// The place of the next token.
    next: usize,
    units: Vec<Unit>,
}

impl Teller<'_> {
    /// Adds a unit that makes `num_tokens` tokens in `length` steps. `tell` is given the place of its first token.
    fn add(&mut self, stage: &'static str, num_tokens: usize, length: usize, tell: impl FnOnce(usize) -> Told) {
        let id = self.units.len();
        let first = self.next;
        self.next += num_tokens;
        let told = (self.is_told)(id).then(|| tell(first));
        let length = if length > 1 { length } else { 0 };
        self.units.push(Unit { id, stage, tokens: (first, self.next), length, told });
    }
}

impl Told {
    /// A unit that is one step, and is not on a line.
    fn one(title: String, whole: String, drawing: Drawing) -> Self {
        Self { title, whole, steps: Vec::new(), by_step: false, lines: Vec::new(), drawing }
    }
}

impl Trace {
    /// The story of the trace, with those units told of whose ids `is_told` holds.
    pub fn story(&self, is_told: &dyn Fn(usize) -> bool) -> Story {
        let mut teller = Teller { is_told, next: 0, units: Vec::new() };
        self.tell_special(&mut teller);
        for fragment in &self.fragments {
            let text = &self.text.0[fragment.start..fragment.end];
            teller.next = fragment.first_token;
            match &fragment.steps {
                None => {}
                Some(Steps::Spm(steps)) => merging::spm(&mut teller, steps, text),
                Some(Steps::Bpe(steps)) => bpe(&mut teller, steps, text),
                Some(Steps::HybridDna(steps)) => {
                    for stretch in &steps.stretches {
                        let text = &steps.text.0[stretch.start..stretch.end];
                        match &stretch.bpe {
                            Some(steps) => bpe(&mut teller, steps, text),
                            None => choosing::dna(&mut teller, stretch, text),
                        }
                    }
                }
                Some(Steps::WordPiece(steps)) => choosing::word_piece(&mut teller, steps),
                Some(Steps::Unigram(steps)) => {
                    if !steps.prefixes.is_empty() {
                        teller.add("normalize", 0, steps.prefixes.len(), |_| normalization(&steps.prefixes, text));
                    }
                    choosing::unigram(&mut teller, steps);
                }
                Some(Steps::Rwkv(steps)) => choosing::rwkv(&mut teller, steps, text),
                Some(Steps::Plamo2(steps)) => choosing::plamo2(&mut teller, steps),
                Some(Steps::Test(steps)) => choosing::test(&mut teller, steps, text),
            }
        }
        teller.next = 0;
        teller.add("tokens", self.tokens.len(), 0, |_| self.tell_tokens());
        let Teller { mut units, .. } = teller;
        units.sort_by_key(|unit| STAGES.iter().position(|stage| *stage == unit.stage));
        let there = STAGES.into_iter().filter(|stage| units.iter().any(|unit| unit.stage == *stage));
        let stages = there.map(|stage| (stage, sentence("stages", stage))).collect();
        Story { idea: sentence("ideas", self.idea()), stages, units }
    }

    /// All that a page shows.
    pub fn page(&self) -> Page<'_> {
        let special = self.fragments.iter().filter(|fragment| fragment.token.is_some());
        let switches = [
            (self.parse_special, "special tokens read"),
            (self.continues, "continues an earlier text"),
            (!self.add_special, "no BOS, EOS or SEP"),
        ];
        let mut facts =
            vec![counted("characters", self.code_points.len(), &[]), counted("bytes_of_text", self.text.0.len(), &[])];
        facts.extend(switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, what)| what.to_owned()));
        Page {
            story: self.story(&|_| true),
            text: &self.text,
            tokens: &self.tokens,
            special: special.map(|fragment| fragment.first_token).collect(),
            facts: facts.join(" · "),
            signs: self.signs(),
        }
    }

    fn idea(&self) -> &'static str {
        match self.fragments.iter().find_map(|fragment| fragment.steps.as_ref()) {
            Some(Steps::HybridDna(_)) => "hybrid_dna",
            Some(Steps::Bpe(steps)) if steps.rewritten.contains(&"escaped") => "bpe_characters",
            _ => self.algorithm,
        }
    }

    fn signs(&self) -> String {
        let text = &self.text.0;
        let is_bytes = |token: &Token| std::str::from_utf8(&token.piece.0).is_err();
        let of_bytes = self.idea() == "bpe" || self.tokens.iter().any(is_bytes);
        let byte = text.iter().find(|byte| **byte > 0x7F).filter(|_| of_bytes);
        let begins_words = self.tokens.iter().any(|token| token.text.0.starts_with("▁".as_bytes()));
        let signs = [
            text.contains(&b' ').then(|| said!("sign_space")),
            text.contains(&b'\n').then(|| said!("sign_line")),
            begins_words.then(|| said!("sign_word")),
            byte.map(|byte| said!("sign_byte", byte = format!("{byte:02X}"))),
        ];
        Vec::from_iter(signs.into_iter().flatten()).join(" · ")
    }

    /// A unit for each special token that is found, in the order of the search, and for each that is not read.
    fn tell_special(&self, teller: &mut Teller<'_>) {
        let found = Vec::from_iter(self.special.iter().chain(&self.unread));
        if let Some(first) = found.first() {
            let title = "Special tokens".to_owned();
            teller.add("special", 0, 0, |_| Told::one(title, said!("special_start"), self.marked(&[], first)));
        }
        for (at, special) in found.iter().enumerate() {
            let is_read = at < self.special.len();
            let after = self.fragments.partition_point(|fragment| fragment.start < special.start);
            let own = self.fragments[after..].iter().find(|fragment| fragment.token == Some(special.token));
            teller.next = own.map_or(0, |fragment| fragment.first_token);
            teller.add("special", usize::from(is_read), 0, |_| {
                let text = face(&special.text.0);
                let token = special.token;
                let told =
                    if is_read { said!("special_read", text, token) } else { said!("special_unread", text, token) };
                Told::one(format!("Special token {text}"), told, self.marked(&found[..=at], special))
            });
        }
    }

    /// The text around a special token, with those that are found so far.
    fn marked(&self, found: &[&SpecialMatch], around: &SpecialMatch) -> Drawing {
        let text = &self.text.0;
        let mut at = utf8::floor(text, around.start.saturating_sub(CONTEXT));
        let end = utf8::floor(text, text.len().min(around.end + 2 * CONTEXT));
        let mut marks = Vec::from_iter(found.iter().filter(|mark| mark.start >= at && mark.end <= end));
        // An unread token may overlap a read one. Of the two, the one that the step is about is marked, else the first.
        marks.retain(|mark| **mark == around || mark.end <= around.start || around.end <= mark.start);
        marks.sort_by_key(|mark| mark.start);
        marks.dedup_by(|next, mark| next.start < mark.end);
        let mut parts = Vec::new();
        for mark in marks {
            let kind = if self.special.contains(mark) { "won" } else { "lost" };
            parts.extend([(face(&text[at..mark.start]), ""), (face(&text[mark.start..mark.end]), kind)]);
            at = mark.end;
        }
        parts.push((face(&text[at..end]), ""));
        Drawing::Marked { parts }
    }

    fn tell_tokens(&self) -> Told {
        let characters = counted("characters", self.code_points.len(), &[]);
        let mut told = counted("tokens", self.tokens.len(), &[("characters", &characters)]);
        if let (Some(_), Some(token)) = (self.added_before, self.tokens.first()) {
            and(&mut told, said!("added_before", text = face(&token.text.0)));
        }
        if let (Some(_), Some(token)) = (self.added_after, self.tokens.last()) {
            and(&mut told, said!("added_after", text = face(&token.text.0)));
        }
        Told::one("Tokens".to_owned(), told, Drawing::Tokens)
    }
}

/// The units of byte-pair encoding.
fn bpe(teller: &mut Teller<'_>, steps: &Bpe, text: &[u8]) {
    let whole = &steps.text.0;
    if !steps.rewritten.is_empty() {
        let told = || Vec::from_iter(steps.rewritten.iter().map(|what| said(what, &[]))).join(" ");
        teller.add("normalize", 0, 0, |_| rewriting("Rewriting", told(), text, whole));
    }
    let title = || "Cutting into pieces".to_owned();
    let count = steps.passes.len();
    if count == 0 && !whole.is_empty() {
        let drawing = || cuts(std::iter::once(&whole[..]), steps.family, Vec::new());
        teller.add("split", 0, 0, |_| Told::one(title(), said!("split_none"), drawing()));
    }
    for (pass, at) in steps.passes.iter().zip(1..) {
        teller.add("split", 0, 0, |_| {
            let n = pass.cuts.len();
            let told = if at == count {
                counted("split", n, &[])
            } else {
                counted("split_part", n, &[("at", &at), ("count", &count)])
            };
            let parts = pass.cuts.iter().map(|cut| &whole[cut.start..cut.end]);
            Told::one(title(), told, cuts(parts, steps.family, pass.alternatives.clone()))
        });
    }
    merging::pieces(teller, steps);
}

/// A text that was cut.
fn cuts<'t>(
    parts: impl ExactSizeIterator<Item = &'t [u8]>,
    family: &'static str,
    pattern: Vec<&'static str>,
) -> Drawing {
    let more = parts.len().saturating_sub(MOST_PARTS);
    let parts = parts.take(MOST_PARTS).map(face).collect();
    Drawing::Cuts { parts, more, family, pattern }
}

/// A text that was rewritten as a whole.
fn rewriting(title: &str, told: String, before: &[u8], after: &[u8]) -> Told {
    let parts = vec![(shortened(&face(before), MOST_PARTS), shortened(&face(after), MOST_PARTS))];
    Told::one(title.to_owned(), told, Drawing::Rewritten { parts })
}

/// Unigram's normalization: one step inside for each part that is looked up.
fn normalization(prefixes: &[Prefix], text: &[u8]) -> Told {
    let parts = prefixes.iter().map(|part| (face(&text[part.start..part.end]), face(&part.appended.0)));
    let parts = Vec::from_iter(parts);
    let outcome = |part: &Prefix| match part.outcome {
        "user_defined" => "user_defined",
        _ if part.appended.0.is_empty() && part.replacement.0 == b" " => "space",
        _ if part.appended.0.is_empty() => "dropped",
        outcome => outcome,
    };
    let outcomes = Vec::from_iter(prefixes.iter().map(outcome));
    let tell = |(outcome, (text, after)): (&&str, &(String, String))| {
        said(&format!("rewrite_{outcome}"), &[("text", text), ("after", after)])
    };
    let steps = outcomes.iter().zip(&parts).map(tell).collect();
    let is_changed = |outcome: &&&str| matches!(**outcome, "replaced" | "invalid" | "dropped");
    let num_changed = outcomes.iter().filter(is_changed).count();
    let mut whole = String::new();
    if num_changed > 0 || prefixes.iter().all(|part| part.appended.0 == text[part.start..part.end]) {
        let changed = outcomes.iter().position(|outcome| is_changed(&outcome));
        let (before, after) = changed.map(|at| parts[at].clone()).unwrap_or_default();
        let after = if after.is_empty() { "nothing".to_owned() } else { after };
        whole = counted("normalized", num_changed, &[("before", &before), ("after", &after)]);
    }
    if text.contains(&b' ') {
        and(&mut whole, said!("spaces"));
    }
    if prefixes[0].appended.0.starts_with("▁".as_bytes()) && !prefixes[0].replacement.0.starts_with(b" ") {
        and(&mut whole, said!("spaces_prefix"));
    }
    Told { steps, ..Told::one("Rewriting".to_owned(), whole, Drawing::Rewritten { parts }) }
}
