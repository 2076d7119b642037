//! Todos: an agent's own list of things to do in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest list, and the longest of its lines in characters.
pub const MOST_ITEMS: usize = 100;
pub const LONGEST_ITEM: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub state: Progress,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    #[default]
    Open,
    Doing,
    Done,
}

/// Why a list is not taken.
pub fn check(items: &[Item]) -> Result<(), String> {
    if items.len() > MOST_ITEMS {
        return Err(format!("{} items are too many: at most {MOST_ITEMS}", items.len()));
    }
    let is_fine = |item: &Item| !item.text.trim().is_empty() && item.text.chars().count() <= LONGEST_ITEM;
    match items.iter().position(|item| !is_fine(item)) {
        Some(at) => Err(format!("item {} is empty or longer than {LONGEST_ITEM} characters", at + 1)),
        None => Ok(()),
    }
}

/// The list as the model reads it.
pub fn render(items: &[Item]) -> String {
    if items.is_empty() {
        return "The list is empty.".to_owned();
    }
    let mark = |progress| match progress {
        Progress::Open => ' ',
        Progress::Doing => '~',
        Progress::Done => 'x',
    };
    let line = |(n, item): (usize, &Item)| format!("{}. [{}] {}", n + 1, mark(item.state), item.text);
    let done = items.iter().filter(|item| item.state == Progress::Done).count();
    let lines: Vec<String> = items.iter().enumerate().map(line).collect();
    format!("{}\n{done} of {} done", lines.join("\n"), items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_like_one_and_has_limits() {
        let item = |text: &str, state| Item { text: text.to_owned(), state };
        let items =
            [item("plan", Progress::Done), item("build", Progress::Doing), item("ship", Progress::Open)];
        assert_eq!(render(&items), "1. [x] plan\n2. [~] build\n3. [ ] ship\n1 of 3 done");
        assert_eq!(render(&[]), "The list is empty.");
        assert!(check(&items).is_ok() && check(&[item(" ", Progress::Open)]).is_err());
        assert!(check(&vec![items[0].clone(); MOST_ITEMS + 1]).is_err());
        assert!(check(&[item(&"x".repeat(LONGEST_ITEM + 1), Progress::Open)]).is_err());
    }
}
