//! The conversations that are rendered to see how a template writes things.
//!
//! Source: the constants of `common/chat-diff-analyzer.cpp`, and `apply_template` in
//! `common/chat-auto-parser-helpers.cpp`, of llama.cpp. Deviations: 1. Other texts.

use crate::error::Error;
use crate::json::{Json, Object};
use crate::rules::content;
use crate::rules::params::{Params, Scene};
use crate::rules::render::render;

/// What the model thinks.
pub(super) const THINKING: &str = "THOUGHT_BEGINS a thought END_T";
/// The name of the function that is called.
const FUNCTION: &str = "FIRST_FUNCTION_F";
/// The name of its first argument.
const ARGUMENT: &str = "ARGUMENT_ONE_A";
/// What the model answers.
const ANSWER: &str = "ANSWER_BEGINS an answer END_A";

const QUESTION: &str = "QUESTION_BEGINS a question END_Q";

fn object<const N: usize>(entries: [(&'static str, Json); N]) -> Json {
    Object::from_iter(entries).into()
}

pub(super) fn user() -> Json {
    object([("role", "user".into()), ("content", QUESTION.into())])
}

/// A message of the assistant, with what it thinks if it `thinks`.
pub(super) fn assistant(thinks: bool) -> Json {
    let mut message = Object::from_iter([("role", Json::from("assistant")), ("content", ANSWER.into())]);
    if thinks {
        message.set("reasoning_content", THINKING);
    }
    message.into()
}

/// A message of the assistant that thinks and calls a tool.
pub(super) fn caller() -> Json {
    let arguments = object([(ARGUMENT, "XXXX".into()), ("ARGUMENT_TWO_B", "YYYY".into())]);
    let function = object([("name", FUNCTION.into()), ("arguments", arguments)]);
    // Mistral's templates take identifiers of nine characters only.
    let call = object([("id", "call00001".into()), ("type", "function".into()), ("function", function)]);
    object([
        ("role", "assistant".into()),
        ("content", Json::Null),
        ("reasoning_content", THINKING.into()),
        ("tool_calls", vec![call].into()),
    ])
}

fn tools() -> Vec<Json> {
    let argument = |about: &'static str| object([("type", "string".into()), ("description", about.into())]);
    let tool = |name: &'static str| {
        let properties = object([(ARGUMENT, argument("One")), ("ARGUMENT_TWO_B", argument("Two"))]);
        let parameters =
            object([("type", "object".into()), ("properties", properties), ("required", Json::Array(Vec::new()))]);
        let function =
            object([("name", name.into()), ("description", "A function".into()), ("parameters", parameters)]);
        object([("type", "function".into()), ("function", function)])
    };
    vec![tool(FUNCTION), tool("SECOND_FUNCTION_S")]
}

/// Renders conversations.
pub(super) struct Probe<'s> {
    pub(super) scene: Scene<'s>,
    params: Params,
}

impl<'s> Probe<'s> {
    pub(super) fn new(scene: &'s mut Scene<'_>) -> Self {
        let scene = Scene { add_bos: false, add_eos: false, budget: &mut *scene.budget, ..*scene };
        let params = Params { enable_thinking: true, ..Params::default() };
        Self { scene, params }
    }

    /// Renders messages as they are. `None` if the template fails.
    pub(super) fn messages<const N: usize>(&mut self, messages: [Json; N]) -> Result<Option<Vec<u8>>, Error> {
        self.params.tools = None;
        self.render(messages.into())
    }

    /// Renders messages with two tools. `None` if the template fails.
    pub(super) fn with_tools<const N: usize>(&mut self, messages: [Json; N]) -> Result<Option<Vec<u8>>, Error> {
        self.params.tools = Some(tools());
        self.render(messages.into())
    }

    /// Renders a question and asks for an answer, with or without thinking. `None` if the template fails.
    pub(super) fn question(&mut self, enable_thinking: bool) -> Result<Option<Vec<u8>>, Error> {
        (self.params.add_generation_prompt, self.params.enable_thinking) = (true, enable_thinking);
        let text = self.messages([user()]);
        (self.params.add_generation_prompt, self.params.enable_thinking) = (false, true);
        text
    }

    fn render(&mut self, messages: Vec<Json>) -> Result<Option<Vec<u8>>, Error> {
        let messages = content::adapted(&messages, self.scene.caps)?;
        match render(&mut self.scene, &self.params, &messages, self.params.add_generation_prompt, None) {
            Ok(text) => Ok(Some(text.into_bytes())),
            Err(error @ Error::Limit { .. }) => Err(error),
            Err(_) => Ok(None),
        }
    }
}
