//! Writes JSON as nlohmann's `dump` does, which llama.cpp uses: without spaces, with everything but control characters as
//! it is.
//!
//! Strings and keys keep their origins. What is written between them has one origin, so that all of it is the caller's.
//!
//! Source: `nlohmann::basic_json::dump` as `common/json.cpp` of llama.cpp calls it. Deviations: 1. Floating-point numbers
//! have as few digits as they need; llama.cpp's algorithm, Grisu2, gives one in a thousand more of them.

use super::Json;
use crate::text::{Origin, Text};

impl Json {
    /// The value as JSON. What is written between strings has the origin `near`.
    pub(crate) fn dump(&self, near: Origin) -> Text {
        let mut text = Text::new("", near);
        self.write(&mut text, near);
        text
    }

    fn write(&self, out: &mut Text, near: Origin) {
        let between = |out: &mut Text, text: &str| out.extend(text.as_bytes(), near);
        match self {
            Self::Null => between(out, "null"),
            Self::Bool(value) => between(out, &value.to_string()),
            Self::Int(value) => between(out, &value.to_string()),
            Self::Unsigned(value) => between(out, &value.to_string()),
            Self::Float(value) => between(out, &float(*value)),
            Self::String(text) => out.extend_quoted(text, near, false),
            Self::Array(items) => {
                between(out, "[");
                for (at, item) in items.iter().enumerate() {
                    between(out, if at > 0 { "," } else { "" });
                    item.write(out, near);
                }
                between(out, "]");
            }
            Self::Object(object) => {
                between(out, "{");
                for (at, (key, value)) in object.iter().enumerate() {
                    between(out, if at > 0 { "," } else { "" });
                    out.extend_quoted(key, near, false);
                    between(out, ":");
                    value.write(out, near);
                }
                between(out, "}");
            }
        }
    }
}

/// A number as JSON, always with a point or an exponent. One that is not finite is `null`.
fn float(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse().unwrap_or(0) {
        -4..=14 => format!("{value:?}"),
        exponent => format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, i32::abs(exponent)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_and_keep_their_origins() {
        let document = br#"{"a": ["x\n\u0001\u007f\"\\/", -5, 18446744073709551615, true, {}], "b": null}"#;
        let json = Json::parse(document).unwrap();
        let text = json.dump(Origin::caller(9));
        let written = "{\"a\":[\"x\\n\\u0001\u{7f}\\\"\\\\/\",-5,18446744073709551615,true,{}],\"b\":null}";
        assert_eq!(std::str::from_utf8(text.as_bytes()), Ok(written));
        let origins = [text.first_origin(), text.origin_at(7), text.last_origin()];
        assert_eq!(origins, [Origin::caller(9), Origin::CALLER, Origin::caller(9)]);
        assert_eq!(Json::parse_text(&text), Ok(json));
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
