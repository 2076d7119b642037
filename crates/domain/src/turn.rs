//! The turn as a machine without I/O. It is told what was stored and says what to do next; the engine does it.
//! Restarting is the same machine built from the stored steps, so a crash needs no code path of its own.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::tool::{ToolCall, ToolOutcome};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Model calls that asked for tools.
    pub rounds: u32,
    /// The same tool with the same arguments and the same result this often is a loop.
    pub repeats: u32,
}

/// One stored step of a turn, as a restart finds it.
#[derive(Clone, Debug)]
pub enum Step {
    Called(Vec<ToolCall>),
    Resulted { call_id: String, outcome: ToolOutcome },
}

#[derive(Clone, Debug)]
pub enum Event {
    /// The turn starts, or goes on after a restart.
    Began { steered: bool },
    /// A model's step is stored.
    Replied { text: String, calls: Vec<ToolCall> },
    /// A tool's result is stored. `steered`: a newer message of a person waits.
    Resulted { call_id: String, outcome: ToolOutcome, steered: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    CallModel,
    RunTool(ToolCall),
    /// End as steered; these calls never started and get a synthetic result each.
    Yield {
        skipped: Vec<ToolCall>,
    },
    Finish {
        text: String,
    },
    /// End with an error the user sees; these calls never started.
    Stop {
        reason: Stop,
        skipped: Vec<ToolCall>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    TooManyRounds(u32),
    Loop { tool: String, times: u32 },
}

#[derive(Debug)]
pub struct Turn {
    limits: Limits,
    rounds: u32,
    /// Calls of the present batch without a result, in the model's order.
    open: VecDeque<ToolCall>,
    /// How often each (tool, arguments, result) was seen.
    seen: HashMap<(String, String, String), u32>,
    used_ids: HashSet<String>,
    /// A result is stored, so the turn stands at a safe boundary.
    at_boundary: bool,
}

impl Turn {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            rounds: 0,
            open: VecDeque::new(),
            seen: HashMap::new(),
            used_ids: HashSet::new(),
            at_boundary: false,
        }
    }

    pub fn restore(limits: Limits, steps: impl IntoIterator<Item = Step>) -> Self {
        let mut turn = Self::new(limits);
        for step in steps {
            match step {
                Step::Called(calls) => turn.take_calls(calls),
                Step::Resulted { call_id, outcome } => {
                    turn.close(&call_id, &outcome);
                }
            }
        }
        turn
    }

    /// A steer takes effect only at a boundary: never inside a model call, never between a call and its result.
    pub fn step(&mut self, event: Event) -> Effect {
        match event {
            Event::Began { steered } if steered && self.at_boundary => self.give_way(),
            Event::Began { .. } => self.next(),
            Event::Replied { text, calls } if calls.is_empty() => Effect::Finish { text },
            Event::Replied { calls, .. } => {
                self.take_calls(calls);
                match self.too_many_rounds() {
                    Some(reason) => Effect::Stop { reason, skipped: self.open.drain(..).collect() },
                    None => self.next(),
                }
            }
            Event::Resulted { call_id, outcome, steered } => match self.close(&call_id, &outcome) {
                Some(reason) => Effect::Stop { reason, skipped: self.open.drain(..).collect() },
                None if steered => self.give_way(),
                None => self.next(),
            },
        }
    }

    /// Gives every call an id of its own within the turn; some models number each reply from zero again.
    pub fn name_calls(&self, calls: &mut [ToolCall]) {
        let mut taken = self.used_ids.clone();
        for call in calls {
            let mut id = if call.id.is_empty() { "call".to_owned() } else { call.id.clone() };
            let base = id.clone();
            let mut n = 1;
            while !taken.insert(id.clone()) {
                n += 1;
                id = format!("{base}-{n}");
            }
            call.id = id;
        }
    }

    fn next(&mut self) -> Effect {
        match self.open.front() {
            Some(call) => Effect::RunTool(call.clone()),
            None => Effect::CallModel,
        }
    }

    fn give_way(&mut self) -> Effect {
        Effect::Yield { skipped: self.open.drain(..).collect() }
    }

    fn take_calls(&mut self, calls: Vec<ToolCall>) {
        self.rounds += 1;
        self.at_boundary = false;
        self.used_ids.extend(calls.iter().map(|call| call.id.clone()));
        self.open = calls.into();
    }

    fn too_many_rounds(&self) -> Option<Stop> {
        (self.rounds > self.limits.rounds).then_some(Stop::TooManyRounds(self.limits.rounds))
    }

    fn close(&mut self, call_id: &str, outcome: &ToolOutcome) -> Option<Stop> {
        let at = self.open.iter().position(|call| call.id == call_id)?;
        let call = self.open.remove(at)?;
        self.at_boundary = true;
        let fingerprint = (call.name.clone(), call.arguments.to_string(), outcome.content.clone());
        let times = self.seen.entry(fingerprint).or_default();
        *times += 1;
        (*times >= self.limits.repeats).then_some(Stop::Loop { tool: call.name, times: *times })
    }
}

impl Stop {
    /// One sentence for the person who waits.
    pub fn sentence(&self) -> String {
        match self {
            Self::TooManyRounds(limit) => {
                format!("I stopped after {limit} rounds of tool calls without reaching an answer.")
            }
            Self::Loop { tool, times } => {
                format!(
                    "I stopped because I called {tool} {times} times with the same arguments and the same result."
                )
            }
        }
    }
}

#[cfg(test)]
#[path = "turn/tests.rs"]
mod tests;
