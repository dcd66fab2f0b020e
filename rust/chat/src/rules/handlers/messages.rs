//! How handlers rewrite messages for their templates.
//!
//! Source: of llama.cpp's `common/parsers`, `ministral3.cpp`, `gpt-oss.cpp`, `lfm2.cpp`, `k2-horizon.cpp`,
//! `translate-gemma.cpp`, `deepseek.cpp` (`deepseek_v4_sort_tool_results`) and `gemma4.cpp`
//! (`gemma4_model_turn_builder`). Deviations: none.
//!
//! Time: O(bytes), and O(n log n) for n answers of tools in a row.

use memchr::memmem;
use std::collections::HashMap;

use crate::error::Error;
use crate::json::{Json, Object};
use crate::rules::content;
use crate::rules::params::Params;
use crate::text::Text;

fn has_role(message: &Json, role: &str) -> bool {
    message.text("role").is_some_and(|text| *text == role)
}

/// The tool calls of a message, if there are any.
fn calls(message: &Json) -> Option<&[Json]> {
    message.get("tool_calls")?.as_array().filter(|calls| !calls.is_empty())
}

/// Thinking and content of systems and assistants become parts of the content.
pub(super) fn as_blocks(mut messages: Vec<Json>) -> Vec<Json> {
    let has_blocks = |message: &&mut Json| has_role(message, "system") || has_role(message, "assistant");
    for message in messages.iter_mut().filter(has_blocks) {
        let Json::Object(message) = message else { continue };
        let mut blocks = Vec::new();
        if let Some(Json::String(thinking)) = message.remove("reasoning_content") {
            let mut block = Object::from_iter([("type", Json::from("thinking")), ("thinking", thinking.into())]);
            block.message = message.message;
            blocks.push(block.into());
        }
        match message.get("content") {
            Some(Json::String(text)) => blocks.push(content::part("text", text.clone(), message.message)),
            Some(Json::Array(parts)) => blocks.extend_from_slice(parts),
            _ => {}
        }
        message.set("content", blocks);
    }
    messages
}

/// Thinking is repeated in the field `thinking`. If it `replaces` content, that is dropped beside tool calls.
pub(super) fn with_thinking(mut messages: Vec<Json>, replaces: bool) -> Vec<Json> {
    for message in &mut messages {
        let has_calls = calls(message).is_some();
        let Json::Object(message) = message else { continue };
        if let Some(Json::String(thinking)) = message.get("reasoning_content") {
            let thinking = thinking.clone();
            message.set("thinking", thinking);
            if replaces && has_calls {
                message.remove("content");
            }
        }
    }
    messages
}

/// Messages of assistants without thinking get an empty one.
pub(super) fn with_some_thinking(mut messages: Vec<Json>) -> Vec<Json> {
    for message in messages.iter_mut().filter(|message| has_role(message, "assistant")) {
        if let Json::Object(message) = message
            && message.get("reasoning_content").is_none()
        {
            message.set("reasoning_content", "");
        }
    }
    messages
}

/// The name of the marker around the thinking of K2 Horizon.
pub(super) fn horizon_thinking(params: &Params, source: &[u8]) -> Result<&'static str, Error> {
    let effort = setting(&params.extra, "reasoning_effort", "high")?;
    let is_off = !params.enable_thinking && memmem::find(source, b"enable_thinking").is_some();
    Ok(match effort.as_bytes() {
        b"medium" if !is_off => "ifm|think_fast",
        b"low" if !is_off => "ifm|think_faster",
        _ => "ifm|think",
    })
}

/// Whether K2 Horizon writes arguments of tools as JSON.
pub(super) fn horizon_writes_json(params: &Params) -> Result<bool, Error> {
    Ok(setting(&params.extra, "tool_call_format", "xml")? == "json")
}

/// A variable of the template's that must be a string if it is there.
fn setting(variables: &Object, name: &str, default: &'static str) -> Result<Text, Error> {
    match variables.get(name) {
        None => Ok(default.into()),
        Some(Json::String(text)) => Ok(text.clone()),
        Some(other) => {
            let problem = format!("this template takes a string, not {}", other.kind());
            Err(Error::request(format!("chat_template_kwargs.{name}"), problem))
        }
    }
}

/// Contents of users become one part, with the languages between which it is to be translated.
pub(super) fn with_languages(mut messages: Vec<Json>, variables: &Object) -> Result<Vec<Json>, Error> {
    let source = setting(variables, "source_lang_code", "en-GB")?;
    let target = setting(variables, "target_lang_code", "en-GB")?;
    for message in messages.iter_mut().filter(|message| has_role(message, "user")) {
        let Json::Object(message) = message else { continue };
        let text = match message.get("content") {
            Some(Json::String(text)) => text.clone(),
            Some(Json::Array(parts)) => {
                let mut whole = Text::default();
                for part in parts {
                    if !whole.is_empty() {
                        content::line_feed(&mut whole);
                    }
                    if let Some(text) = part.text("text") {
                        content::extend(&mut whole, text);
                    }
                }
                whole
            }
            _ => Text::default(),
        };
        let mut part = content::part("text", text, message.message);
        if let Json::Object(part) = &mut part {
            part.set("source_lang_code", source.clone());
            part.set("target_lang_code", target.clone());
        }
        message.set("content", vec![part]);
    }
    Ok(messages)
}

/// Answers of tools that only messages of users part get the order of the calls before them.
pub(super) fn with_sorted_answers(mut messages: Vec<Json>) -> Vec<Json> {
    let mut order: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut at = 0;
    while at < messages.len() {
        let is_answer = |message: &Json| has_role(message, "user") || has_role(message, "tool");
        let message = &messages[at];
        if !is_answer(message) {
            if let Some(calls) = calls(message).filter(|_| has_role(message, "assistant")) {
                let ids = calls.iter().enumerate().filter_map(|(number, call)| Some((call.text("id")?, number)));
                order = ids.filter(|(id, _)| !id.is_empty()).map(|(id, n)| (id.as_bytes().to_vec(), n)).collect();
            }
            at += 1;
            continue;
        }
        let end = messages[at..].iter().position(|message| !is_answer(message)).map_or(messages.len(), |len| at + len);
        let places: Vec<usize> = (at..end).filter(|&place| has_role(&messages[place], "tool")).collect();
        if places.len() > 1 && !order.is_empty() {
            let mut answers: Vec<Json> = places.iter().map(|&place| std::mem::take(&mut messages[place])).collect();
            let number = |answer: &Json| answer.text("tool_call_id").and_then(|id| order.get(id.as_bytes())).copied();
            answers.sort_by_key(|answer| number(answer).unwrap_or(0));
            for (&place, answer) in places.iter().zip(answers) {
                messages[place] = answer;
            }
        }
        at = end;
    }
    messages
}

/// Answers of tools, and the content of a message after them, move into the message with the calls.
pub(super) fn with_tool_responses(messages: Vec<Json>) -> Result<Vec<Json>, Error> {
    let mut rewritten = Vec::new();
    let mut messages = messages.into_iter().peekable();
    while let Some(message) = messages.next() {
        let Some(calls) = calls(&message).filter(|_| has_role(&message, "assistant")) else {
            rewritten.push(message);
            continue;
        };
        let mut responses = Vec::new();
        while let Some(answer) = messages.next_if(|message| has_role(message, "tool")) {
            let call = calls.get(responses.len()).and_then(|call| call.get("function"));
            responses.push(response(&answer, call)?);
        }
        let mut turn = Object::from_iter([("role", Json::from("assistant")), ("tool_calls", calls.to_vec().into())]);
        turn.message = message.as_object().and_then(|message| message.message);
        if !responses.is_empty() {
            turn.set("tool_responses", responses);
        }
        let is_end = |next: &Json| has_role(next, "assistant") && self::calls(next).is_none() && has_content(next);
        if let Some(content) = messages.next_if(is_end).and_then(|end| end.get("content").cloned()) {
            turn.set("content", content);
        }
        if let Some(thinking) = message.text("reasoning_content") {
            turn.set("reasoning_content", thinking.clone());
        }
        rewritten.push(turn.into());
    }
    Ok(rewritten)
}

fn has_content(message: &Json) -> bool {
    match message.get("content") {
        Some(Json::String(text)) => !text.is_empty(),
        Some(Json::Array(parts)) => !parts.is_empty(),
        _ => false,
    }
}

/// The answer of a tool: the name of the function and what it returned, read if that is JSON in a string.
fn response(answer: &Json, function: Option<&Json>) -> Result<Json, Error> {
    let name = function.and_then(|function| function.text("name")).filter(|name| !name.is_empty());
    let name = name.or_else(|| answer.text("tool_call_id")).cloned().unwrap_or_default();
    let content = answer.get("content").cloned().unwrap_or_default();
    let value = match &content {
        Json::String(text) => match Json::parse_text(text) {
            Err(Error::Request { .. }) => content,
            parsed => parsed?,
        },
        _ => content,
    };
    let mut response: Object = [("name", Json::from(name)), ("response", value)].into_iter().collect();
    response.message = answer.as_object().and_then(|answer| answer.message);
    Ok(response.into())
}
