//! What a smaller vocabulary has to keep so that texts whose tokens it has are encoded as before.
//!
//! With fewer tokens and merge rules, no step of an algorithm may change:
//! 1. SPM and byte-pair encoding: no merge crosses the ends of a token of the result, so the merges inside are those of
//!    its text alone. They stay, and so do the symbols between. Rules that were not applied can go, because a missing
//!    rule never lets another one come first. Texts between that are not tokens may be left over too, so all of them
//!    count as used.
//! 2. WordPiece: the longest match stays the longest of fewer. An unknown word fails where it did before if the tokens
//!    stay that it matched until then ([`matched`]).
//! 3. Unigram: the best way stays the best of fewer ways, with one exception: a character without a token has a new way,
//!    as an unknown one. That scores ten less than the lowest normal token, so this token stays, and each character
//!    that does not score more.
//! 4. RWKV: as WordPiece, without words.
//!
//! What the loader looks for stays as well: special tokens of every kind, the texts that it knows, and single bytes.
//! O(n log n) for tokens of n bytes in total.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::encode::model::any::AnyModel;
use crate::encode::model::merging::Merging;
use crate::encode::model::merging::pair_memo::PairMemo;
use crate::encode::model::merging::ranks::MergeRanks;
use crate::encode::model::merging::symbol::Merge;
use crate::encode::model::unigram::UNKNOWN_PENALTY;
use crate::text::unicode::utf8;
use crate::token::TokenId;
use crate::tokenizer::Tokenizer;
use crate::vocabulary::repairs::loader_texts;
use crate::vocabulary::{Attributes, Kind, SLOTS, Vocabulary};

/// Further texts that the loader, or hybrid DNA, looks up.
const LOOKED_UP: &[&str] = &["<unk>", "<s>", "</s>", "<|endoftext|>", "<dna>", "</dna>", "<oov>"];

/// What a vocabulary, of any kind but PLaMo-2, needs for texts that have these tokens: tokens by their ids, and merge
/// rules by their ranks, in ascending order. For WordPiece, `used` includes what unknown words [`matched`].
///
/// # Examples
/// ```
/// use ggtok_core::Tokenizer;
/// use ggtok_core::inspect::needed;
/// use ggtok_core::vocab::{Definition, StringIndex};
///
/// let (tokens, index) = StringIndex::concatenate(&["a", "b", "c", "ab", "bc", "abc"])?;
/// let (merges, rules) = StringIndex::concatenate(&["a b", "b c", "ab c"])?;
/// let tok = Tokenizer::new(&Definition {
///     model: "gpt2",
///     pre: Some("gpt-2"),
///     tokens: Some(index.view(&tokens)),
///     merges: Some(rules.view(&merges)),
///     ..Definition::default()
/// })?;
/// assert_eq!(needed(&tok, &[5]), (vec![0, 1, 2, 3, 5], vec![0, 2]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn needed(tokenizer: &Tokenizer, used: &[TokenId]) -> (Vec<TokenId>, Vec<u32>) {
    let vocabulary = tokenizer.vocabulary();
    let model = tokenizer.model();
    let mut tokens = BTreeSet::from_iter(used.iter().copied());
    let mut rules = BTreeSet::new();
    let merged = used.iter().filter(|_| matches!(vocabulary.kind(), Kind::Spm | Kind::Bpe));
    let between = model.ranks().into_iter().flat_map(MergeRanks::others).map(|(text, _)| text);
    let mut merging = Merging::default();
    let mut memo = PairMemo::default();
    for text in merged.map(|&id| vocabulary.text(id)).chain(between) {
        for Merge { rank, symbol } in model.merges_of(vocabulary, text, (&mut merging, &mut memo)) {
            tokens.insert(symbol as TokenId);
            rules.extend(model.ranks().map(|_| rank));
        }
    }

    let ids = || 0..vocabulary.len() as TokenId;
    let texts = loader_texts().flat_map(|(_, texts)| texts).chain(LOOKED_UP);
    tokens.extend(texts.filter_map(|text| vocabulary.id(text.as_bytes())));
    tokens.extend(SLOTS.iter().filter_map(|slot| (slot.id)(vocabulary.special())));
    let special = Attributes::CONTROL.with(Attributes::UNKNOWN).with(Attributes::USER_DEFINED).with(Attributes::BYTE);
    let attributes = |id| vocabulary.attributes(id).with(vocabulary.declared_attributes(id)).bits();
    tokens.extend(ids().filter(|&id| attributes(id) & special.bits() != 0));
    tokens.extend(ids().filter(|&id| tokenizer.piece(id, true).is_ok_and(|piece| piece.len() == 1)));
    if vocabulary.kind() == Kind::Unigram {
        tokens.extend(no_better_than_unknown(vocabulary));
    }
    (ids().filter(|id| tokens.contains(id)).collect(), rules.into_iter().collect())
}

/// The tokens that a word of WordPiece matches from left to right, up to a position where no token matches.
pub fn matched(tokenizer: &Tokenizer, word: &[u8]) -> Vec<TokenId> {
    if let AnyModel::WordPiece(model) = tokenizer.model() { model.matched(word) } else { Vec::new() }
}

/// The lowest normal token of a Unigram vocabulary, and the characters that score no more than an unknown one.
fn no_better_than_unknown(vocabulary: &Vocabulary) -> impl Iterator<Item = TokenId> {
    let ids = || 0..vocabulary.len() as TokenId;
    let normal = ids().filter(|&id| vocabulary.declared_attributes(id).is_normal() && !vocabulary.score(id).is_nan());
    let lowest = normal.min_by(|&a, &b| vocabulary.score(a).total_cmp(&vocabulary.score(b)));
    let unknown = lowest.map_or(f32::MAX, |id| vocabulary.score(id)) - UNKNOWN_PENALTY;
    let is_character = |text: &[u8]| text.first().is_some_and(|&lead| utf8::sequence_len(lead) >= text.len());
    let no_better = move |&id: &TokenId| !matches!(vocabulary.score(id).partial_cmp(&unknown), Some(Ordering::Greater));
    ids().filter(move |&id| is_character(vocabulary.text(id))).filter(no_better).chain(lowest)
}
