//! Writes JSON as nlohmann's `dump` does, which llama.cpp uses: without spaces, with everything but control characters as
//! it is.
//!
//! Source: `nlohmann::basic_json::dump` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. Floating-point numbers
//! have as few digits as they need; llama.cpp's algorithm, Grisu2, gives one in a thousand more of them.
//!
//! Time: O(bytes) for each level.

use super::Json;
use crate::text::{Origin, Text};

impl Json {
    /// The value as JSON.
    pub(crate) fn dump(&self) -> Vec<u8> {
        match self {
            Self::Null => b"null".to_vec(),
            Self::Bool(value) => value.to_string().into(),
            Self::Int(value) => value.to_string().into(),
            Self::Unsigned(value) => value.to_string().into(),
            Self::Float(value) => float(*value).into(),
            Self::String(text) => quoted(text),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(Self::dump).collect();
                [b"[", items.join(&b',').as_slice(), b"]"].concat()
            }
            Self::Object(object) => {
                let entries = object.entries.iter().map(|(key, value)| [quoted(key), value.dump()].join(&b':'));
                let entries: Vec<_> = entries.collect();
                [b"{", entries.join(&b',').as_slice(), b"}"].concat()
            }
        }
    }
}

fn quoted(text: &Text) -> Vec<u8> {
    let mut quoted = Text::default();
    quoted.extend_quoted(text, Origin::CALLER, false);
    quoted.into_bytes()
}

/// A number as JSON, always with a point or an exponent. One that is not finite is `null`.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        -4..=14 => format!("{value:?}"),
        exponent => format!("{digits}e{exponent:+03}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let document = br#"{"a": ["x\n\u0001\u007f\"\\/", -5, 18446744073709551615, true, {}], "b": null}"#;
        let json = Json::parse(document).unwrap();
        let text = json.dump();
        let written = "{\"a\":[\"x\\n\\u0001\u{7f}\\\"\\\\/\",-5,18446744073709551615,true,{}],\"b\":null}";
        assert_eq!(std::str::from_utf8(&text), Ok(written));
        assert_eq!(Json::parse(&text), Ok(json));
    }

    #[test]
    fn floats_look_as_nlohmann_writes_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (2.5, "2.5"),
            (48.856_612_34, "48.85661234"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1e-7, "1e-07"),
            (123_456.789, "123456.789"),
            (1e14, "100000000000000.0"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-1.25e-10, "-1.25e-10"),
            (1.0 / 3.0, "0.3333333333333333"),
            (f64::NAN, "null"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }
}
