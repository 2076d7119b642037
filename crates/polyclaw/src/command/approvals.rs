//! `polyclaw approvals`: tool calls that wait for a person's decision.

use polyclaw_api::approvals::{ApprovalList, ApprovalView};
use polyclaw_domain::approval::ApprovalState;
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::{ApiClient, encode_segment};
use crate::output::{cell, visible_line};

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
            let asked: ApprovalView = client.get_as(&format!("/approvals/{}", encode_segment(id))).await?;
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
    let decided: ApprovalView = client.post_as(&format!("/approvals/{}", encode_segment(id)), &body).await?;
    Ok(output.print_value(&decided, |_| done.to_owned())?)
}

/// Formats a request: question, state, requester, session and expiry.
fn approval_text(asked: &ApprovalView) -> String {
    let until = if asked.state == ApprovalState::Pending { "expires at" } else { "expiry was" };
    format!(
        "{}\n\n{}; requested by {} in {}, {until} {}",
        visible_line(&asked.question),
        asked.state.as_str(),
        visible_line(&asked.requested_by),
        cell(&asked.session_key),
        asked.expires_at
    )
}

async fn list_approvals(client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let answer: ApprovalList = client.get_as("/approvals").await?;
    let row = |one: &ApprovalView| {
        vec![
            cell(&one.id),
            visible_line(&one.requested_by),
            visible_line(&one.tool),
            cell(&one.session_key),
            one.arguments.to_string(),
        ]
    };
    let rows: Vec<_> = answer.approvals.iter().map(row).collect();
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
    fn approval_text_shows_session_and_expiry() {
        let asked = json!({ "id": "a", "session_key": "agent:main:main", "turn_id": "t", "call_id": "c", "tool": "shell",
            "arguments": {}, "fingerprint": "f", "question": "Run it?", "requested_by": "ann", "origin": null,
            "decided_by": null, "state": "pending", "reason": null, "expires_at": "2026-01-02T03:04:05.000Z",
            "created_at": "2026-01-02T03:04:05.000Z" });
        assert_eq!(
            approval_text(&serde_json::from_value(asked).unwrap()),
            "Run it?\n\npending; requested by ann in agent:main:main, expires at 2026-01-02T03:04:05.000Z"
        );
    }
}
