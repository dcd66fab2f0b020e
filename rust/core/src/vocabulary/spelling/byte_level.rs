//! GPT-2's spelling of bytes: each byte is one printable character, so merges never see spaces or control characters.
//!
//! Source: `bytes_to_unicode` of OpenAI's gpt-2, as llama.cpp has it (`src/unicode.cpp`, `unicode_byte_to_utf8_map`):
//! the 188 printable bytes of Latin-1 are themselves, the other 68 are U+0100 to U+0143 in order. Deviations: none.

use crate::work::memory::{append, push};

/// The code point that spells each byte.
const SPELLED: [u16; 256] = spelled();
/// The byte that each code point below U+0144 spells.
const BYTES: [Option<u8>; 0x144] = bytes();

const fn is_printable(byte: u16) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

const fn spelled() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    let mut next = 0x100;
    while byte < 256 {
        if is_printable(byte) {
            table[byte as usize] = byte;
        } else {
            table[byte as usize] = next;
            next += 1;
        }
        byte += 1;
    }
    table
}

const fn bytes() -> [Option<u8>; 0x144] {
    let mut table = [None; 0x144];
    let mut byte = 0;
    while byte < 256 {
        table[SPELLED[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    table
}

/// The UTF-8 of the character that spells a byte, and its length (1 or 2).
pub const fn spell(byte: u8) -> ([u8; 2], usize) {
    let code_point = SPELLED[byte as usize];
    if code_point < 0x80 {
        ([code_point as u8, 0], 1)
    } else {
        ([0xC0 | (code_point >> 6) as u8, 0x80 | (code_point & 0x3F) as u8], 2)
    }
}

/// The byte that a code point spells.
pub fn unspell(code_point: u32) -> Option<u8> {
    *BYTES.get(code_point as usize)?
}

/// Appends the bytes that `text` spells. If it has any other character, appends nothing and returns false.
pub(crate) fn unspell_all(text: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let mut rest = text;
    while let Some(&lead) = rest.first() {
        let byte = match rest.get(1) {
            // Two bytes reach U+07FF; the spelling ends at U+0143.
            Some(&next @ 0x80..=0xBF) if matches!(lead, 0xC2..=0xC5) => {
                unspell(u32::from(lead & 0x1F) << 6 | u32::from(next & 0x3F))
            }
            _ => None,
        };
        if let Some(byte) = byte {
            push(out, byte);
            rest = &rest[2..];
            continue;
        }
        let run = rest.iter().take_while(|byte| matches!(byte, 0x21..=0x7E)).count();
        if run == 0 {
            out.truncate(start);
            return false;
        }
        append(out, &rest[..run]);
        rest = &rest[run..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{spell, unspell, unspell_all};
    use crate::lookup::key::Key;

    #[test]
    fn every_byte_has_its_own_character() {
        let mut text = Vec::new();
        for byte in 0..=255 {
            let (utf8, len) = spell(byte);
            text.extend_from_slice(&utf8[..len]);
            let char = std::str::from_utf8(&utf8[..len]).expect("UTF-8").chars().next().expect("one character");
            assert_eq!(unspell(u32::from(char)), Some(byte));
        }
        let mut bytes = Vec::new();
        assert!(unspell_all(&text, &mut bytes));
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!((spell(b' '), spell(b'\n')), (([0xC4, 0xA0], 2), ([0xC4, 0x8A], 2)));
    }

    #[test]
    fn a_short_text_spells_the_same_in_one_piece() {
        let key = |text: &[u8]| Key::new(text, 0, text.len()).expect("short");
        for byte in 0..=u8::MAX {
            for text in
                [&[byte][..], &[b'!', byte, b'~'], b"\xC4\xA0", &[0xC4, 0xA0, byte], &[0xC4, byte], b"0123456789ABCDE"]
            {
                let mut bytes = Vec::new();
                let is_spelled = unspell_all(text, &mut bytes);
                match key(text).unspelled() {
                    Some(found) => assert_eq!(found, key(&bytes), "{text:?}"),
                    None => assert!(
                        !is_spelled || text.iter().skip_while(|&&byte| byte == 0xC4).any(|byte| !byte.is_ascii())
                    ),
                }
            }
        }
    }

    #[test]
    fn other_characters_spell_nothing() {
        for text in ["a b", "\u{AD}", "\u{144}", "▁", "\n"] {
            let mut out = vec![7];
            assert!(!unspell_all(text.as_bytes(), &mut out), "{text:?}");
            assert_eq!(out, [7]);
        }
    }
}
