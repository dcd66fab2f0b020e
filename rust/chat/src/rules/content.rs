//! The content of messages: text, or parts; and what a template takes of them.
//!
//! Source: `messages_inp_normalizer` in `common/chat.cpp` of llama.cpp. Deviations: 1. Line feeds have origins.

use super::caps::Caps;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::text::{Origin, Text};

/// Makes contents of the kind that the template takes, if it takes only one. With media markers, they are text first.
pub(crate) fn adapt(messages: &mut [Object], caps: Caps) {
    let takes_only_strings = caps.supports_string_content && !caps.supports_typed_content;
    let takes_only_parts = caps.supports_typed_content && !caps.supports_string_content;
    let is_text = |part: &Json| !part.is("type", MEDIA);
    for message in messages {
        let text = match message.get("content") {
            Some(Json::Array(parts)) if takes_only_strings || !parts.iter().all(is_text) => joined(parts),
            Some(Json::String(text)) if takes_only_parts => text.clone(),
            _ => continue,
        };
        let number = message.message;
        let content: Json = if takes_only_parts { vec![part("text", text, number)].into() } else { text.into() };
        message.set("content", content);
    }
}

/// Checks that a tool or a call of one is of the only type there is.
pub(crate) fn check_function(value: &Json, what: &str) -> Result<(), Error> {
    match value.get("type") {
        Some(Json::String(kind)) if *kind == "function" => Ok(()),
        Some(_) => Err(Error::request("type", format!("{what} must be of the type 'function'"))),
        None => Err(Error::request("", format!("{what} must be an object with a type"))),
    }
}

/// The type of a part that stands for an image, a sound or a film.
pub(crate) const MEDIA: &str = "media_marker";

/// A part of a message.
pub(crate) fn part(kind: &'static str, text: Text, message: Option<usize>) -> Json {
    Object::with(message, [("type", kind.into()), ("text", text.into())]).into()
}

/// The texts of parts as one, with a line feed between them, but none beside a media marker. The line feeds count as the
/// caller's.
pub(crate) fn joined(parts: &[Json]) -> Text {
    let mut whole = Text::default();
    let mut follows_marker = false;
    for part in parts {
        let is_marker = part.is("type", MEDIA);
        if !is_marker && !follows_marker && !whole.is_empty() {
            whole.extend(b"\n", whole.last_origin());
        }
        follows_marker = is_marker;
        match part.text("text") {
            // The whole takes on the origin even of an empty text.
            Some(text) if whole.is_empty() => whole = text.clone(),
            Some(text) => whole.extend_with(text),
            None => {}
        }
    }
    whole
}

/// Two texts with a line feed between them, which counts as a caller's.
pub(crate) fn lines(first: &Text, second: &Text) -> Text {
    let mut lines = first.clone();
    let near = if first.is_empty() { second.first_origin() } else { first.last_origin() };
    let near = if near.is_caller() { near } else { Origin::CALLER };
    lines.extend(b"\n", near);
    lines.extend_with(second);
    lines
}
