//! `polyclaw cron`: what agents do at set times.

use serde_json::{Map, Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output::cell;

/// What agents do at set times: list, show, add, edit, remove, run one now.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw cron list
  polyclaw cron add morning --schedule \"30 8 * * 1-5\" --timezone Europe/Berlin --message \"What is on today?\"
  polyclaw cron edit morning --deliver-to telegram:123456
  polyclaw cron run morning
  polyclaw cron remove morning

Jobs can be in config.toml too, where they are changed and not here:
  [[cron]]
  id = \"morning\"
  schedule = \"30 8 * * 1-5\"                 # or \"every 10m\", or \"at 2026-12-01 09:00\"
  timezone = \"Europe/Berlin\"
  message = \"What is on today?\"
  deliver_to = { channel = \"telegram\", peer = \"123\" }")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Every job and heartbeat, and when it is due.
    #[command(after_help = "Examples:
  polyclaw cron list
  polyclaw cron list --json")]
    List,
    /// Show one whole.
    #[command(after_help = "Examples:
  polyclaw cron show morning
  polyclaw cron show heartbeat:main")]
    Show {
        /// The ID that `polyclaw cron list` shows.
        id: String,
    },
    /// Make a job. It begins from now and outlives restarts.
    #[command(after_help = "Examples:
  polyclaw cron add morning --schedule \"30 8 * * 1-5\" --timezone Europe/Berlin --message \"What is on today?\"
  polyclaw cron add mail --schedule \"every 10m\" --agent ops --message \"Look at the mail.\" --catch-up once
  polyclaw cron add party --schedule \"at 2026-12-31 18:00\" --message \"Say hello.\" --deliver-to telegram:123456")]
    Add {
        /// Its name: up to 64 of a-z, 0-9, _ and -.
        id: String,
        #[command(flatten)]
        job: Job,
    },
    /// Change a job; what is not named stays.
    #[command(after_help = "Examples:
  polyclaw cron edit morning --schedule \"0 9 * * 1-5\"
  polyclaw cron edit morning --disable
  polyclaw cron edit morning --keep-here")]
    Edit {
        /// The ID that `polyclaw cron list` shows.
        id: String,
        #[command(flatten)]
        job: Job,
        /// It comes by itself again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// It rests until it is enabled, or run by hand.
        #[arg(long)]
        disable: bool,
        /// The answer is sent nowhere any more.
        #[arg(long, conflicts_with = "deliver_to")]
        keep_here: bool,
    },
    /// Take a job away; its conversation stays readable.
    #[command(after_help = "Examples:
  polyclaw cron remove morning")]
    Remove {
        /// The ID that `polyclaw cron list` shows.
        id: String,
    },
    /// Run one now, beside its schedule.
    #[command(after_help = "Examples:
  polyclaw cron run morning
  polyclaw cron run heartbeat:main")]
    Run {
        /// The ID that `polyclaw cron list` shows.
        id: String,
    },
}

#[derive(clap::Args)]
struct Job {
    /// When: a cron expression, "every 10m" or "at 2026-12-01 09:00".
    #[arg(long, value_name = "WHEN")]
    schedule: Option<String>,
    /// What the agent is told.
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// The agent that gets it. The instance's default one if never named.
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The zone of its times, such as Europe/Berlin. UTC if never named.
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Where the answer is sent: channel:peer, or channel:account:peer. Else it stays in the conversation.
    #[arg(long, value_name = "WHERE")]
    deliver_to: Option<String>,
    /// What becomes of runs that were missed: skip, or once.
    #[arg(long, value_parser = ["skip", "once"])]
    catch_up: Option<String>,
}

impl Job {
    /// What was named, in the words of `[[cron]]`.
    fn fields(&self) -> Result<Map<String, Value>, Failure> {
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
            fields.insert("deliver_to".to_owned(), place_of(place)?);
        }
        Ok(fields)
    }
}

fn place_of(text: &str) -> Result<Value, Failure> {
    let parts: Vec<&str> = text.splitn(3, ':').collect();
    match parts.as_slice() {
        [channel, peer] => Ok(json!({ "channel": channel, "peer": peer })),
        [channel, account, peer] => Ok(json!({ "channel": channel, "account": account, "peer": peer })),
        _ => Err(Failure::usage("where an answer goes is written channel:peer or channel:account:peer")),
    }
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let at = |id: &str| format!("/cron/{}", segment(id));
    match &args.verb {
        None | Some(Verb::List) => list(&client, context).await,
        Some(Verb::Show { id }) => {
            let one = client.get(&at(id)).await?;
            Ok(context.output.say(&one, |_| shown(&one))?)
        }
        Some(Verb::Add { id, job }) => {
            let mut body = job.fields()?;
            body.insert("id".to_owned(), json!(id));
            let made = client.post("/cron", &Value::Object(body)).await?;
            Ok(context.output.say(&made, |_| format!("{id} is next due at {}.", cell(&made["next_due"])))?)
        }
        Some(Verb::Edit { id, job, enable, disable, keep_here }) => {
            let mut patch = job.fields()?;
            if *enable || *disable {
                patch.insert("enabled".to_owned(), json!(*enable));
            }
            if *keep_here {
                patch.insert("deliver_to".to_owned(), Value::Null);
            }
            if patch.is_empty() {
                return Err(Failure::usage("name what is to be changed").into());
            }
            let changed = client.patch(&at(id), &Value::Object(patch)).await?;
            Ok(context.output.say(&changed, |_| shown(&changed))?)
        }
        Some(Verb::Remove { id }) => {
            let gone = client.delete(&at(id)).await?;
            Ok(context.output.say(&gone, |_| format!("{id} is gone; its conversation stays readable."))?)
        }
        Some(Verb::Run { id }) => {
            let begun = client.post(&format!("{}/run", at(id)), &json!({})).await?;
            Ok(context.output.say(&begun, |_| match begun["session_key"].as_str() {
                Some(session) => format!("It runs in {session}."),
                None => "There is nothing to do.".to_owned(),
            })?)
        }
    }
}

async fn list(client: &Client, context: &Context) -> anyhow::Result<()> {
    let answer = client.get("/cron").await?;
    let row = |one: &Value| {
        let mut row: Vec<String> = vec![cell(&one["id"]), rule(one)];
        row.extend(["agent_id", "source", "last_due"].map(|key| cell(&one[key])));
        row.push(if one["enabled"] == false { "disabled".to_owned() } else { cell(&one["next_due"]) });
        row
    };
    let rows: Vec<_> = answer["cron"].as_array().into_iter().flatten().map(row).collect();
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "Nothing is scheduled. `polyclaw cron --help` shows how.".to_owned(),
        false => output.table(&["ID", "SCHEDULE", "AGENT", "SOURCE", "LAST DUE", "NEXT DUE"], &rows),
    })?)
}

/// Its schedule, and its zone where that is not the usual one.
fn rule(one: &Value) -> String {
    match one["timezone"].as_str() {
        Some(zone) => format!("{} {zone}", cell(&one["schedule"])),
        None => cell(&one["schedule"]),
    }
}

fn shown(one: &Value) -> String {
    let place = match &one["deliver_to"] {
        Value::Object(to) => {
            ["channel", "account", "peer"].map(|part| cell(to.get(part).unwrap_or(&Value::Null))).join(":")
        }
        _ => "nowhere: it stays in the conversation".to_owned(),
    };
    let mut lines =
        vec![format!("{:<10} {}", "id", cell(&one["id"])), format!("{:<10} {}", "schedule", rule(one))];
    let named = [
        ("agent", "agent_id"),
        ("session", "session_key"),
        ("message", "message"),
        ("catch up", "catch_up"),
        ("enabled", "enabled"),
        ("source", "source"),
        ("made by", "made_by"),
        ("last due", "last_due"),
        ("next due", "next_due"),
    ];
    lines.extend(named.map(|(title, field)| format!("{title:<10} {}", cell(&one[field]))));
    lines.push(format!("{:<10} {place}", "answer"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_an_answer_goes_is_read_with_and_without_an_account() {
        assert_eq!(place_of("telegram:-7").unwrap(), json!({ "channel": "telegram", "peer": "-7" }));
        let whole = place_of("matrix:work:!room:example.org").unwrap();
        assert_eq!(whole, json!({ "channel": "matrix", "account": "work", "peer": "!room:example.org" }));
        assert!(place_of("telegram").is_err());
    }
}
