//! What a vocabulary is, as JSON.

use std::collections::BTreeMap;

use ggtok_core::TokenId;
use ggtok_core::gguf::{Metadata, Value};
use ggtok_core::vocab::{SLOTS, Vocabulary};
use serde::Serialize;
use serde_json::json;

/// A token.
#[derive(Serialize)]
struct TokenJson<'a> {
    id: TokenId,
    text: std::borrow::Cow<'a, str>,
    score: f32,
    attributes: u16,
}

/// The kind, size, settings and special tokens of a vocabulary, and the name of its model.
pub fn info(vocabulary: &Vocabulary, metadata: &Metadata<Vec<u8>>) -> String {
    let name = match metadata.get("general.name") {
        Some(Value::String(name)) => std::str::from_utf8(name).ok(),
        _ => None,
    };
    let flags = vocabulary.settings().flags();
    let special_ids = SLOTS.iter().map(|slot| (camel_case(slot.name), (slot.id)(vocabulary.special())));
    json!({
        "kind": vocabulary.kind().name(),
        "pre": vocabulary.pre().map(|pre| pre.name),
        "model": vocabulary.model(),
        "name": name,
        "size": vocabulary.len(),
        "settings": BTreeMap::from(flags.map(|(name, flag)| (camel_case(name), flag))),
        "specialIds": special_ids.collect::<BTreeMap<_, _>>(),
        "eogIds": vocabulary.eog(),
    })
    .to_string()
}

/// A token with its text, in which U+FFFD stands for what is not UTF-8.
pub fn token(vocabulary: &Vocabulary, id: TokenId) -> serde_json::Result<String> {
    let text = String::from_utf8_lossy(vocabulary.text(id));
    let attributes = vocabulary.attributes(id).bits();
    serde_json::to_string(&TokenJson { id, text, score: vocabulary.score(id), attributes })
}

/// `fim_pre` as `fimPre`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
}

#[cfg(test)]
mod tests {
    use super::camel_case;

    #[test]
    fn names_are_those_of_javascript() {
        assert_eq!(["bos", "fim_pre"].map(camel_case), ["bos", "fimPre"]);
    }
}
