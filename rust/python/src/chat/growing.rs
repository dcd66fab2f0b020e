//! What a conversation that grows asks of a rendering: where messages are, and how much of two renderings is the same.
//! See `python/ggtok/chat/keeping.py`.

use ggtok_chat::{Json, Request, Text};

/// The first and the last byte of a message, and of its content, if any of it is written.
pub(super) type MessagePlace = (usize, usize, Option<(usize, usize)>);

/// The places of all messages. O(messages + runs).
pub(super) fn places(request: &Request, text: &Text) -> Vec<Option<MessagePlace>> {
    let messages = request.body().get("messages").and_then(Json::as_array).unwrap_or_default();
    let mut places: Vec<Option<MessagePlace>> = vec![None; messages.len()];
    for (run, origin) in text.runs() {
        let Some(place) = origin.message().and_then(|message| places.get_mut(message)) else { continue };
        let place = place.get_or_insert((run.start, run.end, None));
        place.1 = run.end;
        if origin.is_content() {
            place.2 = Some((place.2.map_or(run.start, |content| content.0), run.end));
        }
    }
    places
}

/// How many bytes at the start of two texts are the same, and either the template's or a caller's in both.
pub(super) fn shared(one: &Text, other: &Text) -> usize {
    let mut same = one.as_bytes().iter().zip(other.as_bytes()).take_while(|(a, b)| a == b).count();
    let mut left = one.runs().peekable();
    let mut right = other.runs().peekable();
    while let (Some((a, of_a)), Some((b, of_b))) = (left.peek().cloned(), right.peek().cloned()) {
        let start = a.start.max(b.start);
        if start >= same {
            break;
        }
        if of_a.is_caller() != of_b.is_caller() {
            same = start;
            break;
        }
        if a.end <= b.end {
            left.next();
        }
        if b.end <= a.end {
            right.next();
        }
    }
    same
}
