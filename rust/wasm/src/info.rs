//! What a vocabulary is, as JSON.

use std::collections::BTreeMap;

use ggtok_core::TokenId;
use ggtok_core::gguf::{Metadata, Value};
use ggtok_core::vocab::{SLOTS, Vocabulary};
use serde::Serialize;

/// What does not change after loading.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    kind: &'static str,
    pre: Option<&'static str>,
    model: &'static str,
    name: Option<&'a str>,
    size: usize,
    settings: SettingsJson,
    special_ids: BTreeMap<String, Option<TokenId>>,
    eog_ids: &'a [TokenId],
}

/// [`ggtok_core::vocab::Settings`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingsJson {
    add_bos: bool,
    add_eos: bool,
    add_sep: bool,
    add_space_prefix: bool,
    ignore_merges: bool,
    clean_spaces: bool,
    remove_extra_whitespaces: bool,
    escape_whitespaces: bool,
    lowercase: bool,
    strip_accents: bool,
}

/// A token.
#[derive(Serialize)]
struct TokenJson<'a> {
    id: TokenId,
    text: std::borrow::Cow<'a, str>,
    score: f32,
    attributes: u16,
}

/// The kind, size, settings and special tokens of a vocabulary, and the name of its model.
pub fn info(vocabulary: &Vocabulary, metadata: &Metadata<Vec<u8>>) -> serde_json::Result<String> {
    let settings = *vocabulary.settings();
    let name = match metadata.get("general.name") {
        Some(Value::String(name)) => std::str::from_utf8(name).ok(),
        _ => None,
    };
    serde_json::to_string(&Info {
        kind: vocabulary.kind().name(),
        pre: vocabulary.pre().map(|pre| pre.name),
        model: vocabulary.model(),
        name,
        size: vocabulary.len(),
        settings: SettingsJson {
            add_bos: settings.add_bos,
            add_eos: settings.add_eos,
            add_sep: settings.add_sep,
            add_space_prefix: settings.add_space_prefix,
            ignore_merges: settings.ignore_merges,
            clean_spaces: settings.clean_spaces,
            remove_extra_whitespaces: settings.remove_extra_whitespaces,
            escape_whitespaces: settings.escape_whitespaces,
            lowercase: settings.lowercase,
            strip_accents: settings.strip_accents,
        },
        special_ids: SLOTS.iter().map(|slot| (camel_case(slot.name), (slot.id)(vocabulary.special()))).collect(),
        eog_ids: vocabulary.eog(),
    })
}

/// A token with its text, in which U+FFFD stands for what is not UTF-8.
pub fn token(vocabulary: &Vocabulary, id: TokenId) -> serde_json::Result<String> {
    let (text, attributes) = (String::from_utf8_lossy(vocabulary.text(id)), vocabulary.attributes(id).bits());
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
