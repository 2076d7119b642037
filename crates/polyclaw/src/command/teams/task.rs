//! `polyclaw teams task`: the list of what is to be done.

use polyclaw_domain::sanitize;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::{Output, cell};

/// Tasks that are listed at once; more is nothing to read at a terminal.
const MOST_TASKS: usize = 10_000;

/// Characters of a title that a table shows.
const MAX_TITLE: usize = 50;

#[derive(clap::Subcommand)]
pub(super) enum TaskVerb {
    /// Add a task.
    #[command(after_help = "Examples:
  polyclaw teams task add site \"Draw the header\" --assignee ann
  polyclaw teams task add site \"Hang it\" --after 1,2 --verify \"make check\"")]
    Add(Add),
    /// Tasks of a team, the newest first.
    #[command(after_help = "Examples:
  polyclaw teams task list site
  polyclaw teams task list site --all --json")]
    List {
        /// The name that `polyclaw teams` lists.
        team: String,
        /// Those that have ended, too.
        #[arg(long)]
        all: bool,
    },
    /// End a task as completed or failed, whoever holds it.
    #[command(after_help = "Examples:
  polyclaw teams task complete site 3 --summary \"It is online.\"
  polyclaw teams task complete site 3 --failed")]
    Complete {
        #[command(flatten)]
        which: Which,
        /// What came of it.
        #[arg(long)]
        summary: Option<String>,
        /// It could not be done.
        #[arg(long)]
        failed: bool,
    },
    /// Take a task back from whoever holds it.
    #[command(after_help = "Examples:
  polyclaw teams task release site 3 --note \"Ann is away.\"")]
    Release {
        #[command(flatten)]
        which: Which,
        /// Why, for whoever takes it next.
        #[arg(long)]
        note: Option<String>,
    },
    /// Say who may take a task.
    #[command(after_help = "Examples:
  polyclaw teams task assign site 3 ann
  polyclaw teams task assign site 3 \"\"")]
    Assign {
        #[command(flatten)]
        which: Which,
        /// The one member who may take it; an empty name is for whoever comes.
        assignee: String,
    },
    /// Open a task again that has ended.
    #[command(after_help = "Examples:
  polyclaw teams task reopen site 3")]
    Reopen {
        #[command(flatten)]
        which: Which,
    },
    /// Remove a task that nobody holds.
    #[command(after_help = "Examples:
  polyclaw teams task delete site 3")]
    Delete {
        #[command(flatten)]
        which: Which,
    },
}

#[derive(clap::Args)]
pub(super) struct Which {
    /// The name that `polyclaw teams` lists.
    team: String,
    /// The number that `polyclaw teams task list` shows.
    task: i64,
}

#[derive(clap::Args)]
pub(super) struct Add {
    /// The name that `polyclaw teams` lists.
    team: String,
    /// At most 200 characters.
    subject: String,
    /// Everything whoever takes it needs to know.
    #[arg(long, default_value = "")]
    description: String,
    /// Numbers of tasks that must be completed first.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    after: Vec<i64>,
    /// The one member who may take it.
    #[arg(long)]
    assignee: Option<String>,
    /// A command line that must end with 0 before it counts as completed.
    #[arg(long, value_name = "COMMAND")]
    verify: Option<String>,
}

impl Add {
    fn body(&self) -> Value {
        json!({
            "subject": self.subject,
            "description": self.description,
            "depends_on": self.after,
            "assignee": self.assignee,
            "verify": self.verify.as_ref().map(|line| json!({ "command": line })),
        })
    }
}

impl Which {
    fn path(&self, act: &str) -> String {
        format!("/teams/{}/tasks/{}{act}", segment(&self.team), self.task)
    }
}

pub(super) async fn run(verb: &TaskVerb, client: &Client, context: &Context) -> anyhow::Result<()> {
    let path = |team: &str, rest: &str| format!("/teams/{}{rest}", segment(team));
    let (answer, said) = match verb {
        TaskVerb::Add(add) => {
            let made = client.post(&path(&add.team, "/tasks"), &add.body()).await?;
            let said = format!("Task {} is on the list.", cell(&made["task_id"]));
            (made, said)
        }
        TaskVerb::List { team, all } => {
            let found = client.list(&path(team, &format!("/tasks?all={all}")), "tasks", MOST_TASKS).await?;
            let is_empty = found.is_empty();
            let answer = json!({ "tasks": found });
            return Ok(context.output.say(&answer, |output| match (is_empty, all) {
                (false, _) => tasks(output, &answer["tasks"]),
                (true, false) => no_open_task(team),
                (true, true) => "There is no task.".to_owned(),
            })?);
        }
        TaskVerb::Complete { which, summary, failed } => {
            let status = if *failed { "failed" } else { "completed" };
            let body = json!({ "summary": summary, "status": status });
            (client.post(&which.path("/complete"), &body).await?, format!("Task {} is {status}.", which.task))
        }
        TaskVerb::Release { which, note } => {
            let released = client.post(&which.path("/release"), &json!({ "note": note })).await?;
            (released, format!("Task {} is pending.", which.task))
        }
        TaskVerb::Assign { which, assignee } => {
            let assigned = client.post(&which.path("/assign"), &json!({ "assignee": assignee })).await?;
            let whom = if assignee.is_empty() { "whoever comes" } else { assignee };
            (assigned, format!("Task {} is for {whom}.", which.task))
        }
        TaskVerb::Reopen { which } => (
            client.post(&which.path("/reopen"), &json!({})).await?,
            format!("Task {} is pending.", which.task),
        ),
        TaskVerb::Delete { which } => {
            (client.delete(&which.path("")).await?, format!("Task {} is gone.", which.task))
        }
    };
    Ok(context.output.say(&answer, |_| said)?)
}

pub(super) fn no_open_task(team: &str) -> String {
    format!("No task is open. `polyclaw teams task list {team} --all` shows those that have ended.")
}

pub(super) fn tasks(output: &Output, listed: &Value) -> String {
    let row = |task: &Value| {
        let waits: Vec<String> = task["blocked_by"].as_array().into_iter().flatten().map(cell).collect();
        vec![
            cell(&task["task_id"]),
            cell(&task["status"]),
            cell(&task["owner"]),
            cell(&task["assignee"]),
            sanitize::to_single_line(&cell(&task["title"]), MAX_TITLE),
            waits.join(","),
        ]
    };
    let rows: Vec<_> = listed.as_array().into_iter().flatten().map(row).collect();
    output.table(&["TASK", "STATUS", "OWNER", "FOR", "WHAT", "WAITS FOR"], &rows)
}
