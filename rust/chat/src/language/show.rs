//! Values as text: what `~`, `string` and writing make of them.
//!
//! Source: the `as_string` and `as_repr` of `common/jinja/value.h` and `value_to_string_repr` in `value.cpp` of
//! llama.cpp. Deviations: 1. Strings inside arrays and objects keep their origins. 2. Values nest at most
//! [`MOST_DEEP`](super::value::MOST_DEEP) levels.
//!
//! Time: O(length of the text).

use super::failure::{Outcome, failed};
use super::value::Run;
use super::value::charge_text;
use super::value::{Function, Value, check_depth};
use super::{numbers, to_json};
use crate::text::{Origin, Text};

impl Value {
    /// As a string. Undefined values, functions and keyword arguments cannot be one.
    pub(crate) fn as_text(&self, run: &mut Run<'_>) -> Outcome<Text> {
        match self {
            Self::String(string) => {
                charge_text(run, &string.text)?;
                return Ok(string.text.clone());
            }
            Self::Undefined(_) | Self::Function(_) | Self::KwArg(_) => {
                return failed(format!("{} is not a string value", self.type_name()));
            }
            _ => {}
        }
        let mut text = Text::default();
        Writer { run, out: &mut text }.value(self, 0)?;
        Ok(text)
    }
}

struct Writer<'w, 'p> {
    run: &'w mut Run<'p>,
    out: &'w mut Text,
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

    fn write_text(&mut self, text: &Text) -> Outcome<()> {
        charge_text(self.run, text)?;
        self.out.extend_with_range(text, 0..text.len());
        Ok(())
    }

    /// A value that is not inside another. A string is written with its parts.
    fn value(&mut self, value: &Value, depth: usize) -> Outcome<()> {
        check_depth(depth)?;
        self.run.charge_steps(1)?;
        match value {
            Value::None => self.write_str("None"),
            Value::Bool(value) => self.write_str(if *value { "True" } else { "False" }),
            Value::Int(value, origin) => self.write(value.to_string().as_bytes(), *origin),
            Value::Float(float) => self.write(numbers::fixed(float.value).as_bytes(), float.origin),
            Value::String(string) => {
                let text = &string.text;
                if text.is_empty() {
                    return self.write_str("TMPL:  \n");
                }
                charge_text(self.run, text)?;
                for part in text.parts() {
                    let is_caller = text.slice(part.clone()).runs().all(|run| run.1.is_caller());
                    self.write_str(if is_caller { "INPUT: " } else { "TMPL:  " })?;
                    self.out.extend_with_range(text, part);
                    self.write_str("\n")?;
                }
                Ok(())
            }
            Value::Array(array) => {
                let items = array.items.borrow();
                self.write_str(if array.is_tuple { "(" } else { "[" })?;
                for (at, item) in items.iter().enumerate() {
                    self.item(item, if at > 0 { ", " } else { "" }, depth)?;
                }
                self.write_str(match (array.is_tuple, items.len()) {
                    (true, 1) => ",)",
                    (true, _) => ")",
                    (false, _) => "]",
                })
            }
            Value::Object(object) => {
                self.write_str("{")?;
                for (at, (key, value)) in object.entries.borrow().iter().enumerate() {
                    self.item(key, if at > 0 { ", " } else { "" }, depth)?;
                    self.item(value, ": ", depth)?;
                }
                self.write_str("}")
            }
            Value::Undefined(None) => self.write_str("Undefined"),
            Value::Undefined(Some(hint)) if hint.text.is_empty() => self.write_str("Undefined"),
            Value::Undefined(Some(hint)) => {
                self.write_str("Undefined (hint: '")?;
                self.write_text(&hint.text)?;
                self.write_str("')")
            }
            Value::Function(function) => self.function(function, depth),
            Value::KwArg(_) => self.write_str("KwArg"),
        }
    }

    /// A value inside another.
    fn item(&mut self, value: &Value, before: &str, depth: usize) -> Outcome<()> {
        self.write_str(before)?;
        match value {
            Value::String(string) if string.text.as_bytes().contains(&b'\'') => {
                to_json::write_string(self.run, self.out, &string.text)
            }
            Value::String(string) => {
                self.write_str("'")?;
                self.write_text(&string.text)?;
                self.write_str("'")
            }
            _ => self.value(value, depth + 1),
        }
    }

    fn function(&mut self, function: &Function, depth: usize) -> Outcome<()> {
        self.write_str("Function<")?;
        self.write_text(&function.name.text)?;
        self.write_str(">(")?;
        if let Some(this) = &function.this {
            self.value(this, depth + 1)?;
        }
        self.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use super::super::functions::render_marked;

    #[test]
    fn bytes_keep_their_origins() {
        let cases = [
            ("{{ [x, 1.5, none, true, (2, 3), (2, 3)[:1]]|string }}", "a", "['<a>', 1.5, None, True, (2, 3), (2,)]"),
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
