//! The text of a JSON string: `memchr` finds the next backslash, and what is before it is copied. O(bytes).

use std::ops::Range;

use memchr::memchr;

use crate::line_columns::Column;

/// The value of each hexadecimal digit, and 0xff of any other byte.
const HEX: [u8; 256] = {
    let mut table = [0xff; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

/// Writes the text of a string to a column. The string is in quotes, and its grammar has been checked.
///
/// # Errors
///
/// Where an escape such as `\ud83d` is half of a surrogate pair.
pub(crate) fn unescape(json: &str, column: &mut Column) -> Result<(), Range<usize>> {
    let mut rest = &json.as_bytes()[1..json.len() - 1];
    column.reserve(rest.len());
    while let Some(at) = memchr(b'\\', rest) {
        column.push(&rest[..at]);
        rest = &rest[at..];
        // Runs of escapes, as in a text that was written in ASCII.
        while let [b'\\', code, after @ ..] = rest {
            rest = after;
            let plain = match code {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                b'u' => {
                    let Some((character, size)) = character(rest) else {
                        let digits = json.len() - 1 - rest.len();
                        return Err(digits - r"\u".len()..digits + 4);
                    };
                    rest = &rest[size..];
                    column.push_char(character);
                    continue;
                }
                other => *other,
            };
            column.push(&[plain]);
        }
    }
    column.push(rest);
    Ok(())
}

/// The character after `\u`, and how many bytes it takes there. `None` if it is half of a surrogate pair.
fn character(digits: &[u8]) -> Option<(char, usize)> {
    let first = unit(digits)?;
    if !(0xd800..0xe000).contains(&first) {
        return Some((char::from_u32(first)?, 4));
    }
    let [b'\\', b'u', second @ ..] = &digits[4..] else { return None };
    let second = unit(second)?;
    if first >= 0xdc00 || !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 10))
}

/// A number of four hexadecimal digits.
fn unit(digits: &[u8]) -> Option<u32> {
    let &[a, b, c, d] = digits.first_chunk::<4>()?;
    let [a, b, c, d] = [a, b, c, d].map(|digit| HEX[digit as usize]);
    // What is not a digit has high bits.
    ((a | b | c | d) < 16).then(|| u32::from(a) << 12 | u32::from(b) << 8 | u32::from(c) << 4 | u32::from(d))
}
