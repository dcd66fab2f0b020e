//! What a caller passed and the model does not see: variables, tools, fields of messages, whole messages.

use std::collections::HashSet;
use std::fmt;

use super::params::Params;
use super::request::Request;
use crate::json::Json;
use crate::language::Template;
use crate::text::Text;

/// What the model does not see. `Display` says it in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// What kind of warning it is:
    ///
    /// * `unread-variable`, `unread`: the template never reads a variable, `tools` or `documents`.
    /// * `unread-field`: it never reads a field of a message.
    /// * `dropped-field`: llama-server does not pass a field of a message on.
    /// * `left-out`: nothing of a message is in the text.
    /// * `dropped-system`: the template takes no system messages, and no other message can hold its text.
    pub code: &'static str,
    /// The variable or field that it is about.
    pub subject: Option<String>,
    /// The message that it is about: of those that have a field, the first.
    pub message: Option<usize>,
    text: String,
}

impl Warning {
    fn new(code: &'static str, subject: Option<&str>, message: Option<usize>, text: String) -> Self {
        Self { code, subject: subject.map(str::to_owned), message, text }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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

/// Finds what is not in `text`, which was rendered from a request. O(bytes of the template and of the request).
pub(crate) fn find(request: &Request, params: &Params, template: &Template, text: &Text) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(message) = params.dropped {
        let text = format!("messages[{message}] is dropped: the template takes no system messages");
        warnings.push(Warning::new("dropped-system", None, Some(message), text));
    }
    for (name, _) in &params.variables.entries {
        let name = String::from_utf8_lossy(name.as_bytes());
        if !OWN.contains(&&*name) && !template.reads(&name) {
            let text = format!("the template never reads the variable '{name}'");
            warnings.push(Warning::new("unread-variable", Some(&name), None, text));
        }
    }
    let has_documents = params.variables.get("documents").is_some_and(|given| !given.is_blank());
    for (field, is_given) in [("tools", params.tools.is_some()), ("documents", has_documents)] {
        if is_given && !template.reads(field) {
            warnings.push(Warning::new("unread", Some(field), None, format!("the template never reads {field}")));
        }
    }
    unread_fields(request, template, &mut warnings);
    left_out(request, text, &mut warnings);
    warnings
}

fn unread_fields(request: &Request, template: &Template, warnings: &mut Vec<Warning>) {
    let mut known: HashSet<&[u8]> = BOOKKEEPING.iter().map(|name| name.as_bytes()).collect();
    for (number, message) in request.messages().iter().enumerate() {
        for (name, value) in message.as_object().into_iter().flat_map(|message| &message.entries) {
            if !known.insert(name.as_bytes()) {
                continue;
            }
            let (code, who) = match name.as_bytes() {
                _ if value.is_blank() => continue,
                // Some clients send the thinking under another name too.
                b"thinking" | b"reasoning" if message.get("reasoning_content").is_some() => continue,
                b"tool_calls" | b"reasoning_content" if template.contains(name) => continue,
                b"tool_calls" | b"reasoning_content" => ("unread-field", "the template never reads"),
                _ => ("dropped-field", "llama-server drops"),
            };
            let text = format!("{who} the field '{name}', which messages[{number}] has");
            warnings.push(Warning::new(code, Some(&name.to_string()), Some(number), text));
        }
    }
}

fn left_out(request: &Request, text: &Text, warnings: &mut Vec<Warning>) {
    let seen: HashSet<usize> = text.runs().filter_map(|(_, origin)| origin.message_of_caller()).collect();
    for (message, given) in request.messages().iter().enumerate().filter(|(message, _)| !seen.contains(message)) {
        let content = given.get("content").unwrap_or(&Json::Null);
        let parts = content.as_array().unwrap_or_default().iter().filter_map(|part| part.text("text"));
        if parts.chain(content.as_text()).any(|text| !text.as_bytes().trim_ascii().is_empty()) {
            let role = given.text("role").map(Text::to_string).unwrap_or_default();
            let text = format!("the template leaves out messages[{message}], whose role is '{role}'");
            warnings.push(Warning::new("left-out", None, Some(message), text));
        }
    }
}
