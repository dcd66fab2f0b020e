//! Reads JSON with `serde_json`, and takes what nlohmann's parser takes, which llama.cpp uses.
//!
//! 1. A whole number that fits neither `i64` nor `u64` becomes a floating-point one; an infinite one is an error.
//! 2. Of values with the same key, the last one wins, at the position of the first.
//! 3. A byte order mark is skipped. A zero byte ends the document: JSON never contains one.
//!
//! Source: `nlohmann::basic_json::parse` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. At most
//! [`MOST_DEEP`] levels. 2. Other words in errors. 3. `-0` is a floating-point number.
//!
//! Time: O(bytes), and O(n log n) for an object of n keys.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{Json, MOST_DEEP, Object, too_deep};
use crate::error::Error;
use crate::strings::Strings;
use crate::text::Text;

impl Json {
    /// Reads a document of a caller. Each string and each key gets a number in `strings`; those inside the items of a
    /// top-level array `messages` belong to the message with the item's index.
    ///
    /// # Errors
    ///
    /// * The document is not JSON as nlohmann's parser takes it.
    /// * It is nested too deep.
    pub fn parse(document: &[u8], strings: &mut Strings) -> Result<Self, Error> {
        read(document, &mut |message, string| strings.add(message, string.as_bytes()))
    }

    /// Reads JSON in a text. Strings and keys have the origin of the first caller's byte in it, if there is one.
    pub(crate) fn parse_text(text: &Text) -> Result<Self, Error> {
        let origin = text.main_origin();
        read(text.as_bytes(), &mut |_, string| Text::new(string, origin))
    }
}

/// Makes the text of a string, which may belong to a message.
type MakeText<'a> = dyn FnMut(Option<usize>, &str) -> Text + 'a;

fn read(document: &[u8], make: &mut MakeText<'_>) -> Result<Json, Error> {
    let document = document.split(|&byte| byte == 0).next().unwrap_or_default();
    let mut deserializer =
        serde_json::Deserializer::from_slice(document.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(document));
    deserializer.disable_recursion_limit();
    let reader = Reader { make, depth: 0, message: None, is_messages: false };
    let json = reader.deserialize(&mut deserializer).and_then(|json| deserializer.end().map(|()| json));
    // Whatever is JSON is read, unless it is too deep.
    json.map_err(|error| if error.is_data() { too_deep() } else { Error::request("", format!("not JSON: {error}")) })
}

/// Reads one value.
struct Reader<'a, 'm> {
    make: &'a mut MakeText<'m>,
    depth: usize,
    message: Option<usize>,
    /// Whether it is the top-level `messages`.
    is_messages: bool,
}

impl<'m> Reader<'_, 'm> {
    /// Reads a value inside this one.
    fn inner(&mut self, message: Option<usize>, is_messages: bool) -> Reader<'_, 'm> {
        Reader { make: &mut *self.make, depth: self.depth + 1, message, is_messages }
    }

    fn check_depth<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth == MOST_DEEP { Err(E::custom("nested too deep")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
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
        Ok(Json::String((self.make)(self.message, string)))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut access: A) -> Result<Json, A::Error> {
        self.check_depth()?;
        let mut items = Vec::new();
        loop {
            let message = if self.is_messages { Some(items.len()) } else { self.message };
            match access.next_element_seed(self.inner(message, false))? {
                Some(item) => items.push(item),
                None => return Ok(Json::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut access: A) -> Result<Json, A::Error> {
        self.check_depth()?;
        let mut object = Object::default();
        let mut places = BTreeMap::<String, usize>::new();
        while let Some(key) = access.next_key::<String>()? {
            let text = (self.make)(self.message, &key);
            let is_messages = self.depth == 0 && key == "messages";
            let value = access.next_value_seed(self.inner(self.message, is_messages))?;
            match *places.entry(key).or_insert(object.len()) {
                new if new == object.len() => object.push(text, value),
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

    fn parsed(document: &[u8]) -> Result<Json, Error> {
        Json::parse(document, &mut Strings::new())
    }

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
            assert_eq!(parsed(digits.as_bytes()), Ok(value), "{digits}");
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
            assert!(parsed(case).is_err(), "{:?}", String::from_utf8_lossy(case));
        }
        assert_eq!(parsed(b"\xEF\xBB\xBF [ ] "), Ok(Json::Array(Vec::new())));
        assert_eq!(parsed(b"5\0 and more"), Ok(Json::Int(5)));
        let nested = |levels| ["[".repeat(levels), "]".repeat(levels)].concat();
        assert!(parsed(nested(MOST_DEEP).as_bytes()).is_ok());
        assert!(matches!(parsed(nested(100_000).as_bytes()), Err(Error::Limit { .. })));
    }

    #[test]
    fn the_last_of_equal_keys_wins_in_the_first_place() {
        let mut document = String::from(r#"{"a": 1, "b": 2, "#);
        document.extend((0..40).map(|number| format!(r#""{number}": 0, "#)));
        document.push_str(r#""39": 7, "a": 3}"#);
        let json = parsed(document.as_bytes()).unwrap();
        let entries: Vec<_> = json.as_object().unwrap().iter().map(|(key, value)| (key.as_bytes(), value)).collect();
        assert_eq!(entries.len(), 42);
        assert_eq!(entries[0], (&b"a"[..], &Json::Int(3)));
        assert_eq!(entries[41], (&b"39"[..], &Json::Int(7)));
    }

    #[test]
    fn strings_know_their_message() {
        let mut strings = Strings::new();
        let document =
            br#"{"x": ["y"], "messages": [{"a": "b"}, {"c": ["d"]}], "messages2": [{"e": "\ud83d\ude00\/\u0000"}]}"#;
        let json = Json::parse(document, &mut strings).unwrap();
        let number = |json: &Json| json.as_text().unwrap().first_origin().string().unwrap();
        let messages = json.get("messages").unwrap().as_array().unwrap();
        assert_eq!(strings.message(number(messages[0].get("a").unwrap())), Some(0));
        assert_eq!(strings.message(number(&messages[1].get("c").unwrap().as_array().unwrap()[0])), Some(1));
        let other = json.get("messages2").unwrap().as_array().unwrap()[0].get("e").unwrap();
        assert_eq!(strings.message(number(other)), None);
        assert_eq!(other.as_text().unwrap().as_bytes(), "😀/\0".as_bytes());
        assert_eq!(strings.len(), 10);
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
