//! A chat template with llama-server's rules: from a request to its prompt.
//!
//! 1. The request is read: [`request`](super::request), [`message`](super::message), [`tools`](super::tools).
//! 2. Whether the last message is continued is decided.
//! 3. The messages are repaired for the template: [`repairs`](super::repairs).
//! 4. A handler for the template, if there is one, or the automatic one renders them.
//!
//! Source: `oaicompat_chat_params_parse` in `tools/server/server-common.cpp` and `common_chat_templates_apply` in
//! `common/chat.cpp` of llama.cpp. Deviations: 1. A last assistant's message is closed with [`Options::closes`], and
//! without it if `add_generation_prompt` is false; llama-server continues it. 2. No grammar and no parser for the answer
//! are made.

use std::ops::Range;
use std::sync::OnceLock;

use super::caps::Caps;
use super::handlers::Handler;
use super::message::{MediaPlace, Reader};
use super::params::{Continuation, Options, Params, Scene};
use super::request::Request;
use super::thinking::Thinking;
use super::warnings::{self, Warning};
use super::{content, repairs};
use crate::budget::Budget;
use crate::clock::{Now, strftime};
use crate::error::Error;
use crate::json::Object;
use crate::language::Template;
use crate::mask::{Conversation, Mask};
use crate::text::Text;

/// The template that llama-server takes for a file without one.
pub const CHATML: &str = "\
{%- for message in messages -%}
{{- '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}";

/// A prompt.
#[derive(Clone, Debug)]
pub struct Rendered {
    /// The prompt.
    pub text: Text,
    /// The markers of images, sounds and films. A template may leave some out, or repeat them.
    pub media: Vec<MediaPlace>,
    /// What the model does not see.
    pub warnings: Vec<Warning>,
}

/// A compiled template, and what is worked out about it on first use.
///
/// # Examples
/// ```
/// use ggtok_chat::{ChatTemplate, Now, Options, Request};
///
/// let template = ChatTemplate::new(b"{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}")?;
/// let request = Request::parse(br#"{"messages": [{"role": "user", "content": "Hi"}]}"#)?;
/// let rendered = template.apply(&request, &Options::default(), &Now::default())?;
/// assert_eq!(rendered.text.as_bytes(), b"<user>Hi");
/// # Ok::<(), ggtok_chat::Error>(())
/// ```
#[derive(Debug)]
pub struct ChatTemplate {
    template: Template,
    /// What llama.cpp knows about it, if it does.
    handler: Option<&'static Handler<'static>>,
    /// Whether white space is taken away from both ends of contents: StepFun's model repeats itself otherwise.
    trims: bool,
    caps: OnceLock<Caps>,
    /// With the BOS and EOS that it was made with.
    thinking: OnceLock<([String; 2], Thinking)>,
}

impl ChatTemplate {
    /// Compiles a template.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] if it cannot be read; [`Error::Limit`] if it is too long.
    pub fn new(source: &[u8]) -> Result<Self, Error> {
        let template = Template::new(&repaired(source))?;
        let handler = Handler::of(&template);
        let trims = template.contains("You have access to the following functions in JSONSchema format");
        Ok(Self { template, handler, trims, caps: OnceLock::new(), thinking: OnceLock::new() })
    }

    /// The compiled template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The prompt for a request.
    ///
    /// # Errors
    ///
    /// llama-server would refuse the request, or the template fails.
    pub fn apply(&self, request: &Request, options: &Options, now: &Now) -> Result<Rendered, Error> {
        let (mut params, media) = self.read(request, options)?;
        decide_continuation(&mut params, options.closes)?;
        let text = self.text(request, &mut params, options, now)?;
        let warnings = warnings::find(request, &params, &self.template, &text);
        Ok(Rendered { text, media, warnings })
    }

    /// The bytes of a request's text that a mask covers, as ranges in order. `ends` are the texts of the vocabulary's
    /// end-of-generation tokens.
    ///
    /// # Errors
    ///
    /// [`Error::Mask`] if they cannot be known; or as for [`Self::apply`], since parts of the conversation are rendered
    /// again.
    pub fn masked(
        &self,
        request: &Request,
        text: &Text,
        options: &Options,
        now: &Now,
        ends: &[&[u8]],
        mask: Mask,
    ) -> Result<Vec<Range<usize>>, Error> {
        // Nothing is continued.
        let mut render = |count, add_generation_prompt| {
            let (mut params, _) = self.read(request, options)?;
            params.messages.truncate(count);
            let mut params = Params { add_generation_prompt, continuation: Continuation::None, ..params };
            self.text(request, &mut params, options, now)
        };
        let roles = &request.roles();
        let has_generation = self.template.has_generation();
        Conversation { text, roles, render: &mut render, ends, has_generation }.masked(mask)
    }

    /// What a request says, and where its images, sounds and films are.
    fn read(&self, request: &Request, options: &Options) -> Result<(Params, Vec<MediaPlace>), Error> {
        let marker = options.media_marker.as_deref();
        let mut reader = Reader { template: &self.template, marker, media: Vec::new() };
        let params = request.params()?;
        let messages = reader.messages(request.body().get("messages"))?;
        Ok((Params { messages, ..params }, reader.media))
    }

    fn text(&self, request: &Request, params: &mut Params, options: &Options, now: &Now) -> Result<Text, Error> {
        let budget = &mut Budget::new(request.num_bytes());
        let caps = self.caps.get().map_or_else(|| Caps::of(&self.template, now, budget), |caps| Ok(*caps))?;
        let _ = self.caps.set(caps);
        let mut scene = Scene { template: &self.template, caps, options, now, budget };
        let thinking = match self.handler {
            Some(_) => Thinking::default(),
            None => self.thinking(&mut scene)?,
        };
        // What llama-server finds when it starts.
        params.enable_thinking.get_or_insert(self.handler.map_or(thinking.exists, Handler::thinks));
        add_dates(&mut params.variables, &self.template, scene.now);

        let messages = &mut params.messages;
        let continued = if params.continuation == Continuation::None { None } else { messages.pop() };
        if self.trims {
            repairs::trim(messages);
        }
        content::adapt(messages, caps);
        if !caps.supports_system_role {
            params.dropped = repairs::merge_system(messages)?;
        }
        if caps.supports_object_arguments {
            repairs::arguments_as_objects(messages)?;
        }

        // The role and the content are always there: `has_continuation`.
        let is_empty = |last: &Object| last.entries.len() == 2 && last.text("content").is_some_and(Text::is_empty);
        params.continued = continued.filter(|last| !is_empty(last));
        let found = || Handler::between(&thinking.start, &thinking.end);
        self.handler.copied().unwrap_or_else(found).prompt(&mut scene, params)
    }

    /// How the template writes thinking. It is kept for the first BOS and EOS.
    fn thinking(&self, scene: &mut Scene<'_>) -> Result<Thinking, Error> {
        let Options { bos, eos, .. } = scene.options;
        if let Some((_, thinking)) = self.thinking.get().filter(|(known, _)| *known == [bos.as_str(), eos.as_str()]) {
            return Ok(thinking.clone());
        }
        let thinking = Thinking::of(scene)?;
        let _ = self.thinking.set(([bos.clone(), eos.clone()], thinking.clone()));
        Ok(thinking)
    }
}

/// The template without conditions that no message of llama-server's fulfils, where two models' templates have them.
fn repaired(source: &[u8]) -> Vec<u8> {
    const NEVER: &str = "{%- if false %}";
    const REPAIRS: [(&str, &str); 2] = [
        (
            "<|channel|>",
            "{%- if \"<|channel|>analysis<|message|>\" in message.content or \
             \"<|channel|>final<|message|>\" in message.content %}",
        ),
        (
            "[TOOL_CALLS]",
            "{%- if (message['content'] is none or message['content'] == '' or message['content']|length == 0) and \
             (message['tool_calls'] is not defined or message['tool_calls'] is none or \
             message['tool_calls']|length == 0) %}",
        ),
    ];
    let Ok(text) = std::str::from_utf8(source) else { return source.into() };
    let repairs = REPAIRS.iter().filter(|(token, _)| text.contains(token));
    repairs.fold(text.to_owned(), |text, (_, condition)| text.replace(condition, NEVER)).into()
}

/// Decides whether and how the last message is continued, and whether there is a generation prompt.
fn decide_continuation(params: &mut Params, closes: Option<bool>) -> Result<(), Error> {
    let is_assistant = |message: &Object| message.is("role", "assistant");
    let closes = closes.unwrap_or(!params.add_generation_prompt);
    let field = format!("messages[{}]", params.messages.len().saturating_sub(1));
    let last = params.messages.last().filter(|last| is_assistant(last));
    if params.continuation == Continuation::None {
        if last.is_none() || closes {
            return Ok(());
        }
        if matches!(&params.messages[..], [.., before, _] if is_assistant(before)) {
            return Err(Error::request(field, "a message of the assistant's after another one cannot be continued"));
        }
        (params.continuation, params.add_generation_prompt) = (Continuation::Auto, false);
    }
    if params.add_generation_prompt {
        let problem = "a request that continues a message must set add_generation_prompt to false";
        return Err(Error::request("continue_final_message", problem));
    }
    if last.is_some_and(|last| last.get("tool_calls").is_some()) {
        return Err(Error::request(field + ".tool_calls", "a message with tool calls cannot be continued"));
    }
    Ok(())
}

/// Adds the dates that every template can read.
fn add_dates(variables: &mut Object, template: &Template, now: &Now) {
    for (name, format) in [("datetime", b"%b %d %Y"), ("date_string", b"%d %b %Y")] {
        if template.reads(name) && variables.get(name).is_none() {
            variables.set(name, Text::template(strftime(format, now).unwrap_or_default()));
        }
    }
}
