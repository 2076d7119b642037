//! `polyclaw approvals`: questions that wait for a person.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::client::{Client, segment};
use crate::output::cell;

/// Tool calls that wait for your yes or no: list, show, approve, deny.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw approvals list
  polyclaw approvals show 01j…
  polyclaw approvals approve 01j…
  polyclaw approvals deny 01j… --reason \"not on this machine\"

An agent that wants to run something risky, such as a shell command, waits for this for half an hour.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// All questions that wait.
    #[command(after_help = "Examples:
  polyclaw approvals list
  polyclaw approvals list --json")]
    List,
    /// All that one question says.
    #[command(after_help = "Examples:
  polyclaw approvals show 01j…")]
    Show {
        /// The ID that `polyclaw approvals` lists.
        id: String,
    },
    /// Let one call run, once.
    #[command(after_help = "Examples:
  polyclaw approvals approve 01j…")]
    Approve {
        /// The ID that `polyclaw approvals` lists.
        id: String,
    },
    /// Refuse one call; the agent is told so.
    #[command(after_help = "Examples:
  polyclaw approvals deny 01j…
  polyclaw approvals deny 01j… --reason \"not on this machine\"")]
    Deny {
        /// The ID that `polyclaw approvals` lists.
        id: String,
        /// What the agent is told.
        #[arg(long)]
        reason: Option<String>,
    },
}

pub async fn run(args: &Args, context: &Context) -> anyhow::Result<()> {
    let client = Client::new(context)?;
    let output = context.output;
    let (id, body, done) = match &args.verb {
        None | Some(Verb::List) => return list(&client, context).await,
        Some(Verb::Show { id }) => {
            let asked = client.get(&format!("/approvals/{}", segment(id))).await?;
            let text = shown(&asked);
            return Ok(output.say(&asked, |_| text)?);
        }
        Some(Verb::Approve { id }) => (id, json!({ "decision": "approve" }), "Approved: it runs now."),
        Some(Verb::Deny { id, reason }) => {
            (id, json!({ "decision": "deny", "reason": reason }), "Denied: the agent is told.")
        }
    };
    let decided = client.post(&format!("/approvals/{}", segment(id)), &body).await?;
    Ok(output.say(&decided, |_| done.to_owned())?)
}

/// The question, how it stands, where it was asked and how long it waits.
fn shown(asked: &Value) -> String {
    let told = |key: &str| cell(&asked[key]);
    let (state, session) = (told("state"), told("session_key"));
    let until = if state == "pending" { "open until" } else { "it was open until" };
    let (question, asked_by, expires_at) = (told("question"), told("asked_by"), told("expires_at"));
    format!("{question}\n\n{state}; asked by {asked_by} in {session}, {until} {expires_at}")
}

async fn list(client: &Client, context: &Context) -> anyhow::Result<()> {
    let answer = client.get("/approvals").await?;
    let approvals = answer["approvals"].as_array().cloned().unwrap_or_default();
    let row = |one: &Value| {
        let arguments = one["arguments"].to_string();
        vec![
            cell(&one["id"]),
            cell(&one["asked_by"]),
            cell(&one["tool"]),
            cell(&one["session_key"]),
            arguments,
        ]
    };
    let rows: Vec<_> = approvals.iter().map(row).collect();
    Ok(context.output.say(&answer, |output| match rows.is_empty() {
        true => "Nothing waits for you.".to_owned(),
        false => output.table(&["ID", "ASKED BY", "TOOL", "SESSION", "ARGUMENTS"], &rows),
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_shown_with_its_session_and_its_end() {
        let asked = json!({ "question": "Run it?", "state": "pending", "asked_by": "ann", "session_key": "agent:main:main",
            "expires_at": "2026-01-02T03:04:05Z" });
        assert_eq!(
            shown(&asked),
            "Run it?\n\npending; asked by ann in agent:main:main, open until 2026-01-02T03:04:05Z"
        );
    }
}
