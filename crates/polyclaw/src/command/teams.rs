//! `polyclaw teams`: agents that work together.

mod log;
mod plan;
mod task;

use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_domain::sanitize;
use polyclaw_domain::team::{EVERYBODY_NAME, PlanApproval};
use polyclaw_domain::time::{Millis, format_duration};
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, cell_text, visible_line};
use task::{TeamsTaskCommand, no_open_task, tasks_table};

/// Characters of a role that a table shows.
const MAX_ROLE: usize = 30;

/// Agents that work together: list, show, create, plan, task add, send, shutdown.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw teams list
  polyclaw teams create site --description \"Build the new page\"
  polyclaw teams join site ann --task \"Take tasks until none is left.\"
  polyclaw teams task add site \"Draw the header\" --assignee ann
  polyclaw teams send site ann \"How far are you?\"
  polyclaw teams show site
  polyclaw teams shutdown site --force

Agents make teams themselves with the tool TeamCreate.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<TeamsCommand>,
}

#[derive(clap::Subcommand)]
enum TeamsCommand {
    /// All teams.
    #[command(after_help = "Examples:
  polyclaw teams list
  polyclaw teams list --all --json")]
    List {
        /// Those that have ended, too.
        #[arg(long)]
        all: bool,
    },
    /// Show one team: members, tasks, progress.
    #[command(after_help = "Examples:
  polyclaw teams show site")]
    Show {
        /// The name that `polyclaw teams` lists.
        name: String,
    },
    /// Make a team.
    #[command(after_help = "Examples:
  polyclaw teams create site --description \"Build the new page\"")]
    Create {
        /// Lower-case letters, digits, '_' and '-'.
        name: String,
        /// What it is for.
        #[arg(long, default_value = "")]
        description: String,
        /// The session that leads it. The main one of the default agent if left out.
        #[arg(long, value_name = "SESSION")]
        lead: Option<String>,
        /// Lead it from a session of its own, `agent:<agent>:team:<name>`.
        #[arg(long, conflicts_with = "lead")]
        own_session: bool,
    },
    /// Add a member.
    #[command(after_help = "Examples:
  polyclaw teams join site ann --task \"Take tasks until none is left.\"
  polyclaw teams join site ann --agent ops --replace")]
    Join(TeamsJoinArgs),
    /// Show the plan that a member wants to work by; approve it or send it back.
    #[command(after_help = "Examples:
  polyclaw teams plan site ann
  polyclaw teams plan site ann --approve
  polyclaw teams plan site ann --reject \"Leave the header as it is.\"")]
    Plan(plan::TeamsPlanArgs),
    /// Tasks of a team.
    #[command(subcommand)]
    #[command(after_help = "Examples:
  polyclaw teams task add site \"Draw the header\"
  polyclaw teams task list site --all
  polyclaw teams task reopen site 3")]
    Task(TeamsTaskCommand),
    /// What happened to the tasks of a team, the oldest first.
    #[command(after_help = "Examples:
  polyclaw teams log site
  polyclaw teams log site --after 120")]
    Log {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// Only what came after this number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: i64,
    },
    /// The newest messages between the members of a team.
    #[command(after_help = "Examples:
  polyclaw teams mail site
  polyclaw teams mail site --limit 5")]
    Mail {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// At most so many.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
    },
    /// Write to a member, to the lead, or to all.
    #[command(after_help = "Examples:
  polyclaw teams send site ann \"How far are you?\"
  polyclaw teams send site all \"We stop at five.\"")]
    Send {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// A member's name, `lead` or `all`.
        recipient: String,
        /// What to say.
        content: String,
    },
    /// End a team: every member is asked, and may object.
    #[command(after_help = "Examples:
  polyclaw teams shutdown site --reason \"We are done.\"
  polyclaw teams shutdown site --force")]
    Shutdown {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// Told to every member.
        #[arg(long, default_value = "")]
        reason: String,
        /// Stop all at once; nobody is asked.
        #[arg(long)]
        force: bool,
    },
    /// Give a team to another session, where its lead is gone.
    #[command(after_help = "Examples:
  polyclaw teams lead site agent:main:main")]
    Lead {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// The key of the session.
        session: String,
    },
}

#[derive(clap::Args)]
struct TeamsJoinArgs {
    /// The name that `polyclaw teams` lists.
    team: String,
    /// By which it gets mail and tasks.
    name: String,
    /// The agent it is. The lead's own if left out.
    #[arg(long)]
    agent: Option<String>,
    /// provider/model, if not its agent's own.
    #[arg(long)]
    model: Option<String>,
    /// Its first message. Without one it waits for mail.
    #[arg(long)]
    task: Option<String>,
    /// A few words for people.
    #[arg(long)]
    role: Option<String>,
    /// Give the name of a member that is there to a new session.
    #[arg(long)]
    replace: bool,
    /// Let it only read until its plan is approved, by the lead or with `polyclaw teams plan`.
    #[arg(long)]
    plan_first: bool,
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let path = |name: &str, rest: &str| format!("/teams/{}{rest}", encode_segment(name));
    match &args.verb {
        None => list_teams(&client, context, false).await,
        Some(TeamsCommand::List { all }) => list_teams(&client, context, *all).await,
        Some(TeamsCommand::Show { name }) => {
            let team = client.get(&path(name, "")).await?;
            Ok(context.output.print_value(&team, |output| team_text(output, &team))?)
        }
        Some(TeamsCommand::Create { name, description, lead, own_session }) => {
            let body = json!({ "name": name, "description": description, "lead_session_key": lead,
                "own_session": own_session });
            let made = client.post("/teams", &body).await?;
            Ok(context.output.print_value(&made, |_| {
                format!("{name} is there, led by {}.", cell_text(&made["lead_session_key"]))
            })?)
        }
        Some(TeamsCommand::Join(join)) => {
            let body = json!({ "name": join.name, "agent_id": join.agent, "model": join.model,
                "task": join.task, "role": join.role, "replace": join.replace,
                "plan_mode_required": join.plan_first });
            let joined = client.post(&path(&join.team, "/members"), &body).await?;
            Ok(context.output.print_value(&joined, |_| {
                format!("{} works in {}.", join.name, cell_text(&joined["session_key"]))
            })?)
        }
        Some(TeamsCommand::Plan(plan)) => plan::run(plan, &client, context).await,
        Some(TeamsCommand::Task(verb)) => task::run(verb, &client, context).await,
        Some(TeamsCommand::Log { name, after }) => {
            let answer = client.get(&path(name, &format!("/log?after={after}"))).await?;
            Ok(context.output.print_value(&answer, |output| log::event_log_text(output, &answer["log"]))?)
        }
        Some(TeamsCommand::Mail { name, limit }) => {
            let answer = client.get(&path(name, &format!("/messages?limit={limit}"))).await?;
            Ok(context.output.print_value(&answer, |_| log::messages_text(&answer["messages"]))?)
        }
        Some(TeamsCommand::Send { name, recipient, content }) => {
            let to = Some(recipient).filter(|recipient| *recipient != EVERYBODY_NAME);
            let sent = client
                .post(&path(name, "/messages"), &json!({ "recipient": to, "content": content }))
                .await?;
            let names = list_of(&sent["recipients"]).map(cell_text).collect::<Vec<_>>().join(", ");
            Ok(context
                .output
                .print_value(&sent, |_| format!("Sent to {names}.{}", lost_messages_text(&sent)))?)
        }
        Some(TeamsCommand::Shutdown { name, reason, force }) => {
            let ended =
                client.post(&path(name, "/shutdown"), &json!({ "reason": reason, "force": force })).await?;
            Ok(context.output.print_value(&ended, |_| match ended["status"].as_str() {
                Some("shutdown") => format!("{name} has ended."),
                Some("shutting_down") => format!("{name}: its members are asked."),
                _ => format!("{name} goes on: a member objects."),
            })?)
        }
        Some(TeamsCommand::Lead { name, session }) => {
            let team = client.put(&path(name, "/lead"), &json!({ "session_key": session })).await?;
            Ok(context.output.print_value(&team, |_| format!("{name} is led by {session}."))?)
        }
    }
}

/// Mail for sessions that are gone is not read before somebody takes their places.
fn lost_messages_text(sent: &Value) -> String {
    let lost: Vec<String> = sent["lost"].as_array().into_iter().flatten().map(cell_text).collect();
    match lost.is_empty() {
        true => String::new(),
        false => format!(
            " Gone: {}. It waits for whoever takes the place (`polyclaw teams join`, `polyclaw teams lead`).",
            lost.join(", ")
        ),
    }
}

async fn list_teams(client: &ApiClient, context: &CommandContext, all: bool) -> anyhow::Result<()> {
    let answer = client.get(&format!("/teams?all={all}")).await?;
    let row = |team: &Value| {
        ["name", "status", "lead_session_key", "description"].map(|key| cell_text(&team[key])).to_vec()
    };
    let rows: Vec<_> = answer["teams"].as_array().into_iter().flatten().map(row).collect();
    Ok(context.output.print_value(&answer, |output| match rows.is_empty() {
        true => "There is no team. `polyclaw teams create --help` shows how.".to_owned(),
        false => output.format_table(&["NAME", "STATUS", "LEAD", "FOR"], &rows),
    })?)
}

fn team_text(output: &CliOutput, team: &Value) -> String {
    let member = |one: &Value| {
        let numbers = list_of(&one["tasks"]).filter_map(|task| task.as_str()?.split(' ').next());
        let holds: Vec<String> = numbers.map(visible_line).collect();
        vec![
            cell_text(&one["name"]),
            sanitize::to_single_line(&cell_text(&one["role"]), MAX_ROLE),
            status_words(one),
            cell_text(&one["unread"]),
            holds.join(", "),
        ]
    };
    let members: Vec<_> = team["members"].as_array().into_iter().flatten().map(member).collect();
    let described = team["description"].as_str().filter(|text| !text.is_empty());
    let described = described.map(|text| format!("{}\n", visible_line(text))).unwrap_or_default();
    let lead = failure_streak_text("lead", &team["failure_streak"]);
    let failing = team["members"].as_array().into_iter().flatten();
    let failing =
        failing.filter_map(|one| failure_streak_text(&cell_text(&one["name"]), &one["failure_streak"]));
    let failing: String = lead.into_iter().chain(failing).collect();
    let count = |key: &str| cell_text(&team["counts"][key]);
    let spent = usage_text(&team["turns"]);
    format!(
        "{} ({}), led by {}{}\n{described}{spent}\n{}\n\n{failing}{} pending, {} in progress, {} blocked, {} done, {} failed\n\n{}",
        cell_text(&team["name"]),
        cell_text(&team["status"]),
        cell_text(&team["lead_session_key"]),
        lead_text(team),
        output.format_table(&["MEMBER", "ROLE", "STATUS", "UNREAD", "HOLDS"], &members),
        count("pending"),
        count("in_progress"),
        count("blocked"),
        count("completed"),
        count("failed"),
        open_tasks(output, team),
    )
}

/// What a member does, and how far its plan is while it may only read.
pub(crate) fn status_words(member: &Value) -> String {
    let status = cell_text(&member["status"]);
    match member["plan"].as_str().and_then(PlanApproval::label_of) {
        Some(plan) => format!("{status}, {plan}"),
        None => status,
    }
}

fn open_tasks(output: &CliOutput, team: &Value) -> String {
    match list_of(&team["open"]).next() {
        Some(_) => tasks_table(output, &team["open"]),
        None => no_open_task(team["name"].as_str().unwrap_or_default()),
    }
}

fn list_of(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// That a team has used its budget of turns, and what to do about it.
fn usage_text(turns: &Value) -> String {
    let (used, limit) = (turns["used"].as_u64().unwrap_or(0), turns["limit"].as_u64().unwrap_or(u64::MAX));
    let waits = match turns["is_waiting"].as_bool() {
        Some(true) => " It waits: write to its lead, and it goes on.",
        _ => "",
    };
    if used >= limit { format!("All {limit} automatic turns are used.{waits}\n") } else { String::new() }
}

/// What there is to know of the lead.
fn lead_text(team: &Value) -> String {
    let lost = match team["is_lead_lost"].as_bool() {
        Some(true) => ", which is gone: `polyclaw teams lead` gives the team to another session",
        _ => "",
    };
    let unread = match team["lead_unread"].as_u64() {
        Some(1..) => format!(" ({} unread)", cell_text(&team["lead_unread"])),
        _ => String::new(),
    };
    format!("{unread}{lost}")
}

/// That somebody's turns fail: since when, why, and what is done about it.
fn failure_streak_text(name: &str, streak: &Value) -> Option<String> {
    let since = streak["since"].as_str()?;
    let next = match streak["retry_at"].as_str().map(millis_until) {
        Some(left @ 1..) => format!("tried again in {} if mail or a task waits", format_duration(left)),
        Some(_) => "tried again now if mail or a task waits".to_owned(),
        None => "tried again when somebody writes".to_owned(),
    };
    let (code, failures) = (cell_text(&streak["code"]), cell_text(&streak["failures"]));
    let times = if failures == "1" { "time" } else { "times" };
    let since = format_duration(millis_until(since).saturating_neg().max(0));
    Some(format!("{name}: turns fail for {since} ({code}, {failures} {times}); {next}\n\n"))
}

/// How far a moment is ahead by the clock of this machine; below zero, how long ago it was.
fn millis_until(moment: &str) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    Millis::parse(moment).map_or(0, |at| at.since(Millis(now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_wrote_does_not_steer_the_terminal() {
        let team = json!({ "name": "a", "description": "\u{1b}]0;x\u{7}for you" });
        let shown = team_text(&CliOutput::new(false), &team);
        assert!(shown.contains("<U+001B>]0;x<U+0007>for you") && !shown.contains('\u{7}'), "{shown:?}");
    }

    #[test]
    fn a_team_fits_a_terminal_and_says_who_waits() {
        let long = "word ".repeat(40);
        let ann = json!({ "name": "ann", "role": long, "status": "idle", "plan": "submitted", "unread": 0,
            "tasks": ["#3 Draw it", "#12 Hang it"] });
        let mut team = json!({ "name": "site", "status": "active", "lead_session_key": "agent:main:main",
            "members": [ann], "open": [{ "task_id": 3, "status": "claimed", "title": long, "blocked_by": [] }] });
        let shown = team_text(&CliOutput::new(false), &team);
        assert!(shown.contains("idle, plan waits for approval") && shown.contains("#3, #12\n"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() < 110), "{shown}");
        team["open"] = json!([]);
        let shown = team_text(&CliOutput::new(false), &team);
        assert!(
            shown.contains("polyclaw teams task list site --all") && !shown.contains("WAITS FOR"),
            "{shown}"
        );
    }

    #[test]
    fn a_failure_is_counted_in_words_and_told_by_the_clock_here() {
        let streak = json!({ "since": "2020-01-01T00:00:00.000Z", "code": "provider_failed", "failures": 1 });
        let text = failure_streak_text("ann", &streak).unwrap();
        assert!(
            text.starts_with("ann: turns fail for ") && text.contains("(provider_failed, 1 time)"),
            "{text}"
        );
        assert!(!text.contains("2020"), "{text}");
    }
}
