//! Templates that llama.cpp does not know: it renders probes and looks at where they differ ("differential analysis").
//!
//! 1. [`thinking`]: the markers around thinking.
//! 2. [`content`], [`calls`]: the markers around answers, and how tool calls are written. This decides which beginnings
//!    of answers are taken, and which schemas of tools.
//! 3. Some templates are put right by what stands in their source.
//! 4. [`automatic`]: the template is rendered. A continued message is written after the generation prompt, with the
//!    markers around its thinking even if it has none. [`beginning`]: it may be refused.
//!
//! Source: `common/chat-diff-analyzer.cpp` (`analyze_template`), `common/chat-auto-parser-generator.cpp`
//! (`generate_parser`) of llama.cpp. Deviations: 1. Only what makes the prompt or an error: neither parsers nor
//! grammars. 2. As in [`handlers`], 2.

mod beginning;
mod calls;
mod content;
mod difference;
mod markers;
mod probe;
mod thinking;

use memchr::memmem;

use self::calls::Format;
use self::probe::{Probe, assistant, caller, user};
use self::thinking::Thinking;
use super::handlers::schema::{self, Conversion};
use super::handlers::{self, Continued, renderings};
use super::message::Message;
use super::params::{Continuation, Params, Scene, ToolChoice};
use crate::error::{Error, Position};
use crate::text::Text;

/// What probes show of a template. The same for all conversations.
#[derive(Debug)]
pub(crate) struct Analysis {
    thinking: Thinking,
    format: Format,
    /// What tool calls begin with, at which a grammar could set in. Empty if there is nothing.
    call_marker: Vec<u8>,
    /// The marker before content, if it is always written.
    content_start: Option<Vec<u8>>,
    /// Why llama.cpp can do nothing with this template.
    refusal: Option<&'static str>,
}

impl Analysis {
    /// Renders the probes. What it costs is charged.
    ///
    /// # Errors
    /// [`Error::Limit`]: there is not enough left of the budget, which may be different another time.
    pub(crate) fn of(scene: &mut Scene<'_>) -> Result<Self, Error> {
        let (source, calls_tools) = (scene.template.source(), scene.caps.supports_tool_calls);
        let mut probe = Probe::new(scene);
        let thinking = thinking::find(&mut probe, calls_tools)?;
        let mut analysis =
            Self { thinking, format: Format::None, call_marker: Vec::new(), content_start: None, refusal: None };
        let plain = probe.with_tools([user(), assistant(false)])?;
        let call = probe.with_tools([user(), caller("".into(), false)])?;
        if let (Some(plain), Some(call)) = (plain, call) {
            analysis.content_start = content::find(&mut probe, &analysis.thinking, &plain, &call)?;
            if calls_tools {
                match calls::find(&analysis.thinking, &plain, &call, probe.scene.budget)? {
                    Ok((format, marker)) => (analysis.format, analysis.call_marker) = (format, marker),
                    Err(refusal) => analysis.refusal = Some(refusal),
                }
            }
        }
        analysis.put_right(source);
        Ok(analysis)
    }

    /// Whether models with this template think.
    pub(crate) fn thinks(&self) -> bool {
        self.thinking.exists
    }

    fn put_right(&mut self, source: &[u8]) {
        let has = |text: &str| memmem::find(source, text.as_bytes()).is_some();
        let thinking = |start: &str| Thinking { exists: true, start: start.into(), end: "</think>".into() };
        // Qwen's and DeepSeek's first thinking models.
        if !self.thinking.exists
            && has("content.split('</think>')")
            && !has("reasoning_content")
            && !has("<SPECIAL_12>")
        {
            self.thinking = thinking("<think>");
        }
        // Granite 3.3.
        if has(concat!(
            "Write your thoughts between <think></think> and write your response between ",
            "<response></response>"
        )) {
            self.thinking = thinking("<think>");
            self.content_start = Some("<response>".into());
        }
        // Cohere's Command R+.
        if has("<|CHATBOT_TOKEN|>") && has("<|END_OF_TURN_TOKEN|>") && self.content_start.is_none() {
            self.content_start = Some("<|CHATBOT_TOKEN|>".into());
        }
        // Functionary 3.1.
        if has("set has_code_interpreter = tools | selectattr(\"type\", \"equalto\", \"code_interpreter\") | list \
            | length > 0")
        {
            (self.content_start, self.call_marker) = (None, "<function=".into());
        }
        // DeepSeek R1 distilled into Qwen.
        if has("{{'<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>' + tool['type'] + '<｜tool▁sep｜>'")
        {
            self.call_marker = "<｜tool▁calls▁begin｜>".into();
        }
        // Nemotron Nano v2.
        if ["<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"].iter().all(|text| has(text)) {
            self.thinking = thinking("<think>\n");
            (self.format, self.call_marker, self.content_start) = (Format::Json, "<TOOLCALL>".into(), None);
        }
        // Laguna.
        if has("laguna_glm_thinking") {
            self.thinking.start = self.thinking.start.trim_ascii().to_vec();
            self.thinking.end = self.thinking.end.trim_ascii().to_vec();
        }
    }

    /// What is written for a message that is continued, after a text that is `asking` for an answer.
    fn continued(&self, params: &Params, message: &Message, asking: &Text) -> Text {
        let mut text = Continued::new(message, params.continuation);
        let Thinking { start, end, .. } = &self.thinking;
        text.text = asking.clone();
        if !start.is_empty() {
            if let Some(at) = memmem::find(asking.as_bytes(), start) {
                text.text.truncate(at);
            }
            text.write(start);
            text.write_thinking(end);
        }
        text.write_content();
        text.text
    }

    /// What is made of the schemas of tools.
    fn conversion(&self, scene: &Scene<'_>, params: &Params) -> Conversion {
        let has_grammar = params.tool_choice == ToolChoice::Required || !self.call_marker.is_empty();
        match self.format {
            Format::None => Conversion::None,
            _ if !may_call(scene, params) => Conversion::None,
            _ if !has_grammar => Conversion::Tree,
            Format::Json | Format::JsonArguments => Conversion::Whole,
            Format::Tagged => Conversion::Parameters,
        }
    }
}

/// Whether tools may be called, and the template can show that they were.
fn may_call(scene: &Scene<'_>, params: &Params) -> bool {
    params.may_call_tools() && scene.caps.supports_tool_calls
}

/// The prompt of a template that llama.cpp does not know.
pub(crate) fn automatic(scene: &mut Scene<'_>, params: &Params, analysis: &Analysis) -> Result<Text, Error> {
    if let Some(refusal) = analysis.refusal {
        return Err(Error::Template { problem: refusal.to_owned(), position: Position { line: 1, column: 1 } });
    }
    let messages = super::content::adapted(&params.messages, scene.caps)?;
    let (mut prompt, asking) = renderings(scene, params, &messages, None)?;
    if params.continuation != Continuation::None {
        let message = params.continue_message.as_ref();
        let text = match message.filter(|_| params.has_continuation()) {
            Some(message) => {
                let text = analysis.continued(params, message, &asking);
                scene.budget.bytes(text.len())?;
                prompt.append(&text);
                text
            }
            None => asking.clone(),
        };
        if !beginning::is_taken(analysis, params, may_call(scene, params), asking.as_bytes(), text.as_bytes()) {
            return Err(handlers::not_taken(message));
        }
    }
    match (&params.json_schema, &params.tools) {
        (Some(answer), _) if answer.as_object().is_some() => schema::check_answer(answer, scene.budget)?,
        (_, Some(tools)) => schema::check_tools(tools, analysis.conversion(scene, params), scene.budget)?,
        _ => {}
    }
    Ok(prompt)
}

#[cfg(test)]
mod tests {
    use crate::clock::Now;
    use crate::error::Error;
    use crate::rules::{ChatTemplate, Options, Request};

    fn prompt(template: &str, body: &str) -> Result<String, Error> {
        let template = ChatTemplate::new(template.as_bytes())?;
        let request = Request::parse(body.as_bytes())?;
        let text = template.apply(&request, &Options::default(), &Now::default())?.text;
        Ok(String::from_utf8(text.into_bytes()).unwrap())
    }

    const TURNS: &str = "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}\
        <t>{{ m.reasoning_content }}</t>{% endif %}{{ m.content }}{% endfor %}\
        {% if add_generation_prompt %}<assistant>{% endif %}";

    #[test]
    fn thinking_is_continued_with_the_markers_found() {
        let question = r#"{"role": "user", "content": "Q"}"#;
        for (answer, expected) in [
            (r#""content": "C", "reasoning_content": "T""#, "<user>Q<assistant><t>T</t>C"),
            (r#""content": "", "reasoning_content": "T""#, "<user>Q<assistant><t>T"),
            (r#""content": "C""#, "<user>Q<assistant><t></t>C"),
            (r#""content": """#, "<user>Q"),
        ] {
            let body = format!(r#"{{"messages": [{question}, {{"role": "assistant", {answer}}}]}}"#);
            assert_eq!(prompt(TURNS, &body).unwrap(), expected);
        }
    }

    #[test]
    fn a_generation_prompt_that_thinks_is_cut() {
        let template = TURNS.replace("<assistant>{% endif %}", "<assistant><t>\n{% endif %}");
        let body = r#"{"messages": [{"role": "assistant", "content": "C", "reasoning_content": "T"}]}"#;
        assert_eq!(prompt(&template, body).unwrap(), "<assistant><t>T</t>C");
    }

    #[test]
    fn markers_of_the_generation_prompt_are_found() {
        let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}\
            {% if add_generation_prompt %}<a><t>\
            {% if not enable_thinking %}</t>{% endif %}{% endif %}";
        let body = r#"{"messages": [{"role": "assistant", "content": "C", "reasoning_content": "T"}]}"#;
        assert_eq!(prompt(template, body).unwrap(), "<a><t>T</t>C");
    }

    #[test]
    fn tool_calls_like_json_that_are_not_json_are_refused() {
        let template = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}\
            call: \"{{ c.function.name }}\" {% endfor %}{% endfor %}";
        let body = r#"{"messages": [{"role": "user", "content": "Q"}]}"#;
        assert!(matches!(prompt(template, body), Err(Error::Template { .. })));
    }

    #[test]
    fn an_answer_with_a_schema_must_begin_like_one() {
        let template = "{% for m in messages %}{{ m.content }}{% endfor %}";
        let body = |content: &str| {
            let content = format!(r#"{{"role": "assistant", "content": "{content}"}}"#);
            format!(r#"{{"messages": [{content}], "json_schema": {{"type": "object"}}}}"#)
        };
        assert!(prompt(template, &body("Sure")).is_err());
        assert_eq!(prompt(template, &body(" Sure")).unwrap(), " Sure");
        assert_eq!(prompt(template, &body("[1")).unwrap(), "[1");
    }
}
