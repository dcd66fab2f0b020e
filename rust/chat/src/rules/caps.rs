//! What a template can do: it renders made-up conversations, and what it reads of them is observed.
//!
//! A template that fails lacks the capability; only exceeding the budget is an error.
//!
//! Source: `caps_get` in `common/jinja/caps.cpp` of llama.cpp. Deviations: 1. All renderings share the budget of one call.

use crate::budget::Budget;
use crate::clock::Now;
use crate::error::Error;
use crate::json::Json;
use crate::language::{Changed, Template, Value, mark};
use crate::text::{Origin, Text};

/// The names under which templates ask whether earlier thinking is kept, and whether they are true if it is.
const KEEPS_THINKING: [(&str, bool); 4] = [
    ("preserve_thinking", true),
    ("clear_thinking", false),
    ("truncate_history_thinking", false),
    ("drop_thinking", false),
];

/// The variables that say whether earlier thinking is kept.
pub(crate) fn keeping_thinking(keeps: bool) -> [(&'static str, Value); 4] {
    KEEPS_THINKING.map(|(name, is_true)| (name, Value::Bool(keeps == is_true)))
}

/// What a template can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// It takes contents that are text.
    pub supports_string_content: bool,
    /// It takes contents that are arrays of parts.
    pub supports_typed_content: bool,
    /// It shows the model the tools.
    pub supports_tools: bool,
    /// It shows the model its calls.
    pub supports_tool_calls: bool,
    /// It shows more than one call of a message.
    pub supports_parallel_tool_calls: bool,
    /// It shows system messages.
    pub supports_system_role: bool,
    /// It can show the thinking of earlier turns.
    pub supports_preserve_reasoning: bool,
    /// It looks at how much the model is to think.
    pub supports_reasoning_effort: bool,
    /// It takes arguments of calls that are objects.
    pub supports_object_arguments: bool,
}

impl Caps {
    /// What it can do, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [
            ("string_content", self.supports_string_content),
            ("typed_content", self.supports_typed_content),
            ("tools", self.supports_tools),
            ("tool_calls", self.supports_tool_calls),
            ("parallel_tool_calls", self.supports_parallel_tool_calls),
            ("system_role", self.supports_system_role),
            ("preserve_reasoning", self.supports_preserve_reasoning),
            ("reasoning_effort", self.supports_reasoning_effort),
            ("object_arguments", self.supports_object_arguments),
        ]
        .into_iter()
    }
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
const THINKING: &str = "<MARK_OF_THINKING>";

/// What came of a rendering.
struct Outcome {
    messages: Value,
    tools: Value,
    /// The output, if it succeeded.
    text: Option<Text>,
    /// Empties what holds itself, once the values have been looked at.
    _changed: Changed,
}

impl Caps {
    /// Finds out what a template can do.
    pub(crate) fn of(template: &Template, now: &Now, budget: &mut Budget) -> Result<Self, Error> {
        Prober { template, now, budget }.caps()
    }
}

struct Prober<'a> {
    template: &'a Template,
    now: &'a Now,
    budget: &'a mut Budget,
}

impl Prober<'_> {
    fn caps(&mut self) -> Result<Caps, Error> {
        let (supports_string_content, supports_typed_content) = self.content()?;
        let system = self.run(&format!(r#"[{{"role": "system", "content": "A rule"}}, {USER}]"#), "[]", &[])?;
        let mut caps = Caps { supports_string_content, supports_typed_content, ..Caps::default() };
        caps.supports_system_role = is_used(&system.messages, "0.content");
        self.tool_calls(&mut caps)?;

        let thinking = format!(
            r#"[{USER}, {{"role": "assistant", "content": "An answer", "reasoning_content": "{THINKING}"}},
                {USER}, {{"role": "assistant", "content": "An answer", "reasoning_content": "A thought"}}, {USER}]"#
        );
        let [a, b, c, d] = keeping_thinking(true);
        let preserved = self.run(&thinking, "[]", &[("enable_thinking", Value::Bool(true)), a, b, c, d])?;
        caps.supports_preserve_reasoning = preserved.text.is_some_and(|text| contains(&text, THINKING));

        let effort = Value::string("low");
        let variables = [
            ("enable_thinking", Value::Bool(true)),
            ("reasoning_effort", effort.clone()),
            ("reasoning_strength", effort.clone()),
        ];
        self.run(&format!("[{USER}]"), "[]", &variables)?;
        caps.supports_reasoning_effort = effort.marks() & mark::USED != 0;
        Ok(caps)
    }

    /// Whether contents can be strings, and arrays.
    fn content(&mut self) -> Result<(bool, bool), Error> {
        const AS_ARRAY: u8 = mark::SELECTATTR | mark::ARRAY_ACCESS;
        let with_string = self.run(&format!(r#"[{{"role": "user", "content": "{CONTENT}"}}]"#), "[]", &[])?;
        let marks = find(&with_string.messages, "0.content").marks();
        let mut takes_arrays = marks & AS_ARRAY != 0;
        // The string may have been looked at as an array only to see what it is.
        let takes_strings = with_string.text.is_some_and(|text| !takes_arrays || contains(&text, CONTENT));
        if marks & mark::IS_STRING != 0 {
            let with_array = self.run(r#"[{"role": "user", "content": []}]"#, "[]", &[])?;
            let marks = find(&with_array.messages, "0.content").marks();
            takes_arrays |= marks & AS_ARRAY != 0 && with_array.text.is_some();
        }
        Ok((takes_strings, takes_arrays))
    }

    fn tool_calls(&mut self, caps: &mut Caps) -> Result<(), Error> {
        (caps.supports_tools, caps.supports_tool_calls) = (true, true);
        let with_object = self.run(&conversation(&[OBJECT]), TOOLS, &[])?;
        if with_object.text.is_some() {
            caps.supports_tools = is_used(&with_object.tools, "0.function.name");
            caps.supports_tool_calls = is_used(&with_object.messages, "1.tool_calls");
            caps.supports_object_arguments =
                caps.supports_tool_calls && is_used(&with_object.messages, "1.tool_calls.0.function.arguments.arg");
        }
        if !caps.supports_object_arguments {
            let with_string = self.run(&conversation(&[STRING]), TOOLS, &[])?;
            let succeeded = with_string.text.is_some();
            caps.supports_tools &= succeeded && is_used(&with_string.tools, "0.function.name");
            caps.supports_tool_calls &= succeeded && is_used(&with_string.messages, "1.tool_calls");
        }
        let arguments = if caps.supports_object_arguments { OBJECT } else { STRING };
        let with_two = self.run(&conversation(&[arguments, arguments]), TOOLS, &[])?;
        caps.supports_parallel_tool_calls =
            with_two.text.is_some() && is_used(&with_two.messages, "1.tool_calls.1.function");
        Ok(())
    }

    fn run(&mut self, messages: &str, tools: &str, more: &[(&'static str, Value)]) -> Result<Outcome, Error> {
        let [messages, tools] = [messages, tools].map(|json| Json::parse_text(&Text::template(json)));
        let messages = Value::from_json(messages?, Origin::TEMPLATE, self.budget)?;
        let tools = Value::from_json(tools?, Origin::TEMPLATE, self.budget)?;
        let mut variables = vec![
            ("messages", messages.clone()),
            ("tools", tools.clone()),
            ("bos_token", Value::string("")),
            ("eos_token", Value::string("")),
            ("add_generation_prompt", Value::Bool(true)),
        ];
        variables.extend_from_slice(more);
        let mut changed = Changed::default();
        let text = match self.template.run(variables, self.now, Some(&mut changed), self.budget) {
            Ok(text) => Some(text),
            Err(error @ Error::Limit { .. }) => return Err(error),
            Err(_) => None,
        };
        Ok(Outcome { messages, tools, text, _changed: changed })
    }
}

/// A conversation with these arguments of calls.
fn conversation(arguments: &[&str]) -> String {
    let calls = arguments.iter().enumerate().map(|(at, arguments)| {
        format!(
            r#"{{"id": "call0000{}", "type": "function", "function": {{"name": "look", "arguments": {arguments}}}}}"#,
            at + 1
        )
    });
    format!(
        r#"[{USER}, {{"role": "assistant", "content": "", "tool_calls": [{}]}},
            {{"role": "tool", "content": "A result", "tool_call_id": "call00001"}},
            {{"role": "assistant", "content": "It is a result"}}, {USER}]"#,
        calls.collect::<Vec<_>>().join(", ")
    )
}

fn contains(text: &Text, what: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), what.as_bytes()).is_some()
}

/// What a path of keys and indices leads to.
fn find(value: &Value, path: &str) -> Value {
    path.split('.').fold(value.clone(), |value, step| {
        let found = match &value {
            Value::Array(array) => step.parse().ok().and_then(|at: usize| array.items.borrow().get(at).cloned()),
            Value::Object(object) => {
                object.entries.borrow().get(&Value::string(Text::template(step))).ok().flatten().cloned()
            }
            _ => None,
        };
        found.unwrap_or(Value::UNDEFINED)
    })
}

fn is_used(value: &Value, path: &str) -> bool {
    find(value, path).marks() & mark::USED != 0
}
