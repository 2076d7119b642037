//! `polyclaw agents bind` and `unbind`: the `[[bindings]]` of the config.

use polyclaw_control::config::edit;
use polyclaw_domain::inbound::{ChatPeer, PeerKind};
use polyclaw_domain::route::{Binding, BindingMatch};
use serde::Deserialize;
use serde_json::json;

use crate::cli::CommandContext;
use crate::client::ApiClient;
use crate::config_edit;
use crate::failure::{CommandFailure, FailureExit};

const BINDINGS_KEY: &str = "bindings";

#[derive(clap::Args)]
pub struct Args {
    /// The agent that answers.
    id: String,
    /// Channel that the message arrives on, such as telegram.
    #[arg(long)]
    channel: String,
    #[command(flatten)]
    place: BindingMatchArgs,
    /// How direct messages of this binding are split into sessions.
    #[arg(long, value_parser = ["main", "per-peer", "per-channel-peer", "per-account-channel-peer"])]
    dm_scope: Option<String>,
}

#[derive(clap::Args)]
pub struct AgentsUnbindArgs {
    /// The agent whose bindings are removed.
    id: String,
    /// Channel of the binding.
    #[arg(long, required_unless_present = "all")]
    channel: Option<String>,
    #[command(flatten)]
    place: BindingMatchArgs,
    /// Remove all bindings of the agent.
    #[arg(long, conflicts_with_all = ["channel", "account", "peer", "guild", "role", "team"])]
    all: bool,
}

#[derive(clap::Args)]
struct BindingMatchArgs {
    /// Account that receives the message. If omitted, the channel's default account; * matches every account.
    #[arg(long)]
    account: Option<String>,
    /// Platform ID of the conversation; * matches every conversation of the kind.
    #[arg(long, allow_hyphen_values = true)]
    peer: Option<String>,
    /// Kind of the conversation.
    #[arg(long, requires = "peer", value_parser = ["direct", "dm", "group", "channel"], default_value = "direct")]
    kind: String,
    /// Server (guild) that the message is written in.
    #[arg(long)]
    guild: Option<String>,
    /// Roles in that server, separated by commas. The sender must have one of them.
    #[arg(long, value_delimiter = ',')]
    role: Vec<String>,
    /// Workspace (team) that the message is written in.
    #[arg(long)]
    team: Option<String>,
}

impl BindingMatchArgs {
    /// Builds the `match` of a binding.
    fn binding_match(&self, channel: &str) -> BindingMatch {
        let kind = match self.kind.as_str() {
            "group" => PeerKind::Group,
            "channel" => PeerKind::Channel,
            _ => PeerKind::Dm,
        };
        BindingMatch {
            channel: channel.to_owned(),
            account_id: self.account.clone(),
            peer: self.peer.clone().map(|id| ChatPeer { kind, id }),
            guild_id: self.guild.clone(),
            roles: self.role.clone(),
            team_id: self.team.clone(),
        }
    }
}

pub async fn bind_agent(args: &Args, client: &ApiClient, context: &CommandContext) -> anyhow::Result<()> {
    let wanted = args.place.binding_match(&args.channel);
    let mut binding = json!({ "agent_id": args.id, "match": wanted });
    if let Some(scope) = &args.dm_scope {
        binding["dm_scope"] = json!(scope);
    }
    let change = |text: &str| {
        if matching_bindings(text, &args.id, |there| *there == wanted)?.is_empty() {
            Ok(edit::append_entry(text, BINDINGS_KEY, &binding)?)
        } else {
            Err(CommandFailure::new(
                FailureExit::Conflict,
                "binding_exists",
                "the config already has this binding",
            ))
        }
    };
    config_edit::edit_config(context, client, change).await
}

pub async fn unbind_agent(
    args: &AgentsUnbindArgs,
    client: &ApiClient,
    context: &CommandContext,
) -> anyhow::Result<()> {
    let wanted = args.channel.as_ref().map(|channel| args.place.binding_match(channel));
    let fits = |there: &BindingMatch| wanted.as_ref().is_none_or(|wanted| wanted == there);
    let change = |text: &str| {
        let found = matching_bindings(text, &args.id, fits)?;
        if found.is_empty() {
            return Err(CommandFailure::new(FailureExit::NotFound, "unknown_binding", "no binding matches")
                .hint("`polyclaw agents list --bindings` lists all bindings"));
        }
        Ok(edit::remove_entries(text, BINDINGS_KEY, &found)?)
    };
    config_edit::edit_config(context, client, change).await
}

/// Returns the positions of the agent's matching bindings in the text being edited. The running daemon may use
/// another version of the config.
fn matching_bindings(
    text: &str,
    id: &str,
    fits: impl Fn(&BindingMatch) -> bool,
) -> Result<Vec<usize>, CommandFailure> {
    let document = edit::to_json(edit::parse(text)?.as_item());
    let bindings =
        document[BINDINGS_KEY].as_array().into_iter().flatten().map(|entry| Binding::deserialize(entry).ok());
    let is_meant = |one: &Binding| one.agent_id.as_str() == id && fits(&one.match_rule);
    let found = bindings.enumerate().filter(|(_, binding)| binding.as_ref().is_some_and(is_meant));
    Ok(found.map(|(at, _)| at).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peer_kinds_dm_and_direct_match_the_same_binding() {
        let text = "bindings = [\n  { agent_id = \"a\", match = { channel = \"telegram\" } },\n  \
            { agent_id = \"b\", match = { channel = \"telegram\", peer = { kind = \"dm\", id = \"7\" } } },\n]\n";
        let peer = Some(ChatPeer { kind: PeerKind::Dm, id: "7".to_owned() });
        let wanted = BindingMatch { channel: "telegram".to_owned(), peer, ..BindingMatch::default() };
        for (agent, found) in [("b", vec![1]), ("a", vec![])] {
            assert_eq!(matching_bindings(text, agent, |there| *there == wanted).unwrap(), found);
            assert_eq!(
                matching_bindings(&text.replace("dm", "direct"), agent, |there| *there == wanted).unwrap(),
                found
            );
        }
    }
}
