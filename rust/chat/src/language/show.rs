//! Values as text: what `~`, `string` and writing make of them, and JSON, which `tojson` makes of them.
//!
//! Source: the `as_string` and `as_repr` of `common/jinja/value.h`, and `value_to_string_repr`, `tojson`, `value_to_json`
//! and `json_ensure_ascii_preserving_format` in `value.cpp` of llama.cpp. Deviations: 1. Strings, keys and numbers keep
//! their origins, escapes included. 2. Values nest at most [`MOST_DEEP`](super::value::MOST_DEEP) levels. 3. A method of
//! an empty string is shown with one empty part. In llama.cpp, what an undefined value gave (`x|lower`) has no parts.
//!
//! Time: O(length of the text).

use std::borrow::Cow;

use super::failure::{Outcome, failed};
use super::numbers;
use super::value::{Args, Run, Value, check_depth, mark};
use crate::text::{Origin, Text};

impl Value {
    /// As a string. Undefined values, functions and keyword arguments cannot be one.
    pub(crate) fn as_text(&self, run: &mut Run<'_>) -> Outcome<Cow<'_, Text>> {
        match self {
            Self::String(string) => Ok(Cow::Borrowed(&string.text)),
            Self::Undefined(_) | Self::Function(_) | Self::KwArg(_) => {
                failed(format!("{} is not a string value", self.type_name()))
            }
            _ => Layout::new(false, -1).written(run, self).map(Cow::Owned),
        }
    }
}

/// The value as a string, all of it read.
pub(crate) fn string(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    match args.at(0)? {
        Value::String(string) => Ok(Value::string(string.text.clone())),
        value => Layout { is_read: true, ..Layout::new(false, -1) }.written(run, value).map(Value::string),
    }
}

/// `tojson(value, ensure_ascii, indent, separators, sort_keys)`
pub(crate) fn tojson(run: &mut Run<'_>, args: &Args) -> Outcome<Value> {
    args.check_len(1, 5)?;
    let value = args.at(0)?;
    let indent = match args.named("indent", 2) {
        Value::Int(indent, _) => i64::from(indent as i32),
        _ => -1,
    };
    if args.named("sort_keys", 4).as_bool()? {
        return failed("llama.cpp's tojson cannot sort keys");
    }
    let mut layout = Layout::new(true, indent);
    layout.is_ascii = args.named("ensure_ascii", 1).as_bool()?;
    if let Value::Array(separators) = args.named("separators", 3) {
        let given = separators.items.borrow();
        for (separator, given) in [&mut layout.item_separator, &mut layout.key_separator].into_iter().zip(&*given) {
            *separator = given.as_text(run)?.into_owned();
        }
    }
    layout.written(run, value).map(Value::string)
}

/// What is written between values, and how.
struct Layout {
    /// As JSON, and not as Python shows values.
    is_json: bool,
    /// Whether the values in it count as read.
    is_read: bool,
    /// With escapes for what is not ASCII in strings.
    is_ascii: bool,
    /// How many spaces per level. On one line if negative.
    indent: i64,
    item_separator: Text,
    key_separator: Text,
}

impl Layout {
    fn new(is_json: bool, indent: i64) -> Self {
        let item_separator = if indent < 0 { ", " } else { "," }.into();
        Self { is_json, is_read: is_json, is_ascii: false, indent, item_separator, key_separator: ": ".into() }
    }

    fn written(&self, run: &mut Run<'_>, value: &Value) -> Outcome<Text> {
        let mut writer = Writer { run, out: Text::default(), layout: self };
        writer.value(value, 0)?;
        Ok(writer.out)
    }
}

struct Writer<'w, 'p> {
    run: &'w mut Run<'p>,
    out: Text,
    layout: &'w Layout,
}

impl Writer<'_, '_> {
    fn write(&mut self, text: &[u8], origin: Origin) -> Outcome<()> {
        self.run.budget.bytes(text.len() + 8)?;
        self.out.extend(text, origin);
        Ok(())
    }

    fn write_str(&mut self, text: &str) -> Outcome<()> {
        self.write(text.as_bytes(), Origin::TEMPLATE)
    }

    fn write_text(&mut self, text: &Text) -> Outcome<()> {
        self.run.budget.bytes(text.num_bytes())?;
        self.out.extend_with(text);
        Ok(())
    }

    /// A text with the template's around it.
    fn between(&mut self, before: &str, text: &Text, after: &str) -> Outcome<()> {
        self.write_str(before)?;
        self.write_text(text)?;
        self.write_str(after)
    }

    /// A value. As Python shows it, a string inside another value has quotes, and one that is not is written with its
    /// parts.
    fn value(&mut self, value: &Value, depth: usize) -> Outcome<()> {
        check_depth(depth)?;
        self.run.budget.steps(1)?;
        let layout = self.layout;
        if layout.is_read {
            value.note(mark::USED);
        }
        match value {
            Value::Bool(value) => {
                let [no, yes] = if layout.is_json { ["false", "true"] } else { ["False", "True"] };
                self.write_str(if *value { yes } else { no })
            }
            Value::Int(value, origin) => self.write(value.to_string().as_bytes(), *origin),
            Value::Float(value, origin) => self.write(numbers::shown(*value, layout.is_json).as_bytes(), *origin),
            Value::Array(array) => {
                let items = array.items.borrow();
                let brackets = match (array.is_tuple && !layout.is_json, items.len()) {
                    (false, _) => ["[", "]"],
                    (true, 1) => ["(", ",)"],
                    (true, _) => ["(", ")"],
                };
                self.items(brackets, &items, depth, |writer, item| writer.value(item, depth + 1))
            }
            Value::Object(object) => {
                let entries = object.entries.borrow();
                self.items(["{", "}"], &entries, depth, |writer, (key, value)| {
                    if layout.is_json && !matches!(key, Value::String(_) | Value::KwArg(_)) {
                        let key = key.as_text(writer.run)?;
                        writer.quoted(&key)?;
                    } else {
                        writer.value(key, depth + 1)?;
                    }
                    writer.write_text(&layout.key_separator)?;
                    writer.value(value, depth + 1)
                })
            }
            Value::String(string) if layout.is_json || depth > 0 && string.text.as_bytes().contains(&b'\'') => {
                self.quoted(&string.text)
            }
            _ if layout.is_json => self.write_str("null"),
            Value::String(string) if depth > 0 => self.between("'", &string.text, "'"),
            Value::String(string) => self.parts(&string.text),
            Value::Undefined(Some(hint)) if !hint.text.is_empty() => {
                self.between("Undefined (hint: '", &hint.text, "')")
            }
            Value::Function(function) => {
                self.between("Function<", &function.name.text, ">(")?;
                match &function.this {
                    Some(Value::String(this)) => self.parts(&this.text)?,
                    this => this.iter().try_for_each(|this| self.value(this, depth + 1))?,
                }
                self.write_str(")")
            }
            Value::Undefined(_) | Value::None | Value::KwArg(_) => self.write_str(&value.type_name()),
        }
    }

    /// Items in brackets.
    fn items<T>(
        &mut self,
        [open, close]: [&str; 2],
        items: &[T],
        depth: usize,
        write: impl Fn(&mut Self, &T) -> Outcome<()>,
    ) -> Outcome<()> {
        self.write_str(open)?;
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.write_text(&self.layout.item_separator)?;
            }
            self.new_line(depth + 1)?;
            write(self, item)?;
        }
        if !items.is_empty() {
            self.new_line(depth)?;
        }
        self.write_str(close)
    }

    fn new_line(&mut self, depth: usize) -> Outcome<()> {
        let Ok(indent) = usize::try_from(self.layout.indent) else { return Ok(()) };
        let count = indent.saturating_mul(depth);
        self.run.budget.bytes(count.saturating_mul(2))?;
        self.write_str(&("\n".to_owned() + &" ".repeat(count)))
    }

    /// A string in quotes.
    fn quoted(&mut self, text: &Text) -> Outcome<()> {
        let is_ascii = self.layout.is_ascii;
        let is_escaped = |byte: &&u8| matches!(**byte, 0..0x20 | b'"' | b'\\') || is_ascii && !byte.is_ascii();
        let num_escaped = text.as_bytes().iter().filter(is_escaped).count();
        self.run.budget.bytes(text.num_bytes() + 16 * num_escaped)?;
        self.out.extend_quoted(text, Origin::TEMPLATE, is_ascii);
        Ok(())
    }

    /// A string with its parts and whose they are.
    fn parts(&mut self, text: &Text) -> Outcome<()> {
        self.run.budget.bytes(text.num_bytes())?;
        for part in text.parts() {
            let part = text.slice(part);
            let is_caller = part.first_origin().is_caller() && part.runs().all(|(_, origin)| origin.is_caller());
            self.write_str(if is_caller { "INPUT: " } else { "TMPL:  " })?;
            self.out.extend_with(&part);
            self.write_str("\n")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{render, render_marked};
    use super::*;

    #[test]
    fn json_keeps_origins() {
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
        let text = Value::string(Text::template(b"\xE2\x82a\xC0\x80\xFF".as_slice()));
        let text = render("{{ x|tojson(true) }}", text).unwrap();
        assert_eq!(text, "\"\\ufffd\\ufffda\\ufffd\\ufffd\\ufffd\"");
    }

    #[test]
    fn bytes_keep_their_origins() {
        let cases = [
            ("{{ [x, 1.5, none, true, (2, 3), (2, 3)[:1]]|string }}", "a", "['<a>', 1.5, None, True, (2, 3), (2,)]"),
            ("{{ [x.upper, ''.upper]|string }}", "", "[Function<upper>(INPUT: \n), Function<upper>(TMPL:  \n)]"),
            ("{{ {x: x}|string }}", "it's", "{\"<it's>\": \"<it's>\"}"),
            ("{{ [y, range, (x ~ 'b').upper]|string }}", "a", "[UNDEFINED, Function<range>(), Function<upper>(PARTS)]"),
        ];
        for (template, x, expected) in cases {
            let expected = expected.replace("UNDEFINED", "Undefined (hint: 'y')");
            let expected = expected.replace("PARTS", "INPUT: <a>\nTMPL:  b\n");
            assert_eq!(render_marked(template, x), expected, "{template}");
        }
    }
}
