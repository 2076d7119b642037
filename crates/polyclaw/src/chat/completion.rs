//! Completion of slash commands: a list that narrows while typing.

use polyclaw_domain::command::{COMMANDS, ChatCommand};

/// A command of this program, in addition to the instance's commands.
const QUIT_COMMAND: CommandOffer =
    CommandOffer { name: "quit", arguments: "", does: "leave the chat; the agent continues" };

#[derive(Clone, Debug, Default)]
pub struct CommandCompletion {
    selected: usize,
    /// Closed with Esc until the text changes.
    closed: bool,
}

pub struct CommandOffer {
    pub name: &'static str,
    pub arguments: &'static str,
    pub does: &'static str,
}

impl CommandCompletion {
    /// Returns the commands that match the text, if it is the start of a command.
    pub fn matching_offers(&self, text: &str) -> Vec<CommandOffer> {
        let Some(start) = text.strip_prefix('/').filter(|rest| !rest.contains(char::is_whitespace)) else {
            return Vec::new();
        };
        if self.closed {
            return Vec::new();
        }
        let offer = |command: &ChatCommand| {
            let ChatCommand { name, arguments, does, .. } = *command;
            CommandOffer { name, arguments, does: does.english }
        };
        let all = COMMANDS.iter().map(offer).chain(std::iter::once(QUIT_COMMAND));
        all.filter(|offer| offer.name.starts_with(start)).collect()
    }

    pub fn selected_offer(&self, text: &str) -> Option<CommandOffer> {
        let mut offers = self.matching_offers(text);
        let at = self.selected.min(offers.len().checked_sub(1)?);
        Some(offers.swap_remove(at))
    }

    pub fn position(&self) -> usize {
        self.selected
    }

    pub fn next(&mut self, text: &str) {
        let count = self.matching_offers(text).len().max(1);
        self.selected = (self.selected + 1) % count;
    }

    pub fn previous(&mut self, text: &str) {
        let count = self.matching_offers(text).len().max(1);
        self.selected = (self.selected + count - 1) % count;
    }

    /// Resets the list after the text has changed.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    pub fn close(&mut self) {
        *self = Self { selected: 0, closed: true };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&'static str> {
        CommandCompletion::default().matching_offers(text).iter().map(|offer| offer.name).collect()
    }

    #[test]
    fn completion_list_narrows_while_typing() {
        assert!(names("/").len() > 10);
        assert_eq!(names("/mod"), ["models", "model"]);
        assert!(names("/model x").is_empty() && names("mod").is_empty() && names("/etc").is_empty());
    }

    #[test]
    fn completion_selection_wraps_around() {
        let mut completion = CommandCompletion::default();
        completion.previous("/mod");
        assert_eq!(completion.selected_offer("/mod").unwrap().name, "model");
        completion.next("/mod");
        assert_eq!(completion.selected_offer("/mod").unwrap().name, "models");
        completion.close();
        assert!(completion.selected_offer("/mod").is_none());
    }
}
