//! The turn as a state machine without I/O. Its input is what was stored, its output the next effect for the engine.
//! Restarting is the same machine built from the stored steps, so crash recovery needs no separate code path.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::locale::Locale;
use crate::localized;
use crate::tool::{ToolCall, ToolOutcome};

#[derive(Clone, Copy, Debug)]
pub struct TurnLimits {
    /// Maximum number of model calls that request tools.
    pub rounds: u32,
    /// The same tool with the same arguments and the same result this often is a loop.
    pub repeats: u32,
}

/// One stored step of a turn, as a restart finds it.
#[derive(Clone, Debug)]
pub enum TurnStep {
    Called(Vec<ToolCall>),
    Resulted { call_id: String, outcome: ToolOutcome },
}

#[derive(Clone, Debug)]
pub enum TurnEvent {
    /// The turn starts, or resumes after a restart.
    Started { steered: bool },
    /// A model's step is stored.
    Replied { text: String, calls: Vec<ToolCall> },
    /// A tool's result is stored. `steered`: a newer message of a person waits.
    Resulted { call_id: String, outcome: ToolOutcome, steered: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub enum TurnEffect {
    CallModel,
    RunTool(ToolCall),
    /// End as steered. These calls never started; each gets a synthetic result.
    Yield {
        skipped: Vec<ToolCall>,
    },
    Finish {
        text: String,
    },
    /// End with an error the user sees; these calls never started.
    Stop {
        reason: StopReason,
        skipped: Vec<ToolCall>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    TooManyRounds(u32),
    Loop { tool: String, times: u32 },
}

#[derive(Debug)]
pub struct Turn {
    limits: TurnLimits,
    rounds: u32,
    /// Calls of the current batch without a result, in the model's order.
    open: VecDeque<ToolCall>,
    /// How often each (tool, arguments, result) was seen.
    seen: HashMap<(String, String, String), u32>,
    used_ids: HashSet<String>,
    /// A result is stored, so the turn is at a safe boundary.
    at_boundary: bool,
}

impl Turn {
    pub fn new(limits: TurnLimits) -> Self {
        Self {
            limits,
            rounds: 0,
            open: VecDeque::new(),
            seen: HashMap::new(),
            used_ids: HashSet::new(),
            at_boundary: false,
        }
    }

    pub fn restore_from_steps(limits: TurnLimits, steps: impl IntoIterator<Item = TurnStep>) -> Self {
        let mut turn = Self::new(limits);
        for step in steps {
            match step {
                TurnStep::Called(calls) => turn.accept_calls(calls),
                TurnStep::Resulted { call_id, outcome } => {
                    turn.record_result(&call_id, &outcome);
                }
            }
        }
        turn
    }

    /// Handles an event and returns the next effect. A steer takes effect only at a boundary: never inside a model
    /// call, never between a call and its result.
    pub fn apply_event(&mut self, event: TurnEvent) -> TurnEffect {
        match event {
            TurnEvent::Started { steered } if steered && self.at_boundary => self.yield_to_steer(),
            TurnEvent::Started { .. } => self.next_effect(),
            TurnEvent::Replied { text, calls } if calls.is_empty() => TurnEffect::Finish { text },
            TurnEvent::Replied { calls, .. } => {
                self.accept_calls(calls);
                match self.too_many_rounds() {
                    Some(reason) => TurnEffect::Stop { reason, skipped: self.open.drain(..).collect() },
                    None => self.next_effect(),
                }
            }
            TurnEvent::Resulted { call_id, outcome, steered } => match self.record_result(&call_id, &outcome)
            {
                Some(reason) => TurnEffect::Stop { reason, skipped: self.open.drain(..).collect() },
                None if steered => self.yield_to_steer(),
                None => self.next_effect(),
            },
        }
    }

    /// Gives every call a unique id within the turn; some models restart numbering in each reply.
    pub fn assign_call_ids(&self, calls: &mut [ToolCall]) {
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

    fn next_effect(&mut self) -> TurnEffect {
        match self.open.front() {
            Some(call) => TurnEffect::RunTool(call.clone()),
            None => TurnEffect::CallModel,
        }
    }

    fn yield_to_steer(&mut self) -> TurnEffect {
        TurnEffect::Yield { skipped: self.open.drain(..).collect() }
    }

    fn accept_calls(&mut self, calls: Vec<ToolCall>) {
        self.rounds += 1;
        self.at_boundary = false;
        self.used_ids.extend(calls.iter().map(|call| call.id.clone()));
        self.open = calls.into();
    }

    fn too_many_rounds(&self) -> Option<StopReason> {
        (self.rounds > self.limits.rounds).then_some(StopReason::TooManyRounds(self.limits.rounds))
    }

    fn record_result(&mut self, call_id: &str, outcome: &ToolOutcome) -> Option<StopReason> {
        let at = self.open.iter().position(|call| call.id == call_id)?;
        let call = self.open.remove(at)?;
        self.at_boundary = true;
        let fingerprint = (call.name.clone(), call.arguments.to_string(), outcome.content.clone());
        let times = self.seen.entry(fingerprint).or_default();
        *times += 1;
        (*times >= self.limits.repeats).then_some(StopReason::Loop { tool: call.name, times: *times })
    }
}

impl StopReason {
    /// Returns one sentence for the person who waits.
    pub fn user_message(&self, locale: Locale) -> String {
        match self {
            Self::TooManyRounds(limit) => localized!(
                locale,
                "The turn stopped after {limit} rounds of tool calls without an answer.",
                "此回合在 {limit} 轮工具调用后仍没有得出回复，已停止。",
            ),
            Self::Loop { tool, times } => localized!(
                locale,
                "The turn stopped because it called {tool} {times} times with the same arguments and the same result.",
                "此回合已停止：{tool} 以相同的参数被调用了 {times} 次，结果都相同。",
            ),
        }
    }
}

#[cfg(test)]
#[path = "turn/tests.rs"]
mod tests;
