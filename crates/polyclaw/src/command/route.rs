//! `polyclaw route`: who answers what.

use serde_json::{Value, json};

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::failure::CommandFailure;
use crate::output::{CliOutput, cell_text, visible_line};

/// Who would answer a message, and why.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  polyclaw route explain --channel telegram --peer 123456 --text \"hello\"
  polyclaw route explain --channel discord --kind channel --peer c1 --guild g1 --role admin,ops --sender u1 --mentioned
  polyclaw route explain --channel telegram --peer 123456 --text \"/ops restart\" --json

It is decided by the code that decides about real messages. Nothing is changed, nothing stored, and no model asked.")]
pub struct Args {
    #[command(subcommand)]
    verb: RouteCommand,
}

#[derive(clap::Subcommand)]
enum RouteCommand {
    /// What decides about a message: every binding with why it lost, the session, the model and the tools.
    #[command(after_help = "Examples:
  polyclaw route explain --channel telegram --peer 123456 --text \"hello\"
  polyclaw route explain --channel discord --kind channel --peer c1 --guild g1 --role admin,ops --sender u1 --mentioned")]
    Explain(Box<RouteExplainArgs>),
}

#[derive(clap::Args)]
struct RouteExplainArgs {
    /// The channel it comes by, such as telegram.
    #[arg(long)]
    channel: String,
    /// The account it comes to; the channel's default account if left out.
    #[arg(long)]
    account: Option<String>,
    /// The platform's id of the conversation; the sender's if left out.
    #[arg(long, allow_hyphen_values = true)]
    peer: Option<String>,
    /// What the conversation is: direct, group or channel; direct if left out.
    #[arg(long, value_parser = ["direct", "dm", "group", "channel"])]
    kind: Option<String>,
    /// The platform's id of the conversation it is a thread of.
    #[arg(long, allow_hyphen_values = true)]
    parent: Option<String>,
    /// The platform's id of whoever writes; the peer's if left out.
    #[arg(long, allow_hyphen_values = true)]
    sender: Option<String>,
    /// The server it is written in.
    #[arg(long)]
    guild: Option<String>,
    /// The workspace it is written in.
    #[arg(long)]
    team: Option<String>,
    /// What the sender is in that server; several with commas between them.
    #[arg(long, value_delimiter = ',')]
    role: Vec<String>,
    /// The thread it is written in.
    #[arg(long)]
    thread: Option<String>,
    /// The topic it is written in.
    #[arg(long)]
    topic: Option<String>,
    /// The account is named in the text, or the message replies to it. Most groups are answered only then.
    #[arg(long)]
    mentioned: bool,
    /// What is written.
    #[arg(long, allow_hyphen_values = true)]
    text: Option<String>,
}

impl RouteExplainArgs {
    fn request_body(&self) -> Result<Value, CommandFailure> {
        let Some(peer) = self.peer.as_ref().or(self.sender.as_ref()) else {
            return Err(CommandFailure::usage(
                "name where it is written: --peer, or --sender for a direct message",
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
    let body = client.post("/route/explain", &event.request_body()?).await?;
    Ok(context.output.print_value(&body, |output| explanation_text(&body, *output))?)
}

fn explanation_text(body: &Value, output: CliOutput) -> String {
    let list = |field: &str| body[field].as_array().cloned().unwrap_or_default();
    let mut lines = vec![format!("admission  {}", cell_text(&body["admission"]))];
    match body["command"].as_str() {
        Some(command) => lines.push(format!("command    /{command}: nobody is asked")),
        None if body["layer"].is_null() => lines.push("nobody answers".to_owned()),
        None => lines.push(format!(
            "decided by {}, best tier {}",
            cell_text(&body["layer"]),
            cell_text(&body["tier"])
        )),
    }
    if body["asks_classifier"] == true {
        lines.push("A model would be asked whether another agent fits better.".to_owned());
    }
    for one in list("answers") {
        let has = one["tools"].as_array().into_iter().flatten().filter(|tool| tool["allowed"] == true);
        let tools = has.map(|tool| cell_text(&tool["name"])).collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "\nagent      {}\nsession    {}\nmodel      {}\ntools      {tools}",
            cell_text(&one["agent_id"]),
            visible_line(&cell_text(&one["session_key"])),
            cell_text(&one["model"])
        ));
    }
    let row = |one: &Value| {
        let why = if one["selected"] == true {
            "fits best".to_owned()
        } else {
            cell_text(&one["rejected_because"])
        };
        vec![
            format!("bindings[{}]", cell_text(&one["binding"])),
            cell_text(&one["agent_id"]),
            cell_text(&one["tier"]),
            why,
        ]
    };
    let rows: Vec<_> = list("candidates").iter().map(row).collect();
    if !rows.is_empty() {
        lines.push(format!("\n{}", output.format_table(&["BINDING", "AGENT", "TIER", "WHY"], &rows)));
    }
    lines.join("\n")
}
