//! Reads JSON with `serde_json`, and takes what nlohmann's parser takes, which llama.cpp uses.
//!
//! 1. A whole number that fits neither `i64` nor `u64` becomes a floating-point one; an infinite one is an error.
//! 2. Of values with the same key, the last one wins, at the position of the first.
//! 3. A byte order mark is skipped. A zero byte ends the document: JSON never contains one.
//!
//! Source: `nlohmann::basic_json::parse` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. At most
//! 127 levels, as `serde_json` has it. 2. Other words in errors. 3. `-0` is a floating-point number.
//!
//! Time: O(bytes).

use serde_json::Value;

use super::{Json, Object};
use crate::error::Error;
use crate::text::{Origin, Text};

impl Json {
    /// Reads a document of a caller.
    ///
    /// # Errors
    ///
    /// The document is not JSON as nlohmann's parser takes it, or nested too deep.
    pub fn parse(document: &[u8]) -> Result<Self, Error> {
        let document = document.split(|&byte| byte == 0).next().unwrap_or_default();
        let document = document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(document);
        let value = serde_json::from_slice(document).map_err(|error| Error::request("", format!("not JSON: {error}")));
        value.map(Self::of_caller)
    }

    /// Reads JSON in a text. Strings and keys have the origin of the first caller's byte in it, if there is one.
    pub(crate) fn parse_text(text: &Text) -> Result<Self, Error> {
        let mut json = Self::parse(text.as_bytes())?;
        json.set_origin(text.main_origin());
        Ok(json)
    }

    /// The same value, whose strings and keys are the caller's.
    fn of_caller(value: Value) -> Self {
        let text = |string: String| Text::new(string, Origin::CALLER);
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(value), _) => Self::Int(value),
                (None, Some(value)) => Self::Unsigned(value),
                (None, None) => Self::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(string) => Self::String(text(string)),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::of_caller).collect()),
            Value::Object(entries) => {
                let entries = entries.into_iter().map(|(key, value)| (text(key), Self::of_caller(value)));
                Self::Object(Object { entries: entries.collect(), message: None })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Origin;

    #[test]
    fn numbers_become_the_first_type_that_holds_them() {
        let cases: [(&str, Json); 9] = [
            ("-0", Json::Float(-0.0)),
            ("9223372036854775807", Json::Int(i64::MAX)),
            ("9223372036854775808", Json::Unsigned(1 << 63)),
            ("18446744073709551616", Json::Float(18_446_744_073_709_551_616.0)),
            ("-9223372036854775809", Json::Float(-9_223_372_036_854_775_808.0)),
            ("-0.0", Json::Float(-0.0)),
            ("1E5", Json::Float(1e5)),
            ("2.50", Json::Float(2.5)),
            ("1e-999", Json::Float(0.0)),
        ];
        for (digits, value) in cases {
            assert_eq!(Json::parse(digits.as_bytes()), Ok(value), "{digits}");
        }
    }

    #[test]
    fn what_nlohmann_refuses_is_refused() {
        let cases: &[&[u8]] = &[
            b"",
            b" ",
            b"01",
            b"1.",
            b".5",
            b"+1",
            b"1e",
            b"1e999",
            b"-",
            b"nul",
            b"nullx",
            b"[1,]",
            b"[1 2]",
            b"{\"a\"}",
            b"{\"a\":1,}",
            b"{a:1}",
            b"\"\n\"",
            b"\"\\x\"",
            b"\"\\u12\"",
            b"\"\\ud800\"",
            b"\"\\udc00\"",
            b"\"\xff\"",
            b"\"\xed\xa0\x80\"",
            b"\"",
            b"[",
            b"{",
            b"]",
            b"1 1",
            b"// x\n1",
            b"NaN",
            b"\xEF\xBB1",
            b"\"\\ud800\\u0041\"",
        ];
        for case in cases {
            assert!(Json::parse(case).is_err(), "{:?}", String::from_utf8_lossy(case));
        }
        assert_eq!(Json::parse(b"\xEF\xBB\xBF [ ] "), Ok(Json::Array(Vec::new())));
        assert_eq!(Json::parse(b"5\0 and more"), Ok(Json::Int(5)));
        let nested = |levels| ["[".repeat(levels), "]".repeat(levels)].concat();
        assert!(Json::parse(nested(127).as_bytes()).is_ok());
        assert!(Json::parse(nested(128).as_bytes()).is_err());
    }

    #[test]
    fn the_last_of_equal_keys_wins_in_the_first_place() {
        let mut document = String::from(r#"{"a": 1, "b": 2, "#);
        document.extend((0..40).map(|number| format!(r#""{number}": 0, "#)));
        document.push_str(r#""39": 7, "a": 3}"#);
        let json = Json::parse(document.as_bytes()).unwrap();
        let entries: Vec<_> = json.as_object().unwrap().iter().map(|(key, value)| (key.as_bytes(), value)).collect();
        assert_eq!(entries.len(), 42);
        assert_eq!(entries[0], (&b"a"[..], &Json::Int(3)));
        assert_eq!(entries[41], (&b"39"[..], &Json::Int(7)));
    }

    #[test]
    fn json_in_a_text_is_the_callers() {
        let mut text = Text::template(r#"{"a": "x"#);
        text.extend(br#"y\n"}"#, Origin::caller(3));
        let json = Json::parse_text(&text).unwrap();
        let value = json.get("a").unwrap().as_text().unwrap();
        assert_eq!((value.as_bytes(), value.first_origin()), (&b"xy\n"[..], Origin::caller(3)));
    }
}
