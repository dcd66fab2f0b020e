//! The first place where two tokenizers give different ids for a text. O(length of the text).

use std::ops::Range;

use crate::error::EncodeError;
use crate::token::TokenId;
use crate::tokenizer::{EncodeOptions, Text, Tokenizer};

/// The first place where two lists of tokens differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parting {
    /// How many ids are equal before it.
    pub index: usize,
    /// Each tokenizer's token there, with its byte range in the text; `None` if its list ends.
    pub tokens: [Option<(TokenId, Range<usize>)>; 2],
}

/// The first place where the tokens of a text differ, or `None` if they are equal.
///
/// # Errors
/// Which tokenizer, 0 or 1, cannot encode the text, and why.
///
/// # Examples
/// ```
/// use ggtok_core::{Definition, EncodeOptions, StringIndex, Tokenizer, first_parting};
///
/// let tokenizer = |texts: &[&str]| {
///     let (data, index) = StringIndex::concatenate(texts).unwrap();
///     Tokenizer::new(&Definition { model: "llama", tokens: Some(index.view(&data)), ..Definition::default() }).unwrap()
/// };
/// let (a, b) = (tokenizer(&["<unk>", "<s>", "</s>", "▁", "a"]), tokenizer(&["<unk>", "<s>", "</s>", "▁", "a", "aa"]));
/// let parting = first_parting([&a, &b], "aaa".into(), EncodeOptions::default()).unwrap().unwrap();
/// assert_eq!((parting.index, &parting.tokens), (2, &[Some((4, 0..1)), Some((5, 0..2))]));
/// ```
pub fn first_parting(
    tokenizers: [&Tokenizer; 2],
    text: Text<'_>,
    options: EncodeOptions,
) -> Result<Option<Parting>, (usize, EncodeError)> {
    let encode = |which: usize| tokenizers[which].encode_with_spans(text, options).map_err(|error| (which, error));
    let found = [encode(0)?, encode(1)?];
    let [first, second] = [&found[0].ids, &found[1].ids];
    if first == second {
        return Ok(None);
    }
    let index = first.iter().zip(second).take_while(|(first, second)| first == second).count();
    let tokens = found.map(|found| Some((*found.ids.get(index)?, found.spans.get(index)?.clone())));
    Ok(Some(Parting { index, tokens }))
}
