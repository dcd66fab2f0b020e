//! Errors as JSON: the name of a class of `js/ggtok.js`, the message, and the details of the class. Names, messages and
//! details are those of the Python package.

#[cfg(feature = "full")]
use ggtok_chat::{Error as ChatError, Position};
use ggtok_core::gguf::{GgufError, LoadError};
use ggtok_core::{DecodeError, EncodeError, VocabularyError};
#[cfg(feature = "full")]
use ggtok_explain::ExplainError;
use serde::Serialize;
use serde_json::{Value, json};
use wasm_bindgen::JsValue;

/// An error for JavaScript, which leaves out details that are `null`.
#[derive(Debug, Serialize)]
pub struct Failure {
    name: &'static str,
    message: String,
    details: Value,
}

/// What a call throws.
pub fn failed(error: impl Into<Failure>) -> JsValue {
    let failure = error.into();
    // Strings and numbers always have a JSON.
    JsValue::from_str(&serde_json::to_string(&failure).unwrap_or(failure.message))
}

impl Failure {
    fn new(name: &'static str, message: impl ToString) -> Self {
        Self { name, message: message.to_string(), details: Value::Null }
    }

    fn with(self, details: Value) -> Self {
        Self { details, ..self }
    }

    /// There is no room for the bytes of a file.
    pub fn no_memory() -> Self {
        Self::new("MemoryError", "there is not enough memory for this file")
    }

    /// The characters of bytes that are not UTF-8 cannot be counted.
    pub fn no_characters(at: usize) -> Self {
        let problem = format!("bytes that are not UTF-8 (at byte {at}) have no characters to count");
        Self::new("GgtokError", problem + "; unit=\"byte\" works for any bytes")
    }
}

#[cfg(feature = "full")]
impl Failure {
    /// A conversation was not rendered, with the template of a name.
    pub fn of_chat(error: ChatError, template: Option<&str>) -> Self {
        if let Some((problem, position)) = error.of_template() {
            return Self::of_template(&problem, template, position);
        }
        let whole = error.to_string();
        match error {
            ChatError::Request { field, .. } => {
                let field = Some(field).filter(|field| !field.is_empty());
                Self::new("ChatRequestError", whole).with(json!({"field": field}))
            }
            ChatError::Encode(error) => error.into(),
            _ => Self::new("VocabularyError", whole),
        }
    }

    fn of_template(problem: &str, template: Option<&str>, position: Option<Position>) -> Self {
        let line = position.map(|position| position.line);
        let column = position.map(|position| position.column);
        let place = template.map(|name| format!("chat template {}", quoted(name))).into_iter();
        let place = place.chain(line.map(|line| format!("line {line}")));
        let place: Vec<String> = place.chain(column.map(|column| format!("column {column}"))).collect();
        let message = if place.is_empty() { problem.to_owned() } else { format!("{}: {problem}", place.join(", ")) };
        Self::new("ChatTemplateError", message).with(json!({"template": template, "line": line, "column": column}))
    }

    /// The file has no template of this name, or none at all. `names` are those that it has.
    pub fn no_template(wanted: Option<&str>, names: &[String]) -> Self {
        let all: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let problem = match wanted {
            Some(name) if all.is_empty() => format!("the file has no chat template {}: it names none", quoted(name)),
            Some(name) => format!("the file has no chat template {}: it has {}", quoted(name), all.join(", ")),
            None => {
                let named = match &all[..] {
                    [] => String::new(),
                    [name] => format!("template={name}, "),
                    names => format!("template= one of {}, ", names.join(", ")),
                };
                format!(
                    "the file has no chat template (tokenizer.chat_template): pass {named}template_text=, or \
                     template='chatml' to do as llama-server, which takes ChatML"
                )
            }
        };
        Self::new("ChatTemplateError", problem)
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Gguf(error) => error.into(),
            LoadError::Vocabulary(error) => error.into(),
            _ => Self::new("GgtokError", error),
        }
    }
}

impl From<GgufError> for Failure {
    fn from(error: GgufError) -> Self {
        let key = error.key.as_deref().map(|key| format!("key {}", quoted(key)));
        let offset = error.offset.map(|offset| format!("byte {offset}"));
        let place: Vec<String> = key.into_iter().chain(offset).collect();
        let mut message = error.problem.to_string();
        if !place.is_empty() {
            message += &format!(" ({})", place.join(", "));
        }
        let expected = error.expected();
        let found = error.found();
        message += &format!(": expected {expected}");
        message.extend(found.iter().map(|found| format!(", found {found}")));
        let details = json!({"key": error.key, "offset": error.offset, "expected": expected, "found": found});
        Self::new("GGUFError", message).with(details)
    }
}

impl From<VocabularyError> for Failure {
    fn from(error: VocabularyError) -> Self {
        let message = error.to_string();
        match error {
            VocabularyError::UnknownModel { name, nearest }
            | VocabularyError::UnknownPreTokenizer { name, nearest } => {
                Self::new("UnsupportedError", message).with(json!({"unknown": name, "nearest": nearest}))
            }
            _ => Self::new("VocabularyError", message),
        }
    }
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        match error {
            EncodeError::NoVocabulary | EncodeError::MissingSpecial { .. } | EncodeError::Control { .. } => {
                Self::new("VocabularyError", error)
            }
            _ => Self::new("GgtokError", error),
        }
    }
}

#[cfg(feature = "full")]
impl From<ExplainError> for Failure {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::Encode(error) => error.into(),
            _ => Self::new("GgtokError", error),
        }
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::UnknownId { .. } => Self::new("TokenIndexError", error),
            // WebAssembly cannot unwind, so running out of memory never comes here.
            _ => Self::new("GgtokError", error),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new("GgtokError", error)
    }
}

/// A text as Python's `repr` writes it.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => quoted += "\\n",
            '\r' => quoted += "\\r",
            '\t' => quoted += "\\t",
            '\\' => quoted += "\\\\",
            _ if char == quote => quoted.extend(['\\', char]),
            // What is printable, up to details of Unicode versions.
            _ if matches!(char, '\'' | '"') || char.escape_debug().len() == 1 => quoted.push(char),
            '\0'..='\u{FF}' => quoted += &format!("\\x{:02x}", u32::from(char)),
            '\u{100}'..='\u{FFFF}' => quoted += &format!("\\u{:04x}", u32::from(char)),
            _ => quoted += &format!("\\U{:08x}", u32::from(char)),
        }
    }
    quoted.push(quote);
    quoted
}

#[cfg(test)]
mod tests {
    use ggtok_core::{DecodeError, EncodeError};

    use super::{Failure, quoted};

    #[test]
    fn keys_are_quoted_as_in_python() {
        let cases = [
            ("general.name", "'general.name'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("\\xff\n\0\u{7f}é中", "'\\\\xff\\n\\x00\\x7fé中'"),
            ("\u{ad}\u{200b}\u{e0001}", "'\\xad\\u200b\\U000e0001'"),
        ];
        for (text, expected) in cases {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn a_failure_has_the_name_of_the_exception_in_python() {
        let names = [
            (DecodeError::UnknownId { id: 9, size: 3 }.into(), "TokenIndexError"),
            (DecodeError::NotUtf8 { at: 0 }.into(), "GgtokError"),
            (DecodeError::LatePrompt.into(), "GgtokError"),
            (EncodeError::NoVocabulary.into(), "VocabularyError"),
        ];
        for (failure, name) in names {
            let failure: Failure = failure;
            assert_eq!(failure.name, name, "{failure:?}");
        }
    }

    #[test]
    fn a_failure_has_the_message_and_the_details_of_its_error() {
        let failure =
            ggtok_core::Tokenizer::from_bytes(b"GGUF").map(drop).map_err(Failure::from).expect_err("too short");
        let json = serde_json::to_string(&failure).expect("JSON");
        let message = "the file ends inside the version (byte 4): expected 4 bytes, found 0 bytes";
        let details = r#"{"expected":"4 bytes","found":"0 bytes","key":null,"offset":4}"#;
        assert_eq!(json, format!(r#"{{"name":"GGUFError","message":"{message}","details":{details}}}"#));
    }
}
