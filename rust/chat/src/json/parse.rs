//! Reads JSON as nlohmann's parser does, which llama.cpp uses: strict, with any byte order mark skipped, and with strings
//! that are valid UTF-8.
//!
//! 1. A whole number that fits neither `i64` nor `u64` becomes a floating-point one; one that is infinite is an error.
//! 2. Of values with the same key, the last one wins, in the place of the first.
//! 3. A zero byte between tokens ends the document.
//!
//! Open arrays and objects are kept in a vector, so there is no recursion. Time: O(bytes), plus O(keys²) for objects with
//! fewer than [`INDEXED`] keys.
//!
//! Source: `nlohmann::basic_json::parse` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. At most
//! [`MOST_DEEP`] levels. 2. Other words in errors.

use std::collections::HashMap;
use std::ops::Range;

use super::{Json, MOST_DEEP, Object};
use crate::error::Error;
use crate::strings::Strings;
use crate::text::{Origin, Text};

/// Keys of an object with this many entries are found with a hash table.
const INDEXED: usize = 16;

impl Json {
    /// Reads a document of a caller. Each string and each key gets a number in `strings`; those inside the items of a
    /// top-level array `messages` belong to the message with the item's index.
    ///
    /// # Errors
    ///
    /// * The document is not JSON as nlohmann's parser takes it.
    /// * It is nested too deep.
    pub fn parse(document: &[u8], strings: &mut Strings) -> Result<Self, Error> {
        Parser::new(document, Source::Document(strings)).document()
    }

    /// Reads JSON in a text. Strings and keys keep the origins of the bytes that they come from.
    pub(crate) fn parse_text(text: &Text) -> Result<Self, Error> {
        Parser::new(text.as_bytes(), Source::Text(text)).document()
    }
}

/// Who wrote the bytes.
enum Source<'a> {
    Document(&'a mut Strings),
    Text(&'a Text),
}

/// An array or an object that is not complete.
enum Open {
    Array(Vec<Json>),
    Object(Members),
}

/// An object that is not complete.
struct Members {
    object: Object,
    /// The key whose value comes next.
    key: Text,
    /// The places of the keys, once there are many.
    places: HashMap<Vec<u8>, usize>,
}

impl Members {
    fn set(&mut self, value: Json) {
        let key = std::mem::take(&mut self.key);
        let entries = &mut self.object.entries;
        if entries.len() == INDEXED {
            self.places = entries.iter().enumerate().map(|(at, entry)| (entry.0.as_bytes().to_vec(), at)).collect();
        }
        let known = match entries.len() {
            0..INDEXED => entries.iter().position(|entry| entry.0 == key),
            _ => self.places.get(key.as_bytes()).copied(),
        };
        match known {
            Some(at) => entries[at].1 = value,
            None => {
                if entries.len() >= INDEXED {
                    self.places.insert(key.as_bytes().to_vec(), entries.len());
                }
                entries.push((key, value));
            }
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
    source: Source<'a>,
    open: Vec<Open>,
}

type Parsed<T> = Result<T, Error>;

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8], source: Source<'a>) -> Self {
        Self { bytes, at: 0, source, open: Vec::new() }
    }

    fn document(mut self) -> Parsed<Json> {
        if self.bytes.starts_with(b"\xEF\xBB\xBF") {
            self.at = 3;
        }
        let value = self.value()?;
        match self.next() {
            None => Ok(value),
            Some(_) => self.unexpected("the end"),
        }
    }

    /// The first byte of the next token.
    fn next(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied().filter(|&byte| byte != 0)
    }

    /// A value with everything in it.
    fn value(&mut self) -> Parsed<Json> {
        loop {
            let mut value = match self.next() {
                Some(b'{') => match self.enter(b'}')? {
                    true => Json::Object(Object::default()),
                    false => {
                        let key = self.key()?;
                        self.open.push(Open::Object(Members {
                            object: Object::default(),
                            key,
                            places: HashMap::new(),
                        }));
                        continue;
                    }
                },
                Some(b'[') => match self.enter(b']')? {
                    true => Json::Array(Vec::new()),
                    false => {
                        self.open.push(Open::Array(Vec::new()));
                        continue;
                    }
                },
                Some(b'"') => Json::String(self.string()?),
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b'n') => self.word("null", Json::Null)?,
                Some(b't') => self.word("true", Json::Bool(true))?,
                Some(b'f') => self.word("false", Json::Bool(false))?,
                _ => return self.unexpected("a value"),
            };
            // Closes what ends with this value.
            loop {
                let (end, expected) = match self.open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array(items)) => {
                        items.push(value);
                        (b']', "',' or ']'")
                    }
                    Some(Open::Object(members)) => {
                        members.set(value);
                        (b'}', "',' or '}'")
                    }
                };
                match self.next() {
                    Some(b',') => break,
                    Some(byte) if byte == end => self.at += 1,
                    _ => return self.unexpected(expected),
                }
                value = match self.open.pop() {
                    Some(Open::Array(items)) => Json::Array(items),
                    Some(Open::Object(members)) => Json::Object(members.object),
                    None => Json::Null,
                };
            }
            self.at += 1;
            if matches!(self.open.last(), Some(Open::Object(_))) {
                let next = self.key()?;
                if let Some(Open::Object(members)) = self.open.last_mut() {
                    members.key = next;
                }
            }
        }
    }

    /// Reads an opening bracket. Whether the closing one follows it.
    fn enter(&mut self, end: u8) -> Parsed<bool> {
        self.at += 1;
        if self.next() == Some(end) {
            self.at += 1;
            return Ok(true);
        }
        if self.open.len() == MOST_DEEP {
            return Err(Error::Limit { problem: format!("JSON is nested more than {MOST_DEEP} levels deep") });
        }
        Ok(false)
    }

    /// A key and its colon.
    fn key(&mut self) -> Parsed<Text> {
        if self.next() != Some(b'"') {
            return self.unexpected("a key");
        }
        let key = self.string()?;
        if self.next() != Some(b':') {
            return self.unexpected("':'");
        }
        self.at += 1;
        Ok(key)
    }

    fn word(&mut self, word: &str, value: Json) -> Parsed<Json> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return self.unexpected("a value");
        }
        self.at += word.len();
        Ok(value)
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Parsed<Json> {
        let start = self.at;
        self.at += usize::from(self.bytes[self.at] == b'-');
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            _ if self.digits() => {}
            _ => return self.unexpected("a digit"),
        }
        let mut is_whole = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            (self.at, is_whole) = (self.at + 1, false);
            if !self.digits() {
                return self.unexpected("a digit");
            }
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            (self.at, is_whole) = (self.at + 1, false);
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            if !self.digits() {
                return self.unexpected("a digit");
            }
        }

        let digits = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if is_whole {
            if let Ok(value) = digits.parse() {
                return Ok(Json::Int(value));
            }
            if let Ok(value) = digits.parse() {
                return Ok(Json::Unsigned(value));
            }
        }
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Json::Float(value)),
            _ => self.refuse(start, "the number is too big"),
        }
    }

    fn string(&mut self) -> Parsed<Text> {
        let mut text = Text::new("", self.origin(self.at));
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let plain =
                rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len());
            if let Err(error) = std::str::from_utf8(&rest[..plain]) {
                return self.refuse(self.at + error.valid_up_to(), "a string is not UTF-8");
            }
            self.copy(&mut text, self.at..self.at + plain);
            self.at += plain;
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(self.numbered(text));
                }
                Some(b'\\') => self.escape(&mut text)?,
                Some(_) => return self.refuse(self.at, "a string has a control character"),
                None => return self.refuse(self.at, "a string does not end"),
            }
        }
    }

    fn escape(&mut self, text: &mut Text) -> Parsed<()> {
        let start = self.at;
        self.at += 2;
        let char = match self.bytes.get(start + 1) {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(&byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => match self.unit()? {
                high @ 0xD800..0xDC00 if self.bytes[self.at..].starts_with(b"\\u") => {
                    self.at += 2;
                    let low = self.unit()?;
                    let pair =
                        (0xDC00..0xE000).contains(&low).then(|| 0x10000 + ((high - 0xD800) << 10) + low - 0xDC00);
                    match pair.and_then(char::from_u32) {
                        Some(char) => char,
                        None => return self.refuse(start, "a string has a lone surrogate"),
                    }
                }
                unit => match char::from_u32(unit) {
                    Some(char) => char,
                    None => return self.refuse(start, "a string has a lone surrogate"),
                },
            },
            _ => return self.refuse(start, "a string has an unknown escape"),
        };
        text.extend(char.encode_utf8(&mut [0; 4]).as_bytes(), self.origin(start));
        Ok(())
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Parsed<u32> {
        let digits = self.bytes.get(self.at..self.at + 4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.refuse(self.at, "four hexadecimal digits must follow '\\u'"),
        }
    }

    /// The origin of a byte. A string of a document gets its number when it is complete.
    fn origin(&self, at: usize) -> Origin {
        match &self.source {
            Source::Document(_) => Origin::TEMPLATE,
            Source::Text(text) => text.origin_at(at),
        }
    }

    fn copy(&self, text: &mut Text, range: Range<usize>) {
        match &self.source {
            Source::Document(_) => text.extend(&self.bytes[range], Origin::TEMPLATE),
            Source::Text(source) => text.extend_with_range(source, range),
        }
    }

    fn numbered(&mut self, text: Text) -> Text {
        let message = match self.open.as_slice() {
            [Open::Object(body), Open::Array(messages), ..] if body.key == "messages" => Some(messages.len()),
            _ => None,
        };
        match &mut self.source {
            Source::Document(strings) => strings.add(message, text.as_bytes()),
            Source::Text(_) => text,
        }
    }

    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                let found = char::from(byte);
                self.refuse(self.at, &format!("expected {expected}, found {found:?}"))
            }
            None => self.refuse(self.at, &format!("expected {expected}, found the end")),
        }
    }

    fn refuse<T>(&self, at: usize, problem: &str) -> Parsed<T> {
        let position = crate::error::Position::of(self.bytes, at);
        let problem = format!("not JSON: line {}, column {}: {problem}", position.line, position.column);
        Err(Error::request("", problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(document: &[u8]) -> Result<Json, Error> {
        Json::parse(document, &mut Strings::new())
    }

    #[test]
    fn numbers_become_the_first_type_that_holds_them() {
        let cases: [(&str, Json); 9] = [
            ("-0", Json::Int(0)),
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
    fn json_in_a_text_keeps_origins() {
        let mut text = Text::template(r#"{"a": "x"#);
        text.extend(br#"y\n"}"#, Origin::caller(3));
        let json = Json::parse_text(&text).unwrap();
        let value = json.get("a").unwrap().as_text().unwrap();
        assert_eq!(value.as_bytes(), b"xy\n");
        let origins: Vec<_> = value.runs().map(|(range, origin)| (range, origin.string())).collect();
        assert_eq!(origins, [(0..1, None), (1..3, Some(3))]);
    }
}
