//! How handlers rewrite messages for their templates.
//!
//! Source: of llama.cpp's `common/parsers`, `ministral3.cpp`, `gpt-oss.cpp`, `lfm2.cpp`, `k2-horizon.cpp`,
//! `translate-gemma.cpp`, `deepseek.cpp` (`deepseek_v4_sort_tool_results`) and `gemma4.cpp`
//! (`gemma4_model_turn_builder`). Deviations: none.
//!
//! Time: O(bytes), and O(n log n) for n answers of tools in a row.

use std::collections::HashMap;

use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::Template;
use crate::rules::content;
use crate::rules::params::Params;
use crate::text::Text;

/// The tool calls of a message, if there are any.
fn calls(message: &Object) -> Option<&[Json]> {
    message.get("tool_calls")?.as_array().filter(|calls| !calls.is_empty())
}

fn calls_of_assistant(message: &Object) -> Option<&[Json]> {
    calls(message).filter(|_| message.is("role", "assistant"))
}

/// Thinking and content of systems and assistants become parts of the content.
pub(super) fn as_blocks(params: &mut Params, _: &Template) -> Result<(), Error> {
    let has_blocks = |message: &&mut Object| message.is("role", "system") || message.is("role", "assistant");
    for message in params.messages.iter_mut().filter(has_blocks) {
        let mut blocks = Vec::new();
        if let Some(thinking @ Json::String(_)) = message.remove("reasoning_content") {
            blocks.push(Object::with(message.message, [("type", "thinking".into()), ("thinking", thinking)]).into());
        }
        match message.get("content") {
            Some(Json::String(text)) => blocks.push(content::part("text", text.clone(), message.message)),
            Some(Json::Array(parts)) => blocks.extend_from_slice(parts),
            _ => {}
        }
        message.set("content", blocks);
    }
    Ok(())
}

/// Thinking is repeated in the field `thinking`.
pub(super) fn with_thinking(params: &mut Params, _: &Template) -> Result<(), Error> {
    for message in &mut params.messages {
        if let Some(thinking) = message.text("reasoning_content").cloned() {
            message.set("thinking", thinking);
        }
    }
    Ok(())
}

/// Thinking is repeated in the field `thinking`, and takes the place of content beside tool calls.
pub(super) fn with_thinking_for_content(params: &mut Params, template: &Template) -> Result<(), Error> {
    for message in &mut params.messages {
        if message.get("reasoning_content").is_some() && calls(message).is_some() {
            message.remove("content");
        }
    }
    with_thinking(params, template)
}

/// Messages of assistants without thinking get an empty one. The variables of K2 Horizon's templates must be strings.
pub(super) fn with_some_thinking(params: &mut Params, _: &Template) -> Result<(), Error> {
    setting(&params.variables, "reasoning_effort", "high")?;
    setting(&params.variables, "tool_call_format", "xml")?;
    for message in params.messages.iter_mut().filter(|message| message.is("role", "assistant")) {
        if message.get("reasoning_content").is_none() {
            message.set("reasoning_content", "");
        }
    }
    Ok(())
}

/// The markers around the thinking of K2 Horizon.
pub(super) fn horizon_markers(params: &Params, template: &Template) -> Result<[&'static str; 2], Error> {
    let effort = setting(&params.variables, "reasoning_effort", "high")?;
    let is_off = params.enable_thinking == Some(false) && template.contains("enable_thinking");
    Ok(match effort.as_bytes() {
        b"medium" if !is_off => ["<ifm|think_fast>\n", "</ifm|think_fast>"],
        b"low" if !is_off => ["<ifm|think_faster>\n", "</ifm|think_faster>"],
        _ => ["<ifm|think>\n", "</ifm|think>"],
    })
}

/// A variable of the template's that must be a string if it is there.
fn setting(variables: &Object, name: &str, default: &'static str) -> Result<Text, Error> {
    let Some(value) = variables.get(name) else { return Ok(default.into()) };
    let is_not_text = || value.is_not("a string", &format!("chat_template_kwargs.{name}"));
    value.as_text().cloned().ok_or_else(is_not_text)
}

/// Contents of users become one part, with the languages between which it is to be translated.
pub(super) fn with_languages(params: &mut Params, _: &Template) -> Result<(), Error> {
    let source = setting(&params.variables, "source_lang_code", "en-GB")?;
    let target = setting(&params.variables, "target_lang_code", "en-GB")?;
    for message in params.messages.iter_mut().filter(|message| message.is("role", "user")) {
        let content = message.get("content").unwrap_or(&Json::Null);
        let text = content.as_text().cloned();
        let text = text.unwrap_or_else(|| content::joined(content.as_array().unwrap_or_default()));
        let part = [
            ("type", "text".into()),
            ("text", text.into()),
            ("source_lang_code", source.clone().into()),
            ("target_lang_code", target.clone().into()),
        ];
        message.set("content", vec![Object::with(message.message, part).into()]);
    }
    Ok(())
}

/// Answers of tools that only messages of users part get the order of the calls before them. The schema of the answer
/// becomes a variable.
pub(super) fn with_sorted_answers(params: &mut Params, template: &Template) -> Result<(), Error> {
    if let Some(schema @ Json::Object(_)) = params.json_schema.take()
        && template.reads("response_format")
    {
        params.variables.set("response_format", schema);
    }
    let is_answer = |message: &Object| message.is("role", "user") || message.is("role", "tool");
    let mut order: HashMap<Vec<u8>, usize> = HashMap::new();
    for group in params.messages.chunk_by_mut(|a, b| is_answer(a) == is_answer(b)) {
        if let Some(calls) = group.iter().rev().find_map(calls_of_assistant) {
            let ids = calls.iter().enumerate().filter_map(|(number, call)| Some((call.text("id")?, number)));
            order = ids.filter(|(id, _)| !id.is_empty()).map(|(id, n)| (id.as_bytes().to_vec(), n)).collect();
        }
        if !order.is_empty() {
            let mut places: Vec<&mut Object> = group.iter_mut().filter(|message| message.is("role", "tool")).collect();
            let mut answers: Vec<Object> = places.iter_mut().map(|place| std::mem::take(*place)).collect();
            let number = |answer: &Object| answer.text("tool_call_id").and_then(|id| order.get(id.as_bytes())).copied();
            answers.sort_by_key(|answer| number(answer).unwrap_or(0));
            for (place, answer) in places.into_iter().zip(answers) {
                *place = answer;
            }
        }
    }
    Ok(())
}

/// Answers of tools, and the content of a message after them, move into the message with the calls.
pub(super) fn with_tool_responses(params: &mut Params, _: &Template) -> Result<(), Error> {
    let mut messages = std::mem::take(&mut params.messages).into_iter().peekable();
    while let Some(message) = messages.next() {
        let Some(calls) = calls_of_assistant(&message) else {
            params.messages.push(message);
            continue;
        };
        let mut responses = Vec::new();
        while let Some(answer) = messages.next_if(|message| message.is("role", "tool")) {
            let call = calls.get(responses.len()).and_then(|call| call.get("function"));
            responses.push(response(&answer, call));
        }
        let entries = [("role", "assistant".into()), ("tool_calls", calls.to_vec().into())];
        let mut turn = Object::with(message.message, entries);
        if !responses.is_empty() {
            turn.set("tool_responses", responses);
        }
        let has_content = |next: &Object| next.get("content").is_some_and(|content| !content.is_blank());
        let is_end =
            |next: &Object| next.is("role", "assistant") && calls_of_assistant(next).is_none() && has_content(next);
        if let Some(content) = messages.next_if(is_end).and_then(|mut end| end.remove("content")) {
            turn.set("content", content);
        }
        if let Some(thinking) = message.text("reasoning_content") {
            turn.set("reasoning_content", thinking.clone());
        }
        params.messages.push(turn);
    }
    Ok(())
}

/// The answer of a tool: the name of the function and what it returned, read if that is JSON in a string.
fn response(answer: &Object, function: Option<&Json>) -> Json {
    let name = function.and_then(|function| function.text("name")).filter(|name| !name.is_empty());
    let name = name.or_else(|| answer.text("tool_call_id")).cloned().unwrap_or_default();
    let content = answer.get("content").cloned().unwrap_or_default();
    let read = content.as_text().and_then(|text| Json::parse_text(text).ok());
    Object::with(answer.message, [("name", name.into()), ("response", read.unwrap_or(content))]).into()
}
