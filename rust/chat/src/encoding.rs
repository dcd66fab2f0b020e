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
    let mut spans = encode_stretch(encoder, text, add_special, false)?;
    if add_special {
        drop_doubled(encoder.tokenizer().borrow().vocabulary(), text, &mut spans);
    }
    Ok(spans)
}

/// The same for a stretch of a text. BOS or EOS may be there twice.
pub fn encode_stretch<T: Borrow<Tokenizer>>(
    encoder: &mut Encoder<T>,
    text: &Text,
    add_special: bool,
    continues: bool,
) -> Result<Spans, Error> {
    let mut parts = Parts::default();
    for (range, is_caller) in text.stretches(Origin::is_caller) {
        let bytes = &text.as_bytes()[range];
        let part = std::str::from_utf8(bytes).map_or(ggtok_core::Text::Bytes(bytes), ggtok_core::Text::Str);
        parts.push(part, !is_caller);
    }
    let mut spans = Spans::with_room_for(text.len());
    let options = EncodeOptions::new().add_special(add_special).continues(continues);
    match encoder.parts_into(&parts, options, &mut spans) {
        Err(EncodeError::Control { id, at }) => {
            let token = String::from_utf8_lossy(encoder.tokenizer().borrow().vocabulary().text(id)).into_owned();
            Err(Error::Control { token, id, at })
        }
        result => result.map(|()| spans).map_err(Error::Encode),
    }
}

/// Takes out a BOS and an EOS that are there because the vocabulary adds what the template wrote already.
fn drop_doubled(vocabulary: &Vocabulary, text: &Text, spans: &mut Spans) {
    if text.is_empty() {
        return;
    }
    let (special, settings) = (vocabulary.special(), vocabulary.settings());
    let is_pair = |pair: Option<&[TokenId]>, id: Option<TokenId>| id.is_some_and(|id| pair == Some(&[id, id]));
    if settings.add_eos
        && !text.last_origin().is_caller()
        && is_pair(spans.ids.last_chunk::<2>().map(<[_; 2]>::as_slice), special.eos)
    {
        spans.ids.pop();
        spans.spans.pop();
    }
    if settings.add_bos
        && !text.first_origin().is_caller()
        && is_pair(spans.ids.first_chunk::<2>().map(<[_; 2]>::as_slice), special.bos)
    {
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
    let mut hulls: Vec<Option<Range<usize>>> = vec![None; request.messages().len()];
    for (run, origin) in text.runs() {
        let message = request.strings().message_of(origin);
        if let Some(hull) = message.and_then(|message| hulls.get_mut(message)) {
            *hull = Some(hull.as_ref().map_or(run.start, |hull| hull.start)..run.end);
        }
    }
    hulls.into_iter().map(|hull| hull.map(|hull| tokens_of(spans, &hull))).collect()
}

/// The tokens of each marker of an image, a sound or a film.
pub fn markers(rendered: &Rendered, spans: &[Range<usize>]) -> Vec<(MediaPlace, Range<usize>)> {
    let place = |origin: Origin| rendered.media.iter().find(|place| Some(place.string) == origin.string());
    let marker = |(run, origin)| place(origin).map(|place| (*place, tokens_of(spans, &run)));
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
