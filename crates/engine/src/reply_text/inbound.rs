//! Replies to messages that start no turn: refusals, pairing, unknown names.

use polyclaw_domain::id::AgentId;
use polyclaw_domain::locale::Locale;
use polyclaw_domain::localized;

use super::error::error_text;
use crate::error::Error;

pub(crate) fn already_processed(locale: Locale) -> String {
    localized!(locale, "This message was already processed.", "该消息已处理过。")
}

/// Notice to a person whose message has to wait.
pub(crate) fn busy_notice(locale: Locale) -> String {
    localized!(
        locale,
        "Busy with another task. Your message is answered next.",
        "正在处理其他任务，接下来会回答你的消息。",
    )
}

pub(crate) fn not_accepted(locale: Locale, error: &Error) -> String {
    let reason = error_text(error, locale);
    let hint = error.hint().map(|hint| format!(" {hint}.")).unwrap_or_default();
    localized!(locale, "Your message was not accepted: {reason}.{hint}", "消息未被接受：{reason}。")
}

pub(crate) fn not_accepted_by(locale: Locale, agent: &AgentId, error: &Error) -> String {
    let reason = error_text(error, locale);
    localized!(
        locale,
        "{agent}: Your message was not accepted: {reason}.",
        "{agent}：消息未被接受：{reason}。",
    )
}

pub(crate) fn internal_error(locale: Locale) -> String {
    localized!(
        locale,
        "Your message was not accepted because of an internal error.",
        "由于内部错误，消息未被接受。",
    )
}

/// Reply to a sender who names an agent they may not address.
pub(crate) fn agent_unavailable(locale: Locale, agent: &AgentId) -> String {
    localized!(
        locale,
        "The agent {agent} is not available to you here. An owner of this assistant can switch this conversation to it.",
        "你在此处无法使用智能体 {agent}。此助手的所有者可以将此对话切换到该智能体。",
    )
}

pub(crate) fn message_missing(locale: Locale, agent: &AgentId) -> String {
    localized!(
        locale,
        "Write a message after the name: /{agent} <message>",
        "请在名称后写上消息：/{agent} <消息>",
    )
}

/// Sent to a sender who was approved.
pub(crate) fn pairing_approved(locale: Locale) -> String {
    localized!(locale, "You are approved. You can write to me now.", "你已获得批准，现在可以给我发消息了。")
}
