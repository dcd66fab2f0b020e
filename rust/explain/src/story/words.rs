//! Sentences, texts and numbers as people read them.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::OnceLock;

use ggtok_core::unicode::utf8;
use serde::Serialize;

/// A text as a row of cells: a character each, or a byte, or a symbol.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Letters {
    /// What is in each cell.
    pub cells: Vec<String>,
    /// The characters that are more than one cell: the first one, the one after the last, and the character.
    pub characters: Vec<(usize, usize, String)>,
}

/// A sentence with values in its places; a value without a name is the variable of that name.
macro_rules! said {
    ($key:literal $(, $name:ident $(= $value:expr)?)*) => {
        $crate::story::words::said($key, &[$((stringify!($name), said!(@ $name $($value)?))),*])
    };
    (@ $name:ident) => { &$name as &dyn std::fmt::Display };
    (@ $name:ident $value:expr) => { &$value as &dyn std::fmt::Display };
}

/// A sentence of `words.json` as it is; empty if it is missing.
pub(crate) fn sentence(group: &str, key: &str) -> String {
    static WORDS: OnceLock<HashMap<String, HashMap<String, String>>> = OnceLock::new();
    let words = WORDS.get_or_init(|| serde_json::from_str(include_str!("words.json")).unwrap_or_default());
    words.get(group).and_then(|group| group.get(key)).cloned().unwrap_or_default()
}

/// A caption with values in its places, and U+0001 around what is emphasised.
pub(crate) fn said(key: &str, values: &[(&str, &dyn Display)]) -> String {
    let sentence = sentence("captions", key).replace("**", "\u{1}");
    let mut parts = sentence.split('{');
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or(("", part));
        let value = values.iter().find(|(other, _)| *other == name);
        told += &value.map_or(format!("{{{name}}}"), |(_, value)| value.to_string());
        told += rest;
    }
    told
}

/// A caption about `n` things, in its form for none or one if it has that.
pub(crate) fn counted(key: &str, n: usize, values: &[(&str, &dyn Display)]) -> String {
    let form = match n {
        0 => format!("{key}_none"),
        1 => format!("{key}_one"),
        _ => key.to_owned(),
    };
    let key = if sentence("captions", &form).is_empty() { key } else { &form };
    said(key, &[values, &[("n", &grouped(n))]].concat())
}

/// Adds a sentence to others.
pub(crate) fn and(told: &mut String, sentence: String) {
    if !told.is_empty() && !sentence.is_empty() {
        told.push(' ');
    }
    *told += &sentence;
}

/// Texts as a sentence lists them: the first few.
pub(crate) fn listed(texts: &[String]) -> String {
    const MOST: usize = 6;
    let more = texts.len().saturating_sub(MOST);
    let list = texts[..texts.len() - more].join(", ");
    if more > 0 { format!("{list} and {more} more") } else { list }
}

/// A number with a comma between thousands.
pub(crate) fn grouped(n: usize) -> String {
    let digits = n.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    Vec::from_iter(groups).join(",")
}

/// A score or a cost with two digits at most.
pub(crate) fn number(value: f64) -> String {
    let shown = format!("{value:.2}");
    let shown = shown.trim_end_matches('0').trim_end_matches('.');
    if shown == "-0" { "0".to_owned() } else { shown.replace('-', "−") }
}

/// A text cut after `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Bytes as people know them: characters, signs for those that cannot be seen, and parts of characters in hexadecimal.
pub fn face(bytes: &[u8]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            parts.push(chunk.valid().chars().fold(String::new(), |shown, character| shown + &sign(character)));
        }
        parts.extend(chunk.invalid().iter().map(|byte| format!("{byte:02X}")));
    }
    parts.join(" ")
}

fn sign(character: char) -> String {
    match character {
        ' ' => "␣".to_owned(),
        '\n' => "↵".to_owned(),
        '\0'..='\x1F' => char::from_u32(0x2400 + u32::from(character)).unwrap_or_default().to_string(),
        '\x7F' => "␡".to_owned(),
        '\u{80}'..='\u{A0}'
        | '\u{AD}'
        | '\u{200B}'..='\u{200F}'
        | '\u{2028}'..='\u{202F}'
        | '\u{2060}'..='\u{206F}'
        | '\u{FEFF}' => format!("⟨{:04X}⟩", u32::from(character)),
        _ => character.to_string(),
    }
}

/// Where the characters of a text start, and its end. A character inside which one of `cuts` lies is cut into bytes.
pub(crate) fn places(text: &[u8], cuts: &[usize]) -> Vec<usize> {
    let mut places = Vec::new();
    for (_, range) in utf8::code_points(text) {
        let is_cut = cuts.iter().any(|cut| range.start < *cut && *cut < range.end);
        places.extend(if is_cut { range } else { range.start..range.start + 1 });
    }
    places.push(text.len());
    places
}

impl Letters {
    /// The cells of a text that start at `places`, of which the last one is its end.
    pub(crate) fn new(text: &[u8], places: &[usize]) -> Self {
        let cells = places.windows(2).map(|ends| face(&text[ends[0]..ends[1]])).collect();
        let mut characters = Vec::new();
        let mut first = 0;
        while first + 1 < places.len() {
            let len = utf8::decode(text, places[first]).map_or(1, |(_, len)| len);
            let end = places.binary_search(&(places[first] + len)).unwrap_or(first + 1);
            if end > first + 1 {
                characters.push((first, end, face(&text[places[first]..places[end]])));
            }
            first = end;
        }
        Self { cells, characters }
    }
}
