//! Converts Discord messages to inbound messages. Performs no I/O; callers look up what is missing.

use polyclaw_domain::channel::{ChatAddress, InboundMessage};
use polyclaw_domain::inbound::{ChatPeer, ChatThread, InboundContext, PeerKind, ThreadKind};

use super::event::{DiscordMessage, DiscordUser, GuildMember};
use super::{CHANNEL_NAME, attachments};

/// Ordinary messages and replies. Discord itself creates the other types.
const USER_MESSAGE_TYPES: [u64; 2] = [0, 19];

/// The channel, server and parent channel of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct DiscordLocation {
    pub channel: String,
    /// `None` for direct messages.
    pub guild: Option<String>,
    /// The parent channel of a thread.
    pub parent: Option<String>,
}

impl DiscordLocation {
    /// Builds the routing context.
    pub fn inbound_context(&self, account: &str, sender: &str, roles: Vec<String>) -> InboundContext {
        let channel = |id: &String| ChatPeer { kind: PeerKind::Channel, id: id.clone() };
        let peer = match self.guild {
            Some(_) => channel(&self.channel),
            None => ChatPeer { kind: PeerKind::Dm, id: sender.to_owned() },
        };
        let thread = || ChatThread { kind: ThreadKind::Thread, id: self.channel.clone() };
        InboundContext {
            channel: CHANNEL_NAME.to_owned(),
            account: account.to_owned(),
            peer,
            parent: self.parent.as_ref().map(channel),
            thread: self.parent.as_ref().map(|_| thread()),
            guild: self.guild.clone(),
            team: None,
            roles,
            sender: sender.to_owned(),
        }
    }

    /// Replies go to the channel, also in a direct message, where the peer is the sender.
    pub fn reply_address(&self, account: &str) -> ChatAddress {
        ChatAddress {
            channel: CHANNEL_NAME.to_owned(),
            account: account.to_owned(),
            peer: self.channel.clone(),
            thread: self.parent.as_ref().map(|_| self.channel.clone()),
        }
    }
}

/// Converts a message. Returns `None` for messages of bots (including this one), webhooks and Discord itself.
pub(super) fn inbound_from_message(
    message: &DiscordMessage,
    place: &DiscordLocation,
    me: &str,
    account: &str,
) -> Option<InboundMessage> {
    let author = &message.author;
    if author.bot
        || author.id == me
        || message.webhook_id.is_some()
        || !USER_MESSAGE_TYPES.contains(&message.kind)
    {
        return None;
    }
    let reply = message.referenced_message.as_ref().and_then(|reply| reply.author.as_ref());
    let replies = reply.is_some_and(|author| author.id == me);
    let roles = message.member.as_ref().map(|member| member.roles.clone()).unwrap_or_default();
    Some(InboundMessage {
        context: place.inbound_context(account, &author.id, roles),
        address: place.reply_address(account),
        platform_id: message.id.clone(),
        text: without_mention(&message.content, me).to_owned(),
        attachments: attachments::attachment_refs(&message.attachments),
        mentioned: replies || message.mentions.iter().any(|user| user.id == me),
        sender_name: Some(display_name(author, message.member.as_ref())),
    })
}

pub(super) fn display_name(user: &DiscordUser, member: Option<&GuildMember>) -> String {
    let nick = member.and_then(|member| member.nick.as_ref()).or(user.global_name.as_ref());
    nick.unwrap_or(&user.username).clone()
}

/// Strips a leading mention of the bot, so that `<@bot> /new` is `/new`. A mention without further text is kept.
fn without_mention<'a>(text: &'a str, me: &str) -> &'a str {
    let names = [format!("<@{me}>"), format!("<@!{me}>")];
    let rest =
        names.iter().find_map(|name| text.trim_start().strip_prefix(name.as_str())).map(str::trim_start);
    rest.filter(|rest| !rest.is_empty()).unwrap_or(text)
}

#[cfg(test)]
mod tests;
