//! Chat commands: their names, what they do, and who may give them. What runs them is the engine's.

use std::fmt;

use crate::channel::MenuItem;
use crate::config::nearest;
use crate::id::AgentId;

/// Whom a command concerns, and so who may give it. Whoever holds the instance's token may give them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It tells about this conversation, or ends what the conversation asked for.
    Anyone,
    /// It changes the conversation: anybody in one of their own, an owner where several people talk.
    Conversation,
    /// It reaches what belongs to the instance: its money, or other conversations.
    Owner,
}

/// Who gives a command, as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// Holds the instance's token, or is one of an account's owners.
    Owner,
    /// In a conversation of their own.
    Alone,
    /// Where several people talk.
    AmongOthers,
}

impl Speaker {
    pub fn may(self, reach: Reach) -> bool {
        match reach {
            Reach::Anyone => true,
            Reach::Conversation => self != Self::AmongOthers,
            Reach::Owner => self == Self::Owner,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub name: &'static str,
    pub arguments: &'static str,
    pub does: &'static str,
    pub reach: Reach,
    /// It is about the instance, so it is the same whichever session it is given in.
    pub is_general: bool,
}

impl Command {
    /// Whom it concerns with what is said behind it: to be told the model is not to change it.
    pub fn reach_with(&self, rest: &str) -> Reach {
        let word = rest.split_whitespace().next().unwrap_or_default();
        match (self.name, word) {
            ("model", "") | ("subagents", "" | "list") => Reach::Anyone,
            _ => self.reach,
        }
    }
}

const fn command(name: &'static str, arguments: &'static str, does: &'static str, reach: Reach) -> Command {
    Command { name, arguments, does, reach, is_general: false }
}

const fn general(name: &'static str, does: &'static str) -> Command {
    Command { name, arguments: "", does, reach: Reach::Anyone, is_general: true }
}

pub const COMMANDS: &[Command] = &[
    general("help", "what you can type"),
    command("new", "", "start a new conversation; the old one is kept", Reach::Conversation),
    command("status", "", "what this session is doing", Reach::Anyone),
    command("stop", "", "stop the running turn", Reach::Anyone),
    command("queue", "", "what waits in this session", Reach::Anyone),
    command("compact", "", "fold old history into a summary", Reach::Conversation),
    command("context", "", "what the model's context is filled with", Reach::Anyone),
    command("usage", "", "what this session has used", Reach::Anyone),
    general("models", "the models there are"),
    command("model", "<provider>/<model> | default", "use another model from the next turn on", Reach::Owner),
    command("agents", "", "the agents there are", Reach::Anyone),
    command("agent", "<id or name>", "talk to another agent from the next turn on", Reach::Conversation),
    command(
        "subagents",
        "[list] | info|log|kill <which> | send|steer <which> <text> | spawn <task>",
        "the sub-agents of this session: look at them, stop them, talk to them, begin one",
        Reach::Conversation,
    ),
    command(
        "focus",
        "<session key, member or sub-agent>",
        "go on in another session from here",
        Reach::Owner,
    ),
    command("unfocus", "", "back to this conversation's own session", Reach::Conversation),
    command(
        "session",
        "ttl <duration> | off",
        "start anew after this long without a message",
        Reach::Conversation,
    ),
    command(
        "team",
        "[name] | send [team] <member> <text> | plan [team] <member> [approve | reject <text>]",
        "the teams there are: members, tasks, progress; write to a member; answer its plan",
        Reach::Owner,
    ),
    command("approve", "<id>", "allow what you were asked about, once", Reach::Conversation),
    command("deny", "<id> [why]", "do not allow it; the agent is told why", Reach::Conversation),
    command("whoami", "", "the session and agent you talk to", Reach::Anyone),
];

/// Words that begin a message, or a command that is still to come: no agent can be called so.
const TAKEN: [&str; 2] = ["steer", START];

/// What Telegram says for somebody who opens a conversation with a bot.
const START: &str = "start";

/// What steers is an ordinary message: only its first word is a command.
const STEER: &str = "/steer";

/// The longest name of a command in a platform's menu.
const LONGEST: usize = 32;

/// A command and what is said behind it, in whatever case a keyboard wrote it; `None` if the line is a message.
pub fn parse(line: &str) -> Option<(&'static Command, &str)> {
    let (word, rest) = slashed(line)?;
    let word = if word.eq_ignore_ascii_case(START) { "help" } else { word };
    let known = COMMANDS.iter().find(|command| command.name.eq_ignore_ascii_case(word))?;
    Some((known, rest))
}

/// The word of a line that looks like a command and is none: it stands alone, so `/etc/passwd` and `/bogus thing` are
/// messages. It may still name an agent.
pub fn bare_word(line: &str) -> Option<&str> {
    let (word, rest) = slashed(line)?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
    let is_taken = parse(line).is_some() || TAKEN.iter().any(|taken| taken.eq_ignore_ascii_case(word));
    (is_word && rest.is_empty() && !is_taken).then_some(word)
}

/// A command there is not, and the name it is nearest to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    word: String,
    near: Option<String>,
}

impl Unknown {
    pub fn new<'a>(word: &str, agents: impl IntoIterator<Item = &'a AgentId>) -> Self {
        let names = COMMANDS.iter().map(|command| command.name);
        let names: Vec<&str> = names.chain(agents.into_iter().map(AgentId::as_str)).collect();
        let near = nearest(word, &names).map(str::to_owned);
        Self { word: word.chars().take(LONGEST).collect(), near }
    }

    /// For whoever typed it.
    pub fn sentence(&self) -> String {
        let meant = self.near.as_ref().map(|near| format!(" Did you mean /{near}?")).unwrap_or_default();
        format!("There is no command /{}.{meant} /help lists them.", self.word)
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no command /{}", self.word)?;
        self.near.as_ref().map_or(Ok(()), |near| write!(f, "; did you mean /{near}?"))
    }
}

/// `/word rest`, apart.
pub fn slashed(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().strip_prefix('/')?;
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    Some((word, rest.trim()))
}

/// The message behind `/steer`; any other text as it is.
pub fn steered(text: &str) -> &str {
    match text.trim_start().split_once(char::is_whitespace) {
        Some((word, rest)) if word.eq_ignore_ascii_case(STEER) => rest.trim_start(),
        _ => text,
    }
}

/// Whether `/id` means something else than an agent of this id.
pub fn is_taken(id: &AgentId) -> bool {
    COMMANDS.iter().any(|command| command.name == id.as_str()) || TAKEN.contains(&id.as_str())
}

/// An id as menus write it.
pub fn menu_name(id: &AgentId) -> String {
    id.as_str().chars().map(|c| if c == '-' { '_' } else { c }).take(LONGEST).collect()
}

/// What an account offers: the commands, then the agents by id. An agent whose name in the menu is another's, or a
/// command's, is left out and named beside: it is still reached by typing its id.
pub fn menu<'a>(agents: impl IntoIterator<Item = (&'a AgentId, &'a str)>) -> (Vec<MenuItem>, Vec<AgentId>) {
    let item = |command: &Command| MenuItem {
        command: command.name.to_owned(),
        description: command.does.to_owned(),
    };
    let mut items: Vec<MenuItem> = COMMANDS.iter().map(item).collect();
    let mut left_out = Vec::new();
    for (id, description) in agents {
        let command = menu_name(id);
        if items.iter().any(|item| item.command == command) || TAKEN.contains(&command.as_str()) {
            left_out.push(id.clone());
            continue;
        }
        let description = if description.is_empty() { format!("ask {id}") } else { description.to_owned() };
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
    fn one_word_behind_a_slash_that_is_no_command_is_told_from_a_message() {
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
            assert_eq!(bare_word(line), word, "{line:?}");
        }
    }

    #[test]
    fn an_unknown_command_is_told_its_nearest_name() {
        let agents = [id("ops-night")];
        let said = |word: &str| Unknown::new(word, &agents).sentence();
        assert_eq!(said("statsu"), "There is no command /statsu. Did you mean /status? /help lists them.");
        assert_eq!(
            said("ops-nihgt"),
            "There is no command /ops-nihgt. Did you mean /ops-night? /help lists them."
        );
        assert_eq!(said("bogus"), "There is no command /bogus. /help lists them.");
        assert!(said(&"x".repeat(10_000)).len() < 100, "however long it is");
    }

    #[test]
    fn to_look_is_not_to_change() {
        let reach = |line| parse(line).map(|(command, rest)| command.reach_with(rest));
        for line in ["/model", "/subagents", "/subagents list"] {
            assert_eq!(reach(line), Some(Reach::Anyone), "{line}");
        }
        assert_eq!(reach("/model a/b"), Some(Reach::Owner));
        // What a sub-agent read is in its log: among others that is the owner's to show.
        for line in ["/subagents kill 2", "/subagents log 2"] {
            assert_eq!(reach(line), Some(Reach::Conversation), "{line}");
        }
    }

    #[test]
    fn steering_is_an_ordinary_message() {
        assert_eq!(steered("/steer do this"), "do this");
        assert_eq!(steered(" /Steer  do this"), "do this");
        assert_eq!(steered("/steered ship"), "/steered ship");
        assert_eq!(steered("do this"), "do this");
    }

    #[test]
    fn a_menu_holds_names_that_platforms_take_and_each_once() {
        let agents = [(id("ops-night"), "Night watch"), (id("ops_night"), ""), (id("code"), "")];
        let (items, left_out) = menu(agents.iter().map(|(id, does)| (id, *does)));
        let names: Vec<&str> = items.iter().map(|item| item.command.as_str()).collect();
        assert!(names.contains(&"ops_night") && names.contains(&"code") && names.contains(&"help"));
        assert_eq!(left_out, [id("ops_night")]);
        let fits = |name: &&str| {
            name.len() <= LONGEST
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        assert!(names.iter().all(fits), "{names:?}");
        let long = id(&"a".repeat(60));
        assert_eq!(menu([(&long, "")]).0.last().unwrap().command.len(), LONGEST);
    }

    #[test]
    fn commands_and_words_to_come_are_no_agents() {
        assert!(is_taken(&id("status")) && is_taken(&id("steer")) && is_taken(&id("team")));
        assert!(!is_taken(&id("statuses")));
    }
}
