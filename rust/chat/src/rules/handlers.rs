//! Templates that llama.cpp recognizes by texts in their source: what it does to their messages, and how it continues
//! the last message of an assistant.
//!
//! 1. The first [`Handler`] of [`HANDLERS`] whose texts are all in the source is used.
//! 2. It may [rewrite](messages) the messages.
//! 3. The template is rendered; if a message is continued, with and without a generation prompt.
//! 4. If a message is continued, its thinking and its content are written after the text, with markers around them.
//!
//! Source: `common_chat_try_specialized_template` and `render_content` in `common/chat.cpp`, the functions that the first
//! one calls, in `common/parsers`, and `generate_parser` in `common/chat-auto-parser-generator.cpp` of llama.cpp.
//! Deviations: 1. Only what makes the prompt: neither parsers nor grammars. So a request is rendered even if llama-server
//! then refuses it, because it cannot make a grammar from a schema, or because its parser cannot continue what a message
//! begins with. 2. The original always renders with and without a generation prompt, and fails if either does. 3. The
//! markers around a continued message count as written by the template, in the turn of this message.

mod messages;
mod table;

use memchr::memmem;

use self::table::HANDLERS;
use super::params::{Continuation, Params, Scene};
use super::render::render;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::language::Template;
use crate::text::{Origin, Text, num_shared};

/// What is done for templates of one kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler<'a> {
    /// All of these stand in the source.
    has: &'static [&'static str],
    /// None of these does.
    lacks: &'static [&'static str],
    rewrite: Rewrite,
    form: Form,
    /// What a continued message begins with.
    opening: &'a [u8],
    thinking: Thinking<'a>,
}

/// Rewrites the messages of the parameters.
type Rewrite = fn(&mut Params, &Template) -> Result<(), Error>;

/// What is special about the text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Plain,
    /// The last `<|return|>` becomes `<|end|>`.
    Harmony,
    /// The markers around thinking depend on the effort.
    Horizon,
    /// Without thinking, `</think>` alone is written.
    Closed,
    /// A turn begins unless one is open.
    Gemma,
    /// The generation prompt of the template comes before what a continued message begins with.
    Prompted,
    /// The same, up to where it begins with that itself.
    Found,
}

/// What becomes of a continued message's thinking.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Thinking<'a> {
    /// It is written, and this after it if the content is continued.
    Before(&'a [u8]),
    /// It is dropped.
    Dropped,
    /// It is dropped, and the content is written even if the thinking is what is continued.
    Ignored,
}

impl<'a> Handler<'a> {
    /// The handler of a template. O(bytes): worth keeping.
    pub(crate) fn of(template: &Template) -> Option<&'static Handler<'static>> {
        let has = |text: &&str| template.contains(text);
        HANDLERS.iter().find(|handler| handler.has.iter().all(has) && !handler.lacks.iter().any(has))
    }

    /// A handler of templates that write this before and after thinking. If nothing stands before it, none is written.
    pub(crate) fn between(start: &'a [u8], end: &'a [u8]) -> Self {
        let thinking = if start.is_empty() { Thinking::Dropped } else { Thinking::Before(end) };
        Self { form: Form::Found, opening: start, thinking, ..table::PLAIN }
    }

    /// Whether models of this kind think.
    pub(crate) fn thinks(&self) -> bool {
        matches!(self.thinking, Thinking::Before(_))
    }

    /// The prompt. The messages of the parameters are used up.
    pub(crate) fn prompt(&self, scene: &mut Scene<'_>, params: &mut Params) -> Result<Text, Error> {
        (self.rewrite)(params, scene.template)?;
        let messages = std::mem::take(&mut params.messages);
        let (mut prompt, asking) = renderings(scene, params, messages)?;

        let asks = params.add_generation_prompt;
        let lacks_turn = self.form == Form::Gemma && prompt.as_bytes().ends_with(b"<turn|>\n");
        let continued = params.continued.as_ref();
        let turn = continued.and_then(|message| message.message).map_or(Origin::TEMPLATE, Origin::turn);
        if self.form == Form::Harmony && !asks {
            replace_last(&mut prompt, b"<|return|>", b"<|end|>");
        } else if lacks_turn && (asks || continued.is_some()) {
            prompt.push(b"<|turn>model\n", turn);
        }
        let text = self.continued(scene.template, params, &asking, turn)?;
        scene.budget.bytes(text.len())?;
        prompt.append(&text);
        Ok(prompt)
    }

    /// What is written for the message that is continued, if one is. `asking` is how the template asks for an answer.
    fn continued(&self, template: &Template, params: &Params, asking: &Text, turn: Origin) -> Result<Text, Error> {
        let mut text = Text::default();
        let Some(message) = &params.continued else { return Ok(text) };
        let given = message.text("reasoning_content");
        let mut opening = self.opening.to_vec();
        let mut thinking = self.thinking;
        match self.form {
            Form::Prompted => text.append(asking),
            Form::Found => {
                text.append(asking);
                let begun = memmem::find(asking.as_bytes(), &opening).filter(|_| !opening.is_empty());
                text.truncate(begun.unwrap_or(asking.len()));
            }
            Form::Closed if given.is_none() => {
                (opening, thinking) = ("<｜Assistant｜></think>".into(), Thinking::Dropped);
            }
            Form::Horizon => {
                let [start, end] = messages::horizon_markers(params, template)?;
                opening.extend_from_slice(start.as_bytes());
                thinking = Thinking::Before(end.as_bytes());
            }
            _ => {}
        }
        text.push(&opening, turn);

        let has_content = match params.continuation {
            _ if thinking == Thinking::Ignored => true,
            // The thinking is continued if there is nothing else in the message.
            Continuation::Auto => given.is_none() || !message.text("content").is_some_and(Text::is_empty),
            asked => asked == Continuation::Content,
        };
        if let Thinking::Before(closing) = thinking {
            given.iter().for_each(|thinking| text.append(thinking));
            text.push(if has_content { closing } else { b"" }, turn);
        }
        if has_content {
            append_content(&mut text, message.get("content").unwrap_or(&Json::Null));
        }
        Ok(text)
    }
}

/// Appends a content: `render_content`. Parts that are not text are left out.
fn append_content(text: &mut Text, content: &Json) {
    content.as_text().iter().for_each(|content| text.append(content));
    let mut is_empty = true;
    let parts = content.as_array().unwrap_or_default().iter();
    for part in parts.filter(|part| part.is("type", "text")).filter_map(|part| part.text("text")) {
        if !is_empty {
            text.push(b"\n\n", text.last_origin());
        }
        is_empty &= part.is_empty();
        text.append(part);
    }
}

/// The prompt before a message is continued, and, if one is, what the template writes to ask for an answer.
fn renderings(scene: &mut Scene<'_>, params: &Params, messages: Vec<Object>) -> Result<(Text, Text), Error> {
    if params.continuation == Continuation::None {
        return Ok((render(scene, params, messages, params.add_generation_prompt)?, Text::default()));
    }
    let without = render(scene, params, messages.clone(), false)?;
    let with = render(scene, params, messages, true)?;
    let shared = num_shared(with.as_bytes(), without.as_bytes());
    Ok((without, with.slice(shared..with.len())))
}

fn replace_last(text: &mut Text, old: &[u8], new: &[u8]) {
    if let Some(at) = memmem::rfind(text.as_bytes(), old) {
        let tail = text.slice(at + old.len()..text.len());
        let origin = text.origin_at(at);
        text.truncate(at);
        text.push(new, origin);
        text.append(&tail);
    }
}

#[cfg(test)]
mod tests {
    use crate::clock::Now;
    use crate::error::Error;
    use crate::rules::{ChatTemplate, Options, Request};
    use crate::text::{Origin, Text};

    /// Writes messages so that each of their fields can be told apart.
    const BODY: &str = "{% for m in messages %}[{{ m.role }}|{{ m.content|tojson }}|{{ m.thinking }}|\
        {% if m.tool_responses %}{{ m.tool_responses|tojson }}{% endif %}]\
        {% endfor %}{% if add_generation_prompt %}GO{% endif %}";

    fn rendered(signs: &str, body: &str) -> Result<Text, Error> {
        let template = ChatTemplate::new(format!("{{# {signs} #}}{BODY}").as_bytes())?;
        let request = Request::parse(body.as_bytes())?;
        Ok(template.apply(&request, &Options::default(), &Now::default())?.text)
    }

    fn prompt(signs: &str, messages: &str) -> String {
        let text = rendered(signs, &format!(r#"{{"messages": [{messages}]}}"#)).unwrap();
        String::from_utf8(text.into_bytes()).unwrap()
    }

    #[test]
    fn each_handler_continues_in_its_way() {
        for (signs, thinking, content) in [
            ("[SYSTEM_PROMPT][TOOL_CALLS][ARGS]", "[THINK]T", "[/THINK]C"),
            (
                "<|channel|>",
                "<|start|>assistant<|channel|>analysis<|message|>T",
                "<|end|><|start|>assistant<|channel|>final<|message|>C",
            ),
            (
                "<atem:function_calls><|eom|>",
                "<|start|>assistant to=self<|message|>T",
                "<|eom|><|start|>assistant to=user<|message|>C",
            ),
            (">>>all>>>${recipient}", "<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n", "C"),
            (
                "<|tool_calls_section_begin|><|tool_call_begin|>",
                "<|im_assistant|>assistant<|im_middle|><think>T",
                "</think>C",
            ),
            (
                "<|open|><|close|><|end_of_msg|>",
                "<|open|>message role=\"assistant\"<|sep|><|open|>think<|sep|>T",
                "<|close|>think<|sep|><|open|>response<|sep|>C",
            ),
            ("<|ifm|im_start|><ifm|tool_calls>", "<|ifm|im_start|>assistant\n<ifm|think>\nT", "</ifm|think>C"),
            ("[source_lang_code][target_lang_code]", "<start_of_turn>model\n", "C"),
            ("<role>ASSISTANT</role><arg_key>", "<role>ASSISTANT</role>\n<think>T", "</think>C"),
            (
                "<|START_TEXT|><|START_ACTION|>",
                "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>T",
                "<|END_THINKING|><|START_TEXT|>C",
            ),
            ("<|tool_list_start|><|tool_list_end|>", "<|im_start|>assistant\n<think>T", "</think>C"),
            ("List of tools: [", "<|im_start|>assistant\n<think>T", "</think>C"),
            ("<|role_sep|><|message_sep|>", "assistant<|role_sep|>\n", "C"),
            ("]<]minimax[>[<tool_call><invoke name=", "GO<mm:think>T", "</mm:think>C"),
            ("dsml_token DSML function_calls", "<｜Assistant｜><think>T", "</think>C"),
            ("dsml_token DSML tool_calls", "<｜Assistant｜><think>T", "</think>C"),
            ("'<|tool_call>call:'", "<|channel>thought\nT", "<channel|>C"),
            (
                "Tool usage guidelines: <function name=\"<param name=\"",
                "<|im_start|>assistant\n<think>\nT",
                "\n</think>\n\nC",
            ),
            ("<tool_call><function=<parameter=<think>", "<|im_start|>assistant\n<think>\nT", "\n</think>\n\nC"),
            ("<tool_call><function=<parameter=", "<|im_start|>assistant\n", "C"),
        ] {
            let both = r#"{"role": "assistant", "reasoning_content": "T", "content": "C"}"#;
            assert_eq!(prompt(signs, both), format!("{thinking}{content}"));
            let alone = r#"{"role": "assistant", "reasoning_content": "T", "content": ""}"#;
            assert_eq!(prompt(signs, alone), thinking);
        }
    }

    #[test]
    fn some_handlers_write_otherwise_without_thinking() {
        let answer =
            r#"{"role": "assistant", "content": [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]}"#;
        assert_eq!(prompt("dsml_token DSML tool_calls", answer), "<｜Assistant｜></think>A\n\nB");
        assert_eq!(prompt("dsml_token DSML function_calls", answer), "<｜Assistant｜><think></think>A\n\nB");
    }

    #[test]
    fn gemmas_turn_is_begun_where_the_template_does_not() {
        let source = "{# '<|tool_call>call:' #}{% for m in messages %}{{ m.content }}<turn|>\n{% endfor %}";
        let template = ChatTemplate::new(source.as_bytes()).unwrap();
        for (more, rest) in [
            ("", "<|turn>model\n"),
            (r#", "add_generation_prompt": false"#, ""),
            (r#", {"role": "assistant", "content": "C"}"#, "<|turn>model\n<|channel>thought\n<channel|>C"),
        ] {
            let (message, more) = if more.contains("role") { (more, "") } else { ("", more) };
            let body = format!(r#"{{"messages": [{{"role": "user", "content": "Q"}}{message}]{more}}}"#);
            let request = Request::parse(body.as_bytes()).unwrap();
            let text = template.apply(&request, &Options::default(), &Now::default()).unwrap().text;
            assert_eq!(String::from_utf8(text.into_bytes()).unwrap(), format!("Q<turn|>\n{rest}"));
        }
    }

    #[test]
    fn markers_are_the_turns_and_content_is_the_callers() {
        let body = r#"{"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "C"}]}"#;
        let text = rendered("<|role_sep|><|message_sep|>", body).unwrap();
        let at = text.len() - 3;
        let runs: Vec<_> = text.runs().filter(|(run, _)| run.end > at).map(|(_, origin)| origin).collect();
        assert_eq!(runs[0], Origin::turn(1));
        assert!(runs[1].is_caller());
    }

    #[test]
    fn thinking_moves_to_where_templates_look_for_it() {
        let messages =
            r#"{"role": "assistant", "content": "C", "reasoning_content": "T"}, {"role": "user", "content": "Q"}"#;
        let user = r#"[user|"Q"||]GO"#;
        assert_eq!(prompt("<|channel|>", messages), format!(r#"[assistant|"C"|T|]{user}"#));
        assert_eq!(prompt("List of tools: [", messages), format!(r#"[assistant|"C"|T|]{user}"#));
        let blocks = r#"[{"type": "thinking", "thinking": "T"}, {"type": "text", "text": "C"}]"#;
        assert_eq!(prompt("[SYSTEM_PROMPT][TOOL_CALLS][ARGS]", messages), format!("[assistant|{blocks}||]{user}"));
    }

    #[test]
    fn users_get_languages_and_assistants_thinking() {
        let messages = r#"{"role": "assistant", "content": "C"}, {"role": "user", "content": "Q"}"#;
        let part = r#"{"type": "text", "text": "Q", "source_lang_code": "en-GB", "target_lang_code": "en-GB"}"#;
        let expected = format!(r#"[assistant|"C"||][user|[{part}]||]GO"#);
        assert_eq!(prompt("[source_lang_code][target_lang_code]", messages), expected);
        let body = format!(r#"{{"messages": [{messages}], "chat_template_kwargs": {{"source_lang_code": null}}}}"#);
        assert!(rendered("[source_lang_code][target_lang_code]", &body).is_err());

        let source = "{# <|ifm|im_start|><ifm|tool_calls> #}{% for m in messages %}{{ m.reasoning_content is defined }}\
            {% endfor %}";
        let template = ChatTemplate::new(source.as_bytes()).unwrap();
        let request = Request::parse(format!(r#"{{"messages": [{messages}]}}"#).as_bytes()).unwrap();
        let text = template.apply(&request, &Options::default(), &Now::default()).unwrap().text;
        assert_eq!(text, "TrueFalse");
    }

    const CALLS: &str = r#"{"role": "assistant", "content": "", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}"#;

    #[test]
    fn answers_of_tools_are_sorted_or_move() {
        let answers = r#"{"role": "tool", "tool_call_id": "b", "content": "[1]"}, {"role": "user", "content": "Q"},
            {"role": "tool", "tool_call_id": "a", "content": "[2"}"#;
        let sorted = prompt("dsml_token DSML tool_calls", &format!("{CALLS}, {answers}"));
        assert_eq!(sorted, r#"[assistant|""||][tool|"[2"||][user|"Q"||][tool|"[1]"||]GO"#);

        let answers = r#"{"role": "tool", "tool_call_id": "b", "content": "[1]"},
            {"role": "tool", "tool_call_id": "a", "content": "[2"}, {"role": "assistant", "content": "C"},
            {"role": "user", "content": "Q"}"#;
        let moved = prompt("'<|tool_call>call:'", &format!("{CALLS}, {answers}"));
        let responses = r#"[{"name": "f", "response": [1]}, {"name": "g", "response": "[2"}]"#;
        assert_eq!(moved, format!(r#"[assistant|"C"||{responses}][user|"Q"||]GO"#));
    }
}
