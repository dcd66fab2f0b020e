//! Makes texts from bytes: mostly of few letters, so that tokens occur, plus everything else that algorithms treat
//! specially.

use arbitrary::{Result, Unstructured};

/// Parts of texts, by number. Those of `MEANING` have a special meaning in some algorithm.
const LETTERS: [&str; 8] = ["a", "b", "é", " ", "A", "ab", "中", "1"];
#[rustfmt::skip]
const MEANING: [&str; 24] = [
    "\u{2581}", "\u{301}", "\u{FEFF}", "\u{FFFD}", "\t", "\n", "\r\n", "!", "$", "ﬁ", "\u{AD}", "😀", "\0", "'s",
    "123", "  ", "<s>", "</s>", "<|im_end|>", "<unk>", "[SEP]", "<dna>", "\u{3000}", "한",
];
/// Bytes that are not UTF-8.
const BROKEN: [&[u8]; 6] = [b"\xFF", b"\xE2\x96", b"\xC1\xA1", b"\xED\xA0\x80", b"\xF4\x90\x80\x81", b"\x80"];

/// A text of at most `most` parts, as bytes.
pub fn bytes(u: &mut Unstructured<'_>, most: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for _ in 0..u.int_in_range(0..=most)? {
        match u.int_in_range(0..=15)? {
            0 => text.extend_from_slice(u.choose(&BROKEN)?),
            1 => text.extend_from_slice(&u.arbitrary::<[u8; 3]>()?),
            2 => text.extend_from_slice(u.arbitrary::<char>()?.to_string().as_bytes()),
            3..=6 => text.extend_from_slice(u.choose(&MEANING)?.as_bytes()),
            7 => {
                let most = *u.choose(&[70, 70, 70, 700])?;
                text.extend_from_slice(letter(u)?.repeat(u.int_in_range(1..=most)?).as_bytes());
            }
            _ => text.extend_from_slice(u.choose(&LETTERS)?.as_bytes()),
        }
    }
    Ok(text)
}

/// A text of at most `most` parts, with U+FFFD for invalid bytes.
pub fn utf8(u: &mut Unstructured<'_>, most: usize) -> Result<String> {
    bytes(u, most).map(|text| String::from_utf8_lossy(&text).into_owned())
}

pub fn letter(u: &mut Unstructured<'_>) -> Result<&'static str> {
    u.choose(&LETTERS).copied()
}

/// The text of a token: short, never empty.
pub fn token(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut text = u.choose(&LETTERS)?.as_bytes().to_vec();
    if u.ratio(1, 4)? {
        text = u.choose(&MEANING)?.replace('\0', "a").into_bytes();
    }
    for _ in 0..u.int_in_range(0..=3)? {
        text.extend_from_slice(u.choose(&LETTERS)?.as_bytes());
    }
    Ok(text)
}
