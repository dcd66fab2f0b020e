//! Whether llama.cpp's parser for answers takes the beginning that a continued message is. If not, the request fails.
//!
//! 1. The parser begins with the generation prompt. What comes after that may be wrong: the parser has got on by then.
//! 2. Where there is none, or where it is thinking at once, the first bytes decide. White space and thinking are taken.
//! 3. A beginning of an answer that has a schema is one of JSON, or of a fence before it.
//! 4. If tools may be called, it is anything that is not a wrong tool call, or content with the markers around it that
//!    the template writes.
//!
//! Source: of llama.cpp, `build_parser` and the functions like it in `common/chat-auto-parser-generator.cpp`, `json` in
//! `common/peg-parser.cpp`, and `common_chat_peg_parse` in `common/chat.cpp`. Deviations: 1. Of a tool call that
//! begins, only the marker and that JSON follows are checked.

use super::Analysis;
use super::calls::Format;
use crate::rules::params::{Params, ReasoningFormat, ToolChoice};
use crate::text::is_space;

/// Whether the parser takes `text`, where the template `asks` for an answer in this way.
pub(super) fn is_taken(analysis: &Analysis, params: &Params, may_call: bool, asks: &[u8], text: &[u8]) -> bool {
    let thinking = &analysis.thinking;
    let start = super::thinking::trim(&thinking.start);
    let thinks_at_once = !start.is_empty() && asks.starts_with(start);
    let reads_thinking = thinking.exists && params.reasoning_format != ReasoningFormat::None;
    if !(asks.is_empty() || thinks_at_once) || (reads_thinking && !thinking.end.is_empty()) {
        return true;
    }
    let has_schema = params.json_schema.as_ref().is_some_and(|schema| schema.as_object().is_some());
    let opening = analysis.content_start.as_deref();
    if !has_schema && !may_call {
        return !reads_thinking || opening.is_none_or(|opening| agree(text, opening)) || starts_with_space(text);
    }
    if text.is_empty() || starts_with_space(text) {
        true
    } else if has_schema {
        agree(text, b"```json") || begins_json(text)
    } else {
        let marker = analysis.call_marker.as_slice();
        // A parser that must find a call has got on once it has seen the marker.
        let begins_call = |rest: &[u8]| params.tool_choice == ToolChoice::Required || begins_call(rest);
        match (analysis.format, opening) {
            (Format::None, _) => true,
            (Format::Json, Some(opening)) if agree(text, opening) => true,
            (Format::Json, None) if marker.is_empty() => !text.starts_with(b"{") || begins_json(text),
            _ if marker.is_empty() => false,
            (Format::Json, Some(_)) => text.strip_prefix(marker).map_or(marker.starts_with(text), begins_call),
            _ => text.strip_prefix(marker).is_none_or(begins_call),
        }
    }
}

fn starts_with_space(text: &[u8]) -> bool {
    text.first().is_some_and(|&byte| is_space(byte))
}

/// Whether one text is a beginning of the other.
fn agree(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| a == b)
}

/// Whether a text after the marker of a tool call may be one.
fn begins_call(text: &[u8]) -> bool {
    let text = &text[super::markers::spaces(text, 0)..];
    text.is_empty() || (matches!(text[0], b'{' | b'[') && begins_json(text))
}

/// How far a piece of JSON goes: to a place, or to the end of the text and perhaps further.
enum Reach {
    To(usize),
    End,
}

/// Whether a text begins as JSON does, or with all of it. Time: O(bytes). Space: O(depth).
fn begins_json(text: &[u8]) -> bool {
    matches!(json(text), None | Some(true))
}

/// Whether the text begins with JSON; `None` if it ends before the JSON does.
fn json(text: &[u8]) -> Option<bool> {
    let skip = |at: usize| super::markers::spaces(text, at);
    let mut open: Vec<u8> = Vec::new();
    let mut at = 0;
    loop {
        // A value.
        let byte = *text.get(at)?;
        let reach = match byte {
            b'{' | b'[' => {
                open.push(byte);
                at = skip(at + 1);
                match (byte, *text.get(at)?) {
                    (b'{', b'}') | (b'[', b']') => Reach::To(at),
                    (b'{', _) => match key(text, at) {
                        Some(Reach::To(value)) => {
                            at = value;
                            continue;
                        }
                        Some(Reach::End) => return None,
                        None => return Some(false),
                    },
                    _ => continue,
                }
            }
            b'"' => match string(text, at) {
                Some(reach) => reach,
                None => return Some(false),
            },
            b'-' | b'0'..=b'9' => match number(text, at) {
                Some(reach) => reach,
                None => return Some(false),
            },
            _ => {
                let word = [&b"true"[..], b"false", b"null"].into_iter().find(|word| agree(&text[at..], word));
                match word {
                    Some(word) if text.len() - at >= word.len() => Reach::To(at + word.len()),
                    Some(_) => Reach::End,
                    None => return Some(false),
                }
            }
        };
        let Reach::To(end) = reach else { return None };
        at = end;

        // What follows a value: the end of what it is in, any number of times, or a comma.
        loop {
            let Some(&opener) = open.last() else { return Some(true) };
            at = skip(at);
            match (opener, *text.get(at)?) {
                (b'{', b'}') | (b'[', b']') => {
                    open.pop();
                    at += 1;
                }
                (_, b',') => {
                    at = skip(at + 1);
                    if opener == b'{' {
                        match key(text, at) {
                            Some(Reach::To(value)) => at = value,
                            Some(Reach::End) => return None,
                            None => return Some(false),
                        }
                    }
                    break;
                }
                _ => return Some(false),
            }
        }
    }
}

/// A key and its colon.
fn key(text: &[u8], at: usize) -> Option<Reach> {
    let Some(&byte) = text.get(at) else { return Some(Reach::End) };
    if byte != b'"' {
        return None;
    }
    let Reach::To(end) = string(text, at)? else { return Some(Reach::End) };
    let colon = super::markers::spaces(text, end);
    match text.get(colon) {
        None => Some(Reach::End),
        Some(b':') => Some(Reach::To(super::markers::spaces(text, colon + 1))),
        Some(_) => None,
    }
}

/// A string with its quotes.
fn string(text: &[u8], at: usize) -> Option<Reach> {
    let mut at = at + 1;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return Some(Reach::To(at + 1)),
            b'\\' => match text.get(at + 1) {
                None => return Some(Reach::End),
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let digits = &text[at + 2..text.len().min(at + 6)];
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return None;
                    }
                    at += 6;
                }
                Some(_) => return None,
            },
            _ => at += 1,
        }
    }
    Some(Reach::End)
}

/// A number that nothing follows which could be part of one.
fn number(text: &[u8], at: usize) -> Option<Reach> {
    let digits = |at: usize| at + text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = at + usize::from(text[at] == b'-');
    at = match text.get(at) {
        None => return Some(Reach::End),
        Some(b'0') => at + 1,
        Some(b'1'..=b'9') => digits(at),
        Some(_) => return None,
    };
    for part in [&b"."[..], b"eE"] {
        if text.get(at).is_some_and(|byte| part.contains(byte)) {
            let has_sign = part == b"eE" && matches!(text.get(at + 1), Some(b'+' | b'-'));
            let start = at + 1 + usize::from(has_sign);
            at = digits(start.min(text.len()));
            if at == start && at < text.len() {
                return None;
            }
        }
    }
    match text.get(at) {
        None => Some(Reach::End),
        Some(b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-') => None,
        Some(_) => Some(Reach::To(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::begins_json;

    #[test]
    fn beginnings_of_json_are_taken() {
        for text in [
            "{",
            "{ ",
            "{\"",
            "{\"a",
            "{\"a\" ",
            "{\"a\":",
            "{\"a\": [1, {",
            "[",
            "[1, ",
            "[[]",
            "\"x\\",
            "\"\\u00",
            "-",
            "3",
            "3.",
            "3e",
            "3e+",
            "tr",
            "null",
            "{} and more",
            "[{\"a\": {}}, 2.5e-3 ]x",
            "\"x\" y",
            "{\"a\": 1, ",
            "{\"a\": 1, \"b",
        ] {
            assert!(begins_json(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_not_json_is_not() {
        for text in [
            "abc",
            "{a",
            "{,",
            "[,",
            "[1,]",
            "{\"a\" 1",
            "{\"a\": 1,}",
            "[1 2",
            "\"\\x",
            "\"\\u0x",
            "-x",
            "01",
            "3.x",
            "3ex",
            "1-2",
            "trux",
            "]",
            "}",
            "[1}",
            "{\"a\": x",
        ] {
            assert!(!begins_json(text.as_bytes()), "{text}");
        }
        let deep = "[".repeat(1 << 20) + "x";
        assert!(!begins_json(deep.as_bytes()));
    }
}
