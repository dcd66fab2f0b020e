//! Answers requests as llama-server's `/apply-template` does, line by line: for `tests/differential`.
//!
//! In: `{"template": str, "bos": str, "eos": str, "add_bos": bool, "add_eos": bool, "now": seconds, "body": {...}}`, of
//! which only `template` and `body` are needed. Out: `{"prompt": str}` or `{"error": str}`.

use std::io::{BufRead, Write, stdin, stdout};

use ggtok_chat::{ChatTemplate, Error, Json, Now, Options, Request};

fn main() -> std::io::Result<()> {
    // Requests for a template come one after the other.
    let mut compiled: Option<(Vec<u8>, ChatTemplate)> = None;
    let mut output = stdout().lock();
    for line in stdin().lock().lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match answer(line.as_bytes(), &mut compiled) {
            Ok(prompt) => serde_json::json!({ "prompt": String::from_utf8_lossy(&prompt) }),
            Err(error) => serde_json::json!({ "error": error.to_string() }),
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(line: &[u8], compiled: &mut Option<(Vec<u8>, ChatTemplate)>) -> Result<Vec<u8>, Error> {
    let case = Json::parse(line)?;
    let bytes = |name: &str| case.get(name).and_then(Json::as_text).map_or(&b""[..], |text| text.as_bytes());
    let string = |name: &str| String::from_utf8_lossy(bytes(name)).into_owned();
    let is_set = |name: &str| case.get(name) == Some(&Json::Bool(true));

    let template = bytes("template");
    if compiled.as_ref().is_none_or(|(source, _)| source != template) {
        *compiled = Some((template.to_vec(), ChatTemplate::new(template)?));
    }
    let Some((_, chat)) = compiled else { return Ok(Vec::new()) };
    let seconds = match case.get("now") {
        Some(Json::Int(seconds)) => *seconds,
        _ => 0,
    };
    let options = Options { bos: string("bos"), eos: string("eos"), media_marker: None, closes: Some(false) };
    let body = case.get("body").cloned().unwrap_or_default();
    let request = Request::from_body(body);
    let rendered = chat.apply(&request, &options, &Now { seconds, ..Now::default() })?;
    // The server leaves them to the tokenizer.
    let mut prompt = rendered.text.as_bytes();
    if is_set("add_bos") {
        prompt = prompt.strip_prefix(bytes("bos")).unwrap_or(prompt);
    }
    if is_set("add_eos") {
        prompt = prompt.strip_suffix(bytes("eos")).unwrap_or(prompt);
    }
    Ok(prompt.to_vec())
}
