//! Schedules: a cron expression, an interval or a moment. Due times follow from the schedule alone, so every node and
//! every restart computes the same ones.

use std::str::FromStr;

use croner::Cron;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan, Zoned};

use crate::time::Millis;

const MINUTE_MS: i64 = 60_000;

#[derive(Clone, Debug)]
pub struct Schedule {
    rule: ScheduleRule,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
enum ScheduleRule {
    Cron(Box<Cron>),
    /// Counted from the epoch, so that a restart changes nothing.
    Every(i64),
    At(Millis),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    #[error("{0:?} is not a time zone")]
    Zone(String),
    #[error("{0:?} is not a valid schedule: {1}")]
    Rule(String, String),
}

impl Schedule {
    /// Parses `*/5 * * * *`, `every 10m` or `at 2026-12-01 09:00`, in a zone like `Europe/Berlin`. Without a zone: UTC.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, InvalidSchedule> {
        let zone = match zone {
            Some(name) => TimeZone::get(name).map_err(|_| InvalidSchedule::Zone(name.to_owned()))?,
            None => TimeZone::UTC,
        };
        let refused = |why: String| InvalidSchedule::Rule(text.to_owned(), why);
        let rule = match text.trim().split_once(char::is_whitespace) {
            Some(("every", length)) => ScheduleRule::Every(parse_interval(length.trim()).map_err(refused)?),
            Some(("at", moment)) => ScheduleRule::At(parse_instant(moment.trim(), &zone).map_err(refused)?),
            _ => ScheduleRule::Cron(Box::new(parse_cron(text).map_err(refused)?)),
        };
        let schedule = Self { rule, zone };
        match schedule.has_occurrence() {
            true => Ok(schedule),
            false => Err(refused("it never matches a date".to_owned())),
        }
    }

    /// Returns whether the schedule is ever due. An expression may name a date that no year has; a moment in the past
    /// counts.
    fn has_occurrence(&self) -> bool {
        !matches!(self.rule, ScheduleRule::Cron(_)) || self.next(Millis(0)).is_some()
    }

    /// Returns the first due time after a moment.
    pub fn next(&self, after: Millis) -> Option<Millis> {
        match &self.rule {
            ScheduleRule::Every(length) => Some(Millis((after.0.div_euclid(*length) + 1) * length)),
            ScheduleRule::At(moment) => (*moment > after).then_some(*moment),
            ScheduleRule::Cron(cron) => {
                let from = Zoned::new(Timestamp::from_millisecond(after.0).ok()?, self.zone.clone());
                let next = cron.find_next_occurrence(&from, false).ok()?;
                Some(Millis(next.timestamp().as_millisecond()))
            }
        }
    }

    /// Returns the last due time at or before `now`, and the number of due times after `since`, up to a bound.
    pub fn count_missed(&self, since: Millis, now: Millis) -> Option<MissedRuns> {
        let mut due = self.next(since).filter(|due| *due <= now)?;
        let mut count = 1;
        while count < MissedRuns::MAX_COUNTED_RUNS
            && let Some(next) = self.next(due).filter(|next| *next <= now)
        {
            (due, count) = (next, count + 1);
        }
        if count == MissedRuns::MAX_COUNTED_RUNS {
            due = self.previous_due(now).unwrap_or(due);
        }
        Some(MissedRuns { last: due, count })
    }

    fn previous_due(&self, now: Millis) -> Option<Millis> {
        match &self.rule {
            ScheduleRule::Every(length) => Some(Millis(now.0.div_euclid(*length) * length)),
            ScheduleRule::At(moment) => (*moment <= now).then_some(*moment),
            ScheduleRule::Cron(cron) => {
                let until = Zoned::new(Timestamp::from_millisecond(now.0).ok()?, self.zone.clone());
                let last = cron.find_previous_occurrence(&until, true).ok()?;
                Some(Millis(last.timestamp().as_millisecond()))
            }
        }
    }
}

/// Parses minute, hour, day, month and weekday. A sixth field would mean seconds; it is rejected because it is usually
/// a mistake.
fn parse_cron(text: &str) -> Result<Cron, String> {
    let fields = text.split_whitespace().count();
    if fields != 5 && !text.trim_start().starts_with('@') {
        return Err(format!("it has {fields} fields; expected five: minute hour day month weekday"));
    }
    Cron::from_str(text).map_err(|error| error.to_string())
}

/// Due times that were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedRuns {
    pub last: Millis,
    /// At [`Self::MAX_COUNTED_RUNS`], that many or more.
    pub count: usize,
}

impl MissedRuns {
    pub const MAX_COUNTED_RUNS: usize = 1_000;
}

/// Parses `90s`, `10m`, `1h30m` or `2d` to milliseconds; at least one second.
pub fn parse_interval(text: &str) -> Result<i64, String> {
    let mut total: i64 = 0;
    let mut digits = String::new();
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
            continue;
        }
        let unit = match c {
            's' => 1_000,
            'm' => MINUTE_MS,
            'h' => 60 * MINUTE_MS,
            'd' => 24 * 60 * MINUTE_MS,
            _ => return Err(format!("{c:?} is not a unit; use s, m, h or d")),
        };
        let number: i64 =
            std::mem::take(&mut digits).parse().map_err(|_| "a unit needs a number".to_owned())?;
        total = number.checked_mul(unit).and_then(|more| total.checked_add(more)).ok_or("it is too long")?;
    }
    match total {
        _ if !digits.is_empty() => Err("a number needs a unit: s, m, h or d".to_owned()),
        1_000.. => Ok(total),
        _ => Err("it is shorter than one second".to_owned()),
    }
}

/// Parses a moment with its own offset, or a local time of the zone.
fn parse_instant(text: &str, zone: &TimeZone) -> Result<Millis, String> {
    let moment = match text.parse::<Timestamp>() {
        Ok(moment) => moment,
        Err(_) => {
            let clock: DateTime = text.parse().map_err(|error: jiff::Error| error.to_string())?;
            resolve_local_time(clock, zone).map_err(|error| error.to_string())?
        }
    };
    Ok(Millis(moment.as_millisecond()))
}

/// Resolves a local time. A time in a gap becomes the end of the gap; of an ambiguous time the first is used.
fn resolve_local_time(clock: DateTime, zone: &TimeZone) -> Result<Timestamp, jiff::Error> {
    let ambiguous = zone.to_ambiguous_timestamp(clock);
    let is_left_out = matches!(ambiguous.offset(), AmbiguousOffset::Gap { .. });
    let moment = ambiguous.compatible()?;
    // `compatible` shifts a time in a gap past the change; use the change itself.
    let change = zone.preceding(moment.checked_add(1.second())?).next();
    Ok(change.filter(|_| is_left_out).map_or(moment, |change| change.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Millis {
        Millis(text.parse::<Timestamp>().unwrap().as_millisecond())
    }

    fn due(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(schedule, Some(zone)).unwrap();
        let next = |after: &Millis| schedule.next(*after);
        let times = std::iter::successors(next(&at(after)), next).take(count);
        times.map(|time| Timestamp::from_millisecond(time.0).unwrap().to_string()).collect()
    }

    #[test]
    fn cron_schedule_follows_its_time_zone() {
        let days = due("0 9 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", 3);
        assert_eq!(days, ["2026-10-24T07:00:00Z", "2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"]);
        assert_eq!(
            due("*/20 * * * *", "UTC", "2026-01-01T00:00:00Z", 2),
            ["2026-01-01T00:20:00Z", "2026-01-01T00:40:00Z"]
        );
    }

    #[test]
    fn repeated_hour_is_due_once_and_skipped_hour_still_runs() {
        let autumn = due("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2);
        assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        let spring = due("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2);
        assert_eq!(spring.len(), 2);
        assert_eq!(spring[0], "2026-03-29T01:00:00Z");
        assert_eq!(spring[1], "2026-03-30T00:30:00Z");
    }

    /// Zones change their clocks on different days and hours, and by different amounts.
    #[test]
    fn daylight_saving_rules_follow_each_time_zone() {
        let autumn = due("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2);
        assert_eq!(
            autumn,
            ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
            "half past one comes twice, and is due once"
        );
        let hourly = due("30 * * * *", "America/New_York", "2026-11-01T04:00:00Z", 4);
        assert_eq!(hourly[0], "2026-11-01T04:30:00Z");
        assert!(hourly.windows(2).all(|pair| pair[0] < pair[1]), "{hourly:?}");
        let spring = due("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 2);
        assert_eq!(spring, ["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"], "half past two is left out");
        // Lord Howe Island goes back by half an hour, in April.
        let howe = due("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", 2);
        assert_eq!(howe, ["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"]);
        assert_eq!(
            due("at 2026-11-01 01:30", "America/New_York", "2026-01-01T00:00:00Z", 2),
            ["2026-11-01T05:30:00Z"]
        );
    }

    #[test]
    fn intervals_are_counted_from_the_epoch() {
        assert_eq!(
            due("every 10m", "UTC", "2026-01-01T00:03:00Z", 2),
            ["2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z"]
        );
        assert_eq!(due("every 1h30m", "UTC", "1970-01-01T00:00:00Z", 1), ["1970-01-01T01:30:00Z"]);
    }

    #[test]
    fn at_schedule_is_due_once() {
        assert_eq!(
            due("at 2026-12-01 09:00", "Europe/Berlin", "2026-01-01T00:00:00Z", 5),
            ["2026-12-01T08:00:00Z"]
        );
        for left_out in ["02:00", "02:30", "02:59"] {
            let once = format!("at 2027-03-28 {left_out}");
            let moment = due(&once, "Europe/Berlin", "2027-01-01T00:00:00Z", 2);
            assert_eq!(moment, ["2027-03-28T01:00:00Z"], "{once}: as a cron expression has it");
        }
        let twice = due("at 2026-10-25 02:30", "Europe/Berlin", "2026-01-01T00:00:00Z", 2);
        assert_eq!(twice, ["2026-10-25T00:30:00Z"]);
        assert_eq!(due("at 2026-12-01T09:00:00Z", "Asia/Tokyo", "2026-12-01T09:00:00Z", 5), [] as [&str; 0]);
    }

    #[test]
    fn missed_runs_are_counted_with_last_due_time() {
        let hourly = Schedule::parse("0 * * * *", None).unwrap();
        let missed = |since, now| hourly.count_missed(at(since), at(now));
        assert_eq!(missed("2026-01-01T00:00:00Z", "2026-01-01T00:59:00Z"), None);
        let five = missed("2026-01-01T00:00:00Z", "2026-01-01T05:30:00Z");
        assert_eq!(five, Some(MissedRuns { last: at("2026-01-01T05:00:00Z"), count: 5 }));
        let year = missed("2025-01-01T00:00:00Z", "2026-01-01T00:30:00Z");
        assert_eq!(
            year,
            Some(MissedRuns { last: at("2026-01-01T00:00:00Z"), count: MissedRuns::MAX_COUNTED_RUNS })
        );
    }

    #[test]
    fn invalid_schedule_is_refused_with_reason() {
        for text in [
            "",
            "daily",
            "every",
            "every 5",
            "every m",
            "every 5w",
            "every 0s",
            "at noon",
            "61 * * * *",
            "* * *",
            "* * * * * *",
            "0 0 30 2 *",
        ] {
            assert!(Schedule::parse(text, None).is_err(), "{text:?}");
        }
        assert!(Schedule::parse("every 99999999999999999999d", None).is_err());
        assert_eq!(
            Schedule::parse("* * * * *", Some("Mars/One")).unwrap_err(),
            InvalidSchedule::Zone("Mars/One".into())
        );
    }
}
