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
pub(super) const THINKING: &str = "THOUGHT_BEGINS a thought END_T";

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

fn parsed<const N: usize>(values: [&str; N]) -> Result<Vec<Json>, Error> {
    values.iter().map(|json| Json::parse_text(&Text::template(*json))).collect()
}

/// Renders conversations.
pub(super) struct Probe<'s> {
    pub(super) scene: Scene<'s>,
    params: Params,
}

impl<'s> Probe<'s> {
    pub(super) fn new(scene: &'s mut Scene<'_>) -> Self {
        let scene = Scene { cuts_added: false, budget: &mut *scene.budget, ..*scene };
        let params = Params { enable_thinking: Some(true), ..Params::default() };
        Self { scene, params }
    }

    /// Renders messages as they are. `None` if the template fails.
    pub(super) fn messages<const N: usize>(&mut self, messages: [&str; N]) -> Result<Option<Vec<u8>>, Error> {
        let mut messages: Vec<Object> = Json::objects(&mut parsed(messages)?).map(std::mem::take).collect();
        content::adapt(&mut messages, self.scene.caps);
        match render(&mut self.scene, &self.params, messages, self.params.add_generation_prompt) {
            Ok(text) => Ok(Some(text.into_bytes())),
            Err(error @ Error::Limit { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Renders messages with two tools. `None` if the template fails.
    pub(super) fn with_tools<const N: usize>(&mut self, messages: [&str; N]) -> Result<Option<Vec<u8>>, Error> {
        let tools = ["FIRST_FUNCTION_F", "SECOND_FUNCTION_S"].map(|name| TOOL.replace("NAME", name));
        self.params.tools = Some(parsed([&tools[0], &tools[1]])?);
        let text = self.messages(messages);
        self.params.tools = None;
        text
    }

    /// Renders a question and asks for an answer, with or without thinking. `None` if the template fails.
    pub(super) fn question(&mut self, enable_thinking: bool) -> Result<Option<Vec<u8>>, Error> {
        (self.params.add_generation_prompt, self.params.enable_thinking) = (true, Some(enable_thinking));
        let text = self.messages([USER]);
        (self.params.add_generation_prompt, self.params.enable_thinking) = (false, Some(true));
        text
    }
}
