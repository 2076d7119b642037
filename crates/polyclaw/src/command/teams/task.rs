//! `polyclaw teams task`: manages the task list of a team.

use polyclaw_api::teams::tasks::TaskEnded;
use polyclaw_api::teams::{AddedTask, TeamTaskList, TeamTaskView};
use polyclaw_domain::sanitize;
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{CliOutput, cell, visible_line};

/// Maximum number of tasks to list; more is unreadable in a terminal.
const MAX_LISTED_TASKS: usize = 10_000;

/// Maximum characters of a title in a table.
const MAX_TITLE: usize = 50;

#[derive(clap::Subcommand)]
pub(super) enum TeamsTaskCommand {
    /// Add a task.
    #[command(after_help = "Examples:
  polyclaw teams task add site \"Draw the header\" --assignee ann
  polyclaw teams task add site \"Hang it\" --after 1,2 --verify \"make check\"")]
    Add(TeamsTaskAddArgs),
    /// List open tasks, newest first.
    #[command(after_help = "Examples:
  polyclaw teams task list site
  polyclaw teams task list site --all --json")]
    List {
        /// Name that `polyclaw teams` lists.
        team: String,
        /// Include tasks that have ended.
        #[arg(long)]
        all: bool,
    },
    /// Mark a task as completed or failed, regardless of its holder.
    #[command(after_help = "Examples:
  polyclaw teams task complete site 3 --summary \"It is online.\"
  polyclaw teams task complete site 3 --failed")]
    Complete {
        #[command(flatten)]
        which: TeamTaskArg,
        /// Summary of the result.
        #[arg(long)]
        summary: Option<String>,
        /// Mark the task as failed.
        #[arg(long)]
        failed: bool,
    },
    /// Release a task from the member who holds it.
    #[command(after_help = "Examples:
  polyclaw teams task release site 3 --note \"Ann is away.\"")]
    Release {
        #[command(flatten)]
        which: TeamTaskArg,
        /// Reason, for the next member who takes the task.
        #[arg(long)]
        note: Option<String>,
    },
    /// Assign a task to a member, or to anyone.
    #[command(after_help = "Examples:
  polyclaw teams task assign site 3 ann
  polyclaw teams task assign site 3 \"\"")]
    Assign {
        #[command(flatten)]
        which: TeamTaskArg,
        /// The only member who may take the task. An empty name lets anyone take it.
        assignee: String,
    },
    /// Reopen a task that has ended.
    #[command(after_help = "Examples:
  polyclaw teams task reopen site 3")]
    Reopen {
        #[command(flatten)]
        which: TeamTaskArg,
    },
    /// Delete a task that nobody holds.
    #[command(after_help = "Examples:
  polyclaw teams task delete site 3")]
    Delete {
        #[command(flatten)]
        which: TeamTaskArg,
    },
}

#[derive(clap::Args)]
pub(super) struct TeamTaskArg {
    /// Name that `polyclaw teams` lists.
    team: String,
    /// Number that `polyclaw teams task list` shows.
    task: i64,
}

#[derive(clap::Args)]
pub(super) struct TeamsTaskAddArgs {
    /// Name that `polyclaw teams` lists.
    team: String,
    /// Title of the task, at most 200 characters.
    subject: String,
    /// Everything that the member who takes the task needs to know.
    #[arg(long, default_value = "")]
    description: String,
    /// Numbers of tasks that must be completed first, separated by commas.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    after: Vec<i64>,
    /// The only member who may take the task.
    #[arg(long)]
    assignee: Option<String>,
    /// Command line that must exit with 0 before the task counts as completed.
    #[arg(long, value_name = "COMMAND")]
    verify: Option<String>,
}

impl TeamsTaskAddArgs {
    fn request_body(&self) -> Value {
        json!({
            "subject": self.subject,
            "description": self.description,
            "depends_on": self.after,
            "assignee": self.assignee,
            "verify": self.verify.as_ref().map(|line| json!({ "command": line })),
        })
    }
}

impl TeamTaskArg {
    fn task_path(&self, act: &str) -> String {
        format!("/teams/{}/tasks/{}{act}", encode_segment(&self.team), self.task)
    }
}

pub(super) async fn run(
    verb: &TeamsTaskCommand,
    client: &ApiClient,
    context: &CommandContext,
) -> anyhow::Result<()> {
    let path = |team: &str, rest: &str| format!("/teams/{}{rest}", encode_segment(team));
    let output = context.output;
    match verb {
        TeamsTaskCommand::Add(add) => {
            let made: AddedTask = client.post_as(&path(&add.team, "/tasks"), &add.request_body()).await?;
            output.print_value(&made, |_| format!("Added task {}.", made.task_id))?;
        }
        TeamsTaskCommand::List { team, all } => {
            let found: Vec<TeamTaskView> = client
                .list_pages::<TeamTaskList>(&path(team, &format!("/tasks?all={all}")), MAX_LISTED_TASKS)
                .await?;
            output.print_value(&json!({ "tasks": found }), |output| match (found.is_empty(), all) {
                (false, _) => tasks_table(output, &found),
                (true, false) => no_open_task(team),
                (true, true) => "No tasks.".to_owned(),
            })?;
        }
        TeamsTaskCommand::Complete { which, summary, failed } => {
            let status = if *failed { "failed" } else { "completed" };
            let body = json!({ "summary": summary, "status": status });
            let ended: TaskEnded = client.post_as(&which.task_path("/complete"), &body).await?;
            output.print_value(&ended, |_| format!("Task {} is {status}.", which.task))?;
        }
        TeamsTaskCommand::Release { which, note } => {
            let released: TeamTaskView =
                client.post_as(&which.task_path("/release"), &json!({ "note": note })).await?;
            output.print_value(&released, |_| format!("Task {} is pending.", which.task))?;
        }
        TeamsTaskCommand::Assign { which, assignee } => {
            let assigned: TeamTaskView =
                client.post_as(&which.task_path("/assign"), &json!({ "assignee": assignee })).await?;
            let whom = if assignee.is_empty() { "anyone" } else { assignee };
            output.print_value(&assigned, |_| format!("Task {} is assigned to {whom}.", which.task))?;
        }
        TeamsTaskCommand::Reopen { which } => {
            let reopened: TeamTaskView = client.post_as(&which.task_path("/reopen"), &json!({})).await?;
            output.print_value(&reopened, |_| format!("Task {} is pending.", which.task))?;
        }
        TeamsTaskCommand::Delete { which } => {
            let deleted: TeamTaskView = client.delete_as(&which.task_path("")).await?;
            output.print_value(&deleted, |_| format!("Deleted task {}.", which.task))?;
        }
    }
    Ok(())
}

pub(super) fn no_open_task(team: &str) -> String {
    format!("No open tasks. `polyclaw teams task list {team} --all` includes ended ones.")
}

pub(super) fn tasks_table(output: &CliOutput, listed: &[TeamTaskView]) -> String {
    let row = |task: &TeamTaskView| {
        let blockers: Vec<String> = task.blocked_by.iter().map(ToString::to_string).collect();
        vec![
            cell(&task.task_id),
            visible_line(&task.status),
            cell(&task.owner),
            cell(&task.assignee),
            sanitize::to_single_line(&visible_line(&task.title), MAX_TITLE),
            blockers.join(","),
        ]
    };
    let rows: Vec<_> = listed.iter().map(row).collect();
    output.format_table(&["TASK", "STATUS", "OWNER", "ASSIGNEE", "TITLE", "BLOCKED BY"], &rows)
}
