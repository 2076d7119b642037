//! `polyclaw teams`: agents that work together.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

/// Agents that work together: list, show, create, task add, send, shutdown.
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
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// All teams.
    List {
        /// Those that have ended, too.
        #[arg(long)]
        all: bool,
    },
    /// Show one team: members, tasks, progress.
    Show {
        /// The name that `polyclaw teams` lists.
        name: String,
    },
    /// Make a team.
    Create {
        /// Lower-case letters, digits, '_' and '-'.
        name: String,
        /// What it is for.
        #[arg(long, default_value = "")]
        description: String,
        /// The session that leads it. The main one of the default agent if left out.
        #[arg(long, value_name = "SESSION")]
        lead: Option<String>,
    },
    /// Add a member.
    Join(Join),
    /// Tasks of a team.
    #[command(subcommand)]
    Task(TaskVerb),
    /// Write to a member, to the lead, or to all.
    Send {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// A member's name, `lead` or `all`.
        recipient: String,
        /// What to say.
        content: String,
    },
    /// End a team: every member is asked, and may object.
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
    Lead {
        /// The name that `polyclaw teams` lists.
        name: String,
        /// The key of the session.
        session: String,
    },
}

#[derive(clap::Args)]
struct Join {
    /// The name that `polyclaw teams` lists.
    team: String,
    /// By which it gets mail and tasks.
    name: String,
    /// The agent it is. The lead's own if left out.
    #[arg(long)]
    agent: Option<String>,
    /// Its first message. Without one it waits for mail.
    #[arg(long)]
    task: Option<String>,
    /// A few words for people.
    #[arg(long)]
    role: Option<String>,
    /// Give the name of a member that is there to a new session.
    #[arg(long)]
    replace: bool,
}

#[derive(clap::Subcommand)]
enum TaskVerb {
    /// Add a task.
    Add(Add),
    /// Tasks of a team, the newest first.
    List {
        /// The name that `polyclaw teams` lists.
        team: String,
        /// Those that have ended, too.
        #[arg(long)]
        all: bool,
    },
}

#[derive(clap::Args)]
struct Add {
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

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let path = |name: &str, rest: &str| format!("/teams/{}{rest}", segment(name));
    match &args.verb {
        None => list(&client, context, false).await,
        Some(Verb::List { all }) => list(&client, context, *all).await,
        Some(Verb::Show { name }) => {
            let team = client.get(&path(name, "")).await?;
            Ok(context.output.say(&team, |output| whole(output, &team))?)
        }
        Some(Verb::Create { name, description, lead }) => {
            let body = json!({ "name": name, "description": description, "lead_session_key": lead });
            let made = client.post("/teams", &body).await?;
            Ok(context
                .output
                .say(&made, |_| format!("{name} is there, led by {}.", cell(&made["lead_session_key"])))?)
        }
        Some(Verb::Join(join)) => {
            let body = json!({ "name": join.name, "agent_id": join.agent, "task": join.task, "role": join.role,
                "replace": join.replace });
            let joined = client.post(&path(&join.team, "/members"), &body).await?;
            Ok(context
                .output
                .say(&joined, |_| format!("{} works in {}.", join.name, cell(&joined["session_key"])))?)
        }
        Some(Verb::Task(TaskVerb::Add(add))) => {
            let made = client.post(&path(&add.team, "/tasks"), &add.body()).await?;
            Ok(context.output.say(&made, |_| format!("Task {} is on the list.", cell(&made["task_id"])))?)
        }
        Some(Verb::Task(TaskVerb::List { team, all })) => {
            let answer = client.get(&path(team, &format!("/tasks?all={all}"))).await?;
            Ok(context.output.say(&answer, |output| tasks(output, &answer["tasks"]))?)
        }
        Some(Verb::Send { name, recipient, content }) => {
            let to = Some(recipient).filter(|recipient| *recipient != "all");
            let sent = client
                .post(&path(name, "/messages"), &json!({ "recipient": to, "content": content }))
                .await?;
            let count = sent["recipients"].as_array().map_or(0, Vec::len);
            Ok(context.output.say(&sent, |_| format!("Sent to {count}."))?)
        }
        Some(Verb::Shutdown { name, reason, force }) => {
            let ended =
                client.post(&path(name, "/shutdown"), &json!({ "reason": reason, "force": force })).await?;
            Ok(context.output.say(&ended, |_| match ended["status"].as_str() {
                Some("shutdown") => format!("{name} has ended."),
                Some("shutting_down") => format!("{name}: its members are asked."),
                _ => format!("{name} goes on: a member objects."),
            })?)
        }
        Some(Verb::Lead { name, session }) => {
            let team = client.put(&path(name, "/lead"), &json!({ "session_key": session })).await?;
            Ok(context.output.say(&team, |_| format!("{name} is led by {session}."))?)
        }
    }
}

async fn list(client: &Client, context: &Context, all: bool) -> anyhow::Result<()> {
    let answer = client.get(&format!("/teams?all={all}")).await?;
    let row = |team: &Value| {
        ["name", "status", "lead_session_key", "description"].map(|key| cell(&team[key])).to_vec()
    };
    let rows: Vec<_> = answer["teams"].as_array().into_iter().flatten().map(row).collect();
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "There is no team. `polyclaw teams create --help` shows how.".to_owned(),
        false => output.table(&["NAME", "STATUS", "LEAD", "FOR"], &rows),
    })?)
}

fn whole(output: &crate::output::Output, team: &Value) -> String {
    let member = |one: &Value| {
        let holds: Vec<String> = one["tasks"].as_array().into_iter().flatten().map(cell).collect();
        vec![cell(&one["name"]), cell(&one["role"]), cell(&one["status"]), holds.join("; ")]
    };
    let members: Vec<_> = team["members"].as_array().into_iter().flatten().map(member).collect();
    let count = |key: &str| cell(&team["counts"][key]);
    format!(
        "{} ({}), led by {}\n\n{}\n\n{} pending, {} in progress, {} blocked, {} done, {} failed\n\n{}",
        cell(&team["name"]),
        cell(&team["status"]),
        cell(&team["lead_session_key"]),
        output.table(&["MEMBER", "ROLE", "STATUS", "HOLDS"], &members),
        count("pending"),
        count("in_progress"),
        count("blocked"),
        count("completed"),
        count("failed"),
        tasks(output, &team["open"]),
    )
}

fn tasks(output: &crate::output::Output, listed: &Value) -> String {
    let row = |task: &Value| {
        let waits: Vec<String> = task["blocked_by"].as_array().into_iter().flatten().map(cell).collect();
        vec![
            cell(&task["task_id"]),
            cell(&task["status"]),
            cell(&task["owner"]),
            cell(&task["title"]),
            waits.join(","),
        ]
    };
    let rows: Vec<_> = listed.as_array().into_iter().flatten().map(row).collect();
    output.table(&["TASK", "STATUS", "OWNER", "WHAT", "WAITS FOR"], &rows)
}
