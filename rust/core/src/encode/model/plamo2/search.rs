//! The search of PLaMo-2: at each character, from the end of a text to its start, the token that makes the rest
//! cheapest.
//!
//! 1. The candidates at a character are all tokens that match there, and the character itself as unknown. The one that
//!    is cheapest together with the rest of the text is taken; among equals, the longest.
//! 2. An Aho-Corasick automaton over reversed texts finds the tokens, longest first, as in llama.cpp. Its states are
//!    the token texts and all their suffixes, and it is in the longest state that matches.
//! 3. One effect of llama.cpp's automaton has to be reproduced. Its rows for unknown characters mark the end of a
//!    search by their cost, and a token may have exactly that cost: conversion scripts give it to padding tokens. Such
//!    a token is called a stopper here. The automaton does not look past a stopper: shorter tokens at the same position
//!    do not count, and at the position before it, only states that extend over the stopper count.

use super::{LOWEST_UNUSED_COST, Plamo2, UNKNOWN_COST};
use crate::lookup::trie::backward::ROOT;
use crate::text::unicode::utf8::is_boundary;
use crate::token::TokenId;
use crate::work::interrupt::Ticker;
use crate::work::memory::fill;

/// Stands for an unknown character in [`Choices::ids`].
pub(super) const UNKNOWN: TokenId = -1;

/// The best choice at each position, and its cost.
#[derive(Debug, Default)]
pub(in crate::encode::model) struct Choices {
    /// For each character, at the index of its first byte, the token to take there, or [`UNKNOWN`].
    pub ids: Vec<TokenId>,
    /// The lowest cost of the text that starts at each position, indexed by the position modulo the window.
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

        let keys = &self.automaton;
        // The automaton's state at `end`, and the length of the longest stopper in it, or 0.
        let mut state = ROOT;
        let mut stopper = 0;
        let mut end = text.len();
        let mut ticker = Ticker::default();
        while end > start {
            ticker.tick();
            let mut at = end - 1;
            while at > start && !is_boundary(text, at) {
                at -= 1;
            }
            state = text[at..end].iter().rev().fold(state, |state, &byte| keys.step(state, byte));
            if stopper > 0 && keys.len(state) < end - at + stopper {
                state = ROOT;
            }

            let mut best = i64::MAX;
            let mut best_id = UNKNOWN;
            stopper = 0;
            for (len, id) in keys.keys(state) {
                let token_cost = self.costs[id as usize];
                let total = costs[(at + len) & mask] + i64::from(token_cost);
                if total < best && token_cost < LOWEST_UNUSED_COST {
                    (best, best_id) = (total, id as TokenId);
                }
                if token_cost == UNKNOWN_COST {
                    stopper = len;
                    break;
                }
            }
            let unknown = costs[end & mask] + i64::from(UNKNOWN_COST);
            if stopper == 0 && unknown < best {
                (best, best_id) = (unknown, UNKNOWN);
            }

            costs[at & mask] = best;
            ids[at] = best_id;
            end = at;
        }
    }
}
