//! Time is integer milliseconds since 1970 (UTC) inside, and RFC 3339 with milliseconds at every interface.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Millis {
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    pub fn plus_duration(self, duration: Duration) -> Self {
        self.plus(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
    }

    pub fn minus(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time for people: to the minute, with the time zone.
    pub fn to_minute(self) -> String {
        self.timestamp().strftime("%Y-%m-%d %H:%M UTC").to_string()
    }

    /// Reads an RFC 3339 time with an offset. Digits below a millisecond are cut off.
    pub fn parse(text: &str) -> Option<Self> {
        let nanoseconds = text.parse::<Timestamp>().ok()?.as_nanosecond();
        i64::try_from(nanoseconds.div_euclid(1_000_000)).ok().map(Self)
    }

    /// Clamps times outside the years -9999 to 9999.
    fn timestamp(self) -> Timestamp {
        let limit = if self.0 < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::from_millisecond(self.0).unwrap_or(limit)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.timestamp())
    }
}

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("'{text}' is not an RFC 3339 time")))
    }
}

const DAY_MS: i64 = 86_400_000;

/// Returns a duration for people, with at most two units.
pub fn format_duration(ms: i64) -> String {
    let (days, hours, minutes) = (ms / DAY_MS, ms / 3_600_000 % 24, ms / 60_000 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{} s", ms / 1000),
        (0, 0, _) => format!("{minutes} min"),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_instants_format_as_rfc3339() {
        assert_eq!(Millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis(951_782_399_999).to_string(), "2000-02-28T23:59:59.999Z");
        assert_eq!(Millis(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Millis::parse("2000-02-29T01:00:00.5+01:00"), Some(Millis(951_782_400_500)));
    }

    #[test]
    fn duration_uses_at_most_two_units() {
        let texts = [999, 59_999, 2_049_000, 7_500_000, 108_000_001].map(format_duration);
        assert_eq!(texts, ["0 s", "59 s", "34 min", "2 h 5 min", "1 d 6 h"]);
    }

    #[test]
    fn invalid_timestamp_is_refused() {
        for bad in [
            "",
            "2000",
            "2001-02-29T00:00:00Z",
            "2000-01-01T00:00:00",
            "2000-13-01T00:00:00Z",
            "2000-01-01T00:00:00.Z",
        ] {
            assert_eq!(Millis::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn formatted_value_parses_back(ms in -62_135_596_800_000i64..253_402_300_799_999) {
            prop_assert_eq!(Millis::parse(&Millis(ms).to_string()), Some(Millis(ms)));
        }
    }
}
