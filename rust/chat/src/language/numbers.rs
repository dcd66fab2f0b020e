//! Numbers to text and back, as the C library does it.
//!
//! Source: glibc's `printf` (`%f`, `%g`), `strtol` and `strtod` in the C locale, as `std::to_string`, `std::ostream`,
//! `std::stoi` and `std::stod` use them. Deviations: 1. `0b` is not a prefix, as in glibc before 2.38.
//!
//! Time: O(length), plus 1,074 digits for numbers that are about to underflow.

use crate::text::is_space;

/// With six digits after the point, without the zeros at the end except the first.
pub(crate) fn fixed(value: f64) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let digits = format!("{value:.6}");
    let digits = digits.trim_end_matches('0');
    if digits.ends_with('.') { format!("{digits}0") } else { digits.to_owned() }
}

/// With six significant digits, without the zeros at the end, and with an exponent if that is below -4 or above 5.
pub(crate) fn general(value: f64) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let digits = format!("{value:.*}", (5 - exponent) as usize);
        return if digits.contains('.') { trim_zeros(&digits).to_owned() } else { digits };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim_zeros(digits), exponent.abs())
}

fn trim_zeros(digits: &str) -> &str {
    digits.trim_end_matches('0').trim_end_matches('.')
}

fn not_finite(value: f64) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" })
}

/// The whole number that a text starts with, up to its first NUL. Nothing if there is none or it has more than 32 bits.
/// In base 0, the number's prefix gives its base.
pub(crate) fn parse_int(text: &[u8], base: u32) -> Option<i32> {
    let (text, is_negative) = skip_sign(text);
    let after_prefix = match text {
        [b'0', b'x' | b'X', digits @ ..] if base == 0 || base == 16 => {
            Some(digits).filter(|digits| digits.first().is_some_and(u8::is_ascii_hexdigit))
        }
        _ => None,
    };
    let base = match base {
        0 if after_prefix.is_some() => 16,
        0 if text.first() == Some(&b'0') => 8,
        0 => 10,
        base => base,
    };
    let mut value: Option<i64> = None;
    for digit in after_prefix.unwrap_or(text).iter().map_while(|&byte| char::from(byte).to_digit(base)) {
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
    let starts_with =
        |word: &str| text.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()));
    let value = if starts_with("inf") {
        f64::INFINITY
    } else if starts_with("nan") {
        f64::NAN.copysign(1.0)
    } else if let Some(value) = parse_hex(text) {
        value?
    } else {
        parse_decimal(text)?
    };
    Some(if is_negative { -value } else { value })
}

/// The parts of a number: digits without the point, how many of them are after the point, and the exponent.
struct Digits {
    digits: Vec<u8>,
    after_point: usize,
    exponent: i64,
}

/// Exponents are cut off here, beyond what any number of digits could bring back.
const MOST_EXPONENT: i64 = 1 << 40;

impl Digits {
    /// Reads digits, a point and an exponent after this letter. Nothing if there are no digits.
    fn read(text: &[u8], is_digit: fn(&u8) -> bool, letter: u8) -> Option<Self> {
        let count = |from: usize| text[from..].iter().take_while(|byte| is_digit(byte)).count();
        let before_point = count(0);
        let mut digits = text[..before_point].to_vec();
        let mut end = before_point;
        if text.get(end) == Some(&b'.') {
            let after_point = count(end + 1);
            digits.extend_from_slice(&text[end + 1..end + 1 + after_point]);
            end += 1 + after_point;
        }
        if digits.is_empty() {
            return None;
        }
        let after_point = digits.len() - before_point;
        let exponent = match &text[end..] {
            [first, rest @ ..] if first.eq_ignore_ascii_case(&letter) => read_exponent(rest),
            _ => 0,
        };
        Some(Self { digits, after_point, exponent })
    }
}

fn read_exponent(text: &[u8]) -> i64 {
    let (digits, is_negative) = match text {
        [b'-', rest @ ..] => (rest, true),
        [b'+', rest @ ..] => (rest, false),
        rest => (rest, false),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let exponent = digits.fold(0, |sum: i64, digit| (sum * 10 + i64::from(digit - b'0')).min(MOST_EXPONENT));
    if is_negative { -exponent } else { exponent }
}

fn parse_decimal(text: &[u8]) -> Option<f64> {
    let number = Digits::read(text, u8::is_ascii_digit, b'e')?;
    let digits = std::str::from_utf8(&number.digits).ok()?.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0.0);
    }
    let exponent = number.exponent - number.after_point as i64;
    let value: f64 = format!("{digits}e{exponent}").parse().ok()?;
    (value.is_finite() && !underflows(digits, value)).then_some(value)
}

/// Whether a number with these significant digits loses some of them because it is so small.
fn underflows(digits: &str, value: f64) -> bool {
    // A number just below the smallest normal one is rounded to that, and is too small if more exponents would have
    // let it round to less: if it is below 2^-1022 - 2^-1076, which starts with these digits.
    const ROUNDS_TO_NORMAL: &str = "2225073858507201259573821257020768020077";
    match value {
        f64::MIN_POSITIVE => digits < ROUNDS_TO_NORMAL,
        _ if value >= f64::MIN_POSITIVE => false,
        _ => {
            let exact = format!("{value:.1074}");
            let exact = exact.trim_start_matches(['0', '.']).trim_end_matches('0');
            exact != digits.trim_end_matches('0')
        }
    }
}

/// The value of a number that starts with `0x`. Some(None) if it is too large or too small.
fn parse_hex(text: &[u8]) -> Option<Option<f64>> {
    let [b'0', b'x' | b'X', text @ ..] = text else { return None };
    let number = Digits::read(text, u8::is_ascii_hexdigit, b'p')?;
    let mut mantissa: u64 = 0;
    let mut exponent = number.exponent - 4 * number.after_point as i64;
    for &digit in &number.digits {
        let digit = u64::from(char::from(digit).to_digit(16).unwrap_or(0));
        if mantissa >> 59 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            // The lowest bit stands for everything that is cut off.
            mantissa |= u64::from(digit != 0);
            exponent += 4;
        }
    }
    Some(scale(mantissa, exponent))
}

/// `mantissa * 2^exponent`, rounded to even. Nothing if that is too large, or so small that bits are lost.
fn scale(mantissa: u64, exponent: i64) -> Option<f64> {
    const LOWEST: i64 = -1074;
    if mantissa == 0 {
        return Some(0.0);
    }
    let zeros = mantissa.leading_zeros();
    let mantissa = mantissa << zeros;
    let exponent = exponent - i64::from(zeros) + 11;
    if exponent > 1100 {
        return None;
    }
    // Here, the number is `mantissa / 2^11 * 2^exponent`, with 53 bits before the point of `mantissa / 2^11`.
    let round = |cut: u32| {
        let kept = mantissa.checked_shr(cut).unwrap_or(0);
        let lost = mantissa - kept.checked_shl(cut).unwrap_or(0);
        let half = 1u64 << (cut - 1);
        (kept + u64::from(lost > half || lost == half && kept & 1 == 1), lost != 0)
    };
    let rounded = round(11).0;
    if exponent < LOWEST && !(exponent == LOWEST - 1 && rounded == 1 << 53) {
        let cut = 11 + (LOWEST - exponent);
        let (kept, is_inexact) = if cut > 63 { (0, true) } else { round(cut as u32) };
        return (!is_inexact).then(|| f64::from_bits(kept));
    }
    let value = match exponent < LOWEST {
        true => f64::MIN_POSITIVE,
        false => rounded as f64 * power_of_two(exponent),
    };
    value.is_finite().then_some(value)
}

/// 2^exponent, for exponents from -1074. In two steps, because `powi` overflows on its way to some of them.
fn power_of_two(exponent: i64) -> f64 {
    let normal = exponent.clamp(-1022, 971);
    2f64.powi(normal as i32) * 2f64.powi((exponent - normal) as i32)
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
            assert_eq!((fixed(value), general(value)), (with_fixed.to_owned(), with_general.to_owned()));
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
            ("2.2250738585072011e-308", None),
            ("2.22507385850720126e-308", Some(f64::MIN_POSITIVE)),
            ("infinityx", Some(f64::INFINITY)),
            ("-InF", Some(f64::NEG_INFINITY)),
            ("0x1.8p1", Some(3.0)),
            ("0x", Some(0.0)),
            ("0x.p1", Some(0.0)),
            ("0xAp-1", Some(5.0)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1p-1075", None),
            ("0x1.8p-1074", None),
            ("0x1p1024", None),
            ("0x1.fffffffffffff7p1023", Some(f64::MAX)),
            ("0x1.fffffffffffff8p1023", None),
            ("0x1.fffffffffffffp-1023", None),
            ("0x1.fffffffffffff8p-1023", Some(f64::MIN_POSITIVE)),
            ("0x1.000000000000080000000000000000001p0", Some(1.0 + f64::EPSILON)),
            ("0x1.00000000000008p0", Some(1.0)),
            ("0x0p99999999999999999999", Some(0.0)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_float(text.as_bytes()), expected, "{text:?}");
        }
        let exact = format!("{:.1074}", 5e-324);
        assert_eq!(parse_float(exact.as_bytes()), Some(5e-324));
        assert!(parse_float(b"-nan(12)").is_some_and(|value| value.is_nan() && value.is_sign_negative()));
    }
}
