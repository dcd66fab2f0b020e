//! Generates sentencepiece's named rules from Unicode's data.
//!
//! NFKC composes characters, so a rule per character is not enough: each sequence that composes needs one, in every
//! spelling. For a character that decomposes into several, each of these may be replaced by any character that
//! decomposes into it. Sequences for which shorter rules give the same result need no rule.
//!
//! Source: sentencepiece's `BuildNFKCMap`, `MergeNmtMap`, `MergeUnicodeCaseFoldMap` and `RemoveRedundantMap`
//! (builder.cc). Unicode 17, as in sentencepiece 0.2.3: later characters have no rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter::once;

use ggtok_core::internals::interrupt;
use ggtok_core::unicode::lowercase;
use unicode_normalization::UnicodeNormalization;

type Rules = BTreeMap<String, String>;

/// Compatibility composition.
pub(super) fn nfkc() -> Rules {
    let mut rules = Rules::new();
    let mut sequences: BTreeSet<String> = BTreeSet::new();
    // The characters that decompose into one other character, keyed by that character.
    let mut spellings: HashMap<char, Vec<char>> = HashMap::new();
    for character in interrupt::ticking('\u{1}'..=char::MAX).filter(|&character| is_known(character)) {
        if !character.nfkc().eq([character]) {
            rules.insert(character.to_string(), character.nfkc().collect());
        }
        let decomposed: String = character.nfkd().collect();
        match single(&decomposed) {
            Some(one) if one == character => {}
            Some(one) => spellings.entry(one).or_default().push(character),
            None => _ = sequences.insert(decomposed),
        }
    }

    for sequence in sequences {
        interrupt::check();
        let composed: String = sequence.nfkc().collect();
        if composed == sequence {
            continue;
        }
        let mut spelled = vec![String::new()];
        for part in sequence.chars() {
            let others = spellings.get(&part).map_or(&[][..], Vec::as_slice);
            let add = |start: String| once(&part).chain(others).map(move |next| format!("{start}{next}"));
            spelled = spelled.into_iter().flat_map(add).collect();
        }
        rules.extend(spelled.into_iter().filter(|spelling| *spelling != composed).map(|s| (s, composed.clone())));
    }
    without_redundant(rules)
}

/// Adds the spaces and control characters of machine translation. The full-width tilde stays, because Japanese uses it
/// differently from the narrow one.
pub(super) fn nmt(mut rules: Rules) -> Rules {
    let spaces = "\t\n\u{C}\r\u{61C}\u{1680}\u{200B}\u{200C}\u{200E}\u{200F}\u{2028}\u{2029}\u{2581}\u{FEFF}\u{FFFD}";
    rules.extend(spaces.chars().map(|space| (space.to_string(), " ".to_owned())));
    let dropped = ('\u{1}'..='\u{1F}').filter(|control| !spaces.contains(*control));
    let dropped = dropped.chain(['\u{7F}', '\u{8F}', '\u{9F}']);
    rules.extend(dropped.map(|control| (control.to_string(), String::new())));
    rules.remove("\u{FF5E}");
    without_redundant(rules)
}

/// Folds the case of all results, one character to one.
pub(super) fn folded(mut rules: Rules) -> Rules {
    for replacement in rules.values_mut() {
        *replacement = replacement.chars().map(fold).collect();
    }
    for character in ('\u{1}'..=char::MAX).filter(|&character| fold(character) != character) {
        rules.entry(character.to_string()).or_insert_with(|| fold(character).to_string());
    }
    without_redundant(rules)
}

/// Simple case folding of a character that NFKC keeps.
///
/// It is the lowercase mapping (Unicode 15.1 in our tables), except for dotted capital I, final sigma and the like,
/// Cherokee, whose capitals stay, and later letters.
fn fold(character: char) -> char {
    let code_point = u32::from(character);
    let folded = match code_point {
        0x130 | 0x13A0..=0x13F5 => code_point,
        0x345 => 0x3B9,
        0x3C2 => 0x3C3,
        0x13F8..=0x13FD => code_point - 8,
        0x1C80 => 0x432,
        0x1C81 => 0x434,
        0x1C82 => 0x43E,
        0x1C83 => 0x441,
        0x1C84 | 0x1C85 => 0x442,
        0x1C86 => 0x44A,
        0x1C87 => 0x463,
        0x1C88 => 0xA64B,
        0xA7CB => 0x264,
        0xA7DC => 0x19B,
        0x1C89 | 0xA7CC | 0xA7CE | 0xA7D2 | 0xA7D4 | 0xA7DA => code_point + 1,
        0xAB70..=0xABBF => code_point - 0xAB70 + 0x13A0,
        0x1_0D50..=0x1_0D65 => code_point + 0x20,
        0x1_6EA0..=0x1_6EB8 => code_point + 0x1B,
        _ => lowercase(code_point),
    };
    char::from_u32(folded).unwrap_or(character)
}

/// Whether the decomposition of a character, if it has one, was in Unicode 17.
fn is_known(character: char) -> bool {
    !matches!(
        u32::from(character),
        0x558 | 0x58B | 0x58C | 0x209D..=0x209F | 0x1_07BB..=0x1_07BF | 0x1_B123..=0x1_B126
            | 0x1_D6A6 | 0x1_DF95 | 0x1_DFCD..=0x1_DFFF
    )
}

/// The character of a text that has only one.
fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    characters.next().filter(|_| characters.next().is_none())
}

/// Drops rules for several characters if shorter rules give the same result.
fn without_redundant(rules: Rules) -> Rules {
    let mut by_len: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
    for rule in interrupt::ticking(rules) {
        by_len.entry(rule.0.chars().count()).or_default().push(rule);
    }
    let mut kept = Rules::new();
    for (len, rules) in by_len {
        let is_needed = |(sequence, replacement): &(String, String)| {
            len == 1 || super::apply(&kept, sequence, sequence.len() - 1) != *replacement
        };
        let rules: Vec<_> = interrupt::ticking(rules).filter(is_needed).collect();
        kept.extend(interrupt::ticking(rules));
    }
    kept
}
