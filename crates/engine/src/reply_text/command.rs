//! Replies to chat commands that have no file of their own here.

use polyclaw_domain::command::{COMMANDS, ChatCommand};
use polyclaw_domain::id::AgentId;
use polyclaw_domain::locale::{LanguageSetting, Locale};
use polyclaw_domain::localized;
use polyclaw_domain::session_key::SessionKey;

use super::error::error_text;
use super::join_list;
use crate::error::Error;

pub(crate) fn command_failed(locale: Locale, error: &Error) -> String {
    if let Error::UnknownSession(_) = error {
        return localized!(locale, "This conversation has no messages yet.", "此对话还没有消息。");
    }
    let reason = error_text(error, locale);
    localized!(locale, "That did not work: {reason}.", "操作失败：{reason}。")
}

pub(crate) fn owners_only(locale: Locale, command: &str) -> String {
    localized!(
        locale,
        "Only owners of this assistant can use /{command}.",
        "只有此助手的所有者可以使用 /{command}。",
    )
}

pub(crate) fn help_text(locale: Locale) -> String {
    let line = |command: &ChatCommand| {
        let ChatCommand { name, arguments, does, .. } = command;
        format!("/{name} {arguments}").trim_end().to_owned() + "  " + does.get(locale)
    };
    let agent = localized!(
        locale,
        "/<agent id> …  send one message to another agent",
        "/<智能体 id> …  只将这一条消息发给另一个智能体",
    );
    COMMANDS.iter().map(line).chain([agent]).collect::<Vec<_>>().join("\n")
}

pub(crate) fn no_models(locale: Locale) -> String {
    localized!(locale, "No models are available.", "没有可用的模型。")
}

pub(crate) fn more_models(locale: Locale, provider: &str, count: usize) -> String {
    localized!(locale, "{provider}: + ({count} more)", "{provider}：另有 {count} 个")
}

pub(crate) fn unknown_model(locale: Locale, error: &Error) -> String {
    let reason = error_text(error, locale);
    localized!(
        locale,
        "{reason}. /models lists the available models.",
        "{reason}。用 /models 查看可用的模型。",
    )
}

pub(crate) fn malformed_model(locale: Locale, error: &str) -> String {
    localized!(locale, "{error}", "模型写作：提供方、斜杠、模型名称。")
}

pub(crate) fn model_reset(locale: Locale) -> String {
    localized!(locale, "The agent's own model is used again.", "已恢复使用智能体自带的模型。",)
}

pub(crate) fn model_selected(locale: Locale, model: &str) -> String {
    localized!(locale, "{model} is used starting with the next turn.", "从下一回合起使用 {model}。",)
}

pub(crate) fn agent_usage(locale: Locale) -> String {
    localized!(
        locale,
        "Name an agent: /agent <id or name>. /agents lists the agents.",
        "请写明智能体：/agent <id 或名称>。用 /agents 查看所有智能体。",
    )
}

pub(crate) fn agent_selected(locale: Locale, agent: &AgentId) -> String {
    localized!(locale, "{agent} answers starting with the next turn.", "从下一回合起由 {agent} 回答。",)
}

pub(crate) fn new_conversation(locale: Locale) -> String {
    localized!(locale, "A new conversation has started. The old one is kept.", "新对话开始，旧的已保留。",)
}

pub(crate) fn compaction_started(locale: Locale) -> String {
    localized!(locale, "The old history is being summarized.", "正在将旧的历史记录压缩为摘要。",)
}

pub(crate) fn focus_usage(locale: Locale) -> String {
    localized!(
        locale,
        "Name a session: /focus <session key>, a member of your team by name, or a sub-agent by number, label or run \
         id.",
        "请写明会话：/focus <会话地址>，也可以是团队成员的名称，或子智能体的编号、标签或运行 id。",
    )
}

pub(crate) fn focus_set(locale: Locale, target: &SessionKey) -> String {
    localized!(
        locale,
        "Messages written here now go to {target}. /unfocus ends this.",
        "在此处写的消息现在会转到 {target}。用 /unfocus 返回。",
    )
}

pub(crate) fn focus_removed(locale: Locale) -> String {
    localized!(locale, "Messages written here go to this conversation again.", "已回到此对话自己的会话。",)
}

pub(crate) fn no_focus(locale: Locale) -> String {
    localized!(
        locale,
        "This conversation has no focus. Messages written here stay here.",
        "此对话没有转到其他会话，消息留在此处。",
    )
}

pub(crate) fn ttl_usage(locale: Locale) -> String {
    localized!(
        locale,
        "Name a duration: /session ttl 12h, or /session ttl off.",
        "请写明时长：/session ttl 12h，或 /session ttl off。",
    )
}

pub(crate) fn invalid_ttl(locale: Locale, length: &str, reason: &str) -> String {
    let usage = ttl_usage(locale);
    localized!(
        locale,
        "{length:?} is not a duration: {reason}. {usage}",
        "{length:?} 不是有效的时长。{usage}",
    )
}

pub(crate) fn ttl_set(locale: Locale, length: &str) -> String {
    localized!(
        locale,
        "After {length} without a message, a new conversation starts.",
        "{length} 没有消息后将开始新对话。",
    )
}

pub(crate) fn ttl_off(locale: Locale) -> String {
    localized!(locale, "This conversation continues until /new.", "此对话会一直继续，直到使用 /new。")
}

pub(crate) fn nothing_running(locale: Locale) -> String {
    localized!(locale, "Nothing is running.", "没有正在运行的内容。")
}

/// `tasks` counts interrupted tasks that were discarded.
pub(crate) fn work_stopped(locale: Locale, tasks: usize, subagents: Option<&str>) -> String {
    let stopped = match tasks {
        0 => localized!(locale, "Stopped.", "已停止。"),
        tasks => localized!(
            locale,
            "Stopped. {tasks} interrupted task(s) discarded.",
            "已停止，并放弃 {tasks} 个中断的任务。",
        ),
    };
    match subagents {
        Some(labels) => localized!(
            locale,
            "{stopped} Stopped sub-agents: {labels}.",
            "{stopped}已停止的子智能体：{labels}。",
        ),
        None => stopped,
    }
}

/// Joins labels, with the number of those left out.
pub(crate) fn label_list(locale: Locale, mut shown: Vec<String>, left_out: usize) -> String {
    if left_out > 0 {
        shown.push(localized!(locale, "{left_out} more", "另有 {left_out} 个"));
    }
    join_list(locale, &shown)
}

/// Where the language of a conversation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LanguageSource {
    Command,
    Config,
    Messages,
    Default,
}

pub(crate) fn current_language(locale: Locale, source: LanguageSource) -> String {
    let name = locale.name();
    let source = match source {
        LanguageSource::Command => localized!(locale, "set with /language", "由 /language 设置"),
        LanguageSource::Config => localized!(locale, "set in the config", "由配置设置"),
        LanguageSource::Messages => localized!(locale, "detected in the messages", "根据消息判断"),
        LanguageSource::Default => localized!(locale, "the default", "默认"),
    };
    localized!(
        locale,
        "Notices and command replies are in {name} ({source}). /language en, /language zh or /language auto changes \
         that.",
        "通知和命令回复使用{name}（{source}）。可用 /language en、/language zh 或 /language auto 更改。",
    )
}

/// `locale` is the language after the change.
pub(crate) fn language_set(locale: Locale, setting: LanguageSetting) -> String {
    let name = locale.name();
    match setting {
        LanguageSetting::Auto => localized!(
            locale,
            "Notices and command replies follow the language of the messages in this conversation.",
            "通知和命令回复将跟随此对话中消息的语言。",
        ),
        LanguageSetting::English | LanguageSetting::Chinese => localized!(
            locale,
            "Notices and command replies in this conversation are now in {name}.",
            "此对话的通知和命令回复现在使用{name}。",
        ),
    }
}

pub(crate) fn unknown_language(locale: Locale, typed: &str) -> String {
    localized!(
        locale,
        "{typed:?} is not a supported language. Use /language en, /language zh or /language auto.",
        "不支持语言 {typed:?}。请使用 /language en、/language zh 或 /language auto。",
    )
}
