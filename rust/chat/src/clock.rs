//! The time that templates see. It is passed as a value, since WebAssembly has no clock and the date of a conversation
//! must not change while it grows.
//!
//! As text it is `strftime` in the C locale, with the buffer of 100 bytes that llama.cpp gives it. Source: glibc's
//! `strftime`. Deviations: 1. Conversions are those of `chrono`: widths, the flags `^` and `#`, `%E` and `%O` are errors,
//! and `%f`, `%v` and `%+` are dates. 2. A year of more than six digits is an error.

use std::fmt::Write;

use chrono::{DateTime, FixedOffset};

/// A moment and its time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Now {
    /// Seconds since 1970-01-01 00:00:00 UTC.
    pub seconds: i64,
    /// How many seconds the zone is ahead of UTC.
    pub offset: i32,
    /// The zone's abbreviation, such as `UTC` or `CET`.
    pub zone: String,
}

impl Default for Now {
    /// The first moment of 1970, in UTC.
    fn default() -> Self {
        Self { seconds: 0, offset: 0, zone: "UTC".to_owned() }
    }
}

/// What fits into llama.cpp's buffer, without the NUL at the end.
const MOST_BYTES: usize = 99;

/// Writes a moment in a format. Nothing if the result is empty or too long, or if the format has an unknown conversion.
/// What is not UTF-8 stays as it is.
pub(crate) fn strftime(format: &[u8], now: &Now) -> Option<Vec<u8>> {
    let zone = FixedOffset::east_opt(now.offset)?;
    let time = DateTime::from_timestamp(now.seconds, 0)?.with_timezone(&zone);
    let mut text = Vec::new();
    for chunk in format.utf8_chunks() {
        // A zone of chrono's has no name. No format has a zero byte, so that it can stand for the percent signs of a text.
        let format = chunk.valid().replace("%%", "\0").replace("%Z", &now.zone.replace('%', "\0")).replace('\0', "%%");
        let mut valid = String::new();
        write!(valid, "{}", time.format(&format)).ok()?;
        text.extend_from_slice(valid.as_bytes());
        text.extend_from_slice(chunk.invalid());
    }
    Some(text).filter(|text| (1..=MOST_BYTES).contains(&text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected texts were printed by glibc 2.36, except where there is none.
    #[test]
    fn as_glibc_does() {
        let cases = [
            (1709251199, "%d %b %Y, %A %H:%M:%S", Some("29 Feb 2024, Thursday 23:59:59")),
            (
                1709251199,
                "%c|%x|%X|%r|%D|%F|%R|%T",
                Some("Thu Feb 29 23:59:59 2024|02/29/24|23:59:59|11:59:59 PM|02/29/24|2024-02-29|23:59|23:59:59"),
            ),
            (1709251199, "%j %U %W %V %G %g %u %w %y %C %s", Some("060 08 09 09 2024 24 4 4 24 20 1709251199")),
            (1709251199, "%e|%-d|%_m|%k|%l|%I|%p|%P|%z|%Z|%%Z", Some("29|29| 2|23|11|11|PM|pm|+0000|UTC|%Z")),
            (1609459200, "%F is in week %V of %G", Some("2021-01-01 is in week 53 of 2020")),
            (1735516800, "%F is in week %V of %G", Some("2024-12-30 is in week 01 of 2025")),
            (0, "%h|%n|%t|ü", Some("Jan|\n|\t|ü")),
            (0, "%10d", None),
            (0, "%Q", None),
            (i64::MAX, "%Y", None),
            (0, "", None),
        ];
        for (seconds, format, expected) in cases {
            let text = strftime(format.as_bytes(), &Now { seconds, ..Now::default() });
            assert_eq!(text.as_deref(), expected.map(str::as_bytes), "{format}");
        }
        assert!(strftime("%Y".repeat(24).as_bytes(), &Now::default()).is_some());
        assert!(strftime("%Y".repeat(25).as_bytes(), &Now::default()).is_none());
    }

    #[test]
    fn what_is_not_utf_8_stays() {
        let now = Now::default();
        assert_eq!(strftime(b"\xC3%Y\xE2\x82%%\xFF", &now).as_deref(), Some(&b"\xC31970\xE2\x82%\xFF"[..]));
        assert_eq!(strftime(b"%\xC3", &now), None);
    }

    #[test]
    fn zones_shift_the_clock() {
        let now = Now { seconds: 0, offset: -5 * 3600 - 1800, zone: "A%C".to_owned() };
        assert_eq!(strftime(b"%F %T %z %Z", &now).as_deref(), Some(&b"1969-12-31 18:30:00 -0530 A%C"[..]));
    }
}
