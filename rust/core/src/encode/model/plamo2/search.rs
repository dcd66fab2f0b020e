//! The search of PLaMo-2: at each character, from the end of a text to its start, the token that makes the rest
//! cheapest.
//!
//! 1. The candidates at a character are all tokens that match there, and the character itself as unknown. The one that
//!    is cheapest together with the rest of the text is taken; among equals, the longest.
//! 2. llama.cpp finds the tokens with an Aho-Corasick automaton over reversed texts. Its states are the token texts and
//!    all their suffixes, and it is in the longest state that matches. A walk through a trie of the tokens finds the
//!    same tokens, shortest first, and needs neither the suffixes nor the links between them.
//! 3. One effect of the automaton has to be reproduced. Its rows for unknown characters mark the end of a search by
//!    their cost, and a token may have exactly that cost: conversion scripts give it to padding tokens. Such a token is
//!    called a stopper here. The automaton does not look past a stopper: shorter tokens at the same place do not count,
//!    and at the place before it, only states that extend over the stopper count. A vocabulary with stoppers has a trie
//!    of reversed texts, whose nodes are the states, and [`Bound`] is what the automaton sees.

use super::{Plamo2, UNKNOWN_COST};
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

/// How much of the text at a place llama.cpp's automaton sees, in bytes.
#[derive(Debug, Clone, Copy)]
struct Bound {
    /// The length of its state; `usize::MAX` for the longest state that matches the text.
    state: usize,
    /// The length of the longest stopper in its state, or 0.
    stopper: usize,
}

impl Bound {
    /// Nothing is hidden.
    const OPEN: Self = Self { state: usize::MAX, stopper: 0 };
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

        let (mut bound, mut ticker) = (Bound::OPEN, Ticker::default());
        let mut end = text.len();
        while end > start {
            ticker.tick();
            let mut at = end - 1;
            while at > start && is_continuation(text[at]) {
                at -= 1;
            }
            let visible = match self.states.is_empty() {
                true => &text[at..],
                false => {
                    bound = self.advance(text, at, end, bound);
                    &text[at..text.len().min(at.saturating_add(bound.state))]
                }
            };

            let mut best = costs[end & mask] + i64::from(UNKNOWN_COST);
            let mut best_id = UNKNOWN;
            let mut node = self.tokens.root();
            for (&byte, after) in visible.iter().zip(at + 1..) {
                let Some(child) = self.tokens.step(node, byte) else { break };
                node = child;
                let Some(id) = self.tokens.value(node) else { continue };
                let token_cost = self.costs[id as usize];
                let total = costs[after & mask] + i64::from(token_cost);
                let is_stopper = token_cost == UNKNOWN_COST;
                if total <= best || is_stopper {
                    (best, best_id) = (total, id as TokenId);
                }
                if is_stopper {
                    bound.stopper = after - at;
                }
            }

            costs[at & mask] = best;
            ids[at] = best_id;
            end = at;
        }
    }

    /// What the automaton sees at `at`, given what it sees at `next`, where the character at `at` ends. The caller
    /// finds the stopper, if there is one.
    fn advance(&self, text: &[u8], at: usize, next: usize, bound: Bound) -> Bound {
        if bound.state == usize::MAX && bound.stopper == 0 {
            return Bound::OPEN;
        }

        let states = &self.states;
        let is_state = |len: &usize| {
            let mut backwards = text[at..at + len].iter().rev();
            backwards.try_fold(states.root(), |node, &byte| states.step(node, byte)).is_some()
        };
        let longest_state = |limit: usize| (1..=limit).rev().find(is_state).unwrap_or(0);

        let longest = longest_state((text.len() - at).min(self.window - 1));
        let seen = longest_state(longest.min(bound.state.saturating_add(next - at)));
        let state = if seen < next - at + bound.stopper { 0 } else { seen };
        Bound { state: if state == longest { usize::MAX } else { state }, stopper: 0 }
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
