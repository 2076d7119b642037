//! `polyclaw cron`: scheduled jobs of agents.

use polyclaw_api::cron::{CronJobList, CronJobView, CronRunResult};
use serde_json::{Map, Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::failure::CommandFailure;
use crate::output::{cell, visible_line};

/// Manage scheduled jobs of agents: list, show, add, edit, remove, run one now.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw cron list
  polyclaw cron add morning --schedule \"30 8 * * 1-5\" --timezone Europe/Berlin --message \"What is on today?\"
  polyclaw cron edit morning --deliver-to telegram:123456
  polyclaw cron run morning
  polyclaw cron remove morning

Jobs can also be defined in config.toml; change those in the file:
  [[cron]]
  id = \"morning\"
  schedule = \"30 8 * * 1-5\"                 # or \"every 10m\", or \"at 2026-12-01 09:00\"
  timezone = \"Europe/Berlin\"
  message = \"What is on today?\"
  deliver_to = { channel = \"telegram\", peer = \"123\" }")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<CronCommand>,
}

#[derive(clap::Subcommand)]
enum CronCommand {
    /// List every job and heartbeat with its next due time.
    #[command(after_help = "Examples:
  polyclaw cron list
  polyclaw cron list --json")]
    List,
    /// Show one job in full.
    #[command(after_help = "Examples:
  polyclaw cron show morning
  polyclaw cron show heartbeat:main")]
    Show {
        /// ID that `polyclaw cron list` shows.
        id: String,
    },
    /// Create a job. It is scheduled from now on and survives restarts.
    #[command(after_help = "Examples:
  polyclaw cron add morning --schedule \"30 8 * * 1-5\" --timezone Europe/Berlin --message \"What is on today?\"
  polyclaw cron add mail --schedule \"every 10m\" --agent ops --message \"Look at the mail.\" --catch-up once
  polyclaw cron add party --schedule \"at 2026-12-31 18:00\" --message \"Say hello.\" --deliver-to telegram:123456")]
    Add {
        /// ID of the job: up to 64 characters of a-z, 0-9, _ and -.
        id: String,
        #[command(flatten)]
        job: CronJobArgs,
    },
    /// Change a job. Settings that are not named stay as they are.
    #[command(after_help = "Examples:
  polyclaw cron edit morning --schedule \"0 9 * * 1-5\"
  polyclaw cron edit morning --disable
  polyclaw cron edit morning --keep-here")]
    Edit {
        /// ID that `polyclaw cron list` shows.
        id: String,
        #[command(flatten)]
        job: CronJobArgs,
        /// Enable the job: it runs on its schedule again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Disable the job: it runs only by hand until it is enabled.
        #[arg(long)]
        disable: bool,
        /// Keep the answer in the conversation; send it nowhere.
        #[arg(long, conflicts_with = "deliver_to")]
        keep_here: bool,
    },
    /// Delete a job. Its conversation stays readable.
    #[command(after_help = "Examples:
  polyclaw cron remove morning")]
    Remove {
        /// ID that `polyclaw cron list` shows.
        id: String,
    },
    /// Run a job now, in addition to its schedule.
    #[command(after_help = "Examples:
  polyclaw cron run morning
  polyclaw cron run heartbeat:main")]
    Run {
        /// ID that `polyclaw cron list` shows.
        id: String,
    },
}

#[derive(clap::Args)]
struct CronJobArgs {
    /// Schedule: a cron expression, "every 10m" or "at 2026-12-01 09:00".
    #[arg(long, value_name = "WHEN")]
    schedule: Option<String>,
    /// Message that the agent receives.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Agent that receives the message. If never set, the instance's default agent.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// Time zone of the schedule, such as Europe/Berlin. If never set, UTC.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Destination of the answer: channel:peer or channel:account:peer. If never set, the answer stays in the
    /// conversation.
    #[arg(long, value_name = "WHERE")]
    deliver_to: Option<String>,
    /// Handling of missed runs: skip them, or run once.
    #[arg(long, value_parser = ["skip", "once"])]
    catch_up: Option<String>,
}

impl CronJobArgs {
    /// Returns the given settings under the keys of `[[cron]]`.
    fn job_fields(&self) -> Result<Map<String, Value>, CommandFailure> {
        let named = [
            ("schedule", &self.schedule),
            ("message", &self.message),
            ("agent", &self.agent),
            ("timezone", &self.timezone),
            ("catch_up", &self.catch_up),
        ];
        let named =
            named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?))));
        let mut fields: Map<String, Value> = named.collect();
        if let Some(place) = &self.deliver_to {
            fields.insert("deliver_to".to_owned(), parse_address(place)?);
        }
        Ok(fields)
    }
}

fn parse_address(text: &str) -> Result<Value, CommandFailure> {
    let parts: Vec<&str> = text.splitn(3, ':').collect();
    match parts.as_slice() {
        [channel, peer] => Ok(json!({ "channel": channel, "peer": peer })),
        [channel, account, peer] => Ok(json!({ "channel": channel, "account": account, "peer": peer })),
        _ => Err(CommandFailure::usage("invalid destination: write channel:peer or channel:account:peer")),
    }
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let at = |id: &str| format!("/cron/{}", encode_segment(id));
    match &args.verb {
        None | Some(CronCommand::List) => list_jobs(&client, context).await,
        Some(CronCommand::Show { id }) => {
            let one: CronJobView = client.get_as(&at(id)).await?;
            Ok(context.output.print_value(&one, |_| job_text(&one))?)
        }
        Some(CronCommand::Add { id, job }) => {
            let mut body = job.job_fields()?;
            body.insert("id".to_owned(), json!(id));
            let made: CronJobView = client.post_as("/cron", &Value::Object(body)).await?;
            Ok(context
                .output
                .print_value(&made, |_| format!("Created job {id}; next due at {}.", cell(&made.next_due)))?)
        }
        Some(CronCommand::Edit { id, job, enable, disable, keep_here }) => {
            let mut patch = job.job_fields()?;
            if *enable || *disable {
                patch.insert("enabled".to_owned(), json!(*enable));
            }
            if *keep_here {
                patch.insert("deliver_to".to_owned(), Value::Null);
            }
            if patch.is_empty() {
                return Err(CommandFailure::usage("nothing to change: pass at least one setting").into());
            }
            let changed: CronJobView = client.patch_as(&at(id), &Value::Object(patch)).await?;
            Ok(context.output.print_value(&changed, |_| job_text(&changed))?)
        }
        Some(CronCommand::Remove { id }) => {
            let gone: Value = client.delete_as(&at(id)).await?;
            Ok(context
                .output
                .print_value(&gone, |_| format!("Deleted job {id}; its conversation stays readable."))?)
        }
        Some(CronCommand::Run { id }) => {
            let started: CronRunResult = client.post_as(&format!("{}/run", at(id)), &json!({})).await?;
            Ok(context.output.print_value(&started, |_| match &started.session_key {
                Some(session) => format!("Started in session {session}."),
                None => "Nothing to do.".to_owned(),
            })?)
        }
    }
}

async fn list_jobs(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let answer: CronJobList = client.get_as("/cron").await?;
    let row = |job: &CronJobView| {
        let next = if job.enabled { cell(&job.next_due) } else { "disabled".to_owned() };
        vec![
            visible_line(&job.id),
            schedule_text(job),
            cell(&job.agent_id),
            visible_line(&job.source),
            cell(&job.last_due),
            next,
        ]
    };
    let rows: Vec<_> = answer.cron.iter().map(row).collect();
    Ok(context.output.print_value(&answer, |output| {
        if rows.is_empty() {
            "No cron jobs. `polyclaw cron add --help` shows how to create one.".to_owned()
        } else {
            output.format_table(&["ID", "SCHEDULE", "AGENT", "SOURCE", "LAST DUE", "NEXT DUE"], &rows)
        }
    })?)
}

/// Returns the schedule, with its time zone if one is set.
fn schedule_text(job: &CronJobView) -> String {
    let schedule = visible_line(&job.schedule);
    match &job.timezone {
        Some(zone) => format!("{schedule} {zone}"),
        None => schedule,
    }
}

fn job_text(job: &CronJobView) -> String {
    let answer = match &job.deliver_to {
        Some(to) => visible_line(&format!("{}:{}:{}", to.channel, to.account, to.peer)),
        None => "stays in the conversation".to_owned(),
    };
    let lines = [
        ("id", visible_line(&job.id)),
        ("schedule", schedule_text(job)),
        ("agent", cell(&job.agent_id)),
        ("session", cell(&job.session_key)),
        ("message", cell(&job.message)),
        ("catch up", cell(&job.catch_up)),
        ("enabled", cell(&job.enabled)),
        ("source", visible_line(&job.source)),
        ("created by", cell(&job.created_by)),
        ("last due", cell(&job.last_due)),
        ("next due", cell(&job.next_due)),
        ("answer", answer),
    ];
    lines.map(|(title, value)| format!("{title:<10} {value}")).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivery_address_is_parsed_with_and_without_account() {
        assert_eq!(parse_address("telegram:-7").unwrap(), json!({ "channel": "telegram", "peer": "-7" }));
        let whole = parse_address("matrix:work:!room:example.org").unwrap();
        assert_eq!(whole, json!({ "channel": "matrix", "account": "work", "peer": "!room:example.org" }));
        assert!(parse_address("telegram").is_err());
    }
}
