//! Reads JSON with `serde_json`, and takes what nlohmann's parser takes, which llama.cpp uses.
//!
//! 1. A whole number that fits neither `i64` nor `u64` becomes a floating-point one; an infinite one is an error.
//! 2. Of values with the same key, the last one wins, at the position of the first.
//! 3. A byte order mark is skipped. A zero byte ends the document: JSON never contains one.
//!
//! Source: `nlohmann::basic_json::parse` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. At most
//! 127 levels, as `serde_json` has it. 2. Other words in errors. 3. `-0` is a floating-point number.
//!
//! Time: O(bytes), and O(n log n) for an object of n keys.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

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
        serde_json::from_slice(document).map_err(|error| Error::request("", format!("not JSON: {error}")))
    }

    /// Reads JSON in a text. Strings and keys have the origin of the first caller's byte in it, if there is one.
    pub(crate) fn parse_text(text: &Text) -> Result<Self, Error> {
        let mut json = Self::parse(text.as_bytes())?;
        json.set_origin(text.main_origin());
        Ok(json)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Reads one value. Its strings and keys are the caller's.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Unsigned(value), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, string: &str) -> Result<Json, E> {
        Ok(Json::String(Text::new(string, Origin::CALLER)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<Json, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(access)).map(Json::Array)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Json, A::Error> {
        let mut object = Object::default();
        let mut places = BTreeMap::<String, usize>::new();
        while let Some((key, value)) = access.next_entry::<String, _>()? {
            let text = Text::new(key.as_bytes(), Origin::CALLER);
            match *places.entry(key).or_insert(object.entries.len()) {
                new if new == object.entries.len() => object.entries.push((text, value)),
                known => object.entries[known].1 = value,
            }
        }
        Ok(Json::Object(object))
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
        let entries: Vec<_> =
            json.as_object().unwrap().entries.iter().map(|(key, value)| (key.as_bytes(), value)).collect();
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
