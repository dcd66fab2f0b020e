//! One round of training: the expected count of each piece, the scores that follow, and the least useful pieces.
//!
//! Counts are integer multiples of a small unit. Their sums do not depend on the order, so the result does not depend
//! on how segments are distributed over threads.
//!
//! Source: Kudo (2018), section 3.2; sentencepiece's `RunEStep`, `RunMStep` and `PruneSentencePieces`
//! (unigram_model_trainer.cc). The digamma function in the second step makes rare pieces rarer: expectation
//! maximization with a Dirichlet process as the prior (Liang and Klein's tutorial, 2007).
//! Complexity: O(n L) time per pass for n characters of segments and pieces of at most L characters. Space: 8 bytes per
//! piece and thread.

use ggtok_core::internals::interrupt;

use super::lattice::{Lattice, UNKNOWN};
use super::math::{digamma, ln};
use super::pieces::Pieces;
use super::segments::Segments;
use crate::work::work;

/// How many segments or pieces a thread takes at a time.
const RUN: usize = 1 << 8;
/// A piece with a lower expected count is dropped.
const LEAST_COUNT: f64 = 0.5;

/// The expected count of each piece over all segmentations, weighted by their probabilities.
pub(super) fn expect(segments: &Segments, pieces: &Pieces<'_>, threads: usize) -> Vec<f64> {
    // No sum exceeds the number of characters.
    let unit = (1_u64 << (62 - (64 - segments.num_characters.leading_zeros()).min(60))) as f64;
    let counts = sum(segments, pieces, threads, |counts, lattice, count| {
        let weight = count as f64 * unit;
        lattice.marginals(|piece, visits| counts[piece as usize] += (visits * weight + 0.5) as u64);
    });
    counts.into_iter().map(|count| count as f64 / unit).collect()
}

/// The scores that follow from expected counts.
pub(super) fn scores(counts: &[f64]) -> Vec<f64> {
    let is_live = |count: &f64| *count >= LEAST_COUNT;
    let all = digamma(counts.iter().copied().filter(is_live).sum());
    let score = |count: &f64| if is_live(count) { digamma(*count) - all } else { f64::NEG_INFINITY };
    interrupt::ticking(counts).map(score).collect()
}

/// Which pieces to keep: `len` of them, or more if more have no alternative.
///
/// A piece is dropped if it is in no best segmentation, or if its own text has a better segmentation. The others are
/// ranked by how much less likely the corpus would be if every occurrence were written in the second best way.
pub(super) fn prune(segments: &Segments, pieces: &Pieces<'_>, len: usize, threads: usize) -> Vec<bool> {
    let counts = best_counts(segments, pieces, threads);
    let all: f64 = counts.iter().map(|&count| count as f64).sum();
    let loss = |piece: u32, lattice: &mut Lattice| -> Option<f64> {
        let count = counts[piece as usize] as f64;
        if count == 0.0 {
            return None;
        }
        let Some(lead) = lattice.lead(pieces, piece) else { return Some(f64::INFINITY) };
        if lead < 0.0 {
            return None;
        }
        let parts = || lattice.best_way();
        let all_without = ln(all + count * (parts().count() - 1) as f64);
        let log_without: f64 = parts().map(|part| ln(counts[part as usize] as f64 + count) - all_without).sum();
        Some(count / all * (ln(count) - ln(all) - log_without))
    };

    let state = || (Vec::new(), Lattice::default());
    let states = work(threads, pieces.len(), RUN, state, |(losses, lattice), run| {
        losses.extend(run.filter_map(|piece| Some((loss(piece as u32, lattice)?, piece))));
    });
    let mut losses: Vec<(f64, usize)> = states.into_iter().flat_map(|(losses, _)| losses).collect();
    interrupt::sort_unstable_by(&mut losses, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let needed = losses.iter().take_while(|(loss, _)| *loss == f64::INFINITY).count();
    let mut keeps = vec![false; pieces.len()];
    for &(_, piece) in &losses[..losses.len().min(len.max(needed))] {
        keeps[piece] = true;
    }
    keeps
}

/// How often each piece occurs in the best segmentations.
fn best_counts(segments: &Segments, pieces: &Pieces<'_>, threads: usize) -> Vec<u64> {
    sum(segments, pieces, threads, |counts, lattice, count| {
        lattice.search(false);
        for piece in lattice.best_way().filter(|&piece| piece != UNKNOWN) {
            counts[piece as usize] += count;
        }
    })
}

/// One sum per piece: `add` adds to them for each segment, given its lattice and count.
fn sum(
    segments: &Segments,
    pieces: &Pieces<'_>,
    threads: usize,
    add: impl Fn(&mut [u64], &mut Lattice, u64) + Sync,
) -> Vec<u64> {
    let state = || (vec![0; pieces.len()], Lattice::default());
    let states = work(threads, segments.len(), RUN, state, |(sums, lattice), run| {
        for index in run {
            let (text, count) = segments.get(index);
            lattice.fill(pieces, text);
            add(sums, lattice, count);
        }
    });
    let mut all = states.into_iter().map(|(sums, _)| sums);
    let mut sums = all.next().unwrap_or_default();
    for other in all {
        sums.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
    }
    sums
}
