//! Time is integer milliseconds since 1970 (UTC) inside, and RFC 3339 with milliseconds at every interface.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Millis {
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    pub fn minus(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }

    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time for people: to the minute, with the time zone.
    pub fn to_minute(self) -> String {
        let written = self.to_string();
        let (day, clock) = written.split_once('T').unwrap_or((&written, ""));
        format!("{day} {} UTC", clock.get(..5).unwrap_or_default())
    }

    pub fn parse(text: &str) -> Option<Self> {
        parse_rfc3339(text)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, ms) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let (year, month, day) = civil_date(days);
        let (h, m, s) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{:03}Z", ms % 1000)
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

/// Converts days since 1970 to a Gregorian date, in eras of 400 years that begin on 1 March.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let year_of_era = y.rem_euclid(400);
    let day_of_era =
        year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + (153 * shifted + 2) / 5 + day - 1;
    y.div_euclid(400) * 146_097 + day_of_era - 719_468
}

fn parse_rfc3339(text: &str) -> Option<Millis> {
    let number = |range: std::ops::Range<usize>| -> Option<i64> {
        let digits = text.get(range)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (h, m, s) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let bytes = text.as_bytes();
    let marks = bytes[4] == b'-' && bytes[7] == b'-' && bytes[13] == b':' && bytes[16] == b':';
    let separator = matches!(bytes[10], b'T' | b't' | b' ');
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && h < 24 && m < 60 && s <= 60;
    if !(marks
        && separator
        && in_range
        && civil_date(days_since_epoch(year, month, day)) == (year, month, day))
    {
        return None;
    }
    let (millis, zone) = parse_fraction(text.get(19..)?)?;
    let seconds = days_since_epoch(year, month, day) * 86_400 + h * 3600 + m * 60 + s - offset_seconds(zone)?;
    Some(Millis(seconds * 1000 + millis))
}

/// Splits `.123456Z` into whole milliseconds and the zone.
fn parse_fraction(rest: &str) -> Option<(i64, &str)> {
    let Some(digits) = rest.strip_prefix('.') else { return Some((0, rest)) };
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    let mut shown: String = digits[..end].chars().take(3).collect();
    while shown.len() < 3 {
        shown.push('0');
    }
    (end > 0).then_some((shown.parse().ok()?, &digits[end..]))
}

fn offset_seconds(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    if hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_instants_read_as_people_write_them() {
        assert_eq!(Millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Millis(951_782_399_999).to_string(), "2000-02-28T23:59:59.999Z");
        assert_eq!(Millis(951_782_400_000).to_string(), "2000-02-29T00:00:00.000Z");
        assert_eq!(Millis(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert_eq!(Millis::parse("2000-02-29T01:00:00.5+01:00"), Some(Millis(951_782_400_500)));
    }

    #[test]
    fn a_length_is_said_in_two_units_at_most() {
        let texts = [999, 59_999, 2_049_000, 7_500_000, 108_000_001].map(format_duration);
        assert_eq!(texts, ["0 s", "59 s", "34 min", "2 h 5 min", "1 d 6 h"]);
    }

    #[test]
    fn nonsense_is_refused() {
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
        fn what_is_written_is_read_back(ms in -62_135_596_800_000i64..253_402_300_799_999) {
            prop_assert_eq!(Millis::parse(&Millis(ms).to_string()), Some(Millis(ms)));
        }
    }
}
