//! What a caller passed and the model does not see: variables, tools, fields of messages, whole messages.

use std::collections::HashSet;
use std::fmt;

use super::request::{Request, Settings};
use crate::json::Json;
use crate::language::Template;
use crate::text::Text;

/// What the model does not see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The template never reads a variable.
    UnreadVariable {
        /// Its name.
        name: String,
    },
    /// The template never reads `tools` or `documents`.
    Unread {
        /// The field of the request.
        field: &'static str,
    },
    /// The template never reads a field of a message.
    UnreadField {
        /// The first message that has it.
        message: usize,
        /// Its name.
        name: String,
    },
    /// llama-server does not pass a field of a message on.
    DroppedField {
        /// The first message that has it.
        message: usize,
        /// Its name.
        name: String,
    },
    /// Nothing of a message is in the text.
    LeftOut {
        /// The message.
        message: usize,
        /// Its role.
        role: String,
    },
    /// The template takes no system messages, and there is no message to merge it with.
    DroppedSystem {
        /// The message.
        message: usize,
    },
}

impl Warning {
    /// What kind of warning it is, in a word.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnreadVariable { .. } => "unread-variable",
            Self::Unread { .. } => "unread",
            Self::UnreadField { .. } => "unread-field",
            Self::DroppedField { .. } => "dropped-field",
            Self::LeftOut { .. } => "left-out",
            Self::DroppedSystem { .. } => "dropped-system",
        }
    }

    /// The variable or field that it is about.
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::UnreadVariable { name } | Self::UnreadField { name, .. } | Self::DroppedField { name, .. } => {
                Some(name)
            }
            Self::Unread { field } => Some(field),
            Self::LeftOut { .. } | Self::DroppedSystem { .. } => None,
        }
    }

    /// The message that it is about.
    pub fn message(&self) -> Option<usize> {
        match self {
            Self::UnreadField { message, .. }
            | Self::DroppedField { message, .. }
            | Self::LeftOut { message, .. }
            | Self::DroppedSystem { message } => Some(*message),
            Self::UnreadVariable { .. } | Self::Unread { .. } => None,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnreadVariable { name } => write!(f, "the template never reads the variable '{name}'"),
            Self::Unread { field } => write!(f, "the template never reads {field}"),
            Self::UnreadField { message, name } => {
                write!(f, "the template never reads the field '{name}', which messages[{message}] has")
            }
            Self::DroppedField { message, name } => {
                write!(f, "llama-server drops the field '{name}', which messages[{message}] has")
            }
            Self::LeftOut { message, role } => {
                write!(f, "the template leaves out messages[{message}], whose role is '{role}'")
            }
            Self::DroppedSystem { message } => {
                write!(f, "messages[{message}] is dropped: the template takes no system messages")
            }
        }
    }
}

/// Variables that llama-server reads itself, or that are arguments of calls.
const OWN: [&str; 8] = [
    "messages",
    "tools",
    "documents",
    "add_generation_prompt",
    "enable_thinking",
    "preserve_reasoning",
    "reasoning_effort",
    "reasoning_strength",
];

/// Fields of a message that most templates can do without, or that say nothing to a model.
const BOOKKEEPING: [&str; 8] = ["role", "content", "name", "id", "tool_call_id", "refusal", "annotations", "type"];
/// The other fields that llama-server passes on.
const PASSED: [&str; 2] = ["tool_calls", "reasoning_content"];
/// Other names of `reasoning_content`, which some clients send beside it.
const REASONING: [&str; 2] = ["thinking", "reasoning"];

/// Finds what is not in `text`, which was rendered from a request. O(bytes of the template and of the request).
pub(crate) fn find(request: &Request, settings: &Settings, template: &Template, text: &Text) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (name, _) in settings.variables.iter() {
        let name = String::from_utf8_lossy(name.as_bytes());
        if !OWN.contains(&&*name) && !template.reads(&name) {
            warnings.push(Warning::UnreadVariable { name: name.into_owned() });
        }
    }
    if settings.tools.is_some() && !template.reads("tools") {
        warnings.push(Warning::Unread { field: "tools" });
    }
    if settings.variables.get("documents").is_some_and(|given| !is_blank(given)) && !template.reads("documents") {
        warnings.push(Warning::Unread { field: "documents" });
    }
    unread_fields(request, template, &mut warnings);
    left_out(request, text, &mut warnings);
    warnings
}

fn unread_fields(request: &Request, template: &Template, warnings: &mut Vec<Warning>) {
    let mut known: HashSet<&[u8]> = BOOKKEEPING.iter().map(|name| name.as_bytes()).collect();
    for (number, message) in request.messages().iter().enumerate() {
        for (name, value) in message.as_object().into_iter().flat_map(|message| message.iter()) {
            if !known.insert(name.as_bytes()) {
                continue;
            }
            let is_one_of = |names: &[&str]| names.iter().any(|known| *name == **known);
            let is_twice = is_one_of(&REASONING) && message.get("reasoning_content").is_some();
            if is_blank(value) || is_twice {
                continue;
            }
            let shown = || String::from_utf8_lossy(name.as_bytes()).into_owned();
            if !is_one_of(&PASSED) {
                warnings.push(Warning::DroppedField { message: number, name: shown() });
            } else if memchr::memmem::find(template.source(), name.as_bytes()).is_none() {
                warnings.push(Warning::UnreadField { message: number, name: shown() });
            }
        }
    }
}

fn left_out(request: &Request, text: &Text, warnings: &mut Vec<Warning>) {
    let messages = request.messages();
    let mut is_seen = vec![false; messages.len()];
    for (_, origin) in text.runs() {
        let string = origin.string().and_then(|string| request.strings().message(string));
        if let Some(seen) = string.and_then(|message| is_seen.get_mut(message)) {
            *seen = true;
        }
    }
    for (message, given) in messages.iter().enumerate().filter(|(message, _)| !is_seen[*message]) {
        let content = given.get("content").unwrap_or(&Json::Null);
        let texts = match content {
            Json::Array(parts) => parts.iter().filter_map(|part| part.get("text")).collect(),
            content => vec![content],
        };
        let has_text = |text: &&Json| text.as_text().is_some_and(|text| !text.as_bytes().trim_ascii().is_empty());
        if texts.iter().any(has_text) {
            let role = given.get("role").and_then(Json::as_text).map_or(&[][..], |role| role.as_bytes());
            let role = String::from_utf8_lossy(role).into_owned();
            warnings.push(Warning::LeftOut { message, role });
        }
    }
}

/// Whether there is nothing in a value.
fn is_blank(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(object) => object.is_empty(),
        _ => false,
    }
}
