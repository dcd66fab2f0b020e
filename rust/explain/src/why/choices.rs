//! Explains why an algorithm that does not merge chose other tokens: a longer match, a higher sum of scores, or a lower
//! cost.

use std::ops::Range;

use ggtok_core::internals::spelling::ESCAPED_SPACE;

use super::{Asked, Origins, quoted};
use crate::trace::{Candidate, Plamo2, Rwkv, Unigram, WordPiece};

/// Ranges are in the fragment, which starts at byte `start` of the text.
impl Asked<'_> {
    pub(super) fn find_words(&mut self, steps: &WordPiece, range: Range<usize>, start: usize) {
        let overlapping = steps.words.iter().filter(|word| word.start < range.end && range.start < word.end);
        match overlapping.collect::<Vec<_>>()[..] {
            [] => self.add_dropped(),
            [word] if word.is_unknown => {
                let message =
                    format!("{} is one unknown word: tokens do not cover it to its end.", quoted(&word.text.0));
                self.add("unknown_word", message, Some(start + word.start), word.tokens.first().copied());
            }
            [word] => {
                let points = steps.code_points.iter().filter(|point| {
                    point.role.starts_with("word") && range.start <= point.start && point.end <= range.end
                });
                let text: String = points.filter_map(|point| char::from_u32(point.lowercase)).collect();
                let phantom = if range.start <= word.start { ESCAPED_SPACE } else { b"" };
                let Some(token) = self.find_token(&[phantom, text.as_bytes()].concat()) else { return };
                let taken = word.attempts.iter().filter(|attempt| attempt.token.is_some());
                let taken: Vec<String> = taken.map(|attempt| quoted(&attempt.text.0)).collect();
                let message = format!(
                    "{} is token {token}, but the longest match is taken first, from left to right: {}.",
                    quoted(text.as_bytes()),
                    taken.join(", ")
                );
                self.add("longer_match", message, Some(start + range.start), Some(token));
            }
            [first, second, ..] => {
                let message = format!("{} and {} are two words.", quoted(&first.text.0), quoted(&second.text.0));
                self.add("word_boundary", message, Some(start + second.start), None);
            }
        }
    }

    pub(super) fn find_lattice(&mut self, steps: &Unigram, range: Range<usize>, start: usize) {
        let wanted = Origins { origins: &steps.origins, start }.forward(range.clone());
        if wanted.is_empty() {
            return self.add_dropped();
        }
        let Some(text) = steps.normalized.0.get(wanted.clone()) else { return };
        let Some(token) = self.find_token(text) else { return };
        let position = steps.positions.iter().find(|position| position.at == wanted.start);
        let candidate = position.and_then(|position| position.candidates.iter().find(|found| found.end == wanted.end));
        let best = steps.best.iter().find(|best| best.at == wanted.end).and_then(|best| best.score_sum);
        let text = quoted(text);
        let message = match (candidate, best) {
            (Some(Candidate { score, score_sum: Some(sum), .. }), Some(best)) if best > *sum => {
                let [sum, best] = apart(*sum, best);
                let score = number(*score, 2);
                format!("{text} ({score}) makes {sum}, but other tokens get that far with {best}.")
            }
            (Some(Candidate { score, .. }), _) => {
                let score = number(*score, 2);
                format!("{text} ({score}) is token {token}, but the best way through the whole text has other tokens.")
            }
            (None, _) => format!("{text} is token {token}, but it is not searched for in a text."),
        };
        self.add("score_lost", message, Some(start + range.start), Some(token));
    }

    pub(super) fn find_matches(&mut self, steps: &Rwkv, range: Range<usize>, start: usize) {
        // Texts in the vocabulary are escaped; what tokens decode to is not.
        let text = &self.trace.text.0[self.range.clone()];
        let Ok(Some(token)) = self.tokenizer.id_of_piece(text) else { return self.add_unknown(text) };
        let Some(found) = steps.matches.iter().find(|found| found.start < range.end && range.start < found.end) else {
            return;
        };
        let taken = &self.trace.text.0[start + found.start..start + found.end];
        let message = format!(
            "{} is token {token}, but the longest match is taken first, from left to right: {}.",
            quoted(text),
            quoted(taken)
        );
        self.add("longer_match", message, Some(start + found.start), Some(found.token));
    }

    pub(super) fn find_costs(&mut self, steps: &Plamo2, range: Range<usize>, start: usize) {
        let wanted = Origins { origins: &steps.origins, start }.forward(range.clone());
        let Some(text) = steps.text.0.get(wanted.clone()) else { return };
        let Some(token) = self.find_token(text) else { return };
        let position = steps.positions.iter().find(|position| position.at == wanted.start);
        let candidate =
            position.and_then(|at| Some((at, at.candidates.iter().find(|found| found.token == Some(token))?)));
        let text = quoted(text);
        let message = match candidate {
            Some((position, candidate)) if !candidate.wins => {
                let [total, best] = apart(scaled(candidate.total), scaled(position.cost));
                let cost = number(scaled(candidate.cost), 2);
                format!("{text} ({cost}) makes {total} to the end of the text, but other tokens make {best}.")
            }
            Some((_, candidate)) => {
                let cost = number(scaled(candidate.cost), 2);
                format!(
                    "{text} ({cost}) is token {token}, but the cheapest way through the whole text has other tokens."
                )
            }
            None => format!("{text} is token {token}, but it is not searched for in a text."),
        };
        self.add("score_lost", message, Some(start + range.start), Some(token));
    }
}

/// A number as the views show it, with a minus sign.
fn number(value: f64, digits: usize) -> String {
    format!("{value:.digits$}").replace('-', "−")
}

/// Two numbers with as many digits as tell them apart, but at least two.
fn apart(one: f64, other: f64) -> [String; 2] {
    let digits = (2..17).find(|&digits| number(one, digits) != number(other, digits)).unwrap_or(2);
    [number(one, digits), number(other, digits)]
}

/// A cost of PLaMo-2 in the unit of Unigram's scores, as the views show it.
fn scaled(cost: i64) -> f64 {
    cost as f64 / 10_000.0
}
