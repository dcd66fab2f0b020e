//! From a text with origins to ids: control tokens only in what the template wrote.
//!
//! 1. The text is cut into parts where it passes from the template to the caller's strings and back.
//! 2. The parts are encoded together. Control tokens are recognized only wholly inside the template's parts.
//! 3. BOS and EOS that both the template and the vocabulary write are kept once.
//!
//! RWKV, PLaMo-2 and some SPM vocabularies find control tokens in any text, as ordinary tokens: with these, a string of
//! the caller that contains one is an error.
//!
//! Time: O(bytes + runs) besides encoding.

use std::borrow::Borrow;
use std::ops::Range;

use ggtok_core::vocab::Vocabulary;
use ggtok_core::{EncodeError, EncodeOptions, Encoder, Parts, Spans, TokenId, Tokenizer};

use crate::error::Error;
use crate::rules::{MediaPlace, Rendered, Request};
use crate::text::{Origin, Text};

/// The ids of a text, and the bytes that each comes from.
///
/// # Errors
/// [`Error::Encode`]: as [`Encoder::parts`]. [`Error::Control`]: the vocabulary itself reads a control token in a
/// string of the caller.
pub fn encode<T: Borrow<Tokenizer>>(encoder: &mut Encoder<T>, text: &Text, add_special: bool) -> Result<Spans, Error> {
    encode_stretch(encoder, text, 0..text.len(), add_special, true, true)
}

/// The same for a stretch of a text, which may begin it (and have a BOS), end it (and have an EOS), or neither.
///
/// # Errors
/// As [`encode`].
pub fn encode_stretch<T: Borrow<Tokenizer>>(
    encoder: &mut Encoder<T>,
    text: &Text,
    stretch: Range<usize>,
    add_special: bool,
    begins: bool,
    ends: bool,
) -> Result<Spans, Error> {
    let start = stretch.start;
    let text = &text.slice(stretch);
    let add_special = add_special && (begins || ends);
    let mut parts = Parts::default();
    for (range, is_caller) in text.stretches(Origin::is_caller) {
        let bytes = &text.as_bytes()[range];
        let part = std::str::from_utf8(bytes).map_or(ggtok_core::Text::Bytes(bytes), ggtok_core::Text::Str);
        parts.push(part, !is_caller);
    }
    let mut spans = Spans::with_room_for(text.len());
    let options = EncodeOptions::new().add_special(add_special).continues(!begins);
    let result = encoder.parts_into(&parts, options, &mut spans);
    let vocabulary = encoder.tokenizer().borrow().vocabulary();
    result.map_err(|error| match error {
        EncodeError::Control { id, at } => {
            Error::Control { token: String::from_utf8_lossy(vocabulary.text(id)).into_owned(), id, at: start + at }
        }
        other => Error::Encode(other),
    })?;
    if add_special {
        drop_added(vocabulary, text, &mut spans, begins, ends);
    }
    Ok(spans)
}

/// Takes out a BOS and an EOS that are there because the vocabulary adds what the template wrote already, and what it
/// adds at an end that is not the text's.
fn drop_added(vocabulary: &Vocabulary, text: &Text, spans: &mut Spans, begins: bool, ends: bool) {
    let special = vocabulary.special();
    let settings = vocabulary.settings();
    let is_pair = |pair: Option<&[TokenId; 2]>, id: Option<TokenId>| id.is_some_and(|id| pair == Some(&[id, id]));
    let is_template = |origin: Origin| !text.is_empty() && !origin.is_caller();
    let num_added = if ends {
        let is_doubled = settings.add_eos && is_pair(spans.ids.last_chunk(), special.eos);
        usize::from(is_doubled && is_template(text.last_origin()))
    } else {
        let is_end = |id: TokenId| Some(id) == special.eos || Some(id) == special.sep;
        let tokens = spans.ids.iter().zip(&spans.spans).rev();
        tokens.take_while(|(id, span)| is_end(**id) && **span == (text.len()..text.len())).count()
    };
    spans.ids.truncate(spans.ids.len() - num_added);
    spans.spans.truncate(spans.ids.len());
    if begins && settings.add_bos && is_pair(spans.ids.first_chunk(), special.bos) && is_template(text.first_origin()) {
        spans.ids.remove(0);
        spans.spans.remove(0);
    }
}

/// The tokens that share a byte with a range. Spans never decrease.
fn tokens_of(spans: &[Range<usize>], range: &Range<usize>) -> Range<usize> {
    let low = spans.partition_point(|span| span.end <= range.start);
    let high = spans.partition_point(|span| span.start < range.end);
    low..high.max(low)
}

/// For each message of a request, the tokens from the first to the last byte that the template writes for it.
pub fn message_spans(text: &Text, spans: &[Range<usize>], request: &Request) -> Vec<Option<Range<usize>>> {
    let hulls = text.hulls(request.messages().len(), |_, origin| origin.message());
    hulls.into_iter().map(|hull| hull.map(|hull| tokens_of(spans, &hull))).collect()
}

/// The tokens of each marker of an image, a sound or a film.
pub fn markers(rendered: &Rendered, spans: &[Range<usize>]) -> Vec<(MediaPlace, Range<usize>)> {
    let marker = |(run, origin): (Range<usize>, Origin)| {
        let place = rendered.media.get(origin.number_of_marker()?)?;
        Some((*place, tokens_of(spans, &run)))
    };
    rendered.text.runs().filter_map(marker).collect()
}

/// Which tokens share a byte with one of these ranges.
pub fn mask_of(spans: &[Range<usize>], ranges: &[Range<usize>]) -> Vec<bool> {
    let mut mask = vec![false; spans.len()];
    for range in ranges {
        mask[tokens_of(spans, range)].fill(true);
    }
    mask
}
