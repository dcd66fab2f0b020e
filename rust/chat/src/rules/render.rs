//! Renders a template for one set of parameters.
//!
//! Source: `common_chat_template_direct_apply_impl` in `common/chat.cpp` of llama.cpp. Deviations: none.

use super::caps::keeping_thinking;
use super::params::{Params, Scene};
use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::Value;
use crate::text::{Origin, Text};

/// Renders the template with these messages in place of those of the parameters, and with or without a generation prompt.
/// `additional` variables come on top of all others.
pub(crate) fn render(
    scene: &mut Scene<'_>,
    params: &Params,
    messages: Vec<Json>,
    adds_prompt: bool,
    additional: Option<&Object>,
) -> Result<Text, Error> {
    let mut variables = variables(scene, params, additional)?;
    // The caller's variables may have the names of these.
    let mut all = vec![
        ("messages".to_owned(), Value::from_items(messages, Origin::TEMPLATE, scene.budget)?),
        ("bos_token".to_owned(), Value::string(Text::template(scene.bos))),
        ("eos_token".to_owned(), Value::string(Text::template(scene.eos))),
        ("enable_thinking".to_owned(), Value::Bool(params.enable_thinking)),
    ];
    if let Some(tools) = &params.tools {
        all.push(("tools".to_owned(), Value::from_items(tools.clone(), Origin::TEMPLATE, scene.budget)?));
    }
    all.append(&mut variables);
    if adds_prompt {
        all.push(("add_generation_prompt".to_owned(), Value::Bool(true)));
    }

    let mut text = scene.template.run(all, scene.now, None, scene.budget)?;
    let bos = if scene.add_bos { scene.bos } else { "" };
    let eos = if scene.add_eos { scene.eos } else { "" };
    if text.as_bytes().starts_with(bos.as_bytes()) && !bos.is_empty() {
        text = text.slice(bos.len()..text.len());
    }
    if text.as_bytes().ends_with(eos.as_bytes()) {
        text.truncate(text.len() - eos.len());
    }
    Ok(text)
}

/// The caller's variables, after those that follow from them.
fn variables(
    scene: &mut Scene<'_>,
    params: &Params,
    additional: Option<&Object>,
) -> Result<Vec<(String, Value)>, Error> {
    let given = |name| additional.and_then(|object| object.get(name)).or_else(|| params.extra.get(name));
    let mut variables = Vec::new();
    if let Some(&Json::Bool(keeps)) = given("preserve_reasoning") {
        variables.extend(keeping_thinking(keeps).map(|(name, value)| (name.to_owned(), value)));
    }
    if let Some(Json::String(effort)) = given("reasoning_effort") {
        variables.push(("reasoning_strength".to_owned(), Value::string(effort.clone())));
    }
    let further = additional.into_iter().flat_map(Object::iter);
    for (name, value) in params.extra.iter().chain(further) {
        // No template can read a variable with another name.
        if let Ok(known) = std::str::from_utf8(name.as_bytes()) {
            variables.push((known.to_owned(), Value::from_json(value.clone(), name.first_origin(), scene.budget)?));
        }
    }
    Ok(variables)
}
