//! Explains why characters did not become one token, from what a trace says about the places where they were separated.
//!
//! Reasons are checked in the order of the steps: special tokens, pieces or words, the vocabulary, and finally the
//! algorithm's choice. The first one found is the most important. Complexity: O(steps of the fragment).

mod choices;
mod merges;

use std::ops::Range;

use ggtok_core::{TokenId, Tokenizer};

use super::trace::{Fragment, HybridDna, Origin, Reason, Steps, Test, Trace, Why};
use super::{ExplainError, Explainer, Result};

impl Explainer {
    /// Why the bytes `range` of a trace's text did not become one token, or that they did. A range that starts or ends
    /// inside a character is widened.
    ///
    /// # Errors
    /// [`ExplainError::Range`]: the range is empty or not inside the text.
    pub fn why(&self, trace: &Trace, range: Range<usize>) -> Result<Why> {
        let Range { start, end } = range;
        if start >= end || end > trace.text.0.len() {
            return Err(ExplainError::Range { start, end, len: trace.text.0.len() });
        }
        let inside = |point: &&super::trace::CodePoint| point.start < end && start < point.end;
        let first = trace.code_points.iter().find(inside).map_or(start, |point| point.start);
        let last = trace.code_points.iter().rfind(inside).map_or(end, |point| point.end);
        let range = first..last;

        let of_text = trace.tokens.iter().enumerate().filter(|(_, token)| token.fragment.is_some());
        let overlapping = of_text.filter(|(_, token)| token.start < range.end && range.start < token.end);
        let tokens: Vec<usize> = overlapping.map(|(index, _)| index).collect();
        let mut asked = Asked { tokenizer: &self.tokenizer, trace, range, reasons: Vec::new() };
        asked.find(&tokens);
        Ok(Why { start: asked.range.start, end: asked.range.end, tokens, reasons: asked.reasons })
    }
}

/// A question, and the reasons found so far.
struct Asked<'a> {
    tokenizer: &'a Tokenizer,
    trace: &'a Trace,
    /// The characters, in bytes of the whole text.
    range: Range<usize>,
    reasons: Vec<Reason>,
}

impl<'a> Asked<'a> {
    fn add(&mut self, kind: &'static str, message: String, at: Option<usize>, token: Option<TokenId>) {
        self.reasons.push(Reason { kind, message, at, token });
    }

    /// The characters as they are written.
    fn text(&self) -> String {
        quoted(&self.trace.text.0[self.range.clone()])
    }

    fn find(&mut self, tokens: &[usize]) {
        let trace = self.trace;
        let text = self.text();
        let unread = trace.unread.iter().filter(|found| found.start < self.range.end && self.range.start < found.end);
        for found in unread.collect::<Vec<_>>() {
            let message = format!(
                "{} is the {} token {}, which is read only with parse_special.",
                quoted(&found.text.0),
                found.attribute.replace('_', "-"),
                found.token
            );
            self.add("special_not_parsed", message, Some(found.start), Some(found.token));
        }
        if let &[index] = tokens {
            // This answers the question, unless a special token was meant.
            let token = &trace.tokens[index];
            let shown = format!("token {} {}", token.id, quoted(&token.text.0));
            let span = token.start..token.end;
            let (kind, message) = if span == self.range {
                ("one_token", format!("{text} is {shown}."))
            } else if span.start <= self.range.start && self.range.end <= span.end {
                ("one_token", format!("{text} is part of {shown}."))
            } else {
                ("normalized", format!("{text} became {shown}; the rest was dropped."))
            };
            return self.add(kind, message, Some(token.start), Some(token.id));
        }
        if self.find_special() {
            return;
        }
        self.find_steps(tokens);
        let spaced = [b" ", &trace.text.0[self.range.clone()]].concat();
        if spaced.get(1).is_some_and(|&first| first != b' ')
            && let Ok(Some(token)) = self.tokenizer.id_of_piece(&spaced)
        {
            let message =
                format!("{} is one token with a space before it: {} is token {token}.", text, quoted(&spaced));
            self.add("one_with_space", message, None, Some(token));
        }
    }

    /// What the steps of the fragment say.
    fn find_steps(&mut self, tokens: &[usize]) {
        let Some(fragment) = self.fragment() else { return };
        let range = self.range.start - fragment.start..self.range.end - fragment.start;
        let start = fragment.start;
        match &fragment.steps {
            None => {}
            Some(_) if tokens.is_empty() => self.add_dropped(),
            Some(Steps::Spm(spm)) => {
                let origins = Origins { origins: &spm.origins, start };
                let escaped = origins.forward(range);
                self.find_merges(&spm.merging, &spm.escaped.0, escaped, &|at| origins.back(at));
            }
            Some(Steps::Bpe(bpe)) => {
                let origins = Origins { origins: &bpe.origins, start };
                self.find_pieces(bpe, origins.forward(range), &|at| origins.back(at));
            }
            Some(Steps::HybridDna(dna)) => self.find_dna(dna, range, start),
            Some(Steps::WordPiece(steps)) => self.find_words(steps, range, start),
            Some(Steps::Unigram(steps)) => self.find_lattice(steps, range, start),
            Some(Steps::Rwkv(steps)) => self.find_matches(steps, range, start),
            Some(Steps::Plamo2(steps)) => self.find_costs(steps, range, start),
            Some(Steps::Test(Test { groups })) => {
                let boundary = groups.iter().find(|group| group.start > range.start);
                let message = "Every five bytes are one token.".to_owned();
                self.add("piece_boundary", message, boundary.map(|group| start + group.start), None);
            }
        }
    }

    fn add_dropped(&mut self) {
        let message = format!("{} is dropped: no token stands for it.", self.text());
        self.add("normalized", message, Some(self.range.start), None);
    }

    /// The fragment that holds all characters, if one does.
    fn fragment(&self) -> Option<&'a Fragment> {
        let Range { start, end } = self.range;
        self.trace.fragments.iter().find(|fragment| fragment.start <= start && end <= fragment.end)
    }

    /// A special token that separates the characters or includes some of them.
    fn find_special(&mut self) -> bool {
        let Range { start, end } = self.range;
        let trace = self.trace;
        let Some(found) = trace.special.iter().find(|found| found.start < end && start < found.end) else {
            return false;
        };
        let message = format!(
            "{} is the special token {}, which is cut out of the text before anything else.",
            quoted(&found.text.0),
            found.token
        );
        self.add("special_boundary", message, Some(found.start.max(start)), Some(found.token));
        true
    }

    /// `range` is in the fragment, which starts at byte `start` of the text.
    fn find_dna(&mut self, dna: &HybridDna, range: Range<usize>, start: usize) {
        let origins = Origins { origins: &dna.origins, start };
        let range = origins.forward(range);
        let overlapping: Vec<_> =
            dna.stretches.iter().filter(|stretch| stretch.start < range.end && range.start < stretch.end).collect();
        match overlapping[..] {
            [stretch] => match &stretch.bpe {
                Some(bpe) => {
                    let inner = Origins { origins: &bpe.origins, start: stretch.start };
                    let range = inner.forward(range.start - stretch.start..range.end - stretch.start);
                    self.find_pieces(bpe, range, &|at| origins.back(inner.back(at)));
                }
                None => {
                    let boundary = stretch.kmers.iter().find(|kmer| kmer.start > range.start).map(|kmer| kmer.start);
                    let message = "Between <dna> and </dna>, every six letters are one token.".to_owned();
                    self.add("piece_boundary", message, boundary.map(|at| origins.back(at)), None);
                }
            },
            _ => {
                let tag = overlapping.iter().find_map(|stretch| Some((stretch, stretch.tag?)));
                let Some((stretch, id)) = tag else { return };
                let message =
                    format!("{} is a token, and no other crosses it.", quoted(self.tokenizer.vocabulary().text(id)));
                self.add("special_boundary", message, Some(origins.back(stretch.start)), Some(id));
            }
        }
    }

    fn add_unknown(&mut self, text: &[u8]) {
        let written = self.text();
        let spelled = quoted(text);
        let message = if written == spelled {
            format!("The vocabulary has no token {spelled}.")
        } else {
            format!("The vocabulary has no token for {written}, spelled {spelled}.")
        };
        self.add("not_in_vocabulary", message, None, None);
    }

    /// Whether a text is a token; if it is not, that is the reason.
    fn find_token(&mut self, text: &[u8]) -> Option<TokenId> {
        let id = self.tokenizer.vocabulary().id(text);
        if id.is_none() {
            self.add_unknown(text);
        }
        id
    }
}

/// The origin of a rewritten text: a text that starts at byte `start` of a larger one.
struct Origins<'a> {
    origins: &'a [Origin],
    start: usize,
}

impl Origins<'_> {
    /// The part of the rewritten text that stands for a range of the original.
    fn forward(&self, range: Range<usize>) -> Range<usize> {
        let mut found: Option<Range<usize>> = None;
        for origin in self.origins.iter().filter(|origin| origin.from < range.end && range.start < origin.to) {
            let is_kept = origin.end - origin.start == origin.to - origin.from;
            let skipped = if is_kept { range.start.saturating_sub(origin.from) } else { 0 };
            let left = if is_kept { origin.to.saturating_sub(range.end) } else { 0 };
            let start = origin.start + skipped;
            found = Some(found.map_or(start, |found| found.start)..origin.end - left);
        }
        found.unwrap_or(0..0)
    }

    /// Where a place of the rewritten text is in the larger text.
    fn back(&self, at: usize) -> usize {
        let origin = self.origins.iter().find(|origin| origin.start <= at && at < origin.end);
        self.start
            + match origin {
                Some(origin) if origin.end - origin.start == origin.to - origin.from => origin.from + at - origin.start,
                Some(origin) => origin.from,
                None => self.origins.last().map_or(0, |origin| origin.to),
            }
    }
}

/// A text in quotes.
fn quoted(text: &[u8]) -> String {
    let escaped = String::from_utf8_lossy(text).escape_debug().to_string();
    format!("“{}”", escaped.replace("\\'", "'").replace("\\\"", "\"").replace("\\\\", "\\"))
}

#[cfg(test)]
mod tests {
    use ggtok_core::EncodeOptions;
    use ggtok_core::vocab::{Definition, StringIndex};

    use super::Explainer;
    use crate::tests::{TestToken, tokenizer};

    /// The kind and message of the first reason.
    fn why(explainer: &Explainer, text: &str, part: &str) -> (&'static str, String) {
        let options = EncodeOptions::new().add_special(false);
        let trace = explainer.explain(text, options).expect("a trace");
        let start = text.find(part).expect("a part");
        let mut reasons = explainer.why(&trace, start..start + part.len()).expect("a part").reasons;
        let first = reasons.swap_remove(0);
        (first.kind, first.message)
    }

    fn tokens(texts: &str, scores: &[f32], kinds: &[i32]) -> Vec<TestToken> {
        let rows = texts.split(' ').zip(scores).zip(kinds);
        rows.map(|((text, &score), &kind)| (text.into(), score, kind)).collect()
    }

    #[test]
    fn reasons_of_spm() {
        let scores = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -2.0, -1.0, -9.0, -3.0, 0.0];
        let tokens = tokens("<unk> <s> </s> a b c ab bc ▁ abcb <u>", &scores, &[2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4]);
        let definition = Definition { model: "llama", add_space_prefix: Some(false), ..Definition::default() };
        let explainer = Explainer::new(tokenizer(&definition, &tokens), None);
        let cases = [
            ("abc", "bc", "one_token", "“bc” is token 7 “bc”."),
            ("abc", "b", "one_token", "“b” is part of token 7 “bc”."),
            (
                "abc",
                "ab",
                "merge_lost",
                "“bc” (score −1) merged first, and took part of “ab”: “ab” (score −2) comes later.",
            ),
            ("abc", "abc", "not_in_vocabulary", "The vocabulary has no token “abc”."),
            ("abcb", "abcb", "merge_missing", "“abcb” is token 9, but no merge joins “a” and “bc”."),
            (
                "a<s>b",
                "<s>",
                "special_not_parsed",
                "“<s>” is the control token 1, which is read only with parse_special.",
            ),
            (
                "a<u>b",
                "a<u>",
                "special_boundary",
                "“<u>” is the special token 10, which is cut out of the text before anything else.",
            ),
        ];
        for (text, part, kind, message) in cases {
            assert_eq!(why(&explainer, text, part), (kind, message.to_owned()), "{text} {part}");
        }
    }

    #[test]
    fn reasons_of_byte_pair_encoding() {
        let (data, index) = StringIndex::concatenate(&["b c", "a b", "Ġ a"]).expect("few");
        let merges = Some(index.view(&data));
        let definition = Definition { model: "gpt2", pre: Some("gpt-2"), merges, ..Definition::default() };
        let tokens = tokens("a b c Ġ ab bc abc Ġa é Ã ©", &[0.0; 11], &[1; 11]);
        let explainer = Explainer::new(tokenizer(&definition, &tokens), merges);
        let cases = [
            (
                "abc",
                "ab",
                "merge_lost",
                "“bc” (merge 0) merged first, and took part of “ab”: “ab” (merge 1) comes later.",
            ),
            ("abc", "abc", "merge_missing", "“abc” is token 6, but no merge joins “a” and “bc”."),
            (
                "ab ab",
                "b a",
                "piece_boundary",
                "“ab” and “ ab” are two pieces, which no merge joins: “ ?\\p{L}+” in pattern 1 matches the first.",
            ),
            ("cb", "cb", "not_in_vocabulary", "The vocabulary has no token “cb”."),
            ("é", "é", "not_in_vocabulary", "The vocabulary has no token for “é”, spelled “Ã©”."),
        ];
        for (text, part, kind, message) in cases {
            let (found, said) = why(&explainer, text, part);
            assert!(found == kind && said.starts_with(message), "{text} {part}: {found} {said}");
        }
        // Half a character is widened to the whole.
        let trace = explainer.explain("aé", EncodeOptions::new().add_special(false)).expect("a trace");
        let why = explainer.why(&trace, 2..3).expect("a part");
        assert_eq!((why.start, why.end, why.tokens), (1, 3, vec![1, 2]));
    }
}
