//! What is changed in messages so that a template can render them, in this order.
//!
//! 1. [`trim`], for one template: white space at the ends of contents goes.
//! 2. [`merge_system`]: the first message, if it is a system message and the template takes none, moves into the next.
//! 3. [`arguments_as_objects`]: arguments of tool calls that are JSON in a string are read.
//!
//! Source: the namespace `workaround` in `common/chat.cpp` of llama.cpp. Deviations: 1. Errors name the field. 2. A
//! message with tool calls always has a content: [`message`](super::message) gives it an empty one.

use super::content;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::text::{Text, is_space};

/// The second repair. Returns the number of the system message if there is none after it.
///
/// # Errors
///
/// A content is not text.
pub(crate) fn merge_system(messages: &mut Vec<Object>) -> Result<Option<usize>, Error> {
    if !messages.first().is_some_and(|message| message.is("role", "system")) {
        return Ok(None);
    }
    let first = messages.remove(0);
    let Some(second) = messages.first_mut() else { return Ok(first.message) };
    let content = content::lines(text_of(&first)?, text_of(second)?);
    second.set("content", content);
    Ok(None)
}

/// The third repair.
///
/// # Errors
///
/// Arguments are not JSON.
pub(crate) fn arguments_as_objects(messages: &mut [Object]) -> Result<(), Error> {
    for message in messages {
        let number = message.message.unwrap_or_default();
        let Some(Json::Array(calls)) = message.get_mut("tool_calls") else { continue };
        for (call_at, call) in Json::objects(calls).enumerate() {
            let Some(Json::Object(function)) = call.get_mut("function") else { continue };
            let Some(arguments) = function.text("arguments") else { continue };
            let field = || format!("messages[{number}].tool_calls[{call_at}].function.arguments");
            let arguments = Json::parse_text(arguments).map_err(|error| error.inside(&field()))?;
            function.set("arguments", arguments);
        }
    }
    Ok(())
}

/// Takes white space away from both ends of all contents.
pub(crate) fn trim(messages: &mut [Object]) {
    let strip = |object: &mut Object, name| {
        if let Some(Json::String(text)) = object.get_mut(name) {
            *text = text.strip(true, true, is_space);
        }
    };
    for message in messages {
        strip(message, "content");
        strip(message, "reasoning_content");
        if message.text("reasoning_content").is_some_and(Text::is_empty) {
            message.remove("reasoning_content");
        }
        if let Some(Json::Array(parts)) = message.get_mut("content") {
            Json::objects(parts).filter(|part| part.is("type", "text")).for_each(|part| strip(part, "text"));
        }
    }
}

fn text_of(message: &Object) -> Result<&Text, Error> {
    let content = message.get("content").unwrap_or(&Json::Null);
    content.as_text().ok_or_else(|| {
        let field = format!("messages[{}].content", message.message.unwrap_or_default());
        let kind = content.kind();
        let problem = format!("this template takes no system message, and {kind} cannot be merged with one");
        Error::request(field, problem)
    })
}
