//! What one rendering is made of: what a caller chooses, the parameters that handlers may change, and the template with
//! its surroundings.
//!
//! Source: `autoparser::generation_params` in `common/chat-auto-parser.h` of llama.cpp. Deviations: 1. Only what
//! affects the prompt, or whether there is an error.

use super::caps::Caps;
use crate::budget::Budget;
use crate::clock::Now;
use crate::json::{Json, Object};
use crate::language::Template;

/// What is not in the request: the tokenizer's side, and what the caller of this crate chooses.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The text of the BOS token.
    pub bos: String,
    /// The text of the EOS token.
    pub eos: String,
    /// What stands for an image, a sound or a film. Without it they are refused.
    pub media_marker: Option<String>,
    /// Whether a last message of the assistant's is closed, unless the request asks for a continuation, or else continued,
    /// as by llama-server. `None` closes it only if the request sets `add_generation_prompt` to false.
    pub closes: Option<bool>,
}

/// Whether, and where, the last message is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Continuation {
    #[default]
    None,
    /// Where it ends.
    Auto,
    Content,
    Reasoning,
}

/// The parameters of a rendering: what the fields of a request say, and then what becomes of it.
#[derive(Debug, Default)]
pub(crate) struct Params {
    /// The messages as the template gets them, in the end without the one that is continued.
    pub(crate) messages: Vec<Object>,
    /// The tools. `None` is `null`, and never an empty array.
    pub(crate) tools: Option<Vec<Json>>,
    /// `None` is as the template has it.
    pub(crate) enable_thinking: Option<bool>,
    pub(crate) add_generation_prompt: bool,
    pub(crate) continuation: Continuation,
    /// The message that is continued, if there is something in it.
    pub(crate) continued: Option<Object>,
    /// Further variables: `chat_template_kwargs`, `reasoning_effort`, `documents`, the date.
    pub(crate) variables: Object,
    /// A schema of the answer. `None` is `null`.
    pub(crate) json_schema: Option<Json>,
    /// The system message that the template does not take, if no other message can hold its text.
    pub(crate) dropped: Option<usize>,
}

/// What is rendered with: the template and its surroundings.
pub(crate) struct Scene<'a> {
    pub(crate) template: &'a Template,
    pub(crate) caps: Caps,
    pub(crate) options: &'a Options,
    pub(crate) now: &'a Now,
    pub(crate) budget: &'a mut Budget,
}
