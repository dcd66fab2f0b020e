//! Writes JSON as nlohmann's `dump` does, which llama.cpp uses: without spaces, with everything but control characters as
//! it is.
//!
//! What is written between strings has the origin of the string or key before it: it counts as the caller's.
//!
//! Source: `nlohmann::basic_json::dump` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. At most
//! [`MOST_DEEP`] levels.

use super::{Json, MOST_DEEP, float};
use crate::error::Error;
use crate::text::{Origin, Text};

impl Json {
    /// The value as JSON. What comes before the first string has the origin `near`.
    ///
    /// # Errors
    ///
    /// A string is not UTF-8, or the value is nested too deep.
    pub(crate) fn dump(&self, near: Origin) -> Result<Text, Error> {
        let mut writer = Writer { text: Text::new("", near), near };
        writer.value(self, 0)?;
        Ok(writer.text)
    }

    /// What is read back after it was written: numbers that are not finite become `null`.
    ///
    /// # Errors
    ///
    /// As for [`Self::dump`].
    pub(crate) fn round_trip(&self) -> Result<Self, Error> {
        self.round_trip_at(0)
    }

    fn round_trip_at(&self, depth: usize) -> Result<Self, Error> {
        check_depth(depth)?;
        Ok(match self {
            Self::Float(value) if !value.is_finite() => Self::Null,
            Self::String(text) => {
                check_utf8(text.as_bytes())?;
                self.clone()
            }
            Self::Array(items) => {
                Self::Array(items.iter().map(|item| item.round_trip_at(depth + 1)).collect::<Result<_, _>>()?)
            }
            Self::Object(object) => {
                let mut copy = super::Object { entries: Vec::with_capacity(object.len()), message: object.message };
                for (key, value) in object.iter() {
                    check_utf8(key.as_bytes())?;
                    copy.push(key.clone(), value.round_trip_at(depth + 1)?);
                }
                Self::Object(copy)
            }
            _ => self.clone(),
        })
    }
}

fn check_depth(depth: usize) -> Result<(), Error> {
    if depth <= MOST_DEEP {
        return Ok(());
    }
    Err(Error::Limit { problem: format!("JSON is nested more than {MOST_DEEP} levels deep") })
}

fn check_utf8(bytes: &[u8]) -> Result<(), Error> {
    match std::str::from_utf8(bytes) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::request("", format!("a string is not UTF-8 from byte {} on", error.valid_up_to()))),
    }
}

struct Writer {
    text: Text,
    near: Origin,
}

impl Writer {
    fn write(&mut self, text: &str) {
        self.text.extend(text.as_bytes(), self.near);
    }

    fn value(&mut self, value: &Json, depth: usize) -> Result<(), Error> {
        check_depth(depth)?;
        match value {
            Json::Null => self.write("null"),
            Json::Bool(value) => self.write(if *value { "true" } else { "false" }),
            Json::Int(value) => self.write(&value.to_string()),
            Json::Unsigned(value) => self.write(&value.to_string()),
            Json::Float(value) => self.write(&float::written(*value)),
            Json::String(text) => self.string(text)?,
            Json::Array(items) => {
                self.write("[");
                for (at, item) in items.iter().enumerate() {
                    self.write(if at > 0 { "," } else { "" });
                    self.value(item, depth + 1)?;
                }
                self.write("]");
            }
            Json::Object(object) => {
                self.write("{");
                for (at, (key, value)) in object.iter().enumerate() {
                    self.write(if at > 0 { "," } else { "" });
                    self.string(key)?;
                    self.write(":");
                    self.value(value, depth + 1)?;
                }
                self.write("}");
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &Text) -> Result<(), Error> {
        let bytes = text.as_bytes();
        check_utf8(bytes)?;
        if !bytes.is_empty() {
            self.near = text.first_origin();
        }
        self.write("\"");
        let mut written = 0;
        let escaped = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        for at in (0..bytes.len()).filter(|&at| escaped(bytes[at])) {
            self.text.extend_with_range(text, written..at);
            let escape = match bytes[at] {
                b'"' => "\\\"".to_owned(),
                b'\\' => "\\\\".to_owned(),
                0x08 => "\\b".to_owned(),
                0x0C => "\\f".to_owned(),
                b'\n' => "\\n".to_owned(),
                b'\r' => "\\r".to_owned(),
                b'\t' => "\\t".to_owned(),
                byte => format!("\\u{byte:04x}"),
            };
            self.text.extend(escape.as_bytes(), text.origin_at(at));
            written = at + 1;
        }
        self.text.extend_with_range(text, written..bytes.len());
        if !bytes.is_empty() {
            self.near = text.last_origin();
        }
        self.write("\"");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strings::Strings;

    #[test]
    fn strings_are_escaped_and_keep_their_origins() {
        let mut strings = Strings::new();
        let document = br#"{"a": ["x\n\u0001\u007f\"\\/", -5, 18446744073709551615, true, {}], "b": null}"#;
        let json = Json::parse(document, &mut strings).unwrap();
        let text = json.dump(Origin::caller(9)).unwrap();
        let written = "{\"a\":[\"x\\n\\u0001\u{7f}\\\"\\\\/\",-5,18446744073709551615,true,{}],\"b\":null}";
        assert_eq!(std::str::from_utf8(text.as_bytes()), Ok(written));
        assert_eq!(text.first_origin().string(), Some(9));
        assert_eq!(text.last_origin().string(), Some(2));
        assert_eq!(Json::parse_text(&text), Ok(json.clone()));
        assert_eq!(json.round_trip(), Ok(json));
        assert!(Json::from(Text::template(b"\xff".to_vec())).dump(Origin::TEMPLATE).is_err());
    }
}
