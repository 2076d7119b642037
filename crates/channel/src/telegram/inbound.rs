//! Converts Telegram messages to inbound messages. Performs no I/O.

use polyclaw_domain::channel::{ChatAddress, InboundMessage};
use polyclaw_domain::inbound::{ChatPeer, ChatThread, InboundContext, PeerKind, ThreadKind};

use super::update::{CallbackQuery, MessageEntity, TelegramMessage, TelegramUser};
use super::{CHANNEL_NAME, attachments};

/// Converts a message. Returns `None` for messages of bots (including this one), commands addressed to other bots, and
/// automatic copies by Telegram, which may be of this bot's own posts.
pub(super) fn inbound_from_message(
    message: &TelegramMessage,
    me: &TelegramUser,
    account: &str,
) -> Option<InboundMessage> {
    if message.is_automatic_forward {
        return None;
    }
    let (sender, sender_name) = sender_identity(message)?;
    let (text, entities) = match (&message.text, &message.caption) {
        (Some(text), _) => (text.as_str(), &message.entities),
        (None, Some(caption)) => (caption.as_str(), &message.caption_entities),
        (None, None) => ("", &message.entities),
    };
    let (text, called) = parse_command(without_mention(text, me), me)?;
    let (arrival, address) = context_and_address(message, account, sender);
    Some(InboundMessage {
        context: arrival,
        platform_id: format!("{}:{}", address.peer, message.message_id),
        address,
        mentioned: called || mentions_bot(message, entities, me) || replies_to_bot(message, me),
        text,
        attachments: attachments::attachment_refs(message),
        sender_name,
    })
}

/// Converts a button press to an inbound message with the button's command, from the user who pressed it.
pub(super) fn inbound_from_callback(press: &CallbackQuery, account: &str) -> Option<InboundMessage> {
    let (message, command) = (press.message.as_ref()?, press.data.as_ref()?);
    if press.from.is_bot {
        return None;
    }
    let (arrival, address) = context_and_address(message, account, press.from.id.to_string());
    Some(InboundMessage {
        context: arrival,
        platform_id: format!("press:{}", press.id),
        address,
        mentioned: true,
        text: command.clone(),
        attachments: Vec::new(),
        sender_name: Some(full_name(&press.from)),
    })
}

/// Returns the routing context and the reply address of a message.
fn context_and_address(
    message: &TelegramMessage,
    account: &str,
    sender: String,
) -> (InboundContext, ChatAddress) {
    let topic = message.message_thread_id.filter(|_| message.is_topic_message).map(|id| id.to_string());
    let peer = message.chat.id.to_string();
    let kind = match message.chat.kind.as_str() {
        "private" => PeerKind::Dm,
        "channel" => PeerKind::Channel,
        _ => PeerKind::Group,
    };
    let arrival = InboundContext {
        channel: CHANNEL_NAME.to_owned(),
        account: account.to_owned(),
        peer: ChatPeer { kind, id: peer.clone() },
        parent: None,
        thread: topic.clone().map(|id| ChatThread { kind: ThreadKind::Topic, id }),
        guild: None,
        team: None,
        roles: Vec::new(),
        sender,
    };
    (
        arrival,
        ChatAddress { channel: CHANNEL_NAME.to_owned(), account: account.to_owned(), peer, thread: topic },
    )
}

/// Returns the sender: a person, or the group or channel in whose name the message was written.
fn sender_identity(message: &TelegramMessage) -> Option<(String, Option<String>)> {
    if let Some(chat) = &message.sender_chat {
        return Some((chat.id.to_string(), chat.title.clone()));
    }
    let Some(user) = &message.from else {
        let chat = Some(&message.chat).filter(|chat| chat.kind == "channel")?;
        return Some((chat.id.to_string(), chat.title.clone()));
    };
    (!user.is_bot).then(|| (user.id.to_string(), Some(full_name(user))))
}

fn full_name(user: &TelegramUser) -> String {
    match &user.last_name {
        Some(last) => format!("{} {last}", user.first_name),
        None => user.first_name.clone(),
    }
}

fn mentions_bot(message: &TelegramMessage, entities: &[MessageEntity], me: &TelegramUser) -> bool {
    let text = message.text.as_ref().or(message.caption.as_ref()).map_or("", String::as_str);
    entities.iter().any(|entity| match entity.kind.as_str() {
        "mention" => entity_text(text, entity).is_some_and(|name| is_bot_name(&name, me)),
        "text_mention" => entity.user.as_ref().is_some_and(|user| user.id == me.id),
        _ => false,
    })
}

fn replies_to_bot(message: &TelegramMessage, me: &TelegramUser) -> bool {
    // Every message in a topic replies to the message that opened the topic.
    let reply = message.reply_to_message.as_ref();
    let reply = reply.filter(|reply| Some(reply.message_id) != message.message_thread_id);
    reply.and_then(|reply| reply.from.as_ref()).is_some_and(|user| user.id == me.id)
}

fn is_bot_name(text: &str, me: &TelegramUser) -> bool {
    let name = text.strip_prefix('@').unwrap_or_default();
    me.username.as_ref().is_some_and(|username| username.eq_ignore_ascii_case(name))
}

/// Strips a leading mention of the bot, so that `@bot /new` is `/new`. A mention without further text is kept.
fn without_mention<'a>(text: &'a str, me: &TelegramUser) -> &'a str {
    match text.split_once(char::is_whitespace) {
        Some((first, rest)) if is_bot_name(first, me) && !rest.trim().is_empty() => rest.trim_start(),
        _ => text,
    }
}

/// Turns `/new@bot rest` into `/new rest` and reports that it was addressed to this bot. Returns `None` if it is for
/// another bot.
fn parse_command(text: &str, me: &TelegramUser) -> Option<(String, bool)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let is_word =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match first.strip_prefix('/').and_then(|first| first.split_once('@')) {
        Some((word, name)) if is_word(word) && is_word(name) => {
            is_bot_name(&format!("@{name}"), me).then(|| (format!("/{word}{rest}"), true))
        }
        _ => Some((text.to_owned(), false)),
    }
}

fn entity_text(text: &str, entity: &MessageEntity) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().skip(entity.offset).take(entity.length).collect();
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests;
