//! The time that templates see. It is passed as a value, since WebAssembly has no clock and the date of a conversation
//! must not change while it grows.

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
