//! Conversations: from a request in JSON to text, ids, and who wrote what, as JSON.
//!
//! The template is the file's, chosen as in the Python package, or the caller's. The last one stays compiled.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use ggtok_chat::{
    CHATML, ChatTemplate, Error, Json, Mask, MediaPlace, Now, Object, Options, Origin, Rendered, Request, Text, Warning,
};
use ggtok_core::gguf::{Metadata, Value};
use ggtok_core::vocab::Vocabulary;
use ggtok_core::{Encoder, Spans, TokenId, Tokenizer};
use serde_json::{Value as Plain, json};
use wasm_bindgen::prelude::*;

use crate::failure::Failure;

/// The key of a file's template. Others have a dot and their name after it.
const KEY: &str = "tokenizer.chat_template";

/// A template and its name for messages.
struct Named {
    name: String,
    template: ChatTemplate,
}

/// The template that was compiled last.
#[derive(Default)]
pub struct LastTemplate(RefCell<Option<Rc<Named>>>);

impl LastTemplate {
    fn compiled(&self, name: String, source: &[u8]) -> Result<Rc<Named>, Failure> {
        let mut last = self.0.borrow_mut();
        let is_same = |last: &&Rc<Named>| last.name == name && last.template.template().source() == source;
        if let Some(same) = last.as_ref().filter(is_same) {
            return Ok(Rc::clone(same));
        }
        let template = ChatTemplate::new(source).map_err(|error| Failure::of_chat(error, Some(&name)))?;
        Ok(Rc::clone(last.insert(Rc::new(Named { name, template }))))
    }
}

/// What a caller asks for, besides the request.
pub struct Asked {
    pub template: Option<String>,
    pub template_text: Option<String>,
    pub media_marker: Option<String>,
    pub now: Now,
}

/// A conversation that was rendered.
#[wasm_bindgen(js_name = RawChat)]
pub struct Chat {
    core: Arc<Tokenizer>,
    named: Rc<Named>,
    request: Request,
    options: Options,
    now: Now,
    rendered: Rendered,
}

impl Chat {
    /// Renders the body of a request. The `fields` in `more` win over those of the body, and its `variables` join those
    /// of the template.
    pub fn new(
        core: &Arc<Tokenizer>,
        metadata: &Metadata<Vec<u8>>,
        last_template: &LastTemplate,
        body: &[u8],
        more: &[u8],
        asked: Asked,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::of_chat(error, None);
        let mut body = Json::parse(body).map_err(failed)?;
        let more = Json::parse(more).map_err(failed)?;
        let object = |name: &str| more.get(name).and_then(Json::as_object).cloned().unwrap_or_default();
        if let Json::Object(body) = &mut body {
            merge(body, object("fields"), object("variables"));
        }
        let has_tools = body.get("tools").and_then(Json::as_array).is_some_and(|tools| !tools.is_empty());
        let request = Request::from_body(body);

        let (name, source) = match &asked.template_text {
            Some(source) => ("template_text".to_owned(), source.as_bytes()),
            None => chosen(metadata, asked.template.as_deref(), has_tools)?,
        };
        let named = last_template.compiled(name, source)?;
        let special = core.vocabulary().special();
        let options = Options {
            bos: text_of(core.vocabulary(), special.bos),
            eos: text_of(core.vocabulary(), special.eos),
            media_marker: asked.media_marker,
            ..Options::default()
        };
        let rendered = named.template.apply(&request, &options, &asked.now);
        let rendered = rendered.map_err(|error| Failure::of_chat(error, Some(&named.name)))?;
        Ok(Self { core: Arc::clone(core), named, request, options, now: asked.now, rendered })
    }

    /// The ids and their spans in a unit, the tokens of each message and of each marker, and for each token whether a
    /// mask covers it: a list of these.
    pub fn encode(
        &self,
        encoder: &mut Encoder<&Tokenizer>,
        add_special: bool,
        mask: Option<Mask>,
        unit: &str,
    ) -> Result<String, Failure> {
        let failed = |error| Failure::of_chat(error, Some(&self.named.name));
        let text = &self.rendered.text;
        let mut spans = ggtok_chat::encode(encoder, text, add_special).map_err(failed)?;
        let message_spans = ggtok_chat::message_spans(text, &spans.spans, &self.request);
        let mask = match mask {
            Some(mask) => Some(ggtok_chat::mask_of(&spans.spans, &self.masked(mask).map_err(failed)?)),
            None => None,
        };
        let marker = |(place, tokens): (MediaPlace, Range<usize>)| json!({"message": place.message, "part": place.part, "start": tokens.start, "end": tokens.end});
        let media: Vec<Plain> = ggtok_chat::markers(&self.rendered, &spans.spans).into_iter().map(marker).collect();
        match unit {
            "utf16" => drop(utf16(text.as_bytes(), &mut spans.spans)),
            "char" => spans.to_characters(text.as_bytes()),
            _ => {}
        }
        let pair = |span: Range<usize>| [span.start, span.end];
        let message_spans: Vec<_> = message_spans.into_iter().map(|span| span.map(pair)).collect();
        let flat: Vec<usize> = spans.spans.into_iter().flat_map(pair).collect();
        Ok(serde_json::to_string(&(spans.ids, flat, message_spans, media, mask))?)
    }

    fn masked(&self, mask: Mask) -> Result<Vec<Range<usize>>, Error> {
        let vocabulary = self.core.vocabulary();
        let ends: Vec<&[u8]> = vocabulary.eog().iter().map(|&id| vocabulary.text(id)).collect();
        let template = &self.named.template;
        template.masked(&self.request, &self.rendered.text, &self.options, &self.now, &ends, mask)
    }
}

#[wasm_bindgen(js_class = RawChat)]
impl Chat {
    /// The text, who wrote which part of it in UTF-16 code units, and what the model does not see, as JSON.
    pub fn text(&self) -> String {
        let text: &Text = &self.rendered.text;
        let who = |origin: Origin| (origin.is_caller(), origin.message());
        let (mut places, who): (Vec<_>, Vec<_>) = text.stretches(who).into_iter().unzip();
        let string = utf16(text.as_bytes(), &mut places);
        let part = |(place, (is_caller, message)): (Range<usize>, (bool, Option<usize>))| json!({"start": place.start, "end": place.end, "isCaller": is_caller, "message": message});
        let parts: Vec<Plain> = places.into_iter().zip(who).map(part).collect();
        let warning = |warning: &Warning| {
            let message = warning.to_string();
            json!({"code": warning.code, "message": message, "subject": warning.subject, "index": warning.message})
        };
        let warnings: Vec<Plain> = self.rendered.warnings.iter().map(warning).collect();
        json!({"text": string, "parts": parts, "warnings": warnings}).to_string()
    }
}

/// Fields win over those of the body; variables join those that are there.
fn merge(body: &mut Object, fields: Object, variables: Object) {
    for (name, value) in fields.entries {
        body.set(name, value);
    }
    if variables.entries.is_empty() {
        return;
    }
    let mut joined = match body.remove("chat_template_kwargs") {
        Some(Json::Object(before)) => before,
        _ => Object::default(),
    };
    for (name, value) in variables.entries {
        joined.set(name, value);
    }
    body.set("chat_template_kwargs", joined);
}

/// The file's template of a name, or its default one: its name and text.
fn chosen<'m>(
    metadata: &'m Metadata<Vec<u8>>,
    template: Option<&str>,
    has_tools: bool,
) -> Result<(String, &'m [u8]), Failure> {
    const DEFAULT: &str = "chatml";
    let chatml = || (DEFAULT.to_owned(), CHATML.as_bytes());
    let is_default = matches!(template, None | Some("default" | ""));
    let wanted = if template.is_none() && has_tools { Some("tool_use") } else { template };
    let mut keys: Vec<String> = wanted.map(|name| format!("{KEY}.{name}")).into_iter().collect();
    if is_default {
        keys.extend([KEY.to_owned(), format!("{KEY}.tool_use")]);
    }
    for key in keys {
        if let Some(Value::String(source)) = metadata.get(&key) {
            return Ok(if source == DEFAULT.as_bytes() { chatml() } else { (key, source) });
        }
    }
    match template {
        Some(DEFAULT) => Ok(chatml()),
        other => Err(Failure::no_template(other, &names(metadata))),
    }
}

/// The names of a file's templates, in order, without the unnamed one.
fn names(metadata: &Metadata<Vec<u8>>) -> Vec<String> {
    let prefix = format!("{KEY}.");
    let keys = metadata.entries().filter_map(|(key, _)| std::str::from_utf8(key).ok()?.strip_prefix(&prefix));
    let mut names: Vec<String> = keys.map(str::to_owned).collect();
    names.sort_unstable();
    names
}

fn text_of(vocabulary: &Vocabulary, id: Option<TokenId>) -> String {
    id.map(|id| String::from_utf8_lossy(vocabulary.text(id)).into_owned()).unwrap_or_default()
}

/// The string of some bytes, with U+FFFD for what is not UTF-8. Converts ranges of the bytes to ranges of its UTF-16
/// code units, in which JavaScript counts.
fn utf16(bytes: &[u8], ranges: &mut Vec<Range<usize>>) -> String {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let mut spans = Spans { ids: Vec::new(), spans: std::mem::take(ranges) };
        spans.to_utf16(bytes);
        *ranges = spans.spans;
        return text.to_owned();
    }
    // For each byte, the units before and after the character that it belongs to.
    let mut around = Vec::with_capacity(bytes.len());
    let mut text = String::new();
    let mut before = 0;
    for chunk in bytes.utf8_chunks() {
        let replaced = Some((char::REPLACEMENT_CHARACTER, chunk.invalid().len())).filter(|(_, len)| *len > 0);
        for (char, len) in chunk.valid().chars().map(|char| (char, char.len_utf8())).chain(replaced) {
            let after = before + char.len_utf16();
            around.extend(std::iter::repeat_n((before, after), len));
            text.push(char);
            before = after;
        }
    }
    for range in ranges {
        let start = around.get(range.start).map_or(before, |around| around.0);
        let end = if range.start == range.end { start } else { around[range.end - 1].1 };
        *range = start..end;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::utf16;

    #[test]
    fn what_is_not_utf_8_counts_as_it_is_shown() {
        let mut ranges = vec![0..1, 1..3, 3..5, 5..6, 6..10, 10..10];
        let text = utf16(b"a\xE2\x82\x80\xFFb\xF0\x9F\x98\x80", &mut ranges);
        assert_eq!(text, "a\u{2080}\u{FFFD}b😀");
        assert_eq!(ranges, [0..1, 1..2, 1..3, 3..4, 4..6, 6..6]);
        let mut ranges = vec![0..2, 2..3];
        assert_eq!(utf16("é€".as_bytes(), &mut ranges), "é€");
        assert_eq!(ranges, [0..1, 1..2]);
    }
}
