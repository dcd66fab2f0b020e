//! What a template can do: it renders made-up conversations, and what it reads of them is observed.
//!
//! A template that fails lacks the capability; only exceeding the budget is an error.
//!
//! Source: `caps_get` in `common/jinja/caps.cpp` of llama.cpp. Deviations: 1. All renderings share the budget of one call.
//! 2. Only those capabilities are found out that decide how a template is rendered.

use crate::budget::Budget;
use crate::clock::Now;
use crate::error::Error;
use crate::json::Json;
use crate::language::{Changed, Template, Value, mark};
use crate::text::{Origin, Text};

/// What a template can do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caps {
    /// It takes contents that are text.
    pub(crate) supports_string_content: bool,
    /// It takes contents that are arrays of parts.
    pub(crate) supports_typed_content: bool,
    /// It shows the model its calls.
    pub(crate) supports_tool_calls: bool,
    /// It shows system messages.
    pub(crate) supports_system_role: bool,
    /// It takes arguments of calls that are objects.
    pub(crate) supports_object_arguments: bool,
}

const USER: &str = r#"{"role": "user", "content": "A question"}"#;
const TOOLS: &str = r#"[{"name": "tool", "type": "function", "function": {
    "name": "look", "description": "Looks something up",
    "parameters": {
        "type": "object",
        "properties": {"arg": {"type": "string", "description": "What to look up"}},
        "required": ["arg"]
    }
}}]"#;
const OBJECT: &str = r#"{"arg": "sun"}"#;
const STRING: &str = r#""{\"arg\": \"sun\"}""#;
/// What is looked for in the output: no template has it.
const CONTENT: &str = "MARK_OF_CONTENT";

impl Caps {
    /// Finds out what a template can do.
    pub(crate) fn of(template: &Template, now: &Now, budget: &mut Budget) -> Result<Self, Error> {
        const AS_ARRAY: u8 = mark::SELECTATTR | mark::ARRAY_ACCESS;
        // What holds itself is emptied once the values have been looked at.
        let mut changed = Changed::default();
        // The messages of a rendering, with what was done to them, and the text if it succeeds.
        let mut run = |messages: &str, tools: &str| -> Result<(Value, Option<Text>), Error> {
            let [messages, tools] = [messages, tools].map(|json| Json::parse_text(&Text::template(json)));
            let messages = Value::from_json(messages?, Origin::TEMPLATE, budget)?;
            let variables = vec![
                ("messages", messages.clone()),
                ("tools", Value::from_json(tools?, Origin::TEMPLATE, budget)?),
                ("bos_token", Value::string("")),
                ("eos_token", Value::string("")),
                ("add_generation_prompt", Value::Bool(true)),
            ];
            match template.run(variables, now, &mut changed, budget) {
                Ok(text) => Ok((messages, Some(text))),
                Err(error @ Error::Limit { .. }) => Err(error),
                Err(_) => Ok((messages, None)),
            }
        };
        let mut caps = Self { supports_tool_calls: true, ..Self::default() };

        // Whether contents can be strings, and arrays.
        let (messages, text) = run(&format!(r#"[{{"role": "user", "content": "{CONTENT}"}}]"#), "[]")?;
        let marks = find(&messages, "0.content").marks();
        let is_array = marks & AS_ARRAY != 0;
        let is_shown = |text: Text| memchr::memmem::find(text.as_bytes(), CONTENT.as_bytes()).is_some();
        // The string may have been looked at as an array only to see what it is.
        caps.supports_string_content = text.is_some_and(|text| !is_array || is_shown(text));
        caps.supports_typed_content = is_array;
        if marks & mark::IS_STRING != 0 {
            let (messages, text) = run(r#"[{"role": "user", "content": []}]"#, "[]")?;
            let marks = find(&messages, "0.content").marks();
            caps.supports_typed_content |= marks & AS_ARRAY != 0 && text.is_some();
        }

        let (messages, _) = run(&format!(r#"[{{"role": "system", "content": "A rule"}}, {USER}]"#), "[]")?;
        caps.supports_system_role = is_used(&messages, "0.content");

        // Whether calls are shown, and arguments can be objects.
        let (messages, text) = run(&conversation(OBJECT), TOOLS)?;
        if text.is_some() {
            caps.supports_tool_calls = is_used(&messages, "1.tool_calls");
            caps.supports_object_arguments =
                caps.supports_tool_calls && is_used(&messages, "1.tool_calls.0.function.arguments.arg");
        }
        if !caps.supports_object_arguments {
            let (messages, text) = run(&conversation(STRING), TOOLS)?;
            caps.supports_tool_calls &= text.is_some() && is_used(&messages, "1.tool_calls");
        }
        Ok(caps)
    }
}

/// A conversation with a call that has these arguments.
fn conversation(arguments: &str) -> String {
    let call = format!(
        r#"{{"id": "call00001", "type": "function", "function": {{"name": "look", "arguments": {arguments}}}}}"#
    );
    format!(
        r#"[{USER}, {{"role": "assistant", "content": "", "tool_calls": [{call}]}},
            {{"role": "tool", "content": "A result", "tool_call_id": "call00001"}},
            {{"role": "assistant", "content": "It is a result"}}, {USER}]"#
    )
}

/// What a path of keys and indices leads to.
fn find(value: &Value, path: &str) -> Value {
    let inner = |value: Value, step| value.attribute(&Value::string(Text::template(step)));
    path.split('.').try_fold(value.clone(), inner).unwrap_or(Value::UNDEFINED)
}

fn is_used(value: &Value, path: &str) -> bool {
    find(value, path).marks() & mark::USED != 0
}
