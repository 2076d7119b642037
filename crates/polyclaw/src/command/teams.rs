//! `polyclaw teams`: manages teams of agents.

mod log;
mod plan;
mod task;

use std::time::{SystemTime, UNIX_EPOCH};

use polyclaw_api::teams::{
    FailureStreakView, JoinedMemberView, MemberView, SentTeamMessageView, TaskLogView, TeamDetail, TeamList,
    TeamMessageList, TeamShutdownView, TeamTurnsView, TeamView,
};
use polyclaw_domain::sanitize;
use polyclaw_domain::team::{EVERYBODY_NAME, PlanApproval};
use polyclaw_domain::time::{Millis, format_duration};
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, cell, visible_line};
use task::{TeamsTaskCommand, no_open_task, tasks_table};

/// Maximum characters of a role in a table.
const MAX_ROLE: usize = 30;

/// Manage teams of agents: list, show, create, join, plan, task, log, mail, send, shutdown, lead.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw teams list
  polyclaw teams create site --description \"Build the new page\"
  polyclaw teams join site ann --task \"Take tasks until none is left.\"
  polyclaw teams task add site \"Draw the header\" --assignee ann
  polyclaw teams send site ann \"How far are you?\"
  polyclaw teams show site
  polyclaw teams shutdown site --force

Agents create teams themselves with the tool TeamCreate.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<TeamsCommand>,
}

#[derive(clap::Subcommand)]
enum TeamsCommand {
    /// List active teams.
    #[command(after_help = "Examples:
  polyclaw teams list
  polyclaw teams list --all --json")]
    List {
        /// Include teams that have ended.
        #[arg(long)]
        all: bool,
    },
    /// Show one team: members, tasks, progress.
    #[command(after_help = "Examples:
  polyclaw teams show site")]
    Show {
        /// Name that `polyclaw teams` lists.
        name: String,
    },
    /// Create a team.
    #[command(after_help = "Examples:
  polyclaw teams create site --description \"Build the new page\"")]
    Create {
        /// Name of the team: lower-case letters, digits, '_' and '-'.
        name: String,
        /// Purpose of the team.
        #[arg(long, default_value = "")]
        description: String,
        /// Session that leads the team. Defaults to the main session of the default agent.
        #[arg(long, value_name = "SESSION")]
        lead: Option<String>,
        /// Lead the team from a session of its own, `agent:<agent>:team:<name>`.
        #[arg(long, conflicts_with = "lead")]
        own_session: bool,
    },
    /// Add a member to a team.
    #[command(after_help = "Examples:
  polyclaw teams join site ann --task \"Take tasks until none is left.\"
  polyclaw teams join site ann --agent ops --replace")]
    Join(TeamsJoinArgs),
    /// Show a member's plan; approve or reject it.
    #[command(after_help = "Examples:
  polyclaw teams plan site ann
  polyclaw teams plan site ann --approve
  polyclaw teams plan site ann --reject \"Leave the header as it is.\"")]
    Plan(plan::TeamsPlanArgs),
    /// Manage the tasks of a team.
    #[command(subcommand)]
    #[command(after_help = "Examples:
  polyclaw teams task add site \"Draw the header\"
  polyclaw teams task list site --all
  polyclaw teams task reopen site 3")]
    Task(TeamsTaskCommand),
    /// Show the task history of a team, oldest first.
    #[command(after_help = "Examples:
  polyclaw teams log site
  polyclaw teams log site --after 120")]
    Log {
        /// Name that `polyclaw teams` lists.
        name: String,
        /// Only entries after this sequence number.
        #[arg(long, value_name = "NUMBER", default_value_t = 0)]
        after: i64,
    },
    /// Show the newest messages between team members.
    #[command(after_help = "Examples:
  polyclaw teams mail site
  polyclaw teams mail site --limit 5")]
    Mail {
        /// Name that `polyclaw teams` lists.
        name: String,
        /// Maximum number of messages.
        #[arg(long, value_name = "NUMBER", default_value_t = 20)]
        limit: usize,
    },
    /// Send a message to a member, to the lead, or to all.
    #[command(after_help = "Examples:
  polyclaw teams send site ann \"How far are you?\"
  polyclaw teams send site all \"We stop at five.\"")]
    Send {
        /// Name that `polyclaw teams` lists.
        name: String,
        /// Member name, `lead` or `all`.
        recipient: String,
        /// Text of the message.
        content: String,
    },
    /// Shut a team down. Every member is asked and may object.
    #[command(after_help = "Examples:
  polyclaw teams shutdown site --reason \"We are done.\"
  polyclaw teams shutdown site --force")]
    Shutdown {
        /// Name that `polyclaw teams` lists.
        name: String,
        /// Reason, sent to every member.
        #[arg(long, default_value = "")]
        reason: String,
        /// Stop all members immediately, without asking.
        #[arg(long)]
        force: bool,
    },
    /// Give a team another lead session, for example if its lead is gone.
    #[command(after_help = "Examples:
  polyclaw teams lead site agent:main:main")]
    Lead {
        /// Name that `polyclaw teams` lists.
        name: String,
        /// Key of the new lead session.
        session: String,
    },
}

#[derive(clap::Args)]
struct TeamsJoinArgs {
    /// Name that `polyclaw teams` lists.
    team: String,
    /// Member name.
    name: String,
    /// Agent that the member runs. Defaults to the lead's agent.
    #[arg(long)]
    agent: Option<String>,
    /// Model as provider/model. Defaults to the agent's own.
    #[arg(long)]
    model: Option<String>,
    /// First message to the member. Without one it waits for messages.
    #[arg(long)]
    task: Option<String>,
    /// Role in a few words, for people.
    #[arg(long)]
    role: Option<String>,
    /// Replace an existing member of this name with a new session.
    #[arg(long)]
    replace: bool,
    /// Restrict the member to reading until its plan is approved by the lead or with `polyclaw teams plan`.
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
            let team: TeamDetail = client.get_as(&path(name, "")).await?;
            Ok(context.output.print_value(&team, |output| team_text(output, &team))?)
        }
        Some(TeamsCommand::Create { name, description, lead, own_session }) => {
            let body = json!({ "name": name, "description": description, "lead_session_key": lead,
                "own_session": own_session });
            let made: TeamView = client.post_as("/teams", &body).await?;
            Ok(context.output.print_value(&made, |_| {
                format!("Created team {name}, led by {}.", visible_line(&made.lead_session_key))
            })?)
        }
        Some(TeamsCommand::Join(join)) => {
            let body = json!({ "name": join.name, "agent_id": join.agent, "model": join.model,
                "task": join.task, "role": join.role, "replace": join.replace,
                "plan_mode_required": join.plan_first });
            let joined: JoinedMemberView = client.post_as(&path(&join.team, "/members"), &body).await?;
            Ok(context.output.print_value(&joined, |_| {
                format!("{} joined in session {}.", join.name, visible_line(&joined.session_key))
            })?)
        }
        Some(TeamsCommand::Plan(plan)) => plan::run(plan, &client, context).await,
        Some(TeamsCommand::Task(verb)) => task::run(verb, &client, context).await,
        Some(TeamsCommand::Log { name, after }) => {
            let answer: TaskLogView = client.get_as(&path(name, &format!("/log?after={after}"))).await?;
            Ok(context.output.print_value(&answer, |output| log::event_log_text(output, &answer.log))?)
        }
        Some(TeamsCommand::Mail { name, limit }) => {
            let answer: TeamMessageList =
                client.get_as(&path(name, &format!("/messages?limit={limit}"))).await?;
            Ok(context.output.print_value(&answer, |_| log::messages_text(&answer.messages))?)
        }
        Some(TeamsCommand::Send { name, recipient, content }) => {
            let to = Some(recipient).filter(|recipient| *recipient != EVERYBODY_NAME);
            let sent: SentTeamMessageView = client
                .post_as(&path(name, "/messages"), &json!({ "recipient": to, "content": content }))
                .await?;
            let names = visible_line(&sent.recipients.join(", "));
            Ok(context
                .output
                .print_value(&sent, |_| format!("Sent to {names}.{}", lost_messages_text(&sent)))?)
        }
        Some(TeamsCommand::Shutdown { name, reason, force }) => {
            let ended: TeamShutdownView = client
                .post_as(&path(name, "/shutdown"), &json!({ "reason": reason, "force": force }))
                .await?;
            Ok(context.output.print_value(&ended, |_| match ended.status.as_str() {
                "shutdown" => format!("Team {name} was shut down."),
                "shutting_down" => format!("Team {name} is shutting down: its members were asked."),
                _ => format!("Team {name} continues: a member objected."),
            })?)
        }
        Some(TeamsCommand::Lead { name, session }) => {
            let team: TeamView =
                client.put_as(&path(name, "/lead"), &json!({ "session_key": session })).await?;
            Ok(context.output.print_value(&team, |_| format!("Team {name} is now led by {session}."))?)
        }
    }
}

/// Names recipients whose sessions no longer exist. Their messages stay unread until a successor joins.
fn lost_messages_text(sent: &SentTeamMessageView) -> String {
    if sent.lost.is_empty() {
        String::new()
    } else {
        format!(
            " Without a session: {}. The message waits for a successor (`polyclaw teams join`, `polyclaw teams \
             lead`).",
            visible_line(&sent.lost.join(", "))
        )
    }
}

async fn list_teams(client: &ApiClient, context: &CommandContext, all: bool) -> anyhow::Result<()> {
    let answer: TeamList = client.get_as(&format!("/teams?all={all}")).await?;
    let row = |team: &TeamView| {
        vec![cell(&team.name), cell(&team.status), cell(&team.lead_session_key), cell(&team.description)]
    };
    let rows: Vec<_> = answer.teams.iter().map(row).collect();
    Ok(context.output.print_value(&answer, |output| {
        if rows.is_empty() {
            "No teams. `polyclaw teams create --help` shows how to create one.".to_owned()
        } else {
            output.format_table(&["NAME", "STATUS", "LEAD", "DESCRIPTION"], &rows)
        }
    })?)
}

fn team_text(output: &CliOutput, detail: &TeamDetail) -> String {
    let member = |one: &MemberView| {
        let numbers: Vec<&str> = one.tasks.iter().filter_map(|task| task.split(' ').next()).collect();
        vec![
            visible_line(&one.name),
            sanitize::to_single_line(&visible_line(&one.role), MAX_ROLE),
            status_words(&one.status, one.plan.as_deref()),
            one.unread.to_string(),
            visible_line(&numbers.join(", ")),
        ]
    };
    let TeamDetail { team, members, counts, .. } = detail;
    let rows: Vec<_> = members.iter().map(member).collect();
    let described = Some(&team.description).filter(|text| !text.is_empty());
    let described = described.map(|text| format!("{}\n", visible_line(text))).unwrap_or_default();
    let lead = failure_streak_text("lead", detail.failure_streak.as_ref());
    let failing = members
        .iter()
        .filter_map(|one| failure_streak_text(&visible_line(&one.name), one.failure_streak.as_ref()));
    let failing: String = lead.into_iter().chain(failing).collect();
    let spent = usage_text(&detail.turns);
    format!(
        "{} ({}), led by {}{}\n{described}{spent}\n{}\n\n{failing}{} pending, {} in progress, {} blocked, {} done, {} failed\n\n{}",
        visible_line(&team.name),
        visible_line(&team.status),
        visible_line(&team.lead_session_key),
        lead_text(detail),
        output.format_table(&["MEMBER", "ROLE", "STATUS", "UNREAD", "TASKS"], &rows),
        counts.pending,
        counts.in_progress,
        counts.blocked,
        counts.completed,
        counts.failed,
        open_tasks(output, detail),
    )
}

/// Returns the member's status, with its plan state while it may only read.
pub(crate) fn status_words(status: &str, plan: Option<&str>) -> String {
    let status = visible_line(status);
    match plan.and_then(PlanApproval::label_of) {
        Some(plan) => format!("{status}, {plan}"),
        None => status,
    }
}

fn open_tasks(output: &CliOutput, detail: &TeamDetail) -> String {
    if detail.open.is_empty() { no_open_task(&detail.team.name) } else { tasks_table(output, &detail.open) }
}

/// Returns a line if the team has used its budget of automatic turns, and what to do about it.
fn usage_text(turns: &TeamTurnsView) -> String {
    let TeamTurnsView { used, limit, is_waiting } = *turns;
    let waits = if is_waiting { " The team is paused until you write to its lead." } else { "" };
    if used >= limit { format!("All {limit} automatic turns are used.{waits}\n") } else { String::new() }
}

/// Describes the lead: unread messages, and whether its session is gone.
fn lead_text(detail: &TeamDetail) -> String {
    let lost = if detail.is_lead_lost {
        ", whose session no longer exists: `polyclaw teams lead` assigns another"
    } else {
        ""
    };
    let unread = match detail.lead_unread {
        0 => String::new(),
        count => format!(" ({count} unread)"),
    };
    format!("{unread}{lost}")
}

/// Describes a failure streak: since when, the error code and the next retry.
fn failure_streak_text(name: &str, streak: Option<&FailureStreakView>) -> Option<String> {
    let FailureStreakView { since, code, failures, retry_at } = streak?;
    let next = match retry_at.map(millis_until) {
        Some(left @ 1..) => format!("retried in {} if messages or tasks wait", format_duration(left)),
        Some(_) => "retried now if messages or tasks wait".to_owned(),
        None => "retried when somebody writes".to_owned(),
    };
    let code = visible_line(code);
    let times = if *failures == 1 { "time" } else { "times" };
    let since = format_duration(millis_until(*since).saturating_neg().max(0));
    Some(format!("{name}: turns have been failing for {since} ({code}, {failures} {times}); {next}\n\n"))
}

/// Returns the milliseconds until a moment, by this machine's clock. Negative if the moment has passed.
fn millis_until(moment: Millis) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = i64::try_from(now).unwrap_or(i64::MAX);
    moment.since(Millis(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: &str = "2026-01-02T03:04:05.000Z";

    fn team(fields: serde_json::Value) -> TeamDetail {
        let mut team = json!({ "id": "t", "name": "a", "description": "", "agent_type": "general-purpose",
            "status": "active", "lead_session_key": "agent:main:main", "created_at": MOMENT, "updated_at": MOMENT,
            "members": [], "failure_streak": null, "is_lead_lost": false, "lead_status": "idle", "lead_unread": 0,
            "counts": { "pending": 0, "blocked": 0, "in_progress": 0, "completed": 0, "failed": 0 },
            "turns": { "used": 0, "limit": 9, "is_waiting": false }, "open": [], "ended": [] });
        for (name, value) in fields.as_object().unwrap() {
            team[name] = value.clone();
        }
        serde_json::from_value(team).unwrap()
    }

    #[test]
    fn control_characters_in_team_text_are_escaped() {
        let team = team(json!({ "name": "a", "description": "\u{1b}]0;x\u{7}for you" }));
        let shown = team_text(&CliOutput::new(false), &team);
        assert!(shown.contains("<U+001B>]0;x<U+0007>for you") && !shown.contains('\u{7}'), "{shown:?}");
    }

    #[test]
    fn team_text_fits_terminal_and_shows_pending_plans() {
        let long = "word ".repeat(40);
        let ann = json!({ "name": "ann", "role": long, "session_key": "s", "agent_id": "main", "color": "red",
            "capabilities": [], "status": "idle", "plan": "submitted", "tasks": ["#3 Draw it", "#12 Hang it"],
            "failure_streak": null, "unread": 0, "joined_at": MOMENT, "last_active_at": MOMENT });
        let task = json!({ "task_id": 3, "subject": long, "description": "", "title": long, "status": "claimed",
            "owner": null, "lease_until": null, "assignee": null, "capability": null, "depends_on": [],
            "blocked_by": [], "metadata": null, "verify": null, "note": null, "summary": null, "artifacts": [],
            "created_by": "lead", "created_at": MOMENT, "ended_at": null });
        let mut team = team(json!({ "name": "site", "members": [ann], "open": [task] }));
        let shown = team_text(&CliOutput::new(false), &team);
        assert!(shown.contains("idle, plan waits for approval") && shown.contains("#3, #12\n"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() < 110), "{shown}");
        team.open.clear();
        let shown = team_text(&CliOutput::new(false), &team);
        assert!(
            shown.contains("polyclaw teams task list site --all") && !shown.contains("BLOCKED BY"),
            "{shown}"
        );
    }

    #[test]
    fn failure_streak_text_shows_count_and_duration() {
        let since = Millis::parse("2020-01-01T00:00:00.000Z").unwrap();
        let streak =
            FailureStreakView { since, code: "provider_failed".to_owned(), failures: 1, retry_at: None };
        let text = failure_streak_text("ann", Some(&streak)).unwrap();
        assert!(
            text.starts_with("ann: turns have been failing for ")
                && text.contains("(provider_failed, 1 time)"),
            "{text}"
        );
        assert!(!text.contains("2020"), "{text}");
    }
}
