//! `todo`: an agent's own todo list in a session.

use polyclaw_domain::todo::{self, TodoItem};
use polyclaw_domain::tool::ToolScope;
use polyclaw_store::todos;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ToolCallResult, ToolRefusal};
use crate::core::Engine;
use crate::error::Error;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TodoArguments {
    /// The complete new list. Omit it to show the current one.
    items: Option<Vec<TodoItem>>,
}

pub(super) async fn run(
    engine: &Engine,
    scope: &ToolScope,
    TodoArguments { items }: TodoArguments,
) -> ToolCallResult {
    let session = scope.session.clone();
    let Some(items) = items else {
        let kept = engine.db().read(move |tx| todos::get(tx, &session)).await.map_err(Error::from)?;
        return Ok(todo::render_todo_list(&kept));
    };
    todo::check_todo_list(&items).map_err(ToolRefusal)?;
    let (stored, now) = (items.clone(), engine.now());
    engine
        .db()
        .write(move |tx| todos::replace_list(tx, &session, &stored, now))
        .await
        .map_err(Error::from)?;
    Ok(todo::render_todo_list(&items))
}
