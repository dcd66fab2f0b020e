//! Finds the first attempt in an unfinished text whose result depends on what follows, and the pairs of characters that
//! an attempt can reach across.

use super::alphabet::ClassSet;
use super::{Automaton, DEAD, FailedRun, START};
use crate::text::unicode::utf8;
use crate::work::interrupt::Ticker;

impl Automaton {
    /// Calls `matched` with every settled match in `text[start..end]`, and returns the start of the first attempt that
    /// is not settled.
    pub(crate) fn undecided(
        &self,
        text: &[u8],
        start: usize,
        end: usize,
        mut matched: impl FnMut(usize, usize),
    ) -> usize {
        let mut failed = FailedRun::default();
        let mut at = start;
        let mut ticker = Ticker::default();
        while at < end {
            if !self.may_start[usize::from(text[at])] {
                at += 1;
                continue;
            }
            ticker.tick();
            match self.decided_end(text, at, end, START * self.stride, None, &mut failed) {
                Err(_) => return at,
                Ok(Some(match_end)) if match_end > at => {
                    matched(at, match_end);
                    at = match_end;
                }
                Ok(_) => at += utf8::sequence_len(text[at]),
            }
        }
        end
    }

    /// For each class, the classes that an attempt can take directly after it. No attempt, whether it matches or not,
    /// reaches across the position between two characters of other classes.
    pub(crate) fn successors(&self) -> Vec<ClassSet> {
        let mut successors = vec![ClassSet::default(); usize::from(self.end_class())];
        for row in (START * self.stride..self.table.len()).step_by(self.stride) {
            for (class, successors) in (0..).zip(&mut successors) {
                let (next, _) = self.next(row, class);
                (0..self.end_class())
                    .filter(|&after| self.next(next, after).0 != DEAD)
                    .for_each(|after| successors.insert(after));
            }
        }
        successors
    }
}
