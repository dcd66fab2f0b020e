//! Messages as llama-server reads them from a request, and as it gives them to a template.
//!
//! Source: `common_chat_msg` and `common_chat_msgs_parse_oaicompat` in `common/chat.cpp` of llama.cpp, and what
//! `oaicompat_chat_params_parse` in `tools/server/server-common.cpp` checks before. Deviations: 1. Images, sounds and
//! films are not examined: with a marker for them, any is accepted. 2. Errors name the field.

use super::content;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::Template;
use crate::text::{Origin, Text};

/// A part of a message's content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) kind: PartKind,
    pub(crate) text: Text,
}

/// What a part of a message's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// `text`.
    Text,
    /// `media_marker`: stands for an image, a sound or a film.
    Media,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct ToolCall {
    pub(crate) name: Text,
    /// JSON, or what a caller passed for it.
    pub(crate) arguments: Text,
    /// May be empty.
    pub(crate) id: Text,
}

/// A message. Fields that the caller does not give are empty.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Message {
    /// Its place in the caller's list.
    pub(crate) number: Option<usize>,
    pub(crate) role: Text,
    pub(crate) content: Text,
    pub(crate) parts: Vec<Part>,
    pub(crate) tool_calls: Vec<ToolCall>,
    pub(crate) reasoning_content: Text,
    pub(crate) name: Text,
    pub(crate) tool_call_id: Text,
}

impl Message {
    /// Whether there is nothing in it: `empty`. The role does not count.
    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty()
            && self.parts.is_empty()
            && self.tool_calls.is_empty()
            && self.reasoning_content.is_empty()
            && self.name.is_empty()
            && self.tool_call_id.is_empty()
    }

    /// The message as a template gets it: `to_json_oaicompat`.
    pub(crate) fn into_json(self) -> Result<Json, Error> {
        let number = self.number;
        let mut message = Object::of_message(number);
        message.push("role".into(), self.role.into());
        let has_media = self.parts.iter().any(|part| part.kind == PartKind::Media);
        let parts = self.parts.into_iter().map(|part| content::part(part.kind.name(), part.text, number));
        let content = match (self.content.is_empty(), parts.len()) {
            (false, _) | (true, 0) => self.content.into(),
            _ if has_media => content::joined(&parts.collect::<Vec<_>>())?.into(),
            _ => Json::Array(parts.collect()),
        };
        message.push("content".into(), content);
        let fields =
            [("reasoning_content", self.reasoning_content), ("name", self.name), ("tool_call_id", self.tool_call_id)];
        for (name, text) in fields.into_iter().filter(|field| !field.1.is_empty()) {
            message.push(name.into(), text.into());
        }
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.into_iter().map(|call| call.into_json(number)).collect();
            message.push("tool_calls".into(), Json::Array(calls));
        }
        Ok(message.into())
    }
}

impl PartKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Media => "media_marker",
        }
    }
}

impl ToolCall {
    fn into_json(self, number: Option<usize>) -> Json {
        let mut function = Object::default();
        function.push("name".into(), self.name.into());
        function.push("arguments".into(), self.arguments.into());
        let mut call = Object::of_message(number);
        call.push("type".into(), "function".into());
        call.push("function".into(), function.into());
        if !self.id.is_empty() {
            call.push("id".into(), self.id.into());
        }
        call.into()
    }
}

/// Where the marker of an image, a sound or a film stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaPlace {
    /// The number of the caller's string that the marker's bytes have in their origin.
    pub string: usize,
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
    /// The number of the first string that no string of the caller's has.
    pub(crate) next_string: usize,
    /// What has been found.
    pub(crate) media: Vec<MediaPlace>,
}

impl Reader<'_> {
    /// Reads the messages.
    pub(crate) fn messages(&mut self, messages: Option<&Json>) -> Result<Vec<Message>, Error> {
        match messages {
            Some(Json::Array(messages)) => self.first(messages, messages.len()),
            Some(other) => Err(Error::request("messages", format!("expected an array, got {}", other.kind()))),
            None => Err(Error::request("messages", "a request must have messages")),
        }
    }

    /// Reads the first messages.
    pub(crate) fn first(&mut self, messages: &[Json], count: usize) -> Result<Vec<Message>, Error> {
        let messages = messages.iter().take(count).enumerate();
        messages.map(|(number, message)| self.message(message, number)).collect()
    }

    fn message(&mut self, given: &Json, number: usize) -> Result<Message, Error> {
        let refuse = |problem: &str| Err(Error::request(format!("messages[{number}]"), problem));
        let Json::Object(given) = given else {
            return refuse(&format!("a message must be an object, not {}", given.kind()));
        };
        let text_of = |name| match given.get(name) {
            Some(value) => content::string(value, || format!("messages[{number}].{name}")).cloned(),
            None => Ok(Text::default()),
        };
        if given.get("role").is_none() {
            return refuse("a message must have a role");
        }
        let mut message =
            Message { number: Some(number), role: self.role(text_of("role")?, number), ..Message::default() };
        match (given.get("content"), given.get("tool_calls")) {
            (Some(content), _) => self.content(content, &mut message, number)?,
            (None, Some(_)) if message.role == "assistant" => {}
            (None, _) if message.role == "assistant" => {
                return refuse("an assistant's message must have content or tool_calls");
            }
            (None, _) => return refuse("a message must have content"),
        }
        if let Some(calls) = given.get("tool_calls") {
            message.tool_calls = tool_calls(calls, &format!("messages[{number}].tool_calls"))?;
        }
        message.reasoning_content = text_of("reasoning_content")?;
        message.name = text_of("name")?;
        message.tool_call_id = text_of("tool_call_id")?;
        Ok(message)
    }

    /// A role that every template knows, or this one, is as if the template had written it. Others stay the caller's.
    fn role(&self, role: Text, number: usize) -> Text {
        const STANDARD: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];
        let is_known = STANDARD.iter().any(|known| role == *known) || self.template.has_constant(role.as_bytes());
        if is_known { role.with_origin(Origin::turn(number)) } else { role }
    }

    fn content(&mut self, content: &Json, message: &mut Message, number: usize) -> Result<(), Error> {
        match content {
            Json::Null => {}
            Json::String(text) => message.content = text.clone(),
            Json::Array(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    message.parts.push(self.part(part, number, at)?);
                }
            }
            other => {
                let problem = format!("expected a string or an array, got {}", other.kind());
                return Err(Error::request(format!("messages[{number}].content"), problem));
            }
        }
        Ok(())
    }

    fn part(&mut self, part: &Json, message: usize, at: usize) -> Result<Part, Error> {
        let field = || format!("messages[{message}].content[{at}]");
        let Some(Json::String(kind)) = part.get("type") else {
            return Err(Error::request(field(), "a part must be an object with a type"));
        };
        if *kind == "text" {
            return match part.get("text") {
                Some(value) => {
                    let text = content::string(value, || field() + ".text")?.clone();
                    Ok(Part { kind: PartKind::Text, text })
                }
                None => Err(Error::request(field(), "a part of the type 'text' must have a text")),
            };
        }
        let what = match kind.as_bytes() {
            b"image_url" => "an image",
            b"input_audio" => "a sound",
            b"input_video" | b"video_url" => "a film",
            other => {
                let problem = format!("parts of the type {:?} are not known", String::from_utf8_lossy(other));
                return Err(Error::request(field(), problem));
            }
        };
        let Some(marker) = self.marker else {
            return Err(Error::request(field(), format!("{what} has no text, and no marker was given for it")));
        };
        let string = self.next_string + self.media.len();
        self.media.push(MediaPlace { string, message, part: at });
        Ok(Part { kind: PartKind::Media, text: Text::new(marker, Origin::caller(string)) })
    }
}

/// The calls in a field `tool_calls`. Of an object, its values count; `null` is as good as no calls.
fn tool_calls(calls: &Json, field: &str) -> Result<Vec<ToolCall>, Error> {
    let calls: Vec<&Json> = match calls {
        Json::Null => Vec::new(),
        Json::Array(calls) => calls.iter().collect(),
        Json::Object(calls) => calls.iter().map(|entry| entry.1).collect(),
        other => return Err(Error::request(field, format!("expected an array, got {}", other.kind()))),
    };
    calls.into_iter().enumerate().map(|(at, call)| tool_call(call, &format!("{field}[{at}]"))).collect()
}

fn tool_call(call: &Json, field: &str) -> Result<ToolCall, Error> {
    content::check_function(call, "a tool call", field)?;
    let function = call.get("function");
    let of_function = |name: &str| match function.and_then(|function| function.get(name)) {
        Some(value) => Ok(value),
        None => Err(Error::request(field, format!("a tool call must have a function with {name}"))),
    };
    let name = content::string(of_function("name")?, || format!("{field}.function.name"))?.clone();
    let arguments = match of_function("arguments")? {
        Json::String(text) => text.clone(),
        other => other.dump(name.first_origin()),
    };
    let id = match call.get("id") {
        Some(id) => content::string(id, || format!("{field}.id"))?.clone(),
        None => Text::default(),
    };
    Ok(ToolCall { name, arguments, id })
}
