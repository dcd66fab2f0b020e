//! Numbers to text and back, as the C library does it.
//!
//! Source: glibc's `printf` (`%f`, `%g`), `strtol` and `strtod` in the C locale, as `std::to_string`, `std::ostream`,
//! `std::stoi` and `std::stod` use them. Deviations: 1. `0b` is not a prefix, as in glibc before 2.38. 2. Floating-point numbers in hexadecimal are
//! not read, nor are those below 2^-1022.
//!
//! Time: O(length).

use crate::text::is_space;

/// As `printf` does, with [`general`] or [`fixed`] digits.
pub(crate) fn shown(value: f64, is_general: bool) -> String {
    if value.is_finite() {
        return if is_general { general(value) } else { fixed(value) };
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" })
}

/// With six digits after the point, without the zeros at the end except the first.
fn fixed(value: f64) -> String {
    let digits = format!("{value:.6}");
    let digits = digits.trim_end_matches('0');
    if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() }
}

/// With six significant digits, without the zeros at the end, and with an exponent if that is below -4 or above 5.
fn general(value: f64) -> String {
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let digits = format!("{value:.*}", (5 - exponent) as usize);
        return if digits.contains('.') { trim_zeros(&digits).to_owned() } else { digits };
    }
    format!("{}e{exponent:+03}", trim_zeros(digits))
}

fn trim_zeros(digits: &str) -> &str {
    digits.trim_end_matches('0').trim_end_matches('.')
}

/// The whole number that a text starts with, up to its first NUL. Nothing if there is none or it has more than 32 bits.
/// In base 0, the number's prefix gives its base.
pub(crate) fn parse_int(text: &[u8], base: u32) -> Option<i32> {
    let (text, is_negative) = skip_sign(text);
    let (text, base) = match (text, base) {
        ([b'0', b'x' | b'X', digits @ ..], 0 | 16) if digits.first().is_some_and(u8::is_ascii_hexdigit) => (digits, 16),
        ([b'0', ..], 0) => (text, 8),
        (_, 0) => (text, 10),
        _ => (text, base),
    };
    let mut value: Option<i64> = None;
    for digit in text.iter().map_while(|&byte| char::from(byte).to_digit(base)) {
        value = Some((value.unwrap_or(0) * i64::from(base) + i64::from(digit)).min(1 << 32));
    }
    i32::try_from(if is_negative { -value? } else { value? }).ok()
}

/// What follows white space and a sign, and whether the sign was a minus.
fn skip_sign(text: &[u8]) -> (&[u8], bool) {
    let start = text.iter().position(|&byte| !is_space(byte)).unwrap_or(text.len());
    match &text[start..] {
        [b'-', rest @ ..] => (rest, true),
        [b'+', rest @ ..] => (rest, false),
        rest => (rest, false),
    }
}

/// The number that a text starts with. Nothing if there is none, or if it is too large or too small to be represented
/// well.
pub(crate) fn parse_float(text: &[u8]) -> Option<f64> {
    let (text, is_negative) = skip_sign(text);
    let is_word = text.get(..3).is_some_and(|start| matches!(&start.to_ascii_lowercase()[..], b"inf" | b"nan"));
    let number = &text[..if is_word { 3 } else { len_of_number(text) }];
    let value: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    let is_zero = number.iter().take_while(|byte| !byte.eq_ignore_ascii_case(&b'e')).all(|byte| b"0.".contains(byte));
    let value = Some(value).filter(|value| is_word || value.is_normal() || is_zero)?;
    Some(if is_negative { -value } else { value })
}

/// The length of the number that a text starts with: digits, a point, digits, and an exponent if it has digits.
fn len_of_number(text: &[u8]) -> usize {
    let digits = |at: usize| at + text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if text.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let start = end + 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        if text.get(start).is_some_and(u8::is_ascii_digit) {
            end = digits(start);
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_printf_does() {
        let cases = [
            (0.0, "0.0", "0"),
            (-0.0, "-0.0", "-0"),
            (1.5, "1.5", "1.5"),
            (100.0, "100.0", "100"),
            (0.0078125, "0.007812", "0.0078125"),
            (0.1 + 0.2, "0.3", "0.3"),
            (1e15, "1000000000000000.0", "1e+15"),
            (123456.5, "123456.5", "123456"),
            (123457.5, "123457.5", "123458"),
            (999999.5, "999999.5", "1e+06"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "0.00001", "1e-05"),
            (1e-7, "0.0", "1e-07"),
            (-2.5e-300, "-0.0", "-2.5e-300"),
            (1e22, "10000000000000000000000.0", "1e+22"),
            (f64::INFINITY, "inf", "inf"),
            (-f64::NAN.copysign(1.0), "-nan", "-nan"),
        ];
        for (value, with_fixed, with_general) in cases {
            assert_eq!((shown(value, false), shown(value, true)), (with_fixed.to_owned(), with_general.to_owned()));
        }
    }

    #[test]
    fn whole_numbers_as_strtol_does() {
        let cases: [(&str, u32, Option<i32>); 20] = [
            ("", 10, None),
            (" \t-12x", 10, Some(-12)),
            ("+-1", 10, None),
            ("2147483647", 10, Some(i32::MAX)),
            ("2147483648", 10, None),
            ("-2147483648", 10, Some(i32::MIN)),
            ("-2147483649", 10, None),
            ("99999999999999999999999999", 10, None),
            ("0x1f", 16, Some(31)),
            ("0x1f", 10, Some(0)),
            ("0x", 16, Some(0)),
            ("0xg", 0, Some(0)),
            ("0x10", 0, Some(16)),
            ("010", 0, Some(8)),
            ("08", 0, Some(0)),
            ("0b1", 2, Some(0)),
            ("zZ", 36, Some(35 * 36 + 35)),
            ("12\x000", 10, Some(12)),
            ("x", 10, None),
            ("7.9", 10, Some(7)),
        ];
        for (text, base, expected) in cases {
            assert_eq!(parse_int(text.as_bytes(), base), expected, "{text:?} in base {base}");
        }
    }

    #[test]
    fn floats_as_strtod_does() {
        let cases = [
            ("", None),
            (".", None),
            ("-.5e1x", Some(-5.0)),
            (" 5.", Some(5.0)),
            ("1e", Some(1.0)),
            ("1e+", Some(1.0)),
            ("1E2", Some(100.0)),
            ("0e999999999999999999999", Some(0.0)),
            ("1e309", None),
            ("1e-400", None),
            ("4.9406564584124654e-324", None),
            ("2.2250738585072014e-308", Some(f64::MIN_POSITIVE)),
            ("2.2250738585072009e-308", None),
            ("infinityx", Some(f64::INFINITY)),
            ("-InF", Some(f64::NEG_INFINITY)),
            ("0x1.8p1", Some(0.0)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_float(text.as_bytes()), expected, "{text:?}");
        }
        assert!(parse_float(b"-nan(12)").is_some_and(|value| value.is_nan() && value.is_sign_negative()));
    }
}
