//! The search of PLaMo-2: at each character, from the end of a text to its start, the token that makes the rest
//! cheapest.
//!
//! 1. The candidates at a character are all tokens that match there, and the character itself as unknown. The one that
//!    is cheapest together with the rest of the text is taken; among equals, the longest.
//! 2. llama.cpp finds the tokens with an Aho-Corasick automaton over reversed texts. Its states are the token texts and
//!    all their suffixes, and it is in the longest state that matches. A walk through a trie of the tokens finds the
//!    same tokens, shortest first, and is faster as long as tokens are short ([`Backward`] otherwise).
//! 3. One effect of the automaton has to be reproduced. Its rows for unknown characters mark the end of a search by
//!    their cost, and a token may have exactly that cost: conversion scripts give it to padding tokens. Such a token is
//!    called a stopper here. The automaton does not look past a stopper: shorter tokens at the same place do not count,
//!    and at the place before it, only states that extend over the stopper count.

use super::{LOWEST_UNUSED_COST, Plamo2, UNKNOWN_COST};
use crate::lookup::trie::backward::{Backward, ROOT};
use crate::token::TokenId;
use crate::work::interrupt::Ticker;
use crate::work::memory::fill;

/// Stands for an unknown character in [`Choices::ids`].
pub(super) const UNKNOWN: TokenId = -1;

/// The best choice at each place, and its cost.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// For each character, at the index of its first byte, the token to take there, or [`UNKNOWN`].
    pub ids: Vec<TokenId>,
    /// The lowest cost of the text that starts at each place, indexed by the place modulo the window.
    costs: Vec<i64>,
}

impl Plamo2 {
    /// Finds the token to take at each character of a canonical text starting at `start`.
    pub(super) fn choose(&self, text: &[u8], start: usize, choices: &mut Choices) {
        let Choices { ids, costs } = choices;
        fill(ids, text.len(), UNKNOWN);
        let window = self.window.min((text.len() + 1).next_power_of_two());
        fill(costs, window, 0);
        let mask = window - 1;
        costs[text.len() & mask] = 0;

        let (mut end, mut ticker) = (text.len(), Ticker::default());
        let mut seen = Seen::default();
        while end > start {
            ticker.tick();
            let mut at = end - 1;
            while at > start && is_continuation(text[at]) {
                at -= 1;
            }
            let unknown = (costs[end & mask] + i64::from(UNKNOWN_COST), UNKNOWN);
            let cost_from = |place: usize| costs[place & mask];
            let (cost, id) = match &self.automaton {
                None => self.cheapest(&text[at..], unknown, |len| cost_from(at + len)),
                Some(keys) => self.cheapest_seen(keys, &text[at..end], &mut seen, unknown, |len| cost_from(at + len)),
            };
            costs[at & mask] = cost;
            ids[at] = id;
            end = at;
        }
    }

    /// The cheapest choice at the start of `rest`, and its cost together with the text after it, which `cost_after`
    /// gives by the length of the choice.
    #[inline(always)]
    fn cheapest(&self, rest: &[u8], unknown: (i64, TokenId), cost_after: impl Fn(usize) -> i64) -> (i64, TokenId) {
        let (mut best, mut node) = (unknown, self.tokens.root());
        for (&byte, len) in rest.iter().zip(1..) {
            let Some(child) = self.tokens.step(node, byte) else { break };
            node = child;
            let Some(id) = self.tokens.value(node) else { continue };
            let total = cost_after(len) + i64::from(self.costs[id as usize]);
            if total <= best.0 {
                best = (total, id as TokenId);
            }
        }
        best
    }

    /// The same for the text before what has been seen, which starts with `character`, by llama.cpp's automaton.
    fn cheapest_seen(
        &self,
        keys: &Backward,
        character: &[u8],
        seen: &mut Seen,
        unknown: (i64, TokenId),
        cost_after: impl Fn(usize) -> i64,
    ) -> (i64, TokenId) {
        let state = character.iter().rev().fold(seen.state, |state, &byte| keys.step(state, byte));
        let hides_all = seen.stopper > 0 && keys.len(state) < character.len() + seen.stopper;
        *seen = Seen { state: if hides_all { ROOT } else { state }, stopper: 0 };

        let mut best = (i64::MAX, UNKNOWN);
        for (len, id) in keys.keys(seen.state) {
            let cost = self.costs[id as usize];
            let total = cost_after(len) + i64::from(cost);
            if cost < LOWEST_UNUSED_COST && total < best.0 {
                best = (total, id as TokenId);
            }
            if cost == UNKNOWN_COST {
                seen.stopper = len;
                return best;
            }
        }
        if best.0 <= unknown.0 { best } else { unknown }
    }
}

/// What llama.cpp's automaton sees at a place.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    state: u32,
    /// The length of the longest stopper in its state, or 0.
    stopper: usize,
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
