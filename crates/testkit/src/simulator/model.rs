//! The simulated model. It performs the ordered tools of its tasks batch by batch, then answers by naming the tasks.
//! It is stateless, so an error in its answer was an error in its prompt.

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

/// Returns the tasks of the last run of user messages, which started this turn. The backlog's summary line names
/// tasks in full.
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

/// Counts the steps of a task that have a result, including errors. A skipped step does not count.
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
