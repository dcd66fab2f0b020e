//! Renders templates by themselves: reads lines of JSON from standard input, `{"template", "values", "now"}`, and answers
//! each with `{"text"}` or `{"error"}`. `tests/differential` compares it with llama.cpp's engine.

use std::io::{BufRead, Write};

use ggtok_chat::{Budget, Json, Now, Template, Text};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().split(b'\n') {
        writeln!(out, "{}", answer(&line?))?;
        out.flush()?;
    }
    Ok(())
}

fn answer(line: &[u8]) -> serde_json::Value {
    match rendered(line) {
        Ok(text) => match std::str::from_utf8(text.as_bytes()) {
            Ok(text) => serde_json::json!({ "text": text }),
            Err(_) => serde_json::json!({ "b64": base64(text.as_bytes()) }),
        },
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    }
}

fn rendered(line: &[u8]) -> Result<Text, Box<dyn std::error::Error>> {
    let case = Json::parse(line)?;
    let source = case.get("template").and_then(Json::as_text).ok_or("no template")?;
    let seconds = match case.get("now") {
        Some(Json::Int(seconds)) => *seconds,
        _ => 1_709_251_199,
    };
    let template = Template::new(source.as_bytes())?;
    let values = case.get("values").and_then(Json::as_object).cloned().unwrap_or_default();
    let now = Now { seconds, ..Now::default() };
    Ok(template.render(&values, &now, &mut Budget::new(line.len()))?)
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let shown = digit <= chunk.len();
            text.push(if shown { char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]) } else { '=' });
        }
    }
    text
}
