//! The conversations that are rendered to see how a template writes things.
//!
//! Source: the constants of `common/chat-diff-analyzer.cpp`, and `apply_template` in
//! `common/chat-auto-parser-helpers.cpp`, of llama.cpp. Deviations: 1. Other texts.

use crate::error::Error;
use crate::json::{Json, Object};
use crate::rules::content;
use crate::rules::params::{Params, Scene};
use crate::rules::render::render;
use crate::text::Text;

/// What the model thinks.
pub(super) const THINKING: &[u8] = b"THOUGHT_BEGINS a thought END_T";

/// What the user asks.
pub(super) const USER: &str = r#"{"role": "user", "content": "QUESTION_BEGINS a question END_Q"}"#;
/// What the assistant answers.
pub(super) const ANSWER: &str = r#"{"role": "assistant", "content": "ANSWER_BEGINS an answer END_A"}"#;
/// The same with thinking.
pub(super) const THOUGHTFUL: &str = r#"{"role": "assistant", "content": "ANSWER_BEGINS an answer END_A",
    "reasoning_content": "THOUGHT_BEGINS a thought END_T"}"#;
/// The assistant thinks and calls a tool. Mistral's templates take identifiers of nine characters only.
pub(super) const CALL: &str = r#"{"role": "assistant", "content": null,
    "reasoning_content": "THOUGHT_BEGINS a thought END_T",
    "tool_calls": [{"id": "call00001", "type": "function", "function":
        {"name": "FIRST_FUNCTION_F", "arguments": {"ARGUMENT_ONE_A": "XXXX", "ARGUMENT_TWO_B": "YYYY"}}}]}"#;
const TOOL: &str = r#"{"type": "function", "function": {
    "name": "NAME", "description": "A function", "parameters": {"type": "object", "properties": {
        "ARGUMENT_ONE_A": {"type": "string", "description": "One"},
        "ARGUMENT_TWO_B": {"type": "string", "description": "Two"}}, "required": []}}}"#;

/// Renders messages as they are, with two tools or none. The template is asked for an answer with thinking or without, or
/// for none.
pub(super) fn rendered(
    scene: &mut Scene<'_>,
    messages: &[&str],
    has_tools: bool,
    asks: Option<bool>,
) -> Result<Vec<u8>, Error> {
    let tools = ["FIRST_FUNCTION_F", "SECOND_FUNCTION_S"].map(|name| TOOL.replace("NAME", name));
    let tools = if has_tools { Some(parsed(&tools)?) } else { None };
    let params = Params { tools, enable_thinking: Some(asks != Some(false)), ..Params::default() };
    let mut messages: Vec<Object> = Json::objects(&mut parsed(messages)?).map(std::mem::take).collect();
    content::adapt(&mut messages, scene.caps);
    render(scene, &params, messages, asks.is_some()).map(Text::into_bytes)
}

fn parsed(values: &[impl AsRef<str>]) -> Result<Vec<Json>, Error> {
    values.iter().map(|json| Json::parse_text(&Text::template(json.as_ref()))).collect()
}
