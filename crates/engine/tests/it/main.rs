//! The engine with a real store and scripted edges. Time is virtual: nothing here waits for a clock.

#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod agents;
mod apart;
mod approvals;
mod asked;
mod attached;
mod authority;
mod both;
mod briefing;
mod budgets;
mod classifier;
mod clock;
mod commands;
mod concern;
mod deaths;
mod delegation_seed;
mod delivery;
mod drafts;
mod ends;
mod explain;
mod families;
mod images;
mod ingress;
mod killed;
mod lanes;
mod language;
mod limits;
mod maintenance;
mod memory;
mod outward;
mod patience;
mod privilege;
mod readers;
mod reception;
mod remote;
mod replaced_paths;
mod rounds;
mod runs;
mod schedule;
mod secrets;
mod sending;
mod sessions;
mod spoken;
mod steering;
mod stopped;
mod strangers;
mod streaming;
mod subagents;
mod teams;
mod unreadable;
mod windows;

use std::sync::Arc;

use polyclaw_domain::message::MessageRole;
use polyclaw_domain::provider::{Prompt, PromptMessage};
use polyclaw_store::messages::SessionMessage;
use polyclaw_testkit::{ModelScript, ScriptStep, ScriptedProvider};
use serde_json::json;
use tokio::sync::Semaphore;

/// What a transcript looks like at a glance: `user hi`, `assistant echo: hi`, `call look`, `result look`.
fn glance(transcript: &[SessionMessage]) -> Vec<String> {
    transcript
        .iter()
        .flat_map(|message| match message.role {
            MessageRole::Tool => vec![format!("result {}", message.text)],
            role => {
                let calls = polyclaw_domain::message::tool_calls(&message.parts)
                    .map(|call| format!("call {}", call.name));
                let text =
                    (!message.text.is_empty()).then(|| format!("{} {}", role.as_str(), first_line(message)));
                text.into_iter().chain(calls).collect()
            }
        })
        .collect()
}

fn first_line(message: &SessionMessage) -> &str {
    message.text.lines().next().unwrap_or_default()
}

/// A model that calls `look` `rounds` times for a message that says `work`, waiting at the gate each time, and
/// answers everything else at once.
fn worker(rounds: usize, gate: &Arc<Semaphore>) -> Arc<ScriptedProvider> {
    let gate = Arc::clone(gate);
    ScriptedProvider::new(move |prompt| work(prompt, rounds, &gate))
}

fn work(prompt: &Prompt, rounds: usize, gate: &Arc<Semaphore>) -> ModelScript {
    let asked = polyclaw_testkit::last_user_text(prompt);
    if !asked.contains("work") {
        return vec![ScriptStep::Say(format!("reply to {asked}"))];
    }
    let done = prompt.messages.iter().filter(|m| is_done(m)).count();
    if done >= rounds {
        return vec![ScriptStep::Say("the work is done".to_owned())];
    }
    vec![ScriptStep::Gate(Arc::clone(gate)), ScriptStep::Call("look".to_owned(), json!({ "step": done }))]
}

fn is_done(message: &PromptMessage) -> bool {
    matches!(message, PromptMessage::ToolResult { content, .. } if content.starts_with("look"))
}
