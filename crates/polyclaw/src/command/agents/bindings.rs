//! `polyclaw agents bind` and `unbind`: the `[[bindings]]` of the config.

use polyclaw_control::config::edit;
use serde_json::{Map, Value, json};

use super::path;
use crate::cli::Context;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::own_config;

const LIST: &str = "bindings";

#[derive(clap::Args)]
pub struct Args {
    /// The agent that answers.
    id: String,
    /// The channel a message comes by, such as telegram.
    #[arg(long)]
    channel: String,
    #[command(flatten)]
    place: Place,
    /// How conversations of single persons are kept apart here.
    #[arg(long, value_parser = ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"])]
    dm_scope: Option<String>,
}

#[derive(clap::Args)]
pub struct Unbind {
    /// The agent that answers.
    id: String,
    /// The channel of the binding.
    #[arg(long, required_unless_present = "all")]
    channel: Option<String>,
    #[command(flatten)]
    place: Place,
    /// All bindings of the agent.
    #[arg(long, conflicts_with_all = ["channel", "account", "peer", "guild", "role", "team"])]
    all: bool,
}

#[derive(clap::Args)]
struct Place {
    /// The account it comes to: the channel's default one if left out, every one if *.
    #[arg(long)]
    account: Option<String>,
    /// The platform's id of the conversation; * for all of a kind.
    #[arg(long, allow_hyphen_values = true)]
    peer: Option<String>,
    /// What the conversation is.
    #[arg(long, requires = "peer", value_parser = ["dm", "group", "channel"], default_value = "dm")]
    kind: String,
    /// The server it is written in.
    #[arg(long)]
    guild: Option<String>,
    /// The sender is one of these in that server; several with commas between them.
    #[arg(long, value_delimiter = ',')]
    role: Vec<String>,
    /// The workspace it is written in.
    #[arg(long)]
    team: Option<String>,
}

impl Place {
    /// The `match` of a binding.
    fn wanted(&self, channel: &str) -> Value {
        let mut wanted = Map::new();
        wanted.insert("channel".to_owned(), json!(channel));
        for (field, value) in
            [("account_id", &self.account), ("guild_id", &self.guild), ("team_id", &self.team)]
        {
            if let Some(value) = value {
                wanted.insert(field.to_owned(), json!(value));
            }
        }
        if let Some(peer) = &self.peer {
            wanted.insert("peer".to_owned(), json!({ "kind": self.kind, "id": peer }));
        }
        if !self.role.is_empty() {
            wanted.insert("roles".to_owned(), json!(self.role));
        }
        Value::Object(wanted)
    }
}

pub async fn bind(args: &Args, client: &Client, context: &Context) -> anyhow::Result<()> {
    let wanted = args.place.wanted(&args.channel);
    let mut binding = json!({ "agent_id": args.id, "match": wanted });
    if let Some(scope) = &args.dm_scope {
        binding["dm_scope"] = json!(scope);
    }
    let is_there = bound(client, &args.id).await?.iter().any(|(_, there)| *there == wanted);
    if is_there {
        return Err(Failure::new(Exit::Conflict, "binding_exists", "the config says so already").into());
    }
    own_config::change(context, client, |text| edit::append(text, LIST, &binding)).await
}

pub async fn unbind(args: &Unbind, client: &Client, context: &Context) -> anyhow::Result<()> {
    let wanted = args.channel.as_ref().map(|channel| args.place.wanted(channel));
    let fits = |there: &Value| wanted.as_ref().is_none_or(|wanted| wanted == there);
    let bound = bound(client, &args.id).await?;
    let found: Vec<usize> = bound.iter().filter(|(_, there)| fits(there)).map(|(at, _)| *at).collect();
    if found.is_empty() {
        return Err(Failure::new(Exit::NotFound, "unknown_binding", "there is no such binding")
            .hint("`polyclaw agents list --bindings` shows those there are")
            .into());
    }
    own_config::change(context, client, |text| edit::remove(text, LIST, &found)).await
}

/// The bindings of an agent, each with its place in the config.
async fn bound(client: &Client, id: &str) -> Result<Vec<(usize, Value)>, Failure> {
    let agent = client.get(&path(id)).await?;
    let one = |binding: &Value| {
        let at = usize::try_from(binding["binding"].as_u64()?).ok()?;
        Some((at, binding["match"].clone()))
    };
    Ok(agent["bindings"].as_array().into_iter().flatten().filter_map(one).collect())
}
