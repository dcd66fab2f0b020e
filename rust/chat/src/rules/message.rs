//! Messages as llama-server reads them from a request, and as it gives them to a template. Fields that are empty are left
//! out, except the role and the content.
//!
//! Source: `common_chat_msg` and `common_chat_msgs_parse_oaicompat` in `common/chat.cpp` of llama.cpp, and what
//! `oaicompat_chat_params_parse` in `tools/server/server-common.cpp` checks before. Deviations: 1. Images, sounds and
//! films are not examined: with a marker for them, any is accepted. 2. Errors name the field.

use super::content;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::Template;
use crate::text::{Origin, Text};

/// Where the marker of an image, a sound or a film stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPlace {
    /// The message with the part.
    pub message: usize,
    /// The part.
    pub part: usize,
}

/// Reads the messages of one request.
pub(crate) struct Reader<'a> {
    pub(crate) template: &'a Template,
    /// What stands for an image, a sound or a film. Without it they are refused.
    pub(crate) marker: Option<&'a str>,
    /// What has been found.
    pub(crate) media: Vec<MediaPlace>,
}

impl Reader<'_> {
    /// Reads the messages.
    pub(crate) fn messages(&mut self, messages: Option<&Json>) -> Result<Vec<Object>, Error> {
        let Some(messages) = messages else { return Err(Error::request("messages", "a request must have messages")) };
        Json::each(messages.items("messages")?, "messages", |number, message| self.message(message, number))
    }

    fn message(&mut self, given: &Json, number: usize) -> Result<Object, Error> {
        let refuse = |problem: &str| Err(Error::request("", problem));
        if given.as_object().is_none() {
            return refuse(&format!("a message must be an object, not {}", given.kind()));
        }
        let Some(role) = given.string("role")? else { return refuse("a message must have a role") };
        let role = self.role(role, number);
        let content = match (given.get("content"), given.get("tool_calls")) {
            (Some(content), _) => self.content(content, number)?,
            (None, Some(_)) if role == "assistant" => Text::default().into(),
            (None, _) if role == "assistant" => {
                return refuse("an assistant's message must have content or tool_calls");
            }
            (None, _) => return refuse("a message must have content"),
        };
        let calls = tool_calls(given.get("tool_calls").unwrap_or(&Json::Null), number)?;

        let mut message = Object::with(Some(number), [("role", role.into()), ("content", content)]);
        for name in ["reasoning_content", "name", "tool_call_id"] {
            if let Some(text) = given.string(name)?.filter(|text| !text.is_empty()) {
                message.set(name, text.clone());
            }
        }
        if !calls.is_empty() {
            message.set("tool_calls", calls);
        }
        Ok(message)
    }

    /// A role that every template knows, or this one, is as if the template had written it. Others stay the caller's. A
    /// `developer` is a `system`, except for gpt-oss, which knows the role.
    fn role(&self, role: &Text, number: usize) -> Text {
        let is_system = *role == "developer" && !self.template.contains("<|channel|>");
        let name = if is_system { b"system" } else { role.as_bytes() };
        let is_standard = matches!(name, b"system" | b"developer" | b"user" | b"assistant" | b"tool" | b"function");
        if is_standard || self.template.has_constant(name) {
            Text::new(name, Origin::turn(number))
        } else {
            role.clone()
        }
    }

    fn content(&mut self, content: &Json, number: usize) -> Result<Json, Error> {
        match content {
            Json::Array(parts) if !parts.is_empty() => {
                Json::each(parts, "content", |at, part| self.part(part, number, at)).map(Json::Array)
            }
            Json::Null | Json::Array(_) => Ok(Text::default().into()),
            Json::String(text) => Ok(text.clone().into()),
            other => Err(other.is_not("a string or an array", "content")),
        }
    }

    fn part(&mut self, part: &Json, message: usize, at: usize) -> Result<Json, Error> {
        let refuse = |problem: &str| Err(Error::request("", problem));
        let Some(kind) = part.text("type") else { return refuse("a part must be an object with a type") };
        if *kind == "text" {
            return match part.string("text")? {
                Some(text) => Ok(content::part("text", text.clone(), Some(message))),
                None => refuse("a part of the type 'text' must have a text"),
            };
        }
        let what = match kind.as_bytes() {
            b"image_url" => "an image",
            b"input_audio" => "a sound",
            b"input_video" | b"video_url" => "a film",
            _ => return refuse(&format!("parts of the type {:?} are not known", kind.to_string())),
        };
        let Some(marker) = self.marker else {
            return refuse(&format!("{what} has no text, and no marker was given for it"));
        };
        let marker = Text::new(marker, Origin::marker(self.media.len()));
        self.media.push(MediaPlace { message, part: at });
        Ok(content::part(content::MEDIA, marker, Some(message)))
    }
}

/// The calls in a field `tool_calls`. Of an object, its values count; `null` is as good as no calls.
fn tool_calls(calls: &Json, message: usize) -> Result<Vec<Json>, Error> {
    let read = |_, call| tool_call(call, message);
    match calls {
        Json::Null => Ok(Vec::new()),
        Json::Object(calls) => Json::each(calls.entries.iter().map(|entry| &entry.1), "tool_calls", read),
        calls => Json::each(calls.items("tool_calls")?, "tool_calls", read),
    }
}

fn tool_call(call: &Json, message: usize) -> Result<Json, Error> {
    content::check_function(call, "a tool call")?;
    let lacks = |name: &str| Error::request("", format!("a tool call must have a function with {name}"));
    let name = call.string("function.name")?.ok_or_else(|| lacks("name"))?.clone();
    let arguments = match call.get("function").and_then(|function| function.get("arguments")) {
        Some(Json::String(text)) => text.clone(),
        // All of a message outside its content is of one origin.
        Some(other) => Text::new(other.dump(), name.first_origin()),
        None => return Err(lacks("arguments")),
    };
    let function = Object::with(None, [("name", name.into()), ("arguments", arguments.into())]);
    let mut given = Object::with(Some(message), [("type", "function".into()), ("function", function.into())]);
    if let Some(id) = call.string("id")?.filter(|id| !id.is_empty()) {
        given.set("id", id.clone());
    }
    Ok(given.into())
}
