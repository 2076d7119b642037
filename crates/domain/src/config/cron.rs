//! `[[cron]]` and `[heartbeat.<agent>]`: what agents do on a schedule.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::agents::AgentsConfig;
use super::channels::ChannelsConfig;
use super::key_names;
use super::report::ConfigReport;
use crate::channel::ChatAddress;
use crate::id::AgentId;
use crate::schedule::{InvalidSchedule, Schedule};

/// A cron job: a message that an agent gets at set times, in the conversation `cron:<id>`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CronJobConfig {
    /// Its id: `a-z`, `0-9`, `_` and `-`.
    pub id: String,
    /// When: a cron expression (`30 8 * * 1-5`), `every 10m`, or `at 2026-12-01 09:00`.
    pub schedule: String,
    /// The agent that gets the message. Defaults to the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The message.
    pub message: String,
    /// Where the answer goes. If omitted, it is only stored in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_to: Option<DeliverTo>,
    /// The time zone, such as `Europe/Berlin`. Defaults to UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// How runs are handled that were missed while Polyclaw was not running.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// Whether the job runs.
    #[serde(default = "default_enabled")]
    pub enabled: bool,
}

/// How missed runs are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are skipped, and an event records that.
    #[default]
    Skip,
    /// One run replaces all missed ones; its message says how late it is.
    Once,
}

/// A conversation on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeliverTo {
    /// The channel, such as `telegram`.
    pub channel: String,
    /// The account that sends. Defaults to the channel's default account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The conversation, by platform id.
    pub peer: String,
    /// A thread or topic in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// A periodic check of an agent's `HEARTBEAT.md`, in its main conversation. Without that file no model is called, and
/// an agent with nothing to report sends nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatConfig {
    /// The interval, such as `30m`, or a cron expression.
    #[serde(default = "default_heartbeat_interval")]
    pub every: String,
    /// The time zone of a cron expression. Defaults to UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Where reports go. If omitted, they are only stored in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deliver_to: Option<DeliverTo>,
}

fn default_enabled() -> bool {
    true
}

fn default_heartbeat_interval() -> String {
    "30m".to_owned()
}

impl CronJobConfig {
    /// Returns whether the id has 1 to 64 of `a-z`, `0-9`, `_` and `-`.
    pub fn is_job_name(id: &str) -> bool {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        !id.is_empty() && id.len() <= 64 && id.chars().all(word)
    }

    pub fn parse_schedule(&self) -> Result<Schedule, InvalidSchedule> {
        Schedule::parse(&self.schedule, self.timezone.as_deref())
    }
}

impl HeartbeatConfig {
    pub fn parse_schedule(&self) -> Result<Schedule, InvalidSchedule> {
        Schedule::parse(&self.schedule_text(), self.timezone.as_deref())
    }

    fn schedule_text(&self) -> String {
        let is_cron = self.every.contains(char::is_whitespace);
        if is_cron { self.every.clone() } else { format!("every {}", self.every) }
    }
}

impl DeliverTo {
    pub fn resolve_address(&self, channels: &ChannelsConfig) -> ChatAddress {
        let usual = channels.default_accounts().get(self.channel.as_str()).copied().unwrap_or_default();
        self.address_with_default(usual)
    }

    /// Returns the address; `usual` is the account used if none is named.
    pub fn address_with_default(&self, usual: &str) -> ChatAddress {
        ChatAddress {
            channel: self.channel.clone(),
            account: self.account.clone().unwrap_or_else(|| usual.to_owned()),
            peer: self.peer.clone(),
            thread: self.thread.clone(),
        }
    }

    fn report_errors(&self, path: &str, accounts: &Accounts<'_>, report: &mut ConfigReport) {
        let usual = accounts.usual.get(self.channel.as_str()).copied().unwrap_or_default();
        let address = self.address_with_default(usual);
        let names = accounts.names.get(address.channel.as_str());
        if !names.is_some_and(|names| names.contains(address.account.as_str())) {
            let message =
                format!("there is no account {:?} of channel {:?}", address.account, address.channel);
            report.add_error(path, message, "add it under [channels], or use a configured account");
        }
    }
}

/// The accounts that jobs can deliver to, collected once for all jobs.
struct Accounts<'a> {
    usual: BTreeMap<&'static str, &'a str>,
    names: BTreeMap<&'static str, BTreeSet<&'a str>>,
}

impl<'a> Accounts<'a> {
    fn of(channels: &'a ChannelsConfig) -> Self {
        Self { usual: channels.default_accounts(), names: channels.accounts_by_name() }
    }
}

pub(super) fn check_cron_jobs(
    jobs: &[CronJobConfig],
    agents: &AgentsConfig,
    channels: &ChannelsConfig,
    report: &mut ConfigReport,
) {
    let (mut seen, accounts) = (BTreeSet::new(), Accounts::of(channels));
    for (at, job) in jobs.iter().enumerate() {
        let path = format!("cron[{at}]");
        if !CronJobConfig::is_job_name(&job.id) {
            let message = format!("{:?} is not a valid job name", job.id);
            report.add_error(&format!("{path}.id"), message, "use up to 64 of a-z, 0-9, '_' and '-'");
        }
        if !seen.insert(&job.id) {
            report.add_error(&format!("{path}.id"), format!("there are two jobs {:?}", job.id), "rename one");
        }
        if job.message.trim().is_empty() {
            report.add_error(&format!("{path}.message"), "the message is empty", "set message");
        }
        check_schedule(
            |zone| Schedule::parse(&job.schedule, zone),
            &job.timezone,
            (&path, "schedule"),
            report,
        );
        if let Some(agent) = &job.agent {
            agents.check_agent_exists(agent, &format!("{path}.agent"), report);
        }
        if let Some(to) = &job.deliver_to {
            to.report_errors(&format!("{path}.deliver_to"), &accounts, report);
        }
    }
}

pub(super) fn check_heartbeats(
    beats: &BTreeMap<String, HeartbeatConfig>,
    agents: &AgentsConfig,
    channels: &ChannelsConfig,
    report: &mut ConfigReport,
) {
    let accounts = Accounts::of(channels);
    for (agent, beat) in beats {
        let path = key_names::join_key("heartbeat", agent);
        match AgentId::parse(agent) {
            Ok(agent) => agents.check_agent_exists(&agent, &path, report),
            Err(error) => report.add_error(&path, error.to_string(), "use the id of an agent"),
        }
        check_schedule(
            |zone| Schedule::parse(&beat.schedule_text(), zone),
            &beat.timezone,
            (&path, "every"),
            report,
        );
        if let Some(to) = &beat.deliver_to {
            to.report_errors(&format!("{path}.deliver_to"), &accounts, report);
        }
    }
}

/// Reports errors of the schedule even if its time zone is invalid.
fn check_schedule(
    parse: impl Fn(Option<&str>) -> Result<Schedule, InvalidSchedule>,
    zone: &Option<String>,
    (path, key): (&str, &str),
    report: &mut ConfigReport,
) {
    let mut parsed = parse(zone.as_deref());
    if let Err(error @ InvalidSchedule::Zone(_)) = &parsed {
        report.add_error(&format!("{path}.timezone"), error.to_string(), "use a name like Europe/Berlin");
        parsed = parse(None);
    }
    if let Err(error) = parsed {
        let hint = "use `30 8 * * 1-5`, `every 10m` or `at 2026-12-01 09:00`";
        report.add_error(&format!("{path}.{key}"), error.to_string(), hint);
    }
}
