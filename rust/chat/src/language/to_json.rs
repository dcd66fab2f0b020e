//! Values as JSON: `tojson`.
//!
//! Source: `tojson`, `value_to_json` and `json_ensure_ascii_preserving_format` in `common/jinja/value.cpp` and
//! `common_parse_utf8_codepoint` in `common/unicode.cpp` of llama.cpp. Deviations: 1. Strings, keys and numbers keep
//! their origins, escapes included. 2. Values nest at most [`MOST_DEEP`](super::value::MOST_DEEP) levels.
//!
//! Time: O(length of the text).

use super::failure::{Outcome, failed};
use super::numbers;
use super::value::Run;
use super::value::{Args, Value, check_depth};
use super::value::{charge_text, note_deeply};
use crate::text::{Origin, Text};

/// `tojson(value, ensure_ascii, indent, separators, sort_keys)`
pub(crate) fn tojson(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 5)?;
    let value = args.at(0)?;
    if run.notes {
        note_deeply(run, value, 0)?;
    }
    let indent = match args.named("indent", 2) {
        Value::Int(indent, _) => i64::from(indent as i32),
        _ => -1,
    };
    if args.named("sort_keys", 4).as_bool()? {
        return failed("llama.cpp's tojson cannot sort keys");
    }
    let is_ascii = args.named("ensure_ascii", 1).as_bool()?;
    let mut item_separator = Text::from(if indent < 0 { ", " } else { "," });
    let mut key_separator = Text::from(": ");
    if let Value::Array(separators) = args.named("separators", 3) {
        let separators = separators.items.borrow();
        if let Some(separator) = separators.first() {
            item_separator = separator.as_text(run)?;
        }
        if let Some(separator) = separators.get(1) {
            key_separator = separator.as_text(run)?;
        }
    }

    let mut writer = Writer { run, out: Text::default(), indent, item_separator, key_separator };
    writer.value(value, 0)?;
    let out = writer.out;
    Ok(Value::string(if is_ascii { escape_unicode(run, &out)? } else { out }))
}

struct Writer<'w, 'p> {
    run: &'w mut Run<'p>,
    out: Text,
    /// How many spaces per level. On one line if negative.
    indent: i64,
    item_separator: Text,
    key_separator: Text,
}

impl Writer<'_, '_> {
    fn write(&mut self, text: &[u8], origin: Origin) -> Outcome<()> {
        self.run.charge_bytes(text.len() + 8)?;
        self.out.extend(text, origin);
        Ok(())
    }

    fn write_str(&mut self, text: &str) -> Outcome<()> {
        self.write(text.as_bytes(), Origin::TEMPLATE)
    }

    fn new_line(&mut self) -> Outcome<()> {
        if self.indent < 0 { Ok(()) } else { self.write_str("\n") }
    }

    fn spaces(&mut self, level: usize) -> Outcome<()> {
        let count = usize::try_from(self.indent).unwrap_or(0).saturating_mul(level);
        self.run.charge_bytes(count.saturating_mul(2))?;
        self.write_str(&" ".repeat(count))
    }

    fn value(&mut self, value: &Value, level: usize) -> Outcome<()> {
        check_depth(level)?;
        self.run.charge_steps(1)?;
        match value {
            Value::Bool(value) => self.write_str(if *value { "true" } else { "false" }),
            Value::Int(value, origin) => self.write(value.to_string().as_bytes(), *origin),
            Value::Float(float) => self.write(numbers::general(float.value).as_bytes(), float.origin),
            Value::String(string) => write_string(self.run, &mut self.out, &string.text),
            Value::Array(array) => {
                let items = array.items.borrow();
                self.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    self.begin_item(at, level)?;
                    self.value(item, level + 1)?;
                }
                self.end_items(items.len(), level)?;
                self.write_str("]")
            }
            Value::Object(object) => {
                let entries = object.entries.borrow();
                self.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    self.begin_item(at, level)?;
                    let key = key.as_text(self.run)?;
                    write_string(self.run, &mut self.out, &key)?;
                    charge_text(self.run, &self.key_separator)?;
                    self.out.extend_with_range(&self.key_separator, 0..self.key_separator.len());
                    self.value(value, level + 1)?;
                }
                self.end_items(entries.len(), level)?;
                self.write_str("}")
            }
            Value::Undefined(_) | Value::None | Value::Function(_) | Value::KwArg(_) => self.write_str("null"),
        }
    }

    /// What is before item number `at`.
    fn begin_item(&mut self, at: usize, level: usize) -> Outcome<()> {
        if at > 0 {
            charge_text(self.run, &self.item_separator)?;
            self.out.extend_with_range(&self.item_separator, 0..self.item_separator.len());
        }
        self.new_line()?;
        self.spaces(level + 1)
    }

    /// What is after so many items.
    fn end_items(&mut self, count: usize, level: usize) -> Outcome<()> {
        if count == 0 {
            return Ok(());
        }
        self.new_line()?;
        self.spaces(level)
    }
}

/// Writes a string in quotes.
pub(crate) fn write_string(run: &mut Run<'_>, out: &mut Text, text: &Text) -> Outcome<()> {
    charge_text(run, text)?;
    let is_escaped = |byte: &&u8| **byte < 0x20 || matches!(**byte, b'"' | b'\\');
    run.charge_bytes(16 * text.as_bytes().iter().filter(is_escaped).count())?;
    out.extend(b"\"", Origin::TEMPLATE);
    out.extend_escaped(text);
    out.extend(b"\"", Origin::TEMPLATE);
    Ok(())
}

/// Replaces what is not ASCII inside of quotes by escapes.
fn escape_unicode(run: &mut Run<'_>, text: &Text) -> Outcome<Text> {
    charge_text(run, text)?;
    let bytes = text.as_bytes();
    let mut out = Text::default();
    let mut is_inside = false;
    let mut at = 0;
    let mut copied = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => is_inside = !is_inside,
            b'\\' if is_inside => at += 1,
            0x80.. if is_inside => {
                let character = character(&bytes[at..]);
                let (code, len) = character.unwrap_or((0xFFFD, 1));
                run.charge_bytes(20)?;
                out.extend_with_range(text, copied..at);
                let escape = match code.checked_sub(0x1_0000) {
                    None => format!("\\u{code:04x}"),
                    Some(rest) => format!("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10 & 0x3FF), 0xDC00 + (rest & 0x3FF)),
                };
                out.extend(escape.as_bytes(), text.origin_at(at));
                at += len;
                copied = at;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    out.extend_with_range(text, copied..text.len());
    Ok(out)
}

/// The character that bytes start with, and its length. Overlong ones, surrogates and numbers beyond Unicode pass.
fn character(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    let len = match first {
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0..0xF8 => 4,
        _ => return None,
    };
    let rest = bytes.get(1..len)?;
    if rest.iter().any(|byte| byte & 0xC0 != 0x80) {
        return None;
    }
    let bits = u32::from(first) & (0x7F >> len);
    Some((rest.iter().fold(bits, |code, byte| code << 6 | u32::from(byte & 0x3F)), len))
}

#[cfg(test)]
mod tests {
    use super::super::functions::{render, render_marked};
    use super::*;

    #[test]
    fn bytes_keep_their_origins() {
        let cases = [
            ("{{ x|tojson }}", "a\"\n\u{1}", "\"<a\\\"\\n\\u0001>\""),
            ("{{ {x: [1, x]}|tojson }}", "k", "{\"<k>\": [1, \"<k>\"]}"),
            ("{{ ('a' ~ x)|tojson(ensure_ascii=true) }}", "ü😀", "\"a<\\u00fc\\ud83d\\ude00>\""),
            ("{{ [1, 2]|tojson(separators=(x, '')) }}", ";", "[1<;>2]"),
        ];
        for (template, x, expected) in cases {
            assert_eq!(render_marked(template, x), expected, "{template}");
        }
    }

    #[test]
    fn lines_are_indented() {
        let text = render("{{ {'a': [1, {}], 'b': []}|tojson(indent=1) }}", Value::None).unwrap();
        assert_eq!(text, "{\n \"a\": [\n  1,\n  {}\n ],\n \"b\": []\n}");
        assert_eq!(render("{{ [1, 2]|tojson(indent=0) }}", Value::None).unwrap(), "[\n1,\n2\n]");
    }

    #[test]
    fn what_is_not_utf_8_is_replaced_byte_by_byte() {
        let text = Value::string(Text::template(b"\xE2\x82a\xC0\x80\xF4\x90\x80\x80\xFF".as_slice()));
        let text = render("{{ x|tojson(true) }}", text).unwrap();
        assert_eq!(text, "\"\\ufffd\\ufffda\\u0000\\ud800\\udc00\\ufffd\"");
    }
}
