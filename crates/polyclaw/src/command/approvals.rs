//! `polyclaw approvals`: tool calls that wait for a person's decision.

use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::cell_text;

/// Decide tool calls that wait for approval: list, show, approve, deny.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw approvals list
  polyclaw approvals show 01j…
  polyclaw approvals approve 01j…
  polyclaw approvals deny 01j… --reason \"not on this machine\"

Risky tool calls, such as shell commands, wait for approval. Requests expire after 30 minutes.")]
pub struct Args {
    #[command(subcommand)]
    verb: Option<ApprovalsCommand>,
}

#[derive(clap::Subcommand)]
enum ApprovalsCommand {
    /// List all pending requests.
    #[command(after_help = "Examples:
  polyclaw approvals list
  polyclaw approvals list --json")]
    List,
    /// Show one request in full.
    #[command(after_help = "Examples:
  polyclaw approvals show 01j…")]
    Show {
        /// ID that `polyclaw approvals` lists.
        id: String,
    },
    /// Approve one call. It runs once.
    #[command(after_help = "Examples:
  polyclaw approvals approve 01j…")]
    Approve {
        /// ID that `polyclaw approvals` lists.
        id: String,
    },
    /// Deny one call. The agent gets the reason as the result.
    #[command(after_help = "Examples:
  polyclaw approvals deny 01j…
  polyclaw approvals deny 01j… --reason \"not on this machine\"")]
    Deny {
        /// ID that `polyclaw approvals` lists.
        id: String,
        /// Reason given to the agent.
        #[arg(long)]
        reason: Option<String>,
    },
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let output = context.output;
    let (id, body, done) = match &args.verb {
        None | Some(ApprovalsCommand::List) => return list_approvals(&client, context).await,
        Some(ApprovalsCommand::Show { id }) => {
            let asked = client.get(&format!("/approvals/{}", encode_segment(id))).await?;
            let text = approval_text(&asked);
            return Ok(output.print_value(&asked, |_| text)?);
        }
        Some(ApprovalsCommand::Approve { id }) => {
            (id, json!({ "decision": "approve" }), "Approved. The call runs now.")
        }
        Some(ApprovalsCommand::Deny { id, reason }) => {
            (id, json!({ "decision": "deny", "reason": reason }), "Denied. The agent is notified.")
        }
    };
    let decided = client.post(&format!("/approvals/{}", encode_segment(id)), &body).await?;
    Ok(output.print_value(&decided, |_| done.to_owned())?)
}

/// Formats a request: question, state, requester, session and expiry.
fn approval_text(asked: &Value) -> String {
    let text_of = |key: &str| cell_text(&asked[key]);
    let (state, session) = (text_of("state"), text_of("session_key"));
    let until = if state == "pending" { "expires at" } else { "expiry was" };
    let (question, asked_by, expires_at) =
        (text_of("question"), text_of("requested_by"), text_of("expires_at"));
    format!("{question}\n\n{state}; requested by {asked_by} in {session}, {until} {expires_at}")
}

async fn list_approvals(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let answer = client.get("/approvals").await?;
    let approvals = answer["approvals"].as_array().cloned().unwrap_or_default();
    let row = |one: &Value| {
        let arguments = one["arguments"].to_string();
        vec![
            cell_text(&one["id"]),
            cell_text(&one["requested_by"]),
            cell_text(&one["tool"]),
            cell_text(&one["session_key"]),
            arguments,
        ]
    };
    let rows: Vec<_> = approvals.iter().map(row).collect();
    Ok(context.output.print_value(&answer, |output| {
        if rows.is_empty() {
            "No pending approvals.".to_owned()
        } else {
            output.format_table(&["ID", "REQUESTED BY", "TOOL", "SESSION", "ARGUMENTS"], &rows)
        }
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_shown_with_its_session_and_its_end() {
        let asked = json!({ "question": "Run it?", "state": "pending", "requested_by": "ann", "session_key": "agent:main:main",
            "expires_at": "2026-01-02T03:04:05Z" });
        assert_eq!(
            approval_text(&asked),
            "Run it?\n\npending; requested by ann in agent:main:main, expires at 2026-01-02T03:04:05Z"
        );
    }
}
