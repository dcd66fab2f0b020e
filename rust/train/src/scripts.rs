//! The script of a character, for pieces that must not mix scripts.
//!
//! Source: sentencepiece's `IsValidSentencePiece` and `unicode_script::GetScript` (trainer_interface.cc,
//! unicode_script.cc).

pub(super) use unicode_script::Script;
use unicode_script::UnicodeScript;

/// The script of a character; `None` for marks, which take that of the character before them.
///
/// Japanese writes Han and the two Kana, with their long vowel mark, in one word, so they count as one.
pub(super) fn script(character: char) -> Option<Script> {
    match character.script() {
        Script::Inherited => None,
        Script::Hiragana | Script::Katakana => Some(Script::Han),
        _ if character == 'ー' => Some(Script::Han),
        Script::Unknown => Some(Script::Common),
        script => Some(script),
    }
}

/// Whether a character is a digit: ASCII's and their full-width forms.
pub(super) fn is_digit(character: char) -> bool {
    matches!(character, '0'..='9' | '０'..='９')
}
