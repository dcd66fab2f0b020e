//! Explains why a pair of symbols did not merge: a piece ends between them, a neighbour merged first, or no merge joins
//! them.

use std::ops::Range;

use super::{Asked, quoted};
use crate::trace::{Bigram, Bpe, Merging};

impl Asked<'_> {
    /// `range` is in the text that was cut into pieces; `back` maps it to the whole text.
    pub(super) fn find_pieces(&mut self, bpe: &Bpe, range: Range<usize>, back: &dyn Fn(usize) -> usize) {
        let overlaps = |start: usize, end: usize| start < range.end && range.start < end;
        let words: Vec<_> = bpe.words.iter().filter(|word| overlaps(word.start, word.end)).collect();
        if let [first, second, ..] = words[..] {
            let texts = [first, second].map(|word| quoted(&bpe.text.0[word.start..word.end]));
            let message = format!("{} and {} are two words, which no token crosses.", texts[0], texts[1]);
            return self.add("word_boundary", message, Some(back(second.start)), None);
        }
        let pieces: Vec<_> = bpe.pieces.iter().filter(|piece| overlaps(piece.start, piece.end)).collect();
        match pieces[..] {
            [piece] => {
                let place = |at: usize| piece.places.partition_point(|place| *place < at);
                let wanted = place(range.start)..place(range.end);
                let back = |at: usize| back(piece.places.get(at).copied().unwrap_or(piece.end));
                self.find_merges(&piece.merging, &piece.spelled.0, wanted, &back);
            }
            [first, second, ..] => {
                // The first pattern that cut here, described by what it matches before or after the position.
                let by = bpe.passes.iter().zip(1..).find_map(|(pass, number)| {
                    let at = pass.cuts.iter().position(|cut| cut.end == first.end)?;
                    let matched = |index: usize, which| {
                        let alternative = pass.alternatives[pass.cuts.get(index)?.alternative?];
                        Some(format!(": {} in pattern {number} matches the {which}", quoted(alternative.as_bytes())))
                    };
                    Some(matched(at, "first").or_else(|| matched(at + 1, "second")).unwrap_or_default())
                });
                let texts = [first, second].map(|piece| quoted(&piece.text.0));
                let by = by.unwrap_or_default();
                let message = format!("{} and {} are two pieces, which no merge joins{by}.", texts[0], texts[1]);
                self.add("piece_boundary", message, Some(back(second.start)), None);
            }
            [] => self.add_dropped(),
        }
    }

    /// `wanted` is a range of the text whose characters merged. `back` maps a position in that text to the whole text.
    pub(super) fn find_merges(
        &mut self,
        merging: &Merging,
        text: &[u8],
        wanted: Range<usize>,
        back: &dyn Fn(usize) -> usize,
    ) {
        let shown = quoted(&text[wanted.clone()]);
        let Some(token) = self.find_token(&text[wanted.clone()]) else { return };
        // The first symbol inside, and the first one after.
        let mut starts = vec![0];
        merging.symbols.iter().for_each(|symbol| starts.push(starts[symbol.index] + symbol.n));
        let [first, end] = [wanted.start, wanted.end].map(|at| starts.partition_point(|&start| start < at));

        let mut waiting: Vec<&Bigram> = merging.queue.iter().collect();
        for pop in merging.pops.iter().filter(|pop| pop.stale.is_none()) {
            let Bigram { left, right, .. } = pop.bigram;
            let over_start = left < first && (first..end).contains(&right);
            let over_end = (first..end).contains(&left) && right >= end;
            if over_start || over_end {
                let loser = waiting.iter().rev().find(|bigram| {
                    first <= bigram.left && bigram.right < end && (bigram.left == right || bigram.right == left)
                });
                let after = match loser {
                    Some(loser) => format!("{} ({}) comes later", quoted(&loser.text.0), priority(loser)),
                    None => format!("{shown} is token {token}, but was not reached"),
                };
                let at = if over_start { wanted.start } else { wanted.end };
                let message = format!(
                    "{} ({}) merged first, and took part of {shown}: {after}.",
                    quoted(&pop.bigram.text.0),
                    priority(&pop.bigram)
                );
                return self.add("merge_lost", message, Some(back(at)), pop.bigram.token);
            }
            waiting.extend(&pop.added);
        }

        // No symbol outside took a part, so no merge joins the symbols inside.
        let inside = merging.merged.get(first..end).unwrap_or_default();
        let mut inside = inside.iter().filter(|symbol| symbol.n > 0);
        let (message, at) = match (inside.next(), inside.next()) {
            (Some(left), Some(right)) => {
                let at = starts[right.index];
                let [left, right] = [left, right].map(|symbol| quoted(&symbol.text.0));
                (format!("{shown} is token {token}, but no merge joins {left} and {right}."), at)
            }
            _ => {
                let holder = &merging.symbols[starts.partition_point(|&start| start <= wanted.start) - 1];
                let holder = quoted(&holder.text.0);
                (
                    format!("{shown} is token {token}, but a byte that is not UTF-8 takes it into {holder}."),
                    wanted.start,
                )
            }
        };
        self.add("merge_missing", message, Some(back(at)), Some(token));
    }
}

/// What decides when a pair merges.
fn priority(bigram: &Bigram) -> String {
    match (bigram.score, bigram.rank) {
        (Some(score), _) => format!("score {score}").replace('-', "−"),
        (None, rank) => format!("merge {}", rank.unwrap_or_default()),
    }
}
