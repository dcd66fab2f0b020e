//! Renders a template for one set of parameters.
//!
//! Source: `common_chat_template_direct_apply_impl` in `common/chat.cpp` of llama.cpp. Deviations: 1. A BOS and
//! an EOS that the tokenizer adds are not taken off: [`encode`](crate::encode) has each of them once.

use super::params::{Params, Scene};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::{Changed, Value};
use crate::text::{Origin, Text};

/// The names under which templates ask whether earlier thinking is kept, and whether they are true if it is.
const KEEPS_THINKING: [(&[u8], bool); 4] = [
    (b"preserve_thinking", true),
    (b"clear_thinking", false),
    (b"truncate_history_thinking", false),
    (b"drop_thinking", false),
];

/// Renders the template with these messages in place of those of the parameters, and with or without a generation prompt.
pub(crate) fn render(scene: &mut Scene<'_>, params: &Params, messages: Vec<Object>, asks: bool) -> Result<Text, Error> {
    let messages = Json::Array(messages.into_iter().map(Json::Object).collect());
    // The caller's variables may have the names of these.
    let mut variables: Vec<(&[u8], Value)> = vec![
        (b"messages", Value::from_json(messages, Origin::TEMPLATE, scene.budget)?),
        (b"bos_token", Value::string(Text::template(&*scene.options.bos))),
        (b"eos_token", Value::string(Text::template(&*scene.options.eos))),
        (b"enable_thinking", Value::Bool(params.enable_thinking == Some(true))),
    ];
    if let Some(tools) = &params.tools {
        variables.push((b"tools", Value::from_json(tools.clone().into(), Origin::TEMPLATE, scene.budget)?));
    }
    if let Some(&Json::Bool(keeps)) = params.variables.get("preserve_reasoning") {
        variables.extend(KEEPS_THINKING.map(|(name, is_true)| (name, Value::Bool(keeps == is_true))));
    }
    if let Some(Json::String(effort)) = params.variables.get("reasoning_effort") {
        variables.push((b"reasoning_strength", Value::string(effort.clone())));
    }
    for (name, value) in &params.variables.entries {
        variables.push((name.as_bytes(), Value::from_json(value.clone(), name.first_origin(), scene.budget)?));
    }
    if asks {
        variables.push((b"add_generation_prompt", Value::Bool(true)));
    }

    scene.template.run(variables, scene.now, &mut Changed::default(), scene.budget)
}
