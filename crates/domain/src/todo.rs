//! An agent's todo list in a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum number of items, and of characters per item.
pub const MAX_TODO_ITEMS: usize = 100;
pub const MAX_TODO_ITEM_CHARS: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TodoItem {
    /// The thing to do.
    pub text: String,
    /// The progress.
    #[serde(default)]
    pub state: TodoState,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoState {
    #[default]
    Open,
    Doing,
    Done,
}

/// Returns an error if the list is too long or an item is invalid.
pub fn check_todo_list(items: &[TodoItem]) -> Result<(), String> {
    if items.len() > MAX_TODO_ITEMS {
        return Err(format!("{} items; at most {MAX_TODO_ITEMS} are allowed", items.len()));
    }
    let is_fine =
        |item: &TodoItem| !item.text.trim().is_empty() && item.text.chars().count() <= MAX_TODO_ITEM_CHARS;
    match items.iter().position(|item| !is_fine(item)) {
        Some(at) => Err(format!("item {} is empty or longer than {MAX_TODO_ITEM_CHARS} characters", at + 1)),
        None => Ok(()),
    }
}

/// Renders the list for the model.
pub fn render_todo_list(items: &[TodoItem]) -> String {
    if items.is_empty() {
        return "The todo list is empty.".to_owned();
    }
    let mark = |progress| match progress {
        TodoState::Open => ' ',
        TodoState::Doing => '~',
        TodoState::Done => 'x',
    };
    let line = |(n, item): (usize, &TodoItem)| format!("{}. [{}] {}", n + 1, mark(item.state), item.text);
    let done = items.iter().filter(|item| item.state == TodoState::Done).count();
    let lines: Vec<String> = items.iter().enumerate().map(line).collect();
    format!("{}\n{done} of {} done", lines.join("\n"), items.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todo_list_renders_and_enforces_limits() {
        let item = |text: &str, state| TodoItem { text: text.to_owned(), state };
        let items =
            [item("plan", TodoState::Done), item("build", TodoState::Doing), item("ship", TodoState::Open)];
        assert_eq!(render_todo_list(&items), "1. [x] plan\n2. [~] build\n3. [ ] ship\n1 of 3 done");
        assert_eq!(render_todo_list(&[]), "The todo list is empty.");
        assert!(check_todo_list(&items).is_ok() && check_todo_list(&[item(" ", TodoState::Open)]).is_err());
        assert!(check_todo_list(&vec![items[0].clone(); MAX_TODO_ITEMS + 1]).is_err());
        assert!(check_todo_list(&[item(&"x".repeat(MAX_TODO_ITEM_CHARS + 1), TodoState::Open)]).is_err());
    }
}
