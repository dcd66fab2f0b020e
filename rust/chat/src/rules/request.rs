//! A request: the body that llama-server's `/v1/chat/completions` and `/apply-template` take, and what its fields say.
//!
//! A field of the wrong type counts as missing if llama-server treats it so, and is an error otherwise.
//!
//! Source: `oaicompat_chat_params_parse` in `tools/server/server-common.cpp` of llama.cpp. Deviations: 1. Fields that
//! have no influence on the prompt are not read. 2. `documents` are given to the template; the server drops them.
//! 3. Errors name the field.

use super::params::{Continuation, Params};
use super::tools;
use crate::error::Error;
use crate::json::{Json, Object};
use crate::text::{Origin, Text};

/// A conversation, and what a caller asks for.
///
/// # Examples
/// ```
/// use ggtok_chat::Request;
///
/// let request = Request::parse(br#"{"messages": [{"role": "user", "content": "Hi"}]}"#)?;
/// assert_eq!(request.roles(), ["user"]);
/// # Ok::<(), ggtok_chat::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Request {
    body: Json,
}

impl Request {
    /// A request with the fields of a body. The origin of each string in a message says which message it is.
    pub fn from_body(mut body: Json) -> Self {
        let messages = if let Json::Object(body) = &mut body { body.get_mut("messages") } else { None };
        if let Some(Json::Array(messages)) = messages {
            for (number, message) in messages.iter_mut().enumerate() {
                let origins = [Origin::caller(number), Origin::content(number)];
                if let Json::Object(message) = message {
                    message.set_origins(origins[0], |key| origins[usize::from(*key == "content")]);
                }
            }
        }
        Self { body }
    }

    /// A request from a body in JSON.
    ///
    /// # Errors
    ///
    /// The body is not JSON, or nested too deep.
    pub fn parse(body: &[u8]) -> Result<Self, Error> {
        Json::parse(body).map(Self::from_body)
    }

    /// The body.
    pub fn body(&self) -> &Json {
        &self.body
    }

    /// The role of each message, as the caller passed it; empty if it has none.
    pub fn roles(&self) -> Vec<String> {
        let role = |message: &Json| message.text("role").map(Text::to_string);
        self.messages().iter().map(|message| role(message).unwrap_or_default()).collect()
    }

    /// About how many bytes the caller passed.
    pub fn num_bytes(&self) -> usize {
        self.body.num_bytes()
    }

    /// The messages as the caller passed them.
    pub(crate) fn messages(&self) -> &[Json] {
        self.body.get("messages").and_then(Json::as_array).unwrap_or_default()
    }

    /// What the other fields say.
    pub(crate) fn params(&self) -> Result<Params, Error> {
        let body = &self.body;
        let json_schema = answer_format(body)?;
        let tools = tools::read(body.get("tools"))?;
        let tool_choice = body.text("tool_choice").map_or(&b"auto"[..], Text::as_bytes);
        if !matches!(tool_choice, b"auto" | b"none" | b"required") {
            return Err(Error::request("tool_choice", "expected 'auto', 'none' or 'required'"));
        }
        if tools.is_some() && tool_choice != b"none" && body.get("grammar").is_some() {
            return Err(Error::request("grammar", "a request with tools cannot have a grammar"));
        }
        check_log_probabilities(body)?;

        let given = body.get("chat_template_kwargs").and_then(Json::as_object);
        let mut variables = given.cloned().unwrap_or_default();
        let enable_thinking = enable_thinking(body, &mut variables)?;
        if let Some(documents) = body.get("documents").filter(|documents| !documents.is_null())
            && variables.get("documents").is_none()
        {
            variables.set("documents", documents.clone());
        }

        let reasoning_format = body.get("reasoning_format").map(|format| format.as_text().map(|it| it.as_bytes()));
        if !matches!(reasoning_format, None | Some(Some(b"none" | b"auto" | b"deepseek" | b"deepseek-legacy"))) {
            let problem = "expected 'none', 'auto', 'deepseek' or 'deepseek-legacy'";
            return Err(Error::request("reasoning_format", problem));
        }

        let add_generation_prompt = body.get("add_generation_prompt") != Some(&Json::Bool(false));
        let continuation = continuation(body.get("continue_final_message"))?;
        let params = Params { tools, json_schema, add_generation_prompt, continuation, ..Params::default() };
        Ok(Params { enable_thinking, variables, ..params })
    }
}

/// A schema for the answer.
fn answer_format(body: &Json) -> Result<Option<Json>, Error> {
    let mut schema = body.get("json_schema").filter(|schema| !schema.is_null());
    let has_grammar = body.text("grammar").is_some_and(|grammar| !grammar.is_empty());
    if schema.is_some() && has_grammar {
        return Err(Error::request("grammar", "a request with a json_schema cannot have a grammar"));
    }
    let any = Json::Object(Object::default());
    let not_null = |value: &&Json| !value.is_null();
    let format = body.get("response_format").unwrap_or(&Json::Null);
    match format.text("type").map_or(&b""[..], Text::as_bytes) {
        b"json_object" => {
            let is_empty = |schema: &Json| matches!(schema, Json::Object(_) | Json::Array(_)) && schema.is_blank();
            if format.get("schema").is_some() || schema.is_none_or(is_empty) {
                schema = Some(format.get("schema").filter(not_null).unwrap_or(&any));
            }
        }
        b"json_schema" => {
            let given = format.get("json_schema").and_then(|wrapper| wrapper.get("schema"));
            schema = Some(given.filter(not_null).unwrap_or(&any));
        }
        b"" | b"text" => {}
        _ => return Err(Error::request("response_format.type", "expected 'text', 'json_object' or 'json_schema'")),
    }
    Ok(match schema {
        Some(Json::Object(object)) if object.entries.is_empty() => {
            Some(Object::with(None, [("type", "object".into())]).into())
        }
        schema => schema.cloned(),
    })
}

fn check_log_probabilities(body: &Json) -> Result<(), Error> {
    let has_tools = body.get("tools").and_then(Json::as_array).is_some_and(|tools| !tools.is_empty());
    let is_true = |name| body.get(name) == Some(&Json::Bool(true));
    if is_true("logprobs") {
        if has_tools && is_true("stream") {
            return Err(Error::request("logprobs", "a request with tools and a stream cannot have logprobs"));
        }
    } else if body.get("top_logprobs").is_some_and(|value| !value.is_null()) {
        return Err(Error::request("top_logprobs", "a request with top_logprobs must have logprobs"));
    }
    Ok(())
}

fn continuation(value: Option<&Json>) -> Result<Continuation, Error> {
    match value {
        None | Some(Json::Null | Json::Bool(false)) => Ok(Continuation::None),
        Some(Json::Bool(true)) => Ok(Continuation::Auto),
        Some(Json::String(text)) if *text == "reasoning_content" => Ok(Continuation::Reasoning),
        Some(Json::String(text)) if *text == "content" => Ok(Continuation::Content),
        _ => Err(Error::request("continue_final_message", "expected a boolean, 'content' or 'reasoning_content'")),
    }
}

/// Whether the model is to think, if the request says so. The request's `reasoning_effort` becomes a variable.
fn enable_thinking(body: &Json, variables: &mut Object) -> Result<Option<bool>, Error> {
    let mut enabled = match variables.get("enable_thinking") {
        Some(Json::Bool(enabled)) => Some(*enabled),
        Some(text @ Json::String(_)) => return Err(text.is_not("a boolean", "chat_template_kwargs.enable_thinking")),
        _ => None,
    };
    match body.get("reasoning_effort") {
        Some(Json::String(effort)) if *effort == "none" => {
            enabled = Some(false);
            variables.remove("reasoning_effort");
        }
        Some(Json::String(effort)) if !effort.is_empty() => {
            variables.set("reasoning_effort", effort.clone());
        }
        _ => {}
    }
    Ok(enabled)
}
