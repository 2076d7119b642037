//! The simulated model: does what the tasks in front of it order, one batch of tools after the other, and answers
//! by naming the tasks. It keeps no state of its own, so whatever it gets wrong was wrong in its prompt.

use std::time::Duration;

use polyclaw_domain::provider::{Prompt, PromptMessage};
use serde_json::json;

use crate::ports::script::{ModelScript, ScriptStep};

struct SimulatedTask<'a> {
    name: &'a str,
    tools: &'a str,
    batch: usize,
}

pub(super) fn answer_prompt(prompt: &Prompt) -> ModelScript {
    let tasks = pending_tasks(prompt);
    for task in &tasks {
        let done = count_done_steps(prompt, task.name);
        if done < task.tools.len() {
            let batch = task.tools.chars().skip(done).take(task.batch);
            let mut script = vec![ScriptStep::Pause(Duration::from_millis(11))];
            script.extend(batch.enumerate().map(|(n, tool)| {
                let name = match tool {
                    'l' => "look",
                    'p' => "put",
                    _ => "pay",
                };
                ScriptStep::Call(name.to_owned(), json!({ "task": task.name, "step": done + n }))
            }));
            return script;
        }
    }
    let names: Vec<&str> = tasks.iter().map(|task| task.name).collect();
    vec![
        ScriptStep::Say("answer ".to_owned()),
        ScriptStep::Pause(Duration::from_millis(5)),
        ScriptStep::Say(names.join(" ")),
    ]
}

/// The tasks of the last run of user messages: what began this turn. The backlog's line names tasks in full.
fn pending_tasks(prompt: &Prompt) -> Vec<SimulatedTask<'_>> {
    fn text(message: &PromptMessage) -> Option<&str> {
        match message {
            PromptMessage::User { text, .. } => Some(text.as_str()),
            _ => None,
        }
    }
    let messages = prompt.messages.iter().rev();
    let mut run: Vec<&str> = messages.skip_while(|m| text(m).is_none()).map_while(text).collect();
    run.reverse();
    run.into_iter().flat_map(|text| text.lines().filter_map(parse)).collect()
}

fn parse(line: &str) -> Option<SimulatedTask<'_>> {
    let rest = &line[line.rfind("task m")? + 5..];
    let mut words = rest.split(' ');
    let name = words.next()?;
    let tools = words.next()?.strip_prefix("tools=")?;
    let batch = words.next()?.strip_prefix("batch=")?.trim().parse().ok()?;
    Some(SimulatedTask { name, tools, batch })
}

/// Steps of a task that have a result, also an error; a skipped one has not been done.
fn count_done_steps(prompt: &Prompt, task: &str) -> usize {
    let mut open: Vec<(&str, bool)> = Vec::new();
    let mut done = 0;
    for message in &prompt.messages {
        match message {
            PromptMessage::Assistant { calls, .. } => {
                open = calls.iter().map(|call| (call.id.as_str(), call.arguments["task"] == task)).collect();
            }
            PromptMessage::ToolResult { call_id, content, .. } => {
                let ours = open.iter().any(|(id, ours)| id == call_id && *ours);
                done +=
                    usize::from(ours && !content.starts_with("Skipped") && !content.starts_with("Not run"));
            }
            PromptMessage::User { .. } => {}
        }
    }
    done
}
