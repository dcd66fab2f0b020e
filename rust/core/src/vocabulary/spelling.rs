//! How a token's text spells bytes: `▁` for a space, `<0xXX>` for a byte, RWKV's escapes and, in [`byte_level`],
//! GPT-2's characters.
//!
//! Source: llama.cpp `src/llama-vocab.cpp`: `llama_escape_whitespace`, `llama_unescape_whitespace`,
//! `llama_vocab::impl::token_to_byte`, `llm_tokenizer_plamo2::build` and `llama_unescape_rwkv_token`. Deviations: none.

pub mod byte_level;

use crate::text::unicode::utf8;
use crate::work::memory::push;

/// `▁`, which stands for a space.
pub const ESCAPED_SPACE: &[u8] = "▁".as_bytes();
/// The code point of [`ESCAPED_SPACE`].
pub const ESCAPED_SPACE_CODE_POINT: u32 = 0x2581;

/// The lowest lead byte of a character that can be beyond U+10FFFF.
pub(crate) const BEYOND_UNICODE_LEAD: u8 = 0xF4;

/// Appends a text with its spaces escaped.
pub fn escape_spaces(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b' ' => out.extend_from_slice(ESCAPED_SPACE),
            _ => out.push(byte),
        }
    }
}

/// Appends a text with a space for each `▁`.
pub(crate) fn unescape_spaces(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        let space = rest.strip_prefix(ESCAPED_SPACE);
        push(out, if space.is_some() { b' ' } else { byte });
        rest = space.unwrap_or(after);
    }
}

/// The text of the token for a byte: `<0xXX>`.
pub fn byte_text(byte: u8) -> [u8; 6] {
    let digit = |nibble: u8| b"0123456789ABCDEF"[usize::from(nibble)];
    [b'<', b'0', b'x', digit(byte >> 4), digit(byte & 15), b'>']
}

/// The byte that a text of the form `<0xXX>` spells, as PLaMo-2 reads it.
pub fn byte_of(text: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = *text else { return None };
    let digit = |byte| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// The byte that a byte token's text spells as all other vocabularies read it: C's `strtol` with base 16 on the fourth
/// and fifth byte, in eight bits. Whitespace and a sign may come first, and the first byte that is not a digit ends the
/// number. `None` for a text of fewer than three bytes.
pub(crate) fn leading_byte_of(text: &[u8]) -> Option<u8> {
    let digits = text.get(3..text.len().min(5))?;
    let num_blanks = digits.iter().take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r')).count();
    let (is_negative, digits) = match &digits[num_blanks..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let digits = digits.iter().map_while(|&byte| char::from(byte).to_digit(16));
    let value = digits.fold(0, |value: u8, digit| value << 4 | digit as u8);
    Some(if is_negative { value.wrapping_neg() } else { value })
}

/// Appends the bytes that an RWKV token's text spells: `\t`, `\n`, `\r`, `\xHH`, and a backslash before any other byte
/// for that byte. An incomplete escape at the end spells nothing.
pub fn unescape_rwkv(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'\\' {
            push(out, byte);
            continue;
        }
        match rest.next() {
            Some(b't') => push(out, b'\t'),
            Some(b'n') => push(out, b'\n'),
            Some(b'r') => push(out, b'\r'),
            Some(b'x') => {
                if let (Some(&high), Some(&low)) = (rest.next(), rest.next()) {
                    push(out, (rwkv_digit(high) << 4).wrapping_add(rwkv_digit(low)));
                }
            }
            Some(&other) => push(out, other),
            None => {}
        }
    }
}

/// The offset of the first character beyond U+10FFFF in a text: llama.cpp rejects a file if it would have to write one.
pub(crate) fn beyond_unicode(text: &[u8]) -> Option<usize> {
    // Only sequences that start with this byte or a higher one reach that far.
    let mut leads = (0..text.len()).filter(|&at| text[at] >= BEYOND_UNICODE_LEAD);
    leads.find(|&at| utf8::decode(text, at).is_some_and(|(code_point, _)| code_point > 0x10_FFFF))
}

/// The value of a byte as a hexadecimal digit. Any byte has one; capitals are not read as digits.
fn rwkv_digit(byte: u8) -> u8 {
    match byte {
        b'a'..=0x7F => byte - b'a' + 10,
        _ => byte.wrapping_sub(b'0'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_spaces() {
        let cases: [(&[u8], &[u8]); 3] = [
            ("a▁▁b".as_bytes(), b"a  b"),
            ("é▁".as_bytes(), "é ".as_bytes()),
            (b"\xE2\x96\x82\xE2\x96\x81\xE2", b"\xE2\x96\x82 \xE2"),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            unescape_spaces(text, &mut out);
            assert_eq!(out, expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn byte_texts() {
        for byte in 0..=u8::MAX {
            let text = byte_text(byte);
            assert_eq!((byte_of(&text), leading_byte_of(&text)), (Some(byte), Some(byte)));
            assert_eq!(byte_of(&text.to_ascii_lowercase()), Some(byte));
        }
        for text in ["<0x4>", "<0x041>", "<0xg1>", "0x41"] {
            assert_eq!(byte_of(text.as_bytes()), None, "{text}");
        }
        let cases: [(&[u8], Option<u8>); 12] = [
            (b"<0x4", Some(4)),
            (b"<0x", Some(0)),
            (b"<0xfF>", Some(255)),
            (b"<0x-1>", Some(255)),
            (b"<0x+a>", Some(10)),
            (b"<0x\x0b7>", Some(7)),
            (b"<0x0x>", Some(0)),
            (b"<0xg1>", Some(0)),
            (b"<0x1g>", Some(1)),
            (b"abc", Some(0)),
            (b"ab", None),
            (b"", None),
        ];
        for (text, byte) in cases {
            assert_eq!(leading_byte_of(text), byte, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn rwkv_escapes() {
        let cases: [(&[u8], &[u8]); 10] = [
            (br"plain", b"plain"),
            (br"\t\n\r\\\'\q", b"\t\n\r\\'q"),
            (br"\x41\xff\x00", b"A\xff\0"),
            // ('F' - '0') * 16 + 10, and ('z' - 'a' + 10) * 16 + ('A' - '0'), in eight bits.
            (br"\xFa", b"\x6a"),
            (br"\xzA", b"\x41"),
            (b"\\x\x80\xff", b"\xcf"),
            (br"a\", b"a"),
            (br"a\x", b"a"),
            (br"a\x4", b"a"),
            (br"\x\\n", b"\xecn"),
        ];
        for (text, expected) in cases {
            let mut out = Vec::new();
            unescape_rwkv(text, &mut out);
            assert_eq!(out, expected, "{}", text.escape_ascii());
        }
    }
}
