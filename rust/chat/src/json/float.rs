//! Writes floating-point numbers with few digits: Grisu2, by Florian Loitsch ("Printing floating-point numbers quickly and
//! accurately with integers", 2010), as nlohmann's `dump` does it.
//!
//! The digits always read back as the same number. One number in a thousand or so gets more digits than it needs
//! (`377.67802790027997` for `377.67802790028`), which is why the standard library's formatting will not do.
//!
//! 1. The number and the ends of the interval that rounds to it are scaled by a power of ten, so that 3 to 32 bits
//!    stand before the binary point.
//! 2. Digits of the upper end are written until what is left is less than the interval.
//! 3. The last digit is lowered while this brings the result nearer to the number.
//!
//! Source: `nlohmann::detail::to_chars`, which `common/json.cpp` of llama.cpp calls. Deviations: 1. The powers of ten are
//! computed with big integers instead of looked up. Time: some microseconds.

/// The longest number that is written without an exponent, in digits before the point.
const MOST_DIGITS: i32 = 15;
/// The most zeros after the point.
const MOST_ZEROS: i32 = 3;

/// A number as JSON, always with a point or an exponent. One that is not finite is `null`.
pub(super) fn written(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value == 0.0 {
        return format!("{sign}0.0");
    }
    let (digits, exponent) = shortest(value.abs());
    let num_digits = digits.len() as i32;
    // How many digits stand before the point.
    let point = num_digits + exponent;
    if num_digits <= point && point <= MOST_DIGITS {
        format!("{sign}{digits}{}.0", "0".repeat((point - num_digits) as usize))
    } else if 0 < point && point <= MOST_DIGITS {
        let (whole, fraction) = digits.split_at(point as usize);
        format!("{sign}{whole}.{fraction}")
    } else if (-MOST_ZEROS..=0).contains(&point) {
        format!("{sign}0.{}{digits}", "0".repeat(-point as usize))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if point < 1 { '-' } else { '+' };
        format!("{sign}{first}{dot}{rest}e{exponent_sign}{:02}", (point - 1).abs())
    }
}

/// A number of 64 bits times a power of two.
#[derive(Clone, Copy)]
struct Scaled {
    bits: u64,
    exponent: i32,
}

impl Scaled {
    /// The same with the highest bit set.
    fn normalized(self) -> Self {
        let shift = self.bits.leading_zeros();
        Self { bits: self.bits << shift, exponent: self.exponent - shift as i32 }
    }

    /// The product, rounded.
    fn times(self, other: Self) -> Self {
        let product = u128::from(self.bits) * u128::from(other.bits) + (1 << 63);
        Self { bits: (product >> 64) as u64, exponent: self.exponent + other.exponent + 64 }
    }
}

/// The digits of a positive number, and the power of ten of the last one.
fn shortest(value: f64) -> (String, i32) {
    const BIAS: i32 = 1075;
    let (fraction, exponent) = (value.to_bits() & ((1 << 52) - 1), (value.to_bits() >> 52) as i32);
    let number = match exponent {
        0 => Scaled { bits: fraction, exponent: 1 - BIAS },
        _ => Scaled { bits: fraction | 1 << 52, exponent: exponent - BIAS },
    };
    // Half way to the next number and to the one before, which is nearer below a power of two.
    let above = Scaled { bits: 2 * number.bits + 1, exponent: number.exponent - 1 }.normalized();
    let below = match fraction == 0 && exponent > 1 {
        true => Scaled { bits: 4 * number.bits - 1, exponent: number.exponent - 2 },
        false => Scaled { bits: 2 * number.bits - 1, exponent: number.exponent - 1 },
    };
    let below = Scaled { bits: below.bits << (below.exponent - above.exponent), exponent: above.exponent };

    let power = decimal_scale(above.exponent);
    let ten = power_of_ten(power);
    let (number, above, below) = (number.normalized().times(ten), above.times(ten), below.times(ten));
    // Products are off by at most one.
    digits(number.bits, above.bits - 1, below.bits + 1, -above.exponent as u32, -power)
}

/// The power of ten that brings a number with this exponent to one between -60 and -32. Powers are 8 apart.
fn decimal_scale(exponent: i32) -> i32 {
    const LOWEST: i32 = -60;
    /// log10(2) times 2^18.
    const LOG: i32 = 78_913;
    let distance = LOWEST - exponent - 1;
    let power = distance * LOG / (1 << 18) + i32::from(distance > 0);
    (300 + power + 7) / 8 * 8 - 300
}

/// Digits of a number between two others, all with `point` bits after the binary point.
fn digits(number: u64, above: u64, below: u64, point: u32, mut exponent: i32) -> (String, i32) {
    let one = 1u64 << point;
    let (mut interval, mut distance) = (above - below, above - number);
    let (mut whole, mut fraction) = (above >> point, above & (one - 1));
    let mut digits = Vec::new();

    let num_whole = whole.ilog10();
    for left in (0..=num_whole).rev() {
        let unit = 10u64.pow(left);
        digits.push(b'0' + (whole / unit) as u8);
        whole %= unit;
        let rest = (whole << point) + fraction;
        if rest <= interval {
            lower(&mut digits, distance, interval, rest, unit << point);
            return (text(digits), exponent + left as i32);
        }
    }
    loop {
        fraction *= 10;
        digits.push(b'0' + (fraction >> point) as u8);
        fraction &= one - 1;
        exponent -= 1;
        interval *= 10;
        distance *= 10;
        if fraction <= interval {
            lower(&mut digits, distance, interval, fraction, one);
            return (text(digits), exponent);
        }
    }
}

fn text(digits: Vec<u8>) -> String {
    digits.into_iter().map(char::from).collect()
}

/// Lowers the last digit, by `unit` each, while the result comes nearer to the number and stays in the interval.
fn lower(digits: &mut [u8], distance: u64, interval: u64, mut rest: u64, unit: u64) {
    let Some(last) = digits.last_mut() else { return };
    while rest < distance
        && interval - rest >= unit
        && (rest + unit < distance || distance - rest > rest + unit - distance)
    {
        *last -= 1;
        rest += unit;
    }
}

/// A power of ten, rounded to 64 bits.
fn power_of_ten(power: i32) -> Scaled {
    /// More bits than the largest power has, and 66 more than needed of the inverse of one.
    const BITS: usize = 1152;
    // The number is `limbs` times `2^exponent`, the lowest limb first.
    let mut limbs = vec![0u32; 2 * BITS / 32];
    let mut exponent = 0;
    if power >= 0 {
        limbs[0] = 1;
        for _ in 0..power {
            let mut carry = 0;
            for limb in &mut limbs {
                let product = u64::from(*limb) * 10 + carry;
                (*limb, carry) = (product as u32, product >> 32);
            }
        }
    } else {
        limbs[2 * BITS / 32 - 1] = 1;
        exponent = -(2 * BITS as i32 - 32);
        for _ in power..0 {
            let mut rest = 0;
            for limb in limbs.iter_mut().rev() {
                let dividend = rest << 32 | u64::from(*limb);
                (*limb, rest) = ((dividend / 10) as u32, dividend % 10);
            }
        }
    }

    let top = limbs.iter().rposition(|&limb| limb != 0).unwrap_or(0);
    let limb = |back: usize| top.checked_sub(back).map_or(0, |at| u128::from(limbs[at]));
    let bits = limb(0) << 96 | limb(1) << 64 | limb(2) << 32 | limb(3);
    let shift = bits.leading_zeros();
    let bits = bits << shift;
    let rounded = (bits >> 64) + (bits >> 63 & 1);
    Scaled { bits: rounded as u64, exponent: exponent + 32 * (top as i32 - 3) - shift as i32 + 64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_look_as_nlohmann_writes_them() {
        let cases = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (2.5, "2.5"),
            (48.856_612_34, "48.85661234"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1e-7, "1e-07"),
            (123_456.789, "123456.789"),
            (1e14, "100000000000000.0"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-1.25e-10, "-1.25e-10"),
            (1.0 / 3.0, "0.3333333333333333"),
            (377.678_027_900_28, "377.67802790027997"),
            (f64::NAN, "null"),
        ];
        for (value, text) in cases {
            assert_eq!(written(value), text);
        }
    }

    #[test]
    fn written_numbers_read_back() {
        let mut bits = 1u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                assert_eq!(written(value).parse(), Ok(value));
            }
        }
    }
}
