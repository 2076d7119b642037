//! Chat commands: names, help texts and required roles. The engine executes them.

use std::fmt;

use crate::channel::MenuItem;
use crate::config::nearest_word;
use crate::id::AgentId;
use crate::locale::{Locale, LocalizedText};
use crate::localized;

/// The role a command requires. A holder of the instance's token may run all commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredRole {
    /// The command shows this conversation, or stops what it started.
    Anyone,
    /// The command changes the conversation: allowed to anybody in a direct conversation, to owners in groups.
    Conversation,
    /// The command affects the instance: its spending, or other conversations.
    Owner,
}

/// Role of the person who runs a command, as known to the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerRole {
    /// Holds the instance's token, or is an owner of an account.
    Owner,
    /// In a direct conversation.
    Alone,
    /// In a group.
    AmongOthers,
}

impl CallerRole {
    pub fn may_run(self, reach: RequiredRole) -> bool {
        match reach {
            RequiredRole::Anyone => true,
            RequiredRole::Conversation => self != Self::AmongOthers,
            RequiredRole::Owner => self == Self::Owner,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatCommand {
    pub name: &'static str,
    pub arguments: &'static str,
    pub does: LocalizedText,
    pub required_role: RequiredRole,
    /// The command is about the instance, so it does the same in every session.
    pub is_general: bool,
}

impl ChatCommand {
    /// Returns the required role for a command with these arguments: showing the model needs less than changing it.
    pub fn required_role_for(&self, rest: &str) -> RequiredRole {
        let word = rest.split_whitespace().next().unwrap_or_default();
        match (self.name, word) {
            ("model" | "language", "") | ("subagents", "" | "list") => RequiredRole::Anyone,
            _ => self.required_role,
        }
    }
}

const fn session_command(
    name: &'static str,
    arguments: &'static str,
    does: LocalizedText,
    reach: RequiredRole,
) -> ChatCommand {
    ChatCommand { name, arguments, does, required_role: reach, is_general: false }
}

const fn general_command(name: &'static str, does: LocalizedText) -> ChatCommand {
    ChatCommand { name, arguments: "", does, required_role: RequiredRole::Anyone, is_general: true }
}

pub const COMMANDS: &[ChatCommand] = &[
    general_command("help", LocalizedText::new("list the commands", "列出所有命令")),
    session_command(
        "new",
        "",
        LocalizedText::new("start a new conversation; the old one is kept", "开始新对话，旧对话会保留"),
        RequiredRole::Conversation,
    ),
    session_command(
        "status",
        "",
        LocalizedText::new("show the state of this session", "查看此会话的状态"),
        RequiredRole::Anyone,
    ),
    session_command(
        "stop",
        "",
        LocalizedText::new("stop the running turn", "停止正在运行的回合"),
        RequiredRole::Anyone,
    ),
    session_command(
        "queue",
        "",
        LocalizedText::new(
            "show the messages and tasks that wait in this session",
            "查看此会话中等待的消息和任务",
        ),
        RequiredRole::Anyone,
    ),
    session_command(
        "compact",
        "",
        LocalizedText::new("summarize the old history", "将旧的历史记录压缩为摘要"),
        RequiredRole::Conversation,
    ),
    session_command(
        "context",
        "",
        LocalizedText::new("show how the model's context is used", "查看模型上下文的使用情况"),
        RequiredRole::Anyone,
    ),
    session_command(
        "usage",
        "",
        LocalizedText::new("show the tokens and cost of this session", "查看此会话的用量和费用"),
        RequiredRole::Anyone,
    ),
    general_command("models", LocalizedText::new("list the available models", "列出可用的模型")),
    session_command(
        "model",
        "<provider>/<model> | default",
        LocalizedText::new("change the model, starting with the next turn", "更换模型，从下一回合起生效"),
        RequiredRole::Owner,
    ),
    session_command(
        "agents",
        "",
        LocalizedText::new("list the agents", "列出所有智能体"),
        RequiredRole::Anyone,
    ),
    session_command(
        "agent",
        "<id or name>",
        LocalizedText::new(
            "switch to another agent, starting with the next turn",
            "换一个智能体回答，从下一回合起生效",
        ),
        RequiredRole::Conversation,
    ),
    session_command(
        "subagents",
        "[list] | info|log|kill <which> | send|steer <which> <text> | spawn <task>",
        LocalizedText::new(
            "list, inspect, stop, message or start the sub-agents of this session",
            "查看、停止或启动此会话的子智能体，或给它们发消息",
        ),
        RequiredRole::Conversation,
    ),
    session_command(
        "focus",
        "<session key, member or sub-agent>",
        LocalizedText::new("redirect this conversation to another session", "将此对话转到另一个会话"),
        RequiredRole::Owner,
    ),
    session_command(
        "unfocus",
        "",
        LocalizedText::new("return to this conversation's own session", "回到此对话自己的会话"),
        RequiredRole::Conversation,
    ),
    session_command(
        "session",
        "ttl <duration> | off",
        LocalizedText::new(
            "start a new conversation after this long without a message",
            "多久没有消息后开始新对话",
        ),
        RequiredRole::Conversation,
    ),
    session_command(
        "language",
        "[en | zh | auto]",
        LocalizedText::new(
            "show or set the language of notices and command replies",
            "查看或设置通知和命令回复的语言",
        ),
        RequiredRole::Conversation,
    ),
    session_command(
        "team",
        "[name] | send [team] <member> <text> | plan [team] <member> [approve | reject <text>]",
        LocalizedText::new(
            "show teams with their members, tasks and progress; write to a member; answer its plan",
            "查看团队的成员、任务和进度，给成员写信，答复成员的计划",
        ),
        RequiredRole::Owner,
    ),
    session_command(
        "approve",
        "<id>",
        LocalizedText::new("approve a request of an agent, once", "批准智能体的一次请求"),
        RequiredRole::Conversation,
    ),
    session_command(
        "deny",
        "<id> [why]",
        LocalizedText::new("deny a request; the agent gets the reason", "拒绝请求，智能体会得知原因"),
        RequiredRole::Conversation,
    ),
    session_command(
        "whoami",
        "",
        LocalizedText::new("show the session and agent of this conversation", "查看此对话的会话和智能体"),
        RequiredRole::Anyone,
    ),
];

/// Reserved words that are no commands: `/steer` begins a message, and `/start` is an alias. No agent may have such an
/// id.
const RESERVED_WORDS: [&str; 2] = ["steer", START_COMMAND];

/// Sent by Telegram when somebody opens a conversation with a bot.
const START_COMMAND: &str = "start";

/// Prefix of a steering message. The rest is an ordinary message.
const STEER_PREFIX: &str = "/steer";

/// Maximum length of a command name in a platform's menu.
const MAX_MENU_NAME_CHARS: usize = 32;

/// Parses a command, ignoring case, and its arguments. `None` if the line is a message.
pub fn parse(line: &str) -> Option<(&'static ChatCommand, &str)> {
    let (word, rest) = split_command(line)?;
    let word = if word.eq_ignore_ascii_case(START_COMMAND) { "help" } else { word };
    let known = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(word))?;
    Some((known, rest))
}

/// Returns the word of a line that looks like an unknown command. The word must be alone, so `/etc/passwd` and `/bogus
/// thing` are messages. It may still name an agent.
pub fn unknown_command_word(line: &str) -> Option<&str> {
    let (word, rest) = split_command(line)?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let is_taken =
        parse(line).is_some() || RESERVED_WORDS.iter().any(|taken| taken.eq_ignore_ascii_case(word));
    (is_word && rest.is_empty() && !is_taken).then_some(word)
}

/// An unknown command, and the most similar known one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCommand {
    word: String,
    near: Option<String>,
}

impl UnknownCommand {
    pub fn new<'a>(word: &str, agents: impl IntoIterator<Item = &'a AgentId>) -> Self {
        let names = COMMANDS.iter().map(|command| command.name);
        let names: Vec<&str> = names.chain(agents.into_iter().map(AgentId::as_str)).collect();
        let near = nearest_word(word, &names).map(str::to_owned);
        Self { word: word.chars().take(MAX_MENU_NAME_CHARS).collect(), near }
    }

    /// Returns the message for the person who typed it.
    pub fn user_message(&self, locale: Locale) -> String {
        let word = &self.word;
        match &self.near {
            Some(near) => localized!(
                locale,
                "There is no command /{word}. Did you mean /{near}? /help lists the commands.",
                "没有命令 /{word}。是否要输入 /{near}？用 /help 查看所有命令。"
            ),
            None => localized!(
                locale,
                "There is no command /{word}. /help lists the commands.",
                "没有命令 /{word}。用 /help 查看所有命令。"
            ),
        }
    }
}

impl fmt::Display for UnknownCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no command /{}", self.word)?;
        self.near.as_ref().map_or(Ok(()), |near| write!(f, "; did you mean /{near}?"))
    }
}

/// Splits `/word rest`.
pub fn split_command(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().strip_prefix('/')?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((word, rest.trim()))
}

/// Returns the message after `/steer`, or any other text unchanged.
pub fn strip_steer_prefix(text: &str) -> &str {
    match text.trim_start().split_once(char::is_whitespace) {
        Some((word, rest)) if word.eq_ignore_ascii_case(STEER_PREFIX) => rest.trim_start(),
        _ => text,
    }
}

/// Returns whether `/id` means something other than the agent with this id.
pub fn is_reserved_id(id: &AgentId) -> bool {
    COMMANDS.iter().any(|command| command.name == id.as_str()) || RESERVED_WORDS.contains(&id.as_str())
}

/// Returns an id as command menus spell it.
pub fn menu_name(id: &AgentId) -> String {
    id.as_str().chars().map(|c| if c == '-' { '_' } else { c }).take(MAX_MENU_NAME_CHARS).collect()
}

/// Returns the menu of an account: the commands, then the agents by id. Agents whose menu name is already taken are
/// returned separately; they can still be addressed by typing their id.
pub fn build_menu<'a>(
    agents: impl IntoIterator<Item = (&'a AgentId, &'a str)>,
    locale: Locale,
) -> (Vec<MenuItem>, Vec<AgentId>) {
    let item = |command: &ChatCommand| MenuItem {
        command: command.name.to_owned(),
        description: command.does.get(locale).to_owned(),
    };
    let mut items: Vec<MenuItem> = COMMANDS.iter().map(item).collect();
    let mut left_out = Vec::new();
    for (id, description) in agents {
        let command = menu_name(id);
        if items.iter().any(|item| item.command == command) || RESERVED_WORDS.contains(&command.as_str()) {
            left_out.push(id.clone());
            continue;
        }
        let description = match description {
            "" => localized!(locale, "ask {id}", "向 {id} 提问"),
            text => text.to_owned(),
        };
        items.push(MenuItem { command, description });
    }
    (items, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    #[test]
    fn only_known_words_after_a_slash_are_commands() {
        let parsed = |line| parse(line).map(|(command, rest)| (command.name, rest));
        assert_eq!(parsed("/model openai/x "), Some(("model", "openai/x")));
        assert_eq!(parsed(" /stop"), Some(("stop", "")));
        assert_eq!(parsed("/Status"), Some(("status", "")), "as a telephone writes it");
        assert_eq!(parsed("/start"), Some(("help", "")));
        assert_eq!(parsed("/etc/passwd"), None);
        assert_eq!(parsed("stop"), None);
        assert_eq!(parsed("/steer do this"), None, "an ordinary message");
    }

    #[test]
    fn unknown_command_word_is_distinguished_from_message() {
        for (line, word) in [
            ("/bogus", Some("bogus")),
            (" /Statsu ", Some("Statsu")),
            ("/ops-night", Some("ops-night")),
            ("/new_2", Some("new_2")),
            ("/приве́т", None),
            ("/привет", Some("привет")),
            ("/status", None),
            ("/STATUS", None),
            ("/start", None),
            ("/steer", None),
            ("/bogus thing", None),
            ("/etc/passwd", None),
            ("/etc/passwd is a file", None),
            ("/tmp/", None),
            ("/bogus.", None),
            ("/bogus?", None),
            ("//", None),
            ("/", None),
            ("", None),
            ("bogus", None),
            ("a /bogus", None),
        ] {
            assert_eq!(unknown_command_word(line), word, "{line:?}");
        }
    }

    #[test]
    fn unknown_command_error_suggests_nearest_name() {
        let agents = [id("ops-night")];
        let text_of = |word: &str| UnknownCommand::new(word, &agents).user_message(Locale::English);
        assert_eq!(
            text_of("statsu"),
            "There is no command /statsu. Did you mean /status? /help lists the commands."
        );
        assert_eq!(
            text_of("ops-nihgt"),
            "There is no command /ops-nihgt. Did you mean /ops-night? /help lists the commands."
        );
        assert_eq!(text_of("bogus"), "There is no command /bogus. /help lists the commands.");
        let chinese = UnknownCommand::new("statsu", &agents).user_message(Locale::Chinese);
        assert_eq!(chinese, "没有命令 /statsu。是否要输入 /status？用 /help 查看所有命令。");
        assert!(text_of(&"x".repeat(10_000)).len() < 100, "however long it is");
    }

    #[test]
    fn showing_needs_lower_role_than_changing() {
        let reach = |line| parse(line).map(|(command, rest)| command.required_role_for(rest));
        for line in ["/model", "/language", "/subagents", "/subagents list"] {
            assert_eq!(reach(line), Some(RequiredRole::Anyone), "{line}");
        }
        assert_eq!(reach("/model a/b"), Some(RequiredRole::Owner));
        // A sub-agent's log shows what it read: in a group only an owner may show it.
        for line in ["/subagents kill 2", "/subagents log 2"] {
            assert_eq!(reach(line), Some(RequiredRole::Conversation), "{line}");
        }
    }

    #[test]
    fn steer_prefix_is_stripped_from_message() {
        assert_eq!(strip_steer_prefix("/steer do this"), "do this");
        assert_eq!(strip_steer_prefix(" /Steer  do this"), "do this");
        assert_eq!(strip_steer_prefix("/steered ship"), "/steered ship");
        assert_eq!(strip_steer_prefix("do this"), "do this");
    }

    #[test]
    fn menu_names_are_valid_and_unique() {
        let agents = [(id("ops-night"), "Night watch"), (id("ops_night"), ""), (id("code"), "")];
        let (items, left_out) = build_menu(agents.iter().map(|(id, does)| (id, *does)), Locale::English);
        let names: Vec<&str> = items.iter().map(|item| item.command.as_str()).collect();
        assert!(names.contains(&"ops_night") && names.contains(&"code") && names.contains(&"help"));
        assert_eq!(left_out, [id("ops_night")]);
        let fits = |name: &&str| {
            name.len() <= MAX_MENU_NAME_CHARS
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        assert!(names.iter().all(fits), "{names:?}");
        let long = id(&"a".repeat(60));
        assert_eq!(
            build_menu([(&long, "")], Locale::Chinese).0.last().unwrap().command.len(),
            MAX_MENU_NAME_CHARS
        );
    }

    #[test]
    fn command_words_are_reserved_agent_ids() {
        assert!(is_reserved_id(&id("status")) && is_reserved_id(&id("steer")) && is_reserved_id(&id("team")));
        assert!(!is_reserved_id(&id("statuses")));
    }
}
