//! `polyclaw route`: explains routing decisions.

use polyclaw_api::route::{CandidateView, RouteExplanation};
use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::output::{CliOutput, cell, visible_line};

/// Explain which agent would answer a message, and why.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw route explain --channel telegram --peer 123456 --text \"hello\"
  polyclaw route explain --channel discord --kind channel --peer c1 --guild g1 --role admin,ops --sender u1 --mentioned
  polyclaw route explain --channel telegram --peer 123456 --text \"/ops restart\" --json

Uses the same code as real messages, but changes and stores nothing and calls no model.")]
pub struct Args {
    #[command(subcommand)]
    verb: RouteCommand,
}

#[derive(clap::Subcommand)]
enum RouteCommand {
    /// Explain the routing of a message: each binding and why it lost, the session, model and tools.
    #[command(after_help = "Examples:
  polyclaw route explain --channel telegram --peer 123456 --text \"hello\"
  polyclaw route explain --channel discord --kind channel --peer c1 --guild g1 --role admin,ops --sender u1 --mentioned")]
    Explain(Box<RouteExplainArgs>),
}

#[derive(clap::Args)]
struct RouteExplainArgs {
    /// Channel that the message arrives on, such as telegram.
    #[arg(long)]
    channel: String,
    /// Account that receives the message. Defaults to the channel's default account.
    #[arg(long)]
    account: Option<String>,
    /// Platform ID of the conversation. Defaults to the sender's ID.
    #[arg(long, allow_hyphen_values = true)]
    peer: Option<String>,
    /// Kind of the conversation: direct, group or channel. Defaults to direct.
    #[arg(long, value_parser = ["direct", "dm", "group", "channel"])]
    kind: Option<String>,
    /// Platform ID of the parent conversation, if this one is a thread.
    #[arg(long, allow_hyphen_values = true)]
    parent: Option<String>,
    /// Platform ID of the sender. Defaults to the peer.
    #[arg(long, allow_hyphen_values = true)]
    sender: Option<String>,
    /// Server (guild) that the message is written in.
    #[arg(long)]
    guild: Option<String>,
    /// Workspace (team) that the message is written in.
    #[arg(long)]
    team: Option<String>,
    /// The sender's roles in that server, separated by commas.
    #[arg(long, value_delimiter = ',')]
    role: Vec<String>,
    /// Thread that the message is written in.
    #[arg(long)]
    thread: Option<String>,
    /// Topic that the message is written in.
    #[arg(long)]
    topic: Option<String>,
    /// Treat the message as one that mentions the account or replies to it. Most groups are answered only then.
    #[arg(long)]
    mentioned: bool,
    /// Text of the message.
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
}

impl RouteExplainArgs {
    fn request_body(&self) -> Result<Value, CommandFailure> {
        let Some(peer) = self.peer.as_ref().or(self.sender.as_ref()) else {
            return Err(CommandFailure::usage(
                "missing conversation: pass --peer, or --sender for a direct message",
            ));
        };
        let mut body = json!({
            "channel": self.channel,
            "peer": { "id": peer },
            "roles": self.role,
            "mentioned": self.mentioned,
        });
        if let Some(kind) = &self.kind {
            body["peer"]["kind"] = json!(kind);
        }
        if let Some(parent) = &self.parent {
            body["parent_peer"] = json!({ "id": parent });
        }
        let named = [
            ("account_id", &self.account),
            ("guild_id", &self.guild),
            ("team_id", &self.team),
            ("sender", &self.sender),
            ("thread", &self.thread),
            ("topic", &self.topic),
            ("text", &self.text),
        ];
        for (name, value) in named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            body[name] = json!(value);
        }
        Ok(body)
    }
}

pub async fn run(args: &Args, context: &CommandContext) -> anyhow::Result<()> {
    let client = ApiClient::new(context)?;
    let RouteCommand::Explain(event) = &args.verb;
    let body: RouteExplanation = client.post_as("/route/explain", &event.request_body()?).await?;
    Ok(context.output.print_value(&body, |output| explanation_text(&body, *output))?)
}

fn explanation_text(body: &RouteExplanation, output: CliOutput) -> String {
    let mut lines = vec![format!("admission  {}", visible_line(&body.admission))];
    match (&body.command, &body.layer) {
        (Some(command), _) => lines.push(format!("command    /{command}: handled without an agent")),
        (None, None) => lines.push("no agent answers".to_owned()),
        (None, Some(layer)) => {
            lines.push(format!("decided by {}, best tier {}", visible_line(layer), cell(&body.tier)));
        }
    }
    if body.asks_classifier {
        lines.push("A model would be called to check whether another agent fits better.".to_owned());
    }
    for one in &body.answers {
        let allowed = one.tools.iter().filter(|policy| policy.allowed);
        let tools = allowed.map(|policy| visible_line(&policy.tool.name)).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "\nagent      {}\nsession    {}\nmodel      {}\ntools      {tools}",
            cell(&one.agent_id),
            cell(&one.session_key),
            cell(&one.model)
        ));
    }
    let row = |one: &CandidateView| {
        let why = if one.selected { "best match".to_owned() } else { cell(&one.rejected_because) };
        vec![format!("bindings[{}]", one.binding), cell(&one.agent_id), cell(&one.tier), why]
    };
    let rows: Vec<_> = body.candidates.iter().map(row).collect();
    if !rows.is_empty() {
        lines.push(format!("\n{}", output.format_table(&["BINDING", "AGENT", "TIER", "REASON"], &rows)));
    }
    lines.join("\n")
}
