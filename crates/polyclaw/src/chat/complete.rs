//! Completion of slash commands: a list that narrows as you type.

use polyclaw_domain::command::{COMMANDS, ChatCommand};

/// Commands of this program, beside the instance's.
const OWN: Offer = Offer { name: "quit", arguments: "", does: "leave the chat; the agent goes on" };

#[derive(Clone, Debug, Default)]
pub struct Completion {
    selected: usize,
    /// Esc closed it for what is typed now.
    closed: bool,
}

pub struct Offer {
    pub name: &'static str,
    pub arguments: &'static str,
    pub does: &'static str,
}

impl Completion {
    /// What fits the text, if it is the beginning of a command.
    pub fn offers(&self, text: &str) -> Vec<Offer> {
        let Some(start) = text.strip_prefix('/').filter(|rest| !rest.contains(char::is_whitespace)) else {
            return Vec::new();
        };
        if self.closed {
            return Vec::new();
        }
        let offer = |command: &ChatCommand| {
            let ChatCommand { name, arguments, does, .. } = *command;
            Offer { name, arguments, does }
        };
        let all = COMMANDS.iter().map(offer).chain(std::iter::once(OWN));
        all.filter(|offer| offer.name.starts_with(start)).collect()
    }

    pub fn selected(&self, text: &str) -> Option<Offer> {
        let mut offers = self.offers(text);
        let at = self.selected.min(offers.len().checked_sub(1)?);
        Some(offers.swap_remove(at))
    }

    pub fn position(&self) -> usize {
        self.selected
    }

    pub fn next(&mut self, text: &str) {
        let count = self.offers(text).len().max(1);
        self.selected = (self.selected + 1) % count;
    }

    pub fn previous(&mut self, text: &str) {
        let count = self.offers(text).len().max(1);
        self.selected = (self.selected + count - 1) % count;
    }

    /// The text has changed: the list starts anew.
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
        Completion::default().offers(text).iter().map(|offer| offer.name).collect()
    }

    #[test]
    fn the_list_narrows_as_you_type() {
        assert!(names("/").len() > 10);
        assert_eq!(names("/mod"), ["models", "model"]);
        assert!(names("/model x").is_empty() && names("mod").is_empty() && names("/etc").is_empty());
    }

    #[test]
    fn the_selection_goes_round() {
        let mut completion = Completion::default();
        completion.previous("/mod");
        assert_eq!(completion.selected("/mod").unwrap().name, "model");
        completion.next("/mod");
        assert_eq!(completion.selected("/mod").unwrap().name, "models");
        completion.close();
        assert!(completion.selected("/mod").is_none());
    }
}
