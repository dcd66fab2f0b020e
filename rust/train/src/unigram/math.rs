//! Exponential, logarithm and digamma, computed only by addition, multiplication and division.
//!
//! The system's functions differ in their last bits between platforms, and the trained vocabulary would differ too.
//! These are the same everywhere, and short enough to be inlined into the loops over a lattice.
//!
//! Accuracy: a relative error below 1e-14 for `exp`, an absolute one below 1e-14 for `ln` of normal numbers.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// e to the power `x`, for `x` up to 709; zero below -708.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    // x = k ln 2 + rest, with the rest between -ln(2)/2 and ln(2)/2. ln 2 is in two parts, the first with trailing
    // zeros.
    const HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
    const LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
    // Adding and subtracting this rounds to an integer.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let k = (x * LOG2_E + ROUND) - ROUND;
    let rest = (x - k * HIGH) - k * LOW;
    // Taylor's series; the first term left out is below 2e-16.
    let series = INVERSE_FACTORIALS.iter().rfold(0.0, |sum, inverse| sum * rest + inverse);
    series * f64::from_bits(((k as i64 + 1023) as u64) << 52)
}

const INVERSE_FACTORIALS: [f64; 13] = {
    let mut inverse = [1.0; 13];
    let mut n = 1;
    while n < inverse.len() {
        inverse[n] = inverse[n - 1] / n as f64;
        n += 1;
    }
    inverse
};

/// The natural logarithm of a normal positive number.
#[inline(always)]
pub(crate) fn ln(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & MANTISSA | 1023 << 52);
    if mantissa > SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // 2 artanh(s) = ln((1 + s) / (1 - s)), with |s| below 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let series = (0..10).rfold(0.0, |sum, n| sum * square + 1.0 / f64::from(2 * n + 1));
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// The derivative of the logarithm of the gamma function, for positive `x`.
///
/// Source: the recurrence up to 7, and from there the asymptotic series around `x - 1/2`.
pub(super) fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 7.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    x -= 0.5;
    let inverse = 1.0 / (x * x);
    let series = [1.0 / 24.0, -7.0 / 960.0, 31.0 / 8064.0, -127.0 / 30720.0];
    sum + ln(x) + inverse * series.iter().rfold(0.0, |sum, term| sum * inverse + term)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_exponential_is_accurate(x in -707.0..700.0) {
            prop_assert!((exp(x) / f64::exp(x) - 1.0).abs() < 1e-14, "{x}");
        }

        #[test]
        fn the_logarithm_is_accurate(x in prop::num::f64::POSITIVE | prop::num::f64::NORMAL) {
            let x = x.abs();
            prop_assert!((ln(x) - x.ln()).abs() < 1e-14 * x.ln().abs().max(1.0), "{x}");
        }

        /// ψ(x + 1) = ψ(x) + 1/x.
        #[test]
        fn digamma_follows_its_recurrence(x in 0.1..1e9) {
            prop_assert!((digamma(x + 1.0) - digamma(x) - 1.0 / x).abs() < 1e-9, "{x}");
        }
    }

    #[test]
    fn known_values() {
        assert_eq!((exp(0.0), ln(1.0), exp(-800.0)), (1.0, 0.0, 0.0));
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-9);
        assert!((digamma(0.5) + 1.963_510_026_021_423_5).abs() < 1e-9);
    }
}
